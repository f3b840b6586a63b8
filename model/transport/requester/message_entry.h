// SPDX-License-Identifier: Apache-2.0
// A unit's WQE becomes a message in the table.
#pragma once

#include <cstdint>

#include "model/transport/requester/message_table.h"
#include "model/transport/requester/rules.h"
#include "model/transport/requester/send_unit.h"

namespace rnic::transport {

/// When its first packet starts, or it needs none: counted in the context. `first_packet`: number of that packet. A
/// READ that begins anew amid its answer asks for the rest, and has what is before it.
inline std::uint32_t enter_message(message_table& messages, qp_runtime& r, const send_unit& u, std::uint32_t packets,
                                   std::uint64_t first_packet) {
  icm::requester_context& c = *u.ctx;
  std::uint32_t index = no_index;
  message& m = messages.append(r, index);
  const std::uint32_t sent = c.message_offset / packet_bytes(c, u.wqe);
  m.wqe_index = c.next_wqe;
  m.strides = static_cast<std::uint16_t>(u.at_wqe.strides);
  m.first_psn = next_psn(c) - sent;
  m.last_psn = m.first_psn + (packets - 1);
  m.length = u.wqe.length;
  m.first_packet = first_packet;
  m.opcode = static_cast<std::uint8_t>(u.wqe.opcode);
  m.signalled = u.wqe.signalled;
  m.local = !icm::is_reliable(c.type);
  if (u.wqe.fetches() && u.wqe.error == 0) {
    m.got = m.asked_from = sent;
    messages.append_read(c, r, index, u.wqe);
  }
  ++c.outstanding;
  m.takes_receive = icm::is_reliable(c.type) && u.wqe.takes_receive() && u.wqe.error == 0;
  if (m.takes_receive) ++c.receives_used;
  return index;
}

}  // namespace rnic::transport
