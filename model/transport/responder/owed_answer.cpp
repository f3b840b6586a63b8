// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/owed_answer.h"

#include "model/sim/seldom.h"
#include "model/wire/psn.h"

namespace rnic::transport {

namespace {

/// A NAK of what is still expected. One of what has come since has nothing to say any more.
bool is_current(const responder_flow& f) { return f.nak.pending && f.nak.psn == f.ctx->expected_psn; }

/// Whether its answers could be made again, if nothing else is to be done for it.
bool is_in_context(const responder_flow& f) {
  if (f.ctx == nullptr) return false;
  // What was accepted last of a queue pair in error has not been executed, and its last NAK is of any of that.
  if (f.ctx->state == icm::qp_state::error) return false;
  return !is_current(f) || f.nak.syndrome == syndrome_sequence || f.nak.syndrome == rnr_syndrome(*f.ctx);
}

bool has_nothing_but_answers(const responder_flow& f) {
  return f.waits.head == no_link && !f.waits.listed && f.slots == 0 && !f.in_generator() && !f.requests.fetching &&
         !f.answers.in_hand && !f.answers.returns && f.todo == 0;
}

}  // namespace

bool has_nothing_but_answer(const responder_flow& f) {
  return f.used && f.answers.listed && has_nothing_but_answers(f) && !f.stop && is_in_context(f);
}

bool may_leave(const responder_flow& f) {
  if (!has_nothing_but_answers(f) || f.answers.listed) return false;
  return (!f.ack.pending && !f.nak.pending) || ((f.requests.held != 0 || f.answers.parks) && is_in_context(f));
}

/// A NAK of what has come since has acknowledged what was before it: that is an ACK's then.
void owe(responder_flow& f) {
  if (!f.ack.pending && !f.nak.pending) return;
  if (is_current(f))
    f.ctx->owed = f.nak.syndrome == syndrome_sequence ? icm::responder_owes_sequence_nak : icm::responder_owes_rnr_nak;
  else
    f.ctx->owed = icm::responder_owes_ack;
  f.ack.pending = f.nak.pending = false;
  f.dirty = true;
}

bool bring_owed(responder_flow& f) {
  const std::uint8_t owed = f.ctx->owed;
  if (sim::mostly(owed == icm::responder_owes_nothing)) return false;
  f.ctx->owed = icm::responder_owes_nothing;
  f.dirty = true;
  if (f.ctx->state == icm::qp_state::error || f.ctx->state == icm::qp_state::reset) return false;
  if (owed == icm::responder_owes_ack) {
    f.ack.pending = true;
    f.ack.psn = (wire::psn_t(f.ctx->expected_psn) - 1).value();
    f.ack.msn = f.ctx->msn;
    f.ack.after = f.requests.accepted;
    f.ack.span = 0;
    f.ack.requests = 1;
    return true;
  }
  f.nak.pending = true;
  f.nak.syndrome = owed == icm::responder_owes_rnr_nak ? rnr_syndrome(*f.ctx) : syndrome_sequence;
  f.nak.psn = f.ctx->expected_psn;
  f.nak.msn = f.ctx->msn;
  f.nak.after = f.requests.accepted;
  return true;
}

}  // namespace rnic::transport
