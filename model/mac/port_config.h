// SPDX-License-Identifier: Apache-2.0
// Parameters of a port.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/mac/egress.h"
#include "model/mac/headroom.h"
#include "model/sim/parameter.h"
#include "model/sim/types.h"

namespace rnic::mac {

struct port_config {
  std::uint8_t index = 0;  ///< 0-based number of the port
  unsigned metres = 3;     ///< of its cable, by who builds the system
  sim::parameter<std::uint32_t> rate_mbps{40'000, {1000, 400'000, "Mb/s", "calibration 2.5: 10, 40, 56 Gb/s"}};
  // Start of a frame to its first bit on the line: MAC (preamble, FCS), PCS (64B/66B, scrambler, distribution to lanes
  // and their markers), PMA (serialiser). Last bit of a frame to its check: PMA, PCS (lanes in step again,
  // descrambler), MAC. The sums are calibration 5's, 60 and 80 ns; the division is ours.
  sim::parameter<std::uint32_t> mac_tx_ns{22, {1, sim::many, "ns", "calibration 5: a part of 60 ns"}};
  sim::parameter<std::uint32_t> pcs_tx_ns{26, {0, sim::many, "ns", "calibration 5: a part of 60 ns"}};
  sim::parameter<std::uint32_t> pma_tx_ns{12, {0, sim::many, "ns", "calibration 5: a part of 60 ns"}};
  sim::parameter<std::uint32_t> pma_rx_ns{14, {0, sim::many, "ns", "calibration 5: a part of 80 ns"}};
  sim::parameter<std::uint32_t> pcs_rx_ns{36, {0, sim::many, "ns", "calibration 5: a part of 80 ns"}};
  sim::parameter<std::uint32_t> mac_rx_ns{30, {1, sim::many, "ns", "calibration 5: a part of 80 ns"}};
  /// Reed-Solomon FEC on the line (IEEE 802.3 clauses 91 and 108): bytes come out when the code word that they are in
  /// is complete and decoded.
  enum class line_code : std::uint8_t { none, rs_528_514 };
  sim::parameter<line_code> fec{line_code::none, {"none, rs_528_514", "calibration 5: 40GBASE-R4 has none"}};
  /// Of a code word, whose syndromes are there with its last bit: the polynomial that locates the errors, then the
  /// errors themselves. The division is ours.
  sim::parameter<std::uint32_t> fec_locate_ns{
      24, {0, sim::many, "ns", "calibration 5: a part of 100 ns, 51.2 of them to gather a code word"}};
  sim::parameter<std::uint32_t> fec_correct_ns{25, {0, sim::many, "ns", "calibration 5: a part of 100 ns"}};
  unsigned datapath_bytes = 16;  ///< a cycle of the core clock, to and from the line's side (adapter.datapath_bytes)
  /// Of frames for the own port, from their last beat to the receiver's check.
  sim::parameter<std::uint8_t> turn_cycles{4, {1, 255, "cycles", "design: the internal switch"}};
  /// The credits a source begins with.
  sim::parameter<std::uint32_t> egress_frames{16, {1, 512, "frames", "design: of each source and priority"}};
  /// Buffer of each priority.
  sim::parameter<std::uint32_t> ingress_bytes{65'536, {4096, 1u << 26, "bytes", "design"}};
  /// Stop the peer above this; 0: the buffer less what can still come by rate and cable (headroom_bytes).
  sim::parameter<std::uint32_t> xoff_bytes{0, {0, 1u << 30, "bytes", "adapter data plane E.5"}};
  /// 0: XOFF less a frame.
  sim::parameter<std::uint32_t> xon_bytes{0, {0, 1u << 30, "bytes", "adapter data plane E.5"}};
  /// Time asked for in a pause frame; a quantum is 512 bit times.
  sim::parameter<std::uint16_t> pause_quanta{0xffff, {1, 65535, "quanta", "IEEE 802.3 annex 31B"}};
  /// Of that time, after which a pause is repeated.
  sim::parameter<std::uint32_t> pause_refresh_percent{50, {1, 99, "% of the pause", "design"}};
  /// Longest frame, FCS included.
  sim::parameter<std::uint16_t> mtu{9'216, {64, 10'000, "bytes", "design: until firmware sets another"}};
  /// Of untagged received frames, until firmware sets another.
  sim::parameter<std::uint8_t> default_priority{0, {0, 7, "", "adapter data plane E.3"}};
  /// Lateness behind other classes that a limited one makes up for.
  sim::parameter<std::uint32_t> class_catch_up_ns{4'000,
                                                  {0, sim::many, "ns", "design: what other classes' frames take"}};
  sim::parameter<arbitration> egress_arbitration{
      arbitration::round_robin, {"strict, round_robin, ets", "IEEE 802.1Q 8.6.8, until firmware sets another"}};

  void list(sim::fields& are) {
    are("rate_mbps", rate_mbps);
    are("mac_tx_ns", mac_tx_ns);
    are("pcs_tx_ns", pcs_tx_ns);
    are("pma_tx_ns", pma_tx_ns);
    are("pma_rx_ns", pma_rx_ns);
    are("pcs_rx_ns", pcs_rx_ns);
    are("mac_rx_ns", mac_rx_ns);
    are("fec", fec);
    are("fec_locate_ns", fec_locate_ns);
    are("fec_correct_ns", fec_correct_ns);
    are("turn_cycles", turn_cycles);
    are("egress_frames", egress_frames);
    are("ingress_bytes", ingress_bytes);
    are("xoff_bytes", xoff_bytes);
    are("xon_bytes", xon_bytes);
    are("pause_quanta", pause_quanta);
    are("pause_refresh_percent", pause_refresh_percent);
    are("mtu", mtu);
    are("default_priority", default_priority);
    are("class_catch_up_ns", class_catch_up_ns);
    are("egress_arbitration", egress_arbitration);
  }
};

/// Start of a frame to its first bit on the line.
inline sim::time_ps transmit_ps(const port_config& c) {
  return (c.mac_tx_ns + std::uint64_t{c.pcs_tx_ns} + c.pma_tx_ns) * sim::ps_per_ns;
}

/// Edges of the receiver's stages, from the last bit of a frame on the line on. A code word has 5140 bits of 257, each
/// of which carries 256 of the MAC's (IEEE 802.3, 91.5.2); without FEC its stages take no time.
struct receive_path {
  sim::time_ps pma = 0, word = 0, located = 0, corrected = 0, pcs = 0, mac = 0;
  explicit receive_path(const port_config& c) {
    const bool fec = c.fec != port_config::line_code::none;
    constexpr std::uint64_t bits = 5140 / 257 * 256;
    pma = c.pma_rx_ns * sim::ps_per_ns;
    word = pma + (fec ? (bits * sim::ps_per_us + c.rate_mbps - 1) / c.rate_mbps : 0);
    located = word + (fec ? c.fec_locate_ns * sim::ps_per_ns : 0);
    corrected = located + (fec ? c.fec_correct_ns * sim::ps_per_ns : 0);
    pcs = corrected + c.pcs_rx_ns * sim::ps_per_ns;
    mac = pcs + c.mac_rx_ns * sim::ps_per_ns;
  }
};

/// Longest frame for which headroom is computed: a packet of 4 KiB with its headers.
inline constexpr std::uint32_t lossless_frame_bytes = 4'200;

/// From the last bit of a pause to the line's last bit of what had begun before it was obeyed, but for that frame
/// itself: the ways in and out, and some cycles between them.
inline sim::time_ps obey_ps(const port_config& c) {
  constexpr sim::time_ps cycles_ps = 15'000;  // of a slow core clock: check, choice, hand-over to the line
  return receive_path(c).mac + transmit_ps(c) + cycles_ps;
}

/// Whether its pauses last until they are repeated; its choice of a frame is some cycles ahead of the line.
inline refresh_margin pause_margin(const port_config& c) {
  constexpr sim::time_ps cycles_ps = 15'000;  // as of obey_ps()
  return {c.rate_mbps, c.pause_quanta, c.pause_refresh_percent, lossless_frame_bytes, cycles_ps};
}

/// The most that can still come after XOFF, from a peer that is like this port: it takes as long to find a frame too
/// much and to send a pause as the peer takes to obey.
inline std::uint32_t most_after_stop(const port_config& c) {
  constexpr std::uint64_t ps_per_metre = 5'050;  // calibration 5
  return most_after_stop(c.rate_mbps, lossless_frame_bytes, 2 * (c.metres * ps_per_metre + obey_ps(c)));
}

/// What is kept for it: by rate and cable, and by what FEC keeps back at both ends, where that is not less.
inline std::uint32_t headroom_bytes(const port_config& c) {
  const receive_path receive(c);
  const std::uint64_t fec_ps = 2 * (receive.corrected - receive.pma);
  return std::max(most_after_stop(c), pfc_headroom_bytes(c.rate_mbps, c.metres, lossless_frame_bytes) +
                                          static_cast<std::uint32_t>(fec_ps * c.rate_mbps / (8 * sim::ps_per_us)));
}

/// Thresholds of a port's ingress buffers.
struct ingress_thresholds {
  explicit ingress_thresholds(const port_config& c) : xoff(c.xoff_bytes), xon(c.xon_bytes) {
    const std::uint32_t headroom = headroom_bytes(c);
    if (xoff == 0)
      xoff = c.ingress_bytes > headroom + lossless_frame_bytes ? c.ingress_bytes - headroom : lossless_frame_bytes;
    if (xoff > c.ingress_bytes && c.xoff_bytes == 0) xoff = c.ingress_bytes;
    if (c.xon_bytes == 0) xon = xoff - std::min(xoff, lossless_frame_bytes);
  }
  std::uint32_t xoff, xon;
};

}  // namespace rnic::mac
