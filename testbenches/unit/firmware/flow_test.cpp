// SPDX-License-Identifier: Apache-2.0
// Flow steering commands: mailboxes byte by byte at the offsets of Linux's structures (inc/device.h:
// mlx4_net_trans_rule_hw_*), what reaches the flow tables, order, limits, and what is refused.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model/abi/device.h"
#include "model/ethernet/steering_cr.h"
#include "model/flow/flow_cr.h"
#include "model/transport/transport_cr.h"
#include "testbenches/unit/firmware/driver_model.h"

namespace rnic {

using abi::opcode;
using abi::status;
using register_bus::cr_base;

namespace {

namespace cr = flow::cr;
namespace key = flow::cr::frame_key;
using bytes = std::vector<std::uint8_t>;
using words = std::array<std::uint32_t, cr::key_words>;

constexpr std::uint32_t frames_at = ethernet::cr::flows;
constexpr std::uint32_t datagrams_at = transport::cr::multicast_offset + transport::cr::flows;

/// 16 bytes: priority, type, flags, function, vep, port, queue pair.
bytes control(std::uint16_t priority, std::uint8_t type, std::uint8_t flags, std::uint8_t port, std::uint32_t qpn) {
  return {static_cast<std::uint8_t>(priority >> 8),
          static_cast<std::uint8_t>(priority),
          type,
          flags,
          0,
          0,
          0,
          port,
          static_cast<std::uint8_t>(qpn >> 24),
          static_cast<std::uint8_t>(qpn >> 16),
          static_cast<std::uint8_t>(qpn >> 8),
          static_cast<std::uint8_t>(qpn),
          0,
          0,
          0,
          0};
}

/// A header with its size in words, its id, and bytes at offsets.
bytes header(unsigned size, std::uint16_t id, const std::vector<std::pair<unsigned, bytes>>& at) {
  bytes h(size);
  h[0] = static_cast<std::uint8_t>(size / 4);
  h[2] = static_cast<std::uint8_t>(id >> 8);
  h[3] = static_cast<std::uint8_t>(id);
  for (const auto& [offset, value] : at) std::copy(value.begin(), value.end(), h.begin() + offset);
  return h;
}
const bytes full_mac(6, 0xff);
bytes to_address(const bytes& dmac) { return header(48, 0xe001, {{10, dmac}, {18, full_mac}}); }
bytes ipv4(const bytes& destination) { return header(24, 0xe002, {{8, destination}, {12, bytes(4, 0xff)}}); }
bytes udp(const bytes& port) { return header(24, 0xe006, {{10, port}, {14, bytes(2, 0xff)}}); }
bytes group(std::uint8_t last) {
  bytes gid(16);
  gid[0] = 0xff;
  gid[15] = last;
  return header(48, 0xe005, {{16, gid}, {32, bytes(16, 0xff)}});
}
bytes operator+(bytes a, const bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
const bytes one{0x02, 0, 0, 0, 0x0b, 1}, other{0x02, 0, 0, 0, 0x0b, 2};
constexpr std::uint16_t verbs = 0x1000, nic = 0x5000;

struct card {
  explicit card(unsigned capacity = 64, const firmware::firmware_config& config = {}, unsigned log_table = 13)
      : d(config) {
    d.bring_up();
    d.hw.reg(cr_base::steering, frames_at + cr::capacity) = capacity;
    d.hw.reg(cr_base::transport, datagrams_at + cr::capacity) = capacity;
    EXPECT_EQ(d.run(opcode::close_hca), status::ok);
    d.fill_init_hca();
    std::fill_n(d.in() + 0xc0, 0x20, std::uint8_t{0});  // no group table
    d.in()[0x17] |= 1 << 6;
    abi::store64(d.in(), 0x1d0, d.icm.mcg);
    d.in()[0x1e3] = 10;
    d.in()[0x1eb] = static_cast<std::uint8_t>(log_table);
    d.in()[0x1f1] = d.in()[0x1f5] = 6;
    d.in()[0x1f3] = d.in()[0x1f7] = 8;
    EXPECT_EQ(d.run(opcode::init_hca), status::ok);
  }
  status attach(const bytes& rule, unsigned function = 0) { return attach(rule, rule.size() / 4, function); }
  status attach(const bytes& rule, std::size_t count, unsigned function) {
    d.clear_in();
    std::copy(rule.begin(), rule.end(), d.in());
    d.result = 0;
    return d.run_immediate(opcode::flow_steering_attach, d.in_address | function, static_cast<std::uint32_t>(count));
  }
  status detach(std::uint64_t id) { return d.run_immediate(opcode::flow_steering_detach, id); }
  std::uint32_t reg(std::uint32_t offset, cr_base base = cr_base::steering, std::uint32_t at = frames_at) {
    return d.hw.reg(base, at + offset);
  }
  words value() { return read(cr::rule_value); }
  words mask() { return read(cr::rule_mask); }
  words read(std::uint32_t offset) {
    words w{};
    for (std::uint32_t i = 0; i < w.size(); ++i) w[i] = reg(offset + 4 * i);
    return w;
  }
  std::uint64_t rank() { return std::uint64_t{reg(cr::rule_rank_high)} << 32 | reg(cr::rule_rank_low); }

  driver_model d;
};

}  // namespace

TEST(Flow, Capabilities) {
  driver_model d;
  d.bring_up();
  ASSERT_EQ(d.run(opcode::query_dev_cap), status::ok);
  EXPECT_EQ(d.out()[0x76], 0xa0) << "FS_EN, sniffers, no ranges of unicast queue pairs";
  EXPECT_EQ(d.out()[0x77], 248);
  EXPECT_EQ(d.out()[0x74] & 0x80, 0) << "no IPoIB";
  EXPECT_EQ(abi::load32(d.out(), 0xa8), 0u) << "no queue pairs of high rate";
  EXPECT_EQ(abi::load32(d.out(), 0xac), 0u);
}

TEST(Flow, WithoutItNothingIsAttached) {
  driver_model d;
  d.bring_up();
  d.clear_in();
  EXPECT_EQ(d.run(opcode::flow_steering_attach, 16), status::bad_sys_state);
  EXPECT_EQ(d.run_immediate(opcode::flow_steering_detach, 1), status::bad_sys_state);
  EXPECT_EQ(d.hw.reg(cr_base::steering, frames_at + cr::enable), 0u);
}

TEST(Flow, InitHcaEnablesBothTables) {
  card c;
  EXPECT_EQ(c.reg(cr::enable), 1u);
  EXPECT_EQ(c.reg(cr::enable, cr_base::transport, datagrams_at), 1u);
  ASSERT_EQ(c.d.run(opcode::query_hca), status::ok);
  EXPECT_EQ(c.d.out()[0x17] & 0x40, 0x40);
  EXPECT_EQ(c.d.out()[0x1e3], 10);
  EXPECT_EQ(c.d.out()[0x1eb], 13);
  for (const opcode o : {opcode::mgid_hash, opcode::read_mcg, opcode::write_mcg})
    EXPECT_EQ(c.d.run(o), status::bad_sys_state) << "there is no group table";
}

TEST(Flow, InitHcaRefuses) {
  const std::pair<unsigned, std::uint8_t> wrong[] = {
      {0x1eb, 21}, {0x1e3, 6}, {0x1e3, 13}, {0x1e8, 1 << 6}, {0x1e8, 2 << 6}};
  for (const auto& [offset, value] : wrong) {
    card c;
    EXPECT_EQ(c.d.run(opcode::close_hca), status::ok);
    c.d.fill_init_hca();
    c.d.in()[0x17] |= 1 << 6;
    c.d.in()[0x1e3] = 10;
    c.d.in()[0x1eb] = 13;
    c.d.in()[offset] = value;
    EXPECT_EQ(c.d.run(opcode::init_hca), status::bad_param) << std::hex << offset;
    c.d.in()[offset] = offset == 0x1e8 ? 3 << 6 : 10;
    EXPECT_EQ(c.d.run(opcode::init_hca), status::ok) << std::hex << offset;
  }
}

TEST(Flow, EthernetHeader) {
  card c;
  const bytes h = header(48, 0xe001,
                         {{10, {2, 3, 4, 5, 6, 7}},
                          {18, {0xff, 0xff, 0xff, 0xff, 0xff, 0xf0}},
                          {26, {8, 9, 10, 11, 12, 13}},
                          {34, {0xff, 0, 0, 0, 0, 0xff}},
                          {41, {1}},
                          {42, {0x88, 0xb5}},
                          {44, {0x0f, 0xff}},
                          {46, {0x10, 0x64}}});
  ASSERT_EQ(c.attach(control(verbs | 3, 0, 1 << 3, 2, 0x123) + h), status::ok);
  EXPECT_NE(c.d.result, 0u);
  EXPECT_EQ(c.value(),
            (words{key::port_2 | key::tagged | 0x88b5, 0x02030405, 0x06000800, 0x0000000d, 0x0064, 0, 0, 0}));
  EXPECT_EQ(c.mask(), (words{key::port_2 | key::tagged | 0xffff, 0xffffffff, 0xfff0ff00, 0x000000ff, 0x0fff, 0, 0, 0}));
  EXPECT_EQ(c.reg(cr::rule_member), 0x123u);
  EXPECT_EQ(c.reg(cr::rule_write), cr::rule_valid | 0);
  EXPECT_EQ(c.rank() >> 32, verbs | 3u);
}

TEST(Flow, HeadersBehindIt) {
  card c;
  const bytes ip =
      header(24, 0xe002,
             {{8, {10, 0, 0, 1}}, {12, {0xff, 0xff, 0xff, 0}}, {16, {10, 1, 0, 2}}, {20, {0xff, 0xff, 0xff, 0xff}}});
  const bytes tcp = header(24, 0xe004, {{10, {0x12, 0x34}}, {14, {0xff, 0xff}}, {18, {0x56, 0x78}}, {22, {0xff, 0}}});
  ASSERT_EQ(c.attach(control(verbs, 0, 0, 1, 7) + to_address(one) + ip + tcp), status::ok);
  EXPECT_EQ(c.value(), (words{key::ipv4 | key::tcp, 0x02000000, 0x0b010000, 0, 0, 0x0a010002, 0x0a000000, 0x56001234}));
  EXPECT_EQ(c.mask(), (words{key::port_2 | key::ipv4 | key::tcp, 0xffffffff, 0xffff0000, 0, 0, 0xffffffff, 0xffffff00,
                             0xff00ffff}));
  EXPECT_EQ(c.reg(cr::rule_member), 7u | cr::member_no_loopback) << "flag 3 is not set";
  ASSERT_EQ(c.attach(control(verbs, 0, 8, 1, 7) + udp({0x12, 0xb7})), status::ok) << "any address";
  EXPECT_EQ(c.value(), (words{key::udp, 0, 0, 0, 0, 0, 0, 0x12b7}));
  EXPECT_EQ(c.reg(cr::rule_write), cr::rule_valid | 1);
}

TEST(Flow, GroupsOfRoceAreInTheTableOfMulticast) {
  card c;
  ASSERT_EQ(c.attach(control(nic, 0, 8, 2, 0x55) + group(9)), status::ok);
  const auto reg = [&](std::uint32_t offset) { return c.reg(offset, cr_base::transport, datagrams_at); };
  EXPECT_EQ(reg(cr::rule_value), key::port_2);
  EXPECT_EQ(reg(cr::rule_value + 4), 0xff000000u);
  EXPECT_EQ(reg(cr::rule_value + 16), 9u);
  EXPECT_EQ(reg(cr::rule_mask), key::port_2);
  EXPECT_EQ(reg(cr::rule_mask + 16), 0xffffffffu);
  EXPECT_EQ(reg(cr::rule_member), 0x55u);
  EXPECT_EQ(reg(cr::rule_write), cr::rule_valid);
  EXPECT_EQ(c.reg(cr::rule_write), 0u) << "nothing in the other one";
  const std::uint64_t id = c.d.result;
  ASSERT_EQ(c.detach(id), status::ok);
  EXPECT_EQ(reg(cr::rule_write), 0u);
  EXPECT_EQ(c.detach(id), status::bad_param) << "it is gone";
}

TEST(Flow, DefaultsAndSniffers) {
  card c;
  ASSERT_EQ(c.attach(control(0, 1, 8, 1, 5)), status::ok);
  EXPECT_EQ(c.mask(), words{key::port_2});
  const std::uint64_t last = c.rank();
  ASSERT_EQ(c.attach(control(0, 3, 8, 1, 6)), status::ok);
  EXPECT_EQ(c.value(), (words{0, key::group}));
  EXPECT_EQ(c.mask(), (words{key::port_2, key::group}));
  EXPECT_EQ(c.rank(), last) << "both get groups";
  ASSERT_EQ(c.attach(control(0xffff, 0, 8, 1, 6) + to_address(one)), status::ok);
  EXPECT_LT(c.rank(), last) << "the lowest priority comes before them";
  ASSERT_EQ(c.attach(control(verbs, 6, 8, 1, 6)), status::ok);
  EXPECT_EQ(c.value(), words{});
  EXPECT_EQ(c.mask(), (words{key::port_2, key::group}));
  EXPECT_EQ(c.reg(cr::rule_member), 6u | cr::member_copy);
  ASSERT_EQ(c.attach(control(verbs, 7, 8, 1, 6) + header(48, 0xe001, {{10, {1}}, {18, {1}}})), status::ok);
  EXPECT_EQ(c.value(), (words{0, key::group}));
}

TEST(Flow, RefusedRules) {
  card c;
  const bytes good = control(verbs, 0, 8, 1, 7) + to_address(one) + ipv4({10, 0, 0, 1}) + udp({0x12, 0xb7});
  const auto with = [&](std::size_t at, std::uint8_t value) {
    bytes b = good;
    b[at] = value;
    return b;
  };
  const std::pair<const char*, bytes> wrong[] = {
      {"mirror of what is received", control(verbs, 4, 8, 1, 7)},
      {"mirror of what is sent", control(verbs, 5, 8, 1, 7)},
      {"no such type", with(2, 2)},
      {"no such flag", with(3, 2)},
      {"a reserved flag", with(3, 0x80)},
      {"another function", with(5, 1)},
      {"a virtual endpoint port", with(6, 1)},
      {"port 0", with(7, 0)},
      {"port 3", with(7, 3)},
      {"a queue pair beyond 24 bits", with(8, 1)},
      {"a queue pair beyond the table", with(9, 0x80)},
      {"a header that is too short", with(16, 11)},
      {"a header without length", with(16, 0)},
      {"a header that is too long", with(16, 13)},
      {"IPv6", with(19, 3)},
      {"VXLAN", with(19, 8)},
      {"an unknown header", with(18, 0)},
      {"the same header twice", control(verbs, 0, 8, 1, 7) + to_address(one) + to_address(one)},
      {"TCP and UDP", control(verbs, 0, 8, 1, 7) + udp({0, 1}) + header(24, 0xe004, {})},
      {"layers upside down", control(verbs, 0, 8, 1, 7) + udp({0, 1}) + to_address(one)},
      {"InfiniBand behind Ethernet", control(verbs, 0, 8, 1, 7) + to_address(one) + group(1)},
      {"Ethernet behind InfiniBand", control(verbs, 0, 8, 1, 7) + group(1) + to_address(one)},
      {"no header", control(verbs, 0, 8, 1, 7)},
      {"a default rule with a header", control(verbs, 1, 8, 1, 7) + to_address(one)},
      {"a sniffer of groups of RoCE", control(verbs, 7, 8, 1, 7) + group(1)},
      {"a sniffer of groups for a single address", control(verbs, 7, 8, 1, 7) + to_address(one)},
      {"a sniffer of single addresses for a group", control(verbs, 6, 8, 1, 7) + to_address(full_mac)}};
  for (const auto& [what, rule] : wrong) EXPECT_EQ(c.attach(rule), status::bad_param) << what;
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{3}, std::size_t{4}, good.size() / 4 - 1, good.size() / 4 + 1, std::size_t{1025}})
    EXPECT_EQ(c.attach(good, count, 0), status::bad_param) << count;
  EXPECT_EQ(c.reg(cr::rule_write), 0u) << "nothing has reached the table";
  EXPECT_EQ(c.attach(good), status::ok);
  EXPECT_EQ(c.detach(0), status::bad_param);
  EXPECT_EQ(c.detach(c.d.result + 1), status::bad_param);
}

TEST(Flow, EqualMatchesShareARankAndOthersQueueUp) {
  card c;
  const auto rank_of = [&](std::uint16_t priority, std::uint8_t flags, std::uint32_t qpn, const bytes& headers) {
    EXPECT_EQ(c.attach(control(priority, 0, flags, 1, qpn) + headers), status::ok);
    return c.rank();
  };
  const std::uint64_t first = rank_of(verbs, 8, 1, to_address(one)), second = rank_of(verbs, 8, 2, to_address(other));
  EXPECT_LT(first, second);
  EXPECT_EQ(rank_of(verbs, 8, 3, to_address(one)), first);
  EXPECT_EQ(rank_of(verbs, 9, 4, to_address(one)), first) << "its queue is that of its entry";
  const std::uint64_t front = rank_of(verbs, 9, 5, to_address({2, 0, 0, 0, 0, 9}));
  EXPECT_LT(front, first);
  EXPECT_LT(rank_of(verbs, 9, 5, to_address({2, 0, 0, 0, 0, 10})), front);
  EXPECT_GT(rank_of(nic, 9, 1, to_address(one)), second);
  EXPECT_LT(rank_of(0, 8, 1, to_address(one)), front);
  // What is not compared does not make a match another one.
  EXPECT_EQ(rank_of(verbs, 8, 6, header(48, 0xe001, {{10, one}, {18, full_mac}, {26, {1, 2, 3, 4, 5, 6}}})), first);
}

TEST(Flow, ExclusiveAndTwice) {
  card c;
  const auto attach = [&](std::uint8_t flags, std::uint32_t qpn, const bytes& headers) {
    return c.attach(control(verbs, 0, flags, 1, qpn) + headers);
  };
  EXPECT_EQ(attach(8, 1, to_address(one)), status::ok);
  EXPECT_EQ(attach(8, 1, to_address(one)), status::resource_busy) << "it is in the entry";
  EXPECT_EQ(attach(8 | 4, 2, to_address(one)), status::resource_busy);
  EXPECT_EQ(attach(8 | 4, 2, to_address(other)), status::ok);
  EXPECT_EQ(attach(8, 3, to_address(other)), status::resource_busy);
  EXPECT_EQ(c.attach(control(nic, 0, 8, 1, 3) + to_address(other)), status::ok) << "another entry";
  EXPECT_EQ(c.attach(control(0, 1, 8, 1, 3)), status::ok);
  EXPECT_EQ(c.attach(control(0, 3, 8, 1, 3)), status::resource_busy) << "it would get groups twice";
  EXPECT_EQ(c.attach(control(0, 3, 8, 2, 3)), status::ok);
}

TEST(Flow, FullTables) {
  card c(8);
  std::vector<std::uint64_t> ids;
  for (std::uint8_t i = 0; i < 8; ++i) {
    ASSERT_EQ(c.attach(control(verbs, 0, 8, 1, 7) + to_address({2, 0, 0, 0, 0, i})), status::ok);
    ids.push_back(c.d.result);
  }
  EXPECT_EQ(c.attach(control(verbs, 0, 8, 1, 7) + to_address({2, 0, 0, 0, 0, 8})), status::exceed_lim);
  EXPECT_EQ(c.attach(control(verbs, 0, 8, 1, 7) + group(1)), status::ok) << "the other table has room";
  ASSERT_EQ(c.detach(ids[3]), status::ok);
  EXPECT_EQ(c.reg(cr::rule_write), 3u) << "empty";
  ASSERT_EQ(c.attach(control(verbs, 0, 8, 1, 7) + to_address({2, 0, 0, 0, 0, 8})), status::ok);
  EXPECT_EQ(c.reg(cr::rule_write), cr::rule_valid | 3u);
  for (const std::uint64_t id : ids) EXPECT_NE(c.d.result, id) << "ids are not used twice";
}

TEST(Flow, TheDriversTableLimitsToo) {
  card c(64, {}, 2);
  for (std::uint8_t i = 0; i < 4; ++i)
    ASSERT_EQ(c.attach(control(verbs, 0, 8, 1, 7) + to_address({2, 0, 0, 0, 0, i})), status::ok);
  EXPECT_EQ(c.attach(control(verbs, 0, 8, 1, 7) + to_address({2, 0, 0, 0, 0, 9})), status::exceed_lim);
}

TEST(Flow, AnEntryHoldsWhatIsAnnounced) {
  card c(1000);
  for (std::uint32_t i = 0; i < 248; ++i)
    ASSERT_EQ(c.attach(control(nic, 0, 8, 1, 0x100 + i) + to_address(full_mac)), status::ok) << i;
  EXPECT_EQ(c.attach(control(nic, 0, 8, 1, 0x300) + to_address(full_mac)), status::exceed_lim);
  EXPECT_EQ(c.attach(control(verbs, 0, 8, 1, 0x300) + to_address(full_mac)), status::ok);
  for (std::uint32_t i = 0; i < 8; ++i) ASSERT_EQ(c.attach(control(verbs, 6, 8, 1, 0x100 + i)), status::ok);
  EXPECT_EQ(c.attach(control(verbs, 7, 8, 1, 0x300)), status::exceed_lim) << "eight copies of a frame";
}

TEST(Flow, QueuePairsOfOtherFunctions) {
  firmware::firmware_config config;
  config.total_vfs = 8;
  card c(64, config);
  c.d.fill_eq(9);
  ASSERT_EQ(c.d.run(opcode::sw2hw_eq, 8), status::ok);
  c.d.fill_cq(8, 4);
  ASSERT_EQ(c.d.run(opcode::sw2hw_cq, 0x81), status::ok);
  ASSERT_EQ(c.d.make_rts(icm::service::ud, 0x41, 0x81), status::ok);
  EXPECT_EQ(c.attach(control(verbs, 0, 8, 1, 0x41) + to_address(one), 3), status::bad_param);
  EXPECT_EQ(c.attach(control(verbs, 0, 8, 1, 0x41) + to_address(one)), status::ok);
  bytes named = control(verbs, 0, 8, 1, 0x42) + to_address(other);
  named[5] = 2;
  EXPECT_EQ(c.attach(named, 3), status::bad_param);
  named[5] = 3;
  EXPECT_EQ(c.attach(named, 3), status::ok);
}

TEST(Flow, CloseForgetsThem) {
  card c;
  ASSERT_EQ(c.attach(control(verbs, 0, 8, 1, 7) + to_address(one)), status::ok);
  const std::uint64_t id = c.d.result;
  ASSERT_EQ(c.d.run(opcode::close_hca), status::ok);
  EXPECT_EQ(c.d.hw.reg(cr_base::steering, ethernet::cr::reset), 1u);
  c.d.fill_init_hca();
  ASSERT_EQ(c.d.run(opcode::init_hca), status::ok);
  EXPECT_EQ(c.detach(id), status::bad_sys_state) << "groups steer now";
}

}  // namespace rnic
