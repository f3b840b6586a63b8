// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/control.h"

#include <algorithm>

#include "model/transport/transport_cr.h"

namespace rnic::transport {

responder_control::responder_control(sim::clocked_block& owner, responder_registers& registers,
                                     std::uint16_t& roce_v2_port, const parts& of, std::vector<diagnostic> counters)
    : owner_(owner),
      registers_(registers),
      roce_v2_port_(roce_v2_port),
      of_(of),
      counters_(std::move(counters)),
      at_reset_(counters_.size()) {
  stopping_.reserve(16);
}

// ---------------------------------------------------------------- registers

std::uint32_t responder_control::read(std::uint32_t offset) const {
  if (offset >= cr::diagnostics) return read_diagnostic(offset - cr::diagnostics);
  switch (offset) {
    case cr::qp_select:
      return selected_;
    case cr::qp_status:
      return command_.busy_with(selected_) || halting(selected_);
    case cr::srq_select:
      return selected_srq_;
    case cr::srq_status:
      return of_.receives.halting_shared(selected_srq_) ? 1 : 0;
    case cr::reset:
      return resetting_ ? 1 : 0;
    case cr::roce_v2_port:
      return roce_v2_port_;
    case cr::port_map:
      return registers_.ports.value();
    case cr::reserved_lkey:
      return registers_.reserved_lkey;
    case cr::special_qp_base:
      return registers_.special_qp_base;
    case cr::num_qps_log:
      return registers_.num_qps_log;
    default:
      return 0;
  }
}

std::uint32_t responder_control::read_diagnostic(std::uint32_t offset) const {
  const std::uint32_t block = offset / cr::diagnostics_stride;
  for (std::size_t i = 0; i != counters_.size(); ++i) {
    const diagnostic& d = counters_[i];
    if (d.offset != offset % cr::diagnostics_stride) continue;
    if (d.second == nullptr && block != 0) return 0;
    const port_count n = d.now();
    return cr::diagnostic_of({n.all - at_reset_[i].all, n.second - at_reset_[i].second}, block);
  }
  return 0;
}

void responder_control::write(std::uint32_t offset, std::uint32_t value) {
  constexpr std::uint32_t number = 0xffffff;
  switch (offset) {
    case cr::qp_select:
      selected_ = value & number;
      break;
    case cr::qp_command:
      command(selected_, value);
      break;
    case cr::srq_select:
      selected_srq_ = value & number;
      break;
    case cr::srq_command:
      if (value == cr::qp_command_release)
        of_.receives.release_shared(selected_srq_);
      else if (value == cr::qp_command_halt || value == cr::qp_command_discard)
        of_.receives.halt_shared(selected_srq_, value == cr::qp_command_discard);
      break;
    case cr::reset:
      if (value == 1) reset();
      break;
    case cr::roce_v2_port:
      roce_v2_port_ = static_cast<std::uint16_t>(value);
      break;
    case cr::port_map:
      registers_.ports.write(value);
      break;
    case cr::reserved_lkey:
      registers_.reserved_lkey = value;
      break;
    case cr::special_qp_base:
      registers_.special_qp_base = value & number;
      break;
    case cr::num_qps_log:
      registers_.num_qps_log = value;
      break;
    case cr::rx_checksum_mode:
      registers_.sums_packets = value == 1;
      break;
    default:
      command_.write(offset, value);
      break;
  }
}

void responder_control::command(std::uint32_t qpn, std::uint32_t code) {
  switch (code) {
    case cr::qp_command_halt:
    case cr::qp_command_discard:
      halt(qpn, code == cr::qp_command_discard);
      break;
    case cr::qp_command_release:
      release(qpn);
      break;
    case cr::qp_command_publish:
      command_.begin(qpn, decltype(command_)::step::publish);
      break;
    case cr::qp_command_change:
      command_.begin(qpn, decltype(command_)::step::change);
      break;
    default:
      return;
  }
  owner_.wake_next();
}

// ---------------------------------------------------------------- halts

void responder_control::halt(std::uint32_t qpn, bool discard) {
  of_.flows.halts().halt(qpn);
  const auto same = [&](const stopping_entry& e) { return e.qpn == qpn; };
  const auto e = std::find_if(stopping_.begin(), stopping_.end(), same);
  if (e == stopping_.end())
    stopping_.push_back({qpn, discard, false});
  else
    *e = {qpn, e->discard || discard, false};
}

void responder_control::release(std::uint32_t qpn) {
  const auto same = [&](const stopping_entry& e) { return e.qpn == qpn; };
  stopping_.erase(std::remove_if(stopping_.begin(), stopping_.end(), same), stopping_.end());
  of_.flows.halts().release(qpn);
  if (const std::uint16_t i = of_.flows.find(qpn); i != no_link) of_.flows[i].stop = false;
  of_.errors.check(qpn);
}

bool responder_control::halting(std::uint32_t qpn) const {
  return std::any_of(stopping_.begin(), stopping_.end(), [&](const stopping_entry& e) { return e.qpn == qpn; });
}

void responder_control::work() {
  if (sim::seldom(!stopping_.empty())) work_halts();
  if (sim::seldom(resetting_ && stopping_.empty())) finish_reset();
  if (sim::seldom(!command_.idle())) work_command();
}

/// A step of one of them in a cycle, in turn.
void responder_control::work_halts() {
  owner_.wake_next();
  if (turn_ >= stopping_.size()) turn_ = 0;
  if (go_on(stopping_[turn_]))
    stopping_.erase(stopping_.begin() + static_cast<std::ptrdiff_t>(turn_));
  else
    ++turn_;
}

/// False: not in this cycle.
bool responder_control::begin(stopping_entry& e, std::uint16_t place) {
  if (e.discard) {
    if (!of_.reads.room(1)) return false;
    read_command r;
    r.what = read_command::kind::forget;
    r.qpn = e.qpn;
    of_.reads.push(r);
    of_.errors.forget(e.qpn);
  }
  e.begun = true;
  of_.errors.stop(e.qpn);
  of_.receives.drop(e.qpn);
  of_.parked.forget(e.qpn);
  if (place == no_link) return true;
  responder_flow& f = of_.flows[place];
  f.stop = true;
  of_.held.stop(f);
  of_.flows.drop_waiting(f);
  if (e.discard) of_.errors.cancel(f);
  if (f.todo != 0) of_.flows.clear_todo(f);
  return true;
}

/// True: nothing of it is left.
bool responder_control::go_on(stopping_entry& e) {
  const std::uint32_t qpn = e.qpn;
  const std::uint16_t i = of_.flows.find(qpn);
  if (!e.begun && !begin(e, i)) return false;
  if (i != no_link) {
    responder_flow& f = of_.flows[i];
    acknowledgement::forget(f);
    of_.answers.give_up(f);
    return false;  // what holds the flow ends with an answer of memory, or in this tick
  }
  if (of_.completions.holds(qpn)) return false;
  if (of_.receives.flushing(qpn)) {
    if (!e.discard) return false;
    of_.receives.drop_flushes(qpn);
  }
  if (of_.receives.busy(qpn)) return false;
  if (e.discard) {
    of_.contexts.drop(qpn);
    of_.rings.drop(qpn);
  } else {
    of_.contexts.flush(qpn);
    of_.rings.flush(qpn);
  }
  return !of_.contexts.busy(qpn) && !of_.rings.busy(qpn);
}

/// Of a queue pair that goes on working: what is on chip goes to ICM, or software's fields come from firmware.
void responder_control::work_command() {
  const std::uint32_t qpn = command_.qpn();
  if (command_.at() != decltype(command_)::step::change) {
    const flow_table& flows = of_.flows;
    const std::uint16_t i = flows.find(qpn);
    const bool asked = command_.at() == decltype(command_)::step::publish;
    if (asked && i != no_link && flows[i].dirty && flows[i].ctx != nullptr) of_.contexts.mark_dirty(qpn);
    return command_.publish(of_.contexts);
  }
  icm::responder_context* ctx = nullptr;
  const auto found = of_.contexts.ask(qpn, ctx);
  if (found == flow_table::contexts::result::pending) return;
  if (found == flow_table::contexts::result::hit) {
    if (!of_.flows.may_access(context_user::firmware)) return;
    of_.flows.access(context_user::firmware);
    of_.contexts.use(qpn);
    if (ctx->qpn == qpn) {  // not of another one that shares the entry
      icm::change(*ctx, command_.settings(), command_.how());
      of_.contexts.mark_dirty(qpn);
    }
  }
  command_.end();
}

// ---------------------------------------------------------------- reset

void responder_control::reset() {
  for (const std::uint32_t qpn : of_.flows.qpns()) halt(qpn, true);
  of_.flows.halts().close();
  of_.receives.drop_own();
  of_.errors.clear();
  registers_ = {};
  roce_v2_port_ = wire::roce_v2_udp_port;
  selected_ = selected_srq_ = 0;
  for (std::size_t i = 0; i != counters_.size(); ++i) at_reset_[i] = counters_[i].now();
  command_.end();
  resetting_ = true;
  owner_.wake_next();  // finish_reset() without any
}

/// No QP is known any more: what still arrives finds no context.
void responder_control::finish_reset() {
  if (!of_.reads.room(1)) return owner_.wake_next();
  read_command r;
  r.what = read_command::kind::forget_all;
  of_.reads.push(r);
  of_.contexts.drop_all();
  of_.rings.drop_all();
  of_.backlog.clear();
  of_.parked.clear();
  of_.receives.drop_shared();
  of_.flows.halts().reopen();
  resetting_ = false;
}

}  // namespace rnic::transport
