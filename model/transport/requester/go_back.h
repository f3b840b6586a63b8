// SPDX-License-Identifier: Apache-2.0
// Go-back: the way of a queue pair back to a message that is sent again, fails, or was never finished.
#pragma once

#include <cstdint>

#include "model/icm/contexts.h"
#include "model/sim/clocked_block.h"
#include "model/sim/memory_ports.h"
#include "model/sim/server.h"
#include "model/sim/statistics.h"
#include "model/transport/requester/context_memory.h"
#include "model/transport/requester/message_table.h"
#include "model/transport/requester/resumptions.h"
#include "model/transport/requester/send_unit.h"
#include "model/transport/requester/tables.h"
#include "model/transport/requester/timer_port.h"
#include "model/transport/requester/withdrawals.h"

namespace rnic::transport {

/// Data sheet.
///
/// A retransmission moves the context back to a message and PSN, and forgets the messages behind it: they are executed
/// again from host memory. A failure does the same behind the message that failed, an error of the queue pair behind
/// the last message that completed. The context moves in the cycle of the command; then the engine walks, one queue
/// pair after the other:
///
/// Stages: walk, after an error, from the oldest message on, one a cycle, until one that is not complete (first the
/// context is read, for what is acknowledged); take back, one message a cycle, when completions do not use the release
/// port; settle, one access to the context, when there is nothing more: its counts of what is under way, and after an
/// error the WQE with which flushing begins. What is behind the message has been cut off in one cycle, if it is known.
///
/// A queue pair for which this is not over (`busy`) is not served: its unit stands still, responses, reports of gather
/// and scatter, timers, halts and commands for it wait in front. Its completions go on.
///
/// Which packets will not leave it writes last in a cycle, `withdrawal_ports` queue pairs a cycle in the order in which
/// failures, errors, discards, a reset and completions behind a retransmission ask for it; who is behind them waits
/// (withdrawals.go_back.waits counts the cycles), and his packets leave for so much longer.
///
/// Registers: queue pair of the walk, message at which it stands, counts; a list of queue pairs that wait for the walk,
/// another of those that wait for the write port of the withdrawals.
class go_back {
 public:
  using context = icm::requester_context;

  go_back(sim::clocked_block& owner, unsigned withdrawal_ports, qp_table& qps, context_memory& contexts,
          message_table& messages, unit_table& units, timer_port& timers, withdrawals& withdrawn, resumptions& resumes,
          const std::uint64_t& next_packet)
      : owner_(owner),
        qps_(qps),
        contexts_(contexts),
        messages_(messages),
        units_(units),
        timers_(timers),
        withdrawals_(withdrawn),
        withdrawal_ports_(owner, "withdrawals", withdrawal_ports, {{"go_back", sim::access_kind::write}}),
        resumes_(resumes),
        next_packet_(next_packet),
        engine_(owner, "go_back_engine") {}
  void announce(sim::statistics& to) const;

  bool busy(const qp_runtime& r) const { return waiting_.has(r); }

  /// To message `index`, which holds `psn`: it stays, and is sent again from there on.
  void rewind(context& c, qp_runtime& r, std::uint32_t index, wire::psn_t psn);
  /// Message `index` will end in error, as soon as all before it are complete.
  void fail(context& c, qp_runtime& r, std::uint32_t index, std::uint8_t syn, std::uint8_t vendor, wire::psn_t psn);
  /// The QP, or its send queue alone, is in error: what is complete is still reported, the rest is flushed from the
  /// send queue. Behind a message that has failed (its end is told) all is flushed, from context's next_wqe on.
  void enter_error(context& c, qp_runtime& r, icm::qp_state state = icm::qp_state::error, bool behind_failure = false);
  /// All messages of the queue pair are forgotten.
  void discard(qp_runtime& r);
  /// What was sent again is acknowledged.
  void repeated(qp_runtime& r) const { r.withdraw.repeated = next_packet_; }
  /// Messages in front of the oldest one are complete: software has their buffers, so no packet of theirs that gather
  /// has not let go may read them.
  void withdraw_complete(qp_runtime& r);
  /// Packets of the QP that gather has not let go yet will not leave.
  void withdraw_all(qp_runtime& r) { withdraw(r, 0); }

  /// A message a cycle: before completions take theirs, and behind them.
  void walk();
  void take_back();
  /// What was withdrawn, by whomever, is written; behind all of them.
  void write_withdrawals();

 private:
  void withdraw(qp_runtime& r, std::uint64_t first);
  void cut(qp_runtime& r, std::uint32_t keep);
  void wait_for_walk(qp_runtime& r);
  void begin();
  context* context_of(const qp_runtime& r, bool& pending);

  sim::clocked_block& owner_;
  qp_table& qps_;
  context_memory& contexts_;
  message_table& messages_;
  unit_table& units_;
  timer_port& timers_;
  withdrawals& withdrawals_;
  sim::memory_ports withdrawal_ports_;
  resumptions& resumes_;
  const std::uint64_t& next_packet_;
  sim::server engine_;

  qp_queue waiting_{qp_list::back};          // the first one is being walked for
  qp_queue withdrawing_{qp_list::withdraw};  // for the write port
  struct registers {
    bool begun = false;             // for the first one
    bool read = false;              // its context,
    wire::psn_t unacked;            // of which this is
    std::uint32_t at = no_index;    // next message to be looked at
    std::uint32_t kept = no_index;  // the one before it, which is complete
    bool restarts = false;          // flushing begins with WQE next_wqe
    std::uint32_t next_wqe = 0;
    message_table::returned counts;
  } walk_;
  std::uint64_t retransmissions_ = 0, walked_ = 0, taken_back_ = 0;
};

/// A message has nothing left to wait for.
bool is_complete(const message& m, wire::psn_t unacked);

}  // namespace rnic::transport
