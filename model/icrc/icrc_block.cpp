// SPDX-License-Identifier: Apache-2.0
#include "model/icrc/icrc_block.h"

#include <algorithm>
#include <utility>

#include "model/sim/check.h"

namespace rnic::icrc {
namespace {

constexpr std::uint32_t ethernet_header_bytes = 14;

std::uint32_t checked_frames(const std::string& name, std::uint32_t frames) {
  if (frames == 0 || frames > 64) throw sim::config_error(name + ".frames_in_flight: must be 1..64");
  return frames;
}

void store_little_endian(std::uint8_t* to, std::uint32_t word) {
  for (unsigned i = 0; i < 4; ++i) to[i] = static_cast<std::uint8_t>(word >> (8 * i));
}

/// Bytes that go through the engine: from the L3 header to before the ICRC.
std::size_t covered_bytes(const payload::frame& f) { return f.packet.icrc_offset - f.packet.l3_offset; }

void mark(sim::span_recorder& spans, const char* stage, const frame_pipeline::entry& e, sim::time_ps at) {
  spans.leave(e.frame->span, stage, at, e.blocked ? sim::wait::arbitration : sim::wait::none);
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

// ---------------------------------------------------------------- frame_pipeline

void frame_pipeline::start(sim::cycle_t now, payload::frame_ptr frame, std::uint64_t beats,
                           const icrc_engine_if::result& result) {
  RNIC_ASSERT(can_start(), "icrc: frame started while the engine is busy");
  entry& e = ring_[(head_ + count_) % ring_.size()];
  e = {std::move(frame), now + result.cycles, result.crc, false};
  ++count_;
  engine_.start(beats);
}

void frame_pipeline::pop() {
  ring_[head_].frame.reset();
  head_ = (head_ + 1) % ring_.size();
  --count_;
}

// ---------------------------------------------------------------- icrc_insert

icrc_insert::icrc_insert(std::string name, sim::clock_domain& domain, const config& cfg, unsigned inputs_count,
                         std::unique_ptr<icrc_engine_if> engine, sim::span_recorder& spans)
    : clocked_block(name, domain),
      outputs{sim::fifo_out<payload::frame_ptr>(*this), sim::fifo_out<payload::frame_ptr>(*this)},
      engine_(std::move(engine)),
      spans_(spans),
      pipeline_(*this, checked_frames(this->name(), cfg.frames_in_flight)) {
  add_inputs(inputs, inputs_count, *this);
}

void icrc_insert::tick() {
  leave();
  enter();
}

void icrc_insert::leave() {
  if (pipeline_.empty()) return;
  frame_pipeline::entry& e = pipeline_.front();
  if (e.ready_at > now()) return wake_at(e.ready_at);
  const auto& out = outputs[e.frame->port % ports];
  if (!out.claim()) {  // the channel wakes us
    e.blocked = true;
    return;
  }
  mark(spans_, "icrc insert", e, now_ps());
  finish(*e.frame, e.crc);
  out.push(std::move(e.frame));
  pipeline_.pop();
  if (!pipeline_.empty()) wake_at(std::max(pipeline_.front().ready_at, now() + 1));
}

void icrc_insert::finish(payload::frame& f, std::uint32_t crc) {
  if (!f.insert_icrc) {
    ++stats_.frames_passed;
    return;
  }
  store_little_endian(f.data() + f.packet.icrc_offset, crc);
  f.packet.icrc = crc;
  ++stats_.frames_inserted;
}

void icrc_insert::enter() {
  const std::uint64_t asking = waiting(inputs);
  if (asking == 0) return;
  if (!pipeline_.can_start()) {
    if (pipeline_.input_free_at() > now()) wake_at(pipeline_.input_free_at());
    return;  // no place: one that leaves looks here again
  }
  payload::frame_ptr f = inputs[static_cast<std::size_t>(turn_.pick(asking))].pop();
  const std::size_t length =
      f->insert_icrc ? covered_bytes(*f) : std::max(f->length, ethernet_header_bytes + 1) - ethernet_header_bytes;
  const auto result = f->insert_icrc ? engine_->process(f->packet.encap, f->data() + f->packet.l3_offset, length)
                                     : icrc_engine_if::result{cycles_of(length), 0};
  stats_.beats += beats_of(length);
  const auto& out = outputs[f->port % ports];
  if (pipeline_.empty() && out.can_push()) {
    pipeline_.start_elsewhere(beats_of(length));
    spans_.leave(f->span, "icrc insert", domain().edge_time(now() + result.cycles));
    finish(*f, result.crc);
    out.push_after(std::move(f), result.cycles);
  } else {
    pipeline_.start(now(), std::move(f), beats_of(length), result);
    if (pipeline_.front().ready_at > now()) wake_at(pipeline_.front().ready_at);
  }
  // A channel wakes us for what follows in it; what waits in another one must be looked at again.
  if ((asking & (asking - 1)) != 0) wake_at(pipeline_.input_free_at());
}

// ---------------------------------------------------------------- icrc_check

icrc_check::icrc_check(std::string name, sim::clock_domain& domain, const config& cfg, unsigned inputs_count,
                       std::unique_ptr<icrc_engine_if> engine, sim::span_recorder& spans)
    : clocked_block(name, domain),
      engine_(std::move(engine)),
      spans_(spans),
      pipeline_(*this, checked_frames(this->name(), cfg.frames_in_flight)) {
  add_inputs(inputs, inputs_count, *this);
}

void icrc_check::tick() {
  leave();
  enter();
}

void icrc_check::leave() {
  if (pipeline_.empty()) return;
  frame_pipeline::entry& e = pipeline_.front();
  if (e.ready_at > now()) return wake_at(e.ready_at);
  if (e.crc != e.frame->packet.icrc) {
    e.frame->icrc_ok = false;
    ++stats_.bad_icrc[e.frame->port % ports];
  } else {
    const auto& out = wire::traits(e.frame->packet.bth.opcode).response ? responses : requests;
    if (!out.claim()) {  // the channel wakes us
      e.blocked = true;
      return;
    }
    mark(spans_, "icrc check", e, now_ps());
    ++stats_.frames_passed;
    out.push(std::move(e.frame));
  }
  pipeline_.pop();
  if (!pipeline_.empty()) wake_at(std::max(pipeline_.front().ready_at, now() + 1));
}

void icrc_check::enter() {
  const std::uint64_t asking = waiting(inputs);
  if (asking == 0) return;
  if (!pipeline_.can_start()) {
    if (pipeline_.input_free_at() > now()) wake_at(pipeline_.input_free_at());
    return;  // no place: one that leaves looks here again
  }
  payload::frame_ptr f = inputs[static_cast<std::size_t>(turn_.pick(asking))].pop();
  const std::size_t length = covered_bytes(*f);
  const auto result = engine_->process(f->packet.encap, f->data() + f->packet.l3_offset, length);
  stats_.beats += beats_of(length);
  const auto& out = wire::traits(f->packet.bth.opcode).response ? responses : requests;
  if (pipeline_.empty() && result.crc == f->packet.icrc && out.can_push()) {
    pipeline_.start_elsewhere(beats_of(length));
    spans_.leave(f->span, "icrc check", domain().edge_time(now() + result.cycles));
    ++stats_.frames_passed;
    out.push_after(std::move(f), result.cycles);
  } else {
    pipeline_.start(now(), std::move(f), beats_of(length), result);
    if (pipeline_.front().ready_at > now()) wake_at(pipeline_.front().ready_at);
  }
  if ((asking & (asking - 1)) != 0) wake_at(pipeline_.input_free_at());
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
