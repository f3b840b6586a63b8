// SPDX-License-Identifier: Apache-2.0
// Numbers of congestion control (DCQCN) and of the pacing of queue pairs.
#pragma once

#include <array>
#include <cstdint>

#include "model/sim/parameter.h"
#include "model/transport/congestion/qcn_group.h"

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
  /// Of flows that react, and whose packets are ECT(0).
  sim::parameter<std::uint8_t> priorities{0, {0, 255, "mask", "design: off; bit n: flows of priority n react to CNPs"}};
  /// g of alpha.
  sim::parameter<std::uint16_t> gain_per_1024{4, {1, 1024, "1/1024", "DCQCN: 1/256; vendor: 5 (rp_dce_tcp_g 1019)"}};
  /// At a flow's first CNP.
  sim::parameter<std::uint16_t> initial_alpha{1024,
                                              {0, 1024, "1/1024", "DCQCN: 1; vendor: 1023 (rp_initial_alpha_value)"}};
  /// Without CNP, after which alpha decays.
  sim::parameter<std::uint32_t> alpha_timer_us{55, {1, sim::many, "us", "DCQCN: 55; vendor: 1 (rp_dce_tcp_rtt)"}};
  /// Between two increases by time.
  sim::parameter<std::uint32_t> increase_timer_us{55, {1, sim::many, "us", "DCQCN: 55; vendor: 300 (rp_time_reset)"}};
  /// Bytes on the line between two increases by volume.
  sim::parameter<std::uint64_t> byte_counter{10'000'000,
                                             {1, 1ull << 40, "bytes", "DCQCN: 10 MB; vendor: 32767 (rp_byte_reset)"}};
  /// F: steps of fast recovery.
  sim::parameter<std::uint16_t> threshold{5, {1, 1000, "stages", "DCQCN: F 5; vendor: 1 (rp_threshold)"}};
  sim::parameter<std::uint32_t> additive_mbps{40, {0, 400'000, "Mb/s", "DCQCN: 40; vendor: 5 (rp_ai_rate)"}};  ///< R_AI
  /// R_HAI.
  sim::parameter<std::uint32_t> hyper_mbps{200, {0, 400'000, "Mb/s", "calibration 2.6: 200; vendor: 50 (rp_hai_rate)"}};
  sim::parameter<std::uint32_t> min_rate_mbps{100,
                                              {1, 400'000, "Mb/s", "calibration 2.6: 100; vendor: 1 (rp_min_rate)"}};
  /// A flow that is not limited; 0: rate of the port.
  sim::parameter<std::uint32_t> max_rate_mbps{
      0, {0, 400'000, "Mb/s", "adapter data plane E.8: 0, the port's rate (rp_max_rate)"}};
  /// At most one reduction in it; a CNP inside it acts at its end.
  sim::parameter<std::uint32_t> reduce_period_us{
      4, {0, sim::many, "us", "adapter data plane E.8: 4 (rp_rate_reduce_monitor_period)"}};
  /// Of the rate is left by one reduction at least.
  sim::parameter<std::uint8_t> min_decrease_percent{50, {0, 100, "%", "adapter data plane E.8: 50 (rp_min_dec_fac)"}};
  /// A reduction takes rate * (1024 * alpha) / 2^n.
  sim::parameter<std::uint8_t> decrease_shift{11, {10, 20, "bits", "adapter data plane E.8: 11 is alpha / 2 (rp_gd)"}};
  /// Rate after a flow's first CNP; 0: reduced as by any.
  sim::parameter<std::uint8_t> first_cnp_percent{
      0, {0, 100, "%", "adapter data plane E.8: 0 (rp_rate_to_set_on_first_cnp)"}};
  /// Every reduction sets the target to the rate before it, or only the first after an increase by volume,
  sim::parameter<bool> clamp_target{true, "DCQCN: true; vendor: false (rp_clamp_tgt_rate)"};
  /// or by time.
  sim::parameter<bool> clamp_target_after_timer{true, "adapter data plane E.8: true (rp_clamp_tgt_rate_ati)"};

  void list(sim::fields& are) {
    are("priorities", priorities);
    are("gain_per_1024", gain_per_1024);
    are("initial_alpha", initial_alpha);
    are("alpha_timer_us", alpha_timer_us);
    are("increase_timer_us", increase_timer_us);
    are("byte_counter", byte_counter);
    are("threshold", threshold);
    are("additive_mbps", additive_mbps);
    are("hyper_mbps", hyper_mbps);
    are("min_rate_mbps", min_rate_mbps);
    are("max_rate_mbps", max_rate_mbps);
    are("reduce_period_us", reduce_period_us);
    are("min_decrease_percent", min_decrease_percent);
    are("decrease_shift", decrease_shift);
    are("first_cnp_percent", first_cnp_percent);
    are("clamp_target", clamp_target);
    are("clamp_target_after_timer", clamp_target_after_timer);
  }
};

/// Notification point: what a receiver does when packets arrive that were marked (adapter data plane C.9, E.8).
struct notification_config {
  sim::parameter<std::uint8_t> priorities{0, {0, 255, "mask", "design: off; bit n: marked packets cause CNPs"}};
  /// Least time between two CNPs of a flow.
  sim::parameter<std::uint32_t> interval_us{50, {0, sim::many, "us", "DCQCN: 50 (np_min_time_between_cnps)"}};
  /// Of one interval.
  sim::parameter<cnp_scope> scope{cnp_scope::qp, {"qp, address, port", "adapter data plane E.8: of one QP"}};
  /// Egress queue, and PCP of tagged ones.
  sim::parameter<std::uint8_t> cnp_priority{6, {0, 7, "", "adapter data plane E.8: 6 (np_cnp_prio)"}};
  sim::parameter<std::uint8_t> cnp_dscp{48, {0, 63, "", "adapter data plane E.8: 48 (np_cnp_dscp)"}};
  /// ECN field of the CNP itself.
  sim::parameter<std::uint8_t> cnp_ecn{2, {0, 3, "", "adapter data plane C.9: TOS 0xc2 of a captured one"}};
  sim::parameter<unsigned> queue{16, {1, 1024, "frames", "design"}};  ///< CNPs that wait for room in the egress queue

  void list(sim::fields& are) {
    are("priorities", priorities);
    are("interval_us", interval_us);
    are("scope", scope);
    are("cnp_priority", cnp_priority);
    are("cnp_dscp", cnp_dscp);
    are("cnp_ecn", cnp_ecn);
    are("queue", queue);
  }
};

struct congestion_config {
  reaction_config reaction;
  notification_config notification;
  qcn_config qcn;
  std::array<std::uint32_t, 2> line_mbps{40'000, 40'000};  ///< rates of the ports, set by the adapter
  /// Of a frame on the line beside its bytes.
  sim::parameter<unsigned> line_overhead_bytes{24, {0, 1000, "bytes", "IEEE 802.3: preamble, FCS and gap"}};
  /// Lateness of a frame that the next ones make up for; later is not late but idle.
  sim::parameter<unsigned> catch_up_cycles{512, {0, sim::many, "cycles", "design: what other packets take"}};
  /// A processing unit waits that long for its QP's time; longer waits free it.
  sim::parameter<unsigned> hold_cycles{512, {1, 4000, "cycles", "design: as credit_wait_cycles"}};

  void list(sim::fields& are) {
    are("reaction", reaction);
    are("notification", notification);
    are("qcn", qcn);
    are("line_overhead_bytes", line_overhead_bytes);
    are("catch_up_cycles", catch_up_cycles);
    are("hold_cycles", hold_cycles);
  }
};

}  // namespace rnic::transport
