// SPDX-License-Identifier: Apache-2.0
// ACCESS_REG: registers of a port by their number (net/fw.c: mlx4_ACCESS_REG; include/linux/mlx4/device.h).
#include <algorithm>

#include "firmware/firmware.h"
#include "model/mac/mac_cr.h"

namespace rnic::firmware {

using register_bus::cr_base;
namespace a = abi::access_reg;

namespace {

/// Link modes of a rate, over a cable of copper and over fibre; none: the register has no bit for it.
struct modes_of_rate {
  std::uint32_t mbps, copper, fibre;
};
constexpr std::uint32_t mode(unsigned n) { return 1u << n; }
constexpr modes_of_rate link_modes[] = {
    {1'000, mode(abi::ptys::mode_1000base_cx_sgmii), mode(abi::ptys::mode_1000base_cx_sgmii)},
    {10'000, mode(abi::ptys::mode_10gbase_cr), mode(abi::ptys::mode_10gbase_sr)},
    {20'000, mode(abi::ptys::mode_20gbase_kr2), mode(abi::ptys::mode_20gbase_kr2)},
    {40'000, mode(abi::ptys::mode_40gbase_cr4), mode(abi::ptys::mode_40gbase_sr4)},
    {56'000, mode(abi::ptys::mode_56gbase_cr4), mode(abi::ptys::mode_56gbase_sr4)},
};

const modes_of_rate* modes_of(std::uint32_t mbps) {
  const auto found = std::find_if(std::begin(link_modes), std::end(link_modes),
                                  [mbps](const modes_of_rate& m) { return m.mbps == mbps; });
  return found == std::end(link_modes) ? nullptr : found;
}

}  // namespace

bool has_link_mode(std::uint32_t mbps) { return modes_of(mbps) != nullptr; }

/// The command is done when it could be understood; what became of the register is in the register's own status.
abi::status firmware::access_reg(command_request& r) {
  constexpr std::size_t bytes = a::data + abi::ptys::bytes;
  if (const status s = read_mailbox(r, bytes); s != status::ok) return s;
  if (in(a::tlv) != a::operation_tlv || (in(a::data_tlv)&a::data_tlv_mask) != a::data_tlv_type)
    return status::bad_param;
  out_.fill(0);
  std::copy_n(in_.begin(), bytes, out_.begin());
  std::uint8_t result = a::not_supported;
  if (in(a::id) == abi::ptys::id) result = access_ptys();
  put(a::register_status, result);
  return write_mailbox(r, bytes);
}

/// A port has the rate that it was built with, and the cable that lies there: one link mode, and none to choose from.
std::uint8_t firmware::access_ptys() {
  namespace f = abi::ptys;
  constexpr std::size_t at = a::data;
  if (in(a::length) < f::bytes / 4 + 1) return a::bad_parameter;
  if (in(a::method) != a::query && in(a::method) != a::write) return a::bad_method;
  const std::uint32_t port = in(f::local_port, at);
  if (!valid_port(port) || in(f::protocols, at) != f::protocol_ethernet) return a::bad_parameter;
  const modes_of_rate* modes = modes_of(chip_.read_port(cr_base::mac, port - 1, mac::cr::link_rate));
  if (modes == nullptr) return a::not_supported;
  const std::uint32_t medium = chip_.read_port(cr_base::mac, port - 1, mac::cr::link_medium);
  const std::uint32_t can = medium == mac::cr::medium_copper  ? modes->copper
                            : medium == mac::cr::medium_fibre ? modes->fibre
                                                              : modes->copper | modes->fibre;
  if (in(a::method) == a::write) return in(f::admin, at) == can ? a::ok : a::bad_parameter;
  const bool up = (chip_.read_port(cr_base::mac, port - 1, mac::cr::port_status) & 1) != 0;
  std::uint8_t* const to = out_.data() + at;
  std::fill_n(to, f::bytes, std::uint8_t{0});
  abi::set(to, f::local_port, static_cast<std::uint8_t>(port));
  abi::set(to, f::protocols, f::protocol_ethernet);
  abi::set(to, f::capability, can);
  abi::set(to, f::admin, can);
  abi::set(to, f::oper, up ? can : 0);
  return a::ok;
}

}  // namespace rnic::firmware
