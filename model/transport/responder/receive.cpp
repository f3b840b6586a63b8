// SPDX-License-Identifier: Apache-2.0
// Responder: receive WQEs of the QP's own queue or a shared one, and the packets that use them (C.7.1).
#include <algorithm>
#include <cstring>

#include "model/transport/responder/responder.h"
#include "model/transport/responder/rules.h"

namespace rnic::transport {

responder::supply responder::find_receive(icm::responder_context& ctx, bool first, bool payload,
                                          shared_receive::entry_view& out) {
  if (is_shared(ctx)) {
    out.index = ctx.rq_consumed;
    if (first) return shared_.head(srqn_of(ctx), out);
    return payload ? shared_.taken(srqn_of(ctx), ctx.rq_consumed, out) : supply::ready;
  }
  using own = receive_wqe_cache::result;
  const own posted = first ? receive_.available(ctx) : own::ready;
  if (posted != own::ready) return static_cast<supply>(posted);
  out.index = static_cast<std::uint16_t>(ctx.rq_consumed - (first ? 0 : 1));
  out.pd = ctx.pd;
  out.bytes = 1u << ctx.log_rq_stride;
  return payload ? static_cast<supply>(receive_.get(ctx, out.index, out.segments)) : supply::ready;
}

void responder::take_receive(icm::responder_context& ctx, const shared_receive::entry_view& entry, bool keep) {
  if (!is_shared(ctx)) {
    ++ctx.rq_consumed;
    return;
  }
  shared_.take(srqn_of(ctx), entry, keep);
  ctx.rq_consumed = entry.index;
}

/// An unreliable message has lost its end. Its receive is used for the next one, or, of a shared queue, completed in
/// error (C.7.2). False: not now.
bool responder::give_back_receive(responder_flow& f) {
  icm::responder_context& ctx = *f.ctx;
  if (ctx.in_message != in_send) return true;
  if (!is_shared(ctx)) {
    --ctx.rq_consumed;
    return true;
  }
  if (f.slots != 0 || !cqe_room()) return false;  // its payload may be on its way
  complete_in_error(ctx.cqn, f.qpn, ctx.rq_consumed, cqe_remote_invalid, 0);
  return true;
}

/// What a QP in error has taken of a shared queue and not completed goes back to software as flushed. `done`: an entry
/// that was completed in error just now.
void responder::flush_shared(const responder_flow& f, std::uint32_t done) {
  const icm::responder_context& ctx = *f.ctx;
  if (!is_shared(ctx)) return;
  const auto flush = [&](std::uint16_t index, std::uint32_t cqn, std::uint32_t srqn) {
    const auto same = [&](const shared_flush& x) { return x.qpn == f.qpn && x.index == index && x.srqn == srqn; };
    if (index == done || std::any_of(shared_flushes_.begin(), shared_flushes_.end(), same)) return;
    shared_flushes_.push_back({f.qpn, cqn, srqn, index});
  };
  const std::uint16_t mine = index_of(f);
  for (std::uint16_t i = first_slot_; i != no_link; i = slots_[i].next)
    if (slots_[i].flow == mine && !slots_[i].cancelled && slots_[i].has_wqe && slots_[i].completes)
      flush(slots_[i].wqe_index, slots_[i].cqn, slots_[i].srqn);
  if (ctx.in_message == in_send) flush(ctx.rq_consumed, ctx.cqn, names_queue(ctx) ? srqn_of(ctx) : 0);
  wake_next();
}

void responder::push_shared_flushes() {
  while (!shared_flushes_.empty() && cqe_room()) {
    const shared_flush x = shared_flushes_.front();
    complete_in_error(x.cqn, x.qpn, x.index, cqe_flushed, x.srqn);
    shared_flushes_.erase(shared_flushes_.begin());
  }
}

bool responder::has_shared_flushes(std::uint32_t qpn) const {
  return std::any_of(shared_flushes_.begin(), shared_flushes_.end(),
                     [&](const shared_flush& x) { return x.qpn == qpn; });
}

responder::verdict responder::check_ud(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::packet& p = frame->packet;
  if (!has_receive_queue(ctx)) return drop(count_.drop_no_wqe);
  shared_receive::entry_view entry;
  const bool in_wqe = goes_inline(ctx, p.payload_length + grh_area);
  const supply found = find_receive(ctx, true, !in_wqe, entry);
  if (found == supply::pending) return verdict::wait;
  if (found == supply::empty) return drop(count_.drop_no_wqe);
  if (found == supply::failed) return refuse(f, frame, memory_unreachable);

  // The 40 bytes in front of the payload become the GRH area: its headers are parsed already, and payload is written
  // to memory from there in one piece.
  std::uint8_t* area = frame->data() + p.payload_offset - grh_area;
  const bool v4 = p.encap == wire::encapsulation::roce_v2_ipv4;
  std::memmove(area + (v4 ? 20 : 0), frame->data() + p.l3_offset, v4 ? 20 : 40);
  if (v4) std::memset(area, 0, 20);

  responder_slot& s = new_slot(f, frame, responder_slot::action::write);
  s.unreliable = true;
  s.source -= grh_area;
  const wire::packet& in = s.frame->packet;
  return receive_whole(f, s, entry, wire::traits(in.bth.opcode).immediate ? cqe_send_immediate : cqe_send,
                       in.payload_length + grh_area, in_wqe);
}

responder::verdict responder::receive_whole(responder_flow& f, responder_slot& s,
                                            const shared_receive::entry_view& entry, std::uint8_t cqe_opcode,
                                            std::uint32_t bytes, bool in_wqe) {
  icm::responder_context& ctx = *f.ctx;
  take_receive(ctx, entry, false);
  s.last = s.has_wqe = s.completes = true;
  s.wqe_index = entry.index;
  s.rq_after = ctx.rq_consumed;
  s.cqe_opcode = cqe_opcode;
  s.byte_count = bytes;
  responder_error error{};
  if (in_wqe) {
    put_in_wqe(s, ctx, s.byte_count);
  } else if (!scatter(s, entry, 0, s.byte_count, error)) {
    s.what = responder_slot::action::failure;
    s.cqe_syndrome = error.completion;
    ctx.state = icm::qp_state::error;
  }
  issue(s);
  if (!is_shared(ctx)) receive_.look_ahead(ctx);
  return verdict::done;
}

responder::verdict responder::no_receive(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  if (!icm::is_reliable(ctx.type)) {
    ctx.expected_psn = (frame->packet.bth.psn + 1).value();
    ctx.in_message = in_none;
    f.dirty = true;
    return drop(count_.drop_no_wqe);
  }
  ++count_.rnr;
  ctx.flags |= icm::responder_flag_nak_sent;  // what is already on its way behind it is dropped without another NAK
  answer(f, frame, static_cast<std::uint8_t>(syndrome_rnr | (ctx.rnr_timer & 0x1f)), frame->packet.bth.psn.value());
  return verdict::done;
}

responder::verdict responder::execute_send(responder_flow& f, payload::frame_ptr& frame) {
  icm::responder_context& ctx = *f.ctx;
  const wire::packet& p = frame->packet;
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  const std::uint32_t mtu = path_mtu(ctx);
  const bool length_ok = p.payload_length <= mtu && (t.last || p.payload_length == mtu) &&
                         (t.first || p.payload_length != 0) && ctx.message_bytes <= longest_message;
  if (!length_ok && !(t.first && p.payload_length <= mtu && t.last)) return refuse_request(f, frame);
  if (!has_receive_queue(ctx)) return no_receive(f, frame);
  shared_receive::entry_view entry;
  const bool in_wqe = t.first && t.last && goes_inline(ctx, p.payload_length);
  const supply found = find_receive(ctx, t.first, p.payload_length != 0 && !in_wqe, entry);
  if (found == supply::pending) return verdict::wait;
  if (found == supply::empty) return no_receive(f, frame);
  if (found == supply::failed) return refuse(f, frame, memory_unreachable);
  ++count_.sends;
  responder_slot& s = new_slot(f, frame, responder_slot::action::write);
  if (t.first) {
    take_receive(ctx, entry, !t.last);
    ctx.message_bytes = 0;
  }
  s.has_wqe = true;
  s.wqe_index = entry.index;
  s.rq_after = ctx.rq_consumed;
  s.completes = t.last;
  s.cqe_opcode = t.immediate ? cqe_send_immediate : t.ieth ? cqe_send_invalidate : cqe_send;
  s.invalidates = t.ieth;
  responder_error error{};
  const std::uint32_t payload = s.frame->packet.payload_length;
  if (in_wqe) {
    put_in_wqe(s, ctx, payload);
  } else if (payload != 0 && !scatter(s, entry, ctx.message_bytes, payload, error)) {
    s.what = responder_slot::action::failure;
    s.nak = error.nak;
    s.cqe_syndrome = error.completion;
    ctx.state = icm::qp_state::error;
    return verdict::done;
  }
  ctx.in_message = t.last ? in_none : in_send;
  finish_packet(f, s, t);
  if (t.last && !is_shared(ctx)) receive_.look_ahead(ctx);
  return verdict::done;
}

/// XRC: the queue that a message names must be of the queue pair's domain. Its protection domain is what the message's
/// keys are looked at with, its completion queue where it ends (IBA annex A14).
responder::supply responder::choose_queue(icm::responder_context& ctx, const payload::frame& frame) {
  const std::uint32_t srqn = frame.packet.xrceth & 0xffffff;
  const supply found = shared_.in_domain(srqn, domain_of(ctx), ctx.pd);
  if (found != supply::ready) return found;
  ctx.srqn = srqn_valid | srqn;
  ctx.cqn = shared_.completion_queue(srqn);
  return found;
}

void responder::put_in_wqe(responder_slot& s, const icm::responder_context& ctx, std::uint32_t length) {
  constexpr std::uint32_t no_key = 0;  // the queue's own translation
  s.to_receive_queue = s.in_wqe = true;
  s.cqe_opcode |= cqe_inline;
  const std::uint32_t place = s.wqe_index & ((1u << ctx.log_rq_size) - 1);
  add_piece(s, ctx.rq_offset + (std::uint64_t{place} << ctx.log_rq_stride), no_key, length, 0,
            icm::access::local_write);
}

bool responder::scatter(responder_slot& s, const shared_receive::entry_view& entry, std::uint32_t offset,
                        std::uint32_t length, responder_error& error) {
  s.to_receive_queue = true;
  s.receive_pd = entry.pd;
  const auto fault = [&](const responder_error& why) {
    if (s.pieces != 0) --unissued_;
    s.pieces = 0;
    error = why;
    return false;
  };
  receive_segment part;
  for (unsigned i = 0; length != 0; ++i) {
    if (!read_segment(entry.segments, entry.bytes, i, part)) return fault(receive_too_short);
    if ((part.length >> 31) != 0) return fault(receive_malformed);
    if (offset >= part.length) {
      offset -= part.length;
      continue;
    }
    std::uint64_t va = part.address + offset;
    std::uint32_t n = std::min(length, part.length - offset);
    offset = 0;
    length -= n;
    for (; n != 0;) {
      const std::uint32_t one = std::min(n, 4096u);  // what one translation covers
      add_piece(s, va, part.key, one, 0, icm::access::local_write);
      va += one;
      n -= one;
    }
  }
  return true;
}

}  // namespace rnic::transport
