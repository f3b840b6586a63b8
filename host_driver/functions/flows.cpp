// SPDX-License-Identifier: Apache-2.0
// Flow steering rules of virtual functions (net/resource_tracker.c: mlx4_QP_FLOW_STEERING_ATTACH_wrapper,
// validate_eth_header_mac, add_eth_header, mlx4_handle_eth_header_mcast_prio).
#include <algorithm>
#include <cstring>

#include "host_driver/functions/master.h"

namespace rnic::host_driver {

namespace f = abi::flow_rule;
using object = resource_tracker::object;

namespace {

constexpr std::size_t mac_bytes = 6, gid_bytes_of_header = 16;

bool all_ones(const std::uint8_t* mask, std::size_t bytes) {
  return std::all_of(mask, mask + bytes, [](std::uint8_t b) { return b == 0xff; });
}

std::uint64_t mac_at(const std::uint8_t* at) { return std::uint64_t{abi::load16(at, 0)} << 32 | abi::load32(at, 2); }

/// Of RoCE, IPv6's or IPv4's written as IPv6's.
bool is_group(const std::uint8_t* gid) {
  constexpr std::uint8_t mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return gid[0] == 0xff || (std::equal(std::begin(mapped), std::end(mapped), gid) && (gid[12] & 0xf0) == 0xe0);
}

}  // namespace

/// Makes a rule one that can bring the function nothing but what is sent to its own address, or to groups, and keep
/// nothing from others. The kernel looks at the value of the address alone; here its mask must be whole, and a group's
/// rule is in the domain of network interfaces, where all functions' rules for that group are one entry, and has no
/// header behind it.
abi::status function_master::check_flow(const request& r, std::uint8_t* m, std::size_t* bytes) const {
  const unsigned port = ports_.physical_of(r.function, abi::get(m, f::port));
  if (port == 0) return status::bad_param;
  abi::set(m, f::port, static_cast<std::uint8_t>(port));
  if (abi::get(m, f::type) != f::type_regular || abi::get(m, f::vep) != 0) return status::bad_param;
  if (*bytes < f::control_bytes + 4) return status::bad_param;
  abi::set(m, f::function, 0);
  abi::set(m, f::flags, static_cast<std::uint8_t>(abi::get(m, f::flags) & ~f::flag_exclusive));
  std::uint8_t* const h = m + f::control_bytes;
  const std::uint64_t own = functions_[r.function].macs[port - 1];
  bool registered = false;
  for (const std::uint32_t number : tracker_.of(r.function, resource::mac))
    registered = registered || (number >> 8 & 0xff) == port;
  switch (abi::get(h, f::header_id)) {
    case f::id_ethernet:
      if (!all_ones(h + f::dmac_mask, mac_bytes)) return status::bad_param;
      if ((h[f::dmac] & 1) == 0) return registered && mac_at(h + f::dmac) == own ? status::ok : status::bad_param;
      if (*bytes != f::control_bytes + f::ethernet_bytes || !all_ones(h + f::dmac_mask, mac_bytes) ||
          std::any_of(h + f::smac, h + f::ethernet_bytes, [](std::uint8_t b) { return b != 0; }))
        return status::bad_param;
      abi::set(m, f::priority, f::domain_nic);
      return status::ok;
    case f::id_ib:
      if (!functions_[r.function].settings.roce) return status::bad_op;
      if (*bytes != f::control_bytes + f::ib_bytes || !is_group(h + f::dgid) ||
          !all_ones(h + f::dgid_mask, gid_bytes_of_header))
        return status::bad_param;
      abi::set(h, f::l3_qpn_mask, 0);
      abi::set(m, f::priority, f::domain_nic);
      return status::ok;
    case f::id_ipv4:
    case f::id_tcp:
    case f::id_udp:
      if (!registered || *bytes + f::ethernet_bytes > abi::mailbox_bytes) return status::bad_param;
      std::memmove(h + f::ethernet_bytes, h, *bytes - f::control_bytes);
      std::memset(h, 0, f::ethernet_bytes);
      abi::set(h, f::header_words, static_cast<std::uint8_t>(f::ethernet_bytes / 4));
      abi::set(h, f::header_id, f::id_ethernet);
      for (std::size_t i = 0; i < mac_bytes; ++i) {
        h[f::dmac + i] = static_cast<std::uint8_t>(own >> 8 * (mac_bytes - 1 - i));
        h[f::dmac_mask + i] = 0xff;
      }
      *bytes += f::ethernet_bytes;
      return status::ok;
    default:
      return status::bad_param;
  }
}

abi::status function_master::attach_flow(request& r) {
  if (device_.steering() != config::steering_mode::device_managed) return status::bad_op;
  std::size_t bytes = std::size_t{r.modifier} * 4;
  if (r.modifier > abi::mailbox_bytes / 4) return status::bad_param;
  std::uint8_t* const m = r.inbox->data();
  const std::uint32_t qpn = abi::get(m, f::qpn);
  if (tracker_.find(r.function, resource::qp, qpn) == nullptr) return status::bad_op;
  if (const status s = check_flow(r, m, &bytes); s != status::ok) return s;
  if (!tracker_.has_room(r.function, resource_flow, 1)) return status::exceed_lim;
  request own = r;
  own.modifier = static_cast<std::uint32_t>(bytes / 4);
  std::uint64_t id = 0;
  const status s = native(own, &id);
  if (s != status::ok) return s;
  const auto number = static_cast<std::uint32_t>(id);
  object& rule = tracker_.add(r.function, resource_flow, number);
  rule.qpn = qpn;
  r.out = id;
  if (ports_.any_dual()) return s;
  rule.mailbox.assign(m, m + bytes);
  abi::set(rule.mailbox.data(), f::port, static_cast<std::uint8_t>(3 - abi::get(m, f::port)));
  if (!device_.mirrors_ports()) return s;
  const int error = mirror_rule(r.function, number);
  if (error == 0) return s;
  device_.commands().command(abi::opcode::flow_steering_detach, 0, 0, id);
  tracker_.remove(resource_flow, number);
  return status_of(error);
}

/// Its twin on the other port. Twins are not counted as the function's, which does not know of them.
int function_master::mirror_rule(unsigned function, std::uint32_t number) {
  object* const rule = tracker_.find(function, resource_flow, number);
  if (rule == nullptr || rule->mailbox.empty() || rule->mirror != 0) return 0;
  command_channel::mailbox box(device_.commands());
  std::copy(rule->mailbox.begin(), rule->mailbox.end(), box.data());
  std::uint64_t id = 0;
  const auto words = static_cast<std::uint32_t>(rule->mailbox.size() / 4);
  const int error =
      device_.commands().execute({abi::opcode::flow_steering_attach, words, 0, box.address() | function, 0, &id});
  if (error == 0) rule->mirror = static_cast<std::uint32_t>(id);
  return error;
}

int function_master::mirror_ports() {
  if (!device_.mirrors_ports()) return -EINVAL;
  int error = mads_.mirror_ports();
  for (unsigned f = 1; f < functions_.size() && error == 0; ++f)
    for (const std::uint32_t number : tracker_.of(f, resource_flow))
      if (error == 0) error = mirror_rule(f, number);
  if (error != 0)
    unmirror_rules();
  else
    tell_links();
  return error;
}

int function_master::unmirror_ports() {
  if (device_.mirrors_ports()) return -EINVAL;
  const int error = unmirror_rules();
  tell_links();
  return error;
}

int function_master::unmirror_rules() {
  int first = 0;
  for (unsigned f = 1; f < functions_.size(); ++f)
    for (const std::uint32_t number : tracker_.of(f, resource_flow)) {
      object& rule = *tracker_.find(f, resource_flow, number);
      if (rule.mirror == 0) continue;
      const int error = device_.commands().command(abi::opcode::flow_steering_detach, 0, 0, rule.mirror);
      if (first == 0) first = error;
      rule.mirror = 0;
    }
  return first;
}

/// Whose own port has no link, but the other one, has one while ports are mirrored.
void function_master::tell_links() {
  if (device_.links() == 0) return;
  for (unsigned f = 1; f < functions_.size(); ++f)
    if (functions_[f].settings.link == function_link::automatic && !device_.port(ports_.physical_of(f, 1)).link_up)
      forward_link(f, 1, device_.mirrors_ports());
}

/// One that is detached.
void function_master::remove_rule(unsigned function, std::uint32_t number) {
  const object* const rule = tracker_.find(function, resource_flow, number);
  if (rule != nullptr && rule->mirror != 0)
    device_.commands().command(abi::opcode::flow_steering_detach, 0, 0, rule->mirror);
  tracker_.remove(resource_flow, number);
}

abi::status function_master::detach_flow(request& r) {
  if (device_.steering() != config::steering_mode::device_managed) return status::bad_op;
  const auto number = static_cast<std::uint32_t>(r.in);
  if (r.in != number || tracker_.find(r.function, resource_flow, number) == nullptr) return status::bad_op;
  const status s = native(r);
  if (s == status::ok) remove_rule(r.function, number);
  return s;
}

/// A rule leads to the queue pair: its number stays taken.
bool function_master::leads_anywhere(unsigned function, std::uint32_t qpn) const {
  for (const std::uint32_t id : tracker_.of(function, resource_flow))
    if (tracker_.qpn_of(id) == qpn) return true;
  return false;
}

}  // namespace rnic::host_driver
