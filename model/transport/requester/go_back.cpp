// SPDX-License-Identifier: Apache-2.0
// Go-back: where a queue pair goes on, and the messages that are forgotten with it.
#include "model/transport/requester/go_back.h"

#include <algorithm>

#include "model/sim/seldom.h"
#include "model/transport/requester/drain.h"
#include "model/transport/requester/rules.h"

namespace rnic::transport {

bool is_complete(const message& m, wire::psn_t unacked) {
  if (m.syndrome != 0) return m.writes == 0;
  if (m.local) return m.sent;
  if (m.read) return m.answered() && m.writes == 0;
  return m.last_psn.before(unacked);
}

void go_back::announce(sim::statistics& to) const {
  to.add(owner_.name() + ".retransmissions", retransmissions_);
  to.add(owner_.name() + ".go_back.walked", walked_);
  to.add(owner_.name() + ".go_back.taken_back", taken_back_);
  withdrawal_ports_.announce(to);
}

// Its context is needed at the end, and stays on chip: units keep theirs while their queue pairs wait behind this one,
// and might leave it no place to come back to.
void go_back::wait_for_walk(qp_runtime& r) {
  if (waiting_.has(r)) return;
  waiting_.push(qps_, r);
  context* c = nullptr;
  r.kept_for_back = contexts_.ask(r.qpn, c) == context_memory::result::hit;
  if (r.kept_for_back) contexts_.pin(r.qpn);
  owner_.wake_next();
}

void go_back::cut(qp_runtime& r, std::uint32_t keep) {
  if (messages_.cut_behind(r, keep)) wait_for_walk(r);
}

void go_back::rewind(context& c, qp_runtime& r, std::uint32_t index, wire::psn_t psn) {
  message& m = messages_[index];
  if (c.state == icm::qp_state::rts)
    drained_queues::note_begun(c, r, messages_);  // also what is forgotten now has to end before SQD
  cut(r, index);
  if (!r.progress.resends || r.progress.sent_before.before(next_psn(c))) r.progress.sent_before = next_psn(c);
  r.progress.resends = true;
  r.withdraw.repeated = ~std::uint64_t{0};
  m.asked_from = psn.since(m.first_psn);
  r.progress.asked = r.progress.heard = psn;
  c.next_wqe = m.wqe_index;
  c.message_offset = m.asked_from * mtu_of(c);
  c.next_psn = psn.value();
  r.failing = false;
  ++retransmissions_;
  units_.restart(r);
}

void go_back::fail(context& c, qp_runtime& r, std::uint32_t index, std::uint8_t syn, std::uint8_t vendor,
                   wire::psn_t psn) {
  message& m = messages_[index];
  cut(r, index);
  m.syndrome = syn;
  m.vendor = vendor;
  c.next_wqe = m.wqe_index + m.strides;
  c.message_offset = 0;
  c.next_psn = psn.value();
  r.failing = true;
  // Of the message and of what is behind it. What is before it still leaves.
  withdraw(r, m.first_packet);
  units_.restart(r);
  messages_.may_complete(r);
  owner_.wake_next();
}

void go_back::enter_error(context& c, qp_runtime& r, icm::qp_state state, bool behind_failure) {
  c.message_offset = 0;
  c.state = state;
  r.failing = r.progress.rnr_wait = r.progress.retrying = false;
  timers_.stop(r);
  withdraw_all(r);
  units_.restart(r);
  if (r.head != no_index && behind_failure) {
    cut(r, no_index);
  } else if (r.head != no_index) {
    r.unwalked = true;
    wait_for_walk(r);
    messages_.may_complete(r);
  }
  resumes_.resume(r);
  owner_.wake_next();
}

void go_back::discard(qp_runtime& r) { cut(r, no_index); }

void go_back::withdraw_complete(qp_runtime& r) {
  const std::uint64_t behind = r.head == no_index ? next_packet_ : messages_[r.head].first_packet;
  if (r.withdraw.repeated <= behind) r.withdraw.repeated = 0;
  if (r.under_way.packets == 0) return;
  r.withdraw.complete = behind;
  withdrawing_.push(qps_, r);
  owner_.wake_next();
}

// Packets that are started from now on are not withdrawn, however long the write waits for its port.
void go_back::withdraw(qp_runtime& r, std::uint64_t first) {
  r.withdraw.repeated = 0;  // this has more of them
  r.withdraw.first = r.withdraw.behind != 0 ? std::min(r.withdraw.first, first) : first;
  r.withdraw.behind = next_packet_;
  withdrawing_.push(qps_, r);
  owner_.wake_next();
}

void go_back::write_withdrawals() {
  while (sim::seldom(!withdrawing_.empty()) && withdrawal_ports_.try_access(0)) {
    qp_runtime& r = withdrawing_.pop(qps_);
    withdrawals_.write(r.qpn, {r.withdraw.first, r.withdraw.behind, r.withdraw.complete}, owner_.now());
    r.withdraw.first = r.withdraw.behind = r.withdraw.complete = 0;
  }
}

go_back::context* go_back::context_of(const qp_runtime& r, bool& pending) {
  context* c = nullptr;
  const auto found = contexts_.ask(r.qpn, c);
  const bool there = found == context_memory::result::hit;
  pending = found == context_memory::result::pending || (there && !contexts_.access(context_memory::go_back, r.qpn));
  return there ? c : nullptr;
}

void go_back::begin() {
  if (walk_.begun) return;
  engine_.begin();
  walk_ = {};
  walk_.begun = true;
}

void go_back::walk() {
  if (sim::mostly(waiting_.empty())) return;
  qp_runtime& r = qps_[waiting_.front()];
  if (!r.unwalked) return;
  begin();
  owner_.wake_next();
  if (!walk_.read) {
    bool pending = false;
    const context* const c = context_of(r, pending);
    if (pending) return;
    walk_.read = true;
    walk_.unacked = c != nullptr ? unacked_psn(*c) : wire::psn_t();
    walk_.at = r.head;
  }
  const std::uint32_t at = walk_.at;
  if (at != no_index && messages_[at].syndrome == 0 && is_complete(messages_[at], walk_.unacked)) {
    walk_.kept = at;
    walk_.at = messages_[at].next;
    ++walked_;
    return;
  }
  r.unwalked = false;
  walk_.restarts = at != no_index;
  if (walk_.restarts) walk_.next_wqe = messages_[at].wqe_index;
  // What was kept may have been completed meanwhile.
  messages_.cut_behind(r, at == r.head ? no_index : walk_.kept);
}

void go_back::take_back() {
  if (sim::mostly(waiting_.empty())) return;
  qp_runtime& r = qps_[waiting_.front()];
  if (r.unwalked) return owner_.wake_next();
  begin();
  if (r.cut != no_index) {
    if (messages_.may_release(message_table::by_go_back)) {
      messages_.release_cut(r, walk_.counts);
      ++taken_back_;
    }
    return owner_.wake_next();
  }
  bool pending = false;
  context* const c = context_of(r, pending);
  if (pending) return;
  if (c != nullptr) {
    walk_.counts.take_off(*c);
    if (walk_.restarts) c->next_wqe = walk_.next_wqe;
    contexts_.mark_dirty(r.qpn);
  }
  if (r.kept_for_back) contexts_.unpin(r.qpn);
  r.kept_for_back = false;
  waiting_.pop(qps_);
  walk_.begun = false;
  engine_.end();
  owner_.wake_next();
}

}  // namespace rnic::transport
