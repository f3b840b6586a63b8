// SPDX-License-Identifier: Apache-2.0
// What the responder's checks share: kinds of operations, limits, codes of completions.
#pragma once

#include <cstdint>

#include "model/icm/contexts.h"
#include "model/wire/packet.h"

namespace rnic::transport {

inline constexpr std::uint8_t in_none = 0, in_send = 1, in_write = 2;  ///< responder_context::in_message
inline constexpr std::uint32_t grh_area = 40;                          ///< A.9.2
inline constexpr std::uint32_t longest_message = 1u << 31;
inline constexpr std::uint8_t cqe_inline = 0x20;  ///< A.5.2: the payload lies in the receive WQE
inline constexpr std::uint8_t cqe_write_immediate = 0, cqe_send = 1, cqe_send_immediate = 2,
                              cqe_send_invalidate = 3;  ///< A.5.2

/// Message sequence numbers count messages as PSNs count packets (IBA 9.7.5.1.5).
constexpr std::uint32_t next_msn(std::uint32_t msn) { return (wire::psn_t(msn) + 1).value(); }

constexpr bool is_send(wire::operation op) {
  return op <= wire::operation::send_only_immediate || op >= wire::operation::send_last_invalidate;
}
constexpr bool is_write(wire::operation op) {
  return op >= wire::operation::write_first && op <= wire::operation::write_only_immediate;
}
constexpr bool is_atomic(wire::operation op) {
  return op == wire::operation::compare_swap || op == wire::operation::fetch_add;
}

/// States in which a queue pair executes what it receives (IBA volume 1, 10.3.1): all from RTR on but the error state.
constexpr bool receives(icm::qp_state s) {
  switch (s) {
    case icm::qp_state::rtr:
    case icm::qp_state::rts:
    case icm::qp_state::sq_error:
    case icm::qp_state::sq_draining:
    case icm::qp_state::sqd:
      return true;
    default:
      return false;
  }
}

/// "Valid sequences of opcodes" (IBA volume 1, 9.7.4.1.2; 9.8.2.2.2 for UC): what may follow while a message of kind
/// `in_message` is under way. `first`: the packet begins a message.
constexpr bool in_sequence(std::uint8_t in_message, wire::operation op, bool first) {
  switch (in_message) {
    case in_send:  // behind SEND first and middle
      return is_send(op) && !first;
    case in_write:  // behind RDMA WRITE first and middle
      return is_write(op) && !first;
    default:  // behind last and only, READ and atomic requests
      return first || !(is_send(op) || is_write(op));
  }
}

/// Each message names the shared receive queue that it wants (IBA annex A14).
constexpr bool names_queue(const icm::responder_context& ctx) { return ctx.type == icm::service::xrc; }
constexpr std::uint16_t domain_of(const icm::responder_context& ctx) { return static_cast<std::uint16_t>(ctx.qkey); }

/// The QP takes its receives from a shared receive queue.
constexpr bool is_shared(const icm::responder_context& ctx) { return (ctx.srqn >> 24 & 1) != 0; }
inline constexpr std::uint32_t srqn_valid = 1u << 24;
constexpr std::uint32_t srqn_of(const icm::responder_context& ctx) { return ctx.srqn & 0xffffff; }
constexpr bool has_receive_queue(const icm::responder_context& ctx) { return is_shared(ctx) || ctx.log_rq_stride != 0; }

/// A message of one packet that has room in the receive WQE, a datagram with its GRH area, goes there where the QP asks
/// for it (adapter data plane A.3.3): a longer one could turn out too long when its first packet is in memory.
inline bool goes_inline(const icm::responder_context& ctx, const wire::packet& p) {
  if ((ctx.flags & icm::responder_flag_inline_receive) == 0) return false;
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  const bool datagram = wire::transport_of(p.bth.opcode) == wire::transport::ud;
  const std::uint32_t bytes = p.payload_length + (datagram ? grh_area : 0);
  return t.first && t.last && is_send(wire::operation_of(p.bth.opcode)) && bytes != 0 &&
         bytes <= 1u << ctx.log_rq_stride;
}

}  // namespace rnic::transport
