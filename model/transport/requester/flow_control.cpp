// SPDX-License-Identifier: Apache-2.0
// End-to-end flow control (IBA 9.7.7.2): an answer says for how many messages behind it the responder has receives.
#include <algorithm>

#include "model/transport/credits.h"
#include "model/transport/requester/completer.h"

namespace rnic::transport {

namespace {
constexpr std::uint16_t most_told = 0x7fff;  // more than a send queue has
}

/// An answer to packet `psn`.
void completer::take_receives(context& c, qp_runtime& r, wire::psn_t psn, const wire::aeth& answer) {
  if ((c.flags & icm::requester_flag_unlimited) != 0) return;
  const unsigned code = answer.syndrome & 0x1f;
  if (code == credits_unlimited)
    c.flags |= icm::requester_flag_unlimited;
  else
    c.receives_told = static_cast<std::int16_t>(std::min(credit_counts[code], most_told));
  r.progress.told = psn + 1;
  if (!r.needs_receive) return;
  r.needs_receive = false;
  resumes_.wake_stalled(r);
}

}  // namespace rnic::transport
