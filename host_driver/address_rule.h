// SPDX-License-Identifier: Apache-2.0
// What a program gives ibv_create_flow for one destination address.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>

namespace rnic::host_driver {

/// The attributes with their only specification behind them.
struct address_rule {
  ibv_flow_attr attr{};
  ibv_flow_spec_eth spec{};

  /// `mac`: six bytes; `port` from 1 on.
  address_rule(const std::uint8_t* mac, unsigned port) {
    attr.type = IBV_FLOW_ATTR_NORMAL;
    attr.size = sizeof *this;
    attr.num_of_specs = 1;
    attr.port = static_cast<std::uint8_t>(port);
    spec.type = IBV_FLOW_SPEC_ETH;
    spec.size = sizeof spec;
    std::copy_n(mac, sizeof spec.val.dst_mac, spec.val.dst_mac);
    std::fill_n(spec.mask.dst_mac, sizeof spec.mask.dst_mac, std::uint8_t{0xff});
  }
};

}  // namespace rnic::host_driver
