// SPDX-License-Identifier: Apache-2.0
// Processing units: from the grant of a QP to a parsed WQE for the transmit engine.
#include "model/transport/requester/processing_units.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/scheduler/scheduler_if.h"
#include "model/sim/beats.h"
#include "model/sim/followed_requests.h"
#include "model/sim/seldom.h"
#include "model/transport/requester/ethernet_send.h"
#include "model/transport/requester/message_entry.h"
#include "model/transport/requester/mlx_wqe.h"
#include "model/transport/requester/rules.h"

namespace rnic::transport {

namespace {
using report_kind = scheduler::report::kind;

bool executes(icm::service type) {
  return icm::is_reliable(type) || type == icm::service::uc || type == icm::service::ud ||
         type == icm::service::ethernet;
}
}  // namespace

void processing_units::announce(sim::statistics& to) const {
  const std::pair<const char*, const std::uint64_t*> all[] = {{"blueflame_used", &counts_.blueflame_used},
                                                              {"wrong_uar", &counts_.wrong_uar},
                                                              {"no_context", &counts_.no_context},
                                                              {"bad_grant", &counts_.bad_grant},
                                                              {"stalls", &counts_.stalls},
                                                              {"unit_busy_cycles", &counts_.busy_cycles},
                                                              {"unit_context_cycles", &counts_.context_cycles}};
  for (const auto& [n, counter] : all) to.add(owner_.name() + "." + n, *counter);
  reader_.announce(to);
  keys_.announce(to);
}

void processing_units::take_grant() {
  const std::uint32_t all = static_cast<std::uint32_t>((std::uint64_t{1} << units_.size()) - 1);
  if (ports_.grants.can_pop() && busy_ != all) {
    scheduler::grant g = ports_.grants.pop();
    const unsigned best = reader_.choose_unit(g, busy_);
    send_unit& u = units_[best];
    busy_ |= 1u << best;
    u.at = send_unit::state::context;
    u.grant = std::move(g);
    u.span = u.grant.span;
    u.ctx = nullptr;
    u.pinned = u.entries.missed = u.entries.second_missed = u.entries.second_found = u.at_wqe.current =
        u.at_wqe.awaited = false;
    u.stall = 0;
    u.granted_at = owner_.edge();
    u.busy_until = 0;
    u.turn_wqes = u.turn_bytes = 0;
    u.stamp_tries = 0;
    u.keys = send_unit::keys_state::none;
    qp_runtime& r = qps_[u.grant.qpn];
    r.turn.unit = static_cast<std::int8_t>(best);
    units_.still().end(r.turn.waits_for, owner_.edge());
    owner_.wake_next();
  }
}

// A unit stands still while an address that it needs is fetched.
void processing_units::take_addresses() {
  if (!ports_.addresses.can_pop()) return;
  ports_.addresses.take_due([this](const gather_address& a) {
    send_unit& u = units_[a.unit];
    u.busy_until += a.missed_for;
    if (--u.translating == 0) translating_ &= ~units_.mask_of(u);
  });
  ports_.addresses.set_quiet(translating_ == 0);
}

// Only those that can go on: a unit rests until its descriptors are there, its service time is over, or the context
// cache has moved.
void processing_units::work() {
  if (serving_ != 0 && owner_.edge() >= serving_until_) end_service();
  if (sim::seldom(missing_ != 0) && contexts_.progress() != missing_since_) missing_ = 0;
  const std::uint32_t resting =
      units_.sendable() | reader_.fetching() | serving_ | missing_ | translating_ | keys_.operating();
  for (std::uint32_t rest = busy_ & ~resting; rest != 0; rest &= rest - 1)
    step(units_[static_cast<unsigned>(__builtin_ctz(rest))]);
}

void processing_units::end_service() {
  serving_until_ = sim::never;
  for (std::uint32_t rest = serving_; rest != 0; rest &= rest - 1) {
    const unsigned i = static_cast<unsigned>(__builtin_ctz(rest));
    if (units_[i].busy_until <= owner_.edge())
      serving_ &= ~(1u << i);
    else
      serving_until_ = std::min(serving_until_, units_[i].busy_until);
  }
  if (serving_ != 0)
    owner_.wake_at(serving_until_);  // a miss of an address has made it longer than it was when it was booked
}

// True: the unit rests until the service time of its last WQE is over, with the misses of its addresses.
bool processing_units::in_service(const send_unit& u) {
  if (u.busy_until <= owner_.edge()) {
    if (!config_.translation_blocks || u.translating == 0) return false;
    translating_ |= units_.mask_of(u);
    ports_.addresses.set_quiet(false);
    return true;
  }
  serving_ |= units_.mask_of(u);
  serving_until_ = std::min(serving_until_, u.busy_until);
  owner_.wake_at(u.busy_until);
  return true;
}

void processing_units::step(send_unit& u) {
  if (u.at == send_unit::state::context) open_context(u);
  if (u.window.wants() && (u.at == send_unit::state::work || u.at == send_unit::state::fetch)) reader_.ask(u);
  if (u.at == send_unit::state::fetch && !u.window.under_way()) reader_.finish(u);
  if (u.at == send_unit::state::work) advance(u);
  if (u.at == send_unit::state::finish) push_report(u);
}

void processing_units::open_context(send_unit& u) {
  const std::uint32_t qpn = u.grant.qpn;
  qp_runtime& r = qps_[qpn];
  if (r.stop.halting || r.stop.halted) return units_.end_turn(u, report_kind::stalled);
  context* c = nullptr;
  const auto found = contexts_.ask(qpn, c);
  if (found == context_memory::result::pending) {
    if (!u.entries.missed) u.stall += config_.miss_stall_cycles;
    u.entries.missed = true;
    return await_context(u);
  }
  if (found == context_memory::result::refused || c->qpn != qpn ||
      !(executes(c->type) || is_special(*c, settings_.special_base))) {
    if (u.grant.doorbell) ++counts_.no_context;  // else a command has only asked it to look again
    return units_.end_turn(u, report_kind::idle);
  }
  if (icm::is_reliable(c->type) && !u.entries.second_found && !second_entry(u)) return;
  u.entries.second_found = true;
  if (!contexts_.access(context_memory::units, qpn)) return;
  if (u.grant.doorbell && u.grant.uar != scheduler::uar_of(c->function, c->uar)) {
    ++counts_.wrong_uar;
    u.grant.descriptor.reset();
    if (!r.turn.has_work) return units_.end_turn(u, report_kind::idle);
  }
  u.lone = u.grant.doorbell && u.grant.descriptor && !u.grant.more && !r.turn.has_work;
  u.at_wqe.behind_end = u.grant.doorbell && !r.turn.has_work && !r.turn.stalled;
  r.turn.has_work = false;
  r.turn.priority = c->dest.priority & 7;
  contexts_.pin(qpn);
  u.pinned = true;
  u.ctx = c;
  u.at = send_unit::state::work;
  if (sim::seldom(u.entries.missed)) counts_.context_cycles += owner_.edge() - u.granted_at;
  spans_.leave(u.span, owner_.name(), "qp context", owner_.now_ps(),
               u.entries.missed ? sim::wait::context_miss : sim::wait::none);
}

void processing_units::await_context(const send_unit& u) {
  if (missing_ == 0) missing_since_ = contexts_.progress();
  missing_ |= units_.mask_of(u);
}

// That of an acknowledged QP's context. One that the unit has waited for may have been driven out again: it goes on.
bool processing_units::second_entry(send_unit& u) {
  using result = context_memory::result;
  const result found = contexts_.second(u.grant.qpn, !u.entries.second_missed);
  if (found == result::hit) return true;
  if (found == result::pending && !u.entries.second_missed) {
    u.entries.second_missed = u.entries.missed = true;
    u.stall += config_.miss_stall_cycles;
  }
  await_context(u);
  return false;
}

// Between two WQEs, and after everything that may have moved the QP's position.
void processing_units::advance(send_unit& u) {
  if (qps_[u.grant.qpn].must_stop()) return units_.end_turn(u, report_kind::stalled);
  if (to_.back.busy(qps_[u.grant.qpn])) return;  // its place is not known yet
  context& c = *u.ctx;
  switch (c.state) {
    case icm::qp_state::error:
    case icm::qp_state::sq_error:
      return flush_one(u);
    case icm::qp_state::rts:
      break;
    case icm::qp_state::sq_draining:
      if (drained_queues::left(c)) break;
      to_.drained.check(c, qps_[u.grant.qpn]);
      return units_.end_turn(u, report_kind::idle);
    case icm::qp_state::sqd:
      return units_.end_turn(u, report_kind::idle);
    default:
      if (u.grant.doorbell) ++counts_.bad_grant;
      return units_.end_turn(u, report_kind::idle);
  }
  if (!u.at_wqe.current && !load(u)) return;
  const bool had_turn = u.turn_wqes >= config_.turn_wqes || u.turn_bytes >= config_.turn_bytes;
  if (u.wqe.error != 0 || u.wqe.local) {
    if (had_turn) return units_.end_turn(u, report_kind::more);
    if (run_local(u)) owner_.wake_next();
    return;
  }
  if (in_service(u)) return;
  if (had_turn) return units_.end_turn(u, report_kind::more);
  units_.offer(u);  // start_packets() comes later in this tick
}

// Parses WQE next_wqe if it is on chip, else starts to read it. False: not now.
//
// The scheduler merges into a grant the doorbells that came before it, and grants again for one that comes later. So
// what was read since the QP's last grant by doorbell shows all that there is to execute: a header there that is
// software's is the queue's end. One that was read before says nothing.
bool processing_units::load(send_unit& u) {
  const context& c = *u.ctx;
  const std::uint32_t n = c.next_wqe;
  const scheduler::blueflame_ptr& bf = u.grant.descriptor;
  if (!bf && u.lone) {  // executed, and there was no other doorbell
    units_.end_turn(u, report_kind::idle);
    return false;
  }
  if (bf && bf->index == (n & 0xffff)) {
    const bool loaded = load_from(u, bf->bytes.data(), bf->length);
    u.grant.descriptor.reset();
    if (loaded) {
      ++counts_.blueflame_used;
      u.at_wqe.taking = 0;
      return true;
    }
  } else if (bf && u.lone && ((n - bf->index) & 0xffff) < 0x8000) {  // it was read from the ring meanwhile
    units_.end_turn(u, report_kind::idle);
    return false;
  }
  u.lone = false;
  if (u.window.holds(c, n)) {
    const std::uint32_t at = u.window.place_of(c, n);
    if (load_from(u, u.window.at(at), u.window.held() - at)) {
      constexpr unsigned line = abi::wqe::inline_data::boundary;
      const std::uint32_t taken = (u.wqe.size + line - 1) / line * line;
      u.at_wqe.taking = config_.descriptor_cycles + static_cast<unsigned>(sim::whole(taken, config_.datapath_bytes));
      reader_.read_ahead(u, at + (u.at_wqe.strides << c.log_sq_stride));
      return true;
    }
    if (u.window.ends_at(c, at)) {
      units_.end_turn(u, report_kind::idle);
      return false;
    }
  }
  reader_.start(u);
  return false;
}

// `bytes`: what is on chip of the WQE. False: not all of it, or not valid.
bool processing_units::load_from(send_unit& u, const std::uint8_t* bytes, std::uint32_t available) {
  const context& c = *u.ctx;
  const std::uint32_t n = c.next_wqe;
  if (available < 16 || wqe_owner(bytes) != ((n >> c.log_sq_size & 1) != 0)) return false;
  const unsigned size = wqe_size(bytes);
  if (size > available || wqe_stamped(bytes, size)) return false;
  // Unit by unit: a copy of an unknown number of bytes below 64 becomes one byte by byte, and who reads words of it
  // next waits for all of them.
  constexpr unsigned unit = abi::wqe::unit;
  for (unsigned at = 0; at != size; at += unit) std::memcpy(u.bytes.data() + at, bytes + at, unit);
  const std::uint8_t* const whole = size >= 16 ? u.bytes.data() : bytes;
  if (is_special(c, settings_.special_base)) {
    parse_mlx_wqe(whole, u.wqe);
    if (is_subnet_management(c, settings_.special_base)) u.wqe.error = syndrome::local_qp_operation;
  } else {
    parse_send_wqe(whole, c.type, u.wqe);
  }
  units_.parsed(u);
  u.at_wqe.index = n;
  if (c.type == icm::service::ethernet) forget_leftovers(u);
  u.at_wqe.strides = ring_bytes(c, size) >> c.log_sq_stride;
  u.at_wqe.message = no_index;
  u.stamp_tries = 0;
  u.keys = send_unit::keys_state::none;
  u.seek(c.message_offset);
  to_.pace.set_limit(u);
  if (sim::seldom(spans_.followed() != nullptr)) follow(u, n);
  spans_.leave(u.span, owner_.name(), "descriptor", owner_.now_ps(),
               u.at_wqe.awaited ? sim::wait::descriptor_fetch : sim::wait::none);
  u.at_wqe.awaited = false;
  return true;
}

// The span is the request's, not that of the doorbell which has brought the grant.
void processing_units::follow(send_unit& u, std::uint32_t index) {
  const sim::request_key key{adapter_, u.grant.qpn, static_cast<std::uint16_t>(index)};
  u.span = spans_.followed()->taken(key, owner_.name(), owner_.now_ps(), u.span);
}

// NOP, operations on keys, and WQEs that cannot be executed: they complete in order, without a packet.
bool processing_units::run_local(send_unit& u) {
  context& c = *u.ctx;
  qp_runtime& r = qps_[u.grant.qpn];
  if (c.state == icm::qp_state::rts && u.busy_until > owner_.edge()) {
    owner_.wake_at(u.busy_until);
    return false;
  }
  // Packets of it were sent, and what was read again for the others is not what they were of: that message ends.
  if (r.tail != no_index && to_.messages[r.tail].wqe_index == c.next_wqe) {
    const std::uint8_t why = u.wqe.error != 0 ? u.wqe.error : syndrome::local_qp_operation;
    units_.executed(u);
    to_.back.fail(c, r, r.tail, why, 0, next_psn(c));
    return true;
  }
  if (!to_.messages.has_room(r, false)) {
    units_.end_turn(u, report_kind::stalled);
    return false;
  }
  if (u.wqe.error == 0 && u.wqe.is_key_operation() && !keys_.run(u)) return false;
  if (!to_.messages.may_append(message_table::by_unit(units_.number_of(u)))) return false;
  const std::uint32_t index = enter_message(to_.messages, r, u, 1, next_packet_);
  message& m = to_.messages[index];
  m.local = m.sent = true;
  m.last_psn = m.first_psn;
  units_.executed(u);
  u.busy_until = owner_.edge() + config_.wqe_cycles;
  if (u.wqe.error != 0) {
    to_.back.fail(c, r, index, u.wqe.error, 0, next_psn(c));
  } else {
    c.next_wqe += u.at_wqe.strides;
    to_.messages.may_complete(r);
  }
  return true;
}

// A QP in error completes each posted WQE with 0x05, in order (adapter data plane A.7.2).
void processing_units::flush_one(send_unit& u) {
  context& c = *u.ctx;
  if (qps_[u.grant.qpn].head != no_index) {
    to_.messages.may_complete(qps_[u.grant.qpn]);
    return units_.end_turn(u, report_kind::stalled);
  }
  // Responses to READs that are flushed may still be on their way to memory, which is software's with the completion.
  if (qps_[u.grant.qpn].under_way.jobs != 0) return;  // reports of scatter tick us
  if (!u.at_wqe.current || u.at_wqe.index != c.next_wqe) {
    u.at_wqe.current = false;
    if (!load(u)) return;
  }
  if (!to_.completed.report_flush(c, c.next_wqe)) return;
  c.next_wqe += u.at_wqe.strides;
  c.message_offset = 0;
  u.at_wqe.current = false;
  owner_.wake_next();
}

// The unit stays taken until the QP's service time is over, so that the QP cannot hurry by changing units.
void processing_units::push_report(send_unit& u) {
  if (in_service(u) || !ports_.reports.claim()) return;
  if (u.pinned && !contexts_.access_pinned(context_memory::units)) return;
  u.window.give_up();
  qp_runtime& r = qps_[u.grant.qpn];
  report_kind kind = u.report;
  if (r.turn.poked && !r.stop.halting && !r.stop.halted) kind = report_kind::more;
  if (kind == report_kind::more) r.turn.has_work = true;
  if (kind == report_kind::stalled) ++counts_.stalls;
  r.turn.poked = r.turn.ends_stalled = false;
  r.turn.stalled = kind == report_kind::stalled;
  r.turn.unit = -1;
  if (u.pinned) {
    contexts_.mark_dirty(r.qpn);
    contexts_.unpin(r.qpn);
  }
  u.pinned = u.at_wqe.current = false;
  u.ctx = nullptr;
  u.grant.descriptor.reset();
  u.at = send_unit::state::free;
  counts_.busy_cycles += owner_.edge() - u.granted_at;
  busy_ &= ~units_.mask_of(u);
  ports_.reports.push({r.qpn, kind, r.turn.priority});
  to_.credits.pass_on();
  to_.messages.pass_on();
  if (ports_.grants.can_pop()) owner_.wake_next();
}

}  // namespace rnic::transport
