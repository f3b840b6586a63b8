// SPDX-License-Identifier: Apache-2.0
// Registers of a port on the internal bus, at cr_base::mac + port * cr_port_stride.
#pragma once

#include <cstdint>

namespace rnic::mac::cr {

// Port state.
inline constexpr std::uint32_t port_control =
    0x00;  ///< rw, bit 0: up (INIT_PORT sets it, CLOSE_PORT clears it);
           ///< a port that is down drops what it receives and what it should send
inline constexpr std::uint32_t port_status = 0x04;      ///< ro, bit 0: link is up (control.up and a cable is there),
                                                        ///< bit 1: a cable is there
inline constexpr std::uint32_t link_rate = 0x08;        ///< ro, Mb/s
inline constexpr std::uint32_t link_speed_code = 0x0c;  ///< ro, QUERY_PORT's ETH link speed: see speed_code()
inline constexpr std::uint32_t mtu = 0x10;  ///< rw, SET_PORT general @6: longest frame, FCS included; default 9216
inline constexpr std::uint32_t default_priority = 0x14;  ///< rw, 0..7: priority of untagged received frames
inline constexpr std::uint32_t ignore_fcs = 0x18;        ///< rw, bit 0: frames with a wrong FCS are delivered, marked
inline constexpr std::uint32_t mac_high = 0x1c;          ///< rw, source address of pause frames: bits 47:32
inline constexpr std::uint32_t mac_low = 0x20;           ///< rw, bits 31:0
inline constexpr std::uint32_t link_medium = 0x24;       ///< ro, medium_*: what the cable is made of
inline constexpr std::uint32_t medium_none = 0, medium_copper = 1, medium_fibre = 2;
/// A longer cable is not of copper (IEEE 802.3, 85.10: 40GBASE-CR4 reaches 7 m; 10 and 56 Gb/s are no better).
inline constexpr unsigned longest_copper_metres = 7;

// Flow control, as in SET_PORT general. The PFC masks win over the global bits where both are set.
inline constexpr std::uint32_t pptx = 0x30;    ///< rw, bit 0: sends PAUSE
inline constexpr std::uint32_t pprx = 0x34;    ///< rw, bit 0: obeys PAUSE
inline constexpr std::uint32_t pfctx = 0x38;   ///< rw, bit n: sends PFC for priority n, which is lossless then
inline constexpr std::uint32_t pfcrx = 0x3c;   ///< rw, bit n: obeys PFC of priority n
inline constexpr std::uint32_t paused = 0x40;  ///< ro, bit n: priority n may not send at the moment

// Egress (SET_PORT PRIO2TC and SCHEDULER; adapter data plane E.4). Used when arbitration is `ets`.
inline constexpr std::uint32_t arbitration = 0x44;   ///< rw, mac::arbitration: 0 strict, 1 round robin, 2 ETS
inline constexpr std::uint32_t arbitration_ets = 2;  ///< value of `arbitration`
inline constexpr std::uint32_t prio2tc = 0x48;       ///< rw, nibble n (bits 4n+3:4n): traffic class of priority n
inline constexpr std::uint32_t scheduler =
    0x60;  ///< rw, + 4 * tc: [31:16] pg (lower goes first), [15:0] bandwidth in %

inline constexpr std::uint32_t max_rate =
    0xa0;  ///< rw, + 4 * tc: most of the line that the class may take in Mb/s (max_bw), 0: no limit. In every mode

// Congestion notification messages (802.1Qau; transport/congestion/qcn_cr.h).
inline constexpr std::uint32_t takes_cnms = 0x50;    ///< rw, bit 0: CNMs are taken out of what comes in; else they are
                                                     ///< frames like any other
inline constexpr std::uint32_t dropped_cnms = 0x54;  ///< ro, CNMs for which there was no room

// Counters.
inline constexpr std::uint32_t reset_counters = 0x80;  ///< wo, any value: clears the port's counters
/// ro: the DUMP_ETH_STATS mailbox (adapter control plane 10.2) as big-endian dwords in host order: word i of the
/// mailbox is at eth_stats + 4 * i. eth_stats_bytes long.
inline constexpr std::uint32_t eth_stats = 0x2000;
inline constexpr std::uint32_t eth_stats_bytes = 0xbac;
/// ro: the flow-control mailbox (DUMP_ETH_STATS, in_mod bit 12) in the same way: 8 priorities of 64 bytes with six
/// 64-bit counters each: rx pause frames, rx duration (us), rx transitions, tx pause frames, tx duration (us), tx
/// transitions.
inline constexpr std::uint32_t flow_stats = 0x4000;
inline constexpr std::uint32_t flow_stats_bytes = 0x200;

/// QUERY_PORT's link speed code for a rate in Mb/s (Linux mlx4_en_port.h: 0x40 40G, 0x20 56G, 0x01 10G, 0x02 1G, 0x04
/// 100 Mb/s). The rates of later generations have no code there: they are 0x0f, "other", and PortInfo has them as
/// extended speeds.
constexpr std::uint32_t speed_code(std::uint32_t mbps) {
  if (mbps == 25'000 || mbps == 50'000 || mbps >= 100'000) return 0x0f;
  if (mbps >= 56'000 && mbps < 100'000) return 0x20;
  if (mbps >= 40'000) return 0x40;
  if (mbps >= 20'000) return 0x08;
  if (mbps >= 10'000) return 0x01;
  return mbps >= 1'000 ? 0x02 : 0x04;
}

}  // namespace rnic::mac::cr
