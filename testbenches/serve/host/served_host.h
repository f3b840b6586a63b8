// SPDX-License-Identifier: Apache-2.0
// One host whose adapter's port is on a real network.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <systemc>
#include <vector>

#include "host_driver/hosts/node.h"
#include "host_driver/hosts/system_capture.h"
#include "host_driver/neighbours.h"
#include "testbenches/serve/host/ethernet_ring.h"
#include "testbenches/serve/host/interface_groups.h"
#include "testbenches/serve/host/udp.h"
#include "testbenches/serve/links/link_port.h"
#include "tlm/capture.h"

namespace rnic::serve {

struct host_config {
  std::string name = "served";  ///< of the node, in statistics
  hosts::node_config node;
  std::optional<link_spec> link;                  ///< none: the port's cable goes elsewhere, by connector()
  std::optional<link_spec> second_link;           ///< of port 2, none: it has no cable
  std::vector<host_driver::gid_bytes> addresses;  ///< ::ffff:a.b.c.d for IPv4
  std::uint16_t vlan = host_driver::no_vlan;
  std::optional<host_driver::mac_address> mac;  ///< of the port, the GUIDs are made of it; else the firmware's
  host_driver::groups::igmp_version igmp = host_driver::groups::igmp_version::by_querier;
  std::string capture;                         ///< file for every frame on the cable, empty: none
  hosts::system_capture* all_ports = nullptr;  ///< that ports with a link are added to; nullptr: there is none
  tlm::capture_writer::config capture_options;
  std::function<void(const std::string& what)> link_event;  ///< called when the link's peer comes or goes; may be empty
};

/// Adapter, driver, a cable of no length to its link, if it has one, and software that answers for the host's
/// addresses.
class served_host {
 public:
  /// Opens the link. Throws as make_link, tlm::capture_writer and hosts::node do.
  served_host(const host_config& cfg, const adapter::environment& env, boost::asio::io_context& io, real_time& clock);

  /// Brings the adapter up, gives it the addresses, and begins to answer. In an SC_THREAD. Throws std::runtime_error.
  void start();
  /// The MAC address of a neighbour, asked of the network from row `gid_index`. In an SC_THREAD: waits up to three
  /// seconds. Nothing when nobody answers.
  std::optional<host_driver::mac_address> resolve(const host_driver::gid_bytes& gid, int gid_index);
  /// Row of the first address for this RoCE version, or of the default GID when there is no address.
  int gid_index(ibv_gid_type type);
  /// The interface becomes a member of a multicast group, which the network is told (IGMP, MLD), or is no more: each
  /// call of leave_group() takes back one of join_group(). In an SC_THREAD. Throws std::runtime_error when it has too
  /// many groups.
  void join_group(const host_driver::gid_bytes& group);
  void leave_group(const host_driver::gid_bytes& group);
  /// The host goes: the network is told that it leaves its groups, those of its addresses too. From any process or
  /// none. has_departed(): that has been sent.
  void depart();
  bool has_departed() const { return !ring_ || ring_->has_sent(); }
  /// Datagrams to this UDP port are given to `who` until close_udp(). False: the port is taken.
  bool open_udp(std::uint16_t port, udp_socket& who) { return udp_.emplace(port, &who).second; }
  void close_udp(std::uint16_t port) { udp_.erase(port); }
  /// Sends a frame of the host's software (from the DMAC, without FCS) when its turn comes.
  void transmit(const std::vector<std::uint8_t>& frame) { ring_->transmit(frame.data(), frame.size()); }

  host_driver::device& device() { return node_.device(); }
  host_driver::bus_if& bus() { return node_.bus(); }
  /// The agent of data centre bridging, after start(); nullptr without driver.dcb.enabled.
  host_driver::dcb::service* dcb() { return node_.dcb(); }
  host_driver::mac_address mac() { return device().port(1).mac; }
  /// nullptr without one.
  link_port* link() const { return link_.get(); }
  link_port* second_link() const { return second_link_.get(); }
  /// nullptr without driver.bond.
  host_driver::bond* bond() const { return node_.bond(); }
  payload::frame_port_if& connector() { return node_.connector(); }
  /// What a capture is taken of where there is no link; to be called once, before the traffic.
  void capture(fabric::cable& cable);
  host_driver::neighbours::counters answered() const {
    return neighbours_ ? neighbours_->count() : host_driver::neighbours::counters{};
  }
  void close_capture();

 private:
  static hosts::node_config shape(const host_config& cfg);
  std::unique_ptr<link_port> open_link(unsigned port, const link_spec& to, const adapter::environment& env,
                                       boost::asio::io_context& io, real_time& clock);
  void answer(const std::uint8_t* frame, std::size_t length);
  void make_interfaces();
  /// Number of the interface that the addresses are of.
  unsigned of_addresses() const { return config_.vlan == host_driver::no_vlan ? 0 : 1; }
  bool take_udp(const std::uint8_t* frame, std::size_t length);

  host_config config_;
  sim::timebase& base_;
  hosts::node node_;
  std::unique_ptr<link_port> link_, second_link_;
  std::unique_ptr<fabric::cable> cable_, second_cable_;
  std::unique_ptr<tlm::capture_writer> capture_;
  std::unique_ptr<ethernet_ring> ring_;
  std::unique_ptr<host_driver::neighbours> neighbours_;
  std::unique_ptr<interface_groups> groups_;
  bool departed_ = false;
  std::map<std::uint16_t, udp_socket*> udp_;  // by port
  sc_core::sc_event something_learnt_{sc_core::sc_gen_unique_name("something_learnt")};
};

}  // namespace rnic::serve
