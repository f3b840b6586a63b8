// SPDX-License-Identifier: Apache-2.0
// Parameters of a switch.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "model/fabric/qcn_config.h"
#include "model/sim/parameter.h"
#include "model/sim/types.h"

namespace rnic::fabric {

inline constexpr unsigned priorities = 8;

/// Which frames lie in lossless classes, and how their senders are stopped.
enum class lossless_by : std::uint8_t {
  nothing,  ///< no frame does
  pause,    ///< all do: IEEE 802.3 annex 31B
  pfc       ///< those of `lossless` priorities: IEEE 802.1Qbb
};

/// The packet buffer that all ports share.
struct buffer_config {
  sim::parameter<std::uint32_t> bytes{12u << 20,
                                      {1u << 16, 1u << 30, "bytes", "design: of a chip of 32 ports of 40GbE"}};
  sim::parameter<lossless_by> flow_control{lossless_by::nothing,
                                           {"nothing, pause, pfc", "design: until an administrator says otherwise"}};
  sim::parameter<std::uint8_t> lossless_priorities{0x08, {0, 255, "priorities, one bit each", "design: priority 3"}};
  /// Bytes of an input's priority that count for nobody else.
  sim::parameter<std::uint32_t> reserved_bytes{4'200, {0, 1u << 24, "bytes", "design: a frame of 4 KiB"}};
  /// Of an input's lossless priority, for what still comes after XOFF; 0: (301 + 2.16 * metres) * Gb/s + 2.72 * frame,
  /// or three frames and what the line brings meanwhile, where that is more: on slow lines, and of long frames.
  sim::parameter<std::uint32_t> headroom_bytes{0, {0, 1u << 24, "bytes", "adapter data plane E.5: what 0 computes"}};
  /// Longest frame for which it is computed.
  sim::parameter<std::uint32_t> frame_bytes{4'200, {64, 10'000, "bytes", "design: a packet of 4 KiB with its headers"}};
  /// A lossless priority of an input may have so much of what is free of the shared part.
  sim::parameter<std::uint16_t> lossless_alpha{
      8, {1, 1024, "64ths of the free bytes", "Choudhury 1998: dynamic thresholds; the factor is design"}};
  /// A queue of an output, of frames that are not lossless.
  sim::parameter<std::uint16_t> lossy_alpha{
      64, {1, 1024, "64ths of the free bytes", "Choudhury 1998: dynamic thresholds; the factor is design"}};
  /// XON when an input's priority has fallen so far below its threshold.
  sim::parameter<std::uint32_t> xon_gap_bytes{8'400, {0, 1u << 24, "bytes", "design: two frames of 4 KiB"}};

  void list(sim::fields& are) {
    are("bytes", bytes);
    are("flow_control", flow_control);
    are("lossless_priorities", lossless_priorities);
    are("reserved_bytes", reserved_bytes);
    are("headroom_bytes", headroom_bytes);
    are("frame_bytes", frame_bytes);
    are("lossless_alpha", lossless_alpha);
    are("lossy_alpha", lossy_alpha);
    are("xon_gap_bytes", xon_gap_bytes);
  }
  /// Priorities whose frames are not dropped for want of room.
  std::uint8_t lossless_mask() const {
    return flow_control == lossless_by::nothing ? std::uint8_t{0}
           : flow_control == lossless_by::pause ? std::uint8_t{0xff}
                                                : lossless_priorities;
  }
};

/// Marking of packets that can be marked (RFC 3168) by the length of their output's queue.
struct marking_config {
  sim::parameter<bool> on{false, "design: until an administrator says otherwise"};
  /// Up to this length no packet is marked,
  sim::parameter<std::uint32_t> kmin_bytes{5'000, {0, 1u << 30, "bytes", "Zhu 2015, 5: Kmin"}};
  /// above this one each is,
  sim::parameter<std::uint32_t> kmax_bytes{200'000, {1, 1u << 30, "bytes", "Zhu 2015, 5: Kmax"}};
  /// and in between with a probability that rises to this.
  sim::parameter<std::uint8_t> pmax_percent{1, {0, 100, "%", "Zhu 2015, 5: Pmax"}};

  void list(sim::fields& are) {
    are("on", on);
    are("kmin_bytes", kmin_bytes);
    are("kmax_bytes", kmax_bytes);
    are("pmax_percent", pmax_percent);
  }
};

/// Who goes next at an output among the priorities that are not paused.
enum class switch_scheduling : std::uint8_t {
  weighted,  ///< deficit round robin, by the weights of the priorities
  strict     ///< the highest priority
};

/// Shares of an output's line that its priorities have while they all have frames: those of ETS, where a class has one
/// priority. A priority may send weight * quantum_bytes when its turn comes.
struct weights_config {
  struct weight : sim::parameter<std::uint8_t> {
    weight() : parameter(1, {1, 255, "quanta a turn", "IEEE 802.1Q 8.6.8.4: ETS; equal shares are design"}) {}
  };
  std::array<weight, priorities> of;  // by priority
  sim::parameter<std::uint32_t> quantum_bytes{
      1'600, {64, 1u << 20, "bytes", "design: a frame of 1500 bytes, so that no turn of weight 1 is in vain"}};

  void list(sim::fields& are) {
    for (unsigned p = 0; p < priorities; ++p)
      are("priority" + std::to_string(p), static_cast<sim::parameter<std::uint8_t>&>(of[p]));
    are("quantum_bytes", quantum_bytes);
  }
};

enum class forwarding_mode : std::uint8_t {
  cut_through,       ///< a frame goes on while it still comes in, to a line that is not faster
  store_and_forward  ///< with its last byte, and not with a wrong FCS
};

enum class priority_by : std::uint8_t {
  pcp,  ///< the VLAN tag's; 0 without
  dscp  ///< the IP header's, its upper three bits; the tag's without
};

/// What a port does with VLAN tags (IEEE 802.1Q, 8.6).
struct vlan_port {
  enum class kind : std::uint8_t {
    transparent,  ///< changes none: a tagged frame goes on to ports of its VLAN, and to others that are transparent
    access,       ///< untagged frames belong to `vlan`; tagged ones of another VLAN are dropped
    trunk         ///< tagged frames of `allowed` VLANs; untagged ones belong to `vlan`, or are dropped where it is 0
  };
  kind is = kind::transparent;
  std::uint16_t vlan = 0;
  std::bitset<4096> allowed;
};

struct switch_config {
  sim::parameter<forwarding_mode> forwarding{forwarding_mode::cut_through,
                                             {"cut_through, store_and_forward", "calibration 5: cut-through"}};
  /// From bit to bit, without other traffic; of a frame that is stored from its last bit to its first one.
  sim::parameter<std::uint32_t> hop_ps{250'000, {1000, 1'000'000'000, "ps", "calibration 5"}};
  sim::parameter<priority_by> priority{priority_by::pcp, {"pcp, dscp", "design"}};
  sim::parameter<switch_scheduling> scheduling{switch_scheduling::weighted, {"weighted, strict", "IEEE 802.1Q 8.6.8"}};
  /// Addresses that it can learn.
  sim::parameter<std::uint32_t> addresses{16'384, {1, 1u << 20, "addresses", "design"}};
  sim::parameter<std::uint16_t> pause_quanta{0xffff, {1, 65535, "quanta", "IEEE 802.3 annex 31B"}};
  /// Of that time, after which a pause is repeated.
  sim::parameter<std::uint32_t> pause_refresh_percent{50, {1, 99, "% of the pause", "design"}};
  weights_config weights;
  buffer_config buffer;
  marking_config ecn;
  qcn_config qcn;

  // What is not a parameter: who builds the network says it.
  struct port {
    std::uint32_t rate_mbps = 40'000;
    unsigned metres = 3;  ///< of its cable, for its headroom
    vlan_port vlan;
    std::uint32_t ps_per_metre = 5'050;  ///< of its cable
    /// What a stop takes besides line and cable: this side's choice of the next frame before its line is free (half a
    /// hop), and the peer's ways in and out (an adapter's 80 and 60 ns, some cycles, and its FEC).
    sim::time_ps stop_ps = 285'000;
  };
  std::vector<port> ports;
  bool floods = true;      ///< frames to addresses that nobody knows; not where there are loops
  std::uint64_t seed = 1;  ///< of marks, of samples, and of the choice among equal ways

  void list(sim::fields& are) {
    are("forwarding", forwarding);
    are("hop_ps", hop_ps);
    are("priority", priority);
    are("scheduling", scheduling);
    are("addresses", addresses);
    are("pause_quanta", pause_quanta);
    are("pause_refresh_percent", pause_refresh_percent);
    are("weights", weights);
    are("buffer", buffer);
    are("ecn", ecn);
    are("qcn", qcn);
  }
};

}  // namespace rnic::fabric
