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

std::uint64_t engine_stage::start(payload::frame_ptr frame, const stream& what) {
  const sim::cycle_t now = owner_.now();
  RNIC_ASSERT(input_free_at_ <= now && !frames_.full(), owner_.name() + ": frame started while the engine is busy");
  entry& e = frames_.extend();
  e.frame = std::move(frame);
  e.crc = sim::mostly(at_once_ && what.wanted) ? engine_->process(what.encap, what.data, what.length).crc : 0;
  e.blocked = e.handed = false;
  e.ready_at = e.last_beat = sim::never;
  if (sim::seldom(!at_once_)) e.what = what;  // that of the model is done with
  e.start = std::max(now, what.first_beat);
  const std::uint64_t beats = e.beats = sim::beats_of(what.length, width_), passed = beats + (e.start - now);
  e.tail = what.frame > passed ? what.frame - passed : 0;
  server_.start(std::max(what.frame, passed));
  input_free_at_ = sim::never;
  offered_ = 0;
  if (sim::mostly(at_once_)) settle(frames_.size() - 1);
  return beats;
}

/// Computes what is known by now of the frame at `place`: the results of those before it have not been taken.
void engine_stage::settle(std::size_t place) {
  entry& e = frames_[place];
  if (e.last_beat == sim::never && place <= (e.beats == 1 ? 2u : 1u)) {
    const sim::cycle_t first = std::max(e.start, taken_at_[2 - place] + 1);
    e.last_beat = e.beats == 1 ? first : std::max(first, taken_at_[1 - place]) + e.beats - 1;
    if (place + 1 == frames_.size()) input_free_at_ = e.last_beat + 1 + e.tail;
  }
  if (place == 0) e.ready_at = std::max(e.last_beat + pipeline_cycles, taken_at_[0] + 2);
}

engine_stage::entry* engine_stage::started() { return at_once_ && frames_.size() == 1 ? &frames_.front() : nullptr; }

void engine_stage::take_ahead() { taken_in(frames_.front().ready_at); }

engine_stage::entry* engine_stage::passing() { return handed_ + 1 == frames_.size() ? &frames_.back() : nullptr; }

void engine_stage::hand_ahead() {
  if (sim::mostly(at_once_)) return take_ahead();
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
