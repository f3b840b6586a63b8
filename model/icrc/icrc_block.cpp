// SPDX-License-Identifier: Apache-2.0
#include "model/icrc/icrc_block.h"

#include <algorithm>
#include <utility>

#include "model/payload/frame_stream.h"
#include "model/sim/check.h"
#include "model/wire/bytes.h"
#include "model/wire/groups.h"

namespace rnic::icrc {
namespace {

constexpr std::uint32_t ethernet_header_bytes = 14;

/// Bytes that go through the engine: from the L3 header to before the ICRC.
stream covered(const payload::frame& f, unsigned width) {
  const std::size_t length = f.packet.icrc_offset - f.packet.l3_offset;
  return {f.packet.encap, f.data() + f.packet.l3_offset, length, true, payload::beats_of(f.length, width)};
}
/// Of a frame without an ICRC: all behind its Ethernet header.
stream not_covered(const payload::frame& f, unsigned width) {
  const std::size_t length = std::max(f.length, ethernet_header_bytes + 1) - ethernet_header_bytes;
  return {wire::encapsulation::roce_v1, f.data() + ethernet_header_bytes, length, false,
          payload::beats_of(f.length, width)};
}

/// Edge from which on the beats of `s` can follow each other, when the frame's bytes come a beat a cycle: they begin
/// at the L3 header, so a beat of theirs is there with the next one of the frame. The last of them is early enough for
/// the verdict when the ICRC behind it is there a cycle before.
sim::cycle_t streams_from(const payload::frame& f, const stream& s, unsigned width) {
  const auto first = static_cast<std::uint32_t>(f.packet.l3_offset + std::min<std::size_t>(width, s.length) - 1);
  const sim::cycle_t begins = payload::byte_at(f, first, width);
  if (width >= 16) return begins;  // what is in front of the L3 header and behind it are two beats at most
  constexpr unsigned to_verdict = pipeline_cycles - 1;
  const sim::cycle_t with_icrc = payload::byte_at(f, f.packet.icrc_offset + 3u, width);
  const sim::cycle_t late = sim::beats_of(s.length, width) - 1 + to_verdict;
  return std::max(begins, with_icrc > late ? with_icrc - late : 0);
}

/// Of a frame: its bytes go in, up to `last_beat`, and the engine's stages follow, up to `ready`.
void mark_stages(sim::span_recorder& spans, const sim::clocked_block& block, sim::span_id span, sim::cycle_t last_beat,
                 sim::cycle_t ready) {
  if (span == 0) return;
  spans.leave(span, block.name(), "frame", block.domain().edge_time(last_beat), sim::wait::bytes);
  spans.leave(span, block.name(), "icrc", block.domain().edge_time(ready), sim::wait::none);
}
/// The same of one that leaves at edge `now`, later than it could where it was `blocked`.
void mark(sim::span_recorder& spans, const sim::clocked_block& block, const engine_stage::entry& e, sim::cycle_t now) {
  mark_stages(spans, block, e.frame->span, e.last_beat, e.blocked ? e.ready_at : now);
  if (e.blocked && e.frame->span != 0)
    spans.leave(e.frame->span, block.name(), "exit", block.domain().edge_time(now), sim::wait::arbitration);
}

using frame_inputs = std::vector<sim::fifo_in<payload::frame_ptr>>;

void add_inputs(frame_inputs& inputs, unsigned count, sim::clocked_block& owner) {
  if (count == 0 || count > 64) throw sim::config_error(owner.name() + ": must have 1..64 inputs");
  for (unsigned i = 0; i < count; ++i) inputs.emplace_back(owner);
}

/// Mask of the inputs that have a frame.
std::uint64_t waiting(const frame_inputs& inputs) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].can_pop()) mask |= std::uint64_t{1} << i;
  return mask;
}

}  // namespace

// ---------------------------------------------------------------- icrc_insert

icrc_insert::icrc_insert(std::string name, sim::clock_domain& domain, unsigned inputs_count,
                         std::unique_ptr<icrc_engine_if> engine, sim::span_recorder& spans)
    : clocked_block(name, domain),
      outputs{sim::fifo_out<payload::frame_ptr>(*this), sim::fifo_out<payload::frame_ptr>(*this)},
      engine_(*this, std::move(engine)),
      spans_(spans) {
  add_inputs(inputs, inputs_count, *this);
}

void icrc_insert::tick() {
  leave();
  enter();
  engine_.clock();
}

void icrc_insert::leave() {
  engine_stage::entry* const e = engine_.result();
  if (e == nullptr) return;
  if (e->handed) {
    finish(*e->frame, e->crc);
    return engine_.take();
  }
  const auto& out = outputs[e->frame->port % ports];
  if (!out.claim()) {  // the channel wakes us
    e->hold(edge());
    return;
  }
  mark(spans_, *this, *e, edge());
  finish(*e->frame, e->crc);
  payload::send_whole(out, std::move(e->frame), edge(), engine_.width());
  engine_.take();
}

/// What enters leaves beat by beat; its ICRC is written now, or while it is on its way.
void icrc_insert::pass(payload::frame_ptr f, const sim::fifo_out<payload::frame_ptr>& out) {
  spans_.leave_at_edge(f->span, name(), "icrc", domain(), edge() + pipeline_cycles);
  payload::stream_out(out, std::move(f), edge(), pipeline_cycles, engine_.width());
}

void icrc_insert::finish(payload::frame& f, std::uint32_t crc) {
  f.open = false;
  if (!f.insert_icrc) return;
  wire::store_le32(f.data() + f.packet.icrc_offset, crc);
  f.packet.icrc = crc;
}

void icrc_insert::enter() {
  const std::uint64_t asking = waiting(inputs);
  if (asking == 0) return;
  if (!engine_.can_start()) {
    if (const auto* e = engine_.held_up(); e != nullptr)
      engine_.blocked(e->frame->port % ports == 0 ? "port 1" : "port 2");
    if (engine_.input_free_at() != sim::never && engine_.input_free_at() > edge()) wake_at(engine_.input_free_at());
    return;  // no place: one that leaves looks here again
  }
  payload::frame_ptr f = inputs[static_cast<std::size_t>(turn_.pick(asking))].pop();
  if (f->span != 0)  // its last cycle on the way here is the channel's
    spans_.wait_until(f->span, name(), "turn", domain().edge_time(edge() - 1), sim::wait::arbitration);
  const stream s = f->insert_icrc ? covered(*f, engine_.width()) : not_covered(*f, engine_.width());
  ++(f->insert_icrc ? stats_.frames_inserted : stats_.frames_passed);
  const auto& out = outputs[f->port % ports];
  if (engine_.is_alone() && out.can_push()) {
    finish(*f, engine_.crc_of(s));
    stats_.beats += engine_.pass_alone(s).beats;
    pass(std::move(f), out);
  } else {
    stats_.beats += engine_.start(std::move(f), s);
    if (engine_stage::entry* const e = engine_.passing(); e != nullptr && out.can_push()) {
      e->frame->open = e->frame->insert_icrc;
      pass(e->frame, out);
      engine_.hand_ahead();
    }
  }
  // A channel wakes us for what follows in it; what waits in another one must be looked at again.
  if ((asking & (asking - 1)) != 0) wake_at(engine_.look_again_at());
}

// ---------------------------------------------------------------- icrc_check

icrc_check::icrc_check(std::string name, sim::clock_domain& domain, unsigned inputs_count,
                       std::unique_ptr<icrc_engine_if> engine, sim::span_recorder& spans)
    : clocked_block(name, domain), engine_(*this, std::move(engine)), spans_(spans) {
  add_inputs(inputs, inputs_count, *this);
}

void icrc_check::tick() {
  leave();
  enter();
  engine_.clock();
}

icrc_check::way icrc_check::way_of(const wire::packet& p) const {
  if (wire::traits(p.bth.opcode).response) return {responses, "requester"};
  if (wire::is_for_group(p)) return {groups, "multicast"};
  return {requests, "responder"};
}

void icrc_check::leave() {
  engine_stage::entry* const e = engine_.result();
  if (e == nullptr) return;
  payload::expect_packet(*e->frame, engine_.width(), edge(), *this);
  if (e->crc != e->frame->packet.icrc) {
    e->frame->icrc_ok = false;
    ++stats_.bad_icrc[e->frame->port % ports];
  } else {
    const auto& out = way_of(e->frame->packet).out;
    if (!out.claim()) {  // the channel wakes us
      e->hold(edge());
      return;
    }
    mark(spans_, *this, *e, edge());
    ++stats_.frames_passed;
    out.push(std::move(e->frame));
  }
  engine_.take();
}

void icrc_check::enter() {
  const std::uint64_t asking = waiting(inputs);
  if (asking == 0) return;
  if (!engine_.can_start()) {
    if (const auto* e = engine_.held_up(); e != nullptr) engine_.blocked(way_of(e->frame->packet).to);
    if (engine_.input_free_at() != sim::never && engine_.input_free_at() > edge()) wake_at(engine_.input_free_at());
    return;  // no place: one that leaves looks here again
  }
  payload::frame_ptr f = inputs[static_cast<std::size_t>(turn_.pick(asking))].pop();
  const auto& out = way_of(f->packet).out;
  if (edge() > f->first_byte && f->span != 0) spans_.leave(f->span, name(), "turn", now_ps(), sim::wait::arbitration);
  stream s = covered(*f, engine_.width());
  s.first_beat = streams_from(*f, s, engine_.width());
  if (const auto& left = departures[f->port % ports]; left.bound()) left.push({edge(), f->length, f->priority});
  // The last slot is taken when the frame leaves, so that the channel is full from then on, and not before.
  if (engine_.is_alone() && out.free_slots() > 1 && engine_.crc_of(s) == f->packet.icrc) {
    const auto [beats, last_beat, ready] = engine_.pass_alone(s);
    stats_.beats += beats;
    ++stats_.frames_passed;
    mark_stages(spans_, *this, f->span, last_beat, ready);
    payload::expect_packet(*f, engine_.width(), ready, *this);
    out.push_after(std::move(f), ready - edge());
  } else {
    stats_.beats += engine_.start(std::move(f), s);
  }
  if ((asking & (asking - 1)) != 0) wake_at(engine_.look_again_at());
}

void icrc_insert::announce(sim::statistics& to) const {
  to.add(name() + ".frames_inserted", stats_.frames_inserted);
  to.add(name() + ".frames_passed", stats_.frames_passed);
  to.add(name() + ".beats", stats_.beats);
}

void icrc_check::announce(sim::statistics& to) const {
  to.add(name() + ".frames_passed", stats_.frames_passed);
  to.add(name() + ".beats", stats_.beats);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    to.add(name() + ".drop.bad_icrc.port" + std::to_string(i + 1), stats_.bad_icrc[i]);
}

}  // namespace rnic::icrc
