// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/commit.h"

#include <algorithm>
#include <utility>

#include "model/sim/seldom.h"
#include "model/transport/responder/rules.h"

namespace rnic::transport {
namespace {

constexpr std::uint32_t cqe_grh_present = 1u << 31;

atomic_operation operation_of(const wire::packet& p) {
  const bool masked = wire::transport_of(p.bth.opcode) == wire::transport::manufacturer;
  atomic_operation a;
  a.swap_add = p.atomic.swap_add;
  if (wire::operation_of(p.bth.opcode) == wire::operation::fetch_add) {
    if (masked) a.boundaries = p.atomic.compare;
    return a;
  }
  a.what = atomic_operation::kind::compare_swap;
  a.compare = p.atomic.compare;
  if (!masked) return a;
  a.swap_mask = p.atomic.swap_mask;
  a.compare_mask = p.atomic.compare_mask;
  return a;
}

}  // namespace

commit::commit(sim::clocked_block& owner, flow_table& flows, slot_table& slots, payload_writes& writes,
               completion_port& completions, key_withdrawal& keys, acknowledgement& answers, held_reads& held,
               history_memory& rings, error_state& errors, drop_counters& drops, sim::span_recorder& spans)
    : owner_(owner),
      flows_(flows),
      slots_(slots),
      writes_(writes),
      completions_(completions),
      keys_(keys),
      answers_(answers),
      held_(held),
      rings_(rings),
      errors_(errors),
      drops_(drops),
      spans_(spans) {}

/// Of those whose time has come the oldest that can go on. It stands behind none of its queue pair: the first one that
/// has to wait holds up those behind it.
void commit::work() {
  if (slots_.empty()) return;
  ++pass_;
  for (std::uint16_t i = slots_.first(); i != no_link;) {
    responder_slot& s = slots_[i];
    if (s.ready > owner_.edge()) return;  // when its time comes, we are ticked
    const std::uint16_t next = s.next;
    responder_flow& f = flows_[s.flow];
    const progress made = f.blocked_pass == pass_ ? progress::none : step(i);
    if (made == progress::none) {
      if (f.blocked_pass != pass_ && s.fetches() && !s.cancelled) waiting_.push_back({i, way_of(s)});
      f.blocked_pass = pass_;
      i = next;
      continue;
    }
    slots_.access(slot_table::commit);
    if (made == progress::some || (next != no_link && slots_[next].ready <= owner_.edge())) owner_.wake_next();
    return;
  }
}

void commit::watch() {
  if (sim::mostly(waiting_.empty())) return;
  const slot_table& slots = slots_;
  const auto differs = [&](const waiting& w) { return way_of(slots[w.slot]) != w.on; };
  if (std::any_of(waiting_.begin(), waiting_.end(), differs)) owner_.wake_next();
  waiting_.clear();
}

commit::progress commit::step(std::uint16_t i) {
  responder_slot& s = slots_[i];
  if (s.place.translated != s.place.pieces) return progress::none;
  if (s.keys != responder_slot::keys_state::none) {
    if (s.keys == responder_slot::keys_state::asked) return progress::none;  // the answer will name this slot
    if (s.keys == responder_slot::keys_state::refused) keys_.fail(s, flows_[s.flow].ctx->dest.port);
  }
  const bool raises = s.completion.comm_est && !s.cancelled;
  if (!s.cancelled) {
    if (raises && !completions_.raise(event_comm_est, flows_[s.flow].qpn, s.function)) return progress::none;
    s.completion.comm_est = false;
    if (s.place.status != icm::translate_status::ok) {
      if (s.unreliable && !drop_message(s)) return raises ? progress::some : progress::none;
      fail_translation(s);
    }
  }
  if (!s.cancelled) {
    const progress made = carry_out(s);
    if (made != progress::all) return raises ? progress::some : made;
  }
  --flows_[s.flow].slots;
  slots_.release(i);
  return progress::all;
}

commit::progress commit::carry_out(responder_slot& s) {
  if (s.answered && answers_.is_full(flows_[s.flow])) return progress::none;
  switch (s.what) {
    case responder_slot::action::write:
      return payload(s);
    case responder_slot::action::read:
      return read(s) ? progress::all : progress::none;
    case responder_slot::action::atomic:
      return atomic(s) ? progress::all : progress::none;
    case responder_slot::action::answer:
      answer(s);
      break;
    case responder_slot::action::failure:
      return failure(s) ? progress::all : progress::none;
  }
  return progress::all;
}

/// A write in a cycle; with the last one the packet is done.
commit::progress commit::payload(responder_slot& s) {
  const responder_flow& f = flows_[s.flow];
  if (s.completion.due && !completions_.room()) return progress::none;
  unsigned end = 2u * s.place.pieces;
  while (end != 0 && s.place.segments[end - 1].length == 0) --end;
  while (s.place.next_segment < end && s.place.segments[s.place.next_segment].length == 0) ++s.place.next_segment;
  const bool writes = s.place.next_segment < end;
  if (writes) {
    if (!writes_.claim()) return progress::none;
    const icm::translate_response::segment& part = s.place.segments[s.place.next_segment];
    ++s.place.next_segment;
    write(s, part, s.place.next_segment == end);
    if (s.place.next_segment != end) return progress::some;
  }
  if (s.invalidates && !keys_.invalidate(s, f))
    return writes || s.keys == responder_slot::keys_state::asked ? progress::some : progress::none;
  if (s.completion.due) complete(f, s);
  if (s.answered) answers_.set_ack(flows_[s.flow], s.psn, s.msn, s.frame->span);
  return progress::all;
}

void commit::write(responder_slot& s, const icm::translate_response::segment& part, bool last) {
  const bool notify = s.last && last;
  if (notify) note(s);
  writes_.push_made([&](pcie::dma_request& r) {
    r.renew(pcie::dma_request::kind::write);
    r.notify = notify;
    r.function = s.function;
    r.address = part.address;
    r.length = part.length;
    r.source = s.frame->buffer.data() + s.place.source;
    r.keep = s.frame;
    if (notify) r.span = s.frame->span;
  });
  s.place.source += part.length;
}

void commit::complete(const responder_flow& f, const responder_slot& s) {
  if (s.frame->plain) return complete_plain(f, s);
  const wire::packet& p = s.frame->packet;
  completion::cqe_request c;
  c.cqn = s.completion.cqn;
  c.remote_qpn = s.completion.srqn;
  c.qpn = f.qpn;
  c.function = s.function;
  c.immediate = p.immediate;
  if (!wire::traits(p.bth.opcode).immediate) c.immediate = s.invalidates ? p.invalidate_rkey : 0;
  c.sl_vid = static_cast<std::uint16_t>(p.vlan_present ? p.vlan_tci & 0xefff : 0);
  if (wire::transport_of(p.bth.opcode) == wire::transport::ud) {
    c.remote_qpn = cqe_grh_present | p.deth.src_qp;
    c.smac = p.smac;
    if (p.vlan_present) c.qpn |= abi::cqe::ctag;
  }
  c.byte_count = s.completion.byte_count;
  c.wqe_index = s.completion.wqe_index;
  c.opcode = s.completion.opcode;
  c.solicited = p.bth.solicited;
  c.span = s.frame->span;
  // A message of UC may have been broken off in this receive; payload of its own would be behind that one's.
  completions_.push(c, c.byte_count == 0 && wire::transport_of(p.bth.opcode) == wire::transport::uc);
}

/// Where the time of a packet went that is being committed.
void commit::note(const responder_slot& s) {
  const sim::span_id span = s.frame->span;
  if (s.place.missed) spans_.leave(span, owner_.name(), "translation", owner_.now_ps(), sim::wait::translation_miss);
  spans_.leave(span, owner_.name(), "commit", owner_.now_ps());
}

/// A repeated request is not served beyond the number that was agreed on, nor where its answer is still to be sent
/// anyway (so the READ generator finds where it has the request).
bool commit::drop_repeated(const responder_slot& s) const {
  if (!s.duplicate) return false;
  const responder_flow& f = flows_[s.flow];
  return f.requests.again >= (1u << f.ctx->log_max_rd_atomic) ||
         (f.requests.held != 0 && !wire::psn_t(s.psn).before(wire::psn_t(f.requests.held_psn)));
}

/// One that is repeated and has no place is dropped, though there will be one: the peer asks again.
commit::way commit::way_of(const responder_slot& s) const {
  const responder_flow& f = std::as_const(flows_)[s.flow];
  if (drop_repeated(s) || (s.duplicate && !held_.has_place_for_repeated(f))) return way::drop;
  if (f.stop) return way::give_up;
  if (s.duplicate) return way::hand_over;
  const bool place = f.requests.held == 0 &&
                     (s.what == responder_slot::action::atomic ? held_.has_place_for_atomic(f)
                                                               : held_.has_place(f.qpn, f.reads_on_chip() != 0));
  return place ? way::hand_over : way::put_aside;
}

/// What the READ generator needs of the queue pair and of the slot.
read_command commit::command_of(const responder_slot& s) const {
  const responder_flow& f = flows_[s.flow];
  read_command r;
  r.flow = s.flow;
  r.qpn = f.qpn;
  r.psn = s.psn;
  r.msn = s.msn;
  r.again = s.duplicate;
  r.writes_before = writes_.asked();
  r.span = s.frame->span;
  return r;
}

bool commit::read(responder_slot& s) {
  responder_flow& f = flows_[s.flow];
  const way on = way_of(s);
  if (on == way::drop) {
    ++drops_.duplicate_read;
    return true;
  }
  if (on == way::give_up) return give_up(s);
  read_command r = command_of(s);
  const wire::reth& reth = s.frame->packet.reth;
  r.key = reth.rkey;
  r.length = reth.length;
  r.pd = s.pd;
  r.va = reth.va;
  if (s.place.pieces != 0) {
    r.first.segments = {s.place.segments[0], s.place.segments[1]};
    r.first.count = s.place.segments[1].length != 0 ? 2 : 1;
  }
  const bool place = on == way::hand_over;
  if (!(place ? answers_.may_hand_over(f) : held_.put_aside(f, r))) return false;
  note(s);
  if (place) answers_.hand_over(f, r);
  return true;
}

/// Its queue pair is halted: nobody will be answered.
bool commit::give_up(const responder_slot& s) {
  if (!s.duplicate) --flows_[s.flow].requests.fresh;
  return true;
}

void commit::answer(const responder_slot& s) {
  responder_flow& f = flows_[s.flow];
  if (s.nak == syndrome_ack)
    answers_.set_ack(f, s.psn, s.msn, s.frame->span);
  else
    answers_.set_nak(f, s.nak, s.psn, s.msn);
}

void commit::fail_translation(responder_slot& s) {
  if (s.what == responder_slot::action::failure) return;
  const bool quiet = s.duplicate || (s.unreliable && !s.place.of_receive && !s.completion.has_wqe);
  if (quiet) {  // a repeated READ without rights any more; UC: the message is dropped
    ++(s.duplicate ? drops_.duplicate_read : drops_.unreliable);
    s.cancelled = true;
    return;
  }
  s.what = responder_slot::action::failure;
  s.msn = s.msn_before;
  const responder_error& error = s.place.of_receive ? receive_protection : access_violation;
  s.nak = error.nak;
  if (s.completion.has_wqe || s.place.of_receive)
    s.completion.syndrome = error.completion;
  else
    s.completion.event = error.event;
}

/// UC, a packet of a WRITE under a key that does not open: what has come of the message behind it is refused as well,
/// and the rest has no beginning when it comes. False: not in this cycle.
bool commit::drop_message(const responder_slot& s) {
  if (s.what != responder_slot::action::write || s.place.of_receive || s.last) return true;
  responder_flow& f = flows_[s.flow];
  for (std::uint16_t i = s.next; i != no_link; i = slots_[i].next) {
    responder_slot& behind = slots_[i];
    if (behind.flow != s.flow || behind.cancelled) continue;
    if (behind.what != responder_slot::action::write || wire::traits(behind.frame->packet.bth.opcode).first)
      return true;  // another message, or the end of all
    behind.place.status = s.place.status;
    if (behind.last) return true;
  }
  if (f.ctx->in_message != in_write) return true;
  if (!flows_.may_access(f, context_user::errors)) return false;
  flows_.access(f, context_user::errors);
  f.ctx->in_message = in_none;
  f.dirty = true;
  return true;
}

bool commit::failure(responder_slot& s) {
  responder_flow& f = flows_[s.flow];
  if (s.completion.syndrome != 0 && !completions_.room()) return false;
  if (s.completion.event != 0 && !completions_.may_raise()) return false;
  if (!flows_.may_access(f, context_user::errors)) return false;
  flows_.access(f, context_user::errors);
  if (s.completion.event != 0) completions_.raise(s.completion.event, f.qpn, s.function);
  if (s.completion.syndrome != 0)
    completions_.fail(
        {f.qpn, s.completion.cqn, s.completion.srqn, s.completion.wqe_index, s.function, f.ctx->dest.port},
        s.completion.syndrome);
  if (s.nak == syndrome_invalid && s.completion.syndrome != cqe_local_length)
    completions_.errors.remote_invalid.count(f.ctx->dest.port);
  if (s.nak == syndrome_access) completions_.errors.remote_access.count(f.ctx->dest.port);
  if (s.completion.event == event_qp_fatal) completions_.errors.local_operation.count(f.ctx->dest.port);
  // UC, a key that does not open (adapter data plane C.7.2): the message is dropped, and the queue pair goes on.
  // Approximation: the receive of a WRITE with immediate data of UC whose key does not open completes in error; those
  // behind it may have been taken before the key is found, so that it cannot be given back.
  if (s.unreliable && s.nak == syndrome_access) {
    ++drops_.unreliable;
    return true;
  }
  if (s.nak != 0 && !s.unreliable) answers_.set_nak(f, s.nak, s.psn, s.msn);
  errors_.enter(f, s.completion.rq_after, true,
                s.completion.syndrome != 0 ? s.completion.wqe_index : receive_descriptors::none);
  return true;
}

/// Hands the request on, in the order of its QP.
bool commit::atomic(responder_slot& s) {
  responder_flow& f = flows_[s.flow];
  const way on = way_of(s);
  if (on == way::drop) {
    ++drops_.duplicate_atomic;
    return true;
  }
  if (on == way::give_up) return give_up(s);
  const bool place = on == way::hand_over;
  if (place && !answers_.may_hand_over(f)) return false;
  icm::rdma_resources* ring = nullptr;
  switch (rings_.find(f.qpn, history_user::commit, ring)) {
    case history_memory::found::pending:
    case history_memory::found::no_port:
      return false;
    case history_memory::found::none:  // software gave the QP no memory for its resources
      if (!s.duplicate) return refuse_atomic(s);
      ++drops_.duplicate_atomic;
      return true;
    case history_memory::found::known:
      break;
  }
  if (s.duplicate) return replay(s, *ring);
  read_command r = command_of(s);
  const wire::atomic_eth& a = s.frame->packet.atomic;
  r.what = read_command::kind::atomic;
  r.key = a.rkey;
  r.pd = s.pd;
  r.va = a.va;
  r.operation = operation_of(s.frame->packet);
  if (!place) {
    if (!held_.put_aside(f, r)) return false;
    note(s);
    return true;
  }
  r.first.segments[0] = s.place.segments[0];
  r.first.count = 1;
  rings_.access(f.qpn, history_user::commit, false);
  rings_.pin(f.qpn);
  note(s);
  answers_.hand_over(f, r);
  return true;
}

/// What has no answer to be repeated any more is dropped.
bool commit::replay(const responder_slot& s, const icm::rdma_resources& ring) {
  responder_flow& f = flows_[s.flow];
  rings_.access(f.qpn, history_user::commit, false);
  const icm::rdma_resources::entry* const known = ring.find_answer(s.psn);
  if (known == nullptr) {
    ++drops_.duplicate_atomic;
    return true;
  }
  read_command r = command_of(s);
  r.what = read_command::kind::replay;
  r.original = known->value;
  note(s);
  answers_.hand_over(f, r);
  return true;
}

bool commit::refuse_atomic(responder_slot& s) {
  --flows_[s.flow].requests.fresh;
  s.what = responder_slot::action::failure;
  s.msn = s.msn_before;
  s.nak = invalid_request.nak;
  s.completion.event = invalid_request.event;
  return failure(s);
}

void commit::complete_plain(const responder_flow& f, const responder_slot& s) {
  const responder_slot::ethernet_result& r = s.ethernet;
  completion::cqe_request c;
  c.cqn = f.ctx->cqn;
  c.qpn = f.qpn | r.qpn_flags;
  c.function = s.function;
  c.immediate = s.frame->packet.immediate;
  c.sl_vid = r.tci;
  c.smac = {0,         0, static_cast<std::uint8_t>(r.status >> 8), static_cast<std::uint8_t>(r.status), r.extensions,
            r.encoding};
  c.byte_count = s.completion.byte_count;
  c.wqe_index = s.completion.wqe_index;
  c.checksum = r.checksum;
  c.opcode = s.completion.opcode;
  c.solicited = true;
  c.span = s.frame->span;
  completions_.push(c);
}

}  // namespace rnic::transport
