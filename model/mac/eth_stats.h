// SPDX-License-Identifier: Apache-2.0
// A port's counters as software reads them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rnic::mac {

/// The DUMP_ETH_STATS mailbox (adapter control plane 10.2), kept as an image so that reading needs no translation.
/// Sizes are those of the frame on the wire from DMAC to FCS. Column: priority 0..7 of tagged frames, 8 = untagged,
/// 9 = looped back inside of the adapter (transmit only).
class eth_stats {
 public:
  static constexpr unsigned untagged = 8;
  static constexpr unsigned looped = 9;

  /// A frame without error; `dmac` as on the wire. Frames longer than `mtu` are giants and nothing else.
  void receive(unsigned column, std::uint32_t size, std::uint32_t mtu, const std::uint8_t* dmac);
  void transmit(unsigned column, std::uint32_t size, std::uint32_t mtu, const std::uint8_t* dmac, bool tagged);
  /// A frame with a wrong FCS: counts octets, and as runt, jabber or FCS error by its size.
  void receive_bad(unsigned column, std::uint32_t size, std::uint32_t mtu);

  void control_frame() { ++q_[0x558 / 8]; }
  void too_long() { ++q_[0x588 / 8], ++d_[6]; }
  void undersize() { ++d_[3]; }
  void receive_drop() { ++d_[4]; }
  void receive_overflow() { ++d_[5]; }
  void transmit_drop() { ++d_[8]; }

  /// Dword of the mailbox at byte `offset` (a multiple of 4).
  std::uint32_t word(std::uint32_t offset) const;
  void clear() { q_.fill(0), d_.fill(0); }

 private:
  static constexpr std::size_t words32_offset = 0xb88;
  std::array<std::uint64_t, words32_offset / 8> q_{};
  std::array<std::uint32_t, 9> d_{};
};

}  // namespace rnic::mac
