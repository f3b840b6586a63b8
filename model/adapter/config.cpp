// SPDX-License-Identifier: Apache-2.0
#include "model/adapter/config.h"

#include <string>

#include "model/adapter/profiles.h"
#include "model/sim/check.h"

namespace rnic::adapter {

namespace {

constexpr std::uint64_t many = 1'000'000;

/// Adds parameters below one prefix.
class group {
 public:
  group(sim::parameter_set& to, std::string prefix) : to_(to), prefix_(std::move(prefix)) {}
  template <class T>
  const group& add(const char* name, T& field, std::uint64_t lowest, std::uint64_t highest, const char* unit,
                   const char* source) const {
    to_.add(prefix_ + name, field, lowest, highest, unit, source);
    return *this;
  }
  template <class T>
  const group& choose(const char* name, T& field, const char* names, const char* source) const {
    to_.add_choice(prefix_ + name, field, names, source);
    return *this;
  }
  const group& add(const char* name, bool& field, const char* source) const {
    to_.add(prefix_ + name, field, source);
    return *this;
  }

 private:
  sim::parameter_set& to_;
  std::string prefix_;
};

constexpr const char* policies = "lru, fifo, random";  // of icm::replacement

void announce_cache(sim::parameter_set& to, const std::string& prefix, icm::context_cache_config& c, const char* source,
                    unsigned least_ways = 1) {
  group(to, prefix)
      .add("entries", c.entries, least_ways, many, "contexts", source)
      .add("ways", c.ways, least_ways, 64, "ways", source)
      .add("fills", c.fills, 1, 64, "misses", source)
      .add("write_backs", c.write_backs, 1, 64, "contexts", "design")
      .choose("replacement", c.policy, policies, "design")
      .add("miss_cycles", c.miss_cycles, 0, many, "cycles", "calibration 5: miss penalty beyond the DMA read");
}

void announce_pcie(sim::parameter_set& to, pcie::endpoint_config& c) {
  group(to, "adapter.pcie.")
      .add("dll_efficiency_permille", c.link.dll_efficiency_permille, 1, 1000, "per mille", "calibration 5: 0.945")
      .add("latency_ps", c.link.latency_ps, 1, many * 1000, "ps",
           "calibration 5: share of the 310 ns of a 64-byte read")
      .add("generation", c.link.generation, 1, 4, "", "calibration 5: Gen3")
      .add("width", c.link.width, 1, 16, "lanes", "calibration 5: x8")
      .add("tags", c.dma.tags, 1, 256, "reads", "calibration 5: tags")
      .add("reads_per_client", c.dma.reads_per_client, 1, 64, "requests", "design")
      .add("core_khz", c.core.khz, 0, 10'000'000, "kHz", "design: 0, the PCIe core has the adapter's clock")
      .add("interface_bytes", c.core.interface_bytes, 0, 512, "bytes", "design: 0, as wide as adapter.datapath_bytes")
      .add("request_setup_cycles", c.core.request_setup_cycles, 0, many, "cycles of core_khz",
           "design: none; measuring cards have one")
      .add("synchroniser_stages", c.core.synchroniser_stages, 2, 8, "flip-flops",
           "Cummings 2002: two; of the crossing to core_khz")
      .add("crossing_packets", c.core.crossing_packets, 1, 1024, "packets", "design: of the crossing to core_khz")
      .add("aligned_packets", c.dma.aligned_packets, "design: not known of this adapter; measuring cards have them")
      .add("fill_limit_bytes", c.dma.fill_limit_bytes, 64, 1u << 20, "bytes", "design")
      .add("completion_timeout_ps", c.dma.completion_timeout_ps, many, 64'000'000'000'000ull, "ps",
           "PCI Express Base 2.8: 50 us to 64 s")
      .add("transmit_buffer_ps", c.link.transmit_buffer_ps, 0, many, "ps", "design")
      .add("credit_latency_ps", c.link.credit_latency_ps, 1, many * 1000, "ps", "design")
      .add("posted_headers", c.posted_headers, 1, 127, "packets", "design: credits given to the host")
      .add("posted_data", c.posted_data, 16, 2047, "units of 16 bytes", "design: credits given to the host")
      .add("non_posted_headers", c.non_posted_headers, 1, 127, "packets", "design: credits given to the host")
      .add("config_cycles", c.config_cycles, 1, many, "cycles", "design")
      .add("msix_vectors", c.space.msix_vectors, 1, 256, "vectors", "adapter control plane 1.2")
      .add("mmio_read_cycles", c.mmio_read_cycles, 1, many, "cycles", "design")
      .add("max_payload_bytes", c.space.max_payload_bytes, 128, 4096, "bytes", "calibration 5: host sets 256");
}

void announce_requester(sim::parameter_set& to, transport::requester_config& c) {
  group(to, "adapter.requester.")
      .add("processing_units", c.processing_units, 1, 32, "units", "calibration 5")
      .add("translation_blocks", c.translation_blocks,
           "a processing unit waits for missing translations; calibration 7.4")
      .add("wqe_cycles", c.wqe_cycles, 1, many, "cycles", "calibration 5: per-QP WQE service, 183 ns")
      .add("read_wqe_cycles", c.read_wqe_cycles, 1, many, "cycles", "calibration 5: per-QP WQE service, 210 ns")
      .add("inline_cycles", c.inline_cycles, 1, many, "cycles", "calibration 5: TX engine, 38 M/s")
      .add("empty_cycles", c.empty_cycles, 1, many, "cycles", "design: inline_cycles less two beats of payload")
      .add("descriptor_cycles", c.descriptor_cycles, 0, many, "cycles",
           "calibration 2.1: fitted to datagrams in batches, 32.1 M/s without and 26.0 with payload")
      .add("gather_cycles", c.gather_cycles, 1, many, "cycles", "calibration 5: TX engine, 19 + L/16")
      .add("miss_stall_cycles", c.miss_stall_cycles, 0, many, "cycles",
           "calibration 7.4: 475 ns; a missing entry of a context stops transmit or READ engine")
      .add("read_request_cycles", c.read_request_cycles, 1, many, "cycles", "calibration 5: 19.4")
      .add("continue_cycles", c.continue_cycles, 1, many, "cycles", "calibration 5: 5 + L/16")
      .add("transmit.path_cycles", c.transmit.path, 1, 1000, "cycles", "calibration 5: of 44, divided by design")
      .add("transmit.header_cycles", c.transmit.headers, 0, 1000, "cycles", "calibration 5: of 44, divided by design")
      .add("transmit.align_cycles", c.transmit.align, 0, 1000, "cycles", "calibration 5: of 44, divided by design")
      .add("transmit.hand_over_cycles", c.transmit.hand_over, 0, 1000, "cycles",
           "calibration 5: of 44, divided by design")
      .add("response.context_cycles", c.response.context, 1, 1000, "cycles", "calibration 5: of 46, divided by design")
      .add("response.sequence_cycles", c.response.sequence, 0, 1000, "cycles",
           "calibration 5: of 46, divided by design")
      .add("response.message_cycles", c.response.message, 0, 1000, "cycles", "calibration 5: of 46, divided by design")
      .add("response.place_cycles", c.response.place, 0, 1000, "cycles",
           "calibration 5: of 46, divided by design, and the 2 beats that the parser does not wait for")
      .add("prefetch_bytes", c.prefetch_bytes, 64, 1024, "bytes", "calibration 5: WQE prefetch")
      .add("gather_depth", c.gather_depth, 1, 64, "packets", "design: covers 16 * 2 KiB of PCIe")
      .add("outstanding_entries", c.outstanding_entries, 1, many, "messages", "design")
      .add("max_unacked_packets", c.max_unacked_packets, 1, 1u << 23, "packets", "IBA 9.7.2")
      .add("stamp_retries", c.stamp_retries, 1, many, "reads", "design: of a WQE that software has not finished")
      .add("context_ports", c.context_ports, 1, 8, "accesses", "design: a cycle, of the contexts on chip")
      .add("scatter_lists", c.scatter_lists, 1, many, "READs", "design")
      .add("scatter_jobs", c.scatter_jobs, 1, 64, "packets", "design")
      .add("timers.entries", c.timers.entries, 1, 1u << 24, "timers", "design: one for each message under way")
      .add("timers.granularity_ps", c.timers.granularity_ps, 1, 100'000'000, "ps",
           "design: a quarter of the unit of IBA 9.7.6.1.3")
      .add("timers.expiry_cycles", c.timers.expiry_cycles, 1, 4000, "cycles", "design: one context access")
      .add("credit_wait_cycles", c.credit_wait_cycles, 1, many, "cycles", "design")
      .add("turn_wqes", c.turn_wqes, 1, many, "WQEs", "design")
      .add("turn_bytes", c.turn_bytes, 1, 1u << 30, "bytes", "design")
      .add("ethernet_offload_cycles", c.ethernet_offload_cycles, 0, many, "cycles", "design: tag, checksums")
      .add("end_to_end_credits", c.end_to_end_credits,
           "IBA 9.7.7.2: messages that take a receive wait for one of the peer's")
      .add("reads_after_loss", c.reads_after_loss, 1, 128, "READs",
           "design: one more for each that comes whole; 128: all are asked for again at once")
      .add("extra_retries", c.extra_retries, 0, many, "retries",
           "IBA 9.7.6.1.3: none beyond a retry count of 7; Soft-RoCE: no limit");
  announce_cache(to, "adapter.requester.contexts.", c.contexts, "calibration 5, 7.4: QPC cache, misses block");
}

void announce_responder(sim::parameter_set& to, transport::responder_config& c) {
  group(to, "adapter.responder.")
      .add("receive.sequence_cycles", c.receive.sequence, 1, many, "cycles", "calibration 5: of 46, divided by design")
      .add("receive.rights_cycles", c.receive.rights, 0, many, "cycles", "calibration 5: of 46, divided by design")
      .add("receive.place_cycles", c.receive.place, 0, many, "cycles", "calibration 5: of 46, divided by design")
      .add("receive.order_cycles", c.receive.order, 0, many, "cycles", "calibration 5: of 46, divided by design")
      .add("write_cycles", c.write_cycles, 1, many, "cycles", "calibration 5")
      .add("read_miss_cycles", c.read_miss_cycles, 0, many, "cycles",
           "calibration 7.4: 475 ns, a missing context stops the READ engine")
      .add("read_cycles", c.read_cycles, 1, many, "cycles", "calibration 5: 16.4")
      .add("receive_cycles", c.receive_cycles, 1, many, "cycles", "calibration 5: 19.6")
      .add("receive_header_cycles", c.receive_header_cycles, 1, many, "cycles", "calibration 5: 12.6")
      .add("beat_overhead_cycles", c.beat_overhead_cycles, 0, many, "cycles", "calibration 5: 5 + L/16")
      .add("ack_cycles", c.ack_cycles, 1, many, "cycles", "design")
      .add("ack_coalesce", c.ack_coalesce, 1, many, "requests", "design")
      .add("context_wait_frames", c.context_wait_frames, 1, 1024, "frames", "calibration 5: at least 16")
      .add("flows", c.flows, 2, 1024, "queue pairs", "design: at least one beside those whose READs are answered")
      .add("slots", c.slots, 1, 1024, "packets", "design")
      .add("context_ports", c.context_ports, 1, 8, "accesses", "design: a cycle, of the contexts on chip")
      .add("cqe_queue", c.cqe_queue, 1, 1024, "completions", "design")
      .add("read_queue", c.read_queue, 1, 1024, "requests", "design")
      .add("read_fetches", c.read_fetches, 1, 64, "QPs", "design")
      .add("read_hand_over", c.read_hand_over, 3, 256, "commands", "design")
      .add("read_translations", c.read_translations, 1, 64, "translations",
           "calibration 5: 475 ns for a missing context or translation, one at a time as its context")
      .add("read_gathers", c.read_gathers, 1, 256, "packets", "calibration 5: PCIe tags")
      .add("read_packet_cycles", c.read_packet_cycles, 1, many, "cycles", "design: as write_cycles")
      .add("receive_lines", c.receive_lines, 1, 4096, "queue pairs", "design")
      .add("receive_prefetch", c.receive_prefetch, 1, 64, "WQEs", "design")
      .add("flush_poll_cycles", c.flush_poll_cycles, 1, many, "cycles", "design")
      .add("answer.path_cycles", c.answer.path, 1, many, "cycles",
           "calibration 5: of 30 with the channel in front, divided by design")
      .add("answer.header_cycles", c.answer.headers, 0, many, "cycles",
           "calibration 5: of 30 with the channel in front, divided by design")
      .add("answer.hand_over_cycles", c.answer.hand_over, 0, many, "cycles",
           "calibration 5: of 30 with the channel in front, divided by design")
      .add("answer.waiting", c.answer.waiting, 1, 64, "answers",
           "design: by user, port and priority; 2 cover the way back of a free place");
  // One of a set is for requests, whatever READs have pinned the others.
  announce_cache(to, "adapter.responder.contexts.", c.contexts, "calibration 5, 7.4: QPC cache, misses overlap", 2);
  announce_cache(to, "adapter.responder.histories.", c.histories, "design: rings of READs and atomics, by QP");
  announce_cache(to, "adapter.responder.srqs.", c.srqs, "design: contexts of shared receive queues");
  group(to, "adapter.responder.atomics.")
      .add("in_flight", c.atomics.in_flight, 1, 64, "operations", "calibration 5: one unit; connectx5_100g 16")
      .add("lock_buckets", c.atomics.lock_buckets, 1, 4096, "locks", "calibration 5: whole unit; 4096, power of two")
      .add("lock_cycles", c.atomics.lock_cycles, 0, many, "cycles", "calibration C08: 2.7 Mops");
}

void announce_reaction(sim::parameter_set& to, transport::reaction_config& c) {
  group(to, "adapter.congestion.reaction.")
      .add("priorities", c.priorities, 0, 255, "mask", "design: off; bit n: flows of priority n react to CNPs")
      .add("gain_per_1024", c.gain_per_1024, 1, 1024, "1/1024", "DCQCN: 1/256; vendor: 5 (rp_dce_tcp_g 1019)")
      .add("initial_alpha", c.initial_alpha, 0, 1024, "1/1024", "DCQCN: 1; vendor: 1023 (rp_initial_alpha_value)")
      .add("alpha_timer_us", c.alpha_timer_us, 1, many, "us", "DCQCN: 55; vendor: 1 (rp_dce_tcp_rtt)")
      .add("increase_timer_us", c.increase_timer_us, 1, many, "us", "DCQCN: 55; vendor: 300 (rp_time_reset)")
      .add("byte_counter", c.byte_counter, 1, 1ull << 40, "bytes", "DCQCN: 10 MB; vendor: 32767 (rp_byte_reset)")
      .add("threshold", c.threshold, 1, 1000, "stages", "DCQCN: F 5; vendor: 1 (rp_threshold)")
      .add("additive_mbps", c.additive_mbps, 0, 400'000, "Mb/s", "DCQCN: 40; vendor: 5 (rp_ai_rate)")
      .add("hyper_mbps", c.hyper_mbps, 0, 400'000, "Mb/s", "calibration 2.6: 200; vendor: 50 (rp_hai_rate)")
      .add("min_rate_mbps", c.min_rate_mbps, 1, 400'000, "Mb/s", "calibration 2.6: 100; vendor: 1 (rp_min_rate)")
      .add("max_rate_mbps", c.max_rate_mbps, 0, 400'000, "Mb/s",
           "adapter data plane E.8: 0, the port's rate (rp_max_rate)")
      .add("reduce_period_us", c.reduce_period_us, 0, many, "us",
           "adapter data plane E.8: 4 (rp_rate_reduce_monitor_period)")
      .add("min_decrease_percent", c.min_decrease_percent, 0, 100, "%", "adapter data plane E.8: 50 (rp_min_dec_fac)")
      .add("decrease_shift", c.decrease_shift, 10, 20, "bits", "adapter data plane E.8: 11 is alpha / 2 (rp_gd)")
      .add("first_cnp_percent", c.first_cnp_percent, 0, 100, "%",
           "adapter data plane E.8: 0 (rp_rate_to_set_on_first_cnp)")
      .add("clamp_target", c.clamp_target, "DCQCN: true; vendor: false (rp_clamp_tgt_rate)")
      .add("clamp_target_after_timer", c.clamp_target_after_timer,
           "adapter data plane E.8: true (rp_clamp_tgt_rate_ati)");
}

void announce_congestion(sim::parameter_set& to, transport::congestion_config& c) {
  announce_reaction(to, c.reaction);
  group(to, "adapter.congestion.notification.")
      .add("priorities", c.notification.priorities, 0, 255, "mask", "design: off; bit n: marked packets cause CNPs")
      .add("interval_us", c.notification.interval_us, 0, many, "us", "DCQCN: 50 (np_min_time_between_cnps)")
      .choose("scope", c.notification.scope, "qp, address, port", "adapter data plane E.8: of one QP")
      .add("cnp_priority", c.notification.cnp_priority, 0, 7, "", "adapter data plane E.8: 6 (np_cnp_prio)")
      .add("cnp_dscp", c.notification.cnp_dscp, 0, 63, "", "adapter data plane E.8: 48 (np_cnp_dscp)")
      .add("cnp_ecn", c.notification.cnp_ecn, 0, 3, "", "adapter data plane C.9: TOS 0xc2 of a captured one")
      .add("queue", c.notification.queue, 1, 1024, "frames", "design");
  group(to, "adapter.congestion.")
      .add("line_overhead_bytes", c.line_overhead_bytes, 0, 1000, "bytes", "IEEE 802.3: preamble, FCS and gap")
      .add("catch_up_cycles", c.catch_up_cycles, 0, 1'000'000, "cycles", "design: what other packets take")
      .add("hold_cycles", c.hold_cycles, 1, 4000, "cycles", "design: as credit_wait_cycles");
}

void announce_memory(sim::parameter_set& to, icm::translation_config& c) {
  group(to, "adapter.translation.")
      .add("translate_cycles", c.translate_cycles, 1, many, "cycles", "design: two table reads")
      .add("mpt_entries", c.mpt_entries, 1, many, "entries", "calibration 7.4: knee at 100 regions")
      .add("mpt_ways", c.mpt_ways, 1, 64, "ways", "design")
      .add("mtt_entries", c.mtt_entries, 1, many, "entries", "calibration 7.4: 2000 to 2800")
      .add("mtt_ways", c.mtt_ways, 1, 64, "ways", "calibration 7.4")
      .add("mtt_line_entries", c.mtt_line_entries, 1, 8, "entries", "design: 64-byte line of the host")
      .add("fills", c.fills, 1, 64, "misses", "calibration 7.4")
      .add("waiting", c.waiting, 1, 64, "requests", "design")
      .choose("replacement", c.policy, policies, "design")
      .add("miss_cycles", c.miss_cycles, 0, many, "cycles", "calibration 5: 475 ns, of which a DMA read 330");
  group(to, "adapter.translation.keys.")
      .add("operation_cycles", c.keys.operation_cycles, 0, many, "cycles", "design: invalidate, register, bind")
      .add("page_cycles", c.keys.page_cycles, 0, many, "cycles", "design: page of a list copied, 8 bytes a cycle")
      .add("page_list_entries", c.keys.page_list_entries, 1, 512, "entries", "design: page list read at once");
}

void announce_completion(sim::parameter_set& to, completion::completion_config& c) {
  group(to, "adapter.completion.")
      .add("cqe_cycles", c.cqe_cycles, 1, many, "cycles", "design: not below the message rate's limit")
      .add("cqe_latency_cycles", c.cqe_latency_cycles, 1, many, "cycles", "design")
      .add("event_cycles", c.event_cycles, 1, many, "cycles", "design")
      .add("event_latency_cycles", c.event_latency_cycles, 1, many, "cycles", "design")
      .add("doorbell_cycles", c.doorbell_cycles, 1, many, "cycles", "design")
      .add("event_depth", c.event_depth, 1, 4096, "events", "design")
      .add("write_depth", c.write_depth, 1, 4096, "writes", "design")
      .add("moderated_depth", c.moderated_depth, 1, 4096, "CQs", "design")
      .add("page_entries", c.page_entries, 1, many, "pages", "design: one a queue");
  announce_cache(to, "adapter.completion.cq_cache.", c.cq_cache, "design: as the QP contexts'");
  announce_cache(to, "adapter.completion.eq_cache.", c.eq_cache, "design");
}

void announce_port(sim::parameter_set& to, mac::port::config& c) {
  group(to, "adapter.port.")
      .add("rate_mbps", c.rate_mbps, 1000, 400'000, "Mb/s", "calibration 2.5: 10, 40, 56 Gb/s")
      .add("mac_tx_ns", c.mac_tx_ns, 1, many, "ns", "calibration 5: MAC, PCS and PHY")
      .add("mac_rx_ns", c.mac_rx_ns, 1, many, "ns", "calibration 5: MAC, PCS and PHY")
      .choose("fec", c.fec, "none, rs_528_514", "calibration 5: 40GBASE-R4 has none")
      .add("fec_decode_ns", c.fec_decode_ns, 0, many, "ns", "calibration 5: 100 ns, 51.2 of them to gather a code word")
      .add("ingress_bytes", c.ingress_bytes, 4096, 1u << 26, "bytes", "design")
      .add("xoff_bytes", c.xoff_bytes, 0, 1u << 30, "bytes", "adapter data plane E.5")
      .add("xon_bytes", c.xon_bytes, 0, 1u << 30, "bytes", "adapter data plane E.5")
      .add("pause_quanta", c.pause_quanta, 1, 65535, "quanta", "IEEE 802.3 annex 31B")
      .add("egress_frames", c.egress_frames, 1, 64, "frames", "design: of each source and priority")
      .choose("egress_arbitration", c.egress_arbitration, "strict, round_robin, ets",
              "IEEE 802.1Q 8.6.8, until firmware sets another")
      .add("class_catch_up_ns", c.class_catch_up_ns, 0, many, "ns", "design: what other classes' frames take")
      .add("default_priority", c.default_priority, 0, 7, "", "adapter data plane E.3")
      .add("pause_refresh_percent", c.pause_refresh_percent, 1, 99, "% of the pause", "design")
      .add("mtu", c.mtu, 64, 10'000, "bytes", "design: until firmware sets another");
}

}  // namespace

void announce(sim::parameter_set& to, config& c) {
  group(to, "adapter.")
      .add("clock_khz", c.clock_khz, 1000, 10'000'000, "kHz", "calibration 5: hca_core_clock")
      .add("datapath_bytes", c.datapath_bytes, 1, 256, "bytes",
           "calibration 5: 128 bit, C02; of every block from the DMA engine to gather, ports and responder")
      .add("shared_read_engine", c.shared_read_engine,
           "requester and responder do READs and atomics on one engine; calibration 5")
      .add("ports", c.ports, 1, 2, "ports", "design: two-port card")
      .add("channel_depth", c.channel_depth, 1, 4096, "items", "design")
      .add("descriptor_depth", c.descriptor_depth, 3, 4096, "items", "design");
  to.add_choice(
      "rtl.icrc", c.icrc, "model, rtl, shadow",
      "design: the ICRC engines are the model's, verilated RTL, or the model's with the RTL compared in every cycle");
  to.add_synonyms("rtl.icrc", {"false", "true"});
  to.add_choice("rtl.gid", c.gid, "model, rtl, shadow",
                "design: the GID matches are the model's, verilated RTL, or the RTL beside the model");
  announce_pcie(to, c.pcie);
  announce_requester(to, c.requester);
  announce_responder(to, c.responder);
  group(to, "adapter.multicast.").add("waiting", c.multicast.waiting, 1, 4096, "datagrams", "design");
  announce_cache(to, "adapter.multicast.groups.", c.multicast.groups, "design: multicast group table");
  announce_congestion(to, c.congestion);
  announce_memory(to, c.translation);
  announce_completion(to, c.completion);
  announce_port(to, c.port);
  group(to, "adapter.steering.")
      .add("pipeline_cycles", c.steering.pipeline_cycles, 1, many, "cycles", "design: share of the receive pipeline")
      .add("frame_cycles", c.steering.frame_cycles, 1, many, "cycles", "design: above line rate of 64-byte frames")
      .add("frames", c.steering.frames, 1, 1024, "frames", "design");
  announce_cache(to, "adapter.steering.groups.", c.steering.groups, "design: group table of Ethernet addresses");
  group(to, "adapter.firmware.")
      .add("cr_read_cycles", c.firmware_port.cr_read_cycles, 1, many, "cycles", "design: on-chip bus")
      .add("cr_write_cycles", c.firmware_port.cr_write_cycles, 1, many, "cycles", "design: on-chip bus")
      .add("dma_start_cycles", c.firmware_port.dma_start_cycles, 1, many, "cycles", "design: on-chip bus")
      .add("max_commands", c.command.max_commands, 1, 255, "commands", "adapter control plane 2");
  group(to, "adapter.doorbell.")
      .add("decode_cycles", c.doorbell.decode_cycles, 1, many, "cycles", "design")
      .add("bf_line_cycles", c.doorbell.bf_line_cycles, 1, many, "cycles", "calibration 5: BF ingest");
  to.add("adapter.scheduler", c.scheduler);
  group(to, "adapter.gid.")
      .choose("match", c.gid_match.method, "parallel, hashed",
              "design: 128 comparators a port; hashed: buckets in a memory")
      .add("compare_cycles", c.gid_match.compare_cycles, 1, 16, "cycles",
           "design: compare, encode; of the RX pipeline of calibration 5")
      .add("probe_cycles", c.gid_match.probe_cycles, 1, 16, "cycles", "design: read, compare");
  group(to, "adapter.parser.")
      .add("parser_cycles", c.parser.parser_cycles, 1, many, "cycles",
           "calibration 5: of the RX pipeline's 60, what its headers do not take to come");
  group(to, "adapter.identity.")
      .add("device_id", c.who.device_id, 0, 0xffff, "", "adapter control plane 1.1: ConnectX-3 Pro")
      .add("vf_device_id", c.who.vf_device_id, 0, 0xffff, "", "adapter control plane 1.1: its virtual functions")
      .add("firmware_major", c.who.firmware[0], 0, 0xffff, "", "calibration 2.2: 2.42.5000")
      .add("firmware_minor", c.who.firmware[1], 0, 0xffff, "", "calibration 2.2: 2.42.5000")
      .add("firmware_subminor", c.who.firmware[2], 0, 0xffff, "", "calibration 2.2: 2.42.5000");
  to.add("adapter.port.roce_v2", c.parser.roce_v2, "adapter control plane 2.4: ROCE_V1_V2; false: RoCE v1 alone");
  name_sources(to, c.profile);
}

}  // namespace rnic::adapter
