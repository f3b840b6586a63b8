// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/key_withdrawal.h"

#include <algorithm>
#include <utility>

#include "model/sim/seldom.h"

namespace rnic::transport {

namespace {
bool names(const responder_slot& s, std::uint32_t key) {
  const auto end = s.place.list.begin() + s.place.pieces;
  return std::any_of(s.place.list.begin(), end, [&](const responder_slot::piece& p) { return p.key == key; });
}
/// All of its payload is on its way.
bool is_written(const responder_slot& s) {
  const auto end = s.place.segments.begin() + 2 * s.place.pieces;
  return std::all_of(s.place.segments.begin() + s.place.next_segment, end, [](const auto& x) { return x.length == 0; });
}
}  // namespace

key_withdrawal::key_withdrawal(sim::clocked_block& owner, icm::key_port& keys, slot_table& slots,
                               payload_writes& writes, read_port& reads, completion_port& completions)
    : owner_(owner), keys_(keys), slots_(slots), writes_(writes), reads_(reads), completions_(completions) {}

void key_withdrawal::announce(sim::statistics& to, const std::string& name) const {
  to.add(name + ".invalidations", invalidations_);
}

bool key_withdrawal::invalidate(responder_slot& s, const responder_flow& f) {
  using state = responder_slot::keys_state;
  if (s.keys == state::done) return true;
  if (!keys_.request.claim()) return false;
  icm::key_operation o;
  o.what = icm::key_operation::kind::remote_invalidate;
  o.key = s.frame->packet.invalidate_rkey;
  o.pd = s.pd;
  o.qpn = f.qpn;
  o.function = s.function;
  o.tag = slots_.index_of(s);
  keys_.request.push(o);
  s.keys = state::asked;
  return false;
}

void key_withdrawal::take_answer() {
  using state = responder_slot::keys_state;
  if (!keys_.response.can_pop()) return;
  const icm::key_answer a = keys_.response.pop();
  const bool ok = a.status == icm::key_status::ok;
  slots_[a.tag].keys = ok ? state::done : state::refused;
  if (ok) ++invalidations_;
}

void key_withdrawal::fail(responder_slot& s, unsigned port) {
  s.keys = responder_slot::keys_state::none;
  if (s.cancelled) return;
  s.what = responder_slot::action::failure;
  s.nak = invalidation_refused.nak;
  s.completion.syndrome = invalidation_refused.completion;
  completions_.errors.remote_invalid.count(port);
}

/// Whether the walk may go on behind it.
bool key_withdrawal::pass(responder_slot& s) const {
  using action = responder_slot::action;
  const bool accesses = s.what == action::write || s.fetches();
  if (s.place.in_wqe || s.keys != responder_slot::keys_state::none || !names(s, key_)) return true;
  if (s.place.next_segment != 0) return is_written(s);  // it may wait for the key engine, which waits for us
  if (accesses) {
    s.place.status = icm::translate_status::bad_key;
    owner_.wake_next();  // one that waits to go on may fail now, and commit is before us in the cycle
  }
  return true;
}

void key_withdrawal::walk() {
  place_ = slots_.taken_from(place_);
  if (place_ != slots_.size() && pass(slots_[place_])) ++place_;
  place_ = slots_.taken_from(place_);
  if (place_ != slots_.size()) return owner_.wake_next();
  at_ = phase::telling;
}

void key_withdrawal::work() {
  if (sim::mostly(at_ == phase::idle)) {
    if (sim::mostly(!keys_.revoke.can_pop())) return;
    key_ = keys_.revoke.pop().key;
    place_ = 0;
    reads_revoked_ = false;
    at_ = phase::walking;
  }
  if (at_ == phase::walking) walk();
  if (at_ == phase::telling) {
    if (!reads_.room(1)) return;  // who makes room ticks us
    read_command r;               // behind the requests that were translated under it
    r.what = read_command::kind::revoke;
    r.key = key_;
    reads_.push(r);
    at_ = phase::told;
  }
  if (at_ == phase::told) {
    if (!reads_revoked_ || !writes_.claim()) return;  // the report ticks us
    writes_.flush();                                  // behind all payload before it
    flush_end_ = writes_.asked();
    at_ = phase::flushing;
  }
  if (at_ != phase::flushing || writes_.done() < flush_end_ || !keys_.revoked.claim()) return;
  keys_.revoked.push({key_});
  at_ = phase::idle;
  if (keys_.revoke.can_pop()) owner_.wake_next();
}

}  // namespace rnic::transport
