// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/request_check.h"

#include <algorithm>
#include <cstring>

#include "model/transport/message_packets.h"
#include "model/transport/requester/send_wqe.h"
#include "model/transport/responder/rules.h"
#include "model/transport/transport_cr.h"

namespace rnic::transport {
namespace {

using wire::operation;

constexpr std::uint32_t gsi_qkey = 0x80010000;
constexpr std::uint32_t mad_bytes = 256;  // a management datagram has no other length (IBA volume 1, 13.4.2)

/// Masked atomics are operations of a reliable connection.
wire::transport carrier_of(std::uint8_t opcode) {
  const wire::transport t = wire::transport_of(opcode);
  return t == wire::transport::manufacturer ? wire::transport::rc : t;
}

wire::transport class_of(icm::service s) {
  switch (s) {
    case icm::service::rc:
      return wire::transport::rc;
    case icm::service::uc:
      return wire::transport::uc;
    case icm::service::ud:
    case icm::service::mlx:
      return wire::transport::ud;
    case icm::service::xrc:
      return wire::transport::xrc;
    default:
      return wire::transport::rd;
  }
}

/// A connection of its own, on whose path its packets have to come.
bool has_path(icm::service s) { return icm::is_reliable(s) || s == icm::service::uc; }

}  // namespace

request_check::request_check(sim::clocked_block& owner, const responder_registers& registers,
                             const path_check::gid_tables& gids, packet_intake& intake, place_lookup& places,
                             receive_descriptors& receives, drop_counters& drops)
    : registers_(registers),
      path_(owner, gids, registers.ports),
      intake_(intake),
      places_(places),
      receives_(receives),
      drops_(drops) {}

void request_check::announce(sim::statistics& to, const std::string& name) const {
  to.add(name + ".writes", count_.writes);
  to.add(name + ".sends", count_.sends);
  to.add(name + ".reads", count_.reads);
  to.add(name + ".atomics", count_.atomics);
  to.add(name + ".duplicates", count_.duplicates.all);
  to.add(name + ".rnr", count_.rnr.all);
  to.add(name + ".out_of_sequence", count_.out_of_sequence.all);
}

bool request_check::gate(const responder_flow& f, payload::frame& frame) {
  const icm::responder_context& ctx = *f.ctx;
  const wire::packet& p = frame.packet;
  const auto count = [](std::uint64_t& c) {
    ++c;
    return false;
  };
  if (!receives(ctx.state)) return count(ctx.state == icm::qp_state::error ? drops_.error : drops_.state);
  if (class_of(ctx.type) != carrier_of(p.bth.opcode)) return count(drops_.service);
  if (has_path(ctx.type) && !path_.of_peer(ctx.dest, frame)) return count(drops_.address);
  // A member of a group has its datagrams by its own port (IBA volume 1, 10.5).
  if (wire::is_multicast(p.dgid) && !registers_.ports.may_arrive(frame.port, ctx.dest)) return count(drops_.address);
  // Management datagrams for virtual functions are the host's driver's to hand on. What its queue pairs and the
  // functions' say to each other has come from inside, whoever of them has sent it: Q_Keys tell them apart. They are as
  // the sender's context has them, so a frame that software has made whole is none of these.
  const bool inside = ctx.type == icm::service::ud && (ctx.dest.flags & icm::path_flag_loopback) != 0;
  if (inside && (frame.loopback == payload::frame::loopback_none || !frame.inside)) return count(drops_.address);
  if (!inside && ctx.type != icm::service::mlx && !path_.of_function(ctx.function, frame))
    return count(drops_.function);
  if (!path_.in_vlan(ctx.dest, frame)) return count(drops_.vlan);
  // The only P_Key of an Ethernet port is 0xffff, a full member: limited members match as well (C.6).
  if ((p.bth.pkey & 0x7fff) != 0x7fff) return count(drops_.pkey);
  if (wire::transport_of(p.bth.opcode) == wire::transport::ud) {
    const bool gsi = registers_.special_qp_base != 0 && f.qpn - registers_.special_qp_base - cr::special_qp1 < 2;
    if (ctx.type == icm::service::mlx && !gsi) return count(drops_.service);  // sends only, or raw Ethernet
    if (p.deth.qkey != (gsi ? gsi_qkey : ctx.qkey)) return count(drops_.qkey);
    if (gsi && p.payload_length != mad_bytes) return count(drops_.mad_length);
    if (p.payload_length > path_mtu(ctx)) return count(drops_.length);
  }
  return true;
}

verdict request_check::check(responder_flow& f, payload::frame_ptr& frame) {
  if (has_path(f.ctx->type) && !path_.may_check(f.ctx->dest, *frame)) return verdict::wait;
  passed_ = gate(f, *frame);
  if (!passed_) return verdict::done;
  switch (carrier_of(frame->packet.bth.opcode)) {
    case wire::transport::rc:
    case wire::transport::xrc:
      return rc(f, frame);
    case wire::transport::uc:
      return uc(f, frame);
    case wire::transport::ud:
      return ud(f, frame);
    default:
      return drop(drops_.service);
  }
}

verdict request_check::rc(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::psn_t psn = frame->packet.bth.psn;
  const std::int32_t ahead = psn - wire::psn_t(ctx.expected_psn);
  if (ahead > 0) {
    count_.out_of_sequence.count(ctx.dest.port);
    if ((ctx.flags & icm::responder_flag_nak_sent) != 0) return drop(drops_.sequence);
    ctx.flags |= icm::responder_flag_nak_sent;
    return intake_.answer(f, frame, syndrome_sequence, ctx.expected_psn);
  }
  if (ahead < 0) return duplicate(f, frame);
  const wire::opcode_traits& t = wire::traits(frame->packet.bth.opcode);
  const operation op = wire::operation_of(frame->packet.bth.opcode);
  if (!in_sequence(ctx.in_message, op, t.first)) return refuse(f, frame);
  return execute(f, frame);
}

verdict request_check::execute(responder_flow& f, payload::frame_ptr& frame) {
  if (!names_queue(*f.ctx) || !wire::traits(frame->packet.bth.opcode).first) return execute_operation(f, frame);
  const supply queue = receives_.choose(*f.ctx, frame->packet.xrceth & 0xffffff);
  if (queue == supply::pending) return verdict::wait;
  if (queue == supply::failed) return refuse(f, frame);
  const verdict v = execute_operation(f, frame);
  if (v != verdict::wait) receives_.used(srqn_of(*f.ctx));
  return v;
}

verdict request_check::execute_operation(responder_flow& f, payload::frame_ptr& frame) {
  const operation op = wire::operation_of(frame->packet.bth.opcode);
  if (is_send(op)) return execute_send(f, frame);
  if (is_write(op)) return execute_write(f, frame);
  if (op == operation::read_request && icm::is_reliable(f.ctx->type)) return execute_read(f, frame);
  if (is_atomic(op) && icm::is_reliable(f.ctx->type)) return execute_atomic(f, frame);
  return refuse(f, frame);
}

verdict request_check::uc(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::psn_t psn = frame->packet.bth.psn;
  const wire::opcode_traits& t = wire::traits(frame->packet.bth.opcode);
  const operation op = wire::operation_of(frame->packet.bth.opcode);
  const bool continues =
      ctx.in_message != in_none && in_sequence(ctx.in_message, op, t.first) && psn == wire::psn_t(ctx.expected_psn);
  if (!continues) {
    // A message that lost its end gives its receive WQE to the next one.
    if (!receives_.give_back(f)) return verdict::wait;
    ctx.in_message = in_none;
    f.dirty = true;
    ctx.expected_psn = psn.value();
    if (!t.first) {
      ctx.expected_psn = (psn + 1).value();
      return drop(drops_.sequence);
    }
  }
  return execute(f, frame);
}

verdict request_check::duplicate(responder_flow& f, payload::frame_ptr& frame) {
  const verdict v = repeat(f, frame);
  if (v != verdict::wait) count_.duplicates.count(f.ctx->dest.port);
  return v;
}

verdict request_check::repeat(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::packet& p = frame->packet;
  const operation op = wire::operation_of(p.bth.opcode);
  if (is_send(op) || is_write(op)) {
    return intake_.answer(f, frame, syndrome_ack, (wire::psn_t(ctx.expected_psn) - 1).value());
  }
  if (is_atomic(op)) {  // never executed again: the answer is in the history, or the request is dropped
    intake_.begin(f, frame, responder_slot::action::atomic).duplicate = true;
    return verdict::done;
  }
  if (op != operation::read_request) return drop(drops_.duplicate_read);
  const std::uint32_t packets = packets_of(p.reth.length, path_mtu(ctx));
  const bool inside = p.reth.length <= longest_message &&
                      static_cast<std::int32_t>(packets) <= wire::psn_t(ctx.expected_psn) - p.bth.psn;
  if (!inside || (ctx.access & icm::responder_access_read) == 0) return drop(drops_.duplicate_read);
  std::uint32_t pd = ctx.pd;
  if (names_queue(ctx)) {
    const supply queue = receives_.in_domain(ctx, p.xrceth & 0xffffff, pd);
    if (queue == supply::pending) return verdict::wait;
    if (queue == supply::failed) return drop(drops_.duplicate_read);
    receives_.used(p.xrceth & 0xffffff);
  }
  responder_slot& s = intake_.begin(f, frame, responder_slot::action::read);
  s.duplicate = true;
  s.pd = pd;
  s.read_length = s.frame->packet.reth.length;
  if (s.read_length != 0)
    places_.add(s, s.frame->packet.reth.va, s.frame->packet.reth.rkey, std::min(s.read_length, path_mtu(ctx)),
                s.read_length, icm::access::remote_read);
  places_.issue(s);
  return verdict::done;
}

verdict request_check::execute_write(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::packet& p = frame->packet;
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  const std::uint32_t mtu = path_mtu(ctx);
  if ((ctx.access & icm::responder_access_write) == 0) return refuse(f, frame);
  const std::uint32_t remaining = t.first ? p.reth.length : ctx.remaining;
  const bool length_ok = remaining <= longest_message && (t.last ? remaining <= mtu : remaining > mtu) &&
                         p.payload_length == std::min(remaining, mtu);
  if (!length_ok) return refuse(f, frame);
  receive_descriptors::entry entry;
  if (t.immediate) {
    if (!has_receive_queue(ctx)) return no_receive(f, frame);
    const supply found = receives_.find(ctx, true, false, entry);
    if (found == supply::pending) return verdict::wait;
    if (found == supply::empty) return no_receive(f, frame);
    if (found == supply::failed) return intake_.refuse(f, frame, memory_unreachable);
  }
  ++count_.writes;
  responder_slot& s = intake_.begin(f, frame, responder_slot::action::write);
  if (t.first) {
    ctx.write_va = s.frame->packet.reth.va;
    ctx.write_rkey = s.frame->packet.reth.rkey;
    ctx.message_bytes = 0;
  }
  if (t.immediate) {
    s.completion.has_wqe = s.completion.due = true;
    s.completion.wqe_index = entry.index;
    receives_.take(ctx, entry, false);
    s.completion.opcode = cqe_write_immediate;
  }
  s.completion.rq_after = ctx.rq_consumed;
  const std::uint32_t payload = s.frame->packet.payload_length;
  if (payload != 0)
    places_.add(s, ctx.write_va, ctx.write_rkey, payload, t.first ? remaining : 0, icm::access::remote_write);
  ctx.write_va += payload;
  ctx.remaining = remaining - payload;
  ctx.in_message = t.last ? in_none : in_write;
  intake_.finish(f, s, t);
  if (t.immediate) receives_.look_ahead(ctx);
  return verdict::done;
}

verdict request_check::execute_read(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::packet& p = frame->packet;
  const std::uint32_t mtu = path_mtu(ctx);
  // A request of data has none itself (C.3).
  if ((ctx.access & icm::responder_access_read) == 0 || p.payload_length != 0 || p.reth.length > longest_message ||
      f.requests.fresh >= (1u << ctx.log_max_rd_atomic))
    return refuse(f, frame);
  ++count_.reads;
  ++f.requests.fresh;
  responder_slot& s = intake_.begin(f, frame, responder_slot::action::read);
  const wire::reth& reth = s.frame->packet.reth;
  s.read_length = reth.length;
  if (reth.length != 0)
    places_.add(s, reth.va, reth.rkey, std::min(reth.length, mtu), reth.length, icm::access::remote_read);
  intake_.finish_fetch(f, s, packets_of(reth.length, mtu));
  return verdict::done;
}

verdict request_check::execute_atomic(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::atomic_eth& a = frame->packet.atomic;
  const unsigned resources = std::min(1u << ctx.log_max_rd_atomic, icm::rdma_resources::depth);
  if ((ctx.access & icm::responder_access_atomic) == 0 || frame->packet.payload_length != 0 ||
      a.va % atomic_bytes != 0 || f.requests.fresh >= resources)
    return refuse(f, frame);
  ++count_.atomics;
  ++f.requests.fresh;
  responder_slot& s = intake_.begin(f, frame, responder_slot::action::atomic);
  const wire::packet& p = s.frame->packet;
  places_.add(s, p.atomic.va, p.atomic.rkey, atomic_bytes, 0, icm::access::remote_atomic);
  intake_.finish_fetch(f, s, 1);
  return verdict::done;
}

// ---------------------------------------------------------------- packets that take receives

verdict request_check::ud(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::packet& p = frame->packet;
  if (!has_receive_queue(ctx)) return drop(drops_.no_wqe);
  receive_descriptors::entry entry;
  const bool in_wqe = goes_inline(ctx, p);
  const supply found = receives_.find(ctx, true, !in_wqe, entry);
  if (found == supply::pending) return verdict::wait;
  if (found == supply::empty) return drop(drops_.no_wqe);
  if (found == supply::failed) return intake_.refuse(f, frame, memory_unreachable);

  // The 40 bytes in front of the payload become the GRH area: its headers are parsed already, and payload is written
  // to memory from there in one piece.
  std::uint8_t* area = frame->data() + p.payload_offset - grh_area;
  const bool v4 = p.encap == wire::encapsulation::roce_v2_ipv4;
  std::memmove(area + (v4 ? 20 : 0), frame->data() + p.l3_offset, v4 ? 20 : 40);
  if (v4) std::memset(area, 0, 20);

  responder_slot& s = intake_.begin(f, frame, responder_slot::action::write);
  s.unreliable = true;
  s.place.source -= grh_area;
  const wire::packet& in = s.frame->packet;
  return intake_.receive_whole(f, s, entry, wire::traits(in.bth.opcode).immediate ? cqe_send_immediate : cqe_send,
                               in.payload_length + grh_area, in_wqe);
}

verdict request_check::no_receive(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  if (!icm::is_reliable(ctx.type)) {
    ctx.expected_psn = (frame->packet.bth.psn + 1).value();
    ctx.in_message = in_none;
    f.dirty = true;
    return drop(drops_.no_wqe);
  }
  count_.rnr.count(ctx.dest.port);
  ctx.flags |= icm::responder_flag_nak_sent;  // what is already on its way behind it is dropped without another NAK
  return intake_.answer(f, frame, rnr_syndrome(ctx), frame->packet.bth.psn.value());
}

verdict request_check::execute_send(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::packet& p = frame->packet;
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  const std::uint32_t mtu = path_mtu(ctx);
  const bool length_ok = p.payload_length <= mtu && (t.last || p.payload_length == mtu) &&
                         (t.first || (p.payload_length != 0 && ctx.message_bytes <= longest_message));
  if (!length_ok && !(t.first && p.payload_length <= mtu && t.last)) return refuse(f, frame);
  if (!has_receive_queue(ctx)) return no_receive(f, frame);
  receive_descriptors::entry entry;
  const bool in_wqe = goes_inline(ctx, p);
  const supply found = receives_.find(ctx, t.first, p.payload_length != 0 && !in_wqe, entry);
  if (found == supply::pending) return verdict::wait;
  if (found == supply::empty) return no_receive(f, frame);
  if (found == supply::failed) return intake_.refuse(f, frame, memory_unreachable);
  ++count_.sends;
  responder_slot& s = intake_.begin(f, frame, responder_slot::action::write);
  if (t.first) {
    receives_.take(ctx, entry, !t.last);
    ctx.message_bytes = 0;
  }
  s.completion.has_wqe = true;
  s.completion.wqe_index = entry.index;
  s.completion.rq_after = ctx.rq_consumed;
  s.completion.due = t.last;
  s.completion.opcode = t.immediate ? cqe_send_immediate : t.ieth ? cqe_send_invalidate : cqe_send;
  s.invalidates = t.ieth;
  ctx.in_message = t.last ? in_none : in_send;  // also where it ends the queue pair: its receive is taken
  responder_error error{};
  const std::uint32_t payload = s.frame->packet.payload_length;
  if (in_wqe) {
    intake_.put_in_wqe(s, ctx, payload);
  } else if (payload != 0 && !intake_.scatter(s, entry, ctx.message_bytes, payload, error)) {
    s.what = responder_slot::action::failure;
    s.nak = error.nak;
    s.completion.syndrome = error.completion;
    ctx.state = icm::qp_state::error;
    return verdict::done;
  }
  intake_.finish(f, s, t);
  if (t.last) receives_.look_ahead(ctx);
  return verdict::done;
}

}  // namespace rnic::transport
