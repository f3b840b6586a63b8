// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/wave/channel_wave.h"

#include <algorithm>

namespace rnic::bench {

namespace {

constexpr unsigned cycle_bits = 64;

}  // namespace

clock_wave::clock_wave(wave_file& to, sim::clock_domain& clock)
    : clock_(clock), clk_(to.add(clock.name() + ".clk", 1)), cycle_(to.add(clock.name() + ".cycle", cycle_bits)) {}

void clock_wave::begin(wave_changes& to) {
  changes_ = &to;
  if (clock_.now() != sim::never) to.set(clock_.now_ps(), cycle_, clock_.now());
}

sim::time_ps clock_wave::show(sim::cycle_t cycle) {
  const sim::time_ps rises = clock_.edge_time(cycle);
  if (cycle == shown_) return rises;
  shown_ = cycle;
  changes_->set(rises, clk_, 1);
  changes_->set(rises, cycle_, cycle);
  changes_->set(rises + (clock_.edge_time(cycle + 1) - rises) / 2, clk_, 0);
  return rises;
}

void clock_wave::pulse(sim::cycle_t cycle, wave_file::signal s, std::uint64_t value) {
  changes_->set(show(cycle), s, value);
  changes_->set(show(cycle + 1), s, 0);
}

channel_wave::channel_wave(wave_file& to, sim::channel& of) : adding_(&to), channel_(of) {
  const std::string& name = of.name();
  const unsigned items = bits_for(of.width().items);
  ready_ = to.add(name + ".ready", 1);
  push_ = to.add(name + ".push", items);
  valid_ = to.add(name + ".valid", 1);
  pop_ = to.add(name + ".pop", items);
  occupancy_ = to.add(name + ".occupancy", bits_for(of.depth()));
  to.add_constant(name + ".depth", of.depth());
  to.add_constant(name + ".width", of.width().items);
  of.describe(*this);
  of.watch();
  adding_ = nullptr;
}

void channel_wave::clock_by(clock_wave& producer, clock_wave& consumer) {
  push_clock_ = &producer;
  pop_clock_ = &consumer;
}

void channel_wave::ends(const sim::clocked_block* producer, const sim::clocked_block* consumer) {
  producer_ = producer;
  consumer_ = consumer;
}

void channel_wave::field(const char* group, const char* name, unsigned bits, std::uint64_t value) {
  if (adding_ == nullptr) return pop_clock_->changes().set(field_time_, fields_[next_field_++], value);
  const std::string path = channel_.name() + (group != nullptr ? std::string(".") + group + "." : ".") + name;
  fields_.push_back(adding_->add(path, bits));
}

void channel_wave::begin() {
  known_ = channel_.look(nullptr);
  push_clock_->changes().set(push_clock_->clock().now_ps(), occupancy_, known_.occupancy);
  show_ready(known_);
  show_front(known_);
}

/// `items` enter or leave in the cycle that is being served.
void channel_wave::count(clock_wave& by, wave_file::signal pulse, std::uint64_t items, bool enter) {
  const sim::cycle_t now = by.clock().now();
  by.pulse(now, pulse, items);
  by.changes().add(by.show(now + 1), occupancy_, enter ? items : ~items + 1);
}

void channel_wave::show_ready(const sim::channel_state& s) {
  clock_wave& by = *push_clock_;
  const sim::cycle_t next = by.clock().now() + 1;
  if (s.ready_from == sim::never || s.ready_from > next) by.changes().set(by.show(next), ready_, 0);
  if (s.ready_from != sim::never) by.changes().set(by.show(std::max(next, s.ready_from)), ready_, 1);
}

void channel_wave::show_front(const sim::channel_state& s) {
  clock_wave& by = *pop_clock_;
  const sim::cycle_t next = by.clock().now() + 1;
  if (s.valid_from == sim::never || s.valid_from > next) by.changes().set(by.show(next), valid_, 0);
  if (s.valid_from == sim::never) return;
  field_time_ = by.show(std::max(next, s.valid_from));
  by.changes().set(field_time_, valid_, 1);
  next_field_ = 0;
  channel_.look(this);
}

void channel_wave::look() {
  const sim::channel_state s = channel_.look(nullptr);
  if (s.pushes != known_.pushes) count(*push_clock_, push_, s.pushes - known_.pushes, true);
  if (s.pops != known_.pops) count(*pop_clock_, pop_, s.pops - known_.pops, false);
  if (s.ready_from != known_.ready_from) show_ready(s);
  if (s.pops != known_.pops || s.valid_from != known_.valid_from) show_front(s);
  known_ = s;
}

}  // namespace rnic::bench
