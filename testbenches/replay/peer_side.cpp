// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/peer_side.h"

#include <algorithm>

#include "model/wire/packet.h"
#include "testbenches/replay/counters.h"
#include "testbenches/replay/packets.h"

namespace rnic::replay {

namespace {

using wire::operation;

constexpr unsigned nak_invalid = 1, nak_access = 2, nak_operation = 3;  // IBA volume 1, table 45

}  // namespace

void peer_reader::request(std::size_t index) {
  captured_frame& f = plan_.frames[index];
  const wire::packet& p = f.packet;
  f.repeated = !line_.add(p.bth.psn, index);
  if (is_atomic(p) && !f.repeated) atomics_[p.bth.psn.value()] = index;
  if (is_read_request(p)) reads_.push_back(index);
}

void peer_reader::answer(std::size_t index) {
  const captured_frame& f = plan_.frames[index];
  const wire::packet& p = f.packet;
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  const std::int64_t place = line_.near(p.bth.psn);
  const aeth_kind kind = t.aeth ? syndrome_kind(p.aeth.syndrome) : aeth_kind::ack;
  if (kind == aeth_kind::rnr) {
    not_ready_[place] = index;
    c_.terms.rnr_timer = p.aeth.syndrome & 0x1f;
  } else if (kind == aeth_kind::nak && (p.aeth.syndrome & 0x1f) != 0 && refused_.frame == no_frame) {
    refused_ = {index, place, p.aeth.syndrome & 0x1fu};
  } else if (kind == aeth_kind::ack) {
    // What goes on behind a NAK was not ended by it, whatever that said.
    if (refused_.frame != no_frame && place >= refused_.place) refused_ = {};
    acknowledged_ = any_acknowledged_ ? std::max(acknowledged_, place) : place;
    any_acknowledged_ = true;
    acknowledged_by_.try_emplace(place, index);
    if (t.aeth && wire::operation_of(p.bth.opcode) != operation::read_response_first)
      msn_.try_emplace(place, p.aeth.msn);
  }
  if (is_read_response(p)) read_answer(f, index);
  if (t.atomic_ack_eth) atomic_answer(f, index);
}

/// Answers of the held host show what its memory held.
void peer_reader::read_answer(const captured_frame& f, std::size_t index) {
  const wire::packet& p = f.packet;
  memory_answers_.try_emplace(line_.near(p.bth.psn), index);
  for (auto asked = reads_.rbegin(); asked != reads_.rend(); ++asked) {
    const std::int32_t ahead = p.bth.psn - plan_.frames[*asked].packet.bth.psn;
    const wire::reth& reth = plan_.frames[*asked].packet.reth;
    const std::uint64_t offset = static_cast<std::uint64_t>(ahead) * c_.mtu;
    if (ahead < 0 || offset + p.payload_length > reth.length) continue;
    plan_.contents[*asked].push_back({reth.rkey, reth.va + offset, index});
    return;
  }
}

void peer_reader::atomic_answer(const captured_frame& f, std::size_t index) {
  const wire::packet& p = f.packet;
  memory_answers_.try_emplace(line_.near(p.bth.psn), index);
  const auto asked = atomics_.find(p.bth.psn.value());
  if (asked == atomics_.end()) return;
  answered_.push_back({index, asked->second, p.atomic_original});
  atomics_.erase(asked);
}

void make_counters(plan& p, const std::vector<answered_atomic>& atomics) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<executed_atomic>> words;  // by key and address
  for (const answered_atomic& a : atomics) {
    const wire::packet& request = p.frames[a.request].packet;
    words[{request.atomic.rkey, request.atomic.va}].push_back({a.request, a.answer, &request, a.found, a.request});
  }
  for (auto& [where, of_word] : words) {
    const execution_order order = order_of_execution(std::move(of_word));
    // The adapter may begin with another one of those that are under way together: it is there before all of them.
    std::size_t earliest = no_frame;
    for (std::size_t i = order.atomics.size(); i-- > 0;) {
      earliest = std::min(earliest, order.atomics[i].number);
      if (order.jumps[i])
        p.contents[earliest].push_back({where.first, where.second, no_frame, true, order.atomics[i].found});
    }
  }
}

void peer_reader::finish() {
  c_.refusals.by_held = refused_.frame;
  if (line_.frames().empty()) return;
  start_ = line_.frames().begin()->first;
  c_.peer_start_psn = plan_.frames[line_.frames().begin()->second].packet.bth.psn.value();
  std::size_t earliest = no_frame;
  for (auto r = line_.frames().rbegin(); r != line_.frames().rend(); ++r)
    sign_[r->first] = earliest = std::min(earliest, r->second);
  std::int64_t next = start_;
  for (const auto& [place, index] : line_.frames()) {
    if (refused_.frame != no_frame && place > refused_.place) break;  // the queue pair had failed
    if (place < next) {                                               // the rest of a READ, asked for again
      plan_.frames[index].repeated = true;
      continue;
    }
    if (place > next) skip_hole(next, place);
    next = place + packets_in(plan_.frames[index].packet);
    take(place, index);
  }
}

/// The next request that the held host executed, or refused.
void peer_reader::take(std::int64_t place, std::size_t index) {
  const wire::packet& p = plan_.frame(index).packet;
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  const bool refused = refused_.frame != no_frame && refused_.place == place;
  srqn_ = p.xrceth & 0xffffff;
  if (t.xrceth && !(refused && refused_.code == nak_invalid)) c_.xrc.srqns.insert(srqn_);
  if (is_read_request(p) || is_atomic(p)) {
    need(is_atomic(p) ? memory_access::kind::atomic : memory_access::kind::read, place, index);
    if (is_atomic(p)) note_change(place, index, refused);
    open_.open = false;
  } else {
    if (t.first) {
      open_ = {};
      open_.open = true;
      open_.kind = is_write(p) ? operation::write_only : operation::send_only;
      open_.first_place = place;
      open_.length = p.reth.length;
      open_.reth = p.reth;
      if (is_write(p)) need(memory_access::kind::write, place, index);
    }
    if (is_send(p)) take_send(place, p);
    if (t.ieth && !refused) {
      memory_access end;
      end.what = memory_access::kind::invalidate;
      end.rkey = p.invalidate_rkey;
      end.frame = index;
      accesses_.push_back(end);
      note_change(place, index, refused);
    }
    if (is_write(p)) note_change(place, index, refused);
    if (is_write(p) && t.immediate) take_receive(place, place);
    if (t.last && (is_send(p) || t.immediate) && !open_.broken &&
        (refused_.frame == no_frame || refused_.place > place))
      ++c_.deliveries;
    open_.bytes += p.payload_length;
    open_.open = !t.last;
  }
  if (refused) apply_refusal(p);
}

/// The number of the receive that the message of the last packet takes.
std::uint64_t peer_reader::new_receive() {
  const std::uint64_t number = c_.receives.count++;
  return c_.service == wire::transport::xrc ? plan_.srqs[srqn_]++ : number;
}

void peer_reader::take_send(std::int64_t place, const wire::packet& p) {
  const std::uint64_t bytes = std::min(longest_message, open_.bytes + p.payload_length);
  c_.receives.largest = std::max(c_.receives.largest, static_cast<std::uint32_t>(bytes));
  if (open_.receive == ~std::uint64_t{0}) open_.receive = new_receive();
  const auto late = not_ready_.find(place);
  if (late != not_ready_.end()) rule(open_.receive).after = late->second;
}

/// A receive without a place for data, for the packets [first, last].
void peer_reader::take_receive(std::int64_t first, std::int64_t last) {
  open_.receive = new_receive();
  const auto late = not_ready_.lower_bound(first);
  if (late != not_ready_.end() && late->first <= last) rule(open_.receive).after = late->second;
}

receive_rule& peer_reader::rule(std::uint64_t number) {
  if (c_.receives.rules.empty() || c_.receives.rules.back().number != number ||
      c_.receives.rules.back().srqn != srqn_) {
    c_.receives.rules.emplace_back();
    c_.receives.rules.back().number = number;
    c_.receives.rules.back().srqn = srqn_;
  }
  return c_.receives.rules.back();
}

/// A NAK of invalid request is about a receive that is too short or an operation that the queue pair does not offer,
/// one of a remote operational error about a receive that cannot be used.
void peer_reader::apply_refusal(const wire::packet& p) {
  if (is_send(p) && refused_.code == nak_invalid && open_.bytes != 0) {
    rule(open_.receive).short_of = true;
    rule(open_.receive).bytes = static_cast<std::uint32_t>(open_.bytes - 1);
  }
  if (is_send(p) && refused_.code == nak_operation) {
    const std::uint64_t behind = std::min<std::uint64_t>(open_.bytes, longest_message);
    rule(open_.receive).bad_key = true;
    rule(open_.receive).bytes = static_cast<std::uint32_t>(behind - std::min<std::uint64_t>(p.payload_length, behind));
  }
  if (refused_.code != nak_invalid) return;
  const auto done = [&](memory_access::kind what) {
    return std::any_of(accesses_.begin(), accesses_.end(), [&](const memory_access& a) {
      const captured_frame& f = plan_.frame(a.frame);
      return !a.refused && a.what == what && f.connection == plan_.frames[refused_.frame].connection &&
             f.packet.bth.psn != p.bth.psn;
    });
  };
  if (is_read_request(p) && !done(memory_access::kind::read)) c_.terms.may_read = false;
  if (is_atomic(p) && p.atomic.va % 8 == 0 && !done(memory_access::kind::atomic)) c_.terms.may_atomic = false;
  if (is_write(p) && wire::traits(p.bth.opcode).first && !done(memory_access::kind::write)) c_.terms.may_write = false;
}

/// No memory lies beyond the last address: what is asked for there is refused.
void peer_reader::need(memory_access::kind what, std::int64_t place, std::size_t index) {
  const wire::packet& p = plan_.frame(index).packet;
  const bool atomic = what == memory_access::kind::atomic;
  memory_access a;
  a.what = what;
  a.rkey = atomic ? p.atomic.rkey : p.reth.rkey;
  a.va = atomic ? p.atomic.va : p.reth.va;
  a.length = atomic ? 8 : p.reth.length;
  a.frame = index;
  const std::int64_t behind = place + (atomic ? 1 : packets_of(a.length, c_.mtu));
  a.refused =
      refused_.frame != no_frame && refused_.code == nak_access && place <= refused_.place && refused_.place < behind;
  if (a.length != 0 && a.length - 1 <= ~std::uint64_t{0} - a.va) accesses_.push_back(a);
}

/// What the packet changes, from its arrival until it is acknowledged. Of a message whose beginning is missing it is
/// not known where that is.
void peer_reader::note_change(std::int64_t place, std::size_t index, bool refused) {
  const captured_frame& f = plan_.frame(index);
  const wire::packet& p = f.packet;
  memory_change m;
  m.from = index < plan_.frames.size() ? index : place_for(place);
  m.connection = f.connection;
  const auto done = acknowledged_by_.lower_bound(place);
  if (done != acknowledged_by_.end()) m.to = done->second;
  if (is_atomic(p)) {
    m.rkey = p.atomic.rkey;
    m.address = p.atomic.va;
    m.length = 8;
  } else if (is_write(p)) {
    if (open_.broken || !open_.open || open_.bytes + p.payload_length > open_.reth.length) return;
    m.rkey = open_.reth.rkey;
    m.address = open_.reth.va + open_.bytes;
    m.length = p.payload_length;
    if (index < plan_.frames.size() && !refused) m.content = index;
  } else {
    m.rkey = p.invalidate_rkey;
    m.ends_key = true;
  }
  if (m.ends_key || m.length != 0) writes_.push_back(m);
}

// ---------------------------------------------------------------- packets that the capture lacks

/// Packets [from, to) are nowhere in the capture. If the real host acknowledged them they are missing here only.
void peer_reader::skip_hole(std::int64_t from, std::int64_t to) {
  if (any_acknowledged_ && acknowledged_ >= to - 1 && to - from <= widest_gap) {
    fill_hole(from, to);
    return;
  }
  // What is not known may have been messages, or parts of this one.
  const auto missing = static_cast<std::uint64_t>(std::min<std::int64_t>(to - from, widest_gap));
  open_.broken = open_.open;
  open_.bytes += missing * c_.mtu;
  c_.receives.count += missing;
  if (c_.service == wire::transport::xrc) plan_.srqs[srqn_] += missing;
}

void peer_reader::fill_hole(std::int64_t from, std::int64_t to) {
  const wire::packet& next = plan_.frames[line_.frames().at(to)].packet;
  const bool goes_on = !wire::traits(next.bth.opcode).first;
  const operation kind = is_write(next) ? operation::write_only : operation::send_only;
  std::int64_t messages = messages_in(from, to);
  if (open_.open) {
    const bool same = goes_on && open_.kind == kind && messages <= 0;
    from = end_message(from, to, same);
    if (!same) --messages;
  }
  while (from < to && memory_answers_.count(from) != 0) {
    const std::int64_t behind = answered_by_memory(from, to);
    if (behind == from) return;
    from = behind;
    --messages;
  }
  if (from == to) return;
  if (goes_on)
    begin_message(from, to, next);
  else
    whole_messages(from, to, messages);
}

/// How many messages ended in [from, to), from the counts in the answers around it; -1: they do not tell.
std::int64_t peer_reader::messages_in(std::int64_t from, std::int64_t to) const {
  const auto after = msn_.lower_bound(to - 1);
  auto before = msn_.lower_bound(from);
  if (after == msn_.end()) return -1;
  // A capture that begins with the connection has counted none before its first answer.
  const bool counted = before != msn_.begin();
  if (counted) --before;
  const std::int64_t since = counted ? before->first + 1 : start_;
  std::int64_t known = 0;
  for (auto f = line_.frames().lower_bound(since); f != line_.frames().end() && f->first <= after->first; ++f)
    known += wire::traits(plan_.frames[f->second].packet.bth.opcode).last ? 1 : 0;
  const std::uint32_t told = after->second - (counted ? before->second : 0);
  const auto more = static_cast<std::int64_t>((told - static_cast<std::uint32_t>(known)) & 0xffffff);
  return more <= to - from ? more : -1;
}

/// Where a packet of the hole has to come: before the first request behind it, and before it is acknowledged.
std::size_t peer_reader::place_for(std::int64_t place) const {
  const auto later = sign_.lower_bound(place);
  std::size_t before = later == sign_.end() ? plan_.frames.size() - 1 : later->second;
  for (auto a = acknowledged_by_.lower_bound(place); a != acknowledged_by_.end(); ++a)
    before = std::min(before, a->second);
  return before;
}

bool peer_reader::put(std::int64_t place, packet_maker::recipe r) {
  r.psn = psn_at(place);
  const std::size_t made = maker_.make(c_.first_from_peer, r, place_for(place));
  if (made == no_frame) return false;
  take(place, made);
  return true;
}

/// The rest of the message that is open, as far as it lies in [from, to): the place behind it. `goes_on`: it has no end
/// there.
std::int64_t peer_reader::end_message(std::int64_t from, std::int64_t to, bool goes_on) {
  const bool write = open_.kind == operation::write_only;
  const std::uint64_t left = open_.length > open_.bytes ? open_.length - open_.bytes : 1;
  const std::int64_t packets = goes_on ? to - from
                               : write ? std::min<std::int64_t>(to - from, packets_of(left, c_.mtu))
                                       : to - from;
  for (std::int64_t i = 0; i < packets; ++i) {
    const bool last = !goes_on && i == packets - 1;
    packet_maker::recipe r{};
    r.what = write ? (last ? operation::write_last : operation::write_middle)
                   : (last ? operation::send_last : operation::send_middle);
    const std::uint64_t rest = open_.length > open_.bytes ? open_.length - open_.bytes : 1;
    r.payload = last && write ? static_cast<std::uint32_t>(std::min<std::uint64_t>(rest, c_.mtu)) : c_.mtu;
    if (!put(from + i, r)) return to;
  }
  return from + packets;
}

/// A READ or atomic of which the answer is there. Its place must have been asked for: the place behind it.
std::int64_t peer_reader::answered_by_memory(std::int64_t from, std::int64_t to) {
  const captured_frame& answer = plan_.frames[memory_answers_.at(from)];
  packet_maker::recipe r{};
  if (wire::traits(answer.packet.bth.opcode).atomic_ack_eth) {
    const wire::reth invented = maker_.invent(8);
    r.what = operation::fetch_add;
    r.atomic.va = invented.va;
    r.atomic.rkey = invented.rkey;
    const std::size_t index = plan_.frames.size() + plan_.made_up.size();
    if (!put(from, r)) return from;
    plan_.contents[index].push_back({invented.rkey, invented.va, no_frame, true, answer.packet.atomic_original});
    return from + 1;
  }
  std::int64_t behind = from;
  std::uint64_t length = 0;
  std::vector<memory_content> contents;
  for (auto a = memory_answers_.find(from); a != memory_answers_.end() && a->first == behind && behind < to;
       ++a, ++behind) {
    const wire::packet& p = plan_.frames[a->second].packet;
    if (!is_read_response(p)) break;
    contents.push_back({0, length, a->second});
    length += p.payload_length;
    if (wire::traits(p.bth.opcode).last) {
      ++behind;
      break;
    }
  }
  r.what = operation::read_request;
  r.reth = maker_.invent(static_cast<std::uint32_t>(length));
  const std::size_t index = plan_.frames.size() + plan_.made_up.size();
  if (!put(from, r)) return from;
  for (memory_content& m : contents) {
    m.rkey = r.reth.rkey;
    m.address += r.reth.va;
    plan_.contents[index].push_back(m);
  }
  return behind;
}

/// So many messages, of one packet each but the first one: WRITEs, since they need no receive.
bool peer_reader::whole_messages(std::int64_t from, std::int64_t to, std::int64_t messages) {
  const std::int64_t count = messages <= 0 ? to - from : std::min(messages, to - from);
  const std::int64_t packets = to - from - (count - 1);  // of the first message
  packet_maker::recipe r{};
  if (packets > 1) r.reth = maker_.invent(static_cast<std::uint32_t>(packets) * c_.mtu);
  for (std::int64_t i = 0; i < packets; ++i) {
    r.what = packets == 1       ? operation::write_only
             : i == 0           ? operation::write_first
             : i == packets - 1 ? operation::write_last
                                : operation::write_middle;
    r.payload = packets == 1 ? 0 : c_.mtu;
    if (!put(from + i, r)) return false;
  }
  r = {};
  r.what = operation::write_only;
  for (std::int64_t i = from + packets; i < to; ++i)
    if (!put(i, r)) return false;
  return true;
}

/// The beginning of the message that goes on with `next`.
bool peer_reader::begin_message(std::int64_t from, std::int64_t to, const wire::packet& next) {
  const bool write = is_write(next);
  packet_maker::recipe r{};
  if (write)
    r.reth = maker_.invent(static_cast<std::uint32_t>(
        std::min(longest_message, static_cast<std::uint64_t>(to - from) * c_.mtu + rest_of_message(to))));
  for (std::int64_t i = from; i < to; ++i) {
    r.what = write ? (i == from ? operation::write_first : operation::write_middle)
                   : (i == from ? operation::send_first : operation::send_middle);
    r.payload = c_.mtu;
    if (!put(i, r)) return false;
  }
  return true;
}

/// Bytes of a message from a packet in its middle to its end.
std::uint64_t peer_reader::rest_of_message(std::int64_t from) const {
  std::uint64_t bytes = 0;
  for (auto f = line_.frames().find(from); f != line_.frames().end(); ++f) {
    const wire::packet& p = plan_.frames[f->second].packet;
    bytes += p.payload_length + static_cast<std::uint64_t>(f->first - from) * c_.mtu;  // and what is missing there
    from = f->first + 1;
    if (wire::traits(p.bth.opcode).last) break;
  }
  return bytes;
}

}  // namespace rnic::replay
