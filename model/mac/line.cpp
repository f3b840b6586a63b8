// SPDX-License-Identifier: Apache-2.0
#include "model/mac/line.h"

#include <algorithm>
#include <utility>

#include "model/sim/check.h"
#include "model/wire/icrc.h"

namespace rnic::mac {

namespace {
/// In its longest cycle.
bool is_as_fast_as_line(const sim::clock_domain& domain, const port_config& config) {
  return domain.longest_cycle() * config.rate_mbps <= config.datapath_bytes * mbps_ps_per_byte;
}
}  // namespace

line::line(sim::clocked_block& owner, const port_config& config, payload::frame_pool& pool, turnaround& own,
           port_counters& counters)
    : owner_(owner),
      pool_(pool),
      own_(own),
      counters_(counters),
      rate_mbps_(config.rate_mbps),
      by_rate_(config.rate_mbps),
      datapath_bytes_(config.datapath_bytes),
      latency_(transmit_ps(config)),
      never_late_(is_as_fast_as_line(owner.domain(), config)) {}

/// First start on the line at which each byte of the frame is there when the line wants it: those of a beat at once, so
/// it is the first beat or the last one that decides.
sim::time_ps line::no_byte_late(const payload::frame& f) const {
  if (never_late_) return owner_.now_ps();
  const sim::cycle_t complete = payload::last_byte_at(f, datapath_bytes_);
  if (complete <= owner_.now()) return owner_.now_ps();
  const std::uint64_t before = preamble_bytes + (complete - f.first_byte) * datapath_bytes_;  // the last beat
  const sim::time_ps there = owner_.domain().edge_time(complete);
  const sim::time_ps wanted = by_rate_(before * mbps_ps_per_byte);
  return std::max(owner_.now_ps(), there - std::min(there, wanted));
}

/// Occupies the line for preamble, frame and gap, and sends the frame away.
void line::put(payload::frame_ptr frame, sim::time_ps not_before) {
  if (not_before >= free_) {
    free_ = not_before;
    fraction_ = 0;
  }
  const std::uint64_t frame_bytes = preamble_bytes + frame->length + fcs_bytes;
  const std::uint64_t to_last_bit = fraction_ + frame_bytes * mbps_ps_per_byte;
  const std::uint64_t to_next = to_last_bit + gap_bytes * mbps_ps_per_byte;
  const sim::time_ps first_bit = free_ + latency_;
  const sim::time_ps line_time = by_rate_(to_next);
  free_ += line_time;
  fraction_ = to_next - line_time * rate_mbps_;
  const sim::cycle_t free = owner_.domain().edge_at_or_after(free_ + 1);
  choice_edge_ = free == 0 ? 0 : free - 1;

  frame->stamp = first_bit;
  const sim::time_ps last_bit = first_bit + by_rate_(to_last_bit);
  if (!frame->open && frame->loopback != payload::frame::loopback_too) return send_away(std::move(frame), last_bit);
  // A copy turns around when its last byte is there, whether or not that is known before.
  const sim::cycle_t complete = payload::last_byte_at(*frame, datapath_bytes_);
  if (!frame->open && (frame->first_byte == 0 || complete <= owner_.now()))
    return send_away(std::move(frame), last_bit);
  open_ = {std::move(frame), last_bit, complete};
  owner_.wake_at(std::max(complete, owner_.now() + 1));
}

/// All of its bytes are there, or known.
void line::send_away(payload::frame_ptr frame, sim::time_ps last_bit) {
  RNIC_ASSERT(!frame->open, owner_.name() + ": a frame without its last bytes");
  frame->fcs = wire::ethernet_fcs(frame->data(), frame->length);
  if (frame->loopback == payload::frame::loopback_too) {
    // Approximation: the own port's copy of a multicast turns around when its last byte is known, behind the frames
    // that go to the line before it; a real adapter copies it in front of the queues.
    payload::frame_ptr copy = pool_.get();
    *copy = *frame;
    copy->span = 0;
    if (!own_.push_copy(std::move(copy))) ++counters_.drop_overflow;
    frame->loopback = payload::frame::loopback_none;
  }
  peer_->deliver(std::move(frame), last_bit);
}

}  // namespace rnic::mac
