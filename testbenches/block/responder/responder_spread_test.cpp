// SPDX-License-Identifier: Apache-2.0
// Queue pairs that spread plain frames: the numbers in them reach what belongs to their owner, and nothing else.
#include <gtest/gtest.h>

#include "testbenches/block/responder/bench.h"

namespace rnic::transport::test {
namespace {

constexpr std::uint32_t parent = 0x60, own_target = qpn, foreign_target = qpn + 1;

/// A parent of `function` whose default and only target is `to`.
icm::responder_context spreading(std::uint16_t function, std::uint32_t to) {
  icm::responder_context c = bench::context();
  c.qpn = parent;
  c.function = function;
  c.type = icm::service::rss;
  icm::set_rss(c, {to, to, to, 0, 1, icm::rss_flag_ipv4, {}});
  return c;
}

icm::responder_context target(std::uint32_t number, icm::service type) {
  icm::responder_context c = bench::context();
  c.qpn = number;
  c.type = type;
  c.dest.flags = 0;
  std::memset(c.dest.remote_gid, 0, sizeof c.dest.remote_gid);
  return c;
}

struct scene : bench {
  scene() {
    put(target(own_target, icm::service::ethernet));
    put(target(foreign_target, icm::service::ethernet));
    post(0, {{data_va, lkey, 2048}});
  }
  void arrive(std::uint32_t to) {
    std::vector<std::uint8_t> frame = pattern(100);
    frame[12] = 0x12;  // no IP
    frame[13] = 0x34;
    steer(to, frame);
    run();
  }
};

TEST(spreading, reaches_the_owners_queue_pairs) {
  scene b;
  b.put(spreading(owning_function, own_target));
  b.arrive(parent);
  ASSERT_EQ(b.s.cqes.size(), 1u);
  EXPECT_EQ(b.s.cqes[0].second.qpn & 0xffffff, own_target);
  EXPECT_EQ(b.count("drop.ethernet_function"), 0u);
}

void expect_kept_out(std::uint16_t thief) {
  scene b;
  b.put(spreading(thief, foreign_target));
  b.arrive(parent);
  EXPECT_TRUE(b.s.cqes.empty());
  EXPECT_TRUE(b.s.writes.empty()) << "not a byte of it is in the other function's memory";
  EXPECT_EQ(b.count("drop.ethernet_function"), 1u);
  EXPECT_EQ(b.get(foreign_target).rq_consumed, 0);
}

TEST(spreading, does_not_reach_another_functions_queue_pairs) { expect_kept_out(owning_function - 1); }
TEST(spreading, of_function_0_reaches_no_others_either) { expect_kept_out(0); }

TEST(spreading, does_not_reach_other_kinds_of_queue_pairs) {
  scene b;
  b.put(target(foreign_target, icm::service::rc));
  b.put(spreading(owning_function, foreign_target));
  b.arrive(parent);
  EXPECT_TRUE(b.s.cqes.empty());
  EXPECT_EQ(b.count("drop.service"), 1u);
}

TEST(spreading, does_not_go_round_in_circles) {
  scene b;
  b.put(spreading(owning_function, parent));
  b.arrive(parent);
  EXPECT_TRUE(b.s.cqes.empty());
  EXPECT_EQ(b.count("drop.service"), 1u);
}

TEST(spreading, of_queue_pairs_that_do_not_exist_is_dropped) {
  scene b;
  b.put(spreading(owning_function, 0x77));
  b.arrive(parent);
  EXPECT_TRUE(b.s.cqes.empty());
  EXPECT_EQ(b.count("drop.no_qp"), 1u);
}

/// A frame that nobody spread is steering's business: rules name their own queue pairs.
TEST(spreading, frames_that_were_not_spread_have_no_owner) {
  scene b;
  b.arrive(own_target);
  EXPECT_EQ(b.s.cqes.size(), 1u);
}

}  // namespace
}  // namespace rnic::transport::test
