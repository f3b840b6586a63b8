// SPDX-License-Identifier: Apache-2.0
#include "host_driver/bond.h"

#include <algorithm>
#include <cerrno>

#include "host_driver/functions/master.h"
#include "model/abi/command_set.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

namespace {
constexpr unsigned both_links = 3;
constexpr bool is_up(unsigned links, unsigned port) { return (links >> (port - 1) & 1) != 0; }
constexpr unsigned other_of(unsigned port) { return 3 - port; }
}  // namespace

const char* to_string(config::bond_mode mode) {
  switch (mode) {
    case config::bond_mode::active_backup:
      return "active-backup";
    case config::bond_mode::balance_xor:
      return "balance-xor";
    case config::bond_mode::ecmp:
      return "ecmp";
    case config::bond_mode::ieee_802_3ad:
      return "802.3ad";
    default:
      return "none";
  }
}

// ---------------------------------------------------------------- the device below it

int device::enter_bond(bool own_addresses) {
  if (bonded_ || caps_.num_ports != 2) return -EINVAL;
  if (has_programs_objects()) return -EBUSY;
  if (const int error = check_arrival_ports(false)) return error;
  bonded_ = true;
  own_addresses_ = own_addresses;
  next_virtual_port_ = 0;
  before_bond_ = ports_;
  port_state &first = ports_[0], &second = ports_[1];
  // Each port takes what is for the address of the other one, which peers go on sending to.
  const std::uint64_t own = second.macs[0];
  if (!own_addresses) {
    second.mac = first.mac;
    second.macs = first.macs;
    second.mac_users = {};
  } else {
    second.macs[1] = first.macs[0];
    first.macs[1] = own;
  }
  if (own_addresses) first.gid_rows = second.gid_rows = static_cast<unsigned>(first.gids.size() / 2);
  second.vlan_users = {};  // its table is that of port 1 from now on
  const int error = write_joined_tables();
  if (error != 0) leave_bond();
  return error;
}

int device::write_joined_tables() {
  if (const int error = write_mac_table(1)) return error;
  if (const int error = write_vlan_table(1)) return error;
  return write_gid_table(1);
}

bool device::has_programs_objects() const {
  return !ahs_.empty() || std::any_of(qps_.begin(), qps_.end(),
                                      [](const auto& of_number) { return !of_number.second->ethernet.physical_port; });
}

int device::leave_bond() {
  if (!bonded_) return -EINVAL;
  if (has_programs_objects()) return -EBUSY;
  int first = set_port_map(1, 2);
  if (const int error = check_arrival_ports(true); first == 0) first = error;
  port_state &one = ports_[0], &two = ports_[1];
  const port_state &one_before = before_bond_[0], &two_before = before_bond_[1];
  if (own_addresses_) {  // what enter_bond() has put there
    one.macs[1] = one_before.macs[1];
    std::copy(one_before.gids.begin() + one.gid_rows, one_before.gids.end(), one.gids.begin() + one.gid_rows);
    one.gid_rows = one_before.gid_rows;
  }
  two.mac = two_before.mac;
  two.macs = two_before.macs;
  two.mac_users = two_before.mac_users;
  two.vlans = two_before.vlans;
  two.vlan_users = two_before.vlan_users;
  two.gids = two_before.gids;
  two.gid_rows = two_before.gid_rows;
  before_bond_.clear();
  bonded_ = own_addresses_ = false;
  const int error = write_parted_tables();
  return first != 0 ? first : error;
}

int device::write_parted_tables() {
  for (const unsigned port : {1u, 2u}) {
    if (const int error = write_port_macs(port)) return error;
    if (const int error = write_port_vlans(port)) return error;
    if (const int error = write_port_gids(port)) return error;
  }
  return 0;
}

int device::set_port_map(unsigned port_1, unsigned port_2) {
  command_channel::mailbox box(channel_);
  namespace f = abi::virt_port_map_mailbox;
  abi::set(box.data(), f::port_1, port_1);
  abi::set(box.data(), f::port_2, port_2);
  return channel_.write(box, abi::opcode::virt_port_map, 0, f::op_set);
}

unsigned device::links() const {
  unsigned up = 0;
  for (std::size_t p = 0; p < ports_.size(); ++p)
    if (ports_[p].link_up) up |= 1u << p;
  return up;
}

bool device::wait_links(unsigned known, const std::function<bool()>& ended) {
  while (links() == known) {
    if (!channel_.event_mode() || (ended && ended())) return false;
    pump(0);
  }
  return true;
}

void device::end_link_waits() { bus_.interrupt_served(async_eq_.vector); }

/// ib/qp.c: mlx4_ib_bond_next_port; the product documents' flow_entropy.
void device::choose_virtual_port(queue_pair& qp) {
  const auto ports = static_cast<unsigned>(ports_.size());
  if (qp.flow_entropy) {
    qp.port = *qp.flow_entropy % 2 + 1;
    return;
  }
  next_virtual_port_ = (next_virtual_port_ + 1) % ports;
  qp.port = next_virtual_port_ + 1;
}

// ---------------------------------------------------------------- the bond

/// Of high availability.
static std::string obstacle_of_functions(const device& of) {
  constexpr unsigned most = 63;  // MAX_MF_BOND_ALLOWED_SLAVES
  const config& said = of.settings();
  const unsigned all = of.virtual_functions(), alone = said.functions_port_1 + said.functions_port_2;
  const std::string high = "high availability ";
  if (said.bond == config::bond_mode::ecmp) return high + "of virtual functions needs a bond, and ecmp is none";
  if (alone != all)
    return high + "is not supported for dual-ported virtual functions: " + std::to_string(all - alone) + " of " +
           std::to_string(all) + " have both ports (driver.functions.port1, driver.functions.port2)";
  if (all > most)
    return high + "is for fewer than 64 virtual functions, not for " + std::to_string(all) + " (host.functions)";
  if (of.steering() != config::steering_mode::device_managed)
    return high + "of virtual functions needs flow steering (driver.steering=device_managed, not b0)";
  return {};
}

std::string bond::obstacle(const device& of) {
  if (of.num_ports() != 2) return "the device has no second port";
  if (of.is_virtual()) return "a virtual function is bonded by its host";
  if ((of.caps().bmme_flags & abi::dev_cap::bmme_port_remap) == 0) return "the device does not remap ports";
  return of.virtual_functions() != 0 ? obstacle_of_functions(of) : std::string{};
}

/// Line rate of a port, by its width and the speed of a lane (ibv_port_attr).
static unsigned rate_mbps(const ibv_port_attr& port) {
  const unsigned lanes = port.active_width == 2 ? 4 : port.active_width;  // IBA PortInfo: LinkWidthActive
  switch (port.active_speed) {
    case 16:
      return lanes * 14'000;  // FDR
    case 32:
      return lanes * 25'000;  // EDR
    case 64:
      return lanes * 50'000;  // HDR
    case 128:
      return lanes * 100'000;  // NDR
    default:
      return lanes * 10'000;
  }
}

int bond::enslave() {
  if (bonded_) return -EBUSY;
  if (!obstacle(device_).empty()) return -EOPNOTSUPP;
  std::array<lacp::member, 2> members;
  const bool is_802_3ad = config_.bond == config::bond_mode::ieee_802_3ad;
  for (unsigned port = 1; is_802_3ad && port <= 2; ++port) {
    ibv_port_attr attr{};
    if (const int error = device_.query_port(port, &attr)) return error;
    members[port - 1] = {device_.port(port).mac, rate_mbps(attr)};
  }
  if (const int error = join_ports()) return error;
  bonded_ = true;
  changes_.clear();
  active_ = 1;
  int error = is_802_3ad ? start_lacp(members) : 0;
  if (error == 0) error = settle();
  if (error != 0) release();
  return error;
}

int bond::join_ports() {
  if (device_.virtual_functions() == 0) return device_.enter_bond(config_.bond == config::bond_mode::ecmp);
  if (const int error = device_.mirror_ports()) return error;
  const int error = functions_ != nullptr ? functions_->mirror_ports() : 0;
  if (error != 0) device_.unmirror_ports();
  return error;
}

int bond::part_ports() {
  if (device_.virtual_functions() == 0) return device_.leave_bond();
  const int error = device_.unmirror_ports();
  const int of_functions = functions_ != nullptr ? functions_->unmirror_ports() : 0;
  return error != 0 ? error : of_functions;
}

int bond::release() {
  if (!bonded_) return -EINVAL;
  if (device_.virtual_functions() == 0 && device_.has_programs_objects()) return -EBUSY;
  bonded_ = false;
  ++times_;
  if (const int error = end_processes()) return error;
  lacp_.reset();
  return part_ports();
}

/// Those in run(), in LACP's service, and whoever tells the adapter: each rings when it is out.
int bond::end_processes() {
  word_ = device_.allocate_buffer(sizeof(std::uint64_t));
  if (word_.pointer == nullptr) return -ENOMEM;
  device_.end_link_waits();
  if (lacp_) lacp_->leave([this] { ring(); });
  while (followers_ != 0 || settling_ || (lacp_ && !lacp_->has_left()))
    bus_.wait_for_write(word_.bus_address, word_.bytes, 0);
  device_.free_buffer(word_);
  word_ = {};
  return 0;
}

void bond::ring() {
  if (word_.pointer != nullptr) bus_.end_wait(word_.bus_address);
}

int bond::start_lacp(const std::array<lacp::member, 2>& members) {
  lacp_ = std::make_unique<lacp::service>(device_, bus_, config_.lacp, members);
  lacp_->when_changed([this] { settle(); });
  return lacp_->start();
}

void bond::bring_up() {
  constexpr std::uint64_t longest_ps = 10'000'000'000'000;
  if (lacp_) lacp_->run_until_settled(longest_ps);
}

unsigned bond::active_ports() const { return lacp_ ? lacp_->agent().distributing() : device_.links(); }

std::array<unsigned, 2> bond::map_for(unsigned active) {
  if (config_.bond == config::bond_mode::active_backup) {
    if (!is_up(active, active_) && is_up(active, other_of(active_))) active_ = other_of(active_);
    return {active_, active_};
  }
  if ((active & both_links) == 0) return lacp_ && !changes_.empty() ? changes_.back().map : std::array{1u, 2u};
  return {is_up(active, 1) ? 1u : 2u, is_up(active, 2) ? 2u : 1u};
}

/// The map is that of the active ports, also when they change while the adapter is told.
int bond::settle() {
  if (!bonded_) return 0;
  again_ = true;
  if (settling_) return 0;
  settling_ = true;
  int error = 0;
  while (again_ && error == 0 && bonded_) {
    again_ = false;
    error = follow();
  }
  settling_ = false;
  if (!bonded_) ring();
  return error;
}

int bond::follow() {
  change c;
  c.seen_ps = bus_.now_ps();
  c.links = device_.links();
  c.active = active_ports();
  if (!changes_.empty() && c.links == changes_.back().links && c.active == changes_.back().active) return 0;
  c.map = map_for(c.active);
  if (changes_.empty() || c.map != changes_.back().map)
    if (const int error = device_.set_port_map(c.map[0], c.map[1])) return error;
  c.done_ps = bus_.now_ps();
  changes_.push_back(c);
  return 0;
}

void bond::run() {
  ++followers_;
  follow_links();
  --followers_;
  if (!bonded_) ring();
}

void bond::follow_links() {
  const auto ended = [this, time = times_] { return times_ != time; };
  unsigned known = changes_.back().links;
  while (device_.wait_links(known, ended)) {
    // The bonding driver looks at its links at whole intervals.
    const std::uint64_t interval = config_.bond_miimon_us * 1'000'000;
    if (interval != 0) bus_.sleep_ps(interval - bus_.now_ps() % interval);
    if (ended()) return;
    known = device_.links();
    if (lacp_) lacp_->set_links(known);
    if (settle() != 0) return;
  }
}

}  // namespace rnic::host_driver
