// SPDX-License-Identifier: Apache-2.0
// Go-back: a forgotten message a cycle, and who waits for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <tuple>

#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
using ::bench::first_psn;
using wire::operation;

const sim::server& engine_of(const bench::bench& b) {
  for (const sim::server* s : b.core.servers())
    if (s->name() == "requester.go_back_engine") return *s;
  throw std::runtime_error("no go-back engine");
}
std::uint64_t count(const bench::bench& b, const char* name) { return b.stats.value(std::string("requester.") + name); }

/// `many` WRITEs of a packet, of which the one with this place was lost.
struct loss {
  unsigned many, place;
};
void PrintTo(const loss& l, std::ostream* to) { *to << l.place << " of " << l.many; }
class lost : public testing::TestWithParam<std::tuple<loss, bool>> {};
TEST_P(lost, messages_behind_are_taken_back_one_a_cycle_and_sent_again) {
  const auto [what, always] = GetParam();
  const auto [many, place] = what;
  bench::setup s;
  s.time.always_tick = always;
  bench::bench b(s);
  for (unsigned i = 0; i < many; ++i) b.post_write(16);
  b.ring_doorbell();
  b.run_ns(8000);
  ASSERT_EQ(b.w.sent.size(), many);
  b.respond(operation::acknowledge, (first_psn + place) & 0xffffff, 0x60);
  b.run_ns(8000);
  const unsigned behind = many - 1 - place;
  EXPECT_EQ(count(b, "searched_messages"), place);
  EXPECT_EQ(count(b, "go_back.taken_back"), behind);
  EXPECT_EQ(engine_of(b).operations(), behind != 0 ? 1u : 0u);
  // A message a cycle, in turn with those before it, which complete; in the cycle after the last it settles.
  EXPECT_EQ(engine_of(b).busy_cycles(), behind + std::min(place, behind));
  ASSERT_EQ(b.w.sent.size(), many + behind + 1);
  for (unsigned i = place; i < many; ++i)
    EXPECT_EQ(b.sent(many + i - place).bth.psn.value(), (first_psn + i) & 0xffffff);
  b.ack((first_psn + many - 1) & 0xffffff);
  b.run_ns(500);
  EXPECT_EQ(b.w.cqes.size(), many);
}
INSTANTIATE_TEST_SUITE_P(go_back, lost,
                         testing::Combine(testing::Values(loss{1, 0}, loss{2, 0}, loss{2, 1}, loss{5, 0}, loss{5, 1},
                                                          loss{5, 4}, loss{14, 0}, loss{14, 1}, loss{14, 4},
                                                          loss{14, 13}),
                                          testing::Bool()));

/// An error of the queue pair: what is complete stays, the first message that is not begins the flush.
TEST(go_back, walks_past_what_is_complete_when_the_queue_pair_is_in_error) {
  bench::bench b;
  for (unsigned i = 0; i < 6; ++i) b.post_write(16);
  b.ring_doorbell();
  b.run_ns(8000);
  b.ack((first_psn + 3) & 0xffffff);
  b.run_ns(4);  // the error comes two cycles later: two of four have completed
  b.w.to_error.push_back(bench::qpn);
  b.w.wake_next();
  b.run_ns(8000);
  ASSERT_EQ(b.w.cqes.size(), 6u);
  for (unsigned i = 0; i < 6; ++i) {
    EXPECT_EQ(b.w.cqes[i].second.wqe_index, i);
    EXPECT_EQ(b.w.cqes[i].second.syndrome, i < 4 ? 0 : transport::syndrome::flush) << i;
  }
  EXPECT_EQ(count(b, "go_back.walked"), 2u);
  EXPECT_EQ(count(b, "go_back.taken_back"), 2u);
}

/// What comes for the queue pair meanwhile waits, and what is behind it for another one too.
class meanwhile : public testing::TestWithParam<std::tuple<unsigned, bool>> {};
TEST_P(meanwhile, answers_of_its_queue_pair_wait_in_front_of_others) {
  const auto [many, comes] = GetParam();
  bench::bench b;
  b.make_qp(bench::qpn + 1);  // with the same send queue
  for (unsigned i = 0; i < many; ++i) b.post_write(16);
  for (unsigned q = 0; q < 2; ++q) {
    b.ring_doorbell();
    if (q == 1) b.w.to_ring.back().qpn = bench::qpn + 1;
    b.run_ns(8000);
  }
  ASSERT_EQ(b.w.sent.size(), 2 * many);
  const sim::cycle_t asked = b.core.now();
  b.respond(operation::acknowledge, first_psn, 0x60);
  if (comes) b.ack((first_psn + many) & 0xffffff);  // was never sent
  b.ack(first_psn);
  b.w.to_rx.back()->packet.bth.dest_qp = bench::qpn + 1;
  b.run_ns(400);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.qpn, bench::qpn + 1);
  // A cycle to the requester, one for each response, one back; and the messages behind the first, a cycle each.
  EXPECT_EQ(b.w.cqes[0].first - asked, comes ? 5 + (many - 1) : 4);
}
INSTANTIATE_TEST_SUITE_P(go_back, meanwhile, testing::Combine(testing::Values(1u, 2u, 6u, 14u), testing::Bool()));

}  // namespace
