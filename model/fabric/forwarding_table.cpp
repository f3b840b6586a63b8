// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/forwarding_table.h"

#include <utility>

#include "model/fabric/frame_headers.h"

namespace rnic::fabric {

namespace {

/// Mixes all bits into all (the finaliser of MurmurHash3).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
  return x ^ x >> 33;
}

std::uint64_t hashed(std::uint64_t h, const std::uint8_t* bytes, unsigned count) {
  for (unsigned i = 0; i < count; ++i) h = (h ^ bytes[i]) * 0x100000001b3;  // FNV-1a
  return h;
}

std::uint64_t flow_of(const payload::frame& f, std::uint64_t seed) {
  const ip_place ip = find_ip(f);
  const std::uint8_t* d = f.data();
  std::uint64_t h = mixed(seed + 0xcbf29ce484222325);
  if (ip.version == 0) return mixed(hashed(h, d, 12));
  h = ip.version == 4 ? hashed(h, d + ip.at + 12, 8) : hashed(h, d + ip.at + 8, 32);
  if (ip.udp != 0) h = hashed(h, d + ip.udp, 4);
  return mixed(h);
}

}  // namespace

std::uint64_t forwarding_table::key(std::uint16_t vlan, const std::uint8_t* address) {
  std::uint64_t k = vlan;
  for (unsigned i = 0; i < 6; ++i) k = k << 8 | address[i];
  return k;
}

void forwarding_table::learn(std::uint16_t vlan, const std::uint8_t* address, unsigned port) {
  if ((address[0] & 1) != 0) return;  // nobody's
  const std::uint64_t k = key(vlan, address);
  const auto at = entries_.find(k);
  if (at == entries_.end()) {
    if (entries_.size() < most_) entries_[k].ports = {port};
  } else if (!at->second.given) {
    at->second.ports.front() = port;
  }
}

void forwarding_table::give(std::uint16_t vlan, const wire::mac_address& address, std::vector<unsigned> ports) {
  entries_[key(vlan, address.data())] = {std::move(ports), true};
}

int forwarding_table::port_of(std::uint16_t vlan, const payload::frame& f) const {
  const auto at = entries_.find(key(vlan, f.data()));
  if (at == entries_.end()) return unknown;
  const std::vector<unsigned>& ports = at->second.ports;
  return static_cast<int>(ports.size() == 1 ? ports.front() : ports[flow_of(f, seed_) % ports.size()]);
}

}  // namespace rnic::fabric
