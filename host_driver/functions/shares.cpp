// SPDX-License-Identifier: Apache-2.0
// What functions have in tables that are everybody's: VLANs of a port, members of groups.
#include <algorithm>
#include <cerrno>

#include "host_driver/functions/master.h"
#include "model/abi/command_set.h"

namespace rnic::host_driver {

using object = resource_tracker::object;

namespace {
constexpr unsigned hardware_vlans = 2;  // no tag, and priority alone
constexpr unsigned vlans_of_functions = abi::set_port::table_size / 2 - hardware_vlans;
}  // namespace

/// What functions may have is not the physical one's to take.
int function_master::keep_for_functions() {
  const unsigned count = device_.virtual_functions();
  for (const resource what : numbered)
    for (unsigned f = 1; f <= count; ++f) device_.tables().leave(what, tracker_.most(f)[static_cast<unsigned>(what)]);
  // Whose ports may be mirrored have one table together.
  const functions_by_port& n = ports_.numbers();
  const bool one_table = device_.num_ports() == 2 && n.both == 0;
  for (unsigned port = 1; port <= device_.num_ports(); ++port) {
    const unsigned on_port = one_table ? count : ports_.functions_on(port);
    device_.keep_entries(port, on_port, std::min(vlan_share() * on_port, vlans_of_functions));
  }
  return device_.tables().divide_mtts(count, tracker_.most(1)[static_cast<unsigned>(resource::mtt)]);
}

/// For a function that has room for them; consecutive ones for queue pairs alone.
int function_master::take_numbers(unsigned function, resource what, std::uint32_t count, std::uint32_t align,
                                  std::uint32_t* first) {
  icm_resources& tables = device_.tables();
  tables.leave(what, -std::int64_t{count});
  const bool range = count != 1 || (what == resource::qp && align > 1);
  const int error = range ? tables.take_qps(count, align, first) : tables.take(what, first);
  if (error != 0) {
    tables.leave(what, count);
    return error;
  }
  for (std::uint32_t i = 0; i < count; ++i) tracker_.add(function, what, *first + i);
  return 0;
}

void function_master::give_number(unsigned function, resource what, std::uint32_t number) {
  device_.tables().give_back(what, number);
  if (tracker_.find(function, what, number)->counted) device_.tables().leave(what, 1);
  tracker_.remove(what, number);
}

/// Half of a port's table is the virtual functions', in equal parts and one each at least. The kernel lets one of them
/// take that half, and guarantees the others nothing (resource_tracker.c: mlx4_init_resource_tracker, RES_VLAN).
unsigned function_master::vlan_share() const { return std::max(1u, vlans_of_functions / device_.virtual_functions()); }

bool function_master::has_vlan_room(unsigned function, unsigned port) const {
  const std::vector<std::uint32_t> own = tracker_.of(function, resource::vlan);
  const auto of_port = [port](std::uint32_t number) { return (number >> 8 & 0xff) == port; };
  return static_cast<unsigned>(std::count_if(own.begin(), own.end(), of_port)) < vlan_share();
}

/// The function's registration of a MAC address or VLAN, by its number with the tracker.
std::optional<std::uint32_t> function_master::entry_of(unsigned function, resource what, unsigned port,
                                                       std::uint64_t value) const {
  const port_state& table = device_.port(port);
  for (const std::uint32_t number : tracker_.of(function, what)) {
    const std::size_t index = number & 0x7f;
    const std::uint64_t entry =
        what == resource::mac ? table.macs[index] & 0xffff'ffff'ffff : table.vlans[index] & 0xfffu;
    if ((number >> 8 & 0xff) == port && entry == value) return number;
  }
  return std::nullopt;
}

/// Registrations are counted: one that the function has is always given once more (mac_add_to_slave,
/// vlan_add_to_slave).
abi::status function_master::alloc_entry(request& r, resource what) {
  const unsigned port = ports_.physical_of(r.function, r.modifier >> 8 & 0xff);
  const std::uint64_t value = r.in;
  if (r.op_modifier != abi::res_op::reserve_and_map || port == 0) return status::bad_param;
  if (what == resource::mac) {
    if (value >> 48 != 0) return status::bad_param;
    // A function has the address that it was given, and no other one's.
    if (value != functions_[r.function].macs[port - 1]) return status::bad_op;
  } else {
    if (value >= 0x1000) return status::bad_param;
    if (functions_[r.function].settings.vlan != 0) return status::bad_op;
  }
  if (!entry_of(r.function, what, port, value) &&
      (!tracker_.has_room(r.function, what, 1) || (what == resource::vlan && !has_vlan_room(r.function, port))))
    return status::bad_param;
  const int index = what == resource::mac
                        ? device_.add_mac(port, value, table_user::functions)
                        : device_.add_vlan(port, static_cast<std::uint16_t>(value), table_user::functions);
  if (index == -EDQUOT) return status::bad_param;  // mlx4_grant_resource; vlan_add_to_slave makes EINVAL of it
  if (index < 0) return status_of(index);
  // Several functions may use one VLAN: each has a registration of its own, under a number of its own.
  const std::uint32_t number = r.function << 16 | port << 8 | static_cast<std::uint32_t>(index);
  object* own = tracker_.find(r.function, what, number);
  if (own == nullptr) own = &tracker_.add(r.function, what, number);
  ++own->users;
  r.out = static_cast<std::uint32_t>(index);
  return status::ok;
}

/// By the address or the VLAN itself (mac_free_res, vlan_free_res). What a queue pair's path names stays: another
/// function's may come to its place.
abi::status function_master::free_entry(request& r, resource what) {
  const unsigned port = ports_.physical_of(r.function, r.modifier >> 8 & 0xff);
  if (r.op_modifier != abi::res_op::reserve_and_map || port == 0) return status::bad_param;
  const std::optional<std::uint32_t> number = entry_of(r.function, what, port, r.in);
  if (!number) return status::bad_resource;
  object* const o = tracker_.find(r.function, what, *number);
  if (o->users == 1 && o->holders != 0) return status::resource_busy;
  const unsigned index = *number & 0xff;
  const int error = what == resource::mac ? device_.remove_mac(port, index, table_user::functions)
                                          : device_.remove_vlan(port, index, table_user::functions);
  if (--o->users == 0) tracker_.remove(what, *number);
  return status_of(error);
}

/// `member`: the queue pair, as the group's entry has it. What the function has there goes with the queue pair.
abi::status function_master::change_membership(request& r, const ibv_gid& group, std::uint32_t member,
                                               std::uint32_t protocol) {
  const std::uint32_t qpn = member & abi::mcg::qpn_mask;
  resource_tracker::group_name name{};
  std::copy(std::begin(group.raw), std::end(group.raw), name.begin());
  const std::uint32_t number = tracker_.member(r.function, qpn, name);
  if (r.op_modifier == 0) {
    if (number == 0) return status::bad_param;
    if (device_.detach_member(group, qpn, protocol) != 0) return status::internal_error;
    tracker_.remove(resource_member, number);
    return status::ok;
  }
  if (number != 0) return status::ok;  // it is one
  if (!tracker_.has_room(r.function, resource_member, 1)) return status::exceed_lim;
  switch (device_.attach_member(group, member, protocol)) {
    case 0:
      break;
    case -ENOMEM:
      return status::exceed_lim;
    default:
      return status::internal_error;
  }
  resource_tracker::object& o = tracker_.add_member(r.function, qpn, name);
  o.protocol = protocol;
  return status::ok;
}

/// The number may be another function's queue pair next.
void function_master::leave_groups(unsigned function, std::uint32_t qpn) {
  for (const std::uint32_t number : tracker_.of(function, resource_member)) {
    const resource_tracker::object& o = *tracker_.find(function, resource_member, number);
    if (o.qpn != qpn) continue;
    ibv_gid group{};
    std::copy(o.group.begin(), o.group.end(), std::begin(group.raw));
    device_.detach_member(group, qpn, o.protocol);
    tracker_.remove(resource_member, number);
  }
}

}  // namespace rnic::host_driver
