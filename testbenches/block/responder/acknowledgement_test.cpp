// SPDX-License-Identifier: Apache-2.0
// Acknowledgements by themselves: when they leave, what they answer, and their order with READs.
#include <algorithm>
#include <tuple>

#include "testbenches/block/responder/parts_bench.h"

namespace rnic::transport::test::parts {
namespace {

using kind = read_command::kind;

std::vector<cycle> leaving(const bench& t) {
  std::vector<cycle> all;
  for (const auto& a : t.w.answers) all.push_back(a.when);
  return all;
}

/// Set behind send(): it leaves in the next cycle, and is seen in the one after.
TEST(acknowledgement, leaves_a_cycle_after_it_was_set) {
  bench t;
  responder_flow& f = t.open();
  t.at(100, [&] { t.b.answers.set_ack(f, 70, 5, 0); });
  t.run(200);
  EXPECT_EQ(leaving(t), (std::vector<cycle>{102}));
  const answer_job& j = t.w.answers.at(0).what;
  EXPECT_EQ(j.psn, 70u);
  EXPECT_EQ(j.msn, 5u);
  EXPECT_EQ(j.syndrome, syndrome_ack);
  EXPECT_EQ(j.priority, 3u);
  EXPECT_EQ(t.stats.value("parts.acks"), 1u);
}

TEST(acknowledgement, back_to_back_they_are_an_interval_apart) {
  responder_config c;
  c.ack_cycles = 12;
  bench t(c);
  for (unsigned n = 0; n != 3; ++n) {
    responder_flow& f = t.open(n);
    t.at(100, [&t, &f, n] { t.b.answers.set_ack(f, n, n, 0); });
  }
  t.run(200);
  EXPECT_EQ(leaving(t), (std::vector<cycle>{102, 114, 126}));
}

/// The second and third request find the first one's answer gone and wait for the interval: one ACK for both.
TEST(acknowledgement, answers_all_requests_that_wait_with_it) {
  bench t;
  responder_flow& f = t.open();
  for (unsigned n = 0; n != 3; ++n) t.at(100 + n, [&t, &f, n] { t.b.answers.set_ack(f, 70 + n, n, 0); });
  t.run(200);
  ASSERT_EQ(leaving(t), (std::vector<cycle>{102, 114}));
  EXPECT_EQ(t.w.answers[0].what.psn, 70u);
  EXPECT_EQ(t.w.answers[1].what.psn, 72u);
}

TEST(acknowledgement, is_full_of_as_many_requests_as_it_may_answer) {
  responder_config c;
  c.ack_coalesce = 2;
  bench t(c);
  responder_flow& other = t.open(1);
  responder_flow& f = t.open();
  std::vector<bool> full;
  t.at(100, [&] { t.b.answers.set_ack(other, 1, 1, 0); });
  t.at(102, [&] {
    t.b.answers.set_ack(f, 70, 1, 0);
    full.push_back(t.b.answers.is_full(f));
    t.b.answers.set_ack(f, 71, 2, 0);
    full.push_back(t.b.answers.is_full(f));
  });
  t.at(113, [&] { full.push_back(t.b.answers.is_full(f)); });  // it has left at 113
  t.run(200);
  EXPECT_EQ(full, (std::vector<bool>{false, true, false}));
}

/// The path changes while its ACK waits for the interval; of the new priority there is no place until one comes back.
TEST(acknowledgement, of_a_changed_path_waits_in_the_new_line) {
  responder_config c;
  c.answer.waiting = 1;
  bench t(c);
  t.w.gives_room = false;
  responder_flow& other = t.open(1);
  responder_flow& f = t.open();
  t.contexts[1].dest.priority = 5;
  t.at(100, [&] { t.b.answers.set_ack(other, 1, 1, 0); });
  t.at(101, [&] { t.b.answers.set_ack(f, 70, 5, 0); });
  t.at(102, [&] { t.contexts[0].dest.priority = 5; });
  t.run(200);
  ASSERT_EQ(leaving(t), (std::vector<cycle>{102}));
  t.w.to_give.push_back({0, 5});
  t.run(50);
  ASSERT_EQ(t.w.answers.size(), 2u);
  EXPECT_EQ(t.w.answers[1].what.psn, 70u);
  EXPECT_EQ(t.w.answers[1].what.priority, 5u);
}

TEST(acknowledgement, nak_takes_the_place_of_the_ack_before_it) {
  bench t;
  responder_flow& other = t.open(1);
  responder_flow& f = t.open();
  t.at(100, [&] { t.b.answers.set_ack(other, 1, 1, 0); });
  t.at(103, [&] { t.b.answers.set_ack(f, 70, 1, 0); });
  t.at(105, [&] { t.b.answers.set_nak(f, syndrome_sequence, 71, 1); });
  t.run(200);
  ASSERT_EQ(leaving(t), (std::vector<cycle>{102, 114}));
  EXPECT_EQ(t.w.answers[1].what.syndrome, syndrome_sequence);
  EXPECT_EQ(t.w.answers[1].what.psn, 71u);
  EXPECT_EQ(t.stats.value("parts.naks"), 1u);
}

/// A repeated request is acknowledged while a NAK waits: the NAK is older.
TEST(acknowledgement, goes_behind_the_nak_that_waits) {
  bench t;
  responder_flow& other = t.open(1);
  responder_flow& f = t.open();
  t.at(100, [&] { t.b.answers.set_ack(other, 1, 1, 0); });
  t.at(103, [&] { t.b.answers.set_nak(f, syndrome_sequence, 71, 1); });
  t.at(105, [&] { t.b.answers.set_ack(f, 70, 1, 0); });
  t.run(200);
  ASSERT_EQ(leaving(t), (std::vector<cycle>{102, 114, 126}));
  EXPECT_EQ(t.w.answers[1].what.psn, 71u);
  EXPECT_EQ(t.w.answers[2].what.psn, 70u);
}

/// Places are by port and priority: who waits for one is in nobody's way.
TEST(acknowledgement, one_without_a_place_lets_others_pass) {
  responder_config c;
  c.answer.waiting = 1;
  c.ack_cycles = 1;
  bench t(c);
  t.w.gives_room = false;
  responder_flow& a = t.open(0);
  responder_flow& b = t.open(1);
  responder_flow& other = t.open(2);
  t.contexts[2].dest.priority = 5;
  t.at(100, [&] { t.b.answers.set_ack(a, 1, 1, 0); });
  t.at(101, [&] { t.b.answers.set_ack(b, 2, 1, 0); });
  t.at(102, [&] { t.b.answers.set_ack(other, 3, 1, 0); });
  t.run(150);
  EXPECT_EQ(leaving(t), (std::vector<cycle>{102, 104}));
  EXPECT_EQ(t.w.answers[1].what.psn, 3u);
  const cycle given = t.w.now();
  t.w.to_give.push_back({0, 3});
  t.run(50);
  ASSERT_EQ(leaving(t).size(), 3u);
  EXPECT_EQ(leaving(t)[2], given + 2);  // the place is seen a cycle later, the answer another one
}

/// READ and ACK go to the generator one a cycle, in order; the answer of a queue pair without READs goes its own way.
TEST(acknowledgement, goes_behind_the_read_before_it) {
  bench t;
  responder_flow& f = t.open(0);
  responder_flow& other = t.open(1);
  t.at(100, [&] {
    read_command r;
    r.flow = f.number;
    r.psn = 70;
    t.b.answers.hand_over(f, r);
    t.b.answers.set_ack(f, 71, 2, 0);
    t.b.answers.set_ack(other, 9, 1, 0);
  });
  t.run(200);
  ASSERT_EQ(t.w.commands.size(), 2u);
  EXPECT_EQ(t.w.commands[0].what.what, kind::read);
  EXPECT_EQ(t.w.commands[1].what.what, kind::acknowledge);
  EXPECT_EQ(t.w.commands[1].what.psn, 71u);
  EXPECT_EQ(t.w.commands[0].when, 102u);
  EXPECT_EQ(t.w.commands[1].when, 103u);
  ASSERT_EQ(t.w.answers.size(), 1u);
  EXPECT_EQ(t.w.answers[0].what.psn, 9u);
}

/// Of an ACK that waits and a READ behind it the ACK is handed over first.
TEST(acknowledgement, goes_before_the_read_behind_it) {
  bench t;
  responder_flow& f = t.open();
  t.at(100, [&] {
    read_command r;
    r.flow = f.number;
    r.psn = 70;
    t.b.answers.hand_over(f, r);
    t.b.answers.set_ack(f, 71, 2, 0);
    r.psn = 72;
    t.b.answers.hand_over(f, r);
  });
  t.run(200);
  std::vector<std::uint32_t> psns;
  for (const auto& c : t.w.commands) psns.push_back(c.what.psn);
  EXPECT_EQ(psns, (std::vector<std::uint32_t>{70, 71, 72}));
}

/// Requests of several queue pairs, any number and distance, places given back as slowly as it may be: every request is
/// answered, none before it was there, those of a queue pair in order, and not more often than the interval allows.
using sweep_case = std::tuple<unsigned, unsigned, unsigned>;
struct acknowledgement_sweep : testing::TestWithParam<sweep_case> {};

TEST_P(acknowledgement_sweep, answers_every_request_once) {
  const auto [requests, idle, room_every] = GetParam();
  responder_config c;
  c.ack_cycles = 3;
  bench t(c);
  t.w.room_every = room_every;
  constexpr unsigned pairs = 3;
  for (unsigned n = 0; n != pairs; ++n) {
    responder_flow& f = t.open(n);
    for (unsigned i = 0; i != requests; ++i)
      t.at(100 + i * (idle + 1), [&t, &f, i] { t.b.answers.set_ack(f, 100 + i, i + 1, 0); });
  }
  t.run(500 + requests * (idle + 1) + 4 * room_every * pairs);
  std::array<std::uint32_t, pairs> last{};
  for (std::size_t k = 0; k != t.w.answers.size(); ++k) {
    const auto& [when, j] = t.w.answers[k];
    if (k != 0) {
      ASSERT_GE(when - t.w.answers[k - 1].when, 3u);
    }
    const cycle asked = 100 + (j.psn - 100) * (idle + 1);
    ASSERT_GE(when, asked + 2);
  }
  for (unsigned n = 0; n != pairs; ++n) {
    const responder_flow& f = std::as_const(t.b.flows)[t.b.flows.find(first_qpn + n)];
    EXPECT_FALSE(f.ack.pending || f.answers.listed) << n;
    last[n] = f.ack.psn;
    EXPECT_EQ(last[n], 99 + requests);
  }
  const auto answered = [&](std::uint32_t psn) {
    return std::count_if(t.w.answers.begin(), t.w.answers.end(), [&](const auto& a) { return a.what.psn == psn; });
  };
  EXPECT_EQ(answered(99 + requests), pairs);  // the last request of each
  EXPECT_EQ(t.stats.value("parts.acks"), t.w.answers.size());
}
INSTANTIATE_TEST_SUITE_P(all, acknowledgement_sweep,
                         testing::Combine(testing::Values(1u, 2u, 7u, 40u), testing::Values(0u, 1u, 5u, 40u),
                                          testing::Values(1u, 7u, 50u)));

}  // namespace
}  // namespace rnic::transport::test::parts
