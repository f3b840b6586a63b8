// SPDX-License-Identifier: Apache-2.0
#include "model/sim/followed_requests.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace rnic::sim::test {
namespace {

struct kept_requests final : request_sink_if {
  void take(const followed_request& r) override { all.push_back(r); }
  std::vector<followed_request> all;
};

std::string stages(const followed_request::way& w) {
  std::string text;
  time_ps at = w.start;
  for (const span::mark& m : w.marks) {
    text += std::string(text.empty() ? "" : ", ") + m.stage + " " + std::to_string(m.at - at);
    at = m.at;
  }
  return text;
}

class FollowedRequests : public ::testing::Test {
 protected:
  static constexpr request_key key{0, 64, 5};
  kept_requests out;
  span_recorder spans;
  followed_requests all{{4, 1'000}, out};
  FollowedRequests() { spans.follow(&all); }
  /// From the post to the responder's commit.
  span_id commit(const request_key& k, time_ps since) {
    const span_id id = all.open(k, 7, since);
    spans.leave(all.rung(id), "a.root_complex", "post", since + 10);
    spans.leave(all.rung(id), "a.adapter.scheduler", "scheduler", since + 30);
    const span_id taken = all.taken(k, "a.adapter.requester", since + 40, all.rung(id));
    spans.leave(taken, "a.adapter.requester", "transmit", since + 50);
    spans.leave(taken, "b.adapter.responder", "commit", since + 100);
    return taken;
  }
};

TEST_F(FollowedRequests, AcknowledgementIsTheWayAndThePayloadBesideIt) {
  const span_id id = commit(key, 1'000);
  const span_id ack = spans.fork(id);
  spans.leave(id, "b.adapter.pcie", "dma", 1'120);  // of the payload, for which nobody waits
  spans.leave(ack, "b.adapter.port1", "wire", 1'150);
  spans.leave(id, "b.root_complex", "memory write", 1'300);
  spans.leave(ack, "a.adapter.requester", "complete", 1'200);
  const span_id cqe = all.completed(key, "a.adapter.requester", 1'200);
  spans.leave(cqe, "a.root_complex", "memory write", 1'250);
  all.polled(key, 1'260, 0, "a.processor");
  EXPECT_TRUE(out.all.empty());  // what is beside may go on
  all.finish();
  ASSERT_EQ(out.all.size(), 1u);
  const followed_request& r = out.all[0];
  EXPECT_EQ(stages(r.path),
            "post 10, scheduler 20, transmit 20, commit 50, wire 50, complete 50, memory write 50, poll 10");
  EXPECT_EQ(stages(r.beside), "dma 20, memory write 180");
  EXPECT_TRUE(r.polled);
  EXPECT_EQ(r.what, 7u);
}

TEST_F(FollowedRequests, LaterAcknowledgementEndsTheWaitForTheOwnOne) {
  const span_id id = commit(key, 0);
  spans.fork(id);  // never leaves: a later one comes first
  all.completed(key, "a.adapter.requester", 500);
  all.polled(key, 600, 0, "a.processor");
  all.finish();
  ASSERT_EQ(out.all.size(), 1u);
  EXPECT_EQ(stages(out.all[0].path), "post 10, scheduler 20, transmit 20, commit 50, answer 400, unsignalled 100");
}

TEST_F(FollowedRequests, RunningQueueTakesTheNextRequestWithoutItsDoorbell) {
  const span_id id = all.open(key, 0, 0);
  spans.leave(all.rung(id), "a.root_complex", "post", 10);
  const span_id taken = all.taken(key, "a.adapter.requester", 40, 0);
  spans.leave(all.rung(id), "a.adapter.doorbell", "doorbell", 60);  // comes when nobody waits for it
  spans.leave(taken, "a.adapter.requester", "transmit", 70);
  all.polled(key, 100, 0, "a.processor");
  all.finish();
  EXPECT_EQ(stages(out.all.at(0).path).substr(0, 36), "post 10, send queue 30, transmit 30,");
}

TEST_F(FollowedRequests, DoorbellIsThatOfAllThatWerePostedWithIt) {
  const request_key second{0, 64, 6};
  const span_id one = all.open(key, 0, 0), other = all.open(second, 1, 0);
  all.join(one, other);
  spans.leave(all.rung(one), "a.adapter.doorbell", "doorbell", 25);
  all.finish();
  ASSERT_EQ(out.all.size(), 2u);
  for (const followed_request& r : out.all) {
    EXPECT_EQ(stages(r.path), "doorbell 25");
    EXPECT_FALSE(r.polled);
  }
}

TEST_F(FollowedRequests, WhatIsSentAgainHasWaitedForThePeer) {
  commit(key, 0);
  const span_id again = all.taken(key, "a.adapter.requester", 900, 0);
  spans.leave(again, "a.adapter.requester", "transmit", 910);
  const span_id ack = spans.fork(again);
  spans.leave(ack, "a.adapter.requester", "complete", 950);
  all.completed(key, "a.adapter.requester", 955);
  all.polled(key, 960, 0, "a.processor");
  all.finish();
  EXPECT_EQ(stages(out.all.at(0).path),
            "post 10, scheduler 20, transmit 20, commit 50, retransmission 800, transmit 10, complete 40, order 5, "
            "unsignalled 5");
}

TEST_F(FollowedRequests, PlacesAreUsedAgainAndLateMarksAreDropped) {
  span_id first = 0;
  for (std::uint16_t i = 0; i < 4; ++i) {
    const span_id id = all.open({0, 64, i}, i, 0);
    if (i == 0) first = id;
  }
  EXPECT_EQ(all.open({0, 64, 4}, 4, 0), 0u);  // all are under way
  EXPECT_EQ(all.not_followed(), 1u);
  all.polled({0, 64, 0}, 100, 0, "a.processor");
  EXPECT_NE(all.open({0, 64, 5}, 5, 100), 0u);  // the one that was polled makes room
  ASSERT_EQ(out.all.size(), 1u);
  EXPECT_EQ(out.all[0].what, 0u);
  spans.leave(first, "b.root_complex", "memory write", 120);
  EXPECT_EQ(all.late_marks(), 1u);
  all.finish();
  EXPECT_EQ(out.all.size(), 5u);
}

TEST_F(FollowedRequests, IsHandedOverAWhileBehindItsPoll) {
  all.open(key, 0, 0);
  all.polled(key, 500, 3, "a.processor");
  const request_key second{0, 64, 6};
  all.open(second, 1, 600);
  all.polled(second, 1'499, 0, "a.processor");
  EXPECT_TRUE(out.all.empty());
  all.open({0, 64, 7}, 2, 600);
  all.polled({0, 64, 7}, 1'500, 0, "a.processor");
  ASSERT_EQ(out.all.size(), 1u);
  EXPECT_EQ(out.all[0].status, 3);
}

/// The way until now, as a comment in a capture has it.
TEST_F(FollowedRequests, SoFarIsTheWayOfThePartThatASpanNames) {
  followed_request now;
  EXPECT_FALSE(all.so_far(0, now));
  const span_id id = commit(key, 1'000);
  ASSERT_TRUE(all.so_far(id, now));
  EXPECT_EQ(stages(now.path), "post 10, scheduler 20, transmit 20, commit 50");
  EXPECT_EQ(now.path.start, 1'000u);
  EXPECT_EQ(std::tie(now.key.adapter, now.key.qpn, now.key.index, now.number, now.what),
            std::make_tuple(0u, 64u, std::uint16_t{5}, std::uint64_t{1}, std::uint64_t{7}));
  const span_id ack = spans.fork(id);
  spans.leave(id, "b.adapter.pcie", "dma", 1'120);
  spans.leave(ack, "b.adapter.port1", "wire", 1'150);
  // The acknowledgement's way has not waited for the payload, and the payload's goes on without the acknowledgement.
  ASSERT_TRUE(all.so_far(ack, now));
  EXPECT_EQ(stages(now.path), "post 10, scheduler 20, transmit 20, commit 50, wire 50");
  ASSERT_TRUE(all.so_far(id, now));
  EXPECT_EQ(stages(now.path), "post 10, scheduler 20, transmit 20, commit 50, dma 20");
}

TEST_F(FollowedRequests, SoFarIsOfEachRequestUntilItHasBeenHandedOver) {
  const request_key second{0, 64, 6};
  const span_id one = commit(key, 0), other = commit(second, 500);
  followed_request now;
  ASSERT_TRUE(all.so_far(other, now));
  EXPECT_EQ(now.number, 2u);
  EXPECT_EQ(now.key.index, 6u);
  EXPECT_EQ(now.path.start, 500u);
  all.completed(key, "a.adapter.requester", 550);
  all.polled(key, 600, 0, "a.processor");
  ASSERT_TRUE(all.so_far(one, now));  // what is beside its way may go on
  EXPECT_EQ(now.number, 1u);
  all.polled(second, 1'600, 0, "a.processor");
  ASSERT_EQ(out.all.size(), 1u);
  EXPECT_FALSE(all.so_far(one, now));
  for (std::uint16_t i = 7; i < 10; ++i) all.open({0, 64, i}, 1, 1'700);  // its place is another one's
  EXPECT_FALSE(all.so_far(one, now));
  ASSERT_TRUE(all.so_far(other, now));
  EXPECT_EQ(now.number, 2u);
}

}  // namespace
}  // namespace rnic::sim::test
