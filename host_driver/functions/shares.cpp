// SPDX-License-Identifier: Apache-2.0
// What functions have in tables that are everybody's: VLANs of a port, members of groups.
#include <algorithm>
#include <cerrno>

#include "host_driver/functions/master.h"
#include "model/abi/commands.h"

namespace rnic::host_driver {

/// What functions may have is not the physical one's to take.
int function_master::keep_for_functions() {
  const unsigned count = device_.virtual_functions();
  for (const resource what : numbered)
    for (unsigned f = 1; f <= count; ++f) device_.tables().leave(what, tracker_.most(f)[static_cast<unsigned>(what)]);
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
bool function_master::has_vlan_room(unsigned function, unsigned port) const {
  constexpr unsigned reserved = 2;  // of the table's entries, by hardware: no tag, and priority alone
  const unsigned share = std::max(1u, (abi::set_port::table_size / 2 - reserved) / device_.virtual_functions());
  const std::vector<std::uint32_t> own = tracker_.of(function, resource::vlan);
  const auto of_port = [port](std::uint32_t number) { return (number >> 8 & 0xff) == port; };
  return static_cast<unsigned>(std::count_if(own.begin(), own.end(), of_port)) < share;
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
