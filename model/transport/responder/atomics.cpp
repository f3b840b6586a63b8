// SPDX-License-Identifier: Apache-2.0
// Responder: atomic requests, executed once and answered as often as asked (IBA 9.4.5; adapter data plane C.6, C.7).
#include <algorithm>
#include <utility>

#include "model/transport/requester/send_wqe.h"
#include "model/transport/responder/responder.h"

namespace rnic::transport {
namespace {

atomic_operation operation_of(const wire::packet& p) {
  const bool masked = wire::transport_of(p.bth.opcode) == wire::transport::manufacturer;
  atomic_operation a;
  a.swap_add = p.atomic.swap_add;
  if (wire::operation_of(p.bth.opcode) == wire::operation::fetch_add) {
    if (masked) a.boundaries = p.atomic.compare;
    return a;
  }
  a.what = atomic_operation::kind::compare_swap;
  a.compare = p.atomic.compare;
  if (!masked) return a;
  a.swap_mask = p.atomic.swap_mask;
  a.compare_mask = p.atomic.compare_mask;
  return a;
}

/// The newest entry with this PSN.
bool find_answer(const icm::rdma_resources& ring, std::uint32_t psn, std::uint64_t& original) {
  using icm::rdma_resources;
  for (unsigned age = 1; age <= rdma_resources::depth; ++age) {
    const unsigned at = (ring.entries[0].next + rdma_resources::depth - age) % rdma_resources::depth;
    const rdma_resources::entry& e = ring.entries[at];
    if (!e.is(rdma_resources::kind::atomic) || e.psn != psn) continue;
    original = e.value;
    return true;
  }
  return false;
}

}  // namespace

responder::verdict responder::execute_atomic(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::atomic_eth& a = frame->packet.atomic;
  const unsigned resources = std::min(1u << ctx.log_max_rd_atomic, icm::rdma_resources::depth);
  if ((ctx.access & icm::responder_access_atomic) == 0 || frame->packet.payload_length != 0 ||
      a.va % atomic_bytes != 0 || f.reads_new >= resources)
    return refuse_request(f, frame);
  ++count_.atomics;
  ++f.reads_new;
  responder_slot& s = new_slot(f, frame, responder_slot::action::atomic);
  const wire::packet& p = s.frame->packet;
  add_piece(s, p.atomic.va, p.atomic.rkey, atomic_bytes, 0, icm::access::remote_atomic);
  ctx.expected_psn = (p.bth.psn + 1).value();
  ctx.msn = (ctx.msn + 1) & 0xffffff;
  ctx.flags &= static_cast<std::uint8_t>(~icm::responder_flag_nak_sent);
  s.msn = ctx.msn;
  issue(s);
  return verdict::done;
}

/// Never executed again: the answer is in the history, or the request is dropped.
responder::verdict responder::duplicate_atomic(responder_flow& f, payload::frame_ptr& frame) {
  new_slot(f, frame, responder_slot::action::atomic).duplicate = true;
  return verdict::done;
}

/// Hands the request on, in the order of its QP. What has no answer to be repeated any more is dropped.
bool responder::commit_atomic(responder_slot& s) {
  responder_flow& f = flows_[s.flow];
  if (drop_repeated(s)) {
    ++count_.drop_duplicate_atomic;
    return true;
  }
  if (f.stop) return give_up_request(s);
  // Nor before the READs that wait in host memory.
  if (!reads.can_take() || f.reads_held != 0 || !may_hand_over()) return false;
  icm::rdma_resources* h = nullptr;
  using result = icm::context_cache<icm::rdma_resources>::result;
  const bool room = map_.layout(icm::table::rdmarc).entry_bytes >= sizeof(icm::rdma_resources);
  const result found = room ? histories_.lookup(f.qpn, h) : result::refused;
  if (found == result::pending) return false;
  const bool known = found == result::hit;
  read_command r = command_of(s);
  r.what = s.duplicate ? read_command::kind::replay : read_command::kind::atomic;
  if (s.duplicate && (!known || !find_answer(*h, s.psn, r.original))) {
    ++count_.drop_duplicate_atomic;
    return true;
  }
  if (!known) {  // software gave the QP no memory for its resources
    --f.reads_new;
    s.what = responder_slot::action::failure;
    s.msn = s.msn_before;
    s.nak = invalid_request.nak;
    s.event = invalid_request.event;
    return commit_failure(s);
  }
  if (!s.duplicate) histories_.pin(f.qpn);
  r.key = s.frame->packet.atomic.rkey;
  r.first.segments[0] = s.segments[0];
  r.first.count = 1;
  r.operation = operation_of(s.frame->packet);
  note_commit(s);
  hand_over(f, r);
  return true;
}

}  // namespace rnic::transport
