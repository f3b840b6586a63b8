// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/inspect/interfaces.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <regex>

#include "testbenches/bench/usage_error.h"
#include "testbenches/rnic/host_addresses.h"

namespace rnic::program {

std::string interface_name::text() const {
  const std::string own = of_bond ? "bond0" : fmt::format("eth{}", port);
  return vlan == host_driver::no_vlan ? own : fmt::format("{}.{}", own, vlan);
}

bool has_bond(const host_driver::device& d) {
  return d.is_bonded() && d.settings().bond != host_driver::config::bond_mode::ecmp;
}

interface_name port_interface(const host_driver::device& d, unsigned port) {
  interface_name at;
  at.port = port;
  at.of_bond = has_bond(d);
  return at;
}

std::string interface_of(const host_driver::device& d, unsigned port, const host_driver::gid_row& row) {
  interface_name at = port_interface(d, port);
  at.vlan = row.vlan;
  return at.text();
}

void check_interface(const host_driver::device& d, const std::string& option, const interface_name& at) {
  if (at.of_bond && !has_bond(d))
    throw usage_error(
        fmt::format("{}: there is no bond0 without --bond active-backup, balance-xor or 802.3ad", option));
  if (!at.of_bond && has_bond(d))
    throw usage_error(fmt::format("{}: eth{} is below bond0, which has the addresses", option, at.port));
  if (at.port > d.num_ports())
    throw usage_error(
        fmt::format("{}: the {} has {} port", option, d.is_bonded() ? "device" : "adapter", d.num_ports()));
}

interface_address parse_address(const std::string& option, const std::string& text) {
  static const std::regex form(R"((?:eth([12])|bond0)(?:\.(\d{1,4}))?(?::\w+)?=(.+))");
  std::smatch parts;
  if (!std::regex_match(text, parts, form))
    throw usage_error(
        fmt::format("{}: '{}': expected an interface (eth1, eth2, bond0, eth1.VLAN, eth1:ALIAS), '=' and an address",
                    option, text));
  interface_address a;
  a.at.of_bond = !parts[1].matched;
  if (parts[1].matched) a.at.port = static_cast<unsigned>(std::stoul(parts[1]));
  if (parts[2].matched) {
    const unsigned long vid = std::stoul(parts[2]);
    if (vid == 0 || vid > 4094)
      throw usage_error(fmt::format("{}: '{}': VLAN {}: expected 1 to 4094", option, text, vid));
    a.at.vlan = static_cast<std::uint16_t>(vid);
  }
  const std::string address = parts[3];
  std::uint8_t four[4];
  if (inet_pton(AF_INET, address.c_str(), four) == 1) {
    a.ip[10] = a.ip[11] = 0xff;
    std::copy(std::begin(four), std::end(four), a.ip.begin() + 12);
  } else if (inet_pton(AF_INET6, address.c_str(), a.ip.data()) != 1) {
    throw usage_error(fmt::format("{}: '{}': '{}' is no IPv4 or IPv6 address", option, text, address));
  }
  if (!may_be_hosts(a.ip))
    throw usage_error(fmt::format("{}: '{}': '{}' is not an interface's", option, text, address));
  return a;
}

}  // namespace rnic::program
