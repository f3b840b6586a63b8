// SPDX-License-Identifier: Apache-2.0
// Numbers of congestion control (DCQCN) and of the pacing of queue pairs.
#pragma once

#include <cstdint>

namespace rnic::transport {

/// For which flows of a notification point CNPs are counted together.
enum class cnp_scope : std::uint8_t {
  qp,       ///< an interval for each queue pair
  address,  ///< for each peer address
  port      ///< for each port
};

/// Reaction point: what a sender does when CNPs arrive (adapter data plane E.8). Defaults are those of the paper
/// (SIGCOMM'15 and calibration 2.6, 5); presets/vendor.toml has the vendor's. Off as long as `priorities` is 0.
struct reaction_config {
  std::uint8_t priorities = 0;              ///< bit n: flows of priority n react, and their packets are ECT(0)
  std::uint16_t gain_per_1024 = 4;          ///< g of alpha, in 1/1024 (paper: 1/256)
  std::uint16_t initial_alpha = 1024;       ///< at a flow's first CNP, in 1/1024 (paper: 1)
  std::uint32_t alpha_timer_us = 55;        ///< without CNP, after which alpha decays (paper)
  std::uint32_t increase_timer_us = 55;     ///< between two increases by time (paper)
  std::uint64_t byte_counter = 10'000'000;  ///< bytes on the line between two increases by volume (paper)
  std::uint16_t threshold = 5;              ///< F: steps of fast recovery (paper)
  std::uint32_t additive_mbps = 40;         ///< R_AI (paper)
  std::uint32_t hyper_mbps = 200;           ///< R_HAI (calibration 2.6)
  std::uint32_t min_rate_mbps = 100;        ///< (calibration 2.6)
  std::uint32_t max_rate_mbps = 0;          ///< a flow that is not limited; 0: rate of the port
  std::uint32_t reduce_period_us = 4;       ///< at most one reduction in it; a CNP inside it acts at its end (E.8)
  std::uint8_t min_decrease_percent = 50;   ///< of the rate is left by one reduction at least (E.8)
  std::uint8_t decrease_shift = 11;         ///< a reduction takes rate * (1024 * alpha) / 2^n: 11 is alpha / 2 (E.8)
  std::uint8_t first_cnp_percent = 0;       ///< rate after a flow's first CNP; 0: reduced as by any (E.8)
  bool clamp_target = true;                 ///< every reduction sets the target to the rate before it (paper), or only
                                            ///< the first after an increase by volume,
  bool clamp_target_after_timer = true;     ///< or by time (E.8)
};

/// Notification point: what a receiver does when packets arrive that were marked (adapter data plane C.9, E.8).
struct notification_config {
  std::uint8_t priorities = 0;      ///< bit n: marked packets of priority n are answered with CNPs
  std::uint32_t interval_us = 50;   ///< least time between two CNPs of a flow (paper)
  cnp_scope scope = cnp_scope::qp;  ///< (E.8)
  std::uint8_t cnp_priority = 6;    ///< egress queue, and PCP of tagged ones (E.8)
  std::uint8_t cnp_dscp = 48;       ///< (C.9, E.8)
  std::uint8_t cnp_ecn = 2;         ///< ECN field of the CNP itself: TOS 0xc2 of a captured one (C.9)
  unsigned queue = 16;              ///< CNPs that wait for room in the egress queue (design)
};

struct congestion_config {
  reaction_config reaction;
  notification_config notification;
  std::uint32_t line_mbps = 40'000;   ///< rate of the port, set by the adapter
  unsigned line_overhead_bytes = 24;  ///< of a frame on the line beside its bytes: preamble, FCS, gap (IEEE 802.3)
  unsigned catch_up_cycles = 512;  ///< lateness of a frame that the next ones make up for; later is not late but idle
                                   ///< (design: the time that other queue pairs' packets take)
  unsigned hold_cycles = 512;  ///< a processing unit waits that long for its QP's time; longer waits free it (design)
};

}  // namespace rnic::transport
