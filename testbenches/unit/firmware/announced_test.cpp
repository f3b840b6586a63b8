// SPDX-License-Identifier: Apache-2.0
// What is announced is true: each bit of QUERY_DEV_CAP and QUERY_PORT has a row in announced.csv that names the test
// which uses it (system/rules.announced looks whether there is such a test), and what no other test uses is used here.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "model/abi/device.h"
#include "model/gid/gid_cr.h"
#include "model/icm/contexts.h"
#include "testbenches/source_tree.h"
#include "testbenches/unit/firmware/driver_model.h"

namespace rnic {

using abi::opcode;
using abi::status;
using register_bus::cr_base;

namespace {

struct announcement {
  std::string mailbox, name, tests;
  std::size_t offset = 0, bytes = 0;
  std::uint64_t mask = 0;
};

std::vector<announcement> announcements() {
  std::ifstream file(in_source_tree("testbenches/unit/firmware/announced.csv"));
  std::vector<announcement> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream in(line);
    std::string cell[6];
    for (std::string& c : cell) std::getline(in, c, ',');
    rows.push_back({cell[0], cell[4], cell[5], std::stoul(cell[1], nullptr, 0), std::stoul(cell[2], nullptr, 0),
                    std::stoull(cell[3], nullptr, 0)});
  }
  return rows;
}

/// The bits of `out` that no row names, as "0x70 bit 4" of the byte at that offset.
std::vector<std::string> unnamed(const std::uint8_t* out, std::size_t bytes, const std::string& mailbox) {
  std::vector<std::uint8_t> named(bytes, 0);
  for (const announcement& a : announcements()) {
    if (a.mailbox != mailbox) continue;
    for (std::size_t i = 0; i < a.bytes; ++i)
      named[a.offset + i] |= static_cast<std::uint8_t>(a.mask >> 8 * (a.bytes - 1 - i));
  }
  std::vector<std::string> found;
  for (std::size_t at = 0; at < bytes; ++at)
    for (unsigned bit = 0; bit < 8; ++bit)
      if (((out[at] & ~named[at]) >> bit & 1) != 0) {
        std::ostringstream place;
        place << std::hex << "0x" << at << " bit " << bit;
        found.push_back(place.str());
      }
  return found;
}

firmware::firmware_config configuration(unsigned vfs, unsigned ports, bool v2) {
  firmware::firmware_config c;
  c.total_vfs = static_cast<std::uint16_t>(vfs);
  c.num_ports = ports;
  c.roce_v2 = v2;
  return c;
}

}  // namespace

TEST(Announced, EveryBitHasATest) {
  for (const firmware::firmware_config& c : {configuration(0, 2, true), configuration(8, 2, true),
                                             configuration(126, 2, true), configuration(0, 1, false)}) {
    driver_model d(c);
    d.bring_up();
    ASSERT_EQ(d.run(opcode::query_dev_cap), status::ok);
    EXPECT_EQ(unnamed(d.out(), 0x100, "device"), std::vector<std::string>{});
    d.hw.reg(cr_base::mac, 0x04) = 3;
    ASSERT_EQ(d.run(opcode::query_port, 1), status::ok);
    EXPECT_EQ(unnamed(d.out(), 0x100, "port"), std::vector<std::string>{});
  }
}

/// And the other way round: a row is of something that one of these devices announces.
TEST(Announced, EveryRowIsOfSomething) {
  driver_model d(configuration(126, 2, true));
  d.bring_up();
  d.hw.reg(cr_base::mac, 0x04) = 3;
  for (const announcement& a : announcements()) {
    const bool port = a.mailbox == "port";
    EXPECT_TRUE(port || a.mailbox == "device") << a.mailbox;
    EXPECT_FALSE(a.tests.empty()) << a.name;
    ASSERT_EQ(d.run(port ? opcode::query_port : opcode::query_dev_cap, port ? 1 : 0), status::ok);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < a.bytes; ++i) value = value << 8 | d.out()[a.offset + i];
    EXPECT_NE(value & a.mask, 0u) << a.name;
  }
}

/// A driver that asks for all that is announced gets it, and nothing lies behind it.
TEST(Announced, ObjectsAreAsManyAsTheTablesTake) {
  driver_model d;
  d.bring_up();
  ASSERT_EQ(d.run(opcode::query_dev_cap), status::ok);
  const auto log = [&](std::size_t at) { return unsigned{d.out()[at]}; };
  const unsigned qps = log(0x13), srqs = log(0x15), cqs = log(0x1b), mpts = log(0x1d), eqs = log(0x1f),
                 mcgs = log(0x63);
  ASSERT_EQ(d.run(opcode::close_hca), status::ok);
  d.fill_init_hca();
  namespace f = abi::init_hca;
  d.put(f::log_qps, qps);
  d.put(f::log_srqs, srqs);
  d.put(f::log_cqs, cqs);
  d.put(f::log_mpts, mpts);
  d.put(f::log_eqs, eqs);
  d.put(f::log_mcg_table, mcgs);
  ASSERT_EQ(d.run(opcode::init_hca), status::ok);
  ASSERT_EQ(d.run(opcode::read_mcg, (1u << mcgs) - 1), status::ok);
  EXPECT_EQ(d.run(opcode::read_mcg, 1u << mcgs), status::bad_index);
  EXPECT_NE(d.run(opcode::query_mpt, (1u << mpts) - 1), status::bad_index);
  EXPECT_EQ(d.run(opcode::query_mpt, 1u << mpts), status::bad_index);
  EXPECT_NE(d.run(opcode::query_cq, (1u << cqs) - 1), status::bad_index);
  EXPECT_EQ(d.run(opcode::query_cq, 1u << cqs), status::bad_index);
  EXPECT_NE(d.run(opcode::query_srq, (1u << srqs) - 1), status::bad_index);
  EXPECT_EQ(d.run(opcode::query_srq, 1u << srqs), status::bad_index);
  EXPECT_NE(d.run(opcode::query_eq, (1u << eqs) - 1), status::bad_index);
  EXPECT_EQ(d.run(opcode::query_eq, 1u << eqs), status::bad_index);
}

/// What a responder keeps of READs and atomics on one queue pair; what a requester may have under way is what its
/// context's three bits can say.
TEST(Announced, ReadsUnderWayAreAsManyAsTheContextSays) {
  driver_model d;
  d.bring_up();
  ASSERT_EQ(d.run(opcode::query_dev_cap), status::ok);
  EXPECT_EQ(1u << (d.out()[0x2b] & 0x3f), icm::rdma_resources::depth);
  const unsigned most = d.out()[0x29] & 0x3f;
  d.fill_eq(6);
  d.fill_cq(8, 6);
  ASSERT_EQ(d.run(opcode::sw2hw_cq, 0x80), status::ok);
  for (const opcode op : {opcode::rst2init_qp, opcode::init2rtr_qp, opcode::rtr2rts_qp}) {
    d.fill_qp(icm::service::rc, 0x240, 0x80);
    d.put(abi::qpc::requester_rdma, most, abi::qp_mailbox::context);
    ASSERT_EQ(d.run(op, 0x240), status::ok);
  }
  EXPECT_EQ(d.hardware_context<icm::requester_context>(d.icm.qpc + 0x240 * 256).log_max_rd_atomic, most);
}

/// Drivers of the first command interface read of the device what later ones read of each port
/// (MLX4_FLAG_OLD_PORT_CMDS).
TEST(Announced, FieldsOfOldDriversSayWhatQueryPortSays) {
  driver_model d;
  d.bring_up();
  ASSERT_EQ(d.run(opcode::query_dev_cap), status::ok);
  const unsigned mtu = d.out()[0x36] >> 4, width = d.out()[0x36] & 0xf, vls = d.out()[0x37] >> 4,
                 gids = d.out()[0x3b] & 0xf, pkeys = d.out()[0x3f] & 0xf;
  for (const std::uint32_t port : {1u, 2u}) {
    ASSERT_EQ(d.run(opcode::query_port, port), status::ok);
    EXPECT_EQ(d.out()[0x01] & 0xf, mtu);
    EXPECT_EQ(d.out()[0x06] & 0xf, width);
    EXPECT_EQ(d.out()[0x0b] & 0xf, vls);
    EXPECT_EQ(d.out()[0x07] >> 4, gids);
    EXPECT_EQ(d.out()[0x07] & 0xf, pkeys);
  }
}

/// REASSIGN_MAC: an address that a driver has taken back and given again, amid everything else, counts.
TEST(Announced, AddressesInTheTableMayChange) {
  driver_model d;
  d.bring_up();
  for (const std::uint64_t mac : {0x0002c9000001ull, 0x0002c90000aaull, 0ull, 0x0002c90000bbull}) {
    d.clear_in();
    abi::store64(d.in(), 0, mac != 0 ? 1ull << 63 | mac : 0);
    ASSERT_EQ(d.run(opcode::set_port, 0x201, 1), status::ok);
    EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::mac_word(0, 1)), static_cast<std::uint32_t>(mac));
    EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::mac_word(0, 0)) >> 31, mac != 0 ? 1u : 0u);
    ASSERT_EQ(d.run(opcode::close_port, 1), status::ok);
    ASSERT_EQ(d.run(opcode::init_port, 1), status::ok);
  }
}

TEST(Announced, MemoryUpToWhatIsAnnounced) {
  driver_model d;
  d.bring_up();
  ASSERT_EQ(d.run(opcode::query_dev_cap), status::ok);
  const std::uint64_t most = abi::load64(d.out(), 0xa0);
  ASSERT_EQ(d.run(opcode::close_hca), status::ok);
  EXPECT_EQ(d.run_immediate(opcode::set_icm_size, most + 1), status::bad_param);
  EXPECT_EQ(d.run_immediate(opcode::set_icm_size, most), status::ok);
}

}  // namespace rnic
