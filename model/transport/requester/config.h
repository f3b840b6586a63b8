// SPDX-License-Identifier: Apache-2.0
// Numbers of the requester.
#pragma once

#include <cstdint>

#include "model/icm/context_cache.h"
#include "model/transport/congestion/config.h"
#include "model/transport/requester/timers.h"

namespace rnic::transport {

/// Times are in cycles of the core clock. "calibration" is the calibration record, section 5.
struct requester_config {
  unsigned processing_units = 8;  ///< QPs in service at once, 1..32 (calibration: processing units)
  bool translation_blocks =
      true;                       ///< a processing unit waits for missing translations (calibration 7.4: t0 + A * miss)
  unsigned wqe_cycles = 78;       ///< from one WQE of a QP to its next (calibration: per-QP service, WRITE)
  unsigned read_wqe_cycles = 90;  ///< the same after a READ (calibration)
  unsigned inline_cycles = 11;    ///< transmit engine, first packet without host payload (calibration: 38 M/s)
  unsigned empty_cycles = 9;      ///< transmit engine, packet without payload: inline_cycles less two beats of payload
  /// Transmit engine, of a descriptor that it takes from what a unit has read of the ring, to which its lines of 64
  /// bytes come, datapath_bytes a cycle; one that came by BlueFlame is in the engine. What gather_cycles and
  /// read_request_cycles were fitted to has it in it (calibration 2.1: datagrams in batches, 32.1 and 26.0 M/s).
  unsigned descriptor_cycles = 9;
  unsigned gather_cycles = 19;  ///< transmit engine, first packet with host payload, plus L / datapath_bytes
  /// Transmit engine, for a READ the READ engine, stands still for each entry of the context that was missing
  /// (calibration 7.4: 475 ns an entry, RC has two, others one; 400 fit C07 with what the fills take beside it).
  unsigned miss_stall_cycles = 170;
  unsigned read_request_cycles = 19;  ///< transmit engine, READ request (calibration: 19.4)
  /// READ engine, what of read_request_cycles is the response's, which takes it as any received packet does: at least
  /// this, or response_overhead_cycles and its beats (calibration 5: RX engine, max(16.4, 5 + L / 16)).
  unsigned read_response_cycles = 16;
  unsigned response_overhead_cycles = 5;  ///< the responder's beat_overhead_cycles: one datapath receives
  unsigned continue_cycles = 5;  ///< transmit engine, further packets, plus L / datapath_bytes (as receive: 5 + L/16)
  unsigned datapath_bytes = 16;  ///< per cycle (calibration: 128 bit)
  /// Receive pipeline of a response behind the ICRC check: 60 cycles with what is in front of it (calibration 5). Only
  /// their sum was fitted; how it divides is design.
  struct response_stages {
    unsigned context = 10;   ///< of the queue pair: read, compared with the packet's addresses
    unsigned sequence = 12;  ///< PSN in the window, syndrome
    unsigned message = 14;   ///< the message table's entry that the PSN belongs to
    unsigned place = 12;     ///< where its payload goes, what is complete with it
    unsigned cycles() const { return context + sequence + message + place; }
  } response;
  /// From a packet's source being known to its frame leaving: 45 cycles (calibration 5) from its payload being there,
  /// of which the way from the transmit engine to gather takes one and the look-up of the source GID
  /// gid::source_config::source_cycles. Only their sum was fitted; how it divides is design.
  struct transmit_stages {
    unsigned path = 10;      ///< address path of the context or the WQE
    unsigned headers = 14;   ///< Ethernet to BTH and its extensions, lengths, IPv4 checksum
    unsigned align = 10;     ///< payload behind the headers
    unsigned hand_over = 8;  ///< beats in the order of the line's lanes, to the ICRC engine
    unsigned cycles() const { return path + headers + align + hand_over; }
  } transmit;
  unsigned prefetch_bytes = 256;  ///< of send queue read at once, 64..1024 (calibration: WQE prefetch)
  unsigned stamp_retries = 64;    ///< reads of a WQE that software has not finished before it is an error (design)
  unsigned gather_depth = 16;     ///< packets whose payload is being read, 1..64 (design: covers 16 * 2 KiB of PCIe)
  unsigned outstanding_entries = 4096;           ///< messages waiting for acknowledgement, all QPs (design)
  unsigned scatter_lists = 1024;                 ///< READs under way, all QPs (design)
  unsigned scatter_jobs = 32;                    ///< READ response packets being written to host memory, 1..64 (design)
  std::uint32_t max_unacked_packets = 1u << 23;  ///< per QP, 1..2^23 (IBA 9.7.2: half of the PSN space)
  unsigned turn_wqes = 32;                       ///< WQEs and
  std::uint32_t turn_bytes = 65536;              ///< bytes of a QP before others have their turn (design)
  unsigned credit_wait_cycles = 512;  ///< a unit waits that long for egress room before it takes another QP (design)
  unsigned egress_frames = 32;        ///< room in each port's egress queue per priority at start (mac config)
  unsigned port_mtu = 9216;  ///< longest frame of an Ethernet QP, FCS included, until firmware sets it (mac config)
  unsigned ethernet_offload_cycles =
      8;                           ///< a frame's tag, checksums or segmentation, beyond the transmit stages (design)
  bool end_to_end_credits = true;  ///< messages that take a receive wait for one of the peer's (IBA 9.7.7.2)
  unsigned reads_after_loss = 1;   ///< asked for at once when an answer was lost, 1..128; then one more for each that
                                   ///< has come whole (design: go-back-N of a window that is learnt again)
  unsigned extra_retries = 0;      ///< beyond a retry count of 7: none in IBA, Soft-RoCE takes 7 as for ever (C.6)
  timer_config timers;             ///< of acknowledgements and receivers that are not ready
  unsigned log_qps = 18;           ///< QPNs on chip: below 2^log_qps
  congestion_config congestion;    ///< the same as the responder's
  unsigned context_ports = 2;      ///< accesses to the contexts on chip in a cycle, 1..8 (design: a dual-ported memory)
  icm::context_cache_config contexts{256, 4, 1,
                                     20};  ///< of 128 RC or 256 UC and UD QPs, blocking (calibration: QPC cache)
};

}  // namespace rnic::transport
