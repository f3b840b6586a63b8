// SPDX-License-Identifier: Apache-2.0
// What a command may change of a queue pair that goes on working: software's fields, while hardware's stay.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/icm/contexts.h"

namespace rnic::icm {

/// A change asked for by firmware: legal in the states of `from` (bit n: state n), to state `to`, or to none with
/// `same_state`.
struct qp_change {
  std::uint16_t from = 0;
  std::uint8_t to = same_state;
  static constexpr std::uint8_t same_state = 0xf;

  bool legal_in(qp_state s) const { return (from >> static_cast<unsigned>(s) & 1) != 0; }
  bool leads_to(qp_state s) const { return to == static_cast<std::uint8_t>(s); }
};

/// Something of the send queue has begun and has to end before the queue is drained (IBA volume 1, 10.3.1.5).
inline bool send_queue_works(const requester_context& c) {
  return c.outstanding != 0 || static_cast<std::int32_t>(c.drain_end - c.next_wqe) > 0;
}

/// The queue pair keeps its place: PSNs, descriptors, requests under way, the retries that it has left (never more than
/// the new limits).
inline void take_settings(requester_context& c, const requester_context& settings) {
  const requester_context was = c;
  c = settings;
  c.qpn = was.qpn;
  c.state = was.state;
  c.retries_left = std::min(was.retries_left, settings.retry_limit);
  c.rnr_retries_left = std::min(was.rnr_retries_left, settings.rnr_retry_limit);
  c.next_psn = was.next_psn;
  c.unacked_psn = was.unacked_psn;
  c.next_wqe = was.next_wqe;
  c.message_offset = was.message_offset;
  c.outstanding = was.outstanding;
  c.rd_outstanding = was.rd_outstanding;
  c.drain_end = was.drain_end;
  c.receives_told = was.receives_told;
  c.receives_used = was.receives_used;
  c.flags =
      static_cast<std::uint8_t>((settings.flags & ~requester_flag_unlimited) | (was.flags & requester_flag_unlimited));
}

/// False: the state does not allow it, and nothing has changed. A requester that becomes ready to send begins with what
/// `settings` says in full.
inline bool change(requester_context& c, const requester_context& settings, const qp_change& how) {
  if (!how.legal_in(c.state)) return false;
  if (c.state == qp_state::rtr && how.leads_to(qp_state::rts)) {
    c = settings;
    c.state = qp_state::rts;
    return true;
  }
  take_settings(c, settings);
  if (how.leads_to(qp_state::sqd))
    c.state = send_queue_works(c) ? qp_state::sq_draining : qp_state::sqd;
  else if (how.to != qp_change::same_state)
    c.state = static_cast<qp_state>(how.to);
  return true;
}

/// The responder does not know the states of the send queue, and one in error stays so. What it expects, the message
/// under way and what came with that (XRC: the queue that the message has named) stay.
inline void change(responder_context& c, const responder_context& settings, const qp_change& how) {
  if (c.state == qp_state::error) return;
  const responder_context was = c;
  const bool named = was.type == service::xrc && was.in_message != 0;
  c = settings;
  c.qpn = was.qpn;
  c.state = how.to == qp_change::same_state ? was.state
            : how.leads_to(qp_state::sqd)   ? qp_state::rts
                                            : static_cast<qp_state>(how.to);
  if (named) {
    c.pd = was.pd;
    c.cqn = was.cqn;
    c.srqn = was.srqn;
  }
  if (was.type == service::rss) return;  // its fields are not those of a receiver
  c.message_bytes = was.message_bytes;
  c.expected_psn = was.expected_psn;
  c.msn = was.msn;
  c.write_rkey = was.write_rkey;
  c.write_va = was.write_va;
  c.remaining = was.remaining;
  c.rq_consumed = was.rq_consumed;
  c.rq_posted = was.rq_posted;
  c.in_message = was.in_message;
  c.owed = was.owed;
  constexpr std::uint8_t software =
      responder_flag_reserved_lkey | responder_flag_inline_receive | responder_flag_no_credits;
  c.flags = static_cast<std::uint8_t>((was.flags & ~software) | (settings.flags & software));
}

}  // namespace rnic::icm
