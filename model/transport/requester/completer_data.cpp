// SPDX-License-Identifier: Apache-2.0
// Responses that bring data, and their way to host memory.
#include <algorithm>
#include <utility>

#include "model/transport/requester/completer.h"
#include "model/transport/requester/rules.h"

namespace rnic::transport {

namespace {
bool is_nak(std::uint8_t syndrome) { return (syndrome >> 5 & 3) != 0; }
}  // namespace

completer::read_part completer::part_of(const context& c, const qp_runtime& r, const wire::packet& p,
                                        std::uint32_t index) const {
  if (index == no_index) return read_part::stray;
  const message& m = messages_[index];
  if (!m.read || m.atomic) return read_part::not_of_a_read;
  const wire::psn_t psn = p.bth.psn;
  const std::uint32_t place = psn.since(m.first_psn);
  if (place < m.got) return read_part::repeated;
  if (lacks_data_before(r, psn)) return read_part::behind_a_loss;
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  const std::uint32_t mtu = mtu_of(c);
  const bool last = psn == m.last_psn;
  const std::uint32_t expected = last ? m.length - place * mtu : mtu;
  // An answer begins with FIRST or ONLY, at the packet that was asked for last, and nowhere else. That to a repeated
  // request of the rest may also go on with MIDDLE or LAST (adapter data plane C.7.3).
  const bool out_of_order = t.first ? place != m.asked_from : place == 0;
  const bool wrong =
      out_of_order || p.payload_length != expected || t.last != last || (t.aeth && is_nak(p.aeth.syndrome));
  return wrong ? read_part::wrong : read_part::expected;
}

// The request has taken the engine for a response of one packet that takes no more than that.
bool completer::has_engine(const wire::packet& p) {
  const unsigned bytes = config_.read_engine.received(p.payload_length);
  const unsigned least = config_.read_response_cycles;
  const bool first = wire::traits(p.bth.opcode).first;
  const unsigned cycles = std::max(least, config_.response_overhead_cycles + bytes) - (first ? least : 0);
  if (cycles == 0) return true;
  if (ports_.read_engine.granted()) {
    ports_.read_engine.use();
    return true;
  }
  ports_.read_engine.ask(cycles);
  asked_engine_ = owner_.now();
  return false;
}

void completer::handle_read(context& c, qp_runtime& r, payload::frame_ptr& f, std::uint32_t index, read_part part) {
  const wire::packet& p = f->packet;
  const wire::psn_t psn = p.bth.psn;
  switch (part) {
    case read_part::stray:
      ++counts_.stray;
      return;
    case read_part::not_of_a_read:
      return go_back_.fail(c, r, index, syndrome::bad_response, 0, psn);
    case read_part::repeated:
      ++counts_.duplicate;
      return;
    case read_part::behind_a_loss:  // of responses to this READ or to an earlier one: ask again
      acknowledge_before(c, r, psn);
      return still_answering(c, r, psn);
    case read_part::wrong:
      acknowledge_before(c, r, psn);
      return go_back_.fail(c, r, index, syndrome::bad_response, 0, psn);
    case read_part::expected:
      break;
  }
  acknowledge_before(c, r, psn);
  if (wire::traits(p.bth.opcode).aeth) take_receives(c, r, psn, p.aeth);
  const sim::span_id span = f->span;
  if (p.payload_length != 0) scatter_payload(c, r, index, f, psn.since(messages_[index].first_psn) * mtu_of(c));
  accept(c, r, index, span);
}

// The original value goes to the scatter list in the byte order of the host (adapter data plane C.6): little-endian.
void completer::handle_atomic(context& c, qp_runtime& r, payload::frame_ptr& f, std::uint32_t index) {
  wire::packet& p = f->packet;
  const wire::psn_t psn = p.bth.psn;
  if (index == no_index) {
    ++counts_.stray;
    return;
  }
  message& m = messages_[index];
  if (!m.atomic) return go_back_.fail(c, r, index, syndrome::bad_response, 0, psn);
  if (m.got != 0) {
    ++counts_.duplicate;
    return;
  }
  if (!acknowledge_before(c, r, psn)) return still_answering(c, r, psn);
  if (is_nak(p.aeth.syndrome)) return go_back_.fail(c, r, index, syndrome::bad_response, 0, psn);
  take_receives(c, r, psn, p.aeth);
  // The answer's last header becomes its payload.
  p.payload_offset = static_cast<std::uint16_t>(p.payload_offset - atomic_bytes);
  p.payload_length = atomic_bytes;
  std::uint8_t* value = f->data() + p.payload_offset;
  for (unsigned b = 0; b < atomic_bytes; ++b) value[b] = static_cast<std::uint8_t>(p.atomic_original >> (8 * b));
  const sim::span_id span = f->span;
  scatter_payload(c, r, index, f, 0);
  accept(c, r, index, span);
}

// The response packet that was missing of message `index`, the first that waits for its answer.
void completer::accept(context& c, qp_runtime& r, std::uint32_t index, sim::span_id span) {
  message& m = messages_[index];
  ++m.got;
  const wire::psn_t behind = m.missing();
  if (m.answered()) {
    m.span = span;
    r.reads.came(most_reads(c));
    messages_.answered(r);
  }
  progress(c, r, behind);
}

// A response packet with payload that begins at byte `offset` of its message.
void completer::scatter_payload(const context& c, qp_runtime& r, std::uint32_t index, payload::frame_ptr f,
                                std::uint32_t offset) {
  message& m = messages_[index];
  scatter_job j;
  j.frame = std::move(f);
  j.qpn = c.qpn;
  j.pd = c.pd;
  j.message = index;
  j.generation = m.generation;
  j.list = m.scatter;
  j.offset = offset;
  j.reserved_lkey = settings_.reserved_lkey;
  j.function = c.function;
  j.reserved_key = (c.flags & icm::requester_flag_reserved_lkey) != 0;
  scatters_.add_user(m.scatter);
  ++m.writes;
  ++r.under_way.jobs;
  ports_.scatter.push(std::move(j));
}

// One report per edge.
void completer::take_scattered() {
  if (!ports_.scattered.can_pop() || go_back_.busy(qps_[ports_.scattered.front().qpn])) return;
  const scatter_done d = ports_.scattered.pop();
  qp_runtime& r = qps_[d.qpn];
  --r.under_way.jobs;
  if (scatters_.remove_user(d.list)) messages_.list_came();
  message& m = messages_[d.message];
  if (m.generation != d.generation) return;  // given up meanwhile
  --m.writes;
  if (d.failed && m.syndrome == 0) {
    m.syndrome = syndrome::local_protection;
    r.failing = true;
  }
  messages_.may_complete(r);
}

}  // namespace rnic::transport
