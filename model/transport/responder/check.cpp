// SPDX-License-Identifier: Apache-2.0
// Responder: the state flow of a packet from its headers to a slot (adapter data plane, C.7.1 and C.7.2).
#include <algorithm>
#include <cstring>

#include "model/transport/message_packets.h"
#include "model/transport/responder/responder.h"
#include "model/transport/responder/rules.h"
#include "model/transport/responder/tags.h"
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

}  // namespace

bool responder::gate(const responder_flow& f, const payload::frame& frame) {
  const icm::responder_context& ctx = *f.ctx;
  const wire::packet& p = frame.packet;
  const auto count = [](std::uint64_t& c) {
    ++c;
    return false;
  };
  if (!receives(ctx.state)) return count(ctx.state == icm::qp_state::error ? count_.drop_error : count_.drop_state);
  if (class_of(ctx.type) != carrier_of(p.bth.opcode)) return count(count_.drop_service);
  if (icm::is_reliable(ctx.type) || ctx.type == icm::service::uc) {
    const gid::gid_table& gids = *gids_[ctx.dest.port & 1];
    const gid::entry& own = gids[ctx.dest.gid_index];
    const bool v2 = (ctx.dest.flags & icm::path_flag_roce_v2) != 0;
    if (frame.port != ctx.dest.port || std::memcmp(p.sgid.data(), ctx.dest.remote_gid, 16) != 0 || !own.valid ||
        v2 != (own.type == gid::roce_type::v2) || p.dgid != own.id || v2 != (p.encap != wire::encapsulation::roce_v1))
      return count(count_.drop_address);
  }
  // The only P_Key of an Ethernet port is 0xffff, a full member: limited members match as well (C.6).
  if ((p.bth.pkey & 0x7fff) != 0x7fff) return count(count_.drop_pkey);
  if (wire::transport_of(p.bth.opcode) == wire::transport::ud) {
    const bool gsi = special_qp_base_ != 0 && f.qpn - special_qp_base_ - cr::special_qp1 < 2;
    if (ctx.type == icm::service::mlx && !gsi) return count(count_.drop_service);  // sends only, or raw Ethernet
    if (p.deth.qkey != (gsi ? gsi_qkey : ctx.qkey)) return count(count_.drop_qkey);
    if (gsi && p.payload_length != mad_bytes) return count(count_.drop_mad_length);
  }
  return true;
}

responder::verdict responder::check(responder_flow& f, payload::frame_ptr& frame) {
  if (frame->plain) return check_ethernet(f, frame);
  gate_passed_ = gate(f, *frame);
  if (!gate_passed_) return verdict::done;
  switch (carrier_of(frame->packet.bth.opcode)) {
    case wire::transport::rc:
    case wire::transport::xrc:
      return check_rc(f, frame);
    case wire::transport::uc:
      return check_uc(f, frame);
    case wire::transport::ud:
      return check_ud(f, frame);
    default:
      return drop(count_.drop_service);
  }
}

responder::verdict responder::check_rc(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::psn_t psn = frame->packet.bth.psn;
  const std::int32_t ahead = psn - wire::psn_t(ctx.expected_psn);
  if (ahead > 0) {
    ++count_.out_of_sequence;
    if ((ctx.flags & icm::responder_flag_nak_sent) != 0) return drop(count_.drop_sequence);
    ctx.flags |= icm::responder_flag_nak_sent;
    answer(f, frame, syndrome_sequence, ctx.expected_psn);
    return verdict::done;
  }
  if (ahead < 0) return duplicate(f, frame);
  const wire::opcode_traits& t = wire::traits(frame->packet.bth.opcode);
  const operation op = wire::operation_of(frame->packet.bth.opcode);
  if (!in_sequence(ctx.in_message, op, t.first)) return refuse_request(f, frame);
  return execute(f, frame);
}

responder::verdict responder::execute(responder_flow& f, payload::frame_ptr& frame) {
  if (!names_queue(*f.ctx) || !wire::traits(frame->packet.bth.opcode).first) return execute_operation(f, frame);
  const supply queue = choose_queue(*f.ctx, *frame);
  if (queue == supply::pending) return verdict::wait;
  if (queue == supply::failed) return refuse_request(f, frame);
  const verdict v = execute_operation(f, frame);
  if (v != verdict::wait) shared_.used(srqn_of(*f.ctx));
  return v;
}

responder::verdict responder::execute_operation(responder_flow& f, payload::frame_ptr& frame) {
  const operation op = wire::operation_of(frame->packet.bth.opcode);
  if (is_send(op)) return execute_send(f, frame);
  if (is_write(op)) return execute_write(f, frame);
  if (op == operation::read_request && icm::is_reliable(f.ctx->type)) return execute_read(f, frame);
  if (is_atomic(op) && icm::is_reliable(f.ctx->type)) return execute_atomic(f, frame);
  return refuse_request(f, frame);
}

responder::verdict responder::check_uc(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::psn_t psn = frame->packet.bth.psn;
  const wire::opcode_traits& t = wire::traits(frame->packet.bth.opcode);
  const operation op = wire::operation_of(frame->packet.bth.opcode);
  const bool continues =
      ctx.in_message != in_none && in_sequence(ctx.in_message, op, t.first) && psn == wire::psn_t(ctx.expected_psn);
  if (!continues) {
    // A message that lost its end gives its receive WQE to the next one.
    if (!give_back_receive(f)) return verdict::wait;
    ctx.in_message = in_none;
    f.dirty = true;
    ctx.expected_psn = psn.value();
    if (!t.first) {
      ctx.expected_psn = (psn + 1).value();
      return drop(count_.drop_sequence);
    }
  }
  return execute(f, frame);
}

responder::verdict responder::duplicate(responder_flow& f, payload::frame_ptr& frame) {
  const verdict v = repeat(f, frame);
  if (v != verdict::wait) ++count_.duplicates;
  return v;
}

responder::verdict responder::repeat(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::packet& p = frame->packet;
  const operation op = wire::operation_of(p.bth.opcode);
  if (is_send(op) || is_write(op)) {
    answer(f, frame, syndrome_ack, (wire::psn_t(ctx.expected_psn) - 1).value());
    return verdict::done;
  }
  if (is_atomic(op)) return duplicate_atomic(f, frame);
  if (op != operation::read_request) return drop(count_.drop_duplicate_read);
  const std::uint32_t packets = packets_of(p.reth.length, path_mtu(ctx));
  const bool inside = p.reth.length <= longest_message &&
                      static_cast<std::int32_t>(packets) <= wire::psn_t(ctx.expected_psn) - p.bth.psn;
  if (!inside || (ctx.access & icm::responder_access_read) == 0) return drop(count_.drop_duplicate_read);
  std::uint32_t pd = ctx.pd;
  if (names_queue(ctx)) {
    const supply queue = shared_.in_domain(p.xrceth & 0xffffff, domain_of(ctx), pd);
    if (queue == supply::pending) return verdict::wait;
    if (queue == supply::failed) return drop(count_.drop_duplicate_read);
    shared_.used(p.xrceth & 0xffffff);
  }
  responder_slot& s = new_slot(f, frame, responder_slot::action::read);
  s.duplicate = true;
  s.pd = pd;
  s.read_length = s.frame->packet.reth.length;
  if (s.read_length != 0)
    add_piece(s, s.frame->packet.reth.va, s.frame->packet.reth.rkey, std::min(s.read_length, path_mtu(ctx)),
              s.read_length, icm::access::remote_read);
  issue(s);
  return verdict::done;
}

responder::verdict responder::execute_write(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::packet& p = frame->packet;
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  const std::uint32_t mtu = path_mtu(ctx);
  if ((ctx.access & icm::responder_access_write) == 0) return refuse_request(f, frame);
  const std::uint32_t remaining = t.first ? p.reth.length : ctx.remaining;
  const bool length_ok = remaining <= longest_message && (t.last ? remaining <= mtu : remaining > mtu) &&
                         p.payload_length == std::min(remaining, mtu);
  if (!length_ok) return refuse_request(f, frame);
  shared_receive::entry_view entry;
  if (t.immediate) {
    if (!has_receive_queue(ctx)) return no_receive(f, frame);
    const supply found = find_receive(ctx, true, false, entry);
    if (found == supply::pending) return verdict::wait;
    if (found == supply::empty) return no_receive(f, frame);
    if (found == supply::failed) return refuse(f, frame, memory_unreachable);
  }
  ++count_.writes;
  responder_slot& s = new_slot(f, frame, responder_slot::action::write);
  if (t.first) {
    ctx.write_va = s.frame->packet.reth.va;
    ctx.write_rkey = s.frame->packet.reth.rkey;
    ctx.message_bytes = 0;
  }
  if (t.immediate) {
    s.has_wqe = s.completes = true;
    s.wqe_index = entry.index;
    take_receive(ctx, entry, false);
    s.cqe_opcode = cqe_write_immediate;
  }
  s.rq_after = ctx.rq_consumed;
  const std::uint32_t payload = s.frame->packet.payload_length;
  if (payload != 0)
    add_piece(s, ctx.write_va, ctx.write_rkey, payload, t.first ? remaining : 0, icm::access::remote_write);
  ctx.write_va += payload;
  ctx.remaining = remaining - payload;
  ctx.in_message = t.last ? in_none : in_write;
  finish_packet(f, s, t);
  if (t.immediate && !is_shared(ctx)) receive_.look_ahead(ctx);
  return verdict::done;
}

responder::verdict responder::execute_read(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::packet& p = frame->packet;
  const std::uint32_t mtu = path_mtu(ctx);
  // A request of data has none itself (C.3).
  if ((ctx.access & icm::responder_access_read) == 0 || p.payload_length != 0 || p.reth.length > longest_message ||
      f.reads_new >= (1u << ctx.log_max_rd_atomic))
    return refuse_request(f, frame);
  ++count_.reads;
  ++f.reads_new;
  responder_slot& s = new_slot(f, frame, responder_slot::action::read);
  const wire::reth& reth = s.frame->packet.reth;
  s.read_length = reth.length;
  if (reth.length != 0)
    add_piece(s, reth.va, reth.rkey, std::min(reth.length, mtu), reth.length, icm::access::remote_read);
  ctx.expected_psn = (wire::psn_t(ctx.expected_psn) + packets_of(reth.length, mtu)).value();
  ctx.msn = (ctx.msn + 1) & 0xffffff;
  ctx.flags &= static_cast<std::uint8_t>(~icm::responder_flag_nak_sent);
  s.msn = ctx.msn;
  issue(s);
  return verdict::done;
}

void responder::finish_packet(responder_flow& f, responder_slot& s, const wire::opcode_traits& t) {
  icm::responder_context& ctx = *f.ctx;
  const wire::packet& p = s.frame->packet;
  ctx.message_bytes += p.payload_length;
  s.byte_count = ctx.message_bytes;
  ctx.expected_psn = (p.bth.psn + 1).value();
  ctx.flags &= static_cast<std::uint8_t>(~icm::responder_flag_nak_sent);
  if (t.last) ctx.msn = (ctx.msn + 1) & 0xffffff;
  s.last = t.last;
  s.msn = ctx.msn;
  s.answered = p.bth.ack_request && !s.unreliable;
  issue(s);
}

responder::verdict responder::refuse_request(responder_flow& f, payload::frame_ptr& frame) {
  return refuse(f, frame, invalid_request);
}

responder::verdict responder::refuse(responder_flow& f, payload::frame_ptr& frame, const responder_error& error) {
  icm::responder_context& ctx = *f.ctx;
  const bool has_wqe = ctx.in_message == in_send && error.completion != 0;
  if (ctx.type == icm::service::uc &&
      error.event != event_qp_fatal) {  // the message is dropped, its WQE used for the next
    if (!give_back_receive(f)) return verdict::wait;
    ctx.in_message = in_none;
    ctx.expected_psn = (frame->packet.bth.psn + 1).value();
    f.dirty = true;
    return drop(count_.drop_unreliable);
  }
  responder_slot& s = new_slot(f, frame, responder_slot::action::failure);
  s.nak = s.unreliable ? std::uint8_t{0} : error.nak;
  s.has_wqe = has_wqe;
  s.cqe_syndrome = has_wqe ? error.completion : std::uint8_t{0};
  s.event = has_wqe ? std::uint8_t{0} : error.event;
  s.wqe_index = static_cast<std::uint16_t>(ctx.rq_consumed - (is_shared(ctx) ? 0 : 1));
  s.rq_after = has_wqe || ctx.in_message != in_send ? ctx.rq_consumed : s.rq_before;
  ctx.state = icm::qp_state::error;
  return verdict::done;
}

responder_slot& responder::new_slot(responder_flow& f, payload::frame_ptr& frame, responder_slot::action what) {
  icm::responder_context& ctx = *f.ctx;
  const std::uint16_t i = free_slots_.back();
  free_slots_.pop_back();
  responder_slot& s = slots_[i];
  s.frame = std::move(frame);
  s.flow = index_of(f);
  s.next = no_link;
  s.previous = last_slot_;
  (last_slot_ == no_link ? first_slot_ : slots_[last_slot_].next) = i;
  last_slot_ = i;
  ++f.slots;
  f.dirty = true;
  s.what = what;
  s.cancelled = s.started = s.last = s.answered = s.has_wqe = s.completes = s.comm_est = false;
  s.to_receive_queue = s.in_wqe = s.missed = s.duplicate = s.invalidates = false;
  s.keys = responder_slot::keys_state::none;
  s.unreliable = !icm::is_reliable(ctx.type);
  s.cqn = ctx.cqn;
  s.pd = ctx.pd;
  s.srqn = names_queue(ctx) ? srqn_of(ctx) : 0;
  s.pieces = s.issued = s.translated = 0;
  s.status = icm::translate_status::ok;
  s.nak = s.cqe_syndrome = s.event = 0;
  s.psn = s.frame->packet.bth.psn.value();
  s.msn = s.msn_before = ctx.msn;
  s.byte_count = 0;
  s.rq_before = static_cast<std::uint16_t>(ctx.rq_consumed - (ctx.in_message == in_send && !is_shared(ctx) ? 1 : 0));
  s.rq_after = ctx.rq_consumed;
  s.source = s.frame->begin + s.frame->packet.payload_offset;
  s.next_segment = 0;
  s.ready = now() + receive_pipeline_.cycles();
  receive_pipeline_.mark(spans_, s.frame->span, *this, now());
  wake_at(s.ready);
  if (ctx.state == icm::qp_state::rtr && (ctx.flags & icm::responder_flag_comm_est) == 0) {
    ctx.flags |= icm::responder_flag_comm_est;
    s.comm_est = true;
  }
  return s;
}

void responder::answer(responder_flow& f, payload::frame_ptr& frame, std::uint8_t syndrome, std::uint32_t psn) {
  responder_slot& s = new_slot(f, frame, responder_slot::action::answer);
  s.answered = true;
  s.nak = syndrome;
  s.psn = psn;
}

void responder::add_piece(responder_slot& s, std::uint64_t va, std::uint32_t key, std::uint32_t length,
                          std::uint64_t check_length, icm::access access) {
  RNIC_ASSERT(s.pieces < responder_slot::max_pieces, name() + ": more pieces than a receive WQE has segments");
  s.piece_list[s.pieces] = {va, key, length, check_length, access};
  s.segments[2 * s.pieces] = s.segments[2 * s.pieces + 1] = {};
  ++s.pieces;
  if (s.pieces == 1) ++unissued_;
}

void responder::issue(responder_slot& s) {
  const responder_flow& f = flows_[s.flow];
  const auto index = static_cast<std::uint64_t>(&s - slots_.data());
  while (s.issued != s.pieces) {
    if (!translate.request.claim()) return;
    const responder_slot::piece& piece = s.piece_list[s.issued];
    icm::translate_request r;
    const bool physical =
        s.to_receive_queue && piece.key == reserved_lkey_ && (f.ctx->flags & icm::responder_flag_reserved_lkey) != 0;
    r.what = physical ? icm::translate_request::kind::reserved_key : icm::translate_request::kind::key;
    if (s.in_wqe) {
      r.what = icm::translate_request::kind::buffer;
      r.buffer_mtt = f.ctx->rq_address;
      r.log_page = f.ctx->log_page;
    }
    r.access = piece.access;
    r.key = piece.key;
    r.pd = s.to_receive_queue ? s.receive_pd : s.pd;
    r.qpn = f.qpn;
    r.length = piece.length;
    r.va = piece.va;
    r.check_length = piece.check_length;
    r.tag = tag_slot | index << 8 | s.issued;
    r.span = s.frame->span;
    translate.request.push(r);
    if (s.fetches()) ++reads_translating_;
    if (++s.issued == s.pieces) --unissued_;
  }
}

}  // namespace rnic::transport
