// SPDX-License-Identifier: Apache-2.0
// Registers of the transport on the internal bus.
#pragma once

#include <cstdint>

#include "model/transport/port_count.h"

namespace rnic::transport::cr {

/// Requester's registers are at cr_base::transport, the responder's at cr_base::transport + responder_offset; both
/// have the QP control registers at the same offsets. Multicast's are at cr_base::transport + multicast_offset: reset,
/// mcg_* and flows. Answer transmit's are at cr_base::transport + answer_offset: port_map.
inline constexpr std::uint32_t responder_offset = 0x8000, multicast_offset = 0x1'0000, answer_offset = 0x1'8000;

/// QP control. Firmware moves a QP into a state in which it does other work than before like this: qp_select = QPN;
/// qp_command = halt on both halves; poll qp_status until busy is clear (nothing of the QP is on chip any more: no
/// packet being built, context written back); edit the QPC entry in ICM; qp_command = release. A halted QP sends
/// nothing and drops what it receives.
///
/// A QP that goes on working is read by qp_command = publish: when busy is clear the QPC entry in ICM is as the context
/// was in between. It is changed by settings, change_from and change_to, and qp_command = change: hardware takes over
/// software's fields between two packets and keeps its own (icm/context_change.h).
inline constexpr std::uint32_t qp_select = 0x00;   ///< QPN the next command is for
inline constexpr std::uint32_t qp_command = 0x04;  ///< qp_command_*
inline constexpr std::uint32_t qp_status = 0x08;  ///< of the selected QP: bit 0 busy, bit 1 the last change was refused
inline constexpr std::uint32_t qp_status_busy = 1, qp_status_refused = 2;
inline constexpr std::uint32_t qp_command_halt = 1;     ///< stop at a packet boundary, write back, forget
inline constexpr std::uint32_t qp_command_release = 2;  ///< work again with what is in ICM; the requester looks for
                                                        ///< WQEs, in state ERR both halves flush
inline constexpr std::uint32_t qp_command_discard = 3;  ///< to RESET: as halt, but forget all work without completions
inline constexpr std::uint32_t qp_command_publish = 4;  ///< what is on chip of the context to ICM; the QP goes on
inline constexpr std::uint32_t qp_command_change = 5;   ///< takes over what settings says; the QP goes on

/// Write 1: device reset of this half, or of multicast, which has done it at once. All QPs are discarded and nothing of
/// them stays on chip; settings and diagnostic counters are as after power-up. Read bit 0: not done yet. Tables and
/// mapping of ICM must stay until it is.
inline constexpr std::uint32_t reset = 0x0c;

inline constexpr std::uint32_t roce_v2_port = 0x10;     ///< UDP destination port of RoCE v2
inline constexpr std::uint32_t reserved_lkey = 0x14;    ///< the key that means bus addresses
inline constexpr std::uint32_t special_qp_base = 0x18;  ///< CONF_SPECIAL_QP: base QPN, 0 = none
/// Numbers from the base on: QP0 of each port, QP1 of each port, four without use.
inline constexpr std::uint32_t special_qps = 8, special_qp1 = 2;
inline constexpr std::uint32_t num_qps_log = 0x1c;
/// Requester: a QP that came from SQ_DRAINING to SQD by itself, bit 31 valid, 23:0 QPN. Write 1: the next one.
inline constexpr std::uint32_t drained = 0x20;
inline constexpr std::uint32_t drained_valid = 1u << 31;
/// Responder: shared receive queues, with the protocol of qp_command. A halted queue gives no receives: packets wait.
inline constexpr std::uint32_t srq_select = 0x24;
inline constexpr std::uint32_t srq_command = 0x28;  ///< qp_command_*
inline constexpr std::uint32_t srq_status = 0x2c;   ///< of the selected queue: bit 0 busy
/// Multicast: the group table. Entries that were never written have no members, whatever the host's memory
/// holds; a written one is read again from there.
inline constexpr std::uint32_t mcg_written = 0x30;    ///< write: index of an entry
inline constexpr std::uint32_t mcg_hash_bits = 0x34;  ///< log2 of the buckets (icm/mgid_hash.h)
/// Multicast: flow table (flow_cr.h); when enabled, in place of the group table.
inline constexpr std::uint32_t flows = 0x100;
/// Responder: 1: completions of plain frames bring a sum of IP packets that are neither TCP nor UDP.
inline constexpr std::uint32_t rx_checksum_mode = 0x40;
/// Of the next qp_command_change: states in which it is legal (bit n: state n), and the state that it leads to
/// (icm::qp_change::same_state: none). A refused change leaves the QP as it is; only the requester refuses.
inline constexpr std::uint32_t change_from = 0x38, change_to = 0x3c;
/// The context of this half as software has set it, word by word as it would lie in ICM.
inline constexpr std::uint32_t settings = 0x80, settings_bytes = 0x80;
/// Requester: longest frame that an Ethernet QP of a port may send, FCS included, a word for each port.
inline constexpr std::uint32_t port_mtu = 0x60;
/// Both halves and answer transmit: which port stands for each virtual one (bit n: port of virtual port n, both from
/// 0), and whether packets may come in by either port (port_map.h).
inline constexpr std::uint32_t port_map = 0x68;
inline constexpr std::uint32_t port_map_ports = 3, port_map_identity = 2, port_map_any_arrival = 4,
                               port_map_own_tables = 8;
/// Requester: the rate in kb/s that the queue pairs of a virtual port have together through one port at one priority,
/// 0: none (congestion/vport_rates.h); of the one that is selected: number, priority << 8, port << 16, from 0.
inline constexpr std::uint32_t vport_select = 0x6c, vport_rate = 0x70, vports = 128;
inline constexpr unsigned vport_priority_shift = 8, vport_port_shift = 16;
/// Diagnostic counters, one word each, in the order of adapter control plane 10.3 (offset there + diagnostics): those
/// of the device; diagnostics_stride further those of port 1, then those of port 2. What has no port counts for the
/// device alone.
inline constexpr std::uint32_t diagnostics = 0x1000, diagnostics_stride = 0x200;
constexpr std::uint32_t diagnostic_of(const port_count& c, std::uint32_t block) {
  return static_cast<std::uint32_t>(block == 0 ? c.all : block == 1 ? c.all - c.second : block == 2 ? c.second : 0);
}

}  // namespace rnic::transport::cr
