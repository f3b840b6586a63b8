// SPDX-License-Identifier: Apache-2.0
// A packet's source is an entry of the GID table that its queue pair may send with, or there is no packet.
#include <gtest/gtest.h>

#include "model/gid/gid_cr.h"
#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
namespace cr = gid::cr;

constexpr unsigned row = 3;  // of the bench's queue pair
constexpr std::uint32_t v2 = 2u << cr::gid_type_shift;

bench::setup of(icm::service type, bool v2_path = true) {
  bench::setup s;
  s.type = type;
  s.v2 = v2_path;
  return s;
}

/// One message more, `bytes` long.
void send(bench::bench& b, std::uint32_t bytes = 16) {
  if (b.context.type == icm::service::ud)
    b.post({0x0a,      5,
            0xc,       0,
            7,         0,
            row << 16, 0,
            0,         0,
            0xffff,    0x0a000002,
            0x77,      0x11111111,
            0,         0,
            bytes,     bench::good_key,
            0,         static_cast<std::uint32_t>(bench::data)});
  else
    b.post_write(bytes);
  b.ring_doorbell();
  b.run_ns(8000);
}

void expect_refused(bench::bench& b, std::size_t sent_before) {
  EXPECT_EQ(b.w.sent.size(), sent_before);
  ASSERT_FALSE(b.w.cqes.empty());
  EXPECT_EQ(b.w.cqes.back().second.syndrome, 0x02);
}

class source : public ::testing::TestWithParam<icm::service> {};

TEST_P(source, invalid_entry_sends_nothing) {
  bench::bench b(of(GetParam()));
  b.gids[0].cr_write(cr::gid_word(row, 4), v2);
  send(b);
  expect_refused(b, 0);
}

TEST_P(source, entry_of_another_function_sends_nothing) {
  bench::bench b(of(GetParam()));
  b.gids[0].cr_write(cr::num_vfs, 4);  // row 3 is the physical function's, the queue pair that of function 9
  send(b);
  expect_refused(b, 0);
}

TEST_P(source, ipv6_entry_sends_nothing_to_an_ipv4_address) {
  bench::bench b(of(GetParam()));
  b.gids[0].cr_write(cr::gid_word(row, 0), 0xfe800000);
  send(b);
  expect_refused(b, 0);
}

INSTANTIATE_TEST_SUITE_P(services, source, ::testing::Values(icm::service::rc, icm::service::uc, icm::service::ud));

class connected_source : public ::testing::TestWithParam<icm::service> {};

TEST_P(connected_source, entry_of_the_other_version_sends_nothing) {
  bench::bench v2_path(of(GetParam())), v1_path(of(GetParam(), false));
  v2_path.gids[0].cr_write(cr::gid_word(row, 4), cr::gid_valid);
  v1_path.gids[0].cr_write(cr::gid_word(row, 4), cr::gid_valid | v2);
  for (bench::bench* b : {&v2_path, &v1_path}) {
    send(*b);
    expect_refused(*b, 0);
  }
}

TEST_P(connected_source, entry_that_goes_under_traffic_ends_the_message_at_once) {
  bench::setup s = of(GetParam());
  s.memory_cycles = 40;
  bench::bench b(s);
  b.post_write(0x10000);  // 64 packets
  b.ring_doorbell();
  while (b.w.sent.size() < 4) b.run_ns(50);
  b.gids[0].cr_write(cr::gid_word(row, 4), 0);
  b.run_ns(10'000);
  EXPECT_LT(b.w.sent.size(), 30u);  // those whose headers were made before
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.syndrome, 0x02);
}

TEST_P(connected_source, entry_that_goes_and_comes_between_messages_is_not_noticed) {
  bench::bench b(of(GetParam()));
  send(b);
  b.gids[0].cr_write(cr::gid_word(row, 4), 0);
  b.gids[0].cr_write(cr::gid_word(row, 4), cr::gid_valid | v2);
  send(b);
  EXPECT_EQ(b.w.sent.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(services, connected_source, ::testing::Values(icm::service::rc, icm::service::uc));

/// The tables as they are when the packet leaves: its VID, and whether it comes back (the peer's MAC becomes our own).
TEST(rc_source, tag_and_loopback_are_those_of_the_tables) {
  bench::setup s = of(icm::service::rc);
  s.vlan = true;
  bench::bench b(s);
  send(b);
  b.gids[0].cr_write(cr::vlan_word(2), 78);  // not valid any more
  const wire::mac_address peer = b.sent(0).dmac;
  b.gids[0].cr_write(cr::mac_word(9, 0), cr::mac_valid | unsigned{peer[0]} << 8 | peer[1]);
  b.gids[0].cr_write(cr::mac_word(9, 1),
                     unsigned{peer[2]} << 24 | unsigned{peer[3]} << 16 | unsigned{peer[4]} << 8 | peer[5]);
  send(b);
  ASSERT_EQ(b.w.sent.size(), 2u);
  EXPECT_TRUE(b.sent(0).vlan_present);
  EXPECT_EQ(b.sent(0).vlan_tci & 0xfff, 77);
  EXPECT_FALSE(b.sent(1).vlan_present);
  EXPECT_EQ(b.w.sent[0].second->loopback, payload::frame::loopback_none);
  EXPECT_EQ(b.w.sent[1].second->loopback, payload::frame::loopback_only);
}

TEST(rc_source, repetition_is_refused_as_well) {
  bench::bench b(of(icm::service::rc));
  send(b, 3000);
  ASSERT_EQ(b.w.sent.size(), 3u);
  b.gids[0].cr_write(cr::gid_word(row, 4), 0);
  b.respond(wire::operation::acknowledge, 0xfffffe, 0x60);
  b.run_ns(8000);
  EXPECT_EQ(b.stats.value("requester.foreign_responses"), 1u);  // to an address that the port does not have
  EXPECT_EQ(b.w.sent.size(), 3u);
  EXPECT_TRUE(b.w.cqes.empty());
}

TEST(rc_source, time_out_without_a_source_ends_in_a_local_error) {
  bench::setup s = of(icm::service::rc);
  s.ack_timeout = 1;
  bench::bench b(s);
  b.post_write(16);
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 1u);
  b.gids[0].cr_write(cr::gid_word(row, 4), 0);
  b.run_ns(20'000);
  expect_refused(b, 1);
}

}  // namespace
