// SPDX-License-Identifier: Apache-2.0
// The requester's registers, and what firmware's commands do to queue pairs.
#include <algorithm>

#include "model/sim/check.h"
#include "model/transport/requester/requester.h"
#include "model/transport/requester/rules.h"
#include "model/transport/transport_cr.h"

namespace rnic::transport {

void requester::run_halts() {
  qp_runtime& first = qps_[halts_.front()];
  if (halt_step(first)) {
    check_at_rest(first);
    halts_.pop(qps_);
    first.halting = first.flushing = first.discard = false;
    first.halted = true;
  }
  if (!halts_.empty()) wake_next();
  if (halts_.empty() && resetting_) finish_reset();
}

// Of a halted QP nothing is under way: no message, no packet in gather, no response in scatter, no read of its queue.
void requester::check_at_rest(const qp_runtime& r) const {
  RNIC_ASSERT(r.head == no_index && nothing_under_way(r), name() + ": a halted queue pair has something under way");
}

// QPs at rest have nothing to be discarded but their context, which goes with all of them in the end.
void requester::device_reset() {
  take_left();
  take_descriptors();
  qps_.for_each([this](qp_runtime& r) {
    const bool rests = r.head == no_index && r.unit < 0 && nothing_under_way(r) && !r.halting && !go_back_.busy(r);
    timers_.stop(r);
    r.halted = rests;
    r.keys_valid = false;
    if (rests) return;
    r.halting = r.discard = true;
    go_back_.withdraw_all(r);
    halts_.push(qps_, r);
  });
  for (send_unit& u : units_) forget_descriptors(u);
  fetching_ = 0;
  selected_ = 0;
  settings_ = {};
  settings_.port_mtu.fill(config_.port_mtu);
  diagnostics_.clear();
  drained_.clear();
  command_.end();
  resetting_ = true;
  if (halts_.empty()) finish_reset();
  wake_next();
}

void requester::finish_reset() {
  contexts_.drop_all();
  limiter_.clear();
  resetting_ = false;
}

// True: nothing of the QP is on chip any more.
bool requester::halt_step(qp_runtime& r) {
  if (!r.flushing) {
    if (r.unit >= 0 || !nothing_under_way(r) || go_back_.busy(r)) return false;
    context* c = nullptr;
    const auto found = contexts_.ask(r.qpn, c);
    if (found == decltype(contexts_)::result::pending) return false;
    if (found == decltype(contexts_)::result::hit) {
      if (!r.discard && r.head != no_index && is_complete(messages_[r.head], unacked_psn(*c))) {
        messages_.may_complete(r);
        return false;
      }
      if (!r.discard && c->state == icm::qp_state::rts) drained_queues::note_begun(*c, r, messages_);
      if (r.head != no_index) {
        if (!r.discard) save_position(*c, r);
        contexts_.use(r.qpn);
        contexts_.mark_dirty(r.qpn);
        go_back_.discard(r);
        return false;
      }
      c->outstanding = 0;
      c->rd_outstanding = 0;
      contexts_.use(r.qpn);
      contexts_.mark_dirty(r.qpn);
    } else if (r.head != no_index) {  // host memory has lost the context: the messages go all the same
      go_back_.discard(r);
      return false;
    }
    timers_.stop(r);
    r.rnr_wait = r.retrying = r.failing = r.resends = r.needs_receive = false;
    r.reads.open();
    if (r.discard) r.keys_valid = false;
    for (send_unit& u : units_)
      if (u.window.is_of(r.qpn)) forget_descriptors(u);
    if (r.discard) limiter_.forget(r.qpn);
    r.flushing = true;
  }
  contexts_.flush(r.qpn);
  return !contexts_.busy(r.qpn);
}

// The oldest message that is not complete, from its first unacknowledged packet on, is what comes next.
void requester::save_position(context& c, qp_runtime& r) {
  const message& m = messages_[r.head];
  if (m.local) {
    c.next_wqe = m.wqe_index;
    return;
  }
  c.next_wqe = m.wqe_index;
  c.message_offset = unacked_psn(c).since(m.first_psn) * mtu_of(c);
  c.next_psn = c.unacked_psn;
}

// Of a queue pair that goes on working: what is on chip goes to ICM, or software's fields come from firmware. XRC
// targets, whose numbers are beyond those that send, have no more than a context here.
void requester::work_command() {
  const std::uint32_t qpn = command_.qpn();
  qp_runtime* const r = qps_.legal(qpn) ? &qps_[qpn] : nullptr;
  if (r != nullptr && go_back_.busy(*r)) return;
  if (command_.at() != decltype(command_)::step::change) {
    const bool asked = command_.at() == decltype(command_)::step::publish;
    if (asked && r != nullptr && r->unit >= 0 && units_.of(*r)->pinned)
      contexts_.mark_dirty(qpn);  // the unit tells of its changes only at its end
    return command_.publish(contexts_);
  }
  context* c = nullptr;
  const auto found = contexts_.lookup(qpn, c);
  if (found == decltype(contexts_)::result::pending) return;
  const bool there = found == decltype(contexts_)::result::hit && c->qpn == qpn;
  const icm::qp_state was = there ? c->state : icm::qp_state::reset;
  if (there && r != nullptr && was == icm::qp_state::rts) drained_queues::note_begun(*c, *r, messages_);
  const bool changed = there && icm::change(*c, command_.settings(), command_.how());
  command_.end(!changed);
  if (!changed) return;
  contexts_.mark_dirty(qpn);
  if (r != nullptr) changed_by_command(*c, *r, was);
}

// What is under way goes on. A send queue that is stopped or started, or a new limit, is seen by the unit at once.
void requester::changed_by_command(context& c, qp_runtime& r, icm::qp_state was) {
  timers_.start(c, r);
  change_limit(c, r);
  if (c.state == was) return;
  units_.restart(r);
  if (was == icm::qp_state::rts && c.state == icm::qp_state::sqd) drained_.tell(r.qpn);
  if (c.state == icm::qp_state::rts) resumes_.resume(r);
  wake_next();
}

std::uint32_t requester::cr_read(std::uint32_t offset) {
  switch (offset) {
    case cr::qp_select:
      return selected_;
    case cr::qp_status:
      if (command_.busy_with(selected_) || (qps_.known(selected_) && qps_[selected_].halting))
        return cr::qp_status_busy;
      return command_.refused() ? cr::qp_status_refused : 0;
    case cr::reset:
      return resetting_ ? 1 : 0;
    case cr::roce_v2_port:
      return settings_.udp_port;
    case cr::reserved_lkey:
      return settings_.reserved_lkey;
    case cr::special_qp_base:
      return settings_.special_base;
    case cr::num_qps_log:
      return settings_.num_qps_log;
    case cr::drained:
      return drained_.empty() ? 0 : cr::drained_valid | (drained_.front() & 0xffffff);
    default:
      break;
  }
  if (offset - cr::port_mtu < 4 * ports) return settings_.port_mtu[(offset - cr::port_mtu) / 4];
  return offset >= cr::diagnostics ? diagnostics_.read(offset - cr::diagnostics) : 0;
}

void requester::cr_write(std::uint32_t offset, std::uint32_t value) {
  if (offset == cr::reset && value == 1) device_reset();
  if (offset == cr::drained && value == 1 && !drained_.empty()) drained_.pop();
  if (offset == cr::qp_select) selected_ = value;
  if (offset == cr::roce_v2_port) settings_.udp_port = static_cast<std::uint16_t>(value);
  if (offset == cr::reserved_lkey) settings_.reserved_lkey = value;
  if (offset == cr::special_qp_base) settings_.special_base = value;
  if (offset == cr::num_qps_log) settings_.num_qps_log = value;
  if (offset - cr::port_mtu < 4 * ports) settings_.port_mtu[(offset - cr::port_mtu) / 4] = value;
  if (command_.write(offset, value)) return;
  if (offset != cr::qp_command) return;
  if (value == cr::qp_command_publish || value == cr::qp_command_change) {
    using step = decltype(command_)::step;
    command_.begin(selected_, value == cr::qp_command_change ? step::change : step::publish);
    return wake_next();
  }
  if (!qps_.legal(selected_)) return;
  qp_runtime& r = qps_[selected_];
  if (value == cr::qp_command_release) {
    if (r.halting) return;
    r.halted = false;
    resumes_.resume(r);
  } else if (value == cr::qp_command_halt || value == cr::qp_command_discard) {
    r.halting = true;
    r.halted = false;
    r.discard = value == cr::qp_command_discard;
    if (r.discard) go_back_.withdraw_all(r);
    halts_.push(qps_, r);
  }
  wake_next();
}

}  // namespace rnic::transport
