// SPDX-License-Identifier: Apache-2.0
// Congestion notification messages (IEEE 802.1Q clause 33.3, 33.4; adapter data plane E.7), values to bytes and back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "model/wire/packet.h"

namespace rnic::wire {

inline constexpr std::uint16_t ether_type_cnm = 0x22e7;     ///< congestion notification message
inline constexpr std::uint16_t ether_type_cn_tag = 0x22e9;  ///< CN-TAG: 16 bits of flow identifier behind it
inline constexpr std::uint8_t cnm_most_feedback = 63;       ///< six bits
inline constexpr std::size_t cnm_most_msdu = 64;            ///< bytes of the sampled frame that a CNM gives back
/// Longest one without FCS: both tags, and the PDU of 24 bytes with all of the sampled frame.
inline constexpr std::size_t cnm_most_bytes = 14 + 4 + 4 + 24 + cnm_most_msdu;
/// Offsets and deltas of queues are in units of this many bytes.
inline constexpr std::int64_t cnm_queue_unit = 64;

/// What a congestion point tells the source of a frame that it has sampled.
struct cnm {
  mac_address dmac{}, smac{};             ///< source of the sampled frame; congestion point
  std::optional<std::uint16_t> vlan_tci;  ///< of the CNM's own tag
  std::optional<std::uint16_t> flow;      ///< CN-TAG of the sampled frame, which comes back
  std::uint8_t feedback = 0;              ///< quantised -Fb, 0 to cnm_most_feedback
  std::uint64_t cpid = 0;                 ///< which congestion point
  /// Of the queue: set point less length; length less the one at the last sample. Of 64 bytes, cut to 16 bits.
  std::int16_t q_offset = 0, q_delta = 0;
  std::uint8_t priority = 0;                       ///< of the sampled frame, 0 to 7
  mac_address sampled_dmac{};                      ///< its destination
  std::uint8_t msdu_bytes = 0;                     ///< of `msdu`, up to cnm_most_msdu
  std::array<std::uint8_t, cnm_most_msdu> msdu{};  ///< its first bytes from the EtherType on, tags left out
};

enum class cnm_kind : std::uint8_t {
  none,         ///< another frame
  message,      ///< `out` is filled
  unsupported,  ///< of a version that is not 0
  malformed,    ///< shorter than its PDU, or than what that says it gives back
};

/// Whether the frame of `length` bytes from DMAC on, without FCS, is a CNM by its EtherType, behind a VLAN tag and a
/// CN-TAG where it has these.
bool is_cnm(const std::uint8_t* frame, std::size_t length);

/// Reads such a frame. What is reserved is not looked at.
cnm_kind decode_cnm(const std::uint8_t* frame, std::size_t length, cnm& out);

/// Writes the frame without FCS and padding, and returns its length; `to` has room for cnm_most_bytes.
std::size_t encode_cnm(const cnm& m, std::uint8_t* to);

}  // namespace rnic::wire
