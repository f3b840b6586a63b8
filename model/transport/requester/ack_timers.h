// SPDX-License-Identifier: Apache-2.0
// The timers engine: for what a queue pair's timer runs, and what happens when it ends.
#pragma once

#include <cstdint>

#include "model/icm/contexts.h"
#include "model/sim/clocked_block.h"
#include "model/sim/server.h"
#include "model/sim/statistics.h"
#include "model/transport/congestion/rate_limiter.h"
#include "model/transport/requester/tables.h"
#include "model/transport/requester/timers.h"

namespace rnic::transport {

/// Data sheet.
///
/// A queue pair has one timer (timers.h): for the acknowledgement of the oldest packet under way (IBA 9.7.6.1.3), or
/// for a receiver that was not ready (9.7.5.2.8). Expiry is an operation of the engine: one timer at a time, earliest
/// first, `expiry_cycles` from one to the next. What it leads to is the completer's: it is offered the queue pair
/// (expired()) in each cycle until it has taken it (done()).
///
/// Starts and stops come from transmit engine, completer, go-back and control, in their own cycle.
class ack_timers {
 public:
  using context = icm::requester_context;
  ack_timers(sim::clocked_block& owner, const timer_config& config, qp_table& qps, const rate_limiter& limiter);
  void announce(sim::statistics& to) const { to.add(owner_.name() + ".timer_waits", timers_.waits()); }

  /// For an acknowledgement, if one is to come and none runs.
  void start(const context& c, qp_runtime& r);
  /// Anew: something has been acknowledged, or was sent again.
  void restart(const context& c, qp_runtime& r);
  /// Until the receiver is ready, by the code of its answer; it takes the place of the other.
  void wait_for_receiver(qp_runtime& r, std::uint8_t syndrome);
  void stop(qp_runtime& r) { timers_.stop(qps_, r, owner_.now()); }

  /// QP whose time has come and whom the engine can serve in this cycle, or none.
  qp_runtime* expired();
  /// That one was served, and its timer stopped or started anew.
  void done() { engine_.start(expiry_cycles_); }
  /// First edge at which expired() may have one.
  sim::cycle_t next() const { return std::max(timers_.earliest(), engine_.free_at()); }

 private:
  bool nothing_asked(const context& c, const qp_runtime& r) const;

  sim::clocked_block& owner_;
  unsigned expiry_cycles_;
  qp_table& qps_;
  const rate_limiter& limiter_;
  qp_timers timers_;
  sim::server engine_;
  sim::cycle_t unit_;  // cycles of 4.096 us
};

}  // namespace rnic::transport
