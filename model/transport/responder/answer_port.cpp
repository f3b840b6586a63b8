// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/answer_port.h"

#include <cassert>
#include <utility>

#include "model/gid/gid_match_if.h"
#include "model/transport/credits.h"
#include "model/transport/responder/receive_wqe.h"
#include "model/transport/responder/rules.h"

namespace rnic::transport {

answer_port::answer_port(sim::clocked_block& owner, unsigned places) : job(owner), room(owner) {
  for (auto& port : room_) port.fill(static_cast<std::uint16_t>(places));
}

void answer_port::work() {
  room.take_due([&](const answer_room& r) { ++room_[r.port][r.priority]; });
  room.set_quiet(true);  // claim() says when somebody waits
}

bool answer_port::claim(unsigned port, unsigned priority) {
  if (room_[port][priority] != 0) return job.claim();
  room.set_quiet(false);
  return false;
}

void answer_port::push(answer_job&& j) {
  assert(room_[j.port][j.priority] != 0);
  --room_[j.port][j.priority];
  job.push(std::move(j));
}

wire::encapsulation encapsulation_of(const icm::path& path) {
  if ((path.flags & icm::path_flag_roce_v2) == 0) return wire::encapsulation::roce_v1;
  return gid::is_mapped_ipv4(path.remote_gid) ? wire::encapsulation::roce_v2_ipv4 : wire::encapsulation::roce_v2_ipv6;
}

std::uint32_t answer_length(const answer_job& j) {
  if (j.complete) return j.frame->length;
  constexpr std::uint32_t icrc = 4;
  wire::packet p;
  p.encap = encapsulation_of(j.path);
  p.vlan_present = (j.path.flags & icm::path_flag_vlan) != 0;
  p.bth.opcode = j.opcode;
  return static_cast<std::uint32_t>(wire::header_length(p)) + ((j.payload + 3) & ~3u) + icrc;
}

answer_address address_of(const icm::responder_context& ctx) {
  return {ctx.dest, ctx.remote_qpn, ctx.function, names_queue(ctx)};
}

answer_job make_answer(const answer_address& to, payload::frame_ptr frame, wire::operation what, std::uint32_t psn,
                       std::uint8_t syndrome, std::uint32_t msn, std::uint32_t payload, std::uint64_t original) {
  answer_job j;
  j.frame = std::move(frame);
  j.port = to.path.port & 1;
  j.priority = to.path.priority & 7;
  j.opcode = wire::make_opcode(to.xrc ? wire::transport::xrc : wire::transport::rc, what);
  j.syndrome = syndrome;
  j.function = to.function;
  j.psn = psn;
  j.msn = wire::psn_t(msn).value();
  j.payload = payload;
  j.remote_qpn = to.remote_qpn;
  j.original = original;
  j.path = to.path;
  return j;
}

std::uint8_t ack_syndrome(const icm::responder_context& ctx) {
  // A shared queue's receives are nobody's own; a context of an XRC target has no queue either.
  const bool counts = (ctx.flags & icm::responder_flag_no_credits) == 0 && ctx.log_rq_stride != 0;
  return counts ? credit_code(receives_left(ctx, ctx.rq_consumed)) : syndrome_ack;
}

}  // namespace rnic::transport
