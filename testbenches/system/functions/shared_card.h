// SPDX-License-Identifier: Apache-2.0
// Two hosts whose adapters have virtual functions, for tests that drive several of them from one program.
#pragma once

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {

inline hosts::two_nodes_config shared_cards(unsigned functions) {
  hosts::two_nodes_config c = default_system();
  c.node.functions = functions;
  return c;
}

/// The end of a function at port 1 of a host.
inline hosts::endpoint end_of(hosts::node& n, unsigned function) {
  hosts::endpoint e;
  e.device = &n.device(function);
  e.bus = &n.bus(function);
  return e;
}

/// A connection between functions; `host`: numbers of their addresses, this one and the next.
inline link connect(hosts::node& a, unsigned function_a, hosts::node& b, unsigned function_b, unsigned host,
                    hosts::connection_options options = {}) {
  options.ack_timeout = 8;
  hosts::endpoint ends[] = {end_of(a, function_a), end_of(b, function_b)};
  link l = make_link(ends[0], ends[1], options, host);
  return l;
}

/// A datagram of `length` bytes from `by`, by the way of `ah`, for queue pair `qpn`; the status of its completion.
inline ibv_wc_status send_datagram(const side& by, host_driver::address_handle* ah, std::uint32_t qpn,
                                   const hosts::buffer& from, std::uint32_t length) {
  EXPECT_NE(ah, nullptr);
  if (ah == nullptr) return IBV_WC_GENERAL_ERR;
  ibv_sge sge{from.address(), length, from.region->lkey};
  ibv_send_wr wr{}, *bad = nullptr;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.ud = {ah, qpn, hosts::datagram_qkey};
  hosts::require(by.dev().post_send(by.qp, &wr, &bad), "post_send");
  return by.wait_send(1000 * ms).status;
}

/// The same to the address of `to`.
inline ibv_wc_status send_datagram(const side& by, const hosts::connection_options& o, const hosts::endpoint& to,
                                   std::uint32_t qpn, const hosts::buffer& from, std::uint32_t length) {
  const ibv_ah_attr path = hosts::path_of(by.at, o, to);
  by.dev().add_neighbour(to.gid, to.mac);
  return send_datagram(by, by.dev().create_ah(by.at.pd, &path), qpn, from, length);
}

/// Initiates a function level reset of the function behind `bus` (PCI Express Base 7.8.4).
inline void initiate_reset(host_driver::bus_if& bus) {
  constexpr std::uint16_t device_control = 0x68;
  constexpr std::uint32_t initiate = 0x8000;
  bus.config_write32(device_control, bus.config_read32(device_control) | initiate);
}

/// What host b's adapter has counted.
inline std::uint64_t at_b(hosts::two_nodes& system, const std::string& counter) {
  return system.statistics().value("b.adapter." + counter);
}

}  // namespace rnic::system_test
