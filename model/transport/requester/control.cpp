// SPDX-License-Identifier: Apache-2.0
// The requester's registers, and what firmware's commands do to queue pairs.
#include "model/transport/requester/control.h"

#include <algorithm>

#include "model/sim/check.h"
#include "model/transport/congestion/qcn_cr.h"
#include "model/transport/requester/rules.h"
#include "model/transport/transport_cr.h"

namespace rnic::transport {

using result = context_memory::result;

// The responder found an error, or a completion was lost: everything not yet complete is flushed.
void requester_control::take_errors() {
  if (ports_.errors.can_pop() && stop_for(ports_.errors.front().qpn, false)) ports_.errors.pop();
  if (!ports_.lost.bound()) return;
  if (ports_.lost.can_pop() && stop_for(ports_.lost.front().qpn, true)) ports_.lost.pop();
}

// False: not now. `fatal`: nobody has told software yet.
bool requester_control::stop_for(std::uint32_t qpn, bool fatal) {
  if (!qps_.legal(qpn) || qps_[qpn].stop.halted || qps_[qpn].stop.flushing) return true;
  if (to_.back.busy(qps_[qpn]) || (fatal && !ports_.events.claim())) return false;
  context* c = nullptr;
  const result found = contexts_.ask(qpn, c);
  if (found == result::pending) return false;
  if (found == result::hit && !contexts_.access(context_memory::control, qpn)) return false;
  if (found != result::hit || c->qpn != qpn || c->state == icm::qp_state::error) return true;
  to_.back.enter_error(*c, qps_[qpn]);
  contexts_.mark_dirty(qpn);
  if (!fatal) return true;
  completion::event_request e;
  e.type = static_cast<std::uint8_t>(abi::eqe::event::wq_catastrophic);
  e.function = c->function;
  e.set(abi::eqe::number, qpn);
  ports_.events.push(e);
  return true;
}

void requester_control::work() {
  if (!halts_.empty()) halt();
  if (resetting_ && halts_.empty()) finish_reset();
  if (!command_.idle()) command();
}

void requester_control::halt() {
  qp_runtime& first = qps_[halts_.front()];
  if (halt_step(first)) {
    // No message, no packet in gather, no response in scatter, no read of its queue, no timer.
    RNIC_ASSERT(first.head == no_index && first.nothing_under_way() && !timer_port::is_on(first),
                owner_.name() + ": a halted queue pair has something under way");
    halts_.pop(qps_);
    first.stop.halting = first.stop.flushing = false;
    first.stop.halted = true;
  }
  if (!halts_.empty()) owner_.wake_next();
}

// QPs at rest have nothing to be discarded but their context, which goes with all of them in the end.
void requester_control::reset() {
  to_.leaving.take_left();
  to_.reader.take_results();
  qps_.for_each([this](qp_runtime& r) {
    const bool rests =
        r.head == no_index && r.turn.unit < 0 && r.nothing_under_way() && !r.stop.halting && !to_.back.busy(r);
    to_.timers.stop(r);
    to_.units.still().end(r.turn.waits_for, owner_.now());
    r.stop.halted = rests;
    r.keys.valid = false;
    if (rests) return;
    r.stop.halting = r.stop.discard = true;
    to_.back.withdraw_all(r);
    halts_.push(qps_, r);
  });
  to_.reader.forget_all();
  ports_.grants.for_each([](scheduler::grant& g) { g.descriptor.reset(); });
  selected_ = 0;
  settings_ = {};
  settings_.port_mtu.fill(config_.port_mtu);
  to_.diagnostics.clear();
  to_.drained.clear();
  command_.end();
  resetting_ = true;
  if (halts_.empty()) finish_reset();
  owner_.wake_next();
}

// The timers of queue pairs at rest are told of one a cycle as well.
void requester_control::finish_reset() {
  if (!to_.timers.told()) return owner_.wake_next();
  contexts_.drop_all();
  to_.limiter.clear();
  to_.pace.vports().clear();
  resetting_ = false;
}

// True: nothing of the QP is on chip any more, an entry for its timer neither: the number may be another's then.
bool requester_control::halt_step(qp_runtime& r) {
  if (!r.stop.flushing && !take_messages(r)) return false;
  contexts_.flush(r.qpn);
  return !contexts_.busy(r.qpn) && to_.timers.told(r);
}

// What is under way ends, what is complete is reported, and the rest is forgotten; then only the context is left.
// False: not all of it yet.
bool requester_control::take_messages(qp_runtime& r) {
  if (r.turn.unit >= 0 || !r.nothing_under_way() || to_.back.busy(r)) return false;
  context* c = nullptr;
  const result found = contexts_.ask(r.qpn, c);
  if (found == result::pending) return false;
  if (c != nullptr && found == result::hit) {
    if (!contexts_.access(context_memory::control, r.qpn)) return false;
    if (!r.stop.discard && r.head != no_index && is_complete(to_.messages[r.head], unacked_psn(*c))) {
      to_.messages.may_complete(r);
      return false;
    }
    if (!r.stop.discard && c->state == icm::qp_state::rts) drained_queues::note_begun(*c, r, to_.messages);
    if (!r.stop.discard && r.head != no_index) save_position(*c, r);
    if (r.head == no_index) c->outstanding = c->rd_outstanding = 0;
    contexts_.mark_dirty(r.qpn);
  }
  if (r.head != no_index) {  // also of a context that host memory has lost
    to_.back.discard(r);
    return false;
  }
  to_.timers.stop(r);
  to_.units.still().end(r.turn.waits_for, owner_.now());
  r.progress.rnr_wait = r.progress.retrying = r.failing = r.progress.resends = r.needs_receive = false;
  r.withdraw.repeated = 0;
  r.reads.open();
  if (r.stop.discard) r.keys.valid = false;
  for (send_unit& u : to_.units)
    if (u.window.is_of(r.qpn)) to_.reader.forget(u);
  if (r.stop.discard) to_.limiter.forget(r.qpn);
  r.stop.flushing = true;
  return true;
}

// The oldest message that is not complete, from its first unacknowledged packet on, is what comes next.
void requester_control::save_position(context& c, const qp_runtime& r) {
  const message& m = to_.messages[r.head];
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
void requester_control::command() {
  const std::uint32_t qpn = command_.qpn();
  qp_runtime* const r = qps_.legal(qpn) ? &qps_[qpn] : nullptr;
  if (r != nullptr && to_.back.busy(*r)) return;
  if (command_.at() != decltype(command_)::step::change) {
    const bool asked = command_.at() == decltype(command_)::step::publish;
    if (asked && r != nullptr && r->turn.unit >= 0 && to_.units.of(*r)->pinned)
      contexts_.mark_dirty(qpn);  // the unit tells of its changes only at its end
    return command_.publish(contexts_);
  }
  context* c = nullptr;
  const result found = contexts_.ask(qpn, c);
  if (found == result::pending) return;
  if (found == result::hit && !contexts_.access(context_memory::control, qpn)) return;
  const bool there = found == result::hit && c->qpn == qpn;
  const icm::qp_state was = there ? c->state : icm::qp_state::reset;
  if (there && r != nullptr && was == icm::qp_state::rts) drained_queues::note_begun(*c, *r, to_.messages);
  const bool changed = there && icm::change(*c, command_.settings(), command_.how());
  command_.end(!changed);
  if (!changed) return;
  contexts_.mark_dirty(qpn);
  if (r != nullptr) after_change(*c, *r, was);
}

// What is under way goes on. A send queue that is stopped or started, or a new limit, is seen by the unit at once.
void requester_control::after_change(context& c, qp_runtime& r, icm::qp_state was) {
  to_.timers.start(c, r);
  to_.pace.change_limit(c, r);
  if (c.state == was) return;
  to_.units.restart(r);
  if (was == icm::qp_state::rts && c.state == icm::qp_state::sqd) to_.drained.tell(r.qpn);
  if (c.state == icm::qp_state::rts) to_.resumes.resume(r);
  owner_.wake_next();
}

std::uint32_t requester_control::read(std::uint32_t offset) const {
  switch (offset) {
    case cr::qp_select:
      return selected_;
    case cr::qp_status:
      if (command_.busy_with(selected_) || (qps_.known(selected_) && qps_[selected_].stop.halting))
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
    case cr::port_map:
      return settings_.ports.value();
    case cr::vport_rate:
      return to_.pace.vports().rate(settings_.vport);
    case cr::drained:
      return to_.drained.empty() ? 0 : cr::drained_valid | (to_.drained.front() & 0xffffff);
    default:
      break;
  }
  if (offset - cr::port_mtu < 4 * egress_ports) return settings_.port_mtu[(offset - cr::port_mtu) / 4];
  if (offset >= cr::qcn) return to_.limiter.qcn().read(offset, owner_.now_ps());
  return offset >= cr::diagnostics ? to_.diagnostics.read(offset - cr::diagnostics) : 0;
}

void requester_control::write(std::uint32_t offset, std::uint32_t value) {
  if (offset == cr::reset && value == 1) reset();
  if (offset == cr::drained && value == 1 && !to_.drained.empty()) to_.drained.pop();
  if (offset == cr::qp_select) selected_ = value;
  if (offset == cr::roce_v2_port) settings_.udp_port = static_cast<std::uint16_t>(value);
  if (offset == cr::reserved_lkey) settings_.reserved_lkey = value;
  if (offset == cr::special_qp_base) settings_.special_base = value;
  if (offset == cr::num_qps_log) settings_.num_qps_log = value;
  if (offset == cr::vport_select)
    settings_.vport = vport_rates::place(value >> cr::vport_port_shift, value, value >> cr::vport_priority_shift);
  if (offset == cr::vport_rate) to_.pace.vports().limit(settings_.vport, value);
  if (offset == cr::port_map && settings_.ports.write(value)) to_.credits.look_again();
  if (offset - cr::port_mtu < 4 * egress_ports) settings_.port_mtu[(offset - cr::port_mtu) / 4] = value;
  if (offset >= cr::qcn) return to_.limiter.qcn().write(offset, value, owner_.now_ps());
  if (command_.write(offset, value)) return;
  if (offset != cr::qp_command) return;
  if (value == cr::qp_command_publish || value == cr::qp_command_change) {
    using step = decltype(command_)::step;
    command_.begin(selected_, value == cr::qp_command_change ? step::change : step::publish);
    return owner_.wake_next();
  }
  if (qps_.legal(selected_)) halt_or_release(qps_[selected_], value);
}

void requester_control::halt_or_release(qp_runtime& r, std::uint32_t what) {
  if (what == cr::qp_command_release) {
    if (r.stop.halting) return;
    if (r.stop.discard)
      ports_.grants.for_each([this](scheduler::grant& g) {
        if (g.qpn == selected_) g.descriptor.reset();
      });
    r.stop.halted = r.stop.discard = false;
    to_.resumes.resume(r);
  } else if (what == cr::qp_command_halt || what == cr::qp_command_discard) {
    r.stop.halting = true;
    r.stop.halted = false;
    r.stop.discard = what == cr::qp_command_discard;
    if (r.stop.discard) to_.back.withdraw_all(r);
    halts_.push(qps_, r);
  }
  owner_.wake_next();
}

}  // namespace rnic::transport
