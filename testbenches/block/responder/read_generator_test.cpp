// SPDX-License-Identifier: Apache-2.0
// The READ generator: cycles idle, back to back, stalled by each neighbour and full; order; repetitions; what is given
// up.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "testbenches/bench/child.h"
#include "testbenches/block/responder/generator_bench.h"

namespace rnic::transport::test::generator {
namespace {

using told = read_report::kind;

/// From memory's answer to the response.
constexpr cycle from_memory = 2;

std::vector<std::uint8_t> payload_of(const answer_job& j) {
  const std::uint8_t* p = j.frame->buffer.data() + payload::frame::payload_start;
  return {p, p + j.payload};
}
std::vector<std::uint8_t> bytes_at(const rig& r, std::uint64_t va, std::uint32_t n) {
  const auto at = r.w.memory.begin() + static_cast<std::ptrdiff_t>(va);
  return {at, at + n};
}
std::vector<std::uint32_t> from_to(std::uint32_t first, std::uint32_t end) {
  std::vector<std::uint32_t> list;
  for (std::uint32_t i = first; i != end; ++i) list.push_back(i);
  return list;
}

// ---------------------------------------------------------------- literal cycles

TEST(read_generator, one_read_alone_takes_a_cycle_in_and_none_out) {
  rig r;
  r.start(r.request(0, 100, 0x1000, 64), 10);
  r.run(300);
  ASSERT_EQ(r.w.answers.size(), 1u);
  EXPECT_EQ(r.w.payload.reads[0].first - r.w.commanded[0], to_memory);
  EXPECT_EQ(r.w.answers[0].at - r.w.payload.answers[0], from_memory);
  EXPECT_EQ(payload_of(r.w.answers[0].job), bytes_at(r, 0x1000, 64));
  ASSERT_EQ(r.w.reports.size(), 1u);
  EXPECT_EQ(r.w.reports[0].first - r.w.payload.answers[0], from_memory) << "its place is free in that cycle";
  EXPECT_EQ(r.w.reports[0].second.what, told::ended);
}

TEST(read_generator, an_empty_read_touches_no_memory) {
  rig r;
  r.start(r.request(0, 100, 0, 0), 10);
  r.run(100);
  ASSERT_EQ(r.w.answers.size(), 1u);
  EXPECT_TRUE(r.w.payload.reads.empty());
  EXPECT_EQ(r.w.answers[0].at - r.w.commanded[0], 3u);
}

TEST(read_generator, a_packet_without_an_address_asks_translation_first) {
  rig r;
  r.start(r.request(0, 100, 0x1000, 2048), 10);
  r.run(400);
  ASSERT_EQ(r.w.asked.size(), 1u) << "of the second packet";
  EXPECT_EQ(r.w.asked[0] - r.w.commanded[0], to_memory + 2 + 69) << "behind the grant 64 beats and 5 cycles";
  EXPECT_EQ(r.w.payload.reads[1].first - r.w.asked[0], r.w.translate_cycles + 2);
}

/// The engine's interval a packet: read_packet_cycles, or its beats and beat_overhead_cycles.
class read_interval : public testing::TestWithParam<std::pair<unsigned, cycle>> {};
TEST_P(read_interval, is_that_of_the_engine) {
  const auto [length, interval] = GetParam();
  rig r;
  for (unsigned i = 0; i < 20; ++i) r.start(r.request(static_cast<std::uint16_t>(i), 100, 0x1000, length));
  r.run(3000);
  ASSERT_EQ(r.w.payload.reads.size(), 20u);
  for (unsigned i = 1; i < 20; ++i)
    ASSERT_EQ(r.w.payload.reads[i].first - r.w.payload.reads[i - 1].first, interval) << i;
  EXPECT_EQ(r.count("packets"), 20u);
  EXPECT_EQ(r.count("bytes"), 20u * length);
  for (const sim::server* s : r.core.servers())
    if (s->name() == "read_generator.ask") {
      EXPECT_EQ(s->busy_cycles(), 20 * interval);
    }
}
INSTANTIATE_TEST_SUITE_P(lengths, read_interval,
                         testing::Values(std::pair{1u, cycle{12}}, std::pair{112u, cycle{12}},
                                         std::pair{113u, cycle{13}}, std::pair{256u, cycle{21}},
                                         std::pair{1024u, cycle{69}}));

// ---------------------------------------------------------------- pieces, and the READ engine

std::uint64_t engine_cycles(const rig& r) {
  for (const sim::server* s : r.core.servers())
    if (s->name() == "read_engine.turns") return s->busy_cycles();
  return 0;
}

struct piece_case {
  unsigned length;
  cycle engine;  ///< cycles of the READ engine beside those of the request
};
/// 8 for each packet but a first one of up to 256 bytes; one that takes some waits two cycles for its grant.
class read_pieces : public testing::TestWithParam<piece_case> {};
TEST_P(read_pieces, take_the_read_engine) {
  const auto [length, engine] = GetParam();
  rig r;
  r.start(r.request(0, 100, 0x1000, length), 10);
  r.run(600);
  if (length != 0) {
    ASSERT_FALSE(r.w.payload.reads.empty());
    EXPECT_EQ(r.w.payload.reads[0].first - r.w.commanded[0], to_memory + (length > 256 ? 2 : 0));
  }
  EXPECT_EQ(engine_cycles(r), engine);
  EXPECT_EQ(r.told(told::ended), 1u);
}
INSTANTIATE_TEST_SUITE_P(lengths, read_pieces,
                         testing::Values(piece_case{0, 0}, piece_case{1, 0}, piece_case{256, 0}, piece_case{257, 8},
                                         piece_case{512, 8}, piece_case{513, 8}, piece_case{1024, 8},
                                         piece_case{1025, 8 + 8}, piece_case{2048, 8 + 8},
                                         piece_case{2049, 8 + 8 + 8}));

/// The second packet has asked while the first had `ask`: it loses nothing.
TEST(read_generator, further_packets_have_their_grant_when_ask_is_free) {
  rig r;
  r.start(r.request(0, 100, 0x1000, 2048), 10);
  r.run(600);
  ASSERT_EQ(r.w.asked.size(), 1u);
  EXPECT_EQ(r.w.asked[0] - r.w.commanded[0], to_memory + 2 + 69);
  EXPECT_EQ(r.stats.value("read_engine.generator.grants"), 2u);
}

/// 100 cycles a piece. Those of up to 256 bytes stand behind the one that waits, and then go on at the interval of ask.
TEST(read_generator, packets_follow_each_other_at_the_interval_of_the_read_engine) {
  responder_config c;
  c.read_engine.piece_cycles = 100;
  rig r(c);
  for (std::uint16_t f = 0; f < 4; ++f) r.start(r.request(f, 100, 0x1000, 512));
  for (std::uint16_t f = 4; f < 6; ++f) r.start(r.request(f, 100, 0x1000, 64));
  r.run(1000);
  ASSERT_EQ(r.w.payload.reads.size(), 6u);
  for (unsigned i = 1; i < 4; ++i) EXPECT_EQ(r.w.payload.reads[i].first - r.w.payload.reads[i - 1].first, 100u) << i;
  EXPECT_EQ(r.w.payload.reads[4].first - r.w.payload.reads[3].first, 5u + 32);
  EXPECT_EQ(r.w.payload.reads[5].first - r.w.payload.reads[4].first, 12u);
  for (const sim::server* s : r.core.servers())
    if (s->name() == "read_generator.ask") {
      const auto held = s->blocked_cycles();
      ASSERT_EQ(held.size(), 1u);
      EXPECT_STREQ(held[0].by, "read engine");
      EXPECT_EQ(held[0].cycles, 2u + 3 * (100 - 37));
    }
}

/// What waits for the engine is given up: the grant is the next packet's.
TEST(read_generator, a_grant_of_a_read_that_is_given_up_is_the_next_ones) {
  responder_config c;
  c.read_engine.piece_cycles = 200;
  rig r(c);
  r.start(r.request(0, 100, 0x1000, 512));
  r.start(r.request(1, 100, 0x1000, 512));
  r.start(r.other(kind::discard, 1, 0), 20);
  r.run(300);
  ASSERT_EQ(r.w.payload.reads.size(), 1u);
  EXPECT_EQ(r.told(told::discarded), 1u);
  EXPECT_EQ(r.stats.value("read_engine.generator.grants"), 2u);
  const cycle before = r.core.now();
  r.start(r.request(2, 100, 0x1000, 512));
  r.run(300);
  ASSERT_EQ(r.w.payload.reads.size(), 2u);
  EXPECT_EQ(r.w.payload.reads[1].first - r.w.commanded.back(), to_memory);
  EXPECT_GE(r.w.commanded.back(), before);
  EXPECT_EQ(r.stats.value("read_engine.generator.grants"), 2u);
}

TEST(read_generator, queue_pairs_take_turns_packet_by_packet) {
  rig r;
  for (std::uint16_t f = 0; f < 3; ++f) r.start(r.request(f, 100, 0x1000, 4096));
  r.run(3000);
  ASSERT_EQ(r.w.answers.size(), 12u);
  std::vector<std::uint32_t> peers;
  for (unsigned i = 0; i < 9; ++i) peers.push_back(r.w.answers[i].job.remote_qpn - 0x1000);
  EXPECT_EQ(peers, (std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2, 0, 1, 2}));
}

TEST(read_generator, answers_of_many_queue_pairs_leave_one_a_cycle) {
  rig r;
  r.w.read_cycles = 600;  // all of them are there when the first leaves
  for (std::uint16_t f = 0; f < 8; ++f) r.start(r.other(kind::replay, f, 100, static_cast<std::uint8_t>(f)));
  r.run(200);
  ASSERT_EQ(r.w.answers.size(), 8u);
  for (unsigned i = 1; i < 8; ++i) EXPECT_EQ(r.w.answers[i].at - r.w.answers[i - 1].at, 1u);
}

// ---------------------------------------------------------------- stalled by each neighbour

TEST(read_generator, memory_that_takes_nothing_stalls_only_what_needs_it) {
  rig r;
  r.w.takes_reads = false;
  for (std::uint16_t f = 0; f < 6; ++f) r.start(r.request(f, 100, 0x1000, 64));
  r.start(r.other(kind::replay, 9, 100));
  r.run(400);
  EXPECT_TRUE(r.w.payload.reads.empty());
  ASSERT_EQ(r.w.answers.size(), 1u);
  EXPECT_EQ(r.w.answers[0].job.remote_qpn, 0x1009u);
  r.w.takes_reads = true;
  r.run(400);
  ASSERT_EQ(r.w.payload.reads.size(), 6u);
  for (unsigned i = 1; i < 6; ++i)
    EXPECT_EQ(r.w.payload.reads[i].first - r.w.payload.reads[i - 1].first, 1u) << "they were asked for";
  EXPECT_EQ(r.w.answers.size(), 7u);
}

TEST(read_generator, translation_that_takes_nothing_leaves_what_has_addresses) {
  rig r;
  r.w.takes_translations = false;
  for (std::uint16_t f = 0; f < 4; ++f) r.start(r.request(f, 100, 0x1000, 2048));
  r.run(1000);
  EXPECT_EQ(r.w.answers.size(), 4u) << "a first packet each";
  r.w.takes_translations = true;
  r.run(1000);
  EXPECT_EQ(r.w.answers.size(), 8u);
}

/// Of one priority both places are taken and none comes back: other priorities and the other port do not notice.
TEST(read_generator, a_priority_without_places_is_in_nobody_elses_way) {
  rig r;
  r.w.gives_room[0][3] = false;
  for (unsigned i = 0; i < 4; ++i) r.start(r.request(static_cast<std::uint16_t>(i), 100, 0x1000, 64));
  r.run(400);
  ASSERT_EQ(r.w.answers.size(), 2u);
  r.start(r.request(8, 100, 0x1000, 64, 5));
  r.run(400);
  ASSERT_EQ(r.w.answers.size(), 3u);
  EXPECT_EQ(r.w.answers[2].at - r.w.payload.answers[4], from_memory);
  for (unsigned i = 0; i < 2; ++i) r.w.to_give.push_back({0, 3});
  r.run(20);
  EXPECT_EQ(r.w.answers.size(), 5u);
}

/// Its response waits for the paused priority; the next queue pair in its place has another one and waits for nothing.
TEST(read_generator, one_that_is_given_up_leaves_its_line) {
  rig r;
  r.w.gives_room[0][3] = false;
  for (std::uint16_t f = 0; f < 4; ++f) r.start(r.request(f, 100, 0x1000, 64));
  r.run(400);
  ASSERT_EQ(r.w.answers.size(), 2u) << "2 and 3 stand in the line";
  r.start(r.other(kind::discard, 2, 0));
  r.run(50);
  ASSERT_EQ(r.told(told::discarded), 1u);
  r.start(r.request(2, 200, 0x1000, 64, 0));
  r.run(400);
  ASSERT_EQ(r.w.answers.size(), 3u);
  EXPECT_EQ(r.w.answers[2].job.psn, 200u);
  EXPECT_EQ(r.w.answers[2].job.priority, 0u);
  EXPECT_EQ(r.w.answers[2].at - r.w.payload.answers.back(), from_memory);
  for (unsigned i = 0; i < 2; ++i) r.w.to_give.push_back({0, 3});
  r.run(50);
  ASSERT_EQ(r.w.answers.size(), 4u);
  EXPECT_EQ(r.w.answers[3].job.remote_qpn, 0x1003u);
}

/// A request that comes behind a change of the path takes along what waits.
TEST(read_generator, a_changed_path_is_another_line) {
  rig r;
  r.w.gives_room[0][3] = false;
  for (std::uint16_t f = 0; f < 3; ++f) r.start(r.request(f, 100, 0x1000, 64));
  r.run(400);
  ASSERT_EQ(r.w.answers.size(), 2u) << "2 stands in the line";
  r.start(r.request(2, 101, 0x1000, 64, 5));
  r.run(400);
  ASSERT_EQ(r.psns(), (std::vector<std::uint32_t>{100, 100, 100, 101}));
  EXPECT_EQ(r.w.answers[2].job.priority, 5u);
  EXPECT_EQ(r.w.answers[3].job.priority, 5u);
}

TEST(read_generator, reports_that_nobody_takes_hold_up_no_answer) {
  rig r;
  r.w.takes_reports = false;
  for (unsigned i = 0; i < 40; ++i) r.start(r.request(static_cast<std::uint16_t>(i % 8), 100 + i, 0x1000, 64));
  r.run(2000);
  EXPECT_EQ(r.w.answers.size(), 40u);
  r.w.takes_reports = true;
  r.run(100);
  ASSERT_EQ(r.w.reports.size(), 40u);
  for (unsigned i = 1; i < 40; ++i) EXPECT_EQ(r.w.reports[i].first - r.w.reports[i - 1].first, 1u);
}

TEST(read_generator, full_of_packets_it_asks_for_one_when_one_has_left) {
  responder_config c;
  c.read_gathers = 2;
  rig r(c);
  r.w.read_cycles = 300;
  for (std::uint16_t f = 0; f < 4; ++f) r.start(r.request(f, 100, 0x1000, 64));
  r.run(1500);
  ASSERT_EQ(r.w.payload.reads.size(), 4u);
  EXPECT_EQ(r.w.payload.reads[1].first - r.w.payload.reads[0].first, 12u);
  EXPECT_EQ(r.w.payload.reads[2].first, r.w.answers[0].at) << "asked for in the cycle in which the first one left";
  std::uint64_t longer = 0;  // than the interval of ask
  for (unsigned i = 2; i < 4; ++i) longer += r.w.payload.reads[i].first - r.w.payload.reads[i - 1].first - 12;
  const auto& all = r.core.servers();
  const auto ask =
      std::find_if(all.begin(), all.end(), [](const sim::server* s) { return s->name() == "read_generator.ask"; });
  ASSERT_NE(ask, all.end());
  ASSERT_EQ((*ask)->blocked_cycles().size(), 1u);
  EXPECT_STREQ((*ask)->blocked_cycles()[0].by, "gathers");
  EXPECT_EQ((*ask)->blocked_cycles()[0].cycles, longer);
}

class read_translations : public testing::TestWithParam<unsigned> {};
TEST_P(read_translations, so_many_of_a_read_are_under_way_and_no_more) {
  responder_config c;
  c.read_translations = GetParam();
  rig r(c);
  r.w.translate_cycles = 500;
  read_command q = r.request(0, 100, 0x1000, 8192);
  q.first.count = 0;
  r.start(q);
  r.run(400);
  EXPECT_EQ(r.w.asked.size(), GetParam());
  r.run(6000);
  EXPECT_EQ(r.w.answers.size(), 8u);
}
INSTANTIATE_TEST_SUITE_P(many, read_translations, testing::Values(1u, 2u, 4u));

// ---------------------------------------------------------------- order

TEST(read_generator, an_ack_goes_where_it_was_commanded) {
  rig r;
  r.start(r.other(kind::acknowledge, 0, 99));
  r.start(r.request(0, 100, 0x1000, 2048));
  r.start(r.request(0, 102, 0x1000, 64));
  r.start(r.other(kind::acknowledge, 0, 103));
  r.start(r.other(kind::acknowledge, 0, 104));
  r.run(1000);
  EXPECT_EQ(r.psns(), (std::vector<std::uint32_t>{99, 100, 101, 102, 104}));
  std::uint32_t answers = 0;
  for (const auto& [at, told_of] : r.w.reports) answers += told_of.answers;
  EXPECT_EQ(answers, 3u) << "one was answered by another";
  EXPECT_EQ(r.count("answers"), 2u);
}

TEST(read_generator, a_repetition_goes_before_what_is_behind_it) {
  rig r;
  r.w.gives_room[0][3] = false;
  for (unsigned i = 0; i < 3; ++i) r.start(r.request(0, 100 + 4 * i, 0x1000 * (i + 1), 4096));
  r.start(r.other(kind::acknowledge, 0, 112));
  r.run(1500);
  EXPECT_EQ(r.psns(), from_to(100, 102));
  read_command again = r.request(0, 101, 0x1400, 3072);
  again.again = true;
  r.start(again);
  r.run(1500);
  for (auto& port : r.w.gives_room) port.fill(true);
  for (unsigned i = 0; i < 2; ++i) r.w.to_give.push_back({0, 3});
  r.run(3000);
  std::vector<std::uint32_t> all{100, 101};
  for (const std::uint32_t psn : from_to(101, 113)) all.push_back(psn);
  EXPECT_EQ(r.psns(), all);
  for (unsigned i = 2; i < 13; ++i)
    EXPECT_EQ(payload_of(r.w.answers[i].job), bytes_at(r, 0x1000 + 1024 * (i - 1), 1024)) << i;
  EXPECT_EQ(r.count("repeated"), 1u);
}

TEST(read_generator, a_repetition_whose_answer_is_still_to_be_sent_ends_at_once) {
  rig r;
  r.start(r.request(0, 100, 0x1000, 4096));
  read_command again = r.request(0, 102, 0x1800, 2048);
  again.again = true;
  r.start(again);
  r.run(1000);
  EXPECT_EQ(r.psns(), from_to(100, 104));
  ASSERT_EQ(r.told(told::ended), 2u);
  EXPECT_TRUE(r.w.reports[0].second.dropped);
  EXPECT_TRUE(r.w.reports[0].second.again);
}

/// It looks at the requests of its queue pair one a cycle; what comes behind it waits.
TEST(read_generator, a_repetition_takes_a_cycle_for_each_request) {
  rig r;
  r.w.takes_reads = false;
  for (unsigned i = 0; i < 5; ++i) r.start(r.request(0, 100 + i, 0x1000, 64));
  r.run(100);
  read_command again = r.request(0, 90, 0x1000, 64);
  again.again = true;
  r.start(again);
  r.start(r.other(kind::acknowledge, 9, 7));
  r.run(100);
  ASSERT_EQ(r.w.answers.size(), 1u);
  EXPECT_EQ(r.w.answers[0].at - r.w.commanded[5], 1u + 5 + 2);
}

// ---------------------------------------------------------------- giving up

TEST(read_generator, memory_that_cannot_be_read_is_told_and_the_rest_given_up) {
  rig r;
  r.start(r.request(0, 100, 0x1000, 64));
  r.start(r.request(0, 101, 0x7000000, 64));
  r.start(r.request(0, 102, 0x1000, 64));
  r.start(r.request(1, 100, 0x1000, 64));
  r.run(1000);
  EXPECT_EQ(r.psns(), (std::vector<std::uint32_t>{100, 100}));
  ASSERT_EQ(r.told(told::fault), 1u);
  ASSERT_EQ(r.told(told::ended), 4u);
  const auto fault =
      std::find_if(r.w.reports.begin(), r.w.reports.end(), [](const auto& x) { return x.second.what == told::fault; });
  EXPECT_EQ(fault->second.psn, 101u);
  EXPECT_EQ(fault->second.nak, syndrome_operational);
  r.start(r.request(0, 103, 0x1000, 64));  // was on its way
  r.start(r.other(kind::discard, 0, 0));
  r.start(r.other(kind::refuse, 0, 101));
  r.run(300);
  EXPECT_EQ(r.told(told::ended), 5u);
  EXPECT_EQ(r.told(told::discarded), 1u);
  EXPECT_EQ(r.psns().back(), 101u);
  EXPECT_EQ(r.w.answers.back().job.opcode, 0x11);
}

/// An ACK that was on its way when the READ before it failed is not sent: the NAK is the last word.
TEST(read_generator, an_answer_behind_a_fault_ends_unsent) {
  rig r;
  r.start(r.request(0, 100, 0x7000000, 64));
  r.run(300);
  ASSERT_EQ(r.told(told::fault), 1u);
  r.start(r.other(kind::acknowledge, 0, 101));
  r.run(300);
  EXPECT_TRUE(r.w.answers.empty());
  ASSERT_EQ(r.told(told::answered), 1u);
  const read_report& end = r.w.reports.back().second;
  EXPECT_EQ(end.what, told::answered);
  EXPECT_EQ(end.answers, 1u);
  EXPECT_EQ(end.acks, 0u);
}

TEST(read_generator, a_discard_ends_when_memory_owes_nothing) {
  rig r;
  r.w.read_cycles = 500;
  r.start(r.request(0, 100, 0x1000, 4096));
  r.run(200);
  ASSERT_EQ(r.w.payload.reads.size(), 3u);
  r.start(r.other(kind::discard, 0, 0));
  r.run(200);
  EXPECT_EQ(r.told(told::discarded), 0u);
  r.run(1500);
  EXPECT_TRUE(r.w.answers.empty());
  ASSERT_EQ(r.w.reports.size(), 2u);
  EXPECT_EQ(r.w.reports[0].second.what, told::ended);
  EXPECT_EQ(r.w.reports[1].second.what, told::discarded);
  EXPECT_EQ(r.w.reports[1].first - r.w.payload.answers.back(), 3u);
  EXPECT_EQ(r.count("given_up"), 1u);
}

TEST(read_generator, a_key_is_let_go_when_memory_has_answered_what_was_asked_for_under_it) {
  rig r;
  r.w.read_cycles = 300;
  r.start(r.request(0, 100, 0x1000, 64));
  r.start(r.request(0, 101, 0x1000, 2048));
  read_command revoke = r.other(kind::revoke, 0, 0);
  r.start(revoke, 30);
  r.run(2000);
  ASSERT_EQ(r.told(told::revoked), 1u);
  EXPECT_EQ(r.psns(), (std::vector<std::uint32_t>{100, 101})) << "what was asked for is sent";
  ASSERT_EQ(r.told(told::fault), 1u);
  for (const auto& [at, x] : r.w.reports)
    if (x.what == told::revoked) {
      EXPECT_GE(at, r.w.payload.answers.back());
    }
}

TEST(read_generator, a_limited_queue_pair_is_in_nobody_elses_way) {
  rig r;
  read_command slow = r.request(0, 100, 0x1000, 8192);
  slow.to.path.static_rate = 7;  // 2.5 Gb/s
  r.start(slow);
  r.start(r.request(1, 100, 0x1000, 8192));
  r.run(20000);
  ASSERT_EQ(r.w.answers.size(), 16u);
  cycle last_fast = 0, last_slow = 0;
  for (const auto& a : r.w.answers) (a.job.remote_qpn == 0x1000 ? last_slow : last_fast) = a.at;
  EXPECT_LT(last_fast, 1600u);
  EXPECT_GT(last_slow, 7u * 1024 * 8 / 5) << "seven packets of 1 KB at 2.5 Gb/s, in cycles of 2 ns";
}

// ---------------------------------------------------------------- length x idle x back-pressure

class read_sweep : public testing::TestWithParam<std::tuple<unsigned, unsigned, unsigned>> {};

/// All bytes, in order by queue pair; the cycles of all answers as text.
std::string history_of(unsigned length, unsigned idle, unsigned every, const sim::timebase::options& opts) {
  rig r({}, opts);
  r.w.read_every = every;
  for (unsigned i = 0; i < 24; ++i)
    r.start(r.request(static_cast<std::uint16_t>(i % 5), 100 + 16 * (i / 5), 0x1000 + 0x111 * i, length), idle);
  r.run(30000);
  std::map<std::uint32_t, std::uint32_t> last;
  std::string history;
  for (const auto& a : r.w.answers) {
    const std::uint32_t psn = a.job.psn, peer = a.job.remote_qpn, packet = (psn - 100) % 16;
    const bool in_order = psn > last[peer];
    last[peer] = psn;
    const unsigned i = (psn - 100) / 16 * 5 + (peer - 0x1000);
    const bool right = payload_of(a.job) == bytes_at(r, 0x1000 + 0x111 * i + 1024 * packet, a.job.payload);
    history += std::to_string(a.at) + (in_order && right ? " " : " wrong ");
  }
  return history + std::to_string(r.w.answers.size()) + " ended " + std::to_string(r.told(told::ended));
}

/// The same however blocks sleep and in whatever order they are.
TEST_P(read_sweep, every_byte_arrives_in_order) {
  const auto [length, idle, every] = GetParam();
  const auto run = [length = length, idle = idle, every = every](const sim::timebase::options& opts) {
    return rnic::bench::in_child([&] { return history_of(length, idle, every, opts); });
  };
  sim::timebase::options awake, shuffled;
  awake.always_tick = true;
  shuffled.shuffle_seed = 7;
  const std::string history = run({});
  const unsigned packets = length == 0 ? 1 : (length + 1023) / 1024;
  const std::string end = std::to_string(24 * packets) + " ended 24";
  EXPECT_EQ(history.find("wrong"), std::string::npos);
  ASSERT_GT(history.size(), end.size());
  EXPECT_EQ(history.substr(history.size() - end.size()), end);
  EXPECT_EQ(run(awake), history);
  EXPECT_EQ(run(shuffled), history);
}
INSTANTIATE_TEST_SUITE_P(all, read_sweep,
                         testing::Combine(testing::Values(0u, 1u, 256u, 1024u, 1025u, 4096u),
                                          testing::Values(0u, 1u, 40u), testing::Values(1u, 3u, 50u)));

}  // namespace
}  // namespace rnic::transport::test::generator
