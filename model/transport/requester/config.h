// SPDX-License-Identifier: Apache-2.0
// Numbers of the requester.
#pragma once

#include <cstdint>

#include "model/icm/context_cache.h"
#include "model/sim/parameter.h"
#include "model/transport/congestion/config.h"
#include "model/transport/read_engine/config.h"
#include "model/transport/requester/timers.h"

namespace rnic::transport {

/// Times are in cycles of the core clock.
struct requester_config {
  sim::parameter<unsigned> processing_units{8, {1, 32, "units", "calibration 5"}};  ///< QPs in service at once
  /// A processing unit waits for missing translations.
  sim::parameter<bool> translation_blocks{true, "calibration 7.4: t0 + A * miss"};
  /// From one WQE of a QP to its next.
  sim::parameter<unsigned> wqe_cycles{78, {1, sim::many, "cycles", "calibration 5: per-QP WQE service, 183 ns"}};
  /// The same after a READ.
  sim::parameter<unsigned> read_wqe_cycles{90, {1, sim::many, "cycles", "calibration 5: per-QP WQE service, 210 ns"}};
  /// Transmit engine, first packet without host payload.
  sim::parameter<unsigned> inline_cycles{11, {1, sim::many, "cycles", "calibration 5: TX engine, 38 M/s"}};
  /// Transmit engine, packet without payload: inline_cycles less two beats of payload.
  sim::parameter<unsigned> empty_cycles{9, {1, sim::many, "cycles", "design: inline_cycles less two beats of payload"}};
  /// Transmit engine, of a descriptor that it takes from what a unit has read of the ring, to which its lines of 64
  /// bytes come, datapath_bytes a cycle; one that came by BlueFlame is in the engine. What gather_cycles and
  /// read_request_cycles were fitted to has it in it (calibration 2.1: datagrams in batches, 32.1 and 26.0 M/s).
  sim::parameter<unsigned> descriptor_cycles{
      9,
      {0, sim::many, "cycles",
       "calibration 2.1: fitted to datagrams in batches, 32.1 M/s without and 26.0 with payload"}};
  /// Transmit engine, first packet with host payload, plus L / datapath_bytes.
  sim::parameter<unsigned> gather_cycles{19, {1, sim::many, "cycles", "calibration 5: TX engine, 19 + L/16"}};
  /// Transmit engine, for a READ the READ engine, stands still for each entry of the context that was missing
  /// (calibration 7.4: 475 ns an entry, RC has two, others one; 400 fit C07 with what the fills take beside it).
  sim::parameter<unsigned> miss_stall_cycles{
      170,
      {0, sim::many, "cycles", "calibration 7.4: 475 ns; a missing entry of a context stops transmit or READ engine"}};
  /// Transmit engine, READ request.
  sim::parameter<unsigned> read_request_cycles{19, {1, sim::many, "cycles", "calibration 5: 19.4"}};
  /// READ engine, what of read_request_cycles is the response's: a packet of it takes at least this, or
  /// response_overhead_cycles and what its bytes take.
  sim::parameter<unsigned> read_response_cycles{
      16, {0, sim::many, "cycles", "calibration 5: RX engine, 16.4, of the 19.4 that are with the response"}};
  unsigned response_overhead_cycles = 5;  ///< the responder's beat_overhead_cycles: one datapath receives
  read_engine_config read_engine;         ///< the same as the responder's
  /// Transmit engine, further packets, plus L / datapath_bytes; as receive.
  sim::parameter<unsigned> continue_cycles{5, {1, sim::many, "cycles", "calibration 5: 5 + L/16"}};
  unsigned datapath_bytes = 16;  ///< per cycle (calibration: 128 bit)
  /// Receive pipeline of a response behind the ICRC check: 60 cycles with what is in front of it (calibration 5). Only
  /// their sum was fitted; how it divides is design.
  struct response_stages {
    /// Of the queue pair: read, compared with the packet's addresses.
    sim::parameter<unsigned> context{10, {1, 1000, "cycles", "calibration 5: of 46, divided by design"}};
    /// PSN in the window, syndrome.
    sim::parameter<unsigned> sequence{12, {0, 1000, "cycles", "calibration 5: of 46, divided by design"}};
    /// The message table's entry that the PSN belongs to.
    sim::parameter<unsigned> message{14, {0, 1000, "cycles", "calibration 5: of 46, divided by design"}};
    /// Where its payload goes, what is complete with it.
    sim::parameter<unsigned> place{
        12,
        {0, 1000, "cycles",
         "calibration 5: of 46, divided by design, and the 2 beats that the parser does not wait for"}};
    unsigned cycles() const { return context + sequence + message + place; }

    void list(sim::fields& are) {
      are("context_cycles", context);
      are("sequence_cycles", sequence);
      are("message_cycles", message);
      are("place_cycles", place);
    }
  } response;
  /// From a packet's source being known to its frame leaving: 45 cycles (calibration 5) from its payload being there,
  /// of which the way from the transmit engine to gather takes one and the look-up of the source GID
  /// gid::source_config::source_cycles. Only their sum was fitted; how it divides is design.
  struct transmit_stages {
    /// Address path of the context or the WQE.
    sim::parameter<unsigned> path{10, {1, 1000, "cycles", "calibration 5: of 44, divided by design"}};
    /// Ethernet to BTH and its extensions, lengths, IPv4 checksum.
    sim::parameter<unsigned> headers{14, {0, 1000, "cycles", "calibration 5: of 44, divided by design"}};
    /// Payload behind the headers.
    sim::parameter<unsigned> align{10, {0, 1000, "cycles", "calibration 5: of 44, divided by design"}};
    /// Beats in the order of the line's lanes, to the ICRC engine.
    sim::parameter<unsigned> hand_over{8, {0, 1000, "cycles", "calibration 5: of 44, divided by design"}};
    unsigned cycles() const { return path + headers + align + hand_over; }

    void list(sim::fields& are) {
      are("path_cycles", path);
      are("header_cycles", headers);
      are("align_cycles", align);
      are("hand_over_cycles", hand_over);
    }
  } transmit;
  /// Of send queue read at once.
  sim::parameter<unsigned> prefetch_bytes{256, {64, 1024, "bytes", "calibration 5: WQE prefetch"}};
  /// Of a WQE before it is an error.
  sim::parameter<unsigned> stamp_retries{64,
                                         {1, sim::many, "reads", "design: of a WQE that software has not finished"}};
  /// Packets whose payload is being read.
  sim::parameter<unsigned> gather_depth{16, {1, 64, "packets", "design: covers 16 * 2 KiB of PCIe"}};
  /// Messages waiting for acknowledgement, all QPs.
  sim::parameter<unsigned> outstanding_entries{4096, {1, sim::many, "messages", "design"}};
  /// Into the message table in a cycle, by transmit engine and processing units together.
  sim::parameter<unsigned> message_append_ports{1, {1, 8, "messages", "design: a cycle, one port to write"}};
  /// Into the memory of withdrawals in a cycle.
  sim::parameter<unsigned> withdrawal_ports{1, {1, 8, "queue pairs", "design: a cycle, one port to write"}};
  sim::parameter<unsigned> scatter_lists{1024, {1, sim::many, "READs", "design"}};  ///< READs under way, all QPs
  /// READ response packets being written to host memory.
  sim::parameter<unsigned> scatter_jobs{32, {1, 64, "packets", "design"}};
  sim::parameter<std::uint32_t> max_unacked_packets{
      1u << 23, {1, 1u << 23, "packets", "IBA 9.7.2"}};                      ///< per QP, half of the PSN space
  sim::parameter<unsigned> turn_wqes{32, {1, sim::many, "WQEs", "design"}};  ///< WQEs of a QP and
  /// bytes of it before others have their turn.
  sim::parameter<std::uint32_t> turn_bytes{65536, {1, 1u << 30, "bytes", "design"}};
  /// A unit waits that long for egress room before it takes another QP.
  sim::parameter<unsigned> credit_wait_cycles{512, {1, sim::many, "cycles", "design"}};
  unsigned egress_frames = 32;  ///< room in each port's egress queue per priority at start (mac config)
  unsigned port_mtu = 9216;     ///< longest frame of an Ethernet QP, FCS included, until firmware sets it (mac config)
  /// A frame's tag, checksums or segmentation, beyond the transmit stages.
  sim::parameter<unsigned> ethernet_offload_cycles{8, {0, sim::many, "cycles", "design: tag, checksums"}};
  sim::parameter<bool> end_to_end_credits{true, "IBA 9.7.7.2: messages that take a receive wait for one of the peer's"};
  /// Asked for at once when an answer was lost: go-back-N of a window that is learnt again.
  sim::parameter<unsigned> reads_after_loss{
      1, {1, 128, "READs", "design: one more for each that comes whole; 128: all are asked for again at once"}};
  /// Soft-RoCE takes 7 as for ever (adapter data plane C.6).
  sim::parameter<unsigned> extra_retries{
      0, {0, sim::many, "retries", "IBA 9.7.6.1.3: none beyond a retry count of 7; Soft-RoCE: no limit"}};
  timer_config timers;           ///< of acknowledgements and receivers that are not ready
  unsigned log_qps = 18;         ///< QPNs on chip: below 2^log_qps
  congestion_config congestion;  ///< the same as the responder's
  /// To the contexts on chip in a cycle: a dual-ported memory.
  sim::parameter<unsigned> context_ports{2, {1, 8, "accesses", "design: a cycle, of the contexts on chip"}};
  /// Of 128 RC or 256 UC and UD QPs.
  icm::context_cache_config contexts{256, 4, 1, 20, 8, "calibration 5, 7.4: QPC cache, misses block"};

  void list(sim::fields& are) {
    are("processing_units", processing_units);
    are("translation_blocks", translation_blocks);
    are("wqe_cycles", wqe_cycles);
    are("read_wqe_cycles", read_wqe_cycles);
    are("inline_cycles", inline_cycles);
    are("empty_cycles", empty_cycles);
    are("descriptor_cycles", descriptor_cycles);
    are("gather_cycles", gather_cycles);
    are("miss_stall_cycles", miss_stall_cycles);
    are("read_request_cycles", read_request_cycles);
    are("read_response_cycles", read_response_cycles);
    are("continue_cycles", continue_cycles);
    are("transmit", transmit);
    are("response", response);
    are("prefetch_bytes", prefetch_bytes);
    are("stamp_retries", stamp_retries);
    are("gather_depth", gather_depth);
    are("outstanding_entries", outstanding_entries);
    are("message_append_ports", message_append_ports);
    are("withdrawal_ports", withdrawal_ports);
    are("scatter_lists", scatter_lists);
    are("scatter_jobs", scatter_jobs);
    are("max_unacked_packets", max_unacked_packets);
    are("turn_wqes", turn_wqes);
    are("turn_bytes", turn_bytes);
    are("credit_wait_cycles", credit_wait_cycles);
    are("ethernet_offload_cycles", ethernet_offload_cycles);
    are("end_to_end_credits", end_to_end_credits);
    are("reads_after_loss", reads_after_loss);
    are("extra_retries", extra_retries);
    are("timers", timers);
    are("context_ports", context_ports);
    are("contexts", contexts);
  }
};

}  // namespace rnic::transport
