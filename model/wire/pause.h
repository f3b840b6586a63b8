// SPDX-License-Identifier: Apache-2.0
// MAC control frames: PAUSE (IEEE 802.3 annex 31B) and priority flow control (802.1Qbb, 802.3 annex 31D).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/wire/packet.h"

namespace rnic::wire {

/// One pause quantum: 512 bit times of the link.
inline constexpr std::uint64_t bits_per_quantum = 512;
/// Bytes of a control frame without FCS.
inline constexpr std::size_t pause_frame_length = 60;
/// 01:80:c2:00:00:01, where both kinds are sent.
inline constexpr mac_address mac_control_address{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};

/// Contents of either kind (adapter data plane E.1, E.2).
struct pause_frame {
  bool per_priority = false;              ///< PFC; otherwise PAUSE of the whole link, time in quanta[0]
  std::uint8_t enabled = 0;               ///< PFC: priorities whose quanta count, bit n = priority n
  std::array<std::uint16_t, 8> quanta{};  ///< 0 = resume now
};

enum class pause_kind : std::uint8_t {
  none,         ///< not a MAC control frame
  pause,        ///< PAUSE or PFC, `out` is filled
  unsupported,  ///< MAC control with another opcode, or too short: to be discarded (802.3, 31.5.2)
};

/// Reads a frame of `length` bytes from DMAC, without FCS. The destination may be the group address or a station's.
pause_kind decode_pause(const std::uint8_t* frame, std::size_t length, pause_frame& out);

/// Writes pause_frame_length bytes.
void encode_pause(const pause_frame& p, const mac_address& smac, std::uint8_t* to);

}  // namespace rnic::wire
