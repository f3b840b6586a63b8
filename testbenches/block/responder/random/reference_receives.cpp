// SPDX-License-Identifier: Apache-2.0
// What takes a receive: SENDs, datagrams, plain frames.
#include <algorithm>

#include "testbenches/block/responder/random/reference.h"
#include "testbenches/block/responder/random/reference_codes.h"

namespace rnic::transport::random_test {

void reference::send(const queue_pair& q, state& s, const request& r) {
  const wire::opcode_traits& t = r.traits();
  const auto bytes = static_cast<std::uint32_t>(r.payload.size());
  const bool length_fits = bytes <= q.mtu && (t.last || bytes == q.mtu) && (t.first || bytes != 0);
  if (!length_fits) {
    if (q.is_reliable()) first_packet(q, s);
    return invalid(q, s, r);
  }
  if (t.first) {
    if (q.has_own_queue() && s.consumed == s.posted) return no_receive(q, s, r);
    s.received = 0;
    s.bytes.clear();
    if (q.has_own_queue()) ++s.consumed;
  }
  first_packet(q, s);
  count("sends");
  const bool into_entry = q.inline_receive && t.first && t.last && bytes != 0 && bytes <= entry_bytes;
  if (!receive_part(q, s, r, into_entry)) return;
  s.received += bytes;
  s.bytes.insert(s.bytes.end(), r.payload.begin(), r.payload.end());
  s.under_way = t.last ? state::message::none : state::message::send;
  if (t.ieth && invalidable_.erase(r.invalidated) == 0) {
    // Class J: nobody is answered.
    fail_receive(q, s, code(abi::cqe::error::remote_invalid_request), static_cast<std::uint16_t>(s.consumed - 1));
    return end(q, s, 0, r.psn, true);
  }
  if (t.last) end_send(q, s, r, into_entry);
  accepted(q, s, r, 1);
}

/// A packet's payload. False: it does not fit, and the queue pair ends. Of a shared queue it is not known which receive
/// a message gets: it is looked at behind its completion.
bool reference::receive_part(const queue_pair& q, state& s, const request& r, bool into_entry) {
  if (!q.has_own_queue() || r.payload.empty()) return true;
  const auto index = static_cast<std::uint16_t>(s.consumed - 1);
  if (into_entry) {
    put(receive_queue_at(q.index) + index % own_entries * entry_bytes, r.payload);
    return true;
  }
  const receive& to = with_.receive_of(q, index);
  if (s.received + r.payload.size() > to.bytes()) {
    fail_receive(q, s, code(abi::cqe::error::local_length), index);
    end(q, s, nak_invalid, r.psn, false);
    return false;
  }
  if (to.bad_key) {
    fail_receive(q, s, code(abi::cqe::error::local_protection), index);
    end(q, s, nak_operational, r.psn, true);
    return false;
  }
  scatter(to, s.received, r.payload);
  return true;
}

void reference::end_send(const queue_pair& q, state& s, const request& r, bool into_entry) {
  const wire::opcode_traits& t = r.traits();
  expectation::completion c;
  c.opcode = t.immediate ? abi::cqe::receive_send_imm : t.ieth ? abi::cqe::receive_send_inval : abi::cqe::receive_send;
  if (into_entry) c.opcode |= abi::cqe::inline_bit;
  c.bytes = s.received;
  c.immediate = t.immediate ? r.immediate : t.ieth ? r.invalidated : 0;
  if (q.has_own_queue())
    c.index = static_cast<std::uint16_t>(s.consumed - 1);
  else
    c.payload = s.bytes;
  s.must.completions.push_back(c);
}

/// RNR NAK; what is unreliable is dropped.
void reference::no_receive(const queue_pair& q, state& s, const request& r) {
  if (!q.is_reliable()) {
    s.expected = r.psn + 1;
    s.under_way = state::message::none;
    return count("drop.no_wqe");
  }
  first_packet(q, s);
  count("rnr");
  s.nak_sent = true;
  const auto syndrome = static_cast<std::uint8_t>(kind_rnr | with_.context_of(q).rnr_timer);
  s.must.naks.push_back({syndrome, r.psn, s.must.msn, false});
  s.must.last_nak = s.must.naks.back();
}

/// UC: the message under way is lost. Its receive is used for the next one, or, of a shared queue, completed in error.
void reference::give_back(const queue_pair& q, state& s) {
  if (s.under_way != state::message::send) return;
  if (q.has_own_queue())
    --s.consumed;
  else
    fail_receive(q, s, code(abi::cqe::error::remote_invalid_request), 0);
}

void reference::datagram(const queue_pair& q, state& s, const request& r) {
  if (r.qkey != qkey || r.payload.size() > q.mtu) return;
  if (s.consumed == s.posted) return count("drop.no_wqe");
  first_packet(q, s);
  const std::uint16_t index = s.consumed++;
  octets all(grh_bytes);
  all.insert(all.end(), r.payload.begin(), r.payload.end());
  const auto bytes = static_cast<std::uint32_t>(all.size());
  const receive& to = with_.receive_of(q, index);
  const bool into_entry = q.inline_receive && bytes <= entry_bytes;
  const std::uint64_t entry = receive_queue_at(q.index) + index % own_entries * entry_bytes;
  std::uint32_t left = grh_bytes;
  if (into_entry) {
    put(entry, all);
    for (std::uint32_t i = 0; i < grh_bytes; ++i) open_.insert(entry + i);
  } else if (bytes > to.bytes()) {
    fail_receive(q, s, code(abi::cqe::error::local_length), index);
    return end(q, s, 0, r.psn, false);
  } else if (to.bad_key) {
    fail_receive(q, s, code(abi::cqe::error::local_protection), index);
    return end(q, s, 0, r.psn, true);
  } else {
    scatter(to, 0, all);
    for (const receive::segment& segment : to.segments)
      for (std::uint32_t i = 0; i < segment.length && left != 0; ++i, --left) open_.insert(segment.bus + i);
  }
  expectation::completion c;
  c.opcode = r.traits().immediate ? abi::cqe::receive_send_imm : abi::cqe::receive_send;
  if (into_entry) c.opcode |= abi::cqe::inline_bit;
  c.index = index;
  c.bytes = bytes;
  if (r.traits().immediate) c.immediate = r.immediate;
  s.must.completions.push_back(c);
}

void reference::take_plain(const queue_pair& q, const octets& frame) {
  state& s = states_[q.index];
  if (s.ended) return count("drop.error");
  if (s.consumed == s.posted) return;
  const std::uint16_t index = s.consumed++;
  const receive& to = with_.receive_of(q, index);
  count("ethernet");
  if (frame.size() > to.bytes()) {
    fail_receive(q, s, code(abi::cqe::error::local_length), index);
    return end(q, s, 0, {}, false);
  }
  if (to.bad_key) {
    fail_receive(q, s, code(abi::cqe::error::local_protection), index);
    return end(q, s, 0, {}, true);
  }
  scatter(to, 0, frame);
  expectation::completion c;
  c.opcode = abi::cqe::receive_send;
  c.index = index;
  c.bytes = static_cast<std::uint32_t>(frame.size());
  s.must.completions.push_back(c);
}

void reference::scatter(const receive& to, std::uint32_t offset, const octets& bytes) {
  std::size_t done = 0;
  for (const receive::segment& s : to.segments) {
    if (offset >= s.length) {
      offset -= s.length;
      continue;
    }
    const std::size_t part = std::min<std::size_t>(bytes.size() - done, s.length - offset);
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(done);
    std::copy(from, from + static_cast<std::ptrdiff_t>(part),
              memory_.begin() + static_cast<std::ptrdiff_t>(s.bus + offset));
    done += part;
    offset = 0;
    if (done == bytes.size()) return;
  }
}

}  // namespace rnic::transport::random_test
