// SPDX-License-Identifier: Apache-2.0
// End-to-end flow control (IBA 9.7.7.2): an answer says for how many messages behind it the responder has receives.
#include <algorithm>

#include "model/transport/credits.h"
#include "model/transport/requester/requester.h"

namespace rnic::transport {

namespace {
constexpr std::uint16_t most_told = 0x7fff;  // more than a send queue has
}

/// Without a credit one message may go all the same, to find out: its answer brings the next credits, and if there is
/// no receive for it, the answer is receiver-not-ready. So it is when nothing is under way: no answer would come any
/// more. Messages whose completion is not reported yet count as under way.
bool requester::may_use_receive(const context& c, const send_wqe& wqe) const {
  if ((c.flags & icm::requester_flag_unlimited) != 0 || !config_.end_to_end_credits || !wqe.takes_receive())
    return true;
  return c.receives_used <= c.receives_told || c.unacked_psn == c.next_psn;
}

/// A message is done. Where nothing has told of receives behind it (a NAK acknowledges without credits), it has used
/// one of those that are known, or was the one that finds out: then its answer is still to come.
void requester::use_receive(context& c, const qp_runtime& r, const message& m) const {
  constexpr std::uint32_t half_window = 1u << 23;
  const bool told_behind = distance(m.last_psn, r.told_psn) - 1 < half_window;
  if (m.takes_receive && c.receives_told >= 0 && !told_behind) --c.receives_told;
}

/// An answer to packet `psn`.
void requester::take_receives(context& c, qp_runtime& r, std::uint32_t psn, const wire::aeth& answer) {
  if ((c.flags & icm::requester_flag_unlimited) != 0) return;
  const unsigned code = answer.syndrome & 0x1f;
  if (code == credits_unlimited)
    c.flags |= icm::requester_flag_unlimited;
  else
    c.receives_told = static_cast<std::int16_t>(std::min(credit_counts[code], most_told));
  r.told_psn = (psn + 1) & 0xffffff;
  if (!r.needs_receive) return;
  r.needs_receive = false;
  wake_stalled(r);
}

}  // namespace rnic::transport
