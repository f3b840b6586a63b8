// SPDX-License-Identifier: Apache-2.0
// End-to-end flow control (IBA 9.7.7.2): an answer says for how many messages behind it the responder has receives.
#include "model/transport/credits.h"
#include "model/transport/requester/requester.h"

namespace rnic::transport {

/// Without a credit one message may go all the same, to find out: its answer brings the next credits, and if there is
/// no receive for it, the answer is receiver-not-ready. So it is when nothing is under way: no answer would come any
/// more. Messages whose completion is not reported yet count as under way.
bool requester::may_use_receive(const context& c, const send_wqe& wqe) const {
  if ((c.flags & icm::requester_flag_unlimited) != 0 || !config_.end_to_end_credits || !wqe.takes_receive())
    return true;
  return c.receives_used <= c.receives_told || c.unacked_psn == c.next_psn;
}

void requester::take_receives(context& c, qp_runtime& r, const wire::aeth& answer) {
  if ((c.flags & icm::requester_flag_unlimited) != 0) return;
  const unsigned code = answer.syndrome & 0x1f;
  if (code == credits_unlimited)
    c.flags |= icm::requester_flag_unlimited;
  else
    c.receives_told = credit_counts[code];
  if (!r.needs_receive) return;
  r.needs_receive = false;
  wake_stalled(r);
}

}  // namespace rnic::transport
