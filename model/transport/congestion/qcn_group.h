// SPDX-License-Identifier: Apache-2.0
// What the reaction points of a port's priority have in common (IEEE 802.1Q clauses 32.10, 32.11).
#pragma once

#include <cstdint>

#include "model/sim/parameter.h"

namespace rnic::transport {

/// Quantised congestion notification in the adapter: what is not set by CONGESTION_CTRL.
struct qcn_config {
  /// The flow table of each half of the transport.
  sim::parameter<std::uint8_t> log_flows{12, {4, 18, "log2 of entries", "design: which queue pair sends to a peer's"}};
  /// A CNM has its receiver for so long.
  sim::parameter<unsigned> cnm_cycles{8, {1, 4096, "cycles", "design: its 110 bytes at 16 a cycle"}};

  void list(sim::fields& are) {
    are("log_flows", log_flows);
    are("cnm_cycles", cnm_cycles);
  }
};

/// Parameters of a port's priority as software sets them (CONGESTION_CTRL; 802.1Q's names without rpg, rppp). Defaults
/// are those of 802.1Q's managed objects (IEEE8021-CN-MIB), but for max_rps, which is the most that these allow: a
/// reaction point is a queue pair here, of which one alone (the default there) would be slowed down.
struct qcn_group {
  bool enable = false;
  std::uint32_t max_rps = 100;
  std::uint32_t time_reset_us = 15'000;  ///< between increases by time; 0: none
  std::uint32_t byte_reset = 150'000;    ///< between increases by volume; 0: none
  std::uint32_t threshold = 5;           ///< stages of fast recovery
  std::uint32_t max_rate_mbps = 0;       ///< 0: rate of the port
  std::uint32_t ai_rate_mbps = 5;
  std::uint32_t hai_rate_mbps = 50;
  std::uint32_t gd = 7;                ///< a CNM takes feedback / 2^gd of the rate
  std::uint32_t min_dec_percent = 50;  ///< of the rate is left by a CNM at least
  std::uint32_t min_rate_mbps = 5;
};

inline constexpr unsigned qcn_ports = 2, qcn_priorities = 8, qcn_groups = qcn_ports * qcn_priorities;
constexpr unsigned qcn_group_of(unsigned port, unsigned priority) { return port * qcn_priorities + priority; }

}  // namespace rnic::transport
