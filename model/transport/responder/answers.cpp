// SPDX-License-Identifier: Apache-2.0
// Responder: acknowledgements, and what goes to the READ generator and comes back.
#include <algorithm>
#include <utility>

#include "model/transport/responder/responder.h"
#include "model/transport/responder/rules.h"

namespace rnic::transport {

namespace {

/// Of two answers the one that fewer READs go before.
bool ack_goes_first(const responder_flow& f) {
  return f.ack_pending && (!f.nak_pending || static_cast<std::int32_t>(f.nak_after - f.ack_after) > 0);
}

/// The first `after` READs are handed over, of `handed`: only those in host memory are not.
bool is_due(std::uint32_t handed, std::uint32_t after) { return static_cast<std::int32_t>(handed - after) >= 0; }

}  // namespace

// ---------------------------------------------------------------- acknowledgements

/// An ACK answers no more requests than configured, where it can leave. Where it cannot, nothing waits for it.
bool responder::ack_is_full(const responder_flow& f) {
  const bool full = f.ack_pending && f.in_answers && f.ack_requests >= config_.ack_coalesce &&
                    acknowledgements.has_place(f.ctx->dest);
  ack_awaited_ = ack_awaited_ || full;
  return full;
}

void responder::set_ack(responder_flow& f, std::uint32_t psn, std::uint32_t msn, sim::span_id asked) {
  f.ack_span = spans_.fork(asked);
  f.ack_requests = f.ack_pending ? f.ack_requests + 1 : 1;
  f.ack_pending = true;
  f.ack_psn = psn;
  f.ack_msn = msn;
  f.ack_after = f.reads_accepted;
  route_answer(f);
}

void responder::set_nak(responder_flow& f, std::uint8_t syndrome, std::uint32_t psn, std::uint32_t msn) {
  f.ack_pending = false;  // what was received before is acknowledged by the NAK's PSN
  f.ack_requests = 0;
  f.nak_pending = true;
  f.nak_syndrome = syndrome;
  f.nak_psn = psn;
  f.nak_msn = msn;
  f.nak_after = f.reads_accepted;
  route_answer(f);
}

/// An answer behind READs goes to the READ generator, which keeps the order; another one into the line of its port and
/// priority.
void responder::route_answer(responder_flow& f) {
  if ((!f.ack_pending && !f.nak_pending) || f.in_answers || f.in_hand) return;
  // An answer behind READs in host memory goes when the last of these is handed over.
  if (!is_due(f.reads_accepted - f.reads_held, ack_goes_first(f) ? f.ack_after : f.nak_after)) return;
  if (f.in_generator()) {
    f.in_hand = true;
    hands_.push(index_of(f));
  } else {
    f.in_answers = true;
    ready_.put(index_of(f), f.ctx->dest);
  }
}

/// One ACK or NAK in an interval, in turn of ports and priorities that have a place.
void responder::send_answers() {
  if (ready_.empty()) return;
  if (next_answer_ > now()) return wake_at(next_answer_);
  const std::uint16_t i = ready_.take(acknowledgements);
  if (i == answer_lines::none) return;
  responder_flow& f = flows_[i];
  f.in_answers = false;
  if ((f.ack_pending || f.nak_pending) && !f.in_generator()) send_answer(f);
  route_answer(f);
  if (!ready_.empty()) wake_at(std::max(next_answer_, now() + 1));
}

void responder::send_answer(responder_flow& f) {
  next_answer_ = now() + std::max(1u, config_.ack_cycles);
  if (ack_awaited_) wake_next();  // by a packet
  ack_awaited_ = false;
  const answer_address to = address_of(*f.ctx);
  constexpr auto acknowledge = wire::operation::acknowledge;
  if (!ack_goes_first(f)) {
    acknowledgements.push(make_answer(to, frames_.get(), acknowledge, f.nak_psn, f.nak_syndrome, f.nak_msn));
    f.nak_pending = false;
    ++count_.naks;
    return;
  }
  payload::frame_ptr frame = frames_.get();
  frame->span = f.ack_span;
  if (f.ack_span != 0 && now_ps() > spans_[f.ack_span].end())
    spans_.leave(f.ack_span, name(), "acknowledge", now_ps(), sim::wait::arbitration);
  acknowledgements.push(make_answer(to, std::move(frame), acknowledge, f.ack_psn, acknowledgement(*f.ctx), f.ack_msn));
  f.ack_pending = false;
  f.ack_requests = 0;
  ++count_.acks;
}

// ---------------------------------------------------------------- READ generator

/// One answer of a queue pair that has READs there, in a cycle.
void responder::hand_answers() {
  if (hands_.empty() || !reads.room(1)) return;
  responder_flow& f = flows_[hands_.pop()];
  f.in_hand = false;
  if (f.ack_pending || f.nak_pending) hand_answer(f, ack_goes_first(f));
  route_answer(f);
  if (!hands_.empty()) wake_next();
}

void responder::hand_answer(responder_flow& f, bool ack) {
  read_command r;
  r.what = ack ? read_command::kind::acknowledge : read_command::kind::refuse;
  r.flow = index_of(f);
  r.qpn = f.qpn;
  r.psn = ack ? f.ack_psn : f.nak_psn;
  r.msn = ack ? f.ack_msn : f.nak_msn;
  r.syndrome = ack ? acknowledgement(*f.ctx) : f.nak_syndrome;
  r.span = ack ? f.ack_span : 0;
  r.to = address_of(*f.ctx);
  reads.push(r);
  (ack ? f.ack_pending : f.nak_pending) = false;
  if (ack) f.ack_requests = 0;
  ++f.answers_handed;
}

/// Room for a request and the answers that go before it.
bool responder::may_hand_over() const { return reads.room(3); }

/// A READ or an atomic that was accepted goes to the READ generator, behind the answers of what was before it. Where a
/// repeated one goes before what an answer is for, that one waits for it. `held`: it was accepted before it was put
/// aside.
void responder::hand_over(responder_flow& f, read_command r, bool held) {
  const wire::psn_t psn(r.psn);
  const std::uint32_t handed = f.reads_accepted - f.reads_held - (held ? 1 : 0);
  const bool before_ack = r.again && f.ack_pending && !psn.after(wire::psn_t(f.ack_psn));
  const bool before_nak = r.again && f.nak_pending && psn.before(wire::psn_t(f.nak_psn));
  for (unsigned n = 0; n != 2; ++n) {
    const bool ack = ack_goes_first(f);
    if (ack ? before_ack : !f.nak_pending || before_nak) break;
    if (!is_due(handed, ack ? f.ack_after : f.nak_after)) break;
    hand_answer(f, ack);
  }
  if (r.again) {
    ++f.ack_after;
    ++f.nak_after;
    if (before_ack) f.ack_msn = r.msn;
    if (before_nak) f.nak_msn = r.msn;
    ++f.reads_again;
    if (f.reads_held != 0) {
      f.ctx->flags |= icm::responder_flag_reads_late;
      f.dirty = true;
    }
  }
  if (!held) ++f.reads_accepted;
  reads.take_place(f.reads_on_chip() == 1);
  r.to = address_of(*f.ctx);
  r.syndrome = acknowledgement(*f.ctx);
  reads.push(r);
  route_answer(f);
}

/// What the READ generator and host memory have of it is given up. False: it cannot be told now.
bool responder::give_up_reads(responder_flow& f) {
  if (f.in_generator() && !f.discarding) {
    if (!reads.room(1)) return false;
    read_command r;
    r.what = read_command::kind::discard;
    r.flow = index_of(f);
    reads.push(r);
    f.discarding = true;
  }
  read_backlog::forget(f);
  return true;
}

void responder::take_report() {
  if (!reads.report.can_pop()) return;
  const read_report& r = reads.report.front();
  responder_flow& f = flows_[r.flow];
  switch (r.what) {
    case read_report::kind::ended:
      end_read(f, r);
      break;
    case read_report::kind::answered:
      f.answers_handed -= r.answers;
      count_.acks += r.acks;
      count_.naks += r.naks;
      break;
    case read_report::kind::fault:
      if (!fail_read(f, r)) return wake_next();
      break;
    case read_report::kind::discarded:
      f.discarding = false;
      break;
    case read_report::kind::revoked:
      reads_revoked_ = true;
      break;
  }
  reads.report.drop();
}

void responder::end_read(responder_flow& f, const read_report& r) {
  ++f.reads_finished;
  reads.ended(f.reads_on_chip() == 0);
  --(r.again ? f.reads_again : f.reads_new);
  if (r.dropped) ++(r.replay ? count_.drop_duplicate_atomic : count_.drop_duplicate_read);
  if (!r.atomic) return;
  icm::rdma_resources* ring = r.executed ? histories_.peek(f.qpn) : nullptr;
  if (icm::rdma_resources::entry* e = ring != nullptr ? ring->take() : nullptr; e != nullptr) {
    e->psn = r.psn & 0xffffff;
    e->what = static_cast<std::uint32_t>(icm::rdma_resources::kind::atomic);
    e->value = r.original;
    histories_.mark_dirty(f.qpn);
  }
  histories_.unpin(f.qpn);
}

bool responder::fail_read(responder_flow& f, const read_report& r) {
  if (f.discarding) return true;  // it is being given up anyway
  if (!reads.room(1) || !raise(r.event, f.qpn)) return false;
  ++(r.nak == syndrome_access ? count_.remote_access : count_.local_operation);
  give_up_reads(f);
  set_nak(f, r.nak, r.psn, r.msn);
  enter_error(f, first_uncompleted(f), true);
  return true;
}

}  // namespace rnic::transport
