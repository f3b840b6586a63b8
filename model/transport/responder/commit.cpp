// SPDX-License-Identifier: Apache-2.0
// Responder: what a checked packet leaves behind: payload, completion, answer, error.
#include <algorithm>

#include "model/transport/responder/responder.h"
#include "model/transport/responder/rules.h"
#include "model/transport/responder/tags.h"

namespace rnic::transport {
namespace {

constexpr std::uint32_t cqe_grh_present = 1u << 31;
constexpr std::uint8_t vendor_error = 0x88;  // A.5.3: the one value seen on a real responder; only reported upward

}  // namespace

void responder::commit() {
  ++pass_;
  for (std::uint16_t i = first_slot_; i != no_link;) {
    responder_slot& s = slots_[i];
    const std::uint16_t next = s.next;
    if (s.ready > now()) {
      wake_at(s.ready);
      return;
    }
    responder_flow& f = flows_[s.flow];
    if (f.blocked_pass != pass_ && !commit_slot(i)) f.blocked_pass = pass_;
    i = next;
  }
}

bool responder::commit_slot(std::uint16_t i) {
  responder_slot& s = slots_[i];
  if (s.translated != s.pieces) return false;
  if (s.keys != responder_slot::keys_state::none) {
    if (s.keys == responder_slot::keys_state::asked) return false;  // the answer will name this slot
    if (s.keys == responder_slot::keys_state::refused) fail_invalidation(s);
  }
  if (!s.cancelled) {
    if (s.comm_est && !raise(event_comm_est, flows_[s.flow].qpn)) return false;
    s.comm_est = false;
    if (s.status != icm::translate_status::ok) fail_translation(s);
  }
  if (!s.cancelled) {
    if (s.answered && ack_is_full(flows_[s.flow])) return false;
    switch (s.what) {
      case responder_slot::action::write:
        if (!commit_payload(s)) return false;
        break;
      case responder_slot::action::read:
        if (!commit_read(s)) return false;
        break;
      case responder_slot::action::atomic:
        if (!commit_atomic(s)) return false;
        break;
      case responder_slot::action::answer:
        commit_answer(s);
        break;
      case responder_slot::action::failure:
        if (!commit_failure(s)) return false;
        break;
    }
  }
  release_slot(i);
  return true;
}

bool responder::commit_payload(responder_slot& s) {
  responder_flow& f = flows_[s.flow];
  if (s.completes && !cqe_room()) return false;
  unsigned end = 2u * s.pieces;
  while (end != 0 && s.segments[end - 1].length == 0) --end;
  for (; s.next_segment < end; ++s.next_segment) {
    const icm::translate_response::segment& part = s.segments[s.next_segment];
    if (part.length == 0) continue;
    if (!dma_write.request.claim()) return false;
    const bool final = s.last && s.next_segment + 1 == end;
    pcie::dma_request r;
    r.op = pcie::dma_request::kind::write;
    r.notify = final;
    r.function = f.ctx->function;
    r.address = part.address;
    r.length = part.length;
    r.source = s.frame->buffer.data() + s.source;
    r.keep = s.frame;
    if (final) {
      note_commit(s);
      r.span = s.frame->span;
      ++writes_asked_;
    }
    dma_write.request.push(std::move(r));
    s.source += part.length;
  }
  if (s.invalidates && !invalidate(s)) return false;
  if (s.completes) complete(f, s);
  if (s.answered) set_ack(f, s.psn, s.msn, s.frame->span);
  return true;
}

void responder::complete(const responder_flow& f, responder_slot& s) {
  if (s.frame->plain) return complete_ethernet(f, s);
  const wire::packet& p = s.frame->packet;
  completion::cqe_request c;
  c.cqn = s.cqn;
  c.remote_qpn = s.srqn;
  c.qpn = f.qpn;
  c.immediate = p.immediate;
  if (!wire::traits(p.bth.opcode).immediate) c.immediate = s.invalidates ? p.invalidate_rkey : 0;
  c.sl_vid = static_cast<std::uint16_t>(p.vlan_present ? p.vlan_tci & 0xefff : 0);
  if (wire::transport_of(p.bth.opcode) == wire::transport::ud) {
    c.remote_qpn = cqe_grh_present | p.deth.src_qp;
    c.smac = p.smac;
    if (p.vlan_present) c.qpn |= abi::cqe::ctag;
  }
  c.byte_count = s.byte_count;
  c.wqe_index = s.wqe_index;
  c.opcode = s.cqe_opcode;
  c.solicited = p.bth.solicited;
  c.span = s.frame->span;
  queue_cqe(c);
}

void responder::complete_in_error(std::uint32_t cqn, std::uint32_t qpn, std::uint16_t wqe_index, std::uint8_t syndrome,
                                  std::uint32_t srqn) {
  completion::cqe_request c;
  c.cqn = cqn;
  c.qpn = qpn;
  c.wqe_index = wqe_index;
  c.remote_qpn = srqn;
  c.opcode = abi::cqe::opcode_error;
  c.syndrome = syndrome;
  c.vendor_error = syndrome == cqe_flushed ? std::uint8_t{0} : vendor_error;
  c.solicited = true;
  queue_cqe(c);
  switch (syndrome) {
    case cqe_local_length:
      ++count_.local_length;
      break;
    case cqe_local_operation:
      ++count_.local_operation;
      break;
    case cqe_local_protection:
      ++count_.local_protection;
      break;
    case cqe_flushed:
      ++count_.flushed;
      break;
    default:
      break;
  }
}

void responder::queue_cqe(const completion::cqe_request& cqe) {
  completion_entry& e = cqes_[(cqe_head_ + cqe_count_) % cqes_.size()];
  e.cqe = cqe;
  e.after = writes_asked_;
  ++cqe_count_;
}

void responder::push_cqes() {
  while (cqe_count_ != 0 && cqes_[cqe_head_].after <= writes_done_) {
    if (!cqe_out.claim()) return;
    if (!cqe_room()) wake_next();  // somebody may wait for the room
    cqe_out.push(cqes_[cqe_head_].cqe);
    cqe_head_ = (cqe_head_ + 1) % cqes_.size();
    --cqe_count_;
    if (first_slot_ != no_link || todo_flows_ != 0) wake_next();  // one of them may have waited for the room
  }
}

/// Where the time of a packet went that is being committed.
void responder::note_commit(const responder_slot& s) {
  const sim::span_id span = s.frame->span;
  if (s.missed) spans_.leave(span, name(), "translation", now_ps(), sim::wait::translation_miss);
  spans_.leave(span, name(), "commit", now_ps());
}

/// A repeated request is not served beyond the number that was agreed on, nor where its answer is still to be sent
/// anyway (so the READ generator finds where it has the request).
bool responder::drop_repeated(const responder_slot& s) {
  if (!s.duplicate) return false;
  const responder_flow& f = flows_[s.flow];
  return f.reads_again >= (1u << f.ctx->log_max_rd_atomic) ||
         (f.reads_held != 0 && !wire::psn_t(s.psn).before(wire::psn_t(f.held_psn)));
}

/// What the READ generator needs of the queue pair and of the slot.
read_command responder::command_of(const responder_slot& s) {
  const responder_flow& f = flows_[s.flow];
  read_command r;
  r.flow = s.flow;
  r.qpn = f.qpn;
  r.psn = s.psn;
  r.msn = s.msn;
  r.again = s.duplicate;
  r.writes_before = writes_asked_;
  r.span = s.frame->span;
  return r;
}

bool responder::commit_read(responder_slot& s) {
  responder_flow& f = flows_[s.flow];
  // There is no place for a repeated one and will be one: the peer asks again.
  if (drop_repeated(s) || (s.duplicate && !reads.can_take())) {
    ++count_.drop_duplicate_read;
    return true;
  }
  if (f.stop) return give_up_request(s);
  read_command r = command_of(s);
  const wire::reth& reth = s.frame->packet.reth;
  r.key = reth.rkey;
  r.length = reth.length;
  r.pd = s.pd;
  r.va = reth.va;
  if (s.pieces != 0) {
    r.first.segments = {s.segments[0], s.segments[1]};
    r.first.count = s.segments[1].length != 0 ? 2 : 1;
  }
  const bool place = s.duplicate || (f.reads_held == 0 && read_has_place(f.qpn, f.reads_on_chip() != 0));
  if (!(place ? may_hand_over() : put_aside(f, r))) return false;
  note_commit(s);
  if (place) hand_over(f, r);
  return true;
}

/// Its queue pair is halted: nobody will be answered.
bool responder::give_up_request(const responder_slot& s) {
  if (!s.duplicate) --flows_[s.flow].reads_new;
  return true;
}

void responder::commit_answer(responder_slot& s) {
  responder_flow& f = flows_[s.flow];
  if (s.nak == syndrome_ack)
    set_ack(f, s.psn, s.msn, s.frame->span);
  else
    set_nak(f, s.nak, s.psn, s.msn);
}

void responder::fail_translation(responder_slot& s) {
  if (s.what == responder_slot::action::failure) return;
  const bool quiet = s.duplicate || (s.unreliable && !s.to_receive_queue && !s.has_wqe);
  if (quiet) {  // a repeated READ without rights any more; UC: the message is dropped
    ++(s.duplicate ? count_.drop_duplicate_read : count_.drop_unreliable);
    s.cancelled = true;
    return;
  }
  s.what = responder_slot::action::failure;
  s.msn = s.msn_before;
  const responder_error& error = s.to_receive_queue ? receive_protection : access_violation;
  s.nak = error.nak;
  if (s.has_wqe || s.to_receive_queue)
    s.cqe_syndrome = error.completion;
  else
    s.event = error.event;
}

bool responder::commit_failure(responder_slot& s) {
  responder_flow& f = flows_[s.flow];
  if (s.cqe_syndrome != 0 && !cqe_room()) return false;
  if (s.event != 0 && !raise(s.event, f.qpn)) return false;
  if (s.cqe_syndrome != 0) complete_in_error(s.cqn, f.qpn, s.wqe_index, s.cqe_syndrome, s.srqn);
  if (s.nak == syndrome_invalid && s.cqe_syndrome != cqe_local_length) ++count_.remote_invalid;
  if (s.nak == syndrome_access) ++count_.remote_access;
  if (s.event == event_qp_fatal) ++count_.local_operation;
  if (s.nak != 0 && !s.unreliable) set_nak(f, s.nak, s.psn, s.msn);
  enter_error(f, s.rq_after, true, s.cqe_syndrome != 0 ? s.wqe_index : no_entry);
  return true;
}

bool responder::raise(std::uint8_t event, std::uint32_t number) {
  if (!event_out.bound()) return true;
  if (!event_out.claim()) return false;
  completion::event_request e;
  e.type = event;
  e.set(abi::eqe::number, number);
  event_out.push(e);
  return true;
}

void responder::release_slot(std::uint16_t i) {
  responder_slot& s = slots_[i];
  s.frame.reset();
  (s.previous == no_link ? first_slot_ : slots_[s.previous].next) = s.next;
  (s.next == no_link ? last_slot_ : slots_[s.next].previous) = s.previous;
  --flows_[s.flow].slots;
  free_slots_.push_back(i);
}

std::uint16_t responder::first_uncompleted(const responder_flow& f) const {
  const std::uint16_t mine = index_of(f);
  for (std::uint16_t i = first_slot_; i != no_link; i = slots_[i].next)
    if (slots_[i].flow == mine && !slots_[i].cancelled) return slots_[i].rq_before;
  return static_cast<std::uint16_t>(f.ctx->rq_consumed - (f.ctx->in_message == 1 ? 1 : 0));
}

void responder::cancel_slots(responder_flow& f) {
  const std::uint16_t mine = index_of(f);
  for (std::uint16_t i = first_slot_; i != no_link; i = slots_[i].next) {
    responder_slot& s = slots_[i];
    if (s.flow == mine && !s.cancelled) cancel_slot(f, s);
  }
}

void responder::cancel_slot(responder_flow& f, responder_slot& s) {
  s.cancelled = true;
  if (s.fetches() && !s.duplicate) --f.reads_new;
  if (s.issued != s.pieces) {
    s.pieces = s.issued;
    --unissued_;
  }
}

void responder::enter_error(responder_flow& f, std::uint16_t rq_consumed, bool tell_requester, std::uint32_t done) {
  icm::responder_context& ctx = *f.ctx;
  flush_shared(f, done);
  cancel_slots(f);
  for (std::uint16_t w = f.wait_head; w != no_link; w = waiting_[w].next) ++count_.drop_error;
  drop_waiting(f);
  ctx.state = icm::qp_state::error;
  if (!is_shared(ctx)) ctx.rq_consumed = rq_consumed;
  ctx.in_message = 0;
  f.dirty = true;
  if (tell_requester) errors_.push_back(f.qpn);
  start_polling(f);
}

}  // namespace rnic::transport
