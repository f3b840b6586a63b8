// SPDX-License-Identifier: Apache-2.0
#include "model/mac/transmit.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/sim/check.h"
#include "model/wire/pause.h"

namespace rnic::mac {

transmit_side::transmit_side(sim::clocked_block& owner, const port_common& common, sim::fifo_in<payload::frame_ptr>& in,
                             const credit_returns& credits, const receive_side& receive, turnaround& own, line& on)
    : owner_(owner),
      to_(common),
      in_(in),
      credits_(credits),
      receive_(receive),
      own_(own),
      line_(on),
      egress_(std::size_t{common.config.egress_frames} * std::tuple_size_v<credit_ports>) {
  egress_.mode = common.config.egress_arbitration;
}

/// One frame a cycle.
bool transmit_side::accept() {
  if (!in_.can_pop()) return false;
  const unsigned priority = in_.front()->priority & 7u;
  if (in_.front()->loopback == payload::frame::loopback_only) {
    if (own_.full(priority)) return false;
    own_.push(in_.pop());
    return true;
  }
  if (egress_.full(priority)) return false;
  egress_.push(in_.pop(), owner_.now_ps());
  return true;
}

/// At most one frame; true when a queue got shorter.
bool transmit_side::transmit(bool link_up) {
  if (!link_up) {
    const std::uint8_t ready = credits_.with_room(egress_, egress_.waiting());
    if (ready != 0) drop_for_link_down(ready);
    return ready != 0;
  }
  const bool must_tell = to_.flow.must_tell(receive_.above(), owner_.now_ps());
  if ((egress_.waiting() == 0 && !must_tell) || owner_.now() < line_.choice_edge()) return false;
  if (must_tell) {
    transmit_pause();
    return false;
  }
  const auto free =
      static_cast<std::uint8_t>(egress_.waiting() & ~to_.flow.paused(owner_.now_ps()) & ~egress_.held(owner_.now_ps()));
  const std::uint8_t ready = credits_.with_room(egress_, free);
  if (ready == 0) return false;
  transmit_frame(egress_.pick(ready));
  return true;
}

/// One of `ready`, whose credit can be given back.
void transmit_side::drop_for_link_down(std::uint8_t ready) {
  const egress::entry e = egress_.pop(egress_.pick(ready));
  credits_.give_back(*e.frame);
  ++to_.counters.drop_tx_link_down;
  to_.stats.transmit_drop();
}

void transmit_side::transmit_pause() {
  const wire::pause_frame p =
      to_.flow.tell(receive_.above(), owner_.now_ps(), to_.config.pause_quanta, to_.config.pause_refresh_percent);
  payload::frame_ptr f = to_.pool.get();
  f->begin = payload::frame::payload_start;
  f->length = wire::pause_frame_length;
  f->control = true;
  wire::encode_pause(p, to_.set.mac, f->data());
  ++to_.counters.tx_pause;
  line_.put(std::move(f), owner_.now_ps());
}

void transmit_side::transmit_frame(unsigned priority) {
  egress::entry e = egress_.pop(priority);
  credits_.give_back(*e.frame);
  pad(*e.frame);
  const sim::time_ps not_before = line_.no_byte_late(*e.frame), start = std::max(not_before, line_.free_at());
  const sim::wait why = why_waited(priority, e.since, not_before);
  if (why == sim::wait::pause) ++to_.counters.blocked_by_pause;
  to_.spans.leave(e.frame->span, owner_.name(), "egress queue", start, why);
  note_path(e.frame->span, start);

  const std::uint32_t size = e.frame->length + fcs_bytes;
  ++to_.counters.tx_frames;
  to_.counters.tx_bytes += size;
  to_.stats.transmit(column_of(*e.frame), size, to_.set.mtu, e.frame->data(), is_tagged(*e.frame));
  // Others may have kept it waiting for the longest frame at least.
  const sim::time_ps longest =
      (preamble_bytes + std::uint64_t{to_.set.mtu} + gap_bytes) * mbps_ps_per_byte / to_.config.rate_mbps;
  egress_.started(priority, preamble_bytes + size + gap_bytes, start,
                  std::max(to_.config.class_catch_up_ns * sim::ps_per_ns, longest));
  line_.put(std::move(e.frame), not_before);
}

/// What a frame that is queued since then, and starts now or at `not_before` for its last byte, has waited for in the
/// end.
sim::wait transmit_side::why_waited(unsigned priority, sim::time_ps since, sim::time_ps not_before) const {
  if (to_.flow.paused_until(priority) > since) return sim::wait::pause;
  if (egress_.held_until(priority) > since) return sim::wait::rate_limit;
  if (not_before > std::max(line_.free_at(), owner_.now_ps())) return sim::wait::bytes;
  return std::max(line_.free_at(), owner_.now_ps()) > since ? sim::wait::arbitration : sim::wait::none;
}

/// The way of a frame that starts at `start` to the line.
void transmit_side::note_path(sim::span_id span, sim::time_ps start) {
  if (span == 0) return;
  const port_config& c = to_.config;
  const std::pair<const char*, std::uint32_t> stages[] = {
      {"mac tx", c.mac_tx_ns}, {"pcs tx", c.pcs_tx_ns}, {"pma tx", c.pma_tx_ns}};
  for (const auto& [stage, ns] : stages) to_.spans.leave(span, owner_.name(), stage, start += ns * sim::ps_per_ns);
}

/// All that time alone will make possible.
void transmit_side::ask_for_wake(bool link_up) {
  if (!link_up) {
    if (egress_.waiting() != 0 && credits_.with_room(egress_, egress_.waiting()) != 0) owner_.wake_next();
    return;
  }
  const bool must_tell = to_.flow.must_tell(receive_.above(), owner_.now_ps());
  if (egress_.waiting() == 0 && !must_tell && to_.flow.refresh_at() == ~sim::time_ps{0}) return;
  const std::uint8_t paused = to_.flow.paused(owner_.now_ps());
  const auto free = static_cast<std::uint8_t>(egress_.waiting() & ~paused & ~egress_.held(owner_.now_ps()));
  if (must_tell || (free != 0 && credits_.with_room(egress_, free) != 0))
    owner_.wake_at(std::max(owner_.now() + 1, line_.choice_edge()));
  sim::time_ps resume = egress_.first_held_until(owner_.now_ps());
  for (unsigned held = egress_.waiting() & paused; held != 0; held &= held - 1)
    resume = std::min(resume, to_.flow.paused_until(static_cast<unsigned>(__builtin_ctz(held))));
  const sim::time_ps refresh = to_.flow.refresh_at();
  if (refresh > owner_.now_ps()) resume = std::min(resume, refresh);
  if (resume != ~sim::time_ps{0}) owner_.wake_at(std::max(owner_.now() + 1, owner_.domain().edge_at_or_after(resume)));
}

}  // namespace rnic::mac
