// SPDX-License-Identifier: Apache-2.0
// Where an address is behind a switch, and which of several equal ways a flow takes.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/payload/frame.h"
#include "model/wire/packet.h"

namespace rnic::fabric {

/// Data sheet. Part of a switch: it has no time of its own.
///
/// An entry has a VLAN, an address, and a port or several equal ones. Entries are learnt from what addresses send
/// (IEEE 802.1Q, 8.7), as long as there is room, and move with them; or they are given, and stay. Of several ports a
/// flow has one, by a hash of its addresses and UDP ports (RFC 2992), seeded so that switches behind each other choose
/// apart.
class forwarding_table {
 public:
  forwarding_table(std::size_t entries, std::uint64_t seed) : most_(entries), seed_(seed) {}

  void learn(std::uint16_t vlan, const std::uint8_t* address, unsigned port);
  void give(std::uint16_t vlan, const wire::mac_address& address, std::vector<unsigned> ports);
  static constexpr int unknown = -1;
  int port_of(std::uint16_t vlan, const payload::frame& f) const;

 private:
  struct entry {
    std::vector<unsigned> ports;
    bool given = false;
  };
  static std::uint64_t key(std::uint16_t vlan, const std::uint8_t* address);

  std::size_t most_;
  std::uint64_t seed_;
  std::unordered_map<std::uint64_t, entry> entries_;
};

}  // namespace rnic::fabric
