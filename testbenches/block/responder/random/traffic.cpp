// SPDX-License-Identifier: Apache-2.0
#include "testbenches/block/responder/random/traffic.h"

#include <algorithm>

#include "model/transport/message_packets.h"
#include "testbenches/block/responder/random/request_frame.h"

namespace rnic::transport::random_test {

using wire::operation;

peer_program::peer_program(const setup& with, const queue_pair& q, reference& follows, dice& d, bool hostile)
    : with_(with), q_(q), follows_(follows), dice_(d), hostile_(hostile) {}

void peer_program::fill(peers::stream& s, payload::frame_pool& frames) {
  s.most_open = 1u << q_.log_reads;
  const bool copies = q_.kind == service::ud && dice_.percent(50);
  const unsigned n = 5 + dice_.below(40);
  constexpr unsigned most_behind_end = 4;
  for (unsigned i = 0, behind_end = 0; i < n && behind_end < most_behind_end; ++i) {
    if (follows_.of(q_).ended) ++behind_end;
    outgoing o;
    o.gap = dice_.percent(70) ? dice_.below(8) : dice_.below(300);
    o.into = copies ? outgoing::input::copies : outgoing::input::requests;
    if (q_.kind == service::ethernet)
      plain_frame(o, frames);
    else if (!next_request(o, frames))
      continue;
    s.frames.push_back(std::move(o));
  }
}

void peer_program::plain_frame(outgoing& o, payload::frame_pool& frames) {
  octets bytes = dice_.bytes(60 + dice_.below(800));
  wire::store_be16(bytes.data() + 12, 0x88b5);  // an experimental type: nothing in it has a checksum
  o.frame = frame_of(frames, q_.qpn, bytes);
  o.into = outgoing::input::plain_frames;
  follows_.take_plain(q_, bytes);
}

/// False: such a packet does not exist.
bool peer_program::next_request(outgoing& o, payload::frame_pool& frames) {
  attempt a = draw();
  if (a.packet.is_read() || a.packet.is_atomic()) a.packet.payload.clear();
  const wire::opcode_traits& t = a.packet.traits();
  if (t.known && t.request) o.frame = frame_of(frames, q_, a.packet);
  if (!o.frame) return false;
  const reference::state& s = follows_.of(q_);
  const wire::psn_t before = s.expected;
  const bool had_ended = s.ended;
  follows_.take(q_, a.packet);
  const bool accepted = s.expected != before && !s.ended;
  follow(a, accepted);
  // One that fails where it is executed has its place until then.
  const bool fails_late = s.ended && !had_ended && s.must.ended_behind_check;
  o.needs_place = a.needs_place && !a.repeated && !had_ended && (accepted || fails_late);
  o.psn = a.packet.psn;
  if (a.packet.is_read()) o.packets = packets_of(a.packet.reth.length, q_.mtu);
  return true;
}

peer_program::attempt peer_program::draw() {
  attempt a;
  if (q_.is_reliable() && !accepted_.empty() && dice_.percent(hostile_ ? 12 : 4)) {
    a.repeated = true;
    a.packet = repetition();
    return a;
  }
  request& r = a.packet;
  r.destination = q_.qpn;
  r.transport = q_.transport();
  r.psn = follows_.of(q_).expected;
  r.wants_acknowledgement = dice_.percent(60);
  if (q_.kind == service::ud) {
    r = datagram(r);
    return a;
  }
  if (!in_message()) begin_message();
  if (message_.what == verb::read)
    r = read(r);
  else if (message_.what == verb::atomic)
    r = atomic(r);
  else
    r = part_of_message(r);
  a.needs_place = r.is_read() || r.is_atomic();
  if (q_.kind == service::xrc) choose_shared_queue(r);
  if (dice_.percent(hostile_ ? 6 : 1)) spoil(a);
  return a;
}

/// The message goes on where the queue pair has taken its packet. Without one under way the next one begins.
void peer_program::follow(const attempt& a, bool was_accepted) {
  if (!was_accepted) return;
  accepted_.push_back(a.packet);
  message_.sent += static_cast<std::uint32_t>(a.packet.payload.size());
}

/// One of the last, or the rest of a READ of these.
request peer_program::repetition() {
  const std::size_t last = std::min<std::size_t>(accepted_.size(), 12);
  request r = accepted_[accepted_.size() - 1 - dice_.below(static_cast<std::uint32_t>(last))];
  if (r.is_read() && dice_.percent(50)) {
    const std::uint32_t skipped = dice_.below(packets_of(r.reth.length, q_.mtu));
    r.psn = r.psn + skipped;
    r.reth.va += std::uint64_t{skipped} * q_.mtu;
    r.reth.length -= skipped * q_.mtu;
  }
  return r;
}

request peer_program::datagram(request r) {
  r.operation = dice_.percent(70) ? operation::send_only : operation::send_only_immediate;
  r.psn = wire::psn_t(dice_.below(1u << 24));
  r.payload = dice_.bytes(dice_.below(q_.mtu + 1));
  r.immediate = static_cast<std::uint32_t>(dice_.word());
  if (dice_.percent(5)) r.qkey = foreign_qkey;
  if (dice_.percent(3)) r.payload = dice_.bytes(q_.mtu + 4);
  return r;
}

// ---------------------------------------------------------------- messages

void peer_program::begin_message() {
  message_ = {};
  message_.what = q_.is_reliable() ? dice_.one_of({verb::send, verb::write, verb::read, verb::atomic})
                                   : dice_.one_of({verb::send, verb::write});
  if (message_.what == verb::read || message_.what == verb::atomic) return;
  message_.immediate = static_cast<std::uint32_t>(dice_.word());
  const std::uint32_t most = (q_.mtu == 256 ? 5 : 3) * q_.mtu;
  const std::uint32_t length = dice_.percent(10) ? 0 : dice_.below(dice_.percent(50) ? q_.mtu + 1 : most);
  message_.bytes = dice_.bytes(length);
  message_.end = dice_.one_of({ending::plain, ending::immediate, ending::invalidate});
  if (message_.end == ending::invalidate) {
    message_.invalidated =
        dice_.percent(2) ? no_key + invalidated_tag : invalidated_key(q_.index, dice_.below(invalidated_regions));
    const bool again = message_.invalidated < no_key && !follows_.may_invalidate(message_.invalidated);
    if (message_.what == verb::write)
      message_.end = ending::plain;
    else if (again || q_.is_unreliable_connection())
      message_.end = ending::immediate;
  }
  choose_range(length);
}

/// Of a WRITE.
void peer_program::choose_range(std::uint32_t length) {
  const std::uint64_t data = virtual_of(data_of(q_.index));
  const auto room = static_cast<std::uint32_t>(written_bytes);
  message_.reth = {data + dice_.below(room - length), write_key(q_.index), length};
  if (message_.what != verb::write || !hostile_ || !dice_.percent(6)) return;
  switch (dice_.below(4)) {
    case 0:
      message_.reth.rkey = no_key;
      break;
    case 1:
      message_.reth.rkey = read_key;
      break;
    case 2:
      message_.reth.va = data - 1 - dice_.below(q_.mtu);
      break;
    default:
      message_.reth.va = data + room + 1 - dice_.below(length + 1);
      break;
  }
  // Whether its last packet still finds the message depends on cycles: it must not complete a receive.
  if (q_.is_unreliable_connection() && length > q_.mtu) message_.end = ending::plain;
}

request peer_program::part_of_message(request r) const {
  const auto length = static_cast<std::uint32_t>(message_.bytes.size());
  const std::uint32_t left = length - std::min(length, message_.sent);
  const bool first = message_.sent == 0, last = left <= q_.mtu;
  const auto from = message_.bytes.begin() + static_cast<std::ptrdiff_t>(length - left);
  r.payload.assign(from, from + static_cast<std::ptrdiff_t>(std::min(left, q_.mtu)));
  r.reth = message_.reth;
  r.immediate = message_.immediate;
  r.invalidated = message_.invalidated;
  static constexpr operation send_last[] = {operation::send_last, operation::send_last_immediate,
                                            operation::send_last_invalidate};
  static constexpr operation send_only[] = {operation::send_only, operation::send_only_immediate,
                                            operation::send_only_invalidate};
  static constexpr operation write_last[] = {operation::write_last, operation::write_last_immediate};
  static constexpr operation write_only[] = {operation::write_only, operation::write_only_immediate};
  const auto end = static_cast<std::size_t>(message_.end);
  if (message_.what == verb::send)
    r.operation = last ? (first ? send_only : send_last)[end] : first ? operation::send_first : operation::send_middle;
  else
    r.operation = last    ? (first ? write_only : write_last)[end]
                  : first ? operation::write_first
                          : operation::write_middle;
  return r;
}

request peer_program::read(request r) {
  r.operation = operation::read_request;
  const auto room = static_cast<std::uint32_t>(read_only_bytes);
  const std::uint32_t length = dice_.percent(10) ? 0 : dice_.below((dice_.percent(30) ? 12 : 3) * q_.mtu);
  r.reth = {virtual_of(read_only_at) + dice_.below(room - length), q_.key_of_reads(), length};
  if (!hostile_ || !dice_.percent(3)) return r;
  switch (dice_.below(3)) {
    case 0:
      r.reth.rkey = no_key;
      break;
    case 1:
      r.reth.rkey = write_key(q_.index);
      break;
    default:
      r.reth.va = virtual_of(read_only_at) + room - length / 2;
      break;
  }
  return r;
}

request peer_program::atomic(request r) {
  r.operation = dice_.percent(50) ? operation::fetch_add : operation::compare_swap;
  const std::uint64_t bus = data_of(q_.index) + words_at + 8 * dice_.below(3);
  r.atomic.va = virtual_of(bus);
  r.atomic.rkey = atomic_key(q_.index);
  r.atomic.swap_add = dice_.word();
  r.atomic.compare = dice_.percent(60) ? follows_.word_at(bus) : dice_.word();
  if (!hostile_ || !dice_.percent(3)) return r;
  switch (dice_.below(3)) {
    case 0:
      r.atomic.rkey = no_key;
      break;
    case 1:
      r.atomic.rkey = q_.key_of_reads();
      break;
    default:
      r.atomic.va += 4;
      break;
  }
  return r;
}

void peer_program::choose_shared_queue(request& r) {
  if (!in_message()) shared_queue_ = 1 + dice_.below(with_.last_shared());
  r.shared_queue = hostile_ && dice_.percent(1) ? with_.last_shared() + 50 : shared_queue_;
}

/// One thing about the packet is wrong, or packets before it are lost.
void peer_program::spoil(attempt& a) {
  request& r = a.packet;
  switch (dice_.below(9)) {
    case 0:
      r.psn = r.psn + 1 + dice_.below(5);
      break;
    case 1:
      r.psn = r.psn + 1;
      break;
    case 2:
      r.pkey = foreign_pkey;
      break;
    case 3:
      r.from_stranger = true;
      break;
    case 4:
      if (!r.is_read() && !r.is_atomic())
        r.transport = q_.is_unreliable_connection() ? wire::transport::rc : wire::transport::uc;
      break;
    case 5:
      if (hostile_ && !r.payload.empty()) r.payload.pop_back();
      break;
    case 6:
      if (hostile_) ++r.reth.length;
      break;
    case 7:
      if (hostile_ && dice_.percent(30))
        r.operation = dice_.one_of({operation::send_first, operation::send_middle, operation::send_last,
                                    operation::send_only, operation::write_first, operation::write_middle,
                                    operation::write_last, operation::write_only});
      a.needs_place = r.is_read() || r.is_atomic();
      break;
    default:
      r.destination = nobodys_qpn;
      break;
  }
}

void make_traffic(const setup& with, reference& follows, dice& d, peers& to, payload::frame_pool& frames) {
  const bool hostile = d.percent(50);
  to.streams.resize(with.queue_pairs.size());
  for (const queue_pair& q : with.queue_pairs)
    peer_program(with, q, follows, d, hostile).fill(to.streams[q.index], frames);
  to.wake_next();
}

}  // namespace rnic::transport::random_test
