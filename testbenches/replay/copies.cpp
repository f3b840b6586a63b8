// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/copies.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "testbenches/replay/packets.h"
#include "testbenches/replay/same_packet.h"

namespace rnic::replay {

namespace {

constexpr sim::time_ps shortest_timeout = 8'192'000;  // 4.096 us * 2^1 (IBA volume 1, section 9.7.6.1.3)
constexpr sim::time_ps other_way_within = 10'000 * sim::ps_per_us;
constexpr std::size_t few_frames = 256;  // clocks may stand still
constexpr std::int32_t psn_window = 1 << 16;

/// What a network may change of a packet on its way. Not ECN: a retransmission may meet another queue.
struct way {
  wire::mac_address smac{}, dmac{};
  int vlan = -1;
  unsigned hop_limit = 0, dscp = 0;
  std::uint32_t interface = 0;
  tlm::frame_way direction = tlm::frame_way::unknown;
  bool operator==(const way& o) const {
    return std::tie(smac, dmac, vlan, hop_limit, dscp, interface, direction) ==
           std::tie(o.smac, o.dmac, o.vlan, o.hop_limit, o.dscp, o.interface, o.direction);
  }
};

using gid_pair = std::pair<wire::gid, wire::gid>;
using link = std::pair<wire::mac_address, wire::mac_address>;

template <typename T>
std::pair<T, T> unordered(const T& a, const T& b) {
  return a < b ? std::pair<T, T>{a, b} : std::pair<T, T>{b, a};
}

class copy_finder {
 public:
  copy_finder(plan& p, const std::vector<frame_origin>& origins)
      : plan_(p), origins_(origins), copy_(p.frames.size(), false) {}
  void run();

 private:
  /// One sending of a packet: the frames that show it.
  struct sending {
    std::size_t first;
    std::vector<std::size_t> others;
  };
  struct two_hosts {
    std::map<link, std::uint64_t> seen_on;
    std::map<gid_pair, link> addresses;  // on the main link: source and destination of a direction
    link main;
    bool crossed = false;  // a packet of theirs was seen on two links
  };

  const captured_frame& frame(std::size_t i) const { return plan_.frames[i]; }
  way way_of(std::size_t i) const;
  link link_of(std::size_t i) const { return unordered(frame(i).packet.smac, frame(i).packet.dmac); }
  two_hosts& hosts_of(std::size_t i) { return hosts_[unordered(frame(i).packet.sgid, frame(i).packet.dgid)]; }
  void see(std::size_t i);
  bool is_copy(const sending& s, std::size_t i) const;
  bool was_caused(std::size_t from, std::size_t to) const;
  void choose_links();
  void keep_one(const sending& s);
  void readdress(std::size_t i);

  plan& plan_;
  const std::vector<frame_origin>& origins_;
  std::vector<bool> copy_;  // by frame
  std::vector<sending> sendings_;
  std::unordered_multimap<std::uint64_t, std::size_t> latest_;  // hash -> index of the packet's latest sending
  std::map<gid_pair, two_hosts> hosts_;
};

way copy_finder::way_of(std::size_t i) const {
  const wire::packet& p = frame(i).packet;
  way w;
  w.smac = p.smac;
  w.dmac = p.dmac;
  if (p.vlan_present) w.vlan = p.vlan_tci & 0xfff;
  w.hop_limit = p.hop_limit;
  w.dscp = p.traffic_class >> 2;
  w.interface = origins_[i].interface;
  w.direction = origins_[i].way;
  return w;
}

/// Whether something between the two sightings makes the host send the packet again, or shows that it does: a request
/// before it, where its queue pair has gone back to for an answer that may have come before the first of the two.
bool copy_finder::was_caused(std::size_t from, std::size_t to) const {
  const wire::packet& mine = frame(to).packet;
  const bool response = wire::traits(mine.bth.opcode).response;
  for (std::size_t i = from + 1; i < to; ++i) {
    const wire::packet& p = frame(i).packet;
    if (!frame(i).roce || copy_[i]) continue;
    const wire::opcode_traits& t = wire::traits(p.bth.opcode);
    const std::int32_t behind = mine.bth.psn - p.bth.psn;
    if (behind < 0 || behind >= psn_window) continue;
    const bool same_way = p.sgid == mine.sgid && p.dgid == mine.dgid && p.bth.dest_qp == mine.bth.dest_qp;
    if (same_way && !response && t.request && behind > 0) return true;
    if (p.sgid != mine.dgid || p.dgid != mine.sgid) continue;
    if (response ? t.request : t.aeth && syndrome_kind(p.aeth.syndrome) != aeth_kind::ack) return true;
  }
  return false;
}

bool copy_finder::is_copy(const sending& s, std::size_t i) const {
  const way mine = way_of(i);
  const auto before =
      std::find_if(s.others.rbegin(), s.others.rend(), [&](std::size_t x) { return way_of(x) == mine; });
  if (before == s.others.rend() && !(way_of(s.first) == mine))
    return frame(i).at - frame(s.first).at <= other_way_within;
  const std::size_t from = before == s.others.rend() ? s.first : *before;
  if (i - from > few_frames || frame(i).at - frame(from).at > shortest_timeout) return false;
  return !was_caused(from, i);
}

void copy_finder::see(std::size_t i) {
  const std::uint64_t h = packet_hash(frame(i));
  ++hosts_of(i).seen_on[link_of(i)];
  const auto [begin, end] = latest_.equal_range(h);
  for (auto at = begin; at != end; ++at) {
    sending& s = sendings_[at->second];
    if (!same_packet(frame(s.first), frame(i))) continue;
    if (is_copy(s, i)) {
      s.others.push_back(i);
      copy_[i] = true;
    } else {
      at->second = sendings_.size();
      sendings_.push_back({i, {}});
    }
    return;
  }
  latest_.emplace(h, sendings_.size());
  sendings_.push_back({i, {}});
}

/// The link that shows most packets of each two hosts, and its addresses.
void copy_finder::choose_links() {
  for (const sending& s : sendings_)
    for (const std::size_t x : s.others)
      if (link_of(x) != link_of(s.first)) hosts_of(x).crossed = true;
  for (auto& [gids, h] : hosts_)
    h.main = std::max_element(h.seen_on.begin(), h.seen_on.end(), [](const auto& a, const auto& b) {
               return a.second < b.second;
             })->first;
  for (std::size_t i = 0; i < plan_.frames.size(); ++i) {
    const wire::packet& p = frame(i).packet;
    if (!frame(i).roce) continue;
    two_hosts& h = hosts_of(i);
    if (h.crossed && link_of(i) == h.main) h.addresses.try_emplace({p.sgid, p.dgid}, link{p.smac, p.dmac});
  }
}

void copy_finder::keep_one(const sending& s) {
  std::size_t kept = s.first;
  if (!s.others.empty() && link_of(kept) != hosts_of(kept).main) {
    const auto better =
        std::find_if(s.others.begin(), s.others.end(), [&](std::size_t x) { return link_of(x) == hosts_of(x).main; });
    if (better != s.others.end()) kept = *better;
  }
  const auto drop = [&](std::size_t x) {
    if (x == kept) return;
    plan_.frames[x].roce = false;
    ++plan_.notes.copies;
    ++plan_.rejected["copy of a packet, as mirror ports make"];
  };
  drop(s.first);
  for (const std::size_t x : s.others) drop(x);
  readdress(kept);
}

void copy_finder::readdress(std::size_t i) {
  const two_hosts& h = hosts_of(i);
  captured_frame& f = plan_.frames[i];
  if (!h.crossed || link_of(i) == h.main) return;
  const auto on_main = h.addresses.find({f.packet.sgid, f.packet.dgid});
  if (on_main == h.addresses.end()) return;
  std::tie(f.packet.smac, f.packet.dmac) = on_main->second;
  std::copy(f.packet.dmac.begin(), f.packet.dmac.end(), f.bytes.begin());
  std::copy(f.packet.smac.begin(), f.packet.smac.end(),
            f.bytes.begin() + static_cast<std::ptrdiff_t>(f.packet.dmac.size()));
  ++plan_.notes.readdressed;
}

void copy_finder::run() {
  for (std::size_t i = 0; i < plan_.frames.size(); ++i)
    if (frame(i).roce) see(i);
  choose_links();
  for (const sending& s : sendings_) keep_one(s);
}

}  // namespace

void drop_copies(plan& p, const std::vector<frame_origin>& origins) { copy_finder(p, origins).run(); }

}  // namespace rnic::replay
