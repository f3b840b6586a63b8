// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/wave/wave_changes.h"

namespace rnic::bench {

wave_changes::wave_changes(wave_file& to, sim::time_ps origin, sim::time_ps from, sim::time_ps until)
    : to_(to), origin_(origin), from_(from), until_(until), states_(to.signals()) {
  for (wave_file::signal s = 0; s < states_.size(); ++s) states_[s].value = to.first(s);
}

void wave_changes::begin_window() {
  in_window_ = true;
  for (wave_file::signal s = 0; s < states_.size(); ++s) {
    to_.change(from_ - origin_, s, states_[s].value);
    states_[s].written = states_[s].value;
  }
}

void wave_changes::write_at(sim::time_ps at) {
  while (!waiting_.empty() && waiting_.top().at == at) {
    const change& c = waiting_.top();
    state& s = states_[c.of];
    s.value = c.adds ? s.value + c.value : c.value;
    if (!s.touched) touched_.push_back(c.of);
    s.touched = true;
    waiting_.pop();
  }
  for (const wave_file::signal of : touched_) {
    state& s = states_[of];
    s.touched = false;
    if (!in_window_ || s.value == s.written) continue;
    s.written = s.value;
    to_.change(at - origin_, of, s.value);
  }
  touched_.clear();
}

void wave_changes::write_before(sim::time_ps time) {
  while (!waiting_.empty() && waiting_.top().at < time) {
    const sim::time_ps at = waiting_.top().at;
    if (!in_window_ && at > from_) begin_window();
    write_at(at);
  }
}

void wave_changes::finish() {
  write_before(until_);
  if (!in_window_) begin_window();
}

}  // namespace rnic::bench
