// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/held_side.h"

#include <algorithm>
#include <utility>

#include "model/wire/packet.h"
#include "testbenches/replay/packets.h"

namespace rnic::replay {

namespace {

using wire::operation;

constexpr unsigned most_rnr_retries = 6;                    // 7 is without end
constexpr sim::time_ps slow_host = 50000 * sim::ps_per_us;  // may pass until a host in software sends again

bool is_negative(const wire::packet& p) {
  return wire::traits(p.bth.opcode).aeth && syndrome_kind(p.aeth.syndrome) != aeth_kind::ack;
}

}  // namespace

void held_reader::request(std::size_t index) {
  captured_frame& f = plan_.frames[index];
  f.repeated = !line_.add(f.packet.bth.psn, index);
  const std::int64_t place = line_.near(f.packet.bth.psn);
  if (place == not_ready_.place) not_ready_.heeded = true;
  if (!f.repeated || !asked_again_ || place < asked_from_ || place <= asked_up_to_) return;
  f.asked_again = true;
  asked_up_to_ = place;
}

void held_reader::answer(std::size_t index) {
  const wire::packet& p = plan_.frames[index].packet;
  const std::int64_t place = line_.near(p.bth.psn);
  note_not_ready(place, index);
  if (is_negative(p)) {
    if ((p.aeth.syndrome & 0x60) == 0x60 && (p.aeth.syndrome & 0x1f) != 0) c_.refusals.by_peer = index;
    asked_again_ = true;
    asked_from_ = place;
    asked_up_to_ = place - 1;
    return;
  }
  positive_.try_emplace(place, index);
  if (is_read_response(p)) read_parts_[p.bth.psn.value()] = p.payload_length;
  if (is_read_response(p) || wire::traits(p.bth.opcode).atomic_ack_eth) answered_.try_emplace(place, index);
}

/// RNR NAKs one after the other for the same packet.
void held_reader::note_not_ready(std::int64_t place, std::size_t index) {
  const wire::packet& p = plan_.frames[index].packet;
  if (!is_rnr(p)) {
    if (!is_negative(p) || (p.aeth.syndrome & 0x1f) != 0) not_ready_ = {};
    return;
  }
  const unsigned before = not_ready_.place == place ? not_ready_.count : 0;
  not_ready_ = {index, place, before + 1, false};
}

/// The held host did not send again what its peer was not ready for, although the capture goes on for long.
void held_reader::find_end_of_patience() {
  if (not_ready_.count == 0 || not_ready_.heeded || not_ready_.count > most_rnr_retries + 1) return;
  const captured_frame& last = plan_.frames[not_ready_.frame];
  const sim::time_ps wait = std::max(2 * rnr_wait(last.packet.aeth.syndrome), slow_host);
  if (plan_.frames.back().at < last.at + wait) return;
  c_.terms.rnr_retries = static_cast<std::uint8_t>(not_ready_.count - 1);
  c_.refusals.by_peer = not_ready_.frame;
}

void held_reader::finish() {
  find_end_of_patience();
  if (line_.frames().empty()) return;
  start_ = next_ = line_.frames().begin()->first;
  c_.held_start_psn = plan_.frames[line_.frames().begin()->second].packet.bth.psn.value();
  std::size_t earliest = no_frame;
  for (auto r = line_.frames().rbegin(); r != line_.frames().rend(); ++r)
    first_sign_[r->first] = earliest = std::min(earliest, r->second);
  for (const auto& [place, index] : line_.frames()) {
    if (place < next_) {  // the rest of a READ, asked for again
      plan_.frames[index].repeated = true;
      continue;
    }
    if (place > next_ && !fill_gap(next_, place, plan_.frames[index].packet)) break;
    held_request(place, index);
  }
  end_held();
  fill_answers();
}

void held_reader::held_request(std::int64_t place, std::size_t index) {
  const captured_frame& f = plan_.frames[index];
  const wire::packet& p = f.packet;
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  srqn_ = p.xrceth & 0xffffff;
  if (t.first || !in_message_) {
    if (in_message_) close_message();
    open_message(place, is_read_request(p) || is_atomic(p) ? wire::operation_of(p.bth.opcode)
                        : is_write(p)                      ? operation::write_only
                                                           : operation::send_only);
    open_.reth = p.reth;
    open_.atomic = p.atomic;
    open_.masked = wire::transport_of(p.bth.opcode) == wire::transport::manufacturer;
  }
  if (f.known_payload() != 0) open_.pieces.push_back({open_.length, index});
  open_.length += p.payload_length;
  next_ = place + (is_read_request(p) ? packets_of(p.reth.length, c_.mtu) : 1);
  if (!t.last) return;
  open_.has_immediate = t.immediate;
  open_.immediate = p.immediate;
  open_.invalidates = t.ieth;
  open_.invalidated = p.invalidate_rkey;
  open_.solicited = p.bth.solicited;
  close_message();
}

/// Packets [from, to) are not in the capture. False: too many to be a hole, or more than may be made up.
bool held_reader::fill_gap(std::int64_t from, std::int64_t to, const wire::packet& next) {
  std::int64_t missing = to - from;
  if (missing > widest_gap) return false;
  const wire::opcode_traits& t = wire::traits(next.bth.opcode);
  const operation kind = is_write(next) ? operation::write_only : operation::send_only;
  if (in_message_ && !t.first && open_.operation == kind)
    return add_zeros(static_cast<std::uint64_t>(missing) * c_.mtu);
  if (in_message_) {
    const std::uint64_t known = open_.operation == operation::write_only ? open_.reth.length : 0;
    const std::uint64_t most = static_cast<std::uint64_t>(missing) * c_.mtu;
    const std::uint64_t lacking = known > open_.length ? known - open_.length : most;
    const std::uint64_t bytes = std::min(lacking, most);
    if (!add_zeros(bytes)) return false;
    missing -= static_cast<std::int64_t>((bytes + c_.mtu - 1) / c_.mtu);
    close_message();
  }
  if (missing == 0) return true;
  if (t.first) return stand_in(to - missing, missing);
  open_message(to - missing, kind);
  return add_zeros(static_cast<std::uint64_t>(missing) * c_.mtu);
}

/// One message for whole messages that the capture lacks: a READ when the peer answered one, otherwise a SEND.
bool held_reader::stand_in(std::int64_t from, std::int64_t packets) {
  const auto last = read_parts_.find(psn_at(from + packets - 1));
  const std::uint64_t before = static_cast<std::uint64_t>(packets - 1) * c_.mtu;
  open_message(from, last != read_parts_.end() ? operation::read_request : operation::send_only);
  open_.stand_in = true;
  if (last != read_parts_.end())
    open_.reth.length = static_cast<std::uint32_t>(before + std::max(last->second, before == 0 ? 0u : 1u));
  else if (!add_zeros(before + 1))
    return false;
  close_message();
  return true;
}

void held_reader::open_message(std::int64_t place, operation what) {
  open_ = held_message{};
  open_.operation = what;
  open_.first_psn = psn_at(place);
  open_.srqn = srqn_;
  const auto sign = first_sign_.lower_bound(place);
  open_.first_frame = sign == first_sign_.end() ? 0 : sign->second;
  in_message_ = true;
}

/// False: that is more than may still be made up, and the message is given up.
bool held_reader::add_zeros(std::uint64_t bytes) {
  if (bytes <= plan_.zeros_left && open_.length + bytes <= longest_message) {
    plan_.zeros_left -= bytes;
    open_.length += bytes;
    return true;
  }
  in_message_ = false;
  c_.budget_spent = true;
  ++plan_.remarks["connections whose messages are not sent to the end: the memory for what the capture lacks is spent"];
  return false;
}

void held_reader::close_message() {
  in_message_ = false;
  if (open_.operation == operation::write_only) open_.reth.length = static_cast<std::uint32_t>(open_.length);
  c_.messages.push_back(std::move(open_));
}

/// A message whose end came after the capture.
void held_reader::end_held() {
  if (!in_message_) return;
  const std::uint64_t length = open_.operation == operation::write_only ? open_.reth.length : 0;
  const bool short_end = length > open_.length && length <= open_.length + std::uint64_t{widest_gap} * c_.mtu;
  if (add_zeros(short_end ? length - open_.length : 1)) close_message();  // else: what is there is not the last packet
}

/// Answers to READs and atomics that never came although later ones did: without them the adapter would wait for ever.
void held_reader::fill_answers() {
  for (const auto& [place, index] : line_.frames()) {
    const wire::packet& p = plan_.frames[index].packet;
    if (plan_.frames[index].repeated || (!is_read_request(p) && !is_atomic(p))) continue;
    const std::uint32_t packets = is_read_request(p) ? packets_of(p.reth.length, c_.mtu) : 1;
    if (positive_.empty() || positive_.rbegin()->first <= place) return;
    for (std::uint32_t i = 0; i < packets && place + i < positive_.rbegin()->first; ++i)
      if (answered_.count(place + i) == 0 && !fill_answer(place + i, p, i)) return;
  }
}

bool held_reader::fill_answer(std::int64_t place, const wire::packet& request, std::uint32_t number) {
  std::size_t before = no_frame;
  for (auto a = positive_.upper_bound(place); a != positive_.end(); ++a) before = std::min(before, a->second);
  if (before == no_frame || !c_.seen_from_peer) return false;
  packet_maker::recipe r{};
  r.psn = psn_at(place);
  r.aeth.syndrome = 0x1f;
  const wire::packet& later = plan_.frames[before].packet;
  r.aeth.msn = wire::traits(later.bth.opcode).aeth ? later.aeth.msn : 0;
  r.what = operation::atomic_acknowledge;
  if (is_read_request(request)) {
    const std::uint32_t packets = packets_of(request.reth.length, c_.mtu);
    const bool last = number + 1 == packets;
    r.what = packets == 1  ? operation::read_response_only
             : number == 0 ? operation::read_response_first
             : last        ? operation::read_response_last
                           : operation::read_response_middle;
    r.payload = last ? request.reth.length - number * c_.mtu : c_.mtu;
  }
  return maker_.make(c_.first_from_peer, r, before) != no_frame;
}

}  // namespace rnic::replay
