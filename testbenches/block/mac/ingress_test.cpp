// SPDX-License-Identifier: Apache-2.0
// Ingress buffers filled exactly to their limits.
#include "model/mac/ingress.h"

#include <gtest/gtest.h>

namespace rnic::mac::test {
namespace {

struct buffers {
  bool admit(std::uint32_t size, std::uint8_t priority = 3) {
    payload::frame_ptr f = pool.get();
    f->priority = priority;
    f->length = size;
    return room.admit(std::move(f), size, now);
  }
  /// The next frame goes, of `size` bytes with its FCS, and all of it has left.
  void leave(std::uint32_t size, std::uint8_t priority = 3) {
    EXPECT_EQ(room.take()->priority, priority);
    room.depart(0, {now, size - 4, priority});
    room.settle(now += 1000);
  }
  payload::frame_pool pool;
  ingress room{1000, 600, 300, 16};
  sim::cycle_t now = 0;
};

TEST(mac_ingress, above_xoff_and_not_at_it) {
  buffers b;
  EXPECT_TRUE(b.admit(500));
  EXPECT_TRUE(b.admit(100));
  EXPECT_EQ(b.room.occupancy(3), 600u);
  EXPECT_EQ(b.room.above(), 0u) << "exactly at XOFF";
  EXPECT_TRUE(b.admit(64));
  EXPECT_EQ(b.room.above(), 1u << 3);
}

TEST(mac_ingress, above_until_it_has_fallen_to_xon) {
  buffers b;
  EXPECT_TRUE(b.admit(301));
  EXPECT_TRUE(b.admit(64));
  EXPECT_TRUE(b.admit(236));  // 601
  EXPECT_EQ(b.room.above(), 1u << 3);
  b.leave(301);
  EXPECT_EQ(b.room.occupancy(3), 300u);
  EXPECT_EQ(b.room.above(), 0u) << "exactly at XON";

  buffers c;
  EXPECT_TRUE(c.admit(300));
  EXPECT_TRUE(c.admit(301));
  c.leave(300);
  EXPECT_EQ(c.room.occupancy(3), 301u);
  EXPECT_EQ(c.room.above(), 1u << 3) << "one byte above XON";
  EXPECT_TRUE(c.admit(64));
  c.leave(301);
  EXPECT_EQ(c.room.above(), 0u);
  EXPECT_TRUE(c.admit(536));
  EXPECT_EQ(c.room.occupancy(3), 600u);
  EXPECT_EQ(c.room.above(), 0u) << "it has to cross XOFF again";
}

TEST(mac_ingress, exactly_full_and_one_byte_more) {
  buffers b;
  EXPECT_TRUE(b.admit(936));
  EXPECT_FALSE(b.admit(65));
  EXPECT_EQ(b.room.occupancy(3), 936u) << "what found no room has taken none";
  EXPECT_TRUE(b.admit(64));
  EXPECT_EQ(b.room.occupancy(3), 1000u);
  EXPECT_EQ(b.room.max_occupancy(3), 1000u);
  EXPECT_TRUE(b.admit(1000, 4)) << "another priority has a buffer of its own";
  EXPECT_EQ(b.room.above(), 1u << 3 | 1u << 4);
}

TEST(mac_ingress, bytes_leave_a_beat_a_cycle_and_not_when_the_frame_is_handed_on) {
  buffers b;
  EXPECT_TRUE(b.admit(504));
  EXPECT_TRUE(b.admit(200));
  b.room.take();
  b.room.take();
  EXPECT_EQ(b.room.occupancy(3), 704u) << "what waits behind the buffer has its room";
  EXPECT_EQ(b.room.falls_at(), sim::never) << "nothing leaves yet";
  b.room.depart(0, {100, 500, 3});
  b.room.settle(100);
  EXPECT_EQ(b.room.occupancy(3), 700u) << "the FCS, which nobody wants";
  b.room.settle(101);
  EXPECT_EQ(b.room.occupancy(3), 684u);
  EXPECT_EQ(b.room.falls_at(), 125u) << "700 - 25 * 16 = 300";
  b.room.settle(124);
  EXPECT_EQ(b.room.occupancy(3), 316u);
  EXPECT_EQ(b.room.above(), 1u << 3);
  b.room.settle(125);
  EXPECT_EQ(b.room.occupancy(3), 300u);
  EXPECT_EQ(b.room.above(), 0u);
  b.room.settle(131);
  EXPECT_EQ(b.room.occupancy(3), 204u);
  b.room.settle(132);  // the last four bytes are a beat
  EXPECT_EQ(b.room.occupancy(3), 200u);
  b.room.settle(1000);
  EXPECT_EQ(b.room.occupancy(3), 200u);
}

TEST(mac_ingress, two_that_leave_at_once_are_twice_as_quick) {
  buffers b;
  EXPECT_TRUE(b.admit(404));
  EXPECT_TRUE(b.admit(404));
  b.room.depart(0, {10, 400, 3});
  b.room.depart(1, {10, 400, 3});
  b.room.settle(11);  // 800 - 32
  EXPECT_EQ(b.room.occupancy(3), 768u);
  EXPECT_EQ(b.room.falls_at(), 26u) << "(768 - 300) / 32 cycles from 11 on";
  b.room.settle(25);
  EXPECT_EQ(b.room.above(), 1u << 3);
  b.room.settle(26);
  EXPECT_EQ(b.room.occupancy(3), 288u);
  EXPECT_EQ(b.room.above(), 0u);
}

TEST(mac_ingress, priorities_take_turns) {
  buffers b;
  for (const std::uint8_t p : std::vector<std::uint8_t>{0, 0, 5, 5, 7}) EXPECT_TRUE(b.admit(64, p));
  std::vector<unsigned> order;
  while (!b.room.empty()) order.push_back(b.room.take()->priority);
  EXPECT_EQ(order, (std::vector<unsigned>{0, 5, 7, 0, 5}));
}

}  // namespace
}  // namespace rnic::mac::test
