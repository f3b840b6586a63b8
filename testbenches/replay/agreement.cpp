// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/agreement.h"

#include "testbenches/replay/packets.h"

namespace rnic::replay {

agreement::agreement(const comparison& c, const plan& p) : compared_(c), plan_(p) {
  for (const expectation& e : c.expectations()) {
    const captured_frame& f = p.frames[e.frame];
    const std::uint32_t psn = f.packet.bth.psn.value();
    if (e.answer != 0) answered_.emplace(f.connection, psn, f.packet.bth.opcode);
    if (wire::traits(f.packet.bth.opcode).request) requests_.emplace(f.connection, psn);
  }
}

bool agreement::is_fatal(const difference& d) const {
  switch (d.kind) {
    case difference_kind::together:
    case difference_kind::msn:
    case difference_kind::solicited:
      return false;
    case difference_kind::extra_answer:
      return d.answer == 0 || syndrome_kind(compared_.answers()[d.answer - 1].syndrome) != aeth_kind::ack;
    case difference_kind::extra_request:
      return d.answer == 0 || requests_.count({d.connection, compared_.answers()[d.answer - 1].psn}) == 0;
    case difference_kind::payload:
      return !d.other_order;
    case difference_kind::missing_request:
      return !plan_.frames[d.frame - 1].repeated;
    case difference_kind::missing_answer: {
      const wire::packet& x = plan_.frames[d.frame - 1].packet;
      return answered_.count({d.connection, x.bth.psn.value(), x.bth.opcode}) == 0;
    }
    default:
      return true;
  }
}

}  // namespace rnic::replay
