// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/wave/engine_wave.h"

#include <algorithm>
#include <string>

#include "testbenches/bench/wave/wave_names.h"

namespace rnic::bench {

namespace {
constexpr unsigned interval_bits = 32;
}  // namespace

engine_wave::engine_wave(wave_file& to, sim::server& of)
    : engine_(of),
      start_(to.add(of.name() + ".start", 1)),
      interval_(to.add(of.name() + ".interval", interval_bits)),
      busy_(to.add(of.name() + ".busy", 1)),
      blocked_(to.add(of.name() + ".blocked", 1)) {}

void engine_wave::begin() {
  const sim::cycle_t now = clock_->clock().now(), free = engine_.free_at();
  if (now < free) {
    set(now, busy_, 1);
    if (free != sim::never) set(free, busy_, 0);
  }
  if (engine_.is_blocked() && engine_.blocked_at() != sim::never) set(std::max(now, engine_.blocked_at()), blocked_, 1);
  engine_.watch(this);
}

void engine_wave::started(sim::cycle_t from, sim::cycle_t interval) {
  const bool known = interval != sim::never;
  clock_->pulse(from, start_, 1);
  set(from, interval_, known ? interval : 0);
  set(from, busy_, 1);
  if (known) set(from + interval, busy_, 0);
}

pipeline_wave::pipeline_wave(wave_file& to, const sim::pipeline& of)
    : pipeline_(of), start_(to.add(of.name() + ".start", 1)) {
  to.add_constant(of.name() + ".interval", 1);
  to.add_constant(of.name() + ".cycles", of.cycles());
  for (const sim::pipeline_stages::stage& s : of.stages().all()) {
    if (s.cycles == 0) continue;
    const std::string name = of.name() + "." + name_in_wave(s.name);
    to.add_constant(name + ".cycles", s.cycles);
    stages_.push_back({s.cycles, to.add(name + ".items", bits_for(s.cycles))});
  }
}

void pipeline_wave::look() {
  const std::uint64_t n = pipeline_.entered() - entered_;
  if (n == 0) return;
  entered_ += n;
  sim::cycle_t at = clock_->clock().now();
  clock_->pulse(at, start_, n);
  for (const stage& s : stages_) {
    clock_->changes().add(clock_->show(at), s.items, n);
    at += s.cycles;
    clock_->changes().add(clock_->show(at), s.items, ~n + 1);
  }
}

}  // namespace rnic::bench
