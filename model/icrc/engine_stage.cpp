// SPDX-License-Identifier: Apache-2.0
#include "model/icrc/engine_stage.h"

#include <algorithm>
#include <utility>

#include "model/sim/check.h"
#include "model/sim/seldom.h"

namespace rnic::icrc {

engine_stage::engine_stage(sim::clocked_block& owner, std::unique_ptr<icrc_engine_if> engine)
    : owner_(owner),
      engine_(std::move(engine)),
      at_once_(engine_->at_once()),
      width_(engine_->beat_bytes()),
      server_(owner, "engine") {}

/// The engine's input is taken by a stream from `now` on, whose first beat can enter at `start`.
inline engine_stage::extent engine_stage::occupy(const stream& what, sim::cycle_t now, sim::cycle_t start) {
  const std::uint64_t beats = sim::beats_of(what.length, width_), passed = beats + (start - now);
  server_.start(std::max(what.frame, passed));
  return {beats, what.frame > passed ? what.frame - passed : 0};
}

/// When the last of `beats` that are offered from `start` on enters, of the frame that has `before` others in front of
/// it in the engine.
inline sim::cycle_t engine_stage::last_beat_of(sim::cycle_t start, std::uint64_t beats, std::size_t before) const {
  const sim::cycle_t first = std::max(start, taken_at_[2 - before] + 1);
  return beats == 1 ? first : std::max(first, taken_at_[1 - before]) + beats - 1;
}

engine_stage::passage engine_stage::pass_alone(const stream& what) {
  const sim::cycle_t now = owner_.edge();
  RNIC_ASSERT(input_free_at_ <= now, owner_.name() + ": frame started while the engine is busy");
  const sim::cycle_t start = std::max(now, what.first_beat);
  const auto [beats, tail] = occupy(what, now, start);
  const sim::cycle_t last = last_beat_of(start, beats, 0), ready = result_of(last);
  input_free_at_ = last + 1 + tail;
  taken_at_ = {ready, taken_at_[0], taken_at_[1]};
  return {beats, last, ready};
}

std::uint64_t engine_stage::start(payload::frame_ptr frame, const stream& what) {
  const sim::cycle_t now = owner_.now();
  RNIC_ASSERT(input_free_at_ <= now && !frames_.full(), owner_.name() + ": frame started while the engine is busy");
  entry& e = frames_.extend();
  e.frame = std::move(frame);
  e.crc = at_once_ ? crc_of(what) : 0;
  e.blocked = e.handed = false;
  e.ready_at = e.last_beat = sim::never;
  if (!at_once_) e.what = what;  // that of the model is done with
  e.start = std::max(now, what.first_beat);
  const auto [beats, tail] = occupy(what, now, e.start);
  e.beats = beats;
  e.tail = tail;
  input_free_at_ = sim::never;
  offered_ = 0;
  if (at_once_) settle(frames_.size() - 1);
  return beats;
}

/// Computes what is known by now of the frame at `place`: the results of those before it have not been taken.
void engine_stage::settle(std::size_t place) {
  entry& e = frames_[place];
  if (e.last_beat == sim::never && place <= (e.beats == 1 ? 2u : 1u)) {
    e.last_beat = last_beat_of(e.start, e.beats, place);
    if (place + 1 == frames_.size()) input_free_at_ = e.last_beat + 1 + e.tail;
  }
  if (place == 0) e.ready_at = result_of(e.last_beat);
}

engine_stage::entry* engine_stage::passing() {
  return !at_once_ && handed_ + 1 == frames_.size() ? &frames_.back() : nullptr;
}

void engine_stage::hand_ahead() {
  frames_.back().handed = true;
  ++handed_;
}

engine_stage::entry* engine_stage::result() {
  if (frames_.empty()) return nullptr;
  entry& e = frames_.front();
  if (at_once_) return e.ready_at <= owner_.now() ? &e : nullptr;
  const icrc_outputs out = engine_->outputs();
  if (!out.result_valid) return nullptr;
  e.crc = out.crc;
  return &e;
}

void engine_stage::take() {
  take_result_ = true;
  taken_in(owner_.now());
}

void engine_stage::taken_in(sim::cycle_t cycle) {
  if (frames_.front().handed) --handed_;
  frames_.front().frame.reset();
  frames_.drop();
  taken_at_ = {cycle, taken_at_[0], taken_at_[1]};
  if (sim::seldom(!at_once_)) return;
  const std::size_t known = std::min<std::size_t>(frames_.size(), taken_at_.size());
  for (std::size_t i = 0; i < known; ++i) settle(i);
}

void engine_stage::clock() {
  if (sim::seldom(!at_once_)) return clock_rtl();
  if (frames_.empty()) return;
  const sim::cycle_t ready = frames_.front().ready_at;
  if (ready > owner_.now()) owner_.wake_at(ready);  // else the channel that has no room wakes the block
}

void engine_stage::clock_rtl() {
  if (frames_.empty() && !take_result_) return;
  icrc_beat beat;
  if (!frames_.empty() && input_free_at_ == sim::never && frames_.back().start <= owner_.now()) {
    const stream& s = frames_.back().what;
    beat = beat_at(s.encap, s.data, s.length, offered_, width_);
  }
  const icrc_outputs out = engine_->step(beat, std::exchange(take_result_, false));
  if (beat.valid && out.in_ready) {
    offered_ += beat.keep;
    if (beat.last) {
      frames_.back().last_beat = owner_.now();
      input_free_at_ = owner_.now() + 1 + frames_.back().tail;
    }
  }
  if (!frames_.empty()) owner_.wake_next();
}

}  // namespace rnic::icrc
