// SPDX-License-Identifier: Apache-2.0
// The multicast groups of a served host, and who is told of them when.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <systemc>
#include <vector>

#include "host_driver/groups/memberships.h"
#include "model/sim/timebase.h"
#include "testbenches/serve/host/ethernet_ring.h"

namespace rnic::serve {

/// Groups of the network interfaces on one port: the untagged one, and that of a VLAN where there is one. Each reports
/// its own; a process keeps the time for all of them.
class interface_groups : private host_driver::frame_output_if {
 public:
  /// `has_network`: whether the port's cable has another end. Without one nothing is sent: network_came() says all
  /// that is to be said by then. Begins its process: in an SC_THREAD.
  interface_groups(ethernet_ring& ring, const sim::timebase& base, std::function<bool()> has_network);

  /// Interfaces are numbered from 0.
  void add_interface(const host_driver::groups::interface_addresses& own, host_driver::groups::igmp_version version);
  /// As memberships::join().
  int join(unsigned interface, const host_driver::gid_bytes& group);
  void leave(unsigned interface, const host_driver::gid_bytes& group);
  /// An address is added: neighbours look for it in its solicited-node group (RFC 4861, 7.2.1). Nothing for IPv4.
  void add_address(unsigned interface, const host_driver::gid_bytes& address);
  /// The host goes, with addresses and all. From any process or none, as is network_came().
  void leave_all();
  void network_came();
  /// A frame that came to the host. False: it is none of these protocols.
  bool receive(const std::uint8_t* frame, std::size_t length);

 private:
  void transmit(const std::uint8_t* frame, std::size_t length) override;
  void serve();
  std::uint64_t deadline_ps() const;

  ethernet_ring& ring_;
  const sim::timebase& base_;
  std::function<bool()> has_network_;
  std::vector<std::unique_ptr<host_driver::groups::memberships>> interfaces_;
  sc_core::sc_event changed_{sc_core::sc_gen_unique_name("groups_changed")};
};

}  // namespace rnic::serve
