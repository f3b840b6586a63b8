// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/packet_intake.h"

#include <algorithm>
#include <utility>

#include "model/transport/responder/rules.h"

namespace rnic::transport {

packet_intake::packet_intake(sim::clocked_block& owner, const responder_config& cfg, slot_table& slots,
                             place_lookup& places, receive_descriptors& receives, drop_counters& drops,
                             sim::span_recorder& spans)
    : owner_(owner),
      slots_(slots),
      places_(places),
      receives_(receives),
      drops_(drops),
      spans_(spans),
      pipeline_{owner,
                "packets",
                {{"sequence", cfg.receive.sequence},
                 {"rights", cfg.receive.rights},
                 {"place", cfg.receive.place},
                 {"order", cfg.receive.order}}} {}

responder_slot& packet_intake::begin(responder_flow& f, payload::frame_ptr& frame, responder_slot::action what) {
  icm::responder_context& ctx = *f.ctx;
  responder_slot& s = slots_.take();
  s.frame = std::move(frame);
  s.flow = f.number;
  ++f.slots;
  f.dirty = true;
  s.what = what;
  s.cancelled = s.last = s.answered = s.completion.has_wqe = s.completion.due = s.completion.comm_est = false;
  s.place.of_receive = s.place.in_wqe = s.place.missed = s.duplicate = s.invalidates = false;
  s.keys = responder_slot::keys_state::none;
  s.unreliable = !icm::is_reliable(ctx.type);
  s.function = ctx.function;
  s.completion.cqn = ctx.cqn;
  s.pd = ctx.pd;
  s.completion.srqn = names_queue(ctx) ? srqn_of(ctx) : 0;
  s.place.pieces = s.place.issued = s.place.translated = 0;
  s.place.status = icm::translate_status::ok;
  s.nak = s.completion.syndrome = s.completion.event = 0;
  s.psn = s.frame->packet.bth.psn.value();
  s.msn = s.msn_before = ctx.msn;
  s.completion.byte_count = 0;
  s.completion.rq_before =
      static_cast<std::uint16_t>(ctx.rq_consumed - (ctx.in_message == in_send && !is_shared(ctx) ? 1 : 0));
  s.completion.rq_after = ctx.rq_consumed;
  s.place.source = s.frame->begin + s.frame->packet.payload_offset;
  s.place.next_segment = 0;
  s.ready = owner_.edge() + pipeline_.enter();
  pipeline_.mark(spans_, s.frame->span, owner_.edge());
  owner_.wake_at(s.ready);
  if (ctx.state == icm::qp_state::rtr && (ctx.flags & icm::responder_flag_comm_est) == 0) {
    ctx.flags |= icm::responder_flag_comm_est;
    s.completion.comm_est = true;
  }
  return s;
}

verdict packet_intake::answer(responder_flow& f, payload::frame_ptr& frame, std::uint8_t syndrome, std::uint32_t psn) {
  responder_slot& s = begin(f, frame, responder_slot::action::answer);
  s.answered = true;
  s.nak = syndrome;
  s.psn = psn;
  return verdict::done;
}

verdict packet_intake::refuse(responder_flow& f, payload::frame_ptr& frame, const responder_error& error) {
  icm::responder_context& ctx = *f.ctx;
  const bool has_wqe = ctx.in_message == in_send && error.completion != 0;
  if (ctx.type == icm::service::uc &&
      error.event != event_qp_fatal) {  // the message is dropped, its WQE used for the next
    if (!receives_.give_back(f)) return verdict::wait;
    ctx.in_message = in_none;
    ctx.expected_psn = (frame->packet.bth.psn + 1).value();
    f.dirty = true;
    ++drops_.unreliable;
    return verdict::done;
  }
  responder_slot& s = begin(f, frame, responder_slot::action::failure);
  s.nak = s.unreliable ? std::uint8_t{0} : error.nak;
  s.completion.has_wqe = has_wqe;
  s.completion.syndrome = has_wqe ? error.completion : std::uint8_t{0};
  s.completion.event = has_wqe ? std::uint8_t{0} : error.event;
  s.completion.wqe_index = static_cast<std::uint16_t>(ctx.rq_consumed - (is_shared(ctx) ? 0 : 1));
  s.completion.rq_after = has_wqe || ctx.in_message != in_send ? ctx.rq_consumed : s.completion.rq_before;
  ctx.state = icm::qp_state::error;
  return verdict::done;
}

void packet_intake::finish(responder_flow& f, responder_slot& s, const wire::opcode_traits& t) {
  icm::responder_context& ctx = *f.ctx;
  const wire::packet& p = s.frame->packet;
  ctx.message_bytes += p.payload_length;
  s.completion.byte_count = ctx.message_bytes;
  ctx.expected_psn = (p.bth.psn + 1).value();
  ctx.flags &= static_cast<std::uint8_t>(~icm::responder_flag_nak_sent);
  if (t.last) ctx.msn = next_msn(ctx.msn);
  s.last = t.last;
  s.msn = ctx.msn;
  s.answered = p.bth.ack_request && !s.unreliable;
  places_.issue(s);
}

void packet_intake::finish_fetch(responder_flow& f, responder_slot& s, std::uint32_t packets) {
  icm::responder_context& ctx = *f.ctx;
  ctx.expected_psn = (wire::psn_t(ctx.expected_psn) + packets).value();
  ctx.msn = next_msn(ctx.msn);
  ctx.flags &= static_cast<std::uint8_t>(~icm::responder_flag_nak_sent);
  s.msn = ctx.msn;
  places_.issue(s);
}

verdict packet_intake::receive_whole(responder_flow& f, responder_slot& s, const receive_descriptors::entry& entry,
                                     std::uint8_t cqe_opcode, std::uint32_t bytes, bool in_wqe) {
  icm::responder_context& ctx = *f.ctx;
  receives_.take(ctx, entry, false);
  s.last = s.completion.has_wqe = s.completion.due = true;
  s.completion.wqe_index = entry.index;
  s.completion.rq_after = ctx.rq_consumed;
  s.completion.opcode = cqe_opcode;
  s.completion.byte_count = bytes;
  responder_error error{};
  if (in_wqe) {
    put_in_wqe(s, ctx, s.completion.byte_count);
  } else if (!scatter(s, entry, 0, s.completion.byte_count, error)) {
    s.what = responder_slot::action::failure;
    s.completion.syndrome = error.completion;
    ctx.state = icm::qp_state::error;
  }
  places_.issue(s);
  receives_.look_ahead(ctx);
  return verdict::done;
}

void packet_intake::put_in_wqe(responder_slot& s, const icm::responder_context& ctx, std::uint32_t length) {
  constexpr std::uint32_t no_key = 0;  // the queue's own translation
  s.place.of_receive = s.place.in_wqe = true;
  s.completion.opcode |= cqe_inline;
  const std::uint32_t place = s.completion.wqe_index & ((1u << ctx.log_rq_size) - 1);
  places_.add(s, ctx.rq_offset + (std::uint64_t{place} << ctx.log_rq_stride), no_key, length, 0,
              icm::access::local_write);
}

bool packet_intake::scatter(responder_slot& s, const receive_descriptors::entry& entry, std::uint32_t offset,
                            std::uint32_t length, responder_error& error) {
  s.place.of_receive = true;
  s.place.receive_pd = entry.pd;
  const auto fault = [&](const responder_error& why) {
    places_.cancel(s);
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
      places_.add(s, va, part.key, one, 0, icm::access::local_write);
      va += one;
      n -= one;
    }
  }
  return true;
}

}  // namespace rnic::transport
