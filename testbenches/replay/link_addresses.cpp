// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/link_addresses.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace rnic::replay {

namespace {

bool is_ipv4(const wire::gid& g) {
  return std::all_of(g.begin(), g.begin() + 10, [](auto b) { return b == 0; }) && g[10] == 0xff && g[11] == 0xff;
}

/// 01:00:5e and 23 bits, 33:33 and 32 bits (RFC 1112, RFC 2464).
std::optional<wire::mac_address> of_group(const wire::gid& g) {
  if (is_ipv4(g) && g[12] >> 4 == 0xe)
    return wire::mac_address{0x01, 0x00, 0x5e, static_cast<std::uint8_t>(g[13] & 0x7f), g[14], g[15]};
  if (g[0] == 0xff) return wire::mac_address{0x33, 0x33, g[12], g[13], g[14], g[15]};
  return std::nullopt;
}

class address_book {
 public:
  address_book(plan& p, const std::vector<frame_origin>& origins) : plan_(p), origins_(origins) {
    for (std::size_t i = 0; i < p.frames.size(); ++i) learn(i);
  }
  void fill() {
    for (std::size_t i = 0; i < plan_.frames.size(); ++i) fill(i);
  }

 private:
  void learn(std::size_t i) {
    const captured_frame& f = plan_.frames[i];
    const frame_origin& o = origins_[i];
    if (!f.roce) return;
    if (!o.no_source) of_gid_.try_emplace(f.packet.sgid, f.packet.smac);
    if (!o.no_destination) of_gid_.try_emplace(f.packet.dgid, f.packet.dmac);
    if (!o.no_source && o.way == tlm::frame_way::from_host) of_interface_.try_emplace(o.interface, f.packet.smac);
  }

  void fill(std::size_t i) {
    captured_frame& f = plan_.frames[i];
    const frame_origin& o = origins_[i];
    if (!f.roce || (!o.no_source && !o.no_destination)) return;
    bool made = false;
    if (o.no_destination) f.packet.dmac = address(f.packet.dgid, o, o.way == tlm::frame_way::to_host, made);
    if (o.no_source) f.packet.smac = address(f.packet.sgid, o, o.way == tlm::frame_way::from_host, made);
    std::copy(f.packet.dmac.begin(), f.packet.dmac.end(), f.bytes.begin());
    std::copy(f.packet.smac.begin(), f.packet.smac.end(),
              f.bytes.begin() + static_cast<std::ptrdiff_t>(f.packet.dmac.size()));
    plan_.notes.invented_macs += made ? 1 : 0;
  }

  wire::mac_address address(const wire::gid& g, const frame_origin& o, bool of_host, bool& made) {
    if (const auto group = of_group(g)) return *group;
    const auto seen = of_gid_.find(g);
    if (seen != of_gid_.end()) {
      made = made || invented_.count(g) != 0;
      return seen->second;
    }
    const auto host = of_interface_.find(o.interface);
    if (of_host && host != of_interface_.end()) return of_gid_[g] = host->second;
    made = true;
    invented_.insert(g);
    return of_gid_[g] = {0x02, is_ipv4(g) ? std::uint8_t{0} : g[11], g[12], g[13], g[14], g[15]};
  }

  plan& plan_;
  const std::vector<frame_origin>& origins_;
  std::map<wire::gid, wire::mac_address> of_gid_;
  std::map<std::uint32_t, wire::mac_address> of_interface_;  // of the capturing host
  std::set<wire::gid> invented_;
};

}  // namespace

void give_link_addresses(plan& p, const std::vector<frame_origin>& origins) { address_book(p, origins).fill(); }

}  // namespace rnic::replay
