// SPDX-License-Identifier: Apache-2.0
#include "host_driver/link_settings.h"

#include <array>
#include <cerrno>

#include "model/abi/command_set.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

namespace {

namespace p = abi::ptys;

/// Bits of the register, and what ethtool makes of them (net/en_ethtool.c: mlx4_en_init_ptys2ethtool_map).
struct link_mode {
  unsigned bit;
  std::uint32_t mbps;
  const char* name;
  link_settings::connector port;
};
using connector = link_settings::connector;
constexpr link_mode modes[] = {{24, 100, "100baseT/Full", connector::twisted_pair},
                               {25, 1'000, "1000baseT/Full", connector::twisted_pair},
                               {p::mode_1000base_cx_sgmii, 1'000, "1000baseX/Full", connector::fibre},
                               {p::mode_1000base_kx, 1'000, "1000baseKX/Full", connector::none},
                               {26, 10'000, "10000baseT/Full", connector::twisted_pair},
                               {2, 10'000, "10000baseKX4/Full", connector::other},
                               {3, 10'000, "10000baseKX4/Full", connector::none},
                               {4, 10'000, "10000baseKR/Full", connector::none},
                               {p::mode_10gbase_cr, 10'000, "10000baseCR/Full", connector::direct_attach},
                               {p::mode_10gbase_sr, 10'000, "10000baseSR/Full", connector::fibre},
                               {p::mode_20gbase_kr2, 20'000, "20000baseKR2/Full", connector::none},
                               {p::mode_40gbase_cr4, 40'000, "40000baseCR4/Full", connector::direct_attach},
                               {7, 40'000, "40000baseKR4/Full", connector::none},
                               {p::mode_40gbase_sr4, 40'000, "40000baseSR4/Full", connector::fibre},
                               {8, 56'000, "56000baseKR4/Full", connector::none},
                               {p::mode_56gbase_cr4, 56'000, "56000baseCR4/Full", connector::direct_attach},
                               {p::mode_56gbase_sr4, 56'000, "56000baseSR4/Full", connector::fibre}};

std::vector<std::string> names_of(std::uint32_t bits) {
  std::vector<std::string> all;
  for (const link_mode& m : modes)
    if ((bits >> m.bit & 1) != 0) all.emplace_back(m.name);
  return all;
}

/// The connector of any of the modes; twisted pair before fibre before copper cables, as the kernel looks.
connector connector_of(std::uint32_t bits) {
  for (const connector c : {connector::twisted_pair, connector::fibre, connector::direct_attach, connector::none})
    for (const link_mode& m : modes)
      if (m.port == c && (bits >> m.bit & 1) != 0) return c;
  return connector::other;
}

std::uint32_t modes_of(std::uint32_t mbps) {
  std::uint32_t bits = 0;
  for (const link_mode& m : modes)
    if (m.mbps == mbps) bits |= 1u << m.bit;
  return bits;
}

using ptys_register = std::array<std::uint8_t, p::bytes>;

/// net/fw.c: mlx4_ACCESS_REG.
int access(device& d, std::uint8_t method, ptys_register& reg) {
  namespace a = abi::access_reg;
  command_channel::mailbox in(d.commands()), out(d.commands());
  abi::set(in.data(), a::tlv, a::operation_tlv);
  abi::set(in.data(), a::register_class, std::uint8_t{1});
  abi::set(in.data(), a::id, p::id);
  abi::set(in.data(), a::method, method);
  abi::set(in.data(), a::data_tlv, static_cast<std::uint16_t>(a::data_tlv_type | (p::bytes / 4 + 1)));
  std::copy(reg.begin(), reg.end(), in.data() + a::data);
  if (const int error = d.commands().execute({abi::opcode::access_reg, 0, 0, in.address(), out.address(), nullptr}))
    return error;
  if (abi::get(out.data(), a::register_status) != a::ok) return -EIO;
  std::copy_n(out.data() + a::data, reg.size(), reg.begin());
  return 0;
}

int read(device& d, unsigned port, ptys_register& reg) {
  if (!d.is_open() || port == 0 || port > d.num_ports()) return -EINVAL;
  if (d.is_virtual() || !d.caps().eth_prot_ctrl) return -EOPNOTSUPP;
  reg.fill(0);
  abi::set(reg.data(), p::local_port, static_cast<std::uint8_t>(port));
  abi::set(reg.data(), p::protocols, p::protocol_ethernet);
  return access(d, abi::access_reg::query, reg);
}

}  // namespace

int query_link_settings(device& d, unsigned port, link_settings* out) {
  ptys_register reg;
  if (const int error = read(d, port, reg)) return error;
  const auto get = [&](auto field) { return abi::get(reg.data(), field); };
  out->supported = names_of(get(p::capability));
  out->advertised = names_of(get(p::admin));
  out->partner = names_of(get(p::partner));
  out->port = connector_of(get(p::oper) != 0 ? get(p::oper) : get(p::capability));
  out->speed_mbps = 0;
  for (const link_mode& m : modes)
    if ((get(p::oper) >> m.bit & 1) != 0) out->speed_mbps = m.mbps;
  return 0;
}

int set_link_speed(device& d, unsigned port, std::uint32_t speed_mbps) {
  ptys_register reg;
  if (const int error = read(d, port, reg)) return error;
  const std::uint32_t can = abi::get(reg.data(), p::capability);
  const std::uint32_t wanted = speed_mbps == 0 ? can : modes_of(speed_mbps) & can;
  if (wanted == 0) return -EINVAL;
  abi::set(reg.data(), p::admin, wanted);
  return access(d, abi::access_reg::write, reg);
}

}  // namespace rnic::host_driver
