// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/explain/resources.h"

#include <algorithm>
#include <cmath>

namespace rnic::program {

const std::vector<resource>& known_resources() {
  using way = resource_knob::way;
  static const std::vector<resource> all{
      {"processor",
       {{"driver.post_send_ns", way::less}, {"driver.poll_ns", way::less}, {"driver.post_recv_ns", way::less}}},
      {"window", {{"--depth", way::more, 8192}, {"workload.depth", way::more, 4096}}},
      {"wire", {{"adapter.port.rate_mbps", way::more, 400'000}, {"topology.rate_mbps", way::more, 400'000}}},
      {"PCIe lanes", {{"adapter.pcie.width", way::doubled, 16}}},
      {"PCIe tags", {{"adapter.pcie.tags", way::more, 256}}},
      {"PCIe credits",
       {{"host.non_posted_headers", way::more, 127},
        {"host.posted_headers", way::more, 127},
        {"host.posted_data", way::more, 2047}}},
      {"host memory", {{"host.llc_read_ps", way::less}, {"host.posted_visible_ps", way::less}}},
      {"adapter clock", {{"adapter.clock_khz", way::more, 2'000'000}}},
      {"datapath", {{"adapter.datapath_bytes", way::doubled, 128}}},
      {"doorbell decoder",
       {{"adapter.doorbell.bf_line_cycles", way::less}, {"adapter.doorbell.decode_cycles", way::less}}},
      {"scheduler arbiter", {{"adapter.scheduler.grant_cycles", way::less}}},
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
        {"adapter.requester.gather_depth", way::more, 64}}},
      {"contexts",
       {{"adapter.requester.contexts.entries", way::doubled}, {"adapter.responder.contexts.entries", way::doubled}}},
      {"message table", {{"adapter.requester.outstanding_entries", way::more}}},
      {"READs under way", {{"--outs", way::doubled, 16}}},
      {"responder check",
       {{"adapter.responder.write_cycles", way::less},
        {"adapter.responder.receive_cycles", way::less},
        {"adapter.responder.receive_header_cycles", way::less},
        {"adapter.responder.beat_overhead_cycles", way::less}}},
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
      {"switch", {{"switch.hop_ps", way::less}}},
      {"switch buffer", {{"switch.buffer.bytes", way::more}}},
  };
  return all;
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
