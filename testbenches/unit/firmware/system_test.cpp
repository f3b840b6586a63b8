// SPDX-License-Identifier: Apache-2.0
// Answers about the device, ports, groups and datagrams, and the statuses of what is wrong (control plane 4.23).
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/abi/device.h"
#include "model/command/command_cr.h"
#include "model/completion/completion_cr.h"
#include "model/gid/gid_cr.h"
#include "model/icm/icm_cr.h"
#include "model/icm/mgid_hash.h"
#include "model/mac/mac_cr.h"
#include "model/pcie/pcie_cr.h"
#include "model/transport/transport_cr.h"
#include "testbenches/source_tree.h"
#include "testbenches/unit/firmware/driver_model.h"

namespace rnic {

using abi::opcode;
using abi::status;
using register_bus::cr_base;

namespace {

firmware::firmware_config with_functions() {
  firmware::firmware_config c;
  c.total_vfs = 8;
  return c;
}

status mad(driver_model& d, std::uint16_t attribute, std::uint32_t port = 1) {
  d.clear_in();
  d.put(abi::mad::base_version, 1);
  d.put(abi::mad::management_class, 1);
  d.put(abi::mad::method, 1);
  d.put(abi::mad::attribute, attribute);
  return d.run(opcode::mad_ifc, port, 3);
}

}  // namespace

TEST(System, QueryFw) {
  driver_model d;
  ASSERT_EQ(d.run(opcode::query_fw), status::ok);
  EXPECT_EQ(abi::load16(d.out(), 0x02), 2);
  EXPECT_EQ(abi::load16(d.out(), 0x04), 5000);
  EXPECT_EQ(abi::load16(d.out(), 0x06), 42);
  EXPECT_EQ(abi::load16(d.out(), 0x0a), 3);
  EXPECT_EQ(d.out()[0x0f], 4);
  EXPECT_EQ(abi::load32(d.out(), 0x38), 16u);
}

/// Against the table of control plane 3.9, byte by byte; BlueFlame and 64-byte entries on, ALTC larger.
TEST(System, CapabilitiesAreProfileM) {
  driver_model d;
  d.bring_up();
  ASSERT_EQ(d.run(opcode::query_dev_cap), status::ok);
  const std::pair<std::size_t, unsigned> bytes[] = {
      {0x10, 0x0e}, {0x11, 0x0e}, {0x12, 6},    {0x13, 0x12}, {0x14, 0x60}, {0x15, 0x10}, {0x19, 0x16},
      {0x1a, 7},    {0x1b, 0x10}, {0x1d, 0x13}, {0x1e, 2},    {0x1f, 8},    {0x20, 0x40}, {0x22, 4},
      {0x29, 7},    {0x2b, 4},    {0x2d, 0x11}, {0x2e, 0x37}, {0x35, 0x0f}, {0x37, 0x82}, {0x38, 0x1f},
      {0x48, 0},    {0x49, 2},    {0x4b, 0x0c}, {0x4c, 0x80}, {0x4d, 9},    {0x4e, 3},    {0x51, 0x3e},
      {0x55, 0x20}, {0x61, 8},    {0x62, 0},    {0x63, 13},   {0x64, 0},    {0x65, 0x0f}, {0x66, 0},
      {0x67, 0x10}, {0x76, 0xa0}, {0x77, 248},  {0x7a, 0x20}, {0x7b, 1},    {0x9d, 0x42}, {0x9e, 0x20}};
  for (const auto& [offset, value] : bytes) EXPECT_EQ(d.out()[offset], value) << std::hex << offset;
  EXPECT_EQ(abi::load32(d.out(), 0x40), 0x60010705u);
  EXPECT_EQ(abi::load32(d.out(), 0x44), 0x4025804fu);  // with memory windows,
  EXPECT_EQ(abi::load32(d.out(), 0x70), 0x00910000u);
  EXPECT_EQ(abi::load32(d.out(), 0x94), 0x25080ec2u);  // and those of type 2B
  EXPECT_EQ(abi::load32(d.out(), 0x98), 0x500u);
  EXPECT_EQ(abi::load64(d.out(), 0xa0), 0x10000000000u);
  EXPECT_EQ(abi::load16(d.out(), 0x52), 0x3f0);
  EXPECT_EQ(abi::load16(d.out(), 0x82), 0x100);
  EXPECT_EQ(abi::load16(d.out(), 0x90), 8);
  EXPECT_EQ(abi::load16(d.out(), 0x92), 64);
}

TEST(System, BoardIdIsStoredWithReversedWords) {
  driver_model d;
  d.bring_up();
  ASSERT_EQ(d.run(opcode::query_adapter), status::ok);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(d.out()) + 0xf0, 4), "1_TM");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(d.out()) + 0xf4, 4), "1090");
}

TEST(System, QueryPortFollowsTheLink) {
  driver_model d;
  d.bring_up();
  ASSERT_EQ(d.run(opcode::query_port, 2), status::ok);
  EXPECT_EQ(d.out()[0], 0x02);
  EXPECT_EQ(d.out()[7], 0x77);
  EXPECT_EQ(d.out()[0x0a], 0x77);
  EXPECT_EQ(abi::load64(d.out(), 0x10), firmware::firmware_config{}.mac[1]);
  ASSERT_EQ(d.run(opcode::init_port, 2), status::ok);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::port_control, 1), 1u);
  EXPECT_FALSE(d.fw.serve()) << "no cable yet";
  d.hw.reg(cr_base::mac, mac::cr::port_status, 1) = 3;
  EXPECT_TRUE(d.fw.serve());
  ASSERT_EQ(d.hw.events.size(), 1u);
  EXPECT_EQ(d.hw.events[0].type, 0x09);
  EXPECT_EQ(d.hw.events[0].subtype, 4);
  EXPECT_EQ(d.hw.events[0].data[2], 0x20000000u);
  EXPECT_FALSE(d.fw.serve());
  ASSERT_EQ(d.run(opcode::query_port, 2), status::ok);
  EXPECT_EQ(d.out()[0], 0x82);
  ASSERT_EQ(d.run(opcode::init_port, 2), status::ok) << "idempotent";
  ASSERT_EQ(d.run(opcode::close_port, 2), status::ok);
  ASSERT_EQ(d.run(opcode::close_port, 2), status::ok);
  ASSERT_EQ(d.hw.events.size(), 2u);
  EXPECT_EQ(d.hw.events[1].subtype, 1);
  ASSERT_EQ(d.run(opcode::init_port, 2), status::ok);
  EXPECT_TRUE(d.fw.serve());
  ASSERT_EQ(d.hw.events.size(), 3u) << "the link is there again";
  EXPECT_EQ(d.hw.events[2].subtype, 4);
}

TEST(System, EachPortHasAGuid) {
  firmware::firmware_config c;
  c.port_guid = {0x0123456789abcdef, 0xfedcba9876543210};
  driver_model d(c);
  d.bring_up();
  namespace f = abi::mod_stat_cfg_mailbox;
  for (const std::uint32_t port : {1u, 2u}) {
    ASSERT_EQ(d.run(opcode::mod_stat_cfg, port << 8, 2), status::ok);
    EXPECT_EQ(d.got(f::port_guid_high), c.port_guid[port - 1] >> 32);
    EXPECT_EQ(d.got(f::port_guid_low), c.port_guid[port - 1] & 0xffffffff);
  }
}

TEST(System, ServeTakesAndCompletesPolledAndEventCommands) {
  driver_model d;
  namespace cr = command::cr;
  d.hw.reg(cr_base::command, cr::status) = 1;
  d.hw.reg(cr_base::command, cr::control) = 0x031;
  EXPECT_TRUE(d.fw.serve());
  const auto& last = d.hw.writes.back();
  EXPECT_EQ(last.first, static_cast<std::uint32_t>(cr_base::command) + cr::complete);
  EXPECT_EQ(last.second, 0u);
  d.hw.reg(cr_base::command, cr::control) = 0xffa | cr::control_event;
  d.hw.reg(cr_base::command, cr::token) = 0xbeef;
  EXPECT_TRUE(d.fw.serve());
  ASSERT_EQ(d.hw.events.size(), 1u);
  EXPECT_EQ(d.hw.events[0].type, 0x0a);
  EXPECT_EQ(d.hw.events[0].data[0], 0xbeefu);
  EXPECT_EQ(d.hw.events[0].data[2], static_cast<std::uint32_t>(status::bad_sys_state));
}

TEST(Statuses, UnknownOrOutOfOrder) {
  driver_model d;
  EXPECT_EQ(d.run(static_cast<opcode>(0xf00)), status::bad_op);
  EXPECT_EQ(d.run(static_cast<opcode>(0x001)), status::bad_op);
  EXPECT_EQ(d.run(opcode::nop, 0, 5), status::bad_op) << "op modifier";
  EXPECT_EQ(d.run(opcode::run_fw), status::bad_param) << "no firmware area";
  EXPECT_EQ(d.run(opcode::query_dev_cap), status::bad_sys_state);
  EXPECT_EQ(d.run(opcode::map_icm, 1), status::bad_sys_state);
  EXPECT_EQ(d.run(opcode::sw2hw_cq, 0x80), status::bad_sys_state);
  EXPECT_EQ(d.run_immediate(opcode::query_fw, 0), status::ok);
  d.bring_up();
  EXPECT_EQ(d.run(opcode::init_hca), status::bad_sys_state) << "twice";
  EXPECT_EQ(d.run(opcode::query_port, 3), status::bad_param);
  EXPECT_EQ(d.run(opcode::query_port, 0), status::bad_param);
  EXPECT_EQ(d.run(opcode::set_port, 0xe01, 1), status::bad_op);
  EXPECT_EQ(d.run(opcode::map_icm, 257), status::bad_param);
  EXPECT_EQ(d.run(opcode::read_mcg, 1 << 13), status::bad_index);
  EXPECT_EQ(d.run_immediate(opcode::set_port, 0x1000, 1, 1), status::internal_error) << "mailbox out of reach";
}

TEST(Statuses, InitHcaChecksItsMailbox) {
  driver_model d;
  d.fill_map(8, 1);
  ASSERT_EQ(d.run(opcode::map_fa, 8), status::ok);
  ASSERT_EQ(d.run(opcode::run_fw), status::ok);
  ASSERT_EQ(d.run_immediate(opcode::set_icm_size, 1 << 30), status::ok);
  EXPECT_EQ(d.result, 16u);
  d.fill_init_hca();
  d.in()[0] = 7;
  EXPECT_EQ(d.run(opcode::init_hca), status::bad_param);
  d.fill_init_hca();
  d.put(abi::init_hca::log_qps, 25);
  EXPECT_EQ(d.run(opcode::init_hca), status::bad_param);
  d.fill_init_hca();
  d.put(abi::init_hca::log_mcg_bytes, 6);  // two members, and the kernel's driver takes no less than 2^7 bytes
  EXPECT_EQ(d.run(opcode::init_hca), status::bad_param);
  d.fill_init_hca();
  EXPECT_EQ(d.run(opcode::init_hca), status::ok);
  ASSERT_EQ(d.run(opcode::query_hca), status::ok);
  EXPECT_EQ(abi::get(d.out(), abi::init_hca::qpc_base), d.icm.qpc | 18);
  EXPECT_EQ(abi::load64(d.out(), 4), 0u);
  EXPECT_EQ(d.hw.reg(cr_base::transport, transport::cr::num_qps_log), 18u);
  EXPECT_EQ(d.hw.reg(cr_base::transport, transport::cr::responder_offset + transport::cr::reserved_lkey), 0x500u);
}

TEST(Icm, ContextsAreClearedWhateverTheHostsPagesHeld) {
  driver_model d;
  d.bring_up();
  const auto qp = d.hardware_context<icm::requester_context>(d.icm.qpc + 100 * 256);
  EXPECT_EQ(qp.qpn, 0u);
  d.fill_map(1, 6, d.icm.cqc + 0x40000);
  ASSERT_EQ(d.run(opcode::map_icm, 1), status::ok);
  EXPECT_EQ(d.hardware_context<icm::cq_context>(d.icm.cqc + 0x40000 + 0x80).valid, 0);
}

TEST(Icm, UnmapTakesWhatIsThere) {
  driver_model d;
  d.bring_up();
  const std::size_t before = d.hw.icm.size();
  d.fill_map(1, 2, 0x48000000);
  ASSERT_EQ(d.run(opcode::map_icm, 1), status::ok);
  EXPECT_EQ(d.hw.icm.size(), before + 4);
  ASSERT_EQ(d.run_immediate(opcode::unmap_icm, 0x48000000, 64), status::ok);
  EXPECT_EQ(d.hw.icm.size(), before);
  d.fill_map(1, 0, 0x123);
  EXPECT_EQ(d.run(opcode::map_icm, 1), status::bad_param);
}

TEST(Icm, RangesEndWithTheAddressSpace) {
  driver_model d;
  d.bring_up();
  const std::size_t before = d.hw.icm.size();
  const std::uint64_t last = ~std::uint64_t{0} - 4095;
  d.fill_map(1, 1, last);
  EXPECT_EQ(d.run(opcode::map_icm, 1), status::bad_param);
  d.fill_map(1, 0, last);
  ASSERT_EQ(d.run(opcode::map_icm, 1), status::ok);
  EXPECT_EQ(d.hw.icm.size(), before + 1);
  ASSERT_EQ(d.run_immediate(opcode::unmap_icm, last, 64), status::ok);
  EXPECT_EQ(d.hardware_context<icm::requester_context>(d.icm.qpc + 100 * 256).qpn, 0u) << "nothing else is gone";
}

/// A chunk that begins before a table holds entries of it as well.
TEST(Icm, ContextsAreClearedWhereverTheirChunkBegins) {
  driver_model d;
  d.bring_up();
  d.fill_map(1, 1, d.icm.qpc - 0x1000);
  const std::uint64_t pages = abi::load64(d.in(), abi::map_entry::bus_address.offset) & ~std::uint64_t{0xfff};
  std::fill_n(d.hw.host(pages), 0x2000, std::uint8_t{0xff});
  ASSERT_EQ(d.run(opcode::map_icm, 1), status::ok);
  EXPECT_EQ(d.hardware_context<icm::requester_context>(d.icm.qpc + 256).qpn, 0u);
}

TEST(Icm, ContextsOfEventQueuesAreCleared) {
  driver_model d;
  d.bring_up();
  d.fill_map(1, 0, d.icm.eqc);
  const std::uint64_t pages = abi::load64(d.in(), abi::map_entry::bus_address.offset) & ~std::uint64_t{0xfff};
  std::fill_n(d.hw.host(pages), 0x1000, std::uint8_t{0xff});
  ASSERT_EQ(d.run(opcode::map_icm, 1), status::ok);
  EXPECT_EQ(d.hardware_context<icm::eq_context>(d.icm.eqc + 3 * 64).valid, 0);
}

TEST(Icm, ChunksAreOfAGibibyteAtMost) {
  driver_model d;
  d.clear_in();
  d.put(abi::map_entry::bus_address, std::uint64_t{1} << 40 | 19);
  EXPECT_EQ(d.run(opcode::map_fa, 1), status::bad_param);
  d.put(abi::map_entry::bus_address, std::uint64_t{1} << 40 | 18);
  EXPECT_EQ(d.run(opcode::map_fa, 1), status::ok);
}

TEST(Ports, GidTableKeepsTypeAndLeavesUnchangedEntriesAlone) {
  driver_model d;
  d.bring_up();
  d.clear_in();
  for (std::size_t i = 0; i < 16; ++i) d.in()[5 * 32 + i] = static_cast<std::uint8_t>(0xf0 + i);
  d.in()[5 * 32 + 27] = 2;
  d.in()[6 * 32 + 3] = 9;
  ASSERT_EQ(d.run(opcode::set_port, 0xd02, 1), status::ok);
  namespace g = gid::cr;
  EXPECT_EQ(d.hw.reg(cr_base::gid, g::gid_word(5, 0), 1), 0xf0f1f2f3u);
  EXPECT_EQ(d.hw.reg(cr_base::gid, g::gid_word(5, 3), 1), 0xfcfdfeffu);
  EXPECT_EQ(d.hw.reg(cr_base::gid, g::gid_word(5, 4), 1), g::gid_valid | 2u << g::gid_type_shift);
  EXPECT_EQ(d.hw.reg(cr_base::gid, g::gid_word(6, 4), 1), g::gid_valid);
  EXPECT_EQ(d.hw.reg(cr_base::gid, g::gid_word(7, 4), 1), 0u);
  const std::size_t writes = d.hw.writes.size();
  d.in()[6 * 32 + 3] = 0;
  ASSERT_EQ(d.run(opcode::set_port, 0xd02, 1), status::ok);
  EXPECT_EQ(d.hw.writes.size(), writes + 6) << "one entry rewritten";
  EXPECT_EQ(d.hw.reg(cr_base::gid, g::gid_word(6, 4), 1), 0u);
}

TEST(Ports, GeneralTakesOnlyValidFields) {
  driver_model d;
  d.bring_up();
  d.clear_in();
  d.in()[3] = 1;
  abi::store16(d.in(), 6, 4200);
  d.in()[9] = 0xff;  // PFC without its valid bit
  ASSERT_EQ(d.run(opcode::set_port, 0x001, 1), status::ok);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::mtu), 4200u);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::pfctx), 0u);
  d.in()[3] = 6;
  d.in()[0x0c] = 0x80;
  ASSERT_EQ(d.run(opcode::set_port, 0x001, 1), status::ok);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::pfctx), 0xffu);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::pprx), 1u);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::pptx), 0u);
}

TEST(Ports, MacVlanAndClasses) {
  driver_model d;
  d.bring_up();
  d.clear_in();
  abi::store64(d.in(), 8 * 4, abi::set_port::mac_valid | 0x0002c9112233);
  ASSERT_EQ(d.run(opcode::set_port, 0x201, 1), status::ok);
  EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::mac_word(4, 0)), 0x80000002u);
  EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::mac_word(4, 1)), 0xc9112233u);
  d.clear_in();
  abi::store32(d.in(), 4 * 2, 0x80000064);
  ASSERT_EQ(d.run(opcode::set_port, 0x301, 1), status::ok);
  EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::vlan_word(2)), 0x80000064u);
  d.clear_in();
  d.in()[0] = 0x12;  // priority 0: class 1, priority 1: class 2
  ASSERT_EQ(d.run(opcode::set_port, 0x801, 1), status::ok);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::prio2tc), 0x21u);
  d.in()[0] = 0x90;
  EXPECT_EQ(d.run(opcode::set_port, 0x801, 1), status::bad_param);
  // Class 3: group 7, 40 %, at most 25 * 100 Mb/s; class 4: strict, 255 Gb/s, which is how software says "no limit".
  d.clear_in();
  abi::store64(d.in(), 8 * 3, 0x0007'0028'0003'0019);
  abi::store64(d.in(), 8 * 4, 0x0000'0064'0004'00ff);
  ASSERT_EQ(d.run(opcode::set_port, 0x901, 1), status::ok);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::scheduler + 4 * 3), 7u << 16 | 40);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::max_rate + 4 * 3), 2'500u);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::max_rate + 4 * 4), 255'000u);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::arbitration), mac::cr::arbitration_ets) << "shares that nobody looks at";
}

TEST(Multicast, EntriesNeverWrittenAreEmpty) {
  driver_model d;
  d.bring_up();
  d.clear_in();
  d.in()[0] = 0xff;
  ASSERT_EQ(d.run(opcode::mgid_hash), status::ok);
  const auto index = static_cast<std::uint32_t>(d.result);
  ASSERT_LT(index, 4096u);
  EXPECT_EQ(index, icm::mgid_hash(d.in(), 12));
  ASSERT_EQ(d.run(opcode::read_mcg, index), status::ok);
  EXPECT_EQ(abi::load32(d.out(), 4), 0u);
  d.put(abi::mcg::member_count, 2);
  abi::store32(d.in(), 0x24, 0x40000123);
  ASSERT_EQ(d.run(opcode::write_mcg, index), status::ok);
  ASSERT_EQ(d.run(opcode::read_mcg, index), status::ok);
  EXPECT_EQ(abi::load32(d.out(), 4), 2u);
  EXPECT_EQ(abi::load32(d.out(), 0x24), 0x40000123u);
  d.put(abi::mcg::member_count, 249);
  EXPECT_EQ(d.run(opcode::write_mcg, index), status::bad_param);
}

TEST(Multicast, TheLastEntryIsOneAsWell) {
  driver_model d;
  d.bring_up();
  d.clear_in();
  d.put(abi::mcg::member_count, 2);
  EXPECT_EQ(d.run(opcode::write_mcg, 1u << 13), status::bad_index);
  ASSERT_EQ(d.run(opcode::write_mcg, (1u << 13) - 1), status::ok);
  ASSERT_EQ(d.run(opcode::read_mcg, (1u << 13) - 1), status::ok);
  EXPECT_EQ(abi::load32(d.out(), 4), 2u);
}

/// Entries of 1024 bytes, as the kernel's driver makes them.
TEST(Multicast, AGroupOfMoreMembersThanItsEntryHoldsIsRefused) {
  driver_model d;
  d.bring_up();
  d.clear_in();
  d.put(abi::mcg::member_count, 248);
  EXPECT_EQ(d.run(opcode::write_mcg, 5), status::ok);
  d.put(abi::mcg::member_count, 249);
  EXPECT_EQ(d.run(opcode::write_mcg, 5), status::bad_param);
  ASSERT_EQ(d.run(opcode::read_mcg, 5), status::ok);
  EXPECT_EQ(abi::load32(d.out(), 4), 248u) << "as it was";
}

/// The codes in the table of firmware/README.md: "0x064 to 0x066" or "0x001, 0x002".
std::set<unsigned> refused_by_the_readme() {
  std::ifstream file(in_source_tree("firmware/README.md"));
  std::set<unsigned> codes;
  std::string line;
  const std::regex code("0x([0-9a-f]{3})");
  while (std::getline(file, line)) {
    if (line.rfind("| 0x", 0) != 0) continue;
    const std::string cell = line.substr(2, line.find(" |", 2) - 2);
    std::vector<unsigned> found;
    for (std::sregex_iterator at(cell.begin(), cell.end(), code), end; at != end; ++at)
      found.push_back(static_cast<unsigned>(std::stoul((*at)[1], nullptr, 16)));
    if (cell.find(" to ") != std::string::npos && found.size() == 2)
      for (unsigned c = found[0]; c <= found[1]; ++c) codes.insert(c);
    else
      codes.insert(found.begin(), found.end());
  }
  return codes;
}

/// Whatever is not in the table, and whatever no interface has, is the other way round.
TEST(Commands, RefusedAreThoseOfTheReadme) {
  const std::set<unsigned> refused = refused_by_the_readme();
  EXPECT_GT(refused.size(), 20u);
  // All that the interface has (adapter control plane 4.1), but for the names of one code twice.
  std::set<unsigned> known{0x061, 0x064, 0x065, 0x066, 0x068, 0x080, 0x081, 0x203, 0xf00, 0xf01, 0xf05, 0xf06, 0xf08,
                           0xf0a, 0xf0b, 0x040, 0x043, 0x047, 0x048, 0x049, 0x04d, 0x050, 0x052, 0x03a, 0x03b};
  const std::pair<unsigned, unsigned> ranges[] = {
      {0x001, 0x027}, {0x02a, 0x02d}, {0x02e, 0x038}, {0x054, 0x05c}, {0xff6, 0xfff}};
  for (const auto& [first, last] : ranges)
    for (unsigned c = first; c <= last; ++c) known.insert(c);
  driver_model d(with_functions());
  d.bring_up();
  for (unsigned c = 0; c < 0x1000; ++c) {
    d.clear_in();
    // Each has an op modifier that it takes; what it makes of the rest is not asked here.
    bool answers = false;
    for (std::uint8_t op_modifier = 0; op_modifier < 3; ++op_modifier)
      answers = answers || d.run(static_cast<opcode>(c), 0, op_modifier) != status::bad_op;
    EXPECT_EQ(answers, known.count(c) != 0 && refused.count(c) == 0) << std::hex << c;
    if (c >= 0xff0 || c == 0x008) d.fw.restart();
  }
}

TEST(Statistics, IfStatCountsSinceReset) {
  driver_model d;
  d.bring_up();
  const auto set = [&d](std::uint32_t offset, std::uint32_t v) { d.hw.reg(cr_base::traffic, offset) = v; };
  constexpr std::uint32_t counter = 77, each = 32;
  set(counter * each + 0x04, 7);  // frames received
  set(counter * each + 0x18, 1);  // bytes sent, high
  set(counter * each + 0x1c, 640);
  set((counter + 1) * each + 4, 99);
  ASSERT_EQ(d.run(opcode::query_if_stat, counter), status::ok);
  EXPECT_EQ(d.got(abi::if_stat::rx_frames), 7u);
  EXPECT_EQ(d.got(abi::if_stat::tx_bytes), (1ull << 32) + 640);
  ASSERT_EQ(d.run(opcode::query_if_stat, counter | 1u << 31), status::ok);
  set(counter * each + 4, 9);
  ASSERT_EQ(d.run(opcode::query_if_stat, counter), status::ok);
  EXPECT_EQ(d.got(abi::if_stat::rx_frames), 2u);
  EXPECT_EQ(d.got(abi::if_stat::tx_bytes), 0u);
  ASSERT_EQ(d.run(opcode::query_if_stat, counter + 1), status::ok);
  EXPECT_EQ(d.got(abi::if_stat::rx_frames), 99u) << "clearing one leaves the others";
  EXPECT_EQ(d.run(opcode::query_if_stat, 256), status::bad_index);
  d.hw.reg(cr_base::mac, mac::cr::eth_stats + abi::eth_stats::rx_frames + 24 * 3 + 4) = 9;
  ASSERT_EQ(d.run(opcode::dump_eth_stats, 1), status::ok);
  EXPECT_EQ(abi::load64(d.out(), 0x480 + 24 * 3), 9u);
  d.hw.reg(cr_base::transport, transport::cr::diagnostics + 0x134) = 3;
  d.hw.reg(cr_base::transport, transport::cr::responder_offset + transport::cr::diagnostics + 0x68) = 4;
  ASSERT_EQ(d.run(opcode::diag_rprt, 0, 2), status::ok);
  EXPECT_EQ(abi::load32(d.out(), 0x134), 3u);
  EXPECT_EQ(abi::load32(d.out(), 0x68), 4u);
}

TEST(HealthCheck, LooksAtMemoryAndTranslation) {
  driver_model d;
  d.bring_up();
  d.hw.reg(cr_base::pcie, pcie::cr::dma_enable) = 1;
  EXPECT_EQ(d.run(opcode::hw_health_check), status::ok);
  d.hw.reg(cr_base::pcie, pcie::cr::dma_enable) = 0;
  EXPECT_EQ(d.run(opcode::hw_health_check), status::internal_error);
  d.hw.reg(cr_base::pcie, pcie::cr::dma_enable) = 1;
  EXPECT_EQ(d.run(opcode::hw_health_check, 0, 1), status::bad_op) << "no op modifier";
}

/// Both ports as one device needs two of them.
TEST(Capabilities, PortRemapWithTwoPorts) {
  driver_model d;
  d.bring_up();
  ASSERT_EQ(d.run(opcode::query_dev_cap), status::ok);
  EXPECT_NE(d.got(abi::dev_cap::bmme_flags) & abi::dev_cap::bmme_port_remap, 0u);
}

TEST(Capabilities, NoPortRemapWithOnePort) {
  firmware::firmware_config c;
  c.num_ports = 1;
  driver_model d(c);
  d.bring_up();
  ASSERT_EQ(d.run(opcode::query_dev_cap), status::ok);
  EXPECT_EQ(d.got(abi::dev_cap::bmme_flags) & abi::dev_cap::bmme_port_remap, 0u);
  d.clear_in();
  abi::set(d.in(), abi::virt_port_map_mailbox::port_1, 1u);
  abi::set(d.in(), abi::virt_port_map_mailbox::port_2, 1u);
  EXPECT_EQ(d.run(opcode::virt_port_map, 0, abi::virt_port_map_mailbox::op_set), status::bad_param);
}

/// VIRT_PORT_MAP and CONFIG_DEV's check of ports: one register of each half and of the way of answers.
TEST(PortMap, GoesToTheRegisters) {
  namespace t = transport::cr;
  namespace f = abi::virt_port_map_mailbox;
  namespace c = abi::config_dev_mailbox;
  driver_model d;
  d.bring_up();
  const auto map = [&](std::uint32_t one, std::uint32_t two) {
    d.clear_in();
    abi::set(d.in(), f::port_1, one);
    abi::set(d.in(), f::port_2, two);
    return d.run(opcode::virt_port_map, 0, f::op_set);
  };
  const auto expect = [&](std::uint32_t value) {
    for (const std::uint32_t part : {0u, t::responder_offset, t::answer_offset})
      EXPECT_EQ(d.hw.reg(cr_base::transport, part + t::port_map), value) << std::hex << part;
  };
  EXPECT_EQ(map(1, 1), status::ok);
  expect(0);
  EXPECT_EQ(map(2, 2), status::ok);
  expect(3);
  for (const auto& [one, two] : {std::pair{2u, 1u}, {0u, 1u}, {1u, 3u}, {3u, 2u}, {1u, 0u}, {0x1'0001u, 2u}})
    EXPECT_EQ(map(one, two), status::bad_param) << one << ", " << two;
  expect(3);
  d.clear_in();
  abi::set(d.in(), c::update_flags, c::update_rx_port_check);
  abi::set(d.in(), c::roce_flags, c::disable_rx_port_check);
  EXPECT_EQ(d.run(opcode::config_dev), status::ok);
  expect(3 | t::port_map_any_arrival);
  EXPECT_EQ(map(1, 2), status::ok);
  expect(t::port_map_identity | t::port_map_any_arrival);
  EXPECT_EQ(d.run(opcode::virt_port_map, 0, 0), status::bad_op) << "there is nothing to ask for";
  EXPECT_EQ(d.run(opcode::close_hca), status::ok);
  expect(t::port_map_identity);
  d.fill_init_hca();
  ASSERT_EQ(d.run(opcode::init_hca), status::ok);
  ASSERT_EQ(d.run(opcode::config_dev, 0, 1), status::ok);
  EXPECT_EQ(d.got(c::roce_flags), 0u) << "and so is what CONFIG_DEV has said of arrivals";
}

TEST(Mads, NodeAndPort) {
  driver_model d;
  d.bring_up();
  ASSERT_EQ(mad(d, 0x11, 2), status::ok);
  EXPECT_EQ(d.out()[3], 0x81);
  EXPECT_EQ(abi::load16(d.out(), 4), 0);
  EXPECT_EQ(d.out()[66], 1);
  EXPECT_EQ(d.out()[67], 2);
  EXPECT_EQ(abi::load64(d.out(), 76), firmware::firmware_config{}.node_guid);
  EXPECT_EQ(abi::load64(d.out(), 84), firmware::firmware_config{}.port_guid[1]);
  EXPECT_EQ(abi::load16(d.out(), 94), 0x1007);
  EXPECT_EQ(abi::load32(d.out(), 100), 0x020002c9u);
  ASSERT_EQ(mad(d, 0x16), status::ok);
  EXPECT_EQ(abi::load16(d.out(), 64), 0xffff);
  EXPECT_EQ(abi::load16(d.out(), 66), 0);
  ASSERT_EQ(mad(d, 0x10), status::ok);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(d.out()) + 64), "rnic model");
  ASSERT_EQ(mad(d, 0x15), status::ok);
  EXPECT_EQ(d.out()[64 + 28], 1);
  ASSERT_EQ(mad(d, 0xff60), status::ok);
  EXPECT_EQ(abi::load16(d.out(), 4), 0x1c) << "unknown attribute";
  EXPECT_EQ(mad(d, 0x11, 3), status::bad_param);
}

/// 128 keys, 32 in a block.
TEST(Mads, PartitionKeysAreFourBlocks) {
  driver_model d;
  d.bring_up();
  for (const std::uint32_t block : {0u, 3u, 4u}) {
    d.clear_in();
    d.put(abi::mad::base_version, 1);
    d.put(abi::mad::management_class, 1);
    d.put(abi::mad::method, 1);
    d.put(abi::mad::attribute, abi::mad::pkey_table);
    d.put(abi::mad::modifier, block);
    ASSERT_EQ(d.run(opcode::mad_ifc, 1, 3), status::ok);
    EXPECT_EQ(abi::load16(d.out(), 4), block == 4 ? 0x1c : 0) << block;
    EXPECT_EQ(abi::load16(d.out(), 64), block == 0 ? 0xffff : 0) << block;
  }
}

}  // namespace rnic
