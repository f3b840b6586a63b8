// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "model/wire/packet.h"

namespace rnic::replay {

namespace {

using wire::operation;

constexpr std::int64_t widest_gap = 65536;  // packets that are stood in for; more is another connection's beginning
constexpr std::uint32_t longest_message = 1u << 31;

std::uint32_t mtu_for(std::uint32_t payload) {
  std::uint32_t mtu = 256;
  while (mtu < payload && mtu < 4096) mtu *= 2;
  return mtu;
}

bool is_read_request(const wire::packet& p) { return wire::operation_of(p.bth.opcode) == operation::read_request; }
bool is_read_response(const wire::packet& p) {
  const operation o = wire::operation_of(p.bth.opcode);
  return o >= operation::read_response_first && o <= operation::read_response_only;
}
bool is_atomic(const wire::packet& p) { return wire::traits(p.bth.opcode).atomic_eth; }
/// Memory as the host sees it: little-endian.
std::vector<std::uint8_t> bytes_of(std::uint64_t value) {
  std::vector<std::uint8_t> bytes(8);
  for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(value), value >>= 8;
  return bytes;
}
std::uint64_t after_atomic(const wire::packet& p, std::uint64_t found) {
  if (wire::operation_of(p.bth.opcode) == operation::fetch_add) return found + p.atomic.swap_add;
  return found == p.atomic.compare ? p.atomic.swap_add : found;
}
bool is_write(const wire::packet& p) {
  const operation o = wire::operation_of(p.bth.opcode);
  return o >= operation::write_first && o <= operation::write_only_immediate;
}

/// The requests of one direction in the order of their PSNs, each by its first appearance.
class request_line {
 public:
  /// Place of a PSN on a line without wrap.
  std::int64_t place(wire::psn_t psn) {
    if (!known_) {
      known_ = true;
      last_psn_ = psn;
    }
    last_ += psn - last_psn_;
    last_psn_ = psn;
    return last_;
  }
  /// False: the PSN was there before.
  bool add(wire::psn_t psn, std::size_t frame) { return frames_.try_emplace(place(psn), frame).second; }
  const std::map<std::int64_t, std::size_t>& frames() const { return frames_; }

 private:
  bool known_ = false;
  wire::psn_t last_psn_;
  std::int64_t last_ = 0;
  std::map<std::int64_t, std::size_t> frames_;
};

class connection_reader {
 public:
  connection_reader(plan& p, connection& c, const std::vector<std::size_t>& frames)
      : plan_(p), c_(c), frames_(frames) {}
  void read();

 private:
  const captured_frame& frame(std::size_t i) const { return plan_.frames[i]; }
  bool in_the_middle(const captured_frame& f);
  void learn_mtu(const wire::packet& p);
  std::uint32_t packets_of(std::uint32_t bytes) const { return std::max(1u, (bytes + c_.mtu - 1) / c_.mtu); }

  void read_held();
  void held_request(std::int64_t place, std::size_t index);
  bool fill_gap(std::int64_t from, std::int64_t to, const wire::packet& next);
  void stand_in(std::int64_t from, std::int64_t packets);
  void open_message(std::int64_t place, operation what);
  void add_zeros(std::uint64_t bytes);
  void close_message();
  void end_held();
  std::uint32_t psn_at(std::int64_t place) const {
    return (wire::psn_t(c_.held_start_psn) + static_cast<std::uint32_t>(place & 0xffffff)).value();
  }
  void held_response(const captured_frame& f);
  void held_atomic_response(const wire::packet& p);

  void read_peer();
  void count_receive(const wire::packet& p);
  held_region& region(std::uint32_t rkey);
  void grow(std::uint32_t rkey, std::uint64_t va, std::uint32_t length);

  plan& plan_;
  connection& c_;
  const std::vector<std::size_t>& frames_;
  std::optional<wire::psn_t> held_first_, peer_first_;
  std::uint32_t full_packet_ = 0, largest_ = 0;

  request_line held_, peer_;
  std::map<std::uint32_t, std::uint32_t> read_parts_;  // PSN of the peer's READ responses -> bytes
  std::map<std::int64_t, std::size_t> first_sign_;     // place -> first frame at it or beyond
  std::int64_t held_next_ = 0;
  bool in_message_ = false;
  held_message open_;
  std::vector<std::size_t> reads_;                // READ requests of the peer
  std::map<std::uint32_t, std::size_t> atomics_;  // its atomics without an answer so far, by PSN
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> counters_;  // by key and address: left by the last
  std::uint64_t message_bytes_ = 0;
};

void connection_reader::read() {
  for (const std::size_t i : frames_) learn_mtu(frame(i).packet);
  c_.mtu = full_packet_ != 0 ? mtu_for(full_packet_) : std::max(1024u, mtu_for(largest_));
  for (const std::size_t i : frames_) {
    captured_frame& f = plan_.frames[i];
    if (in_the_middle(f)) {
      ++plan_.rejected["belongs to something before the capture"];
      f.connection = -1;
      continue;
    }
    const wire::packet& p = f.packet;
    if (wire::traits(p.bth.opcode).request) {
      f.repeated = !(f.from_held ? held_ : peer_).add(p.bth.psn, i);
      if (f.from_held) continue;
      if (wire::traits(p.bth.opcode).reth && p.reth.length != 0) grow(p.reth.rkey, p.reth.va, p.reth.length);
      if (is_atomic(p)) grow(p.atomic.rkey, p.atomic.va, 8);
      if (is_atomic(p) && !f.repeated) atomics_[p.bth.psn.value()] = i;
      if (is_read_request(p)) reads_.push_back(i);
    } else if (f.from_held) {
      held_response(f);
    } else if (is_read_response(p)) {
      read_parts_[p.bth.psn.value()] = p.payload_length;
    }
  }
  read_held();
  read_peer();
}

/// The rest of a message whose beginning came before the capture, and answers to such messages.
bool connection_reader::in_the_middle(const captured_frame& f) {
  const wire::opcode_traits& t = wire::traits(f.packet.bth.opcode);
  const wire::psn_t psn = f.packet.bth.psn;
  std::optional<wire::psn_t>& own = f.from_held ? held_first_ : peer_first_;
  const std::optional<wire::psn_t>& other = f.from_held ? peer_first_ : held_first_;
  if (!t.request) return !other || psn.before(*other);
  if (!own && t.first) own = psn;
  return !own || psn.before(*own);
}

void connection_reader::learn_mtu(const wire::packet& p) {
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  if (t.payload && !t.last) full_packet_ = std::max(full_packet_, p.payload_length);  // FIRST, MIDDLE: one MTU
  largest_ = std::max(largest_, p.payload_length);
}

// ---------------------------------------------------------------- what the held host sent

void connection_reader::read_held() {
  if (held_.frames().empty()) return;
  const std::int64_t start = held_.frames().begin()->first;  // 0: what comes before the first one was left out
  c_.held_start_psn = frame(held_.frames().begin()->second).packet.bth.psn.value();
  held_next_ = start;
  std::size_t earliest = ~std::size_t{0};
  for (auto r = held_.frames().rbegin(); r != held_.frames().rend(); ++r)
    first_sign_[r->first] = earliest = std::min(earliest, r->second);
  for (const auto& [place, index] : held_.frames()) {
    if (place < held_next_) {  // the rest of a READ, asked for again
      plan_.frames[index].repeated = true;
      continue;
    }
    if (place > held_next_ && !fill_gap(held_next_, place, frame(index).packet)) break;
    held_request(place, index);
  }
  end_held();
}

void connection_reader::held_request(std::int64_t place, std::size_t index) {
  const captured_frame& f = frame(index);
  const wire::packet& p = f.packet;
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  if (t.first || !in_message_) {
    if (in_message_) close_message();
    open_message(place, is_read_request(p) || is_atomic(p) ? wire::operation_of(p.bth.opcode)
                        : is_write(p)                      ? operation::write_only
                                                           : operation::send_only);
    open_.reth = p.reth;
    open_.atomic = p.atomic;
  }
  const std::uint8_t* data = f.bytes.data() + p.payload_offset;
  open_.payload.insert(open_.payload.end(), data, data + p.payload_length);
  held_next_ = place + (is_read_request(p) ? packets_of(p.reth.length) : 1);
  if (!t.last) return;
  open_.has_immediate = t.immediate;
  open_.immediate = p.immediate;
  open_.solicited = p.bth.solicited;
  close_message();
}

/// Packets [from, to) are not in the capture. False: too many to be a hole.
bool connection_reader::fill_gap(std::int64_t from, std::int64_t to, const wire::packet& next) {
  std::int64_t missing = to - from;
  if (missing > widest_gap) return false;
  const wire::opcode_traits& t = wire::traits(next.bth.opcode);
  const operation kind = is_write(next) ? operation::write_only : operation::send_only;
  if (in_message_ && !t.first && open_.operation == kind) {
    add_zeros(static_cast<std::uint64_t>(missing) * c_.mtu);
    return true;
  }
  if (in_message_) {
    const std::uint64_t known = open_.operation == operation::write_only ? open_.reth.length : 0;
    const std::uint64_t most = static_cast<std::uint64_t>(missing) * c_.mtu;
    const std::uint64_t lacking = known > open_.payload.size() ? known - open_.payload.size() : most;
    const std::uint64_t bytes = std::min(lacking, most);
    add_zeros(bytes);
    missing -= static_cast<std::int64_t>((bytes + c_.mtu - 1) / c_.mtu);
    close_message();
  }
  if (missing == 0) return true;
  if (t.first) {
    stand_in(to - missing, missing);
  } else {
    open_message(to - missing, kind);
    add_zeros(static_cast<std::uint64_t>(missing) * c_.mtu);
  }
  return true;
}

/// One message for whole messages that the capture lacks: a READ when the peer answered one, otherwise a SEND.
void connection_reader::stand_in(std::int64_t from, std::int64_t packets) {
  const auto last = read_parts_.find(psn_at(from + packets - 1));
  const std::uint64_t before = static_cast<std::uint64_t>(packets - 1) * c_.mtu;
  open_message(from, last != read_parts_.end() ? operation::read_request : operation::send_only);
  if (last != read_parts_.end())
    open_.reth.length = static_cast<std::uint32_t>(before + std::max(last->second, before == 0 ? 0u : 1u));
  else
    add_zeros(before + 1);
  open_.stand_in = true;
  close_message();
}

void connection_reader::open_message(std::int64_t place, operation what) {
  open_ = held_message{};
  open_.operation = what;
  open_.first_psn = psn_at(place);
  const auto sign = first_sign_.lower_bound(place);
  open_.first_frame = sign == first_sign_.end() ? 0 : sign->second;
  in_message_ = true;
}

void connection_reader::add_zeros(std::uint64_t bytes) {
  if (open_.payload.size() + bytes <= longest_message) open_.payload.resize(open_.payload.size() + bytes);
}

void connection_reader::close_message() {
  in_message_ = false;
  if (open_.operation == operation::write_only) open_.reth.length = static_cast<std::uint32_t>(open_.payload.size());
  c_.messages.push_back(std::move(open_));
}

/// A message whose end came after the capture.
void connection_reader::end_held() {
  if (!in_message_) return;
  const std::uint64_t length = open_.operation == operation::write_only ? open_.reth.length : 0;
  if (length > open_.payload.size() && length <= open_.payload.size() + widest_gap * c_.mtu)
    add_zeros(length - open_.payload.size());
  else
    add_zeros(1);  // the packets before are not the last one
  close_message();
}

/// Answers of the held host show what its memory held.
void connection_reader::held_response(const captured_frame& f) {
  const wire::packet& p = f.packet;
  if (wire::traits(p.bth.opcode).atomic_ack_eth) return held_atomic_response(p);
  if (!is_read_response(p)) return;
  for (auto asked = reads_.rbegin(); asked != reads_.rend(); ++asked) {
    const std::int32_t ahead = p.bth.psn - frame(*asked).packet.bth.psn;
    const wire::reth& reth = frame(*asked).packet.reth;
    const std::uint64_t offset = static_cast<std::uint64_t>(ahead) * c_.mtu;
    if (ahead < 0 || offset + p.payload_length > reth.length) continue;
    const std::uint8_t* data = f.bytes.data() + p.payload_offset;
    plan_.contents[*asked].push_back({reth.rkey, reth.va + offset, {data, data + p.payload_length}});
    return;
  }
}

/// What an atomic finds is given only where it is not what the one before it left: the adapter counts by itself.
void connection_reader::held_atomic_response(const wire::packet& p) {
  const auto asked = atomics_.find(p.bth.psn.value());
  if (asked == atomics_.end()) return;
  const wire::packet& request = frame(asked->second).packet;
  const std::pair<std::uint32_t, std::uint64_t> where{request.atomic.rkey, request.atomic.va};
  const auto before = counters_.find(where);
  if (before == counters_.end() || before->second != p.atomic_original)
    plan_.contents[asked->second].push_back({where.first, where.second, bytes_of(p.atomic_original)});
  counters_[where] = after_atomic(request, p.atomic_original);
  atomics_.erase(asked);
}

// ---------------------------------------------------------------- what the peer sent

void connection_reader::read_peer() {
  if (peer_.frames().empty()) return;
  c_.peer_start_psn = frame(peer_.frames().begin()->second).packet.bth.psn.value();
  std::int64_t next = peer_.frames().begin()->first;
  for (const auto& [place, index] : peer_.frames()) {
    const wire::packet& p = frame(index).packet;
    if (place < next) plan_.frames[index].repeated = true;  // the rest of a READ, asked for again
    if (place > next) {  // a hole: what is not known may have been messages, or parts of this one
      const auto missing = static_cast<std::uint64_t>(std::min(place - next, widest_gap));
      message_bytes_ += missing * c_.mtu;
      c_.receives += missing;
    }
    next = std::max(next, place + (is_read_request(p) ? packets_of(p.reth.length) : 1));
    count_receive(p);
  }
}

void connection_reader::count_receive(const wire::packet& p) {
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  const operation o = wire::operation_of(p.bth.opcode);
  const bool send = o <= operation::send_only_immediate || o >= operation::send_last_invalidate;
  if (t.first) message_bytes_ = 0;
  message_bytes_ += p.payload_length;
  if (send)
    c_.largest_receive = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(longest_message, std::max<std::uint64_t>(c_.largest_receive, message_bytes_)));
  if (t.last && (send || t.immediate)) ++c_.receives;
}

held_region& connection_reader::region(std::uint32_t rkey) {
  for (held_region& r : plan_.regions)
    if (r.rkey == rkey) return r;
  plan_.regions.push_back({rkey, ~std::uint64_t{0}, 0});
  return plan_.regions.back();
}

void connection_reader::grow(std::uint32_t rkey, std::uint64_t va, std::uint32_t length) {
  held_region& m = region(rkey);
  m.begin = std::min(m.begin, va);
  m.end = std::max(m.end, va + length);
}

}  // namespace

void read_connection(plan& p, std::size_t index, const std::vector<std::size_t>& frames) {
  connection_reader(p, p.connections[index], frames).read();
}

}  // namespace rnic::replay
