// SPDX-License-Identifier: Apache-2.0
// The requester's way to its timers: for what a queue pair's timer runs, and what the block of timers is told.
#pragma once

#include <cstdint>

#include "model/icm/contexts.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/statistics.h"
#include "model/transport/requester/tables.h"
#include "model/transport/requester/timers.h"

namespace rnic::transport {

/// Data sheet.
///
/// A queue pair has one timer: for the acknowledgement of the oldest packet under way, as soon as one has asked for it
/// (IBA 9.7.6.1.3), or for a receiver that was not ready (9.7.5.2.8). It runs in the block ack_timers (ack_timers.h).
///
/// Ports, each of one item a cycle: commands out, expirations in.
///
/// Starts and stops come from transmit engine, completer, go-back and control, in their own cycle: they set until when
/// the queue pair's timer is to run (`deadline`). Where the block has to know, the queue pair enters the list of those
/// that are to be told of, and last in a cycle the first of these has its command sent, which tells what is wanted
/// then: a stop and a start that come before it are none or one.
///
/// The block is told of a stop, since an entry is for somebody else then, and of an end that is earlier than the one
/// that it knows (`armed`). It is not told of a later one: when the timer that it knows expires, the deadline is found
/// to be later, and what is left is a start (`timers_extended`). So an acknowledgement behind which others are to come
/// sends nothing.
///
/// Each start that is sent has a new tag. An expiration with another one, or of a queue pair whose timer was stopped
/// meanwhile, has crossed the command that says so: it is nobody's (`timers_crossed`).
///
/// What expires is the completer's: it is offered the queue pair (expired()) in each cycle until it has taken it
/// (end()); what is behind it waits in the channel.
///
/// Counters: timers_crossed, timers_extended; standstill.receiver_cycles and standstill.timeout_cycles, in which at
/// least one queue pair waited for a receiver that was not ready, or for an acknowledgement that did not come.
///
/// Registers: the list's ends. Its links, deadline, armed and tag are the queue pair's.
class timer_port {
 public:
  using context = icm::requester_context;
  struct port_set {
    sim::fifo_out<timer_command>& commands;
    sim::fifo_in<timer_expiration>& expirations;
  };
  timer_port(sim::clocked_block& owner, port_set ports, qp_table& qps);
  void announce(sim::statistics& to);

  /// The queue pair's timer is to run, or runs.
  static bool is_on(const qp_runtime& r) { return r.timer.deadline != sim::never; }
  /// For an acknowledgement, if one is to come and none runs.
  void start(const context& c, qp_runtime& r) {
    if (!is_on(r)) want(r, deadline_of(c, r));
  }
  /// A packet was sent, `psn` to before next_psn. One that runs while a queue pair goes back is over with the first;
  /// what asks begins the next.
  void sent(const context& c, qp_runtime& r, wire::psn_t psn, bool asks) {
    if (psn.value() == c.unacked_psn) r.progress.asked = psn;  // what was asked for is answered, or goes again
    const bool goes_back = r.progress.retrying && nothing_asked(c, r);
    if (asks) r.progress.asked = wire::psn_t(c.next_psn);
    goes_back ? restart(c, r) : start(c, r);
  }
  /// Anew: something has been acknowledged, or was sent again.
  void restart(const context& c, qp_runtime& r) { want(r, deadline_of(c, r)); }
  /// Until the receiver is ready, by the code of its answer; it takes the place of the other.
  void wait_for_receiver(qp_runtime& r, std::uint8_t syndrome);
  void stop(qp_runtime& r) { want(r, sim::never); }

  /// QP whose time has come, or none; one expiration a cycle is looked at.
  qp_runtime* expired();
  /// That one's is served: it has no timer any more.
  void end(qp_runtime& r);
  /// It was for an acknowledgement that did not come: counted as a wait in vain. Behind end().
  void was_in_vain(const qp_runtime& r) { in_vain_.ended(r.timer.since, owner_.now()); }

  /// The command of the first that is to be told of; last in a cycle.
  void send() {
    if (!waiting_.empty()) send_first();
  }
  /// The block knows what is wanted for the queue pair, or for all of them; it takes the last command a cycle later.
  bool told(const qp_runtime& r) const { return !waiting_.has(r); }
  bool told() const { return waiting_.empty(); }

 private:
  void send_first();
  void receiver_waits(qp_runtime& r, bool waits);
  sim::cycle_t deadline_of(const context& c, const qp_runtime& r) const;
  static bool nothing_asked(const context& c, const qp_runtime& r);
  void want(qp_runtime& r, sim::cycle_t deadline) {
    r.timer.deadline = deadline;
    r.timer.since = owner_.now();
    if (r.timer.for_receiver) receiver_waits(r, false);
    if (deadline < r.timer.armed || (deadline == sim::never && r.timer.armed != sim::never)) waiting_.push(qps_, r);
  }

  sim::clocked_block& owner_;
  port_set ports_;
  qp_table& qps_;
  sim::cycle_t unit_;                 // cycles of 4.096 us
  qp_queue waiting_{qp_list::timer};  // to be told of
  standstill_clock for_receivers_;
  vain_waits in_vain_;
  std::uint64_t crossed_ = 0, extended_ = 0;
};

}  // namespace rnic::transport
