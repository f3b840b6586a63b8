// SPDX-License-Identifier: Apache-2.0
// Messages of a QP from first packet to completion: order, rewinding, errors.
#include <algorithm>
#include <utility>

#include "model/transport/requester/requester.h"

namespace rnic::transport {

// The message that holds a PSN, or no_index.
std::uint32_t requester::find_message(qp_runtime& r, std::uint32_t psn) {
  for (std::uint32_t i = r.head; i != no_index; i = messages_[i].next) {
    const message& m = messages_[i];
    if (!m.local && distance(m.first_psn, psn) <= distance(m.first_psn, m.last_psn)) return i;
  }
  return no_index;
}

std::uint32_t requester::append_message(context& c, qp_runtime& r, const unit& u, std::uint32_t packets) {
  const std::uint32_t index = messages_.take();
  message& m = messages_[index];
  const std::uint32_t generation = m.generation;
  m = message{};
  m.generation = generation;
  m.wqe_index = c.next_wqe;
  m.strides = static_cast<std::uint16_t>(u.strides);
  const std::uint32_t sent = c.message_offset / packet_bytes(c, u.wqe);
  m.first_psn = (c.next_psn - sent) & 0xffffff;
  m.last_psn = (m.first_psn + packets - 1) & 0xffffff;
  m.length = u.wqe.length;
  m.first_packet = next_packet_;
  m.opcode = static_cast<std::uint8_t>(u.wqe.opcode);
  m.signalled = u.wqe.signalled;
  m.local = !icm::is_reliable(c.type);
  if (u.wqe.fetches() && u.wqe.error == 0) {
    m.read = true;
    m.atomic = u.wqe.is_atomic();
    m.got = m.asked_from = sent;
    m.scatter = scatters_.write(u.wqe);
    ++c.rd_outstanding;
  }
  ++c.outstanding;
  m.takes_receive = icm::is_reliable(c.type) && u.wqe.takes_receive() && u.wqe.error == 0;
  if (m.takes_receive) ++c.receives_used;
  if (r.tail == no_index)
    r.head = index;
  else
    messages_[r.tail].next = index;
  r.tail = index;
  return index;
}

void requester::free_message(context& c, qp_runtime& r, std::uint32_t index) {
  message& m = messages_[index];
  if (m.read) {
    if (c.rd_outstanding != 0) --c.rd_outstanding;
    scatters_.release(m.scatter, now());
  }
  if (c.outstanding != 0) --c.outstanding;
  if (m.takes_receive && c.receives_used != 0) --c.receives_used;
  ++m.generation;
  messages_.give(index);
  if (!room_.empty()) resume(room_.pop(qps_));
  (void)r;
}

// Forgets all messages behind `keep` (no_index: all).
void requester::cut_after(context& c, qp_runtime& r, std::uint32_t keep) {
  std::uint32_t i = keep == no_index ? r.head : messages_[keep].next;
  while (i != no_index) {
    const std::uint32_t next = messages_[i].next;
    free_message(c, r, i);
    i = next;
  }
  r.tail = keep;
  if (keep == no_index)
    r.head = no_index;
  else
    messages_[keep].next = no_index;
}

// The unit that serves the QP drops its WQE and asks the context where to go on.
void requester::restart_unit(qp_runtime& r) {
  if (r.unit < 0) return;
  unit& u = units_[static_cast<unsigned>(r.unit)];
  u.current = false;
  forget_credit(u);
  sendable_ &= ~(1u << static_cast<unsigned>(r.unit));
  wake_next();
}

// Goes back to `psn`: the message that holds it stays, what is behind it will be executed again.
bool requester::rewind(context& c, qp_runtime& r, std::uint32_t psn) {
  const std::uint32_t i = find_message(r, psn);
  if (i == no_index) return false;
  message& m = messages_[i];
  if (c.state == icm::qp_state::rts) note_begun(c, r);  // also what is forgotten now has to end before SQD
  cut_after(c, r, i);
  if (!r.resends || distance(c.next_psn, r.sent_before) >= 1u << 23) r.sent_before = c.next_psn;
  r.resends = true;
  m.asked_from = distance(m.first_psn, psn);
  r.asked_psn = r.heard_psn = psn;
  c.next_wqe = m.wqe_index;
  c.message_offset = distance(m.first_psn, psn) * mtu_of(c);
  c.next_psn = psn;
  r.failing = false;
  ++retransmissions_;
  restart_unit(r);
  return true;
}

// Message `index` will end in error, as soon as all before it are complete.
void requester::fail(context& c, qp_runtime& r, std::uint32_t index, std::uint8_t syn, std::uint8_t vendor,
                     std::uint32_t psn) {
  message& m = messages_[index];
  cut_after(c, r, index);
  m.syndrome = syn;
  m.vendor = vendor;
  c.next_wqe = m.wqe_index + m.strides;
  c.message_offset = 0;
  c.next_psn = psn;
  r.failing = true;
  cancel_packets(r.qpn, index);
  restart_unit(r);
  drain_.push(qps_, r);
  wake_next();
}

// The QP, or its send queue alone, is in error: what is complete is still reported, the rest is flushed from the send
// queue.
void requester::enter_error(context& c, qp_runtime& r, icm::qp_state state) {
  std::uint32_t keep = no_index, i = r.head;
  while (i != no_index && complete(c, messages_[i]) && messages_[i].syndrome == 0) {
    keep = i;
    i = messages_[i].next;
  }
  if (i != no_index) c.next_wqe = messages_[i].wqe_index;
  cut_after(c, r, keep);
  c.message_offset = 0;
  c.state = state;
  r.failing = r.rnr_wait = r.retrying = false;
  timers_.stop(qps_, r, now());
  cancel_packets(r.qpn);
  restart_unit(r);
  if (r.head != no_index) drain_.push(qps_, r);
  resume(r);
  wake_next();
}

bool requester::complete(const context& c, const message& m) const {
  if (m.syndrome != 0) return m.writes == 0;
  if (m.local) return m.sent;
  if (m.read) return m.got == m.packets() && m.writes == 0;
  // last_psn is before unacked_psn, inside the window
  return distance(m.last_psn, c.unacked_psn) - 1 < 1u << 23;
}

// The message table gives one message a cycle, whether software is told of it or not. A QP that is in the list for
// nothing costs none.
void requester::drain_completions() {
  while (!drain_.empty()) {
    qp_runtime& r = qps_[drain_.front()];
    if (r.head == no_index) {
      drain_.pop(qps_);
      continue;
    }
    context* c = nullptr;
    const auto found = contexts_.ask(r.qpn, c);
    if (found == decltype(contexts_)::result::pending) return;
    if (found != decltype(contexts_)::result::hit) {
      drain_.pop(qps_);
      continue;
    }
    const bool ready = complete(*c, messages_[r.head]);
    if (ready && !drain_one(*c, r)) return;
    contexts_.use(r.qpn);
    if (ready) {
      contexts_.mark_dirty(r.qpn);
      check_drained(*c, r);
      wake_stalled(r);
    }
    if (r.head == no_index || !complete(*c, messages_[r.head])) drain_.pop(qps_);
    if (ready) {
      if (!drain_.empty()) wake_next();
      return;
    }
  }
}

// Takes the head, which is complete. False: no room for what it has to tell.
bool requester::drain_one(context& c, qp_runtime& r) {
  const message& m = messages_[r.head];
  const bool failed = m.syndrome != 0;
  const bool tells = failed || m.signalled;
  if (tells && !cqe_out.claim()) return false;
  const bool send_side_only = icm::breaks_send_queue_only(c.type);
  if (failed && !send_side_only && !error_out.claim()) return false;
  if (tells) report_completion(c, m);
  if (failed) {
    count_error(m.syndrome);
    c.next_wqe = m.wqe_index + m.strides;
  }
  if (r.keys_valid && m.wqe_index + m.strides == r.keys_end) r.keys_valid = false;
  use_receive(c, r, m);
  const std::uint32_t index = r.head;
  r.head = m.next;
  if (r.head == no_index) r.tail = no_index;
  free_message(c, r, index);
  if (failed) {
    if (!send_side_only) error_out.push({r.qpn});
    enter_error(c, r, send_side_only ? icm::qp_state::sq_error : icm::qp_state::error);
  }
  return true;
}

void requester::wake_stalled(qp_runtime& r) {
  const unit* u = r.unit >= 0 ? &units_[static_cast<unsigned>(r.unit)] : nullptr;
  const bool ends_stalled = u != nullptr && u->at == unit::state::finish && u->report == report_kind::stalled;
  if (r.rnr_wait || r.failing || (limiter_.any() && limiter_.parked(r.qpn))) return;
  if (r.stalled || ends_stalled) resume(r);
}

void requester::report_completion(const context& c, const message& m) {
  completion::cqe_request e;
  e.cqn = c.cqn;
  e.qpn = c.qpn & 0xffffff;
  e.wqe_index = static_cast<std::uint16_t>(m.wqe_index);
  if (m.syndrome != 0) {
    e.opcode = abi::cqe::send_bit | abi::cqe::opcode_error;
    e.syndrome = m.syndrome;
    e.vendor_error = m.vendor;
  } else {
    e.opcode = static_cast<std::uint8_t>(abi::cqe::send_bit | m.opcode);
    e.byte_count = m.read ? m.length : 0;
  }
  cqe_out.push(e);
  ++completions_;
}

void requester::report_flush(const context& c, std::uint32_t wqe_index) {
  completion::cqe_request e;
  e.cqn = c.cqn;
  e.qpn = c.qpn & 0xffffff;
  e.wqe_index = static_cast<std::uint16_t>(wqe_index);
  e.opcode = abi::cqe::send_bit | abi::cqe::opcode_error;
  e.syndrome = syndrome::flush;
  cqe_out.push(e);
  ++completions_;
  count_error(syndrome::flush);
}

void requester::count_error(std::uint8_t syn) {
  // Diagnostic counters of completions in error, by offset (adapter control plane 10.3).
  constexpr std::pair<std::uint8_t, std::uint8_t> counters[] = {
      {syndrome::local_length, std::uint8_t{0x04}},
      {syndrome::local_qp_operation, std::uint8_t{0x0c}},
      {syndrome::local_protection, std::uint8_t{0x1c}},
      {syndrome::flush, std::uint8_t{0x24}},
      {syndrome::window_bind, std::uint8_t{0x2c}},
      {syndrome::bad_response, std::uint8_t{0x34}},
      {syndrome::remote_invalid_request, std::uint8_t{0x44}},
      {syndrome::remote_access, std::uint8_t{0x4c}},
      {syndrome::remote_operation, std::uint8_t{0x54}},
      {syndrome::retry_exceeded, std::uint8_t{0x5c}},
      {syndrome::rnr_retry_exceeded, std::uint8_t{0x64}},
  };
  for (const auto& [completion, offset] : counters)
    if (completion == syn) ++diagnostics_[offset / 4];
}

}  // namespace rnic::transport
