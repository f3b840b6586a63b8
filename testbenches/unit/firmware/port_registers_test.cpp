// SPDX-License-Identifier: Apache-2.0
// ACCESS_REG with PTYS as net/fw.c and net/en_ethtool.c use it, SET_PORT's variants, DIAG_RPRT of ports, rates of
// virtual ports. Offsets and values are literal: they are those of the kernel's structures.
#include <gtest/gtest.h>

#include <cstring>

#include "model/gid/gid_cr.h"
#include "model/mac/mac_cr.h"
#include "model/transport/transport_cr.h"
#include "testbenches/unit/firmware/driver_model.h"

namespace rnic {

using abi::opcode;
using abi::status;
using register_bus::cr_base;

namespace {

constexpr std::size_t reg = 20;  // MLX4_ACCESS_REG_HEADER_SIZE
constexpr std::uint8_t query = 1, write = 2;
constexpr std::uint16_t ptys = 0x5004;

/// The header that mlx4_ACCESS_REG fills in, for a register of 52 bytes, and a struct mlx4_ptys_reg.
status access(driver_model& d, std::uint8_t method, std::uint8_t port, std::uint32_t admin = 0, std::uint16_t id = ptys,
              std::uint8_t protocols = 1 << 2) {
  d.clear_in();
  abi::store16(d.in(), 0, 0x1 << 11 | 0x4);
  abi::store16(d.in(), 4, id);
  d.in()[6] = method;
  d.in()[7] = 1;
  abi::store16(d.in(), 16, (52 / 4 + 1) | 3 << 12);
  d.in()[reg + 1] = port;
  d.in()[reg + 3] = protocols;
  abi::store32(d.in(), reg + 0x18, admin);
  return d.run(opcode::access_reg);
}
std::uint8_t register_status(driver_model& d) { return d.out()[2] & 0x7f; }

void cable(driver_model& d, unsigned port, std::uint32_t mbps, std::uint32_t medium, bool up) {
  d.hw.reg(cr_base::mac, mac::cr::link_rate, port) = mbps;
  d.hw.reg(cr_base::mac, mac::cr::link_medium, port) = medium;
  d.hw.reg(cr_base::mac, mac::cr::port_status, port) = up ? 3 : 2;
}

status general(driver_model& d, std::uint8_t flags2, std::uint8_t flags, std::uint8_t mode, unsigned port = 1) {
  d.clear_in();
  d.in()[2] = flags2;
  d.in()[3] = flags;
  d.in()[4] = mode;
  return d.run(opcode::set_port, port, 1);
}

firmware::firmware_config with_functions(std::uint16_t n) {
  firmware::firmware_config c;
  c.total_vfs = n;
  return c;
}

}  // namespace

/// Link mode numbers of enum mlx4_link_mode: CR4 of 40 Gb/s is 6, SR4 15; CR of 10 Gb/s 12, SR 13.
TEST(AccessReg, PtysTellsTheModeOfRateAndCable) {
  driver_model d;
  d.bring_up();
  struct row {
    std::uint32_t mbps, medium, mode;
  };
  for (const row& r : {row{40'000, mac::cr::medium_copper, 1u << 6}, row{40'000, mac::cr::medium_fibre, 1u << 15},
                       row{10'000, mac::cr::medium_copper, 1u << 12}, row{10'000, mac::cr::medium_fibre, 1u << 13},
                       row{56'000, mac::cr::medium_copper, 1u << 17}, row{56'000, mac::cr::medium_fibre, 1u << 18},
                       row{20'000, mac::cr::medium_copper, 1u << 5}, row{1'000, mac::cr::medium_copper, 1u << 0}}) {
    cable(d, 1, r.mbps, r.medium, true);
    ASSERT_EQ(access(d, query, 2), status::ok);
    EXPECT_EQ(register_status(d), 0);
    EXPECT_EQ(abi::load16(d.out(), 0), 0x0804);
    EXPECT_EQ(d.out()[reg + 1], 2);
    EXPECT_EQ(d.out()[reg + 3], 4);
    for (const unsigned field : {0x0cu, 0x18u, 0x24u}) EXPECT_EQ(abi::load32(d.out(), reg + field), r.mode) << r.mbps;
    EXPECT_EQ(abi::load32(d.out(), reg + 0x30), 0u) << "nobody negotiates";
    EXPECT_EQ(d.out()[reg] & 0x60, 0) << "nothing to be disabled";
  }
}

TEST(AccessReg, ALinkThatIsDownHasNoOperationalMode) {
  driver_model d;
  d.bring_up();
  cable(d, 0, 40'000, mac::cr::medium_copper, false);
  ASSERT_EQ(access(d, query, 1), status::ok);
  EXPECT_EQ(abi::load32(d.out(), reg + 0x0c), 1u << 6);
  EXPECT_EQ(abi::load32(d.out(), reg + 0x24), 0u);
  cable(d, 0, 40'000, mac::cr::medium_none, false);
  ASSERT_EQ(access(d, query, 1), status::ok);
  EXPECT_EQ(abi::load32(d.out(), reg + 0x0c), 1u << 6 | 1u << 15) << "whatever cable will come";
}

/// A port has one mode: another one is refused by the register, as one that the port cannot do.
TEST(AccessReg, AnAdministratorCannotChooseWhatThePortCannotDo) {
  driver_model d;
  d.bring_up();
  cable(d, 0, 40'000, mac::cr::medium_copper, true);
  ASSERT_EQ(access(d, write, 1, 1u << 6), status::ok);
  EXPECT_EQ(register_status(d), 0);
  for (const std::uint32_t admin : {1u << 12, 1u << 6 | 1u << 12, 0u}) {
    ASSERT_EQ(access(d, write, 1, admin), status::ok) << "the command is understood";
    EXPECT_EQ(register_status(d), 7) << admin;
  }
  ASSERT_EQ(access(d, query, 1), status::ok);
  EXPECT_EQ(abi::load32(d.out(), reg + 0x18), 1u << 6) << "as it was";
}

TEST(AccessReg, WhatIsWrongHasTheRegistersStatus) {
  driver_model d;
  d.bring_up();
  cable(d, 0, 40'000, mac::cr::medium_copper, true);
  ASSERT_EQ(access(d, query, 1, 0, 0x5002), status::ok);
  EXPECT_EQ(register_status(d), 4) << "no such register";
  ASSERT_EQ(access(d, 5, 1), status::ok);
  EXPECT_EQ(register_status(d), 6) << "no such method";
  for (const std::uint8_t port : {std::uint8_t{0}, std::uint8_t{3}}) {
    ASSERT_EQ(access(d, query, port), status::ok);
    EXPECT_EQ(register_status(d), 7) << unsigned{port};
  }
  ASSERT_EQ(access(d, query, 1, 0, ptys, 1), status::ok);
  EXPECT_EQ(register_status(d), 7) << "InfiniBand";
  cable(d, 0, 100'000, mac::cr::medium_copper, true);
  ASSERT_EQ(access(d, query, 1), status::ok);
  EXPECT_EQ(register_status(d), 4) << "no bit for such a rate";
  d.clear_in();
  EXPECT_EQ(d.run(opcode::access_reg), status::bad_param) << "no header";
}

TEST(AccessReg, IsAnnouncedWhereEachPortHasALinkMode) {
  EXPECT_TRUE(firmware::has_link_mode(40'000));
  EXPECT_FALSE(firmware::has_link_mode(100'000));
  for (const bool modes : {true, false}) {
    firmware::firmware_config c;
    c.link_modes = modes;
    driver_model d(c);
    d.bring_up();
    ASSERT_EQ(d.run(opcode::query_dev_cap), status::ok);
    EXPECT_EQ(d.out()[0x7a] & 0x20, modes ? 0x20 : 0);
  }
}

/// The register is written when the mode changes: every driver says the usual one with each of its SET_PORT.
TEST(SetPort, RoceModeIsThePorts) {
  driver_model d;
  d.bring_up();
  const auto mode = [&](unsigned port) -> std::uint32_t& { return d.hw.reg(cr_base::gid, gid::cr::roce_v2, port); };
  mode(0) = mode(1) = 1;
  const std::size_t before = d.hw.writes.size();
  EXPECT_EQ(general(d, 0, 1 << 4, 2 << 4), status::ok);
  EXPECT_EQ(d.hw.writes.size(), before);
  EXPECT_EQ(general(d, 0, 1 << 4, 0, 2), status::ok);
  EXPECT_EQ(mode(0), 1u);
  EXPECT_EQ(mode(1), 0u);
  for (const unsigned wrong : {1u << 4, 3u << 4, 4u << 4})
    EXPECT_EQ(general(d, 0, 1 << 4, static_cast<std::uint8_t>(wrong)), status::bad_param);
  d.fill_qp(icm::service::rc, 0x80, 0x80);
  EXPECT_EQ(general(d, 0, 0, 2 << 4, 2), status::ok) << "without its valid bit";
  EXPECT_EQ(mode(1), 0u);
  EXPECT_EQ(d.run(opcode::close_hca), status::ok);
  EXPECT_EQ(mode(1), 1u);
  firmware::firmware_config first;
  first.roce_v2 = false;
  driver_model one(first);
  one.bring_up();
  EXPECT_EQ(general(one, 0, 1 << 4, 2 << 4), status::bad_param);
  EXPECT_EQ(general(one, 0, 1 << 4, 0), status::ok);
}

/// Fields of capabilities that are not announced: user_mac, PHV, beacon, VXLAN. user_mtu comes from every driver.
TEST(SetPort, WhatIsNotAnnouncedIsRefused) {
  driver_model d;
  d.bring_up();
  EXPECT_EQ(general(d, 1 << 5, 0, 0), status::ok) << "user_mtu";
  EXPECT_EQ(general(d, 1 << 6, 0, 0), status::bad_param) << "user_mac";
  EXPECT_EQ(general(d, 1 << 4, 0, 0), status::bad_param) << "PHV";
  EXPECT_EQ(general(d, 0, 1 << 3, 0), status::bad_param);
  d.clear_in();
  EXPECT_EQ(d.run(opcode::set_port, 1, 4), status::bad_op) << "beacon";
  EXPECT_EQ(d.run(opcode::set_port, 0xb01, 1), status::bad_op) << "VXLAN";
  EXPECT_EQ(d.run(opcode::set_port, 0x401, 1), status::bad_op) << "priority map";
  EXPECT_EQ(d.run(opcode::set_port, 0x001, 0), status::bad_param) << "an InfiniBand port's";
  ASSERT_EQ(d.run(opcode::query_dev_cap), status::ok);
  EXPECT_EQ(d.out()[0x5c] & 0x04, 0) << "USER_MAC_EN";
  EXPECT_EQ(d.out()[0x96] & 0xc0, 0) << "PHV_EN, SKIP_OUTER_VLAN";
  EXPECT_EQ(d.out()[0x34] & 0x80, 0) << "PORT_BEACON";
  EXPECT_EQ(d.out()[0x9e] & 0x08, 0) << "VXLAN_OFFLOADS";
}

TEST(SetPort, IgnoreFcsIsAFlagOfItsOwn) {
  driver_model d;
  d.bring_up();
  const auto now = [&] { return d.hw.reg(cr_base::mac, mac::cr::ignore_fcs); };
  EXPECT_EQ(general(d, 0, 0, 1), status::ok);
  EXPECT_EQ(now(), 0u) << "without its valid bit";
  EXPECT_EQ(general(d, 1 << 1, 0, 1), status::ok);
  EXPECT_EQ(now(), 1u);
  EXPECT_EQ(general(d, 1 << 1, 0, 0), status::ok);
  EXPECT_EQ(now(), 0u);
}

/// The first table of GIDs, without versions: all are of RoCE v1, 16 bytes apart.
TEST(SetPort, TheTableOfTheFirstGenerationHasVersionOneAlone) {
  driver_model d;
  d.bring_up();
  d.clear_in();
  d.in()[16 * 3 + 1] = 0x77;
  ASSERT_EQ(d.run(opcode::set_port, 0x501, 1), status::ok);
  EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::gid_word(3, 0)), 0x00770000u);
  EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::gid_word(3, 4)), gid::cr::gid_valid);
  EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::gid_word(4, 4)), 0u);
}

TEST(DiagRprt, AsksThePortsRegisters) {
  driver_model d;
  d.bring_up();
  namespace t = transport::cr;
  const auto requester = [&](unsigned block, std::uint32_t at) -> std::uint32_t& {
    return d.hw.reg(cr_base::transport, t::diagnostics + block * t::diagnostics_stride + at);
  };
  const auto responder = [&](unsigned block, std::uint32_t at) -> std::uint32_t& {
    return d.hw.reg(cr_base::transport, t::responder_offset + t::diagnostics + block * t::diagnostics_stride + at);
  };
  for (unsigned block = 0; block < 3; ++block) {
    requester(block, 0x134) = 10 + block;
    responder(block, 0x130) = 20 + block;
  }
  for (unsigned port = 0; port < 3; ++port) {
    ASSERT_EQ(d.run(opcode::diag_rprt, port, 2), status::ok);
    EXPECT_EQ(abi::load32(d.out(), 0x134), 10 + port);
    EXPECT_EQ(abi::load32(d.out(), 0x130), 20 + port);
  }
  EXPECT_EQ(d.run(opcode::diag_rprt, 3, 2), status::bad_param);
  EXPECT_EQ(d.run(opcode::diag_rprt, 0, 0), status::bad_op);
}

/// Mailboxes of struct mlx4_alloc_vpp_param and struct mlx4_set_vport_context.
TEST(VirtualPorts, RatesGoToTheRegistersOfTheRequester) {
  driver_model d(with_functions(4));
  d.bring_up();
  ASSERT_EQ(d.run(opcode::query_dev_cap), status::ok);
  EXPECT_EQ(d.out()[0x7a] & 0x10, 0x10);
  ASSERT_EQ(d.run(opcode::allocate_vpp, 1, 1), status::ok);
  EXPECT_EQ(abi::load32(d.out(), 0), 128u);
  EXPECT_EQ(abi::load32(d.out(), 4), 0u);
  d.clear_in();
  abi::store32(d.in(), 0x20 + 4, 1'000);
  abi::store32(d.in(), 0x20 + 12, 1u << 31);
  EXPECT_EQ(d.run(opcode::set_vport_qos, 2 << 8 | 1), status::bad_param) << "no virtual port may have a rate yet";
  d.clear_in();
  abi::store32(d.in(), 4, 129);
  EXPECT_EQ(d.run(opcode::allocate_vpp, 1), status::exceed_lim);
  abi::store32(d.in(), 4, 128);
  EXPECT_EQ(d.run(opcode::allocate_vpp, 1), status::ok) << "all of them";
  abi::store32(d.in(), 4, 4);
  ASSERT_EQ(d.run(opcode::allocate_vpp, 1), status::ok);
  ASSERT_EQ(d.run(opcode::allocate_vpp, 1, 1), status::ok);
  EXPECT_EQ(abi::load32(d.out(), 4), 4u);
  d.clear_in();
  abi::store32(d.in(), 0x20 + 4, 1'000);
  abi::store32(d.in(), 0x20 + 12, 1u << 31);
  d.hw.writes.clear();
  ASSERT_EQ(d.run(opcode::set_vport_qos, 2 << 8 | 1), status::ok);
  const std::uint32_t base = static_cast<std::uint32_t>(cr_base::transport);
  ASSERT_EQ(d.hw.writes.size(), 16u);
  using write_of = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(d.hw.writes[0], (write_of{base + transport::cr::vport_select, 2u}));
  EXPECT_EQ(d.hw.writes[1], (write_of{base + transport::cr::vport_rate, 1'000'000u})) << "kb/s";
  EXPECT_EQ(d.hw.writes[2], (write_of{base + transport::cr::vport_select, 2u | 1u << 8}));
  EXPECT_EQ(d.hw.writes[3], (write_of{base + transport::cr::vport_rate, 0u}));
  EXPECT_EQ(d.run(opcode::set_vport_qos, 5 << 8 | 1), status::bad_param) << "no such function";
  EXPECT_EQ(d.run(opcode::set_vport_qos, 0 << 8 | 1), status::bad_param) << "everybody's has no rate";
  EXPECT_EQ(d.run(opcode::set_vport_qos, 2 << 8 | 2), status::bad_param) << "nothing was given at the other port";
  EXPECT_EQ(d.run(opcode::set_vport_qos, 2 << 8 | 3), status::bad_param);
  abi::store32(d.in(), 0x20, 1);
  EXPECT_EQ(d.run(opcode::set_vport_qos, 2 << 8 | 1), status::bad_param) << "a share";
  d.hw.reg(cr_base::transport, transport::cr::vport_rate) = 250'000;
  ASSERT_EQ(d.run(opcode::set_vport_qos, 2 << 8 | 1, 1), status::ok);
  EXPECT_EQ(abi::load32(d.out(), 0x20 + 4), 250u);
  EXPECT_EQ(abi::load32(d.out(), 0x20 + 12), 1u << 31);
}

TEST(SetMulticastFilter, HoldsWhatTheFilterDoes) {
  driver_model d;
  d.bring_up();
  const std::uint64_t first = 0x01005e000000;
  EXPECT_EQ(d.run_immediate(opcode::set_mcast_fltr, std::uint64_t{1} << 63, 1), status::ok);
  for (unsigned i = 0; i < 1024; ++i) ASSERT_EQ(d.run_immediate(opcode::set_mcast_fltr, first + i, 1), status::ok) << i;
  EXPECT_EQ(d.run_immediate(opcode::set_mcast_fltr, first + 1024, 1), status::exceed_lim);
  EXPECT_EQ(d.run_immediate(opcode::set_mcast_fltr, first, 2), status::ok) << "the other port has its own";
  EXPECT_EQ(d.run_immediate(opcode::set_mcast_fltr, std::uint64_t{1} << 63 | first, 1), status::ok);
}

TEST(VirtualPorts, AreThoseOfFunctions) {
  driver_model d;
  d.bring_up();
  EXPECT_EQ(d.run(opcode::allocate_vpp, 1, 1), status::bad_op);
  EXPECT_EQ(d.run(opcode::set_vport_qos, 1, 1), status::bad_op);
  ASSERT_EQ(d.run(opcode::query_dev_cap), status::ok);
  EXPECT_EQ(d.out()[0x7a] & 0x10, 0);
}

TEST(VirtualPorts, OneVirtualPortMoreThanWereGiven) {
  driver_model d(with_functions(4));
  d.bring_up();
  d.clear_in();
  abi::store32(d.in(), 4, 2);
  ASSERT_EQ(d.run(opcode::allocate_vpp, 1), status::ok);
  d.clear_in();
  abi::store32(d.in(), 0x20 + 4, 1'000);
  abi::store32(d.in(), 0x20 + 12, 1u << 31);
  EXPECT_EQ(d.run(opcode::set_vport_qos, 2 << 8 | 1), status::ok);
  EXPECT_EQ(d.run(opcode::set_vport_qos, 3 << 8 | 1), status::bad_param);
}

}  // namespace rnic
