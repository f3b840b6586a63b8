// SPDX-License-Identifier: Apache-2.0
// UDP over IPv4 and IPv6 between a served host's software and its neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <tuple>
#include <vector>

#include "host_driver/neighbours.h"

namespace rnic::serve {

class served_host;

struct udp_end {
  host_driver::gid_bytes address{};  ///< ::ffff:a.b.c.d for IPv4
  std::uint16_t port = 0;
  friend bool operator==(const udp_end& a, const udp_end& b) { return a.address == b.address && a.port == b.port; }
  friend bool operator<(const udp_end& a, const udp_end& b) {
    return std::tie(a.address, a.port) < std::tie(b.address, b.port);
  }
};

struct udp_datagram {
  host_driver::mac_address mac{};  ///< of the neighbour: the sender of one that came, else where it goes
  std::uint16_t vlan = host_driver::neighbours::untagged;
  udp_end from, to;  ///< addresses of one kind
  std::vector<std::uint8_t> data;
};

/// Takes a frame (from the DMAC, without FCS) apart. Nothing when it is no UDP, a fragment, behind IPv6 extension
/// headers, or its lengths or checksums are wrong.
std::optional<udp_datagram> parse_udp(const std::uint8_t* frame, std::size_t length);

/// The frame, with its checksums. `own`: MAC address of the sender.
std::vector<std::uint8_t> build_udp(const udp_datagram& d, const host_driver::mac_address& own,
                                    std::uint8_t priority = 0);

/// One port of a served host, as long as it exists.
class udp_socket {
 public:
  /// Of the address in this row. `port` 0: a free one. `arrived`: called in the network's process for each datagram.
  /// Throws std::runtime_error when the port is taken.
  udp_socket(served_host& host, int gid_index, std::uint16_t port, std::function<void()> arrived);
  ~udp_socket();
  udp_socket(const udp_socket&) = delete;
  udp_socket& operator=(const udp_socket&) = delete;

  const udp_end& own() const { return own_; }
  /// Never waits; what the full queue of the port cannot take is lost, as anywhere.
  void send(const udp_end& to, const host_driver::mac_address& mac, std::vector<std::uint8_t> data);
  std::optional<udp_datagram> take();
  /// Of the host: a datagram to this port. Kept when it is for this address in its VLAN, and there is room.
  void receive(udp_datagram&& d);

 private:
  static constexpr std::size_t most_waiting = 256;

  served_host& host_;
  std::uint16_t vlan_;
  udp_end own_;
  std::function<void()> arrived_;
  std::deque<udp_datagram> waiting_;
};

}  // namespace rnic::serve
