// SPDX-License-Identifier: Apache-2.0
// A flow steering rule byte by byte, as a function's driver puts it into its mailbox, or one that means harm.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "model/abi/command_set.h"
#include "testbenches/system/ethernet/station.h"
#include "testbenches/system/functions/shared_card.h"

namespace rnic::system_test {

struct raw_rule {
  std::array<std::uint8_t, 256> m{};
  std::size_t length = abi::flow_rule::control_bytes;

  explicit raw_rule(std::uint32_t qpn, std::uint16_t priority = abi::flow_rule::domain_verbs) {
    namespace f = abi::flow_rule;
    abi::set(m.data(), f::priority, priority);
    abi::set(m.data(), f::port, 1);
    abi::set(m.data(), f::flags, f::flag_loopback);
    abi::set(m.data(), f::qpn, qpn);
  }
  std::uint8_t* add(std::uint16_t id, std::size_t size) {
    namespace f = abi::flow_rule;
    std::uint8_t* h = m.data() + length;
    length += size;
    abi::set(h, f::header_words, static_cast<std::uint8_t>(size / 4));
    abi::set(h, f::header_id, id);
    return h;
  }
  raw_rule& ethernet(const bytes& mac, const bytes& mask = bytes(6, 0xff)) {
    namespace f = abi::flow_rule;
    std::uint8_t* h = add(f::id_ethernet, f::ethernet_bytes);
    std::copy(mac.begin(), mac.end(), h + f::dmac);
    std::copy(mask.begin(), mask.end(), h + f::dmac_mask);
    return *this;
  }
  raw_rule& ipv4(std::uint32_t to = 0, std::uint32_t mask = 0) {
    namespace f = abi::flow_rule;
    std::uint8_t* h = add(f::id_ipv4, f::ipv4_bytes);
    abi::set(h, f::destination_ip, to);
    abi::set(h, f::destination_ip_mask, mask);
    return *this;
  }
  raw_rule& udp() { return add(abi::flow_rule::id_udp, abi::flow_rule::ports_bytes), *this; }
  /// Of whose header nobody knows the size (include/linux/mlx4/device.h: MLX4_NET_TRANS_RULE_ID_IPV6).
  raw_rule& ipv6(std::size_t size) { return add(0xe003, size), *this; }
  raw_rule& ib(std::uint8_t first, std::uint8_t mask) {
    namespace f = abi::flow_rule;
    std::uint8_t* h = add(f::id_ib, f::ib_bytes);
    h[f::dgid] = first;
    std::fill_n(h + f::dgid_mask, 16, mask);
    return *this;
  }
  template <class T>
  raw_rule& with(abi::field<T> field, T value) {
    abi::set(m.data(), field, value);
    return *this;
  }
  /// The command's error; its status is the channel's.
  int attach(host_driver::device& dev, std::uint64_t* id = nullptr) const {
    host_driver::command_channel::mailbox box(dev.commands());
    std::copy(m.begin(), m.end(), box.data());
    std::uint64_t none = 0;
    return dev.commands().execute({abi::opcode::flow_steering_attach, static_cast<std::uint32_t>(length / 4), 0,
                                   box.address(), 0, id != nullptr ? id : &none});
  }
};

inline bytes mac_of(const host_driver::device& dev, unsigned port = 1) {
  const auto& mac = dev.port(port).mac;
  return bytes(mac.begin(), mac.end());
}

inline hosts::two_nodes_config managed_cards(unsigned functions) {
  hosts::two_nodes_config c = shared_cards(functions);
  c.node.driver.steering = host_driver::config::steering_mode::device_managed;
  return c;
}

}  // namespace rnic::system_test
