// SPDX-License-Identifier: Apache-2.0
#include "host_driver/dcb/port_commands.h"

#include <algorithm>
#include <cerrno>

#include "host_driver/dcb/dcbx.h"
#include "model/abi/device.h"
#include "model/abi/endian.h"

namespace rnic::host_driver::dcb {

namespace f = abi::set_port;

namespace {

// net/mlx4_en.h, fw_qos.h
constexpr std::uint16_t group_of_vendor = 0, group_of_shares = 7, whole = 100, least_share = 1;
constexpr std::uint16_t unit_1_gbps = 4, no_limit = 0xff;
constexpr unsigned ethernet_overhead = 14 + 4 + 4;  // header, one tag, FCS

int command(device& dev, const command_channel::mailbox& box, f::selector what, unsigned port) {
  return dev.commands().write(box, abi::opcode::set_port, f::modifier(what, port), f::op_ethernet);
}

}  // namespace

int set_ets(device& dev, unsigned port, const wire::ets_table& table) {
  if (!supported(table)) return -EOPNOTSUPP;
  {
    command_channel::mailbox box(dev.commands());
    for (unsigned i = 0; i < 8; i += 2)
      box.data()[i / 2] = static_cast<std::uint8_t>(table.class_of[i] << 4 | table.class_of[i + 1]);
    if (const int error = command(dev, box, f::selector::prio2tc, port)) return error;
  }
  command_channel::mailbox box(dev.commands());
  std::uint16_t strict = 0;
  for (unsigned tc = 8; tc-- != 0;) {
    std::uint16_t group = group_of_vendor, percent = whole;
    if (table.algorithm[tc] == wire::selection::strict) group = strict++;
    if (table.algorithm[tc] == wire::selection::ets) {
      group = group_of_shares;
      percent = std::max<std::uint16_t>(table.percent[tc], least_share);
    }
    std::uint8_t* entry = box.data() + std::size_t{tc} * 8;
    abi::store16(entry, 0, group);
    abi::store16(entry, 2, percent);
    abi::store16(entry, 4, unit_1_gbps);
    abi::store16(entry, 6, no_limit);
  }
  return command(dev, box, f::selector::scheduler, port);
}

int set_pfc(device& dev, unsigned port, std::uint8_t priorities) {
  const config& cfg = dev.settings();
  const std::uint8_t pause = cfg.lossless_global_pause && priorities == 0 ? 1 : 0;
  command_channel::mailbox box(dev.commands());
  std::uint8_t* m = box.data();
  abi::set(m, f::flags, static_cast<std::uint8_t>(f::flag_mtu | f::flag_rx_pause | f::flag_tx_pause));
  abi::set(m, f::mtu, static_cast<std::uint16_t>(std::min(cfg.mtu + ethernet_overhead, 0xffffu)));
  abi::set(m, f::tx_pause, pause);
  abi::set(m, f::rx_pause, pause);
  abi::set(m, f::tx_pfc, priorities);
  abi::set(m, f::rx_pfc, priorities);
  return command(dev, box, f::selector::general, port);
}

}  // namespace rnic::host_driver::dcb
