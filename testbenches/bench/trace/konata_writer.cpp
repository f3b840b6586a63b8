// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/konata_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "testbenches/bench/trace/message_sink.h"

namespace rnic::bench {

konata_writer::konata_writer(const std::string& file, std::uint32_t clock_khz) : file_(file), clock_khz_(clock_khz) {
  file_.add("Kanata\t0004\n");
}

std::uint64_t konata_writer::cycle_of(sim::time_ps at) const {
  constexpr std::uint64_t khz_ps = 1'000'000'000;  // a cycle of 1 kHz
  const sim::time_ps since = at - std::min(at, origin_);
  return since / khz_ps * clock_khz_ + since % khz_ps * clock_khz_ / khz_ps;
}

void konata_writer::put(std::uint64_t cycle, std::uint64_t number, kind what, std::uint8_t lane, const char* text) {
  waiting_.push({cycle, number, events_++, what, lane, text});
}

void konata_writer::add(const sim::followed_request& r, std::uint64_t number, unsigned thread,
                        const std::string& label) {
  if (r.path.marks.empty()) return;
  instruction& i = known_[number];
  i.label = label;
  i.thread = thread;
  i.flushed = !r.polled || r.status != 0;
  sim::time_ps at = r.path.start;
  // When an open loop's message arrived nobody knew that it would be the next one of the file.
  if (std::strcmp(r.path.marks.front().stage, message_sink_if::arrived) == 0) at = r.path.marks.front().at;
  put(cycle_of(at), number, kind::begin);
  for (const sim::span::mark& m : r.path.marks) {
    if (m.at <= at) continue;
    const bool waits = m.waited != sim::wait::none;
    put(cycle_of(at), number, kind::stage, 0, m.stage);
    if (waits) put(cycle_of(at), number, kind::stage, 1, sim::to_string(m.waited));
    at = m.at;
    put(cycle_of(at), number, kind::end_stage, 0, m.stage);
    if (waits) put(cycle_of(at), number, kind::end_stage, 1, sim::to_string(m.waited));
  }
  put(cycle_of(at), number, kind::end);
}

void konata_writer::write_before(sim::time_ps time) {
  const std::uint64_t until = cycle_of(time);
  while (!waiting_.empty() && waiting_.top().cycle < until) {
    write(waiting_.top());
    waiting_.pop();
  }
}

void konata_writer::write(const event& e) {
  if (!std::exchange(began_, true))
    file_.add(fmt::format("C=\t{}\n", e.cycle));
  else if (e.cycle != now_)
    file_.add(fmt::format("C\t{}\n", e.cycle - now_));
  now_ = e.cycle;
  const auto at = known_.find(e.number);
  instruction& i = at->second;
  switch (e.what) {
    case kind::begin:
      i.in_file = instructions_++;
      file_.add(fmt::format("I\t{}\t{}\t{}\nL\t{}\t0\t{}\n", i.in_file, e.number, i.thread, i.in_file, i.label));
      break;
    case kind::stage:
      file_.add(fmt::format("S\t{}\t{}\t{}\n", i.in_file, e.lane, e.text));
      break;
    case kind::end_stage:
      file_.add(fmt::format("E\t{}\t{}\t{}\n", i.in_file, e.lane, e.text));
      break;
    case kind::end:
      file_.add(fmt::format("R\t{}\t{}\t{}\n", i.in_file, retired_, i.flushed ? 1 : 0));
      retired_ += i.flushed ? 0 : 1;
      known_.erase(at);
      break;
  }
}

void konata_writer::close() {
  for (; !waiting_.empty(); waiting_.pop()) write(waiting_.top());
  file_.close();
}

}  // namespace rnic::bench
