// SPDX-License-Identifier: Apache-2.0
#include "host_driver/workloads/measured.h"

#include <algorithm>

namespace rnic::workloads {

void measured::add(const measured& m) {
  offered += m.offered;
  unfinished += m.unfinished;
  completed += m.completed;
  lost += m.lost;
  if (m.begin == m.end) return;
  begin = begin == end ? m.begin : std::min(begin, m.begin);
  end = std::max(end, m.end);
  messages += m.messages;
  bytes += m.bytes;
}

double measured::mpps() const {
  return begin == end ? 0 : static_cast<double>(messages) * 1e6 / static_cast<double>(end - begin);
}

double measured::gbps() const {
  return begin == end ? 0 : static_cast<double>(bytes) * 8e3 / static_cast<double>(end - begin);
}

bool is_told_by_receives(const workload& w) { return w.unreliable() && w.takes_receives(); }

measured measure(const workload& w, const workload_result& r, const workload_times& t) {
  const workload_config& c = w.config();
  measured m;
  m.offered = r.offered;
  m.unfinished = r.unfinished;
  m.completed = r.completed;
  const bool told = is_told_by_receives(w);
  if (told) m.lost = r.offered - r.unfinished - r.received;
  sim::time_ps begin = std::max(t.begin + c.start, t.measure_from), end = t.measured_end(c.end);
  if (c.messages != 0) {
    begin = std::max(begin, r.first_post);
    end = std::min(end, r.last_completion);
  }
  if (end <= begin) return m;
  m.messages = told ? r.received_in_time : r.completed_in_time;
  m.bytes = told ? r.received_bytes : r.completed_bytes;
  m.begin = begin;
  m.end = end;
  return m;
}

measured measure(const workload& w, const workload_times& t) {
  measured sum;
  for (const workload_result& r : w.results()) sum.add(measure(w, r, t));
  return sum;
}

latency_record latencies_of(const workload& w) {
  latency_record all;
  for (const workload_result& r : w.results()) all.add(r.latencies);
  return all;
}

}  // namespace rnic::workloads
