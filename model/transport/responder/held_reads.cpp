// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/held_reads.h"

#include <algorithm>

#include "model/sim/seldom.h"

namespace rnic::transport {

held_reads::held_reads(sim::clocked_block& owner, const responder_config& cfg, flow_table& flows,
                       flow_table::contexts& contexts, read_backlog& backlog, const history_memory& rings,
                       read_port& reads, acknowledgement& answers, const payload_writes& writes,
                       sim::span_recorder& spans)
    : owner_(owner),
      flows_(flows),
      contexts_(contexts),
      backlog_(backlog),
      rings_(rings),
      reads_(reads),
      answers_(answers),
      writes_(writes),
      spans_(spans),
      at_once_(cfg.read_fetches) {
  fetching_.reserve(at_once_ + 1);
}

/// A QP whose READs are on chip keeps its context there until their responses have left: in the context's set there
/// stays room for another, so that what arrives for that one does not wait for responses.
bool held_reads::leaves_room(std::uint32_t qpn, bool has_some) const {
  return has_some || reads_.idle() || !contexts_.crowded(qpn);
}

bool held_reads::has_place(std::uint32_t qpn, bool has_some) const {
  return reads_.can_take_new(has_some) && leaves_room(qpn, has_some);
}

bool held_reads::has_place_for_repeated(const responder_flow& f) const {
  const bool has_some = f.reads_on_chip() != 0;
  return reads_.can_take(has_some) && leaves_room(f.qpn, has_some);
}

bool held_reads::has_place_for_atomic(const responder_flow& f) const {
  return has_place(f.qpn, f.reads_on_chip() != 0) && may_pin(f.qpn);
}

/// Of those of the queue pair that wait.
bool held_reads::has_place_for_oldest(std::uint32_t qpn, bool has_some) const {
  return has_place(qpn, has_some) && (!backlog_.first_is_atomic(qpn) || may_pin(qpn));
}

bool held_reads::put_aside(responder_flow& f, const read_command& r) {
  switch (backlog_.keep(f, r)) {
    case read_backlog::result::pending:
    case read_backlog::result::no_port:
      return false;
    case read_backlog::result::done:
      return true;
    case read_backlog::result::no_memory:
      break;
  }
  if (f.requests.held != 0 || !reads_.can_take(f.reads_on_chip() != 0) || !answers_.may_hand_over(f)) return false;
  answers_.hand_over(f, r);
  return true;
}

/// One request comes back in a cycle; those of several QPs are fetched at once.
void held_reads::work() {
  if (sim::mostly(backlog_.empty() && fetching_.empty())) return;
  if (!backlog_.empty()) begin();
  for (std::size_t k = 0; k < fetching_.size(); ++k) {
    responder_flow& f = flows_[fetching_[k]];
    if (fetch(f) == fetched::no) continue;
    f.requests.fetching = false;
    if (passing_ == f.number) passing_ = no_link;
    fetching_.erase(fetching_.begin() + static_cast<std::ptrdiff_t>(k));
    if (f.requests.held != 0) backlog_.list(f.qpn);  // behind the others
    owner_.wake_next();
    return;
  }
}

/// One queue pair in a cycle.
void held_reads::begin() {
  const bool lane = fetching_.size() < at_once_ + (passing_ == no_link ? 0 : 1);
  const bool began = (lane && begin_first()) || begin_passing();
  if (began && !backlog_.empty()) owner_.wake_next();
}

/// The QP that has waited longest gets a place on chip.
bool held_reads::begin_first() {
  const std::uint32_t qpn = backlog_.front();
  std::uint16_t i = flows_.find(qpn);
  const flow_table& present = flows_;
  if (flows_.halts().halted(qpn) || (i != no_link && present[i].stop)) {  // what waits of it is given up
    backlog_.pop();
    return true;
  }
  if (i != no_link &&
      present[i].requests.fetching) {  // it has passed the others, and stands behind them when that is done
    backlog_.pop();
    return true;
  }
  if (!has_place_for_oldest(qpn, i != no_link && present[i].reads_on_chip() != 0))
    return false;  // who has one wakes us
  if (i == no_link) i = flows_.open(qpn);
  if (i == no_link) return false;  // one that leaves wakes us
  backlog_.pop();
  flows_[i].requests.fetching = true;
  fetching_.push_back(i);
  return true;
}

bool held_reads::begin_passing() {
  if (passing_ != no_link) return false;
  const flow_table& present = flows_;
  for (std::uint16_t i = 0; i != present.places(); ++i) {
    if (!may_pass(present[i])) continue;
    flows_[i].requests.fetching = true;
    fetching_.push_back(i);
    passing_ = i;
    return true;
  }
  return false;
}

/// It keeps its place until its READs are back, and has none on their way.
bool held_reads::may_pass(const responder_flow& f) const {
  return f.used && f.ctx != nullptr && f.requests.held != 0 && !f.requests.fetching && !f.stop && !f.in_generator() &&
         (f.ack.pending || f.nak.pending || reads_.idle()) && has_place_for_oldest(f.qpn, false);
}

held_reads::fetched held_reads::fetch(responder_flow& f) {
  const flow_table::found context = flows_.resolve(f, context_user::reads);
  if (context != flow_table::found::known)
    return context == flow_table::found::unknown ? fetched::nothing : fetched::no;
  if (f.requests.held == 0) return fetched::nothing;
  if (!has_place_for_oldest(f.qpn, f.reads_on_chip() != 0)) return fetched::nothing;  // somebody else has taken it
  if (!answers_.may_hand_over(f)) return fetched::no;                                 // who makes room ticks us
  read_command r;
  r.flow = f.number;
  r.writes_before = writes_.asked();
  switch (backlog_.fetch(f, r)) {
    case read_backlog::result::pending:
    case read_backlog::result::no_port:
      return fetched::no;
    case read_backlog::result::no_memory:
      answers_.forget_held(f);
      return fetched::nothing;
    case read_backlog::result::done:
      break;
  }
  flows_.count_use(f);
  f.waits.context = false;
  spans_.leave(r.span, owner_.name(), "backlog", owner_.now_ps(), sim::wait::arbitration);
  answers_.hand_over(f, r, true);
  return fetched::request;
}

void held_reads::watch() {
  const flow_table& present = flows_;
  const auto has_lost = [&](std::uint16_t i) {
    const responder_flow& f = present[i];
    return !has_place_for_oldest(f.qpn, f.reads_on_chip() != 0);
  };
  if (std::any_of(fetching_.begin(), fetching_.end(), has_lost)) owner_.wake_next();
}

void held_reads::stop(responder_flow& f) {
  if (!f.requests.fetching) return;
  f.requests.fetching = false;
  if (passing_ == f.number) passing_ = no_link;
  fetching_.erase(std::find(fetching_.begin(), fetching_.end(), f.number));
}

}  // namespace rnic::transport
