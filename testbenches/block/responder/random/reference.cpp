// SPDX-License-Identifier: Apache-2.0
// Order, READs, WRITEs and atomics, and how queue pairs end. SENDs and datagrams: reference_receives.cpp.
#include "testbenches/block/responder/random/reference.h"

#include <algorithm>
#include <cstring>

#include "model/abi/queue_entries.h"
#include "model/transport/message_packets.h"
#include "testbenches/block/responder/random/reference_codes.h"

namespace rnic::transport::random_test {

reference::reference(const setup& with, octets memory)
    : with_(with), regions_(with.regions()), memory_(std::move(memory)) {
  for (const queue_pair& q : with.queue_pairs) {
    state& s = states_.emplace_back();
    s.expected = q.first_psn;
    s.consumed = q.consumed;
    s.posted = q.posted;
    s.srqn = q.srqn;
    s.must.msn_of[(s.expected - 1).value()] = 0;
    for (unsigned i = 0; i < invalidated_regions; ++i) invalidable_.insert(invalidated_key(q.index, i));
  }
  for (const char* name : {"writes", "sends", "reads", "atomics", "ethernet", "duplicates", "rnr", "out_of_sequence",
                           "drop.sequence", "drop.error", "drop.no_wqe", "drop.unreliable"})
    counters_[name] = 0;
}

void reference::take(const queue_pair& q, const request& r) {
  if (r.destination != q.qpn) return;
  state& s = states_[q.index];
  if (s.ended) return count("drop.error");
  if (r.pkey != pkey || r.from_stranger || r.transport != q.transport()) return;
  if (q.kind == service::ud) return datagram(q, s, r);
  if (!(q.is_reliable() ? in_order_reliable(q, s, r) : in_order_unreliable(q, s, r))) return;
  if (q.kind == service::xrc && r.traits().first) {
    if (r.shared_queue == 0 || r.shared_queue > with_.last_shared()) {
      first_packet(q, s);
      return invalid(q, s, r);
    }
    s.srqn = r.shared_queue;
  }
  if (r.is_send()) return send(q, s, r);
  if (r.is_write()) return write(q, s, r);
  if (!q.is_reliable()) return invalid(q, s, r);
  return r.is_read() ? read(q, s, r) : atomic(q, s, r);
}

// ---------------------------------------------------------------- order (IBA 9.7.4.1, 9.8.2.2)

bool reference::in_order_reliable(const queue_pair& q, state& s, const request& r) {
  if (r.psn.after(s.expected)) {
    count("out_of_sequence");
    if (s.nak_sent) {
      count("drop.sequence");
      return false;
    }
    first_packet(q, s);
    s.nak_sent = true;
    s.must.naks.push_back({nak_sequence, s.expected, s.must.msn, false});
    s.must.last_nak = s.must.naks.back();
    return false;
  }
  if (r.psn.before(s.expected)) {
    count("duplicates");
    // A READ that is not one of those before is no repetition, and no valid packet.
    const bool of_before =
        !r.is_read() || (r.reth.length <= longest && r.psn + packets_of(r.reth.length, q.mtu) - s.expected <= 0);
    if (r.is_read() && (q.access & icm::responder_access_read) == 0) return false;
    if (of_before) first_packet(q, s);
    s.must.repeats = true;
    return false;
  }
  using message = state::message;
  const bool first = r.traits().first;
  const bool in_sequence = s.under_way == message::send    ? r.is_send() && !first
                           : s.under_way == message::write ? r.is_write() && !first
                                                           : first || !(r.is_send() || r.is_write());
  if (in_sequence) return true;
  first_packet(q, s);
  invalid(q, s, r);
  return false;
}

/// A message of UC that has lost a packet is gone, and what comes of it is nothing.
bool reference::in_order_unreliable(const queue_pair& q, state& s, const request& r) {
  using message = state::message;
  const bool first = r.traits().first;
  const bool same_kind = s.under_way == message::send ? r.is_send() : s.under_way == message::write && r.is_write();
  if (same_kind && !first && r.psn == s.expected) return true;
  give_back(q, s);
  s.under_way = message::none;
  s.expected = r.psn;
  if (first) return true;
  s.expected = r.psn + 1;
  count("drop.sequence");
  return false;
}

void reference::accepted(const queue_pair& q, state& s, const request& r, std::uint32_t packets) {
  s.expected = r.psn + packets;
  s.nak_sent = false;
  s.must.last_nak.reset();
  if (r.traits().last || r.is_read() || r.is_atomic()) s.must.msn = (wire::psn_t(s.must.msn) + 1).value();
  s.must.msn_of[(s.expected - 1).value()] = s.must.msn;
  if (r.wants_acknowledgement && packets == 1 && q.is_reliable()) s.must.acknowledged = r.psn;
}

void reference::first_packet(const queue_pair& q, state& s) {
  if (!q.ready_to_receive || s.established) return;
  s.established = true;
  s.must.events.push_back(static_cast<std::uint8_t>(abi::eqe::event::comm_established));
}

// ---------------------------------------------------------------- WRITE, READ, atomics (IBA 9.7.4.1.4 to 9.7.4.1.7)

void reference::write(const queue_pair& q, state& s, const request& r) {
  const wire::opcode_traits& t = r.traits();
  const auto bytes = static_cast<std::uint32_t>(r.payload.size());
  const std::uint32_t remaining = t.first ? r.reth.length : s.remaining;
  const bool length_fits =
      remaining <= longest && (t.last ? remaining <= q.mtu : remaining > q.mtu) && bytes == std::min(remaining, q.mtu);
  if ((q.access & icm::responder_access_write) == 0 || !length_fits) {
    if (q.is_reliable()) first_packet(q, s);
    return invalid(q, s, r);
  }
  if (t.immediate && q.has_own_queue() && s.consumed == s.posted) return no_receive(q, s, r);
  first_packet(q, s);
  count("writes");
  if (t.first) {
    s.write_va = r.reth.va;
    s.write_key = r.reth.rkey;
    s.received = 0;
    s.refused = false;
  }
  const std::uint16_t index = s.consumed;
  if (t.immediate && q.has_own_queue()) ++s.consumed;
  // The whole message must be open when it begins.
  const std::uint32_t checked = t.first ? remaining : bytes;
  if (bytes != 0 && !opens(q, s.write_key, icm::access::remote_write, s.write_va, checked)) s.refused = true;
  if (s.refused) {
    refuse_write(q, s, r, index);
    if (s.ended) return;
  } else if (bytes != 0) {
    put(bus_of(s.write_va), r.payload);
  }
  s.write_va += bytes;
  s.remaining = remaining - bytes;
  s.received += bytes;
  s.under_way = t.last ? state::message::none : state::message::write;
  if (t.immediate && !s.refused) {
    expectation::completion c{abi::cqe::receive_write_imm, 0, {}, s.received, r.immediate, {}};
    if (q.has_own_queue()) c.index = index;
    s.must.completions.push_back(c);
  }
  accepted(q, s, r, 1);
}

/// Its key does not open: class C of RC's errors. UC drops the message as a whole.
void reference::refuse_write(const queue_pair& q, state& s, const request& r, std::uint16_t index) {
  counts_exactly_ = false;
  if (r.traits().immediate)
    fail_receive(q, s, code(abi::cqe::error::remote_access), index);
  else if (q.is_reliable())
    s.must.events.push_back(static_cast<std::uint8_t>(abi::eqe::event::wq_access));
  if (q.is_reliable()) end(q, s, nak_access, r.psn, true);
}

void reference::read(const queue_pair& q, state& s, const request& r) {
  first_packet(q, s);
  if ((q.access & icm::responder_access_read) == 0 || r.reth.length > longest || !r.payload.empty())
    return invalid(q, s, r);
  count("reads");
  if (r.reth.length != 0 && !opens(q, r.reth.rkey, icm::access::remote_read, r.reth.va, r.reth.length))
    return no_access(q, s, r);
  const std::uint32_t packets = packets_of(r.reth.length, q.mtu);
  s.must.reads.push_back({bus_of(r.reth.va), r.reth.length, packets, r.psn});
  accepted(q, s, r, packets);
}

void reference::atomic(const queue_pair& q, state& s, const request& r) {
  first_packet(q, s);
  constexpr std::uint32_t word_bytes = 8;
  if ((q.access & icm::responder_access_atomic) == 0 || r.atomic.va % word_bytes != 0 || !r.payload.empty())
    return invalid(q, s, r);
  count("atomics");
  if (!opens(q, r.atomic.rkey, icm::access::remote_atomic, r.atomic.va, word_bytes)) return no_access(q, s, r);
  const std::uint64_t before = word_at(bus_of(r.atomic.va));
  std::uint64_t after = before;
  if (r.operation == wire::operation::fetch_add)
    after = before + r.atomic.swap_add;
  else if (before == r.atomic.compare)
    after = r.atomic.swap_add;
  std::memcpy(memory_.data() + bus_of(r.atomic.va), &after, sizeof after);
  s.must.atomics.push_back({r.psn, before});
  accepted(q, s, r, 1);
}

std::uint64_t reference::word_at(std::uint64_t bus) const {
  std::uint64_t word;
  std::memcpy(&word, memory_.data() + bus, sizeof word);
  return word;
}

bool reference::opens(const queue_pair& q, std::uint32_t key, icm::access a, std::uint64_t va,
                      std::uint64_t bytes) const {
  return regions_.look_at(key, q.domain(), a, va, bytes) == icm::translate_status::ok;
}

void reference::put(std::uint64_t bus, const octets& bytes) {
  std::copy(bytes.begin(), bytes.end(), memory_.begin() + static_cast<std::ptrdiff_t>(bus));
}

// ---------------------------------------------------------------- faults (IBA 9.9.3, tables 57 and 58)

/// Invalid request: class C where a queue pair answers. UC drops the message.
void reference::invalid(const queue_pair& q, state& s, const request& r) {
  if (!q.is_reliable()) {
    give_back(q, s);
    s.under_way = state::message::none;
    s.expected = r.psn + 1;
    return count("drop.unreliable");
  }
  if (s.under_way == state::message::send)
    fail_receive(q, s, code(abi::cqe::error::remote_invalid_request), static_cast<std::uint16_t>(s.consumed - 1));
  else
    s.must.events.push_back(static_cast<std::uint8_t>(abi::eqe::event::wq_invalid_request));
  end(q, s, nak_invalid, r.psn, false);
}

/// A READ or an atomic under a key that does not open.
void reference::no_access(const queue_pair& q, state& s, const request& r) {
  s.must.events.push_back(static_cast<std::uint8_t>(abi::eqe::event::wq_access));
  end(q, s, nak_access, r.psn, true);
}

void reference::end(const queue_pair& q, state& s, std::uint8_t nak, wire::psn_t psn, bool behind_check) {
  s.ended = true;
  ++s.must.errors;
  if (behind_check) {
    s.must.ended_behind_check = true;
    counts_exactly_ = false;
  }
  if (nak != 0 && q.is_reliable()) {
    s.must.naks.push_back({nak, psn, s.must.msn, true});
    s.must.acknowledged.reset();
  }
  s.must.last_nak.reset();
  s.under_way = state::message::none;
  // What software has posted comes back flushed. A shared queue's stays there, and the last is told of.
  if (q.has_own_queue())
    for (; s.consumed != s.posted; ++s.consumed) fail_receive(q, s, code(abi::cqe::error::flushed), s.consumed);
  else if (q.kind != service::xrc)
    s.must.events.push_back(static_cast<std::uint8_t>(abi::eqe::event::srq_last_wqe));
}

void reference::fail_receive(const queue_pair& q, state& s, std::uint8_t syndrome, std::uint16_t index) {
  expectation::completion c{abi::cqe::opcode_error, syndrome, {}, 0, 0, {}};
  if (q.has_own_queue()) c.index = index;
  s.must.completions.push_back(c);
}

}  // namespace rnic::transport::random_test
