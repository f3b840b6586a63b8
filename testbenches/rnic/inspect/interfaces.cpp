// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/inspect/interfaces.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <regex>

#include "testbenches/bench/usage_error.h"

namespace rnic::program {

std::string interface_name::text() const {
  return vlan == host_driver::no_vlan ? fmt::format("eth{}", port) : fmt::format("eth{}.{}", port, vlan);
}

std::string interface_of(unsigned port, const host_driver::gid_row& row) {
  return interface_name{port, row.vlan}.text();
}

interface_address parse_address(const std::string& option, const std::string& text) {
  static const std::regex form(R"(eth([12])(?:\.(\d{1,4}))?(?::\w+)?=(.+))");
  std::smatch parts;
  if (!std::regex_match(text, parts, form))
    throw usage_error(fmt::format(
        "{}: '{}': expected an interface (eth1, eth2, eth1.VLAN, eth1:ALIAS), '=' and an address", option, text));
  interface_address a;
  a.at.port = static_cast<unsigned>(std::stoul(parts[1]));
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
  if (a.ip[0] == 0xff || std::all_of(a.ip.begin(), a.ip.end(), [](std::uint8_t b) { return b == 0; }))
    throw usage_error(fmt::format("{}: '{}': '{}' is not an interface's", option, text, address));
  return a;
}

}  // namespace rnic::program
