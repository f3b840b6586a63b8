// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/replay_plan.h"

#include <algorithm>
#include <deque>
#include <set>
#include <tuple>

#include "model/wire/ethernet.h"
#include "model/wire/icrc.h"
#include "testbenches/rnic/options.h"
#include "tlm/capture.h"

namespace rnic::program {

namespace {

/// Packets of one direction towards one queue pair.
struct flow_key {
  wire::gid from, to;
  std::uint32_t dest_qp;
  wire::encapsulation encap;
  bool operator<(const flow_key& o) const {
    return std::tie(from, to, dest_qp, encap) < std::tie(o.from, o.to, o.dest_qp, o.encap);
  }
};

flow_key key_of(const wire::packet& p) { return {p.sgid, p.dgid, p.bth.dest_qp, p.encap}; }

bool is_connected(const wire::packet& p) {
  const wire::transport t = wire::transport_of(p.bth.opcode);
  return t == wire::transport::rc || t == wire::transport::uc;
}

constexpr std::uint64_t longest_gap_ns = 3'600'000'000'000;            // between two frames: an hour
constexpr sim::time_ps longest_capture = 30 * 86'400 * sim::ps_per_s;  // 30 days

/// All frames of the file; a file that breaks off gives what it had.
void read_frames(const std::string& capture, plan& out) try {
  tlm::capture_reader reader(capture);
  tlm::captured_frame f;
  std::uint64_t last_ns = 0;
  sim::time_ps at = 0;
  for (;;) {
    const tlm::capture_reader::result r = reader.next(f);
    if (r == tlm::capture_reader::result::end) return;
    if (r == tlm::capture_reader::result::damaged) {
      ++out.rejected["file damaged"];
      return;
    }
    if (out.frames.empty()) last_ns = f.time_ns;
    // Clocks that step back do not make time run back, and those that leap do not make it run for years.
    if (f.time_ns > last_ns)
      at = std::min(longest_capture, at + std::min(f.time_ns - last_ns, longest_gap_ns) * sim::ps_per_ns);
    last_ns = f.time_ns;
    captured_frame kept;
    kept.at = at;
    kept.bytes.assign(f.data, f.data + f.length);
    kept.cut = f.length < f.wire_length;
    out.frames.push_back(std::move(kept));
  }
} catch (const tlm::capture_error& e) {
  throw usage_error(e.what());
}

void classify(captured_frame& f, plan& out) {
  if (f.cut) {
    ++out.rejected["cut by the capture"];
    return;
  }
  const wire::decode_error error = wire::decode(f.bytes.data(), f.bytes.size(), f.packet);
  if (error != wire::decode_error::none) {
    ++out.rejected[wire::to_string(error)];
    return;
  }
  if (wire::icrc(f.bytes.data(), f.packet) != f.packet.icrc) {
    ++out.rejected["bad icrc"];
    return;
  }
  f.roce = true;
  ++out.roce_frames;
}

/// A host is known by its MAC address, to which all its GIDs belong.
using host_votes = std::map<wire::mac_address, std::int64_t>;

wire::mac_address choose_held(const plan& p, const std::string& hold) {
  const std::optional<wire::mac_address> hold_mac = wire::parse_mac(hold);
  const std::optional<wire::gid> hold_gid = wire::parse_gid(hold);
  if (!hold.empty() && !hold_mac && !hold_gid)
    throw usage_error("--hold " + hold + ": expected an IPv4, IPv6 or MAC address");
  host_votes answers;
  for (const captured_frame& f : p.frames) {
    if (!f.roce) continue;
    answers.try_emplace(f.packet.dmac, 0);
    answers[f.packet.smac] += wire::traits(f.packet.bth.opcode).response ? 1 : 0;
    if (hold.empty()) continue;
    if (f.packet.smac == hold_mac || f.packet.sgid == hold_gid) return f.packet.smac;
    if (f.packet.dmac == hold_mac || f.packet.dgid == hold_gid) return f.packet.dmac;
  }
  if (!hold.empty()) throw usage_error("--hold " + hold + ": no host with that address sends or receives RoCE here");
  if (answers.empty()) throw usage_error("the capture holds no RoCE packet to replay");
  // Without answers at all (unacknowledged services) the receiver of the first packet is held.
  const auto most = std::max_element(answers.begin(), answers.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most->second != 0) return most->first;
  for (const captured_frame& f : p.frames)
    if (f.roce) return f.packet.dmac;
  return most->first;
}

/// Finds for each flow from a peer to the held host the flow of the same queue pair in the other direction: the one
/// whose answers carry the PSNs of the requests. BTH has no source QP, so this is evidence, not knowledge.
class pairing {
 public:
  explicit pairing(const plan& p, const wire::mac_address& held) {
    std::map<std::pair<wire::gid, wire::gid>, std::set<flow_key>> by_hosts;
    for (const captured_frame& f : p.frames) {
      if (!f.roce || !is_connected(f.packet)) continue;
      const bool out = f.packet.smac == held;
      if (!out && f.packet.dmac != held) continue;
      const flow_key k = key_of(f.packet);
      (out ? from_held_ : to_held_).insert(k);
      const bool response = wire::traits(f.packet.bth.opcode).response;
      if (!response) {
        requests_[{k.from, k.to, f.packet.bth.psn.value()}].insert(k);
      } else {
        const auto asked = requests_.find({k.to, k.from, f.packet.bth.psn.value()});
        if (asked == requests_.end()) continue;
        for (const flow_key& r : asked->second) ++(out ? votes_[{r, k}] : votes_[{k, r}]);
      }
    }
    assign();
  }
  const std::map<flow_key, flow_key>& pairs() const { return pairs_; }  // flow to held -> flow from held
  const std::set<flow_key>& to_held() const { return to_held_; }
  const std::set<flow_key>& from_held() const { return from_held_; }

 private:
  void assign() {
    std::vector<std::pair<std::uint64_t, std::pair<flow_key, flow_key>>> ranked;
    for (const auto& [pair, count] : votes_) ranked.push_back({count, pair});
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::set<flow_key> taken;
    for (const auto& [count, pair] : ranked)
      if (pairs_.count(pair.first) == 0 && taken.insert(pair.second).second) pairs_[pair.first] = pair.second;
    // What has no answer in common: the only ones left between two hosts belong together.
    for (const flow_key& in : to_held_) {
      if (pairs_.count(in) != 0) continue;
      std::vector<flow_key> left;
      for (const flow_key& o : from_held_)
        if (taken.count(o) == 0 && o.from == in.to && o.to == in.from) left.push_back(o);
      if (left.size() == 1) {
        pairs_[in] = left.front();
        taken.insert(left.front());
      }
    }
  }
  using request_key = std::tuple<wire::gid, wire::gid, std::uint32_t>;
  std::map<request_key, std::set<flow_key>> requests_;
  std::map<std::pair<flow_key, flow_key>, std::uint64_t> votes_;
  std::set<flow_key> to_held_, from_held_;
  std::map<flow_key, flow_key> pairs_;
};

connection& add_connection(plan& p, const wire::mac_address& held_mac) {
  p.connections.emplace_back();
  p.connections.back().held_mac = held_mac;
  return p.connections.back();
}

void learn_addresses(connection& c, const captured_frame& f) {
  const wire::packet& p = f.packet;
  c.encap = p.encap;
  c.service = wire::transport_of(p.bth.opcode);
  c.held_gid = f.from_held ? p.sgid : p.dgid;
  c.peer_gid = f.from_held ? p.dgid : p.sgid;
  c.peer_mac = f.from_held ? p.dmac : p.smac;
  if (f.from_held && !c.seen_from_held) c.first_from_held = p, c.seen_from_held = true;
  if (!f.from_held && !c.seen_from_peer) c.first_from_peer = p, c.seen_from_peer = true;
}

std::uint32_t mtu_for(std::uint32_t payload) {
  std::uint32_t mtu = 256;
  while (mtu < payload && mtu < 4096) mtu *= 2;
  return mtu;
}

/// Walks the frames of one connection and collects its messages and memory.
class connection_reader {
 public:
  connection_reader(plan& p, int index) : plan_(p), c_(p.connections[static_cast<std::size_t>(index)]), index_(index) {}

  void read() {
    for (const captured_frame& f : plan_.frames)
      if (f.connection == index_) learn_mtu(f.packet);
    c_.mtu = full_packet_ != 0 ? full_packet_ : std::max(1024u, mtu_for(largest_));
    for (std::size_t i = 0; i < plan_.frames.size(); ++i) {
      captured_frame& f = plan_.frames[i];
      if (f.connection != index_ || !in_the_middle(f)) continue;
      ++plan_.rejected["belongs to something before the capture"];
      f.connection = -1;
    }
    for (std::size_t i = 0; i < plan_.frames.size(); ++i) {
      const captured_frame& f = plan_.frames[i];
      if (f.connection != index_) continue;
      const bool request = wire::traits(f.packet.bth.opcode).request;
      if (f.from_held)
        request ? held_request(i, f) : held_response(f);
      else
        peer_frame(i, f, request);
    }
  }

 private:
  /// The rest of a message whose beginning came before the capture, and answers to such messages.
  bool in_the_middle(const captured_frame& f) {
    const wire::opcode_traits& t = wire::traits(f.packet.bth.opcode);
    const wire::psn_t psn = f.packet.bth.psn;
    std::optional<wire::psn_t>& own = f.from_held ? held_first_ : peer_first_;
    std::optional<wire::psn_t>& other = f.from_held ? peer_first_ : held_first_;
    if (!t.request) return !other || psn.before(*other);
    if (!own && t.first) own = psn;
    return !own || psn.before(*own);
  }

  void learn_mtu(const wire::packet& p) {
    const wire::opcode_traits& t = wire::traits(p.bth.opcode);
    if (t.payload && !t.last) full_packet_ = p.payload_length;  // FIRST and MIDDLE packets carry exactly one MTU
    largest_ = std::max(largest_, p.payload_length);
  }

  void held_request(std::size_t index, const captured_frame& f) {
    const wire::packet& p = f.packet;
    if (!held_seen_) {
      held_seen_ = true;
      c_.held_start_psn = p.bth.psn.value();
      held_next_ = p.bth.psn;
    }
    if (p.bth.psn != held_next_) {  // a retransmission, or a hole that the capture has
      plan_.frames[index].repeated = p.bth.psn.before(held_next_);
      if (!plan_.frames[index].repeated) beyond_.push_back(index);
      return;
    }
    held_next_ = p.bth.psn + 1;
    const wire::opcode_traits& t = wire::traits(p.bth.opcode);
    if (t.first) {
      open_ = held_message{};
      open_.first_frame = first_sign_of(p.bth.psn, index);
      open_.operation = t.reth && t.payload ? wire::operation::write_only
                        : wire::operation_of(p.bth.opcode) == wire::operation::read_request
                            ? wire::operation::read_request
                            : wire::operation::send_only;
      open_.first_psn = p.bth.psn.value();
      open_.reth = p.reth;
      open_.after_peer_frame = peer_frames_;
    }
    const std::uint8_t* data = f.bytes.data() + p.payload_offset;
    open_.payload.insert(open_.payload.end(), data, data + p.payload_length);
    if (!t.last) return;
    open_.has_immediate = t.immediate;
    open_.immediate = p.immediate;
    open_.solicited = p.bth.solicited;
    if (wire::operation_of(p.bth.opcode) == wire::operation::read_request)
      held_next_ = p.bth.psn + std::max(1u, (p.reth.length + c_.mtu - 1) / c_.mtu);
    c_.messages.push_back(open_);
  }

  /// A packet that was lost before the capture was sent before those of higher PSN that are in it.
  std::size_t first_sign_of(wire::psn_t psn, std::size_t index) {
    while (!beyond_.empty() && plan_.frames[beyond_.front()].packet.bth.psn.before(psn)) beyond_.pop_front();
    return beyond_.empty() ? index : beyond_.front();
  }

  /// READ responses of the held host show what its memory held.
  void held_response(const captured_frame& f) {
    const wire::packet& p = f.packet;
    const wire::operation o = wire::operation_of(p.bth.opcode);
    if (o < wire::operation::read_response_first || o > wire::operation::read_response_only) return;
    for (auto asked = reads_.rbegin(); asked != reads_.rend(); ++asked) {
      const std::int32_t ahead = p.bth.psn - plan_.frames[*asked].packet.bth.psn;
      const wire::reth& reth = plan_.frames[*asked].packet.reth;
      const std::uint64_t offset = static_cast<std::uint64_t>(ahead) * c_.mtu;
      if (ahead < 0 || offset + p.payload_length > reth.length) continue;
      const std::uint8_t* data = f.bytes.data() + p.payload_offset;
      plan_.contents[*asked].push_back({reth.rkey, reth.va + offset, {data, data + p.payload_length}});
      return;
    }
  }

  void peer_frame(std::size_t index, const captured_frame& f, bool request) {
    const wire::packet& p = f.packet;
    ++peer_frames_;
    if (!request) return;
    const wire::opcode_traits& t = wire::traits(p.bth.opcode);
    if (!peer_seen_) {
      peer_seen_ = true;
      c_.peer_start_psn = p.bth.psn.value();
      peer_next_ = p.bth.psn;
    }
    if (t.reth && p.reth.length != 0) grow(p.reth);
    if (wire::operation_of(p.bth.opcode) == wire::operation::read_request) reads_.push_back(index);
    if (p.bth.psn.before(peer_next_)) {  // a retransmission takes no second receive
      plan_.frames[index].repeated = true;
      return;
    }
    peer_next_ = p.bth.psn + 1;
    if (t.reth && wire::operation_of(p.bth.opcode) == wire::operation::read_request)
      peer_next_ = p.bth.psn + std::max(1u, (p.reth.length + c_.mtu - 1) / c_.mtu);
    const bool send = wire::operation_of(p.bth.opcode) <= wire::operation::send_only_immediate ||
                      wire::operation_of(p.bth.opcode) >= wire::operation::send_last_invalidate;
    if (t.first) message_bytes_ = 0;
    message_bytes_ += p.payload_length;
    if (!t.last) return;
    if (send) c_.largest_receive = std::max(c_.largest_receive, message_bytes_);
    if (send || t.immediate) ++c_.receives;
  }

  held_region& region(std::uint32_t rkey) {
    for (held_region& r : plan_.regions)
      if (r.rkey == rkey) return r;
    plan_.regions.push_back({rkey, ~std::uint64_t{0}, 0});
    return plan_.regions.back();
  }
  void grow(const wire::reth& r) {
    held_region& m = region(r.rkey);
    m.begin = std::min(m.begin, r.va);
    m.end = std::max(m.end, r.va + r.length);
  }

  plan& plan_;
  connection& c_;
  int index_;
  std::optional<wire::psn_t> held_first_, peer_first_;
  bool held_seen_ = false, peer_seen_ = false;
  wire::psn_t held_next_, peer_next_;
  held_message open_;
  std::deque<std::size_t> beyond_;  // frames of the held host behind a hole
  std::size_t peer_frames_ = 0;
  std::uint32_t message_bytes_ = 0, full_packet_ = 0, largest_ = 0;
  std::vector<std::size_t> reads_;  // READ requests of the peer
};

std::string not_replayed(const wire::packet& p) {
  switch (wire::transport_of(p.bth.opcode)) {
    case wire::transport::ud:
      return "transport not replayed: UD";
    case wire::transport::xrc:
      return "transport not replayed: XRC";
    case wire::transport::cnp:
      return "transport not replayed: CNP";
    default:
      return "transport not replayed: RD";
  }
}

bool is_atomic(const wire::packet& p) {
  const wire::operation o = wire::operation_of(p.bth.opcode);
  return o >= wire::operation::atomic_acknowledge && o <= wire::operation::fetch_add;
}

/// A connection is replayed up to its first frame of a kind that cannot be: what follows depends on its PSN.
void leave_out_atomics(plan& p) {
  std::vector<bool> ended(p.connections.size(), false);
  for (captured_frame& f : p.frames) {
    if (f.connection < 0) continue;
    const auto c = static_cast<std::size_t>(f.connection);
    const bool atomic = is_atomic(f.packet);
    ended[c] = ended[c] || atomic;
    if (!ended[c]) continue;
    ++p.rejected[atomic ? "operation not replayed: atomic" : "after an operation that is not replayed"];
    f.connection = -1;
  }
}

void find_connections(plan& p) {
  const pairing paired(p, p.held_mac);
  std::map<flow_key, int> index_of;
  for (const flow_key& in : paired.to_held()) {
    connection& c = add_connection(p, p.held_mac);
    c.held_qpn = in.dest_qp;
    const int index = static_cast<int>(p.connections.size()) - 1;
    index_of[in] = index;
    const auto out = paired.pairs().find(in);
    if (out == paired.pairs().end()) continue;
    c.peer_qpn = out->second.dest_qp;
    index_of[out->second] = index;
  }
  std::uint32_t invented = 0x10000;  // a held queue pair that nobody ever addresses still needs a number
  for (const flow_key& out : paired.from_held()) {
    if (index_of.count(out) != 0) continue;
    connection& c = add_connection(p, p.held_mac);
    c.peer_qpn = out.dest_qp;
    c.held_qpn = invented++;
    index_of[out] = static_cast<int>(p.connections.size()) - 1;
  }
  for (captured_frame& f : p.frames) {
    if (!f.roce) continue;
    f.from_held = f.packet.smac == p.held_mac;
    const auto it = is_connected(f.packet) ? index_of.find(key_of(f.packet)) : index_of.end();
    if (it == index_of.end()) {
      ++p.rejected[is_connected(f.packet) ? "between other hosts" : not_replayed(f.packet)];
      continue;
    }
    f.connection = it->second;
    learn_addresses(p.connections[static_cast<std::size_t>(it->second)], f);
  }
}

}  // namespace

plan make_plan(const std::string& capture, const std::string& hold) {
  plan p;
  read_frames(capture, p);
  for (captured_frame& f : p.frames) classify(f, p);
  p.held_mac = choose_held(p, hold);
  p.held = wire::to_string(p.held_mac);
  find_connections(p);
  leave_out_atomics(p);
  std::set<wire::gid> gids;
  for (std::size_t i = 0; i < p.connections.size(); ++i) {
    connection_reader(p, static_cast<int>(i)).read();
    gids.insert(p.connections[i].held_gid);
  }
  p.held_gids.assign(gids.begin(), gids.end());
  return p;
}

}  // namespace rnic::program
