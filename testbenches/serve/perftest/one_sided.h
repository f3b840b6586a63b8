// SPDX-License-Identifier: Apache-2.0
// Tests in which one side asks and the other side's adapter answers, without its software: WRITE, READ and atomics.
#pragma once

#include <optional>
#include <vector>

#include "testbenches/serve/perftest/session.h"

namespace rnic::serve::perftest {

/// ib_write_bw, ib_read_bw, ib_atomic_bw, ib_read_lat, ib_atomic_lat.
class one_sided : public session {
 public:
  using session::session;

 private:
  void test(application_result& r) override;
  bool atomic() const { return o_.verb == perftest_verb::atomic; }
  std::size_t index_of(const lane& l) const { return static_cast<std::size_t>(&l - lanes_.data()); }
  report ask(application_result& r);
  void ask_both_ways(application_result& r);
  void ask_one_by_one(application_result& r);
  void post_next(lane& l);
  void take(lane& l, application_result& r);
  void report_all(application_result& r);

  std::vector<std::vector<std::optional<std::uint64_t>>> counters_;  // the peer's, as far as we know them
};

/// ib_write_lat: both sides write, in turns.
class write_latency : public session {
 public:
  using session::session;

 private:
  void test(application_result& r) override;
  void in_turns(application_result& r);
  bool wait_for(lane& l, std::uint64_t message);
};

}  // namespace rnic::serve::perftest
