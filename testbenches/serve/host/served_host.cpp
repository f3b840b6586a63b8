// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/host/served_host.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "host_driver/hosts/connection.h"
#include "model/wire/ethernet.h"

namespace rnic::serve {

namespace {

constexpr std::uint64_t answer_ps = 2 * sim::ps_per_us;  // processor time of a small packet through a network stack
constexpr unsigned solicitations = 10;
constexpr sim::time_ps solicit_every = 300'000 * sim::ps_per_us;

}  // namespace

hosts::node_config served_host::shape(const host_config& cfg) {
  hosts::node_config c = cfg.node;
  if (cfg.second_link) c.cabled = 3;
  if (!cfg.mac) return c;
  const std::uint64_t mac = wire::to_u64(*cfg.mac), vendor = mac >> 24, number = mac & 0xffffff;
  firmware::firmware_config& f = c.firmware;
  f.mac = {mac, vendor << 24 | ((number + 1) & 0xffffff)};
  // As the firmware's own: 03 behind the vendor's part, and room for the GUIDs of one adapter.
  f.node_guid = vendor << 40 | std::uint64_t{3} << 32 | number << 4;
  f.port_guid = {f.node_guid + 1, f.node_guid + 2};
  f.system_guid = f.node_guid + 3;
  return c;
}

served_host::served_host(const host_config& cfg, const adapter::environment& env, boost::asio::io_context& io,
                         real_time& clock)
    : config_(cfg), base_(env.base), node_(cfg.name.c_str(), env, shape(cfg), 0) {
  fabric::cable::config cable;
  cable.metres = 0;
  if (cfg.link) {
    link_ = open_link(1, *cfg.link, env, io, clock);
    cable_ = std::make_unique<fabric::cable>(node_.connector(1), link_->connector(), cable);
    capture(*cable_);
    if (cfg.all_ports != nullptr) cfg.all_ports->add(*cable_, cfg.name + ".port1", "");
  }
  if (cfg.second_link) {
    second_link_ = open_link(2, *cfg.second_link, env, io, clock);
    second_cable_ = std::make_unique<fabric::cable>(node_.connector(2), second_link_->connector(), cable);
    if (capture_) second_cable_->add_observer(*capture_);
    if (cfg.all_ports != nullptr) cfg.all_ports->add(*second_cable_, cfg.name + ".port2", "");
  }
}

std::unique_ptr<link_port> served_host::open_link(unsigned port, const link_spec& to, const adapter::environment& env,
                                                  boost::asio::io_context& io, real_time& clock) {
  const std::string number = port == 1 ? "" : std::to_string(port);
  link_port_config end;
  end.name = (config_.name == "served" ? "bridge" : config_.name + ".bridge") + number;
  end.clock = config_.name + ".bridge" + number + "_clock";
  end.link = to;
  end.rate_mbps = config_.node.adapter.rate_mbps(port - 1);
  end.event = config_.link_event;
  if (port == 1)
    end.peer_came = [this] {
      if (groups_) groups_->network_came();
    };
  return std::make_unique<link_port>(end, env, io, clock);
}

void served_host::capture(fabric::cable& cable) {
  if (config_.capture.empty()) return;
  capture_ = std::make_unique<tlm::capture_writer>(config_.capture, config_.capture_options);
  cable.add_observer(*capture_);
}

void served_host::close_capture() {
  if (capture_) capture_->close();
}

void served_host::start() {
  hosts::require(node_.start(), "open device");
  hosts::endpoint at;
  at.device = &device();
  at.bus = &node_.bus();
  ring_ = std::make_unique<ethernet_ring>(
      at, [this](const std::uint8_t* frame, std::size_t length) { answer(frame, length); });
  neighbours_ = std::make_unique<host_driver::neighbours>(mac(), *ring_);
  make_interfaces();
  const host_driver::gid_bytes link_local = host_driver::default_gid(mac());
  neighbours_->add_address(link_local);
  ring_->listen_for(link_local);
  groups_->add_address(0, link_local);
  const std::uint16_t vlan = config_.vlan == host_driver::no_vlan ? host_driver::neighbours::untagged : config_.vlan;
  for (const host_driver::gid_bytes& a : config_.addresses) {
    hosts::require(device().add_address(1, a, host_driver::roce_types::both, config_.vlan), "add address");
    neighbours_->add_address(a, vlan);
    ring_->listen_for(a);
    groups_->add_address(of_addresses(), a);
  }
}

/// The untagged one has the link-local address; those of --ip, and what programs join, are of the VLAN's, if there is
/// one.
void served_host::make_interfaces() {
  groups_ = std::make_unique<interface_groups>(*ring_, base_, [this] { return !link_ || link_->link().has_peer(); });
  host_driver::groups::interface_addresses own;
  own.mac = mac();
  own.link_local = host_driver::default_gid(own.mac);
  if (of_addresses() != 0) {
    groups_->add_interface(own, config_.igmp);
    own.vlan = config_.vlan;
  }
  const auto four = std::find_if(config_.addresses.begin(), config_.addresses.end(), host_driver::is_ipv4);
  if (four != config_.addresses.end()) own.ipv4 = *four;
  groups_->add_interface(own, config_.igmp);
}

int served_host::gid_index(ibv_gid_type type) {
  if (!config_.addresses.empty()) return device().find_gid(1, config_.addresses.front(), type, config_.vlan);
  return device().find_gid(1, host_driver::default_gid(mac()), type);
}

// ---------------------------------------------------------------- the host's software

void served_host::answer(const std::uint8_t* frame, std::size_t length) {
  if (!groups_) return;  // the addresses come right after the ring
  node_.bus().spend_ps(answer_ps);
  if (!udp_.empty() && take_udp(frame, length)) return;
  if (groups_->receive(frame, length)) return;
  neighbours_->receive(frame, length);
  something_learnt_.notify(sc_core::SC_ZERO_TIME);
}

void served_host::join_group(const host_driver::gid_bytes& group) {
  if (departed_) return;  // a program that had not heard of the end
  if (!host_driver::is_multicast(group)) throw std::runtime_error("join_group: not a multicast address");
  ring_->listen(*host_driver::implied_mac(host_driver::ipv4_gid(0xe0000001)));  // queries; IPv6's all nodes are heard
  ring_->listen(*host_driver::implied_mac(group));                              // queries about it
  hosts::require(groups_->join(of_addresses(), group), "join_group");
}

void served_host::leave_group(const host_driver::gid_bytes& group) { groups_->leave(of_addresses(), group); }

void served_host::depart() {
  departed_ = true;
  if (groups_) groups_->leave_all();
}

bool served_host::take_udp(const std::uint8_t* frame, std::size_t length) {
  auto d = parse_udp(frame, length);
  const auto at = d ? udp_.find(d->to.port) : udp_.end();
  if (at == udp_.end()) return false;
  at->second->receive(std::move(*d));
  return true;
}

std::optional<host_driver::mac_address> served_host::resolve(const host_driver::gid_bytes& gid, int gid_index) {
  const auto& row = device().port(1).gids[static_cast<std::size_t>(gid_index)];
  const std::uint16_t vlan = row.vlan == host_driver::no_vlan ? host_driver::neighbours::untagged : row.vlan;
  for (unsigned i = 0; i < solicitations; ++i) {
    if (const auto known = neighbours_->find(gid)) return known;
    neighbours_->solicit(gid, row.id, vlan);
    const sim::time_ps until = base_.now_ps() + solicit_every;
    while (!neighbours_->find(gid) && base_.now_ps() < until)
      sc_core::wait(sc_core::sc_time::from_value(until - base_.now_ps()), something_learnt_);
  }
  return neighbours_->find(gid);
}

}  // namespace rnic::serve
