// SPDX-License-Identifier: Apache-2.0
// CONGESTION_CTRL with the mailboxes of net/en_dcb_nl.c, at literal offsets.
#include <gtest/gtest.h>

#include "model/mac/mac_cr.h"
#include "model/transport/congestion/qcn_cr.h"
#include "testbenches/unit/firmware/driver_model.h"

namespace rnic {
namespace {

using abi::opcode;
using abi::status;
using register_bus::cr_base;
namespace cr = transport::cr;

constexpr std::uint8_t get = 0, statistics = 1, set = 4;
constexpr std::uint32_t port_2_priority_3 = 2 | 1 << 3 << 8;
/// In the order of struct mlx4_congestion_control_mb_prio_802_1_qau_params from rppp_max_rps at 0x10 on.
const std::uint32_t values[] = {7, 1000, 70'000, 4, 30'000, 20, 90, 8, 60, 10};

std::uint32_t& reg(driver_model& d, std::uint32_t half, unsigned group, unsigned word) {
  return d.hw.reg(cr_base::transport, half + cr::qcn + group * cr::qcn_stride + 4 * word);
}

void fill(driver_model& d, bool enable) {
  d.clear_in();
  abi::store32(d.in(), 0x00, 0xc0000000);
  abi::store32(d.in(), 0x04, 0xffc00000);
  abi::store32(d.in(), 0x0c, enable ? 0x80000000 : 0);
  for (unsigned i = 0; i < 10; ++i) abi::store32(d.in(), 0x10 + 4 * i, values[i]);
}

TEST(CongestionControl, SetsBothHalvesAndThePort) {
  driver_model d;
  d.bring_up();
  EXPECT_EQ(d.hw.registers.count(static_cast<std::uint32_t>(cr_base::transport) + cr::qcn), 0u)
      << "a driver that does not ask for it causes no access";
  fill(d, true);
  ASSERT_EQ(d.run(opcode::congestion_ctrl, port_2_priority_3, set), status::ok);
  for (const std::uint32_t half : {0u, cr::generator_offset}) {
    EXPECT_EQ(reg(d, half, 11, 0), 1u);
    for (unsigned i = 0; i < 10; ++i) EXPECT_EQ(reg(d, half, 11, 1 + i), values[i]) << i;
    EXPECT_EQ(reg(d, half, 10, 0) + reg(d, half, 3, 0), 0u) << "no other priority or port";
  }
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::takes_cnms, 1), 1u);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::takes_cnms, 0), 0u);
  ASSERT_EQ(d.run(opcode::congestion_ctrl, port_2_priority_3, get), status::ok);
  EXPECT_EQ(abi::load32(d.out(), 0x0c), 0x80000000u);
  for (unsigned i = 0; i < 10; ++i) EXPECT_EQ(abi::load32(d.out(), 0x10 + 4 * i), values[i]) << i;
  for (unsigned at = 0x38; at < 0x100; at += 4) EXPECT_EQ(abi::load32(d.out(), at), 0u) << at;
  // A second priority, and the first one off again: the port takes CNMs as long as one reacts.
  ASSERT_EQ(d.run(opcode::congestion_ctrl, 2 | 1 << 5 << 8, set), status::ok);
  fill(d, false);
  ASSERT_EQ(d.run(opcode::congestion_ctrl, port_2_priority_3, set), status::ok);
  EXPECT_EQ(reg(d, 0, 11, 0), 0u);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::takes_cnms, 1), 1u);
  ASSERT_EQ(d.run(opcode::congestion_ctrl, 2 | 1 << 5 << 8, set), status::ok);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::takes_cnms, 1), 0u);
}

TEST(CongestionControl, SetsOnlyWhatIsToBeModified) {
  driver_model d;
  d.bring_up();
  fill(d, true);
  abi::store32(d.in(), 0x00, 0);
  abi::store32(d.in(), 0x04, 1u << 30 | 1u << 22);  // time_reset and min_rate
  for (unsigned i = 2; i < 9; ++i)
    abi::store32(d.in(), 0x10 + 4 * i, 0xffffffff);                           // what is not meant is not looked at
  ASSERT_EQ(d.run(opcode::congestion_ctrl, 1 | 0x81 << 8, set), status::ok);  // priorities 0 and 7
  for (unsigned group : {0u, 7u}) {
    EXPECT_EQ(reg(d, 0, group, 0), 0u);
    for (unsigned word = 1; word <= 10; ++word)
      EXPECT_EQ(reg(d, 0, group, word), word == 2 ? 1000u : word == 10 ? 10u : 0u) << word;
  }
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::takes_cnms, 0), 0u);
}

TEST(CongestionControl, StatisticsOfBothHalvesTogether) {
  driver_model d;
  d.bring_up();
  const unsigned group = 11, first = cr::qcn_statistics / 4;
  std::uint32_t n = 1;
  for (const std::uint32_t half : {0u, cr::generator_offset})
    for (unsigned word = 0; word < 9; ++word) reg(d, half, group, first + word) = n++;
  d.hw.reg(cr_base::transport, cr::cnm_offset + 4 * group) = 100;
  d.hw.reg(cr_base::mac, mac::cr::dropped_cnms, 1) = 55;
  ASSERT_EQ(d.run(opcode::congestion_ctrl, port_2_priority_3, statistics), status::ok);
  EXPECT_EQ(abi::load64(d.out(), 0x00), (11ull << 32) + 13);  // centiseconds: 1:2 and 10:11
  EXPECT_EQ(abi::load32(d.out(), 0x0c), 3u + 12 + 100);       // ignored_cnm
  EXPECT_EQ(abi::load32(d.out(), 0x10), 4u + 13);             // rppp_created_rps
  EXPECT_EQ(abi::load32(d.out(), 0x14), 6u + 15);             // estimated_total_rate
  EXPECT_EQ(abi::load32(d.out(), 0x18), 18u);                 // max_active_rate_limiter_index
  EXPECT_EQ(abi::load32(d.out(), 0x1c), 55u);                 // dropped_cnms_busy_fw
  EXPECT_EQ(abi::load32(d.out(), 0x24), 5u + 14);             // cnms_handled_successfully
  EXPECT_EQ(abi::load32(d.out(), 0x28), 7u + 16);             // min_total_limiters_rate
  EXPECT_EQ(abi::load32(d.out(), 0x2c), 8u + 17);             // max_total_limiters_rate
}

TEST(CongestionControl, Refusals) {
  driver_model d;
  EXPECT_EQ(d.run(opcode::congestion_ctrl, port_2_priority_3, get), status::bad_sys_state);
  d.bring_up();
  const std::size_t writes = d.hw.writes.size();
  for (const std::uint8_t op : {get, statistics, set}) {
    fill(d, true);
    EXPECT_EQ(d.run(opcode::congestion_ctrl, 0x100, op), status::bad_param) << "port 0";
    EXPECT_EQ(d.run(opcode::congestion_ctrl, 3 | 0x100, op), status::bad_param) << "port 3";
    EXPECT_EQ(d.run(opcode::congestion_ctrl, 1, op), status::bad_param) << "no priority";
    EXPECT_EQ(d.run(opcode::congestion_ctrl, 1 | 0x100 | 1 << 16, op), status::bad_param) << "another algorithm";
  }
  EXPECT_EQ(d.run(opcode::congestion_ctrl, 1 | 0x300, get), status::bad_param) << "two priorities";
  for (const std::uint8_t op : {std::uint8_t{2}, std::uint8_t{3}, std::uint8_t{5}})
    EXPECT_EQ(d.run(opcode::congestion_ctrl, 0x101, op), status::bad_op);
  const auto refused = [&](std::uint32_t offset, std::uint32_t value) {
    fill(d, true);
    abi::store32(d.in(), offset, value);
    EXPECT_EQ(d.run(opcode::congestion_ctrl, 0x101, set), status::bad_param) << std::hex << offset << ": " << value;
  };
  refused(0x0c, 0xc0000000);  // CN-TAG
  refused(0x10, 0);           // rppp_max_rps
  refused(0x1c, 0);           // rpg_threshold
  refused(0x20, 400'001);     // rpg_max_rate
  refused(0x2c, 32);          // rpg_gd
  refused(0x30, 0);           // rpg_min_dec_fac
  refused(0x30, 101);
  refused(0x34, 0);  // rpg_min_rate
  EXPECT_EQ(d.hw.writes.size(), writes) << "nothing has changed";
}

/// Closed, the device has forgotten it, and its ports take no CNMs.
TEST(CongestionControl, EndsWithTheDevice) {
  driver_model d;
  d.bring_up();
  fill(d, true);
  ASSERT_EQ(d.run(opcode::congestion_ctrl, port_2_priority_3, set), status::ok);
  ASSERT_EQ(d.run(opcode::close_hca), status::ok);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::takes_cnms, 1), 0u);
  d.fill_init_hca();
  ASSERT_EQ(d.run(opcode::init_hca), status::ok);
  fill(d, true);
  ASSERT_EQ(d.run(opcode::congestion_ctrl, port_2_priority_3, set), status::ok);
  EXPECT_EQ(d.hw.reg(cr_base::mac, mac::cr::takes_cnms, 1), 1u) << "as the first one of its port";
}

}  // namespace
}  // namespace rnic
