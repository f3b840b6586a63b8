// SPDX-License-Identifier: Apache-2.0
// What tells the scheduler that a queue pair may go on.
#pragma once

#include "model/scheduler/scheduler_if.h"
#include "model/sim/fifo.h"
#include "model/transport/congestion/rate_limiter.h"
#include "model/transport/requester/tables.h"

namespace rnic::transport {

/// Queue pairs that stalled and need not any more, in order. The report channel takes one a cycle, after what the
/// processing units report. One that a unit serves is not told of: the unit reports that there is more.
///
/// Of a queue pair's registers it writes `has_work` and `poked`, and `stalled` when it tells of it.
class resumptions {
 public:
  resumptions(qp_table& qps, const rate_limiter& limiter, sim::fifo_out<scheduler::report>& report)
      : qps_(qps), limiter_(limiter), report_(report) {}

  /// It may have work.
  void resume(qp_runtime& r) {
    if (r.stop.halting || r.stop.halted) return;
    r.turn.has_work = true;
    if (r.turn.unit >= 0)
      r.turn.poked = true;
    else
      waiting_.push(qps_, r);
  }
  /// The same for one that waits for nothing but what has just come.
  void wake_stalled(qp_runtime& r) {
    if (r.progress.rnr_wait || r.failing || (limiter_.any() && limiter_.parked(r.qpn))) return;
    if (r.turn.stalled || r.turn.ends_stalled) resume(r);
  }
  /// There is one of what these wait for. One that was stopped meanwhile looks again when it is released.
  void resume_first(qp_queue& waiting) {
    if (sim::seldom(!waiting.empty())) resume_one(waiting);
  }
  /// Once a cycle.
  void push() {
    if (sim::seldom(!waiting_.empty())) report_all();
  }

 private:
  [[gnu::noinline]] void resume_one(qp_queue& waiting) {
    while (!waiting.empty()) {
      qp_runtime& r = waiting.pop(qps_);
      if (r.stop.halting || r.stop.halted) continue;
      return resume(r);
    }
  }
  [[gnu::noinline]] void report_all() {
    while (!waiting_.empty() && report_.claim()) {
      qp_runtime& r = waiting_.pop(qps_);
      if (r.turn.unit >= 0) {  // a grant was under way: its report says `more`
        r.turn.poked = true;
        continue;
      }
      r.turn.stalled = false;
      report_.push({r.qpn, scheduler::report::kind::resume, r.turn.priority});
    }
  }

  qp_table& qps_;
  const rate_limiter& limiter_;
  sim::fifo_out<scheduler::report>& report_;
  qp_queue waiting_{qp_list::resume};
};

}  // namespace rnic::transport
