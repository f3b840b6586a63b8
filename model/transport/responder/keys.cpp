// SPDX-License-Identifier: Apache-2.0
// Responder: SEND with invalidate (IBA 9.4.1.1, 10.6.7), and what happens to packets whose key loses its meaning.
#include <algorithm>
#include <utility>

#include "model/transport/responder/responder.h"
#include "model/transport/responder/rules.h"

namespace rnic::transport {

/// The payload is on its way. False: the key is not withdrawn yet.
bool responder::invalidate(responder_slot& s) {
  using state = responder_slot::keys_state;
  if (s.keys == state::done) return true;
  if (!keys.request.claim()) return false;
  const responder_flow& f = flows_[s.flow];
  icm::key_operation o;
  o.what = icm::key_operation::kind::remote_invalidate;
  o.key = s.frame->packet.invalidate_rkey;
  o.pd = s.pd;
  o.qpn = f.qpn;
  o.function = f.ctx->function;
  o.tag = static_cast<std::uint64_t>(&s - slots_.data());
  keys.request.push(o);
  s.keys = state::asked;
  return false;
}

void responder::take_key_answers() {
  using state = responder_slot::keys_state;
  if (keys.response.can_pop()) {
    const icm::key_answer a = keys.response.pop();
    const bool ok = a.status == icm::key_status::ok;
    slots_[a.tag].keys = ok ? state::done : state::refused;
    if (ok) ++count_.invalidations;
  }
}

/// Class J of the standard's responder errors: the receive ends in error and so does the queue pair; there is no NAK
/// (C.7.2).
void responder::fail_invalidation(responder_slot& s) {
  s.keys = responder_slot::keys_state::none;
  if (s.cancelled) return;
  s.what = responder_slot::action::failure;
  s.msn = s.msn_before;
  s.nak = invalidation_refused.nak;
  s.cqe_syndrome = invalidation_refused.completion;
  ++count_.remote_invalid;
}

// ---------------------------------------------------------------- keys that lose their meaning

/// Packets that were checked under the key and have not begun to write are as if they had come later.
void responder::refuse_key(std::uint32_t key) {
  using action = responder_slot::action;
  for (std::uint16_t i = first_slot_; i != no_link; i = slots_[i].next) {
    responder_slot& s = slots_[i];
    const bool accesses = s.what == action::write || s.fetches();
    if (!accesses || s.in_wqe || s.next_segment != 0 || s.keys != responder_slot::keys_state::none) continue;
    const auto end = s.piece_list.begin() + s.pieces;
    if (std::any_of(s.piece_list.begin(), end, [&](const responder_slot::piece& p) { return p.key == key; }))
      s.status = icm::translate_status::bad_key;
  }
}

bool responder::uses_key(std::uint32_t key) const {
  for (std::uint16_t i = first_slot_; i != no_link; i = slots_[i].next) {
    const responder_slot& s = slots_[i];
    if (s.in_wqe || s.next_segment == 0 || s.keys != responder_slot::keys_state::none) continue;
    const auto end = s.piece_list.begin() + s.pieces;
    if (std::any_of(s.piece_list.begin(), end, [&](const responder_slot::piece& p) { return p.key == key; }))
      return true;
  }
  return false;
}

void responder::take_revocation() {
  if (!revoking_) {
    if (!reads.room(1)) return;  // who makes room ticks us
    revoked_key_ = keys.revoke.pop().key;
    revoking_ = true;
    reads_revoked_ = false;
    refuse_key(revoked_key_);
    read_command r;  // behind the requests that were translated under it
    r.what = read_command::kind::revoke;
    r.key = revoked_key_;
    reads.push(r);
  }
  if (!flushing_) {
    if (!reads_revoked_) return;  // the report ticks us
    if (uses_key(revoked_key_)) return wake_next();
    if (!dma_write.request.claim()) return;
    pcie::dma_request flush;  // behind all payload before it
    flush.op = pcie::dma_request::kind::write;
    flush.notify = true;
    dma_write.request.push(std::move(flush));
    flush_end_ = ++writes_asked_;
    flushing_ = true;
  }
  if (writes_done_ < flush_end_ || !keys.revoked.claim()) return;
  keys.revoked.push({revoked_key_});
  revoking_ = flushing_ = false;
  if (keys.revoke.can_pop()) wake_next();
}

}  // namespace rnic::transport
