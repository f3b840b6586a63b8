// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/explain/resources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace rnic::program {

const std::vector<resource>& known_resources() {
  using way = resource_knob::way;
  static const std::vector<resource> all{
      {"processor",
       {{"driver.post_send_ns", way::less}, {"driver.poll_ns", way::less}, {"driver.post_recv_ns", way::less}}},
      {"window", {{"--depth", way::more, 8192}, {"workload.depth", way::more, 4096}}},
      {"wire", {{"adapter.port.rate_mbps", way::more, 400'000}, {"topology.rate_mbps", way::more, 400'000}}},
      {"PCIe lanes", {{"adapter.pcie.width", way::doubled, 16}}},
      {"PCIe generation", {{"adapter.pcie.generation", way::more, 4}}},
      {"pcie interface",
       {{"adapter.pcie.interface_bytes", way::doubled, 128}, {"adapter.pcie.request_setup_cycles", way::less}}},
      {"pcie core", {{"adapter.pcie.core_khz", way::more, 2'000'000}}},
      {"PCIe tags", {{"adapter.pcie.tags", way::more, 256}}},
      {"PCIe credits",
       {{"host.non_posted_headers", way::more, 127},
        {"host.posted_headers", way::more, 127},
        {"host.posted_data", way::more, 2047}}},
      {"host memory", {{"host.llc_read_ps", way::less}, {"host.posted_visible_ps", way::less}}},
      {"memory writes", {{"host.uncore_khz", way::more, 10'000'000}}},
      {"IOMMU",
       {{"host.iommu.entries", way::doubled},
        {"host.iommu.walkers", way::more, 64},
        {"host.iommu.lookup_cycles", way::less}}},
      {"adapter clock", {{"adapter.clock_khz", way::more, 2'000'000}}},
      {"datapath", {{"adapter.datapath_bytes", way::doubled, 128}}},
      {"doorbell decoder",
       {{"adapter.doorbell.bf_line_cycles", way::less}, {"adapter.doorbell.decode_cycles", way::less}}},
      {"scheduler arbiter", {{"adapter.scheduler.grant_cycles", way::less}}},
      {"scheduler grants", {{"adapter.scheduler.grants", way::more, 32}}},
      {"processing units (number)", {{"adapter.requester.processing_units", way::more, 32}}},
      {"processing units",
       {{"adapter.requester.wqe_cycles", way::less}, {"adapter.requester.read_wqe_cycles", way::less}}},
      {"requester send engine",
       {{"adapter.requester.gather_cycles", way::less},
        {"adapter.requester.continue_cycles", way::less},
        {"adapter.requester.inline_cycles", way::less},
        {"adapter.requester.empty_cycles", way::less},
        {"adapter.requester.descriptor_cycles", way::less}}},
      {"payload reads",
       {{"adapter.pcie.reads_per_client", way::more, 64},
        {"adapter.port.egress_frames", way::more, 512},
        {"adapter.requester.gather_depth", way::more, 64},
        {"adapter.responder.read_gathers", way::more, 64}}},
      {"egress buffer", {{"adapter.port.egress_frames", way::more, 512}}},
      {"contexts",
       {{"adapter.requester.contexts.entries", way::doubled}, {"adapter.responder.contexts.entries", way::doubled}}},
      {"contexts of other kinds",
       {{"adapter.responder.histories.entries", way::doubled},
        {"adapter.responder.srqs.entries", way::doubled},
        {"adapter.completion.cq_cache.entries", way::doubled}}},
      {"message table",
       {{"adapter.requester.outstanding_entries", way::more}, {"adapter.requester.scatter_lists", way::more}}},
      {"packets under way", {{"adapter.requester.max_unacked_packets", way::more, 8'388'608}}},
      {"READs under way", {{"--outs", way::doubled, 16}}},
      {"responder check",
       {{"adapter.responder.write_cycles", way::less},
        {"adapter.responder.receive_cycles", way::less},
        {"adapter.responder.receive_header_cycles", way::less},
        {"adapter.responder.beat_overhead_cycles", way::less}}},
      {"responder acknowledge",
       {{"adapter.responder.ack_cycles", way::less}, {"adapter.responder.ack_coalesce", way::more}}},
      {"responder stages",
       {{"adapter.responder.receive.sequence_cycles", way::less},
        {"adapter.responder.receive.rights_cycles", way::less},
        {"adapter.responder.receive.place_cycles", way::less},
        {"adapter.responder.receive.order_cycles", way::less}}},
      {"read engine",
       {{"adapter.requester.read_request_cycles", way::less},
        {"adapter.responder.read_cycles", way::less},
        {"adapter.responder.read_packet_cycles", way::less},
        {"adapter.read_engine.piece_cycles", way::less}}},
      {"atomic unit",
       {{"adapter.responder.atomics.align_cycles", way::less},
        {"adapter.responder.atomics.execute_cycles", way::less},
        {"adapter.responder.atomics.store_cycles", way::less}}},
      {"atomic unit locks",
       {{"adapter.responder.atomics.lock_buckets", way::doubled, 4096},
        {"adapter.responder.atomics.in_flight", way::doubled, 64}}},
      {"completion", {{"adapter.completion.cqe_cycles", way::less}}},
      {"receives", {{"--rx-depth", way::more, 8192}}},
      {"descriptor fetch", {{"adapter.requester.prefetch_bytes", way::doubled, 1024}}},
      {"receive buffer", {{"adapter.port.ingress_bytes", way::more, 1u << 26}}},
      {"rate limit",
       {{"driver.functions.max_rate_mbps", way::more},
        {"adapter.congestion.reaction.max_rate_mbps", way::more},
        {"driver.qcn.max_rate_mbps", way::more}}},
      {"translation look-up", {{"adapter.translation.translate_cycles", way::less}}},
      {"ports of memories",
       {{"adapter.requester.context_ports", way::more, 4},
        {"adapter.requester.message_append_ports", way::more, 4},
        {"adapter.requester.withdrawal_ports", way::more, 4},
        {"adapter.responder.context_ports", way::more, 4},
        {"adapter.responder.history_ports", way::more, 4},
        {"adapter.responder.srq_ports", way::more, 4},
        {"adapter.translation.mpt_read_ports", way::more, 4},
        {"adapter.translation.mpt_write_ports", way::more, 4},
        {"adapter.translation.mtt_read_ports", way::more, 4}}},
      {"switch", {{"switch.hop_ps", way::less}}},
      {"switch buffer", {{"switch.buffer.bytes", way::more}}},
  };
  return all;
}

namespace {

/// Of one resource: adds to `all`.
void add_ways(const std::string& limit, const line_rates& rates, std::vector<std::string>& all) {
  // What a name of limited_by begins with, and the resources that give more of it. The first that fits counts.
  static const std::vector<std::pair<const char*, std::vector<const char*>>> names{
      {"window", {"window"}},
      {"wire", {"wire"}},
      {"PCIe tags", {"PCIe tags"}},
      {"PCIe credits", {"PCIe credits"}},
      {"PCIe,", {"PCIe lanes", "PCIe generation"}},
      {"pcie issue", {"pcie core"}},
      {"iommu", {"IOMMU"}},
      {"icrc", {"datapath"}},
      {"parser", {"datapath"}},
      {"port", {"datapath"}},
      {"processing units", {"processing units", "processing units (number)"}},
      {"scheduler grants", {"processing units", "scheduler grants"}},
      {"requester send engine", {"requester send engine", "datapath"}},
      {"responder check", {"responder check", "datapath"}},
      {"read generator", {"read engine"}},
      {"requester read engine", {"read engine"}},
      {"responder read engine", {"read engine"}},
      {"atomic unit engine", {"atomic unit", "atomic unit locks", "host memory"}},
      {"order of a queue pair's atomics", {"atomic unit", "host memory"}},
      {"histories", {"contexts of other kinds"}},
      {"contexts of shared receive queues", {"contexts of other kinds"}},
      {"contexts of completion queues", {"contexts of other kinds"}},
      {"receivers not ready", {"receives"}},
      {"pauses", {"receive buffer"}},
      {"translation look up", {"translation look-up"}},
      {"translation m", {"ports of memories"}},
      {"requester context memory", {"ports of memories"}},
      {"requester message", {"ports of memories"}},
      {"requester withdrawals", {"ports of memories"}},
      {"responder context memory", {"ports of memories"}},
      {"responder history memory", {"ports of memories"}},
      {"responder srq memory", {"ports of memories"}},
  };
  const auto add = [&](const resource& r) {
    for (const resource_knob& k : r.knobs) {
      const std::string path = k.path;
      if (path.rfind("workload.", 0) == 0 || path.rfind("topology.", 0) == 0) continue;  // not of rnic bandwidth
      if (rates && path == "adapter.port.rate_mbps") {
        all.push_back("more " + rates(limit));
        continue;
      }
      all.push_back((k.how == resource_knob::way::less ? "less " : "more ") + path);
    }
  };
  const auto begins = [&limit](const std::string& name) { return limit.compare(0, name.size(), name) == 0; };
  const auto named = std::find_if(names.begin(), names.end(), [&](const auto& n) { return begins(n.first); });
  for (const resource& r : known_resources()) {
    const bool is = named == names.end() ? begins(r.name)
                                         : std::find(named->second.begin(), named->second.end(), std::string(r.name)) !=
                                               named->second.end();
    if (is) add(r);
  }
}

}  // namespace

std::string what_gives_more(const std::string& limit, const line_rates& rates) {
  if (limit.rfind("time-outs", 0) == 0)
    return "fewer losses (--faults, drop_overflow of ports); a shorter ack_timeout of the workload";
  std::vector<std::string> all;
  for (std::size_t at = 0; at < limit.size();) {  // "A and B": more of both
    const std::size_t end = std::min(limit.find(" and ", at), limit.size());
    add_ways(limit.substr(at, end - at), rates, all);
    at = end + (end < limit.size() ? 5 : 0);
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

std::optional<std::uint64_t> with_more(const resource_knob& knob, std::uint64_t value, double percent) {
  if (value == 0) return std::nullopt;
  const double factor = 1 + percent / 100;
  std::uint64_t next = value;
  switch (knob.how) {
    case resource_knob::way::less:
      next = std::min(value - 1, static_cast<std::uint64_t>(std::llround(static_cast<double>(value) / factor)));
      if (next == 0) return std::nullopt;
      break;
    case resource_knob::way::more:
      next = std::max(value + 1, static_cast<std::uint64_t>(std::llround(static_cast<double>(value) * factor)));
      break;
    case resource_knob::way::doubled:
      next = value;
      do next *= 2;
      while (static_cast<double>(next) < static_cast<double>(value) * factor);
      break;
  }
  next = std::min(next, knob.most);
  return next == value || (knob.how != resource_knob::way::less && next < value) ? std::nullopt : std::optional(next);
}

}  // namespace rnic::program
