// SPDX-License-Identifier: Apache-2.0
// What both directions of a port read and count.
#pragma once

#include <cstdint>
#include <cstring>

#include "model/mac/eth_stats.h"
#include "model/mac/flow_control.h"
#include "model/mac/port_config.h"
#include "model/payload/frame.h"
#include "model/sim/check.h"
#include "model/sim/span.h"
#include "model/sim/types.h"
#include "model/wire/bytes.h"
#include "model/wire/ethernet.h"

namespace rnic::mac {

inline constexpr std::uint32_t shortest_frame = 64;  ///< FCS included
inline constexpr std::uint32_t preamble_bytes = 8;   ///< with the start frame delimiter
inline constexpr std::uint32_t gap_bytes = 12;
inline constexpr std::uint64_t mbps_ps_per_byte = 8 * sim::ps_per_us;  ///< a byte lasts this many ps at 1 Mb/s

/// What firmware has set. Written between two edges (port_registers.cpp).
struct port_settings {
  explicit port_settings(const port_config& config) : mtu(config.mtu), default_priority(config.default_priority) {}

  bool up = false;
  bool ignore_fcs = false;
  bool takes_cnms = false;
  std::uint16_t mtu;
  std::uint8_t default_priority;
  wire::mac_address mac{};
};

struct port_counters {
  std::uint64_t tx_frames = 0, tx_bytes = 0;  ///< on the line, FCS included, without pause frames
  std::uint64_t rx_frames = 0, rx_bytes = 0;  ///< good ones, without MAC control
  std::uint64_t tx_pause = 0, rx_pause = 0;   ///< pause frames of either kind
  std::uint64_t looped = 0;                   ///< for the own port, not on the line
  std::uint64_t drop_fcs = 0, drop_runt = 0, drop_too_long = 0, drop_overflow = 0, drop_link_down = 0;
  std::uint64_t drop_control = 0;          ///< MAC control frames with an unknown opcode
  std::uint64_t rx_cnm = 0, drop_cnm = 0;  ///< CNMs that were taken out; those for which there was no room
  std::uint64_t drop_tx_link_down = 0;
  std::uint64_t link_losses = 0;       ///< the carrier went away
  std::uint64_t blocked_by_pause = 0;  ///< frames that waited in a paused priority
};

/// What the two directions of a port and its registers have in common.
struct port_common {
  const port_config& config;
  const port_settings& set;
  flow_control& flow;
  eth_stats& stats;
  port_counters& counters;
  payload::frame_pool& pool;
  sim::span_recorder& spans;
};

inline bool is_tagged(const payload::frame& f) {
  return f.length >= 16 && wire::load_be16(f.data() + 12) == static_cast<std::uint16_t>(wire::ether_type::vlan);
}

/// Padding with zeros to the shortest frame (IEEE 802.3, 4.2.3.3).
inline void pad(payload::frame& f) {
  constexpr std::uint32_t shortest = shortest_frame - 4;  // without FCS
  if (f.length >= shortest) return;
  RNIC_ASSERT(f.begin + shortest <= payload::frame::capacity, "no room behind a short frame");
  std::memset(f.data() + f.length, 0, shortest - f.length);
  f.length = shortest;
}

/// Column of the statistics: PCP, or untagged.
inline unsigned column_of(const payload::frame& f) {
  return is_tagged(f) ? static_cast<unsigned>(f.data()[14] >> 5) : eth_stats::untagged;
}

}  // namespace rnic::mac
