// SPDX-License-Identifier: Apache-2.0
// READ: responses, order, repetition, rights.
#include "testbenches/block/responder/bench.h"

namespace rnic::transport::test {
namespace {

using wire::operation;

TEST(responder_read, responses_carry_the_bytes) {
  bench b;
  fill(b, 20000);
  b.read(100, data_va + 11, 9000 - 4);
  b.read(109, data_va, 10);
  b.run(5000);
  ASSERT_EQ(b.s.answers.size(), 10u);
  std::vector<std::uint8_t> all;
  for (unsigned i = 0; i < 9; ++i) {
    const auto& a = b.s.answers[i];
    EXPECT_EQ(a->bth.opcode, i == 0 ? 0x0d : i == 8 ? 0x0f : 0x0e);
    EXPECT_EQ(a->bth.psn.value(), 100 + i);
    EXPECT_FALSE(a->bth.ack_request);
    if (i == 0 || i == 8) {
      EXPECT_EQ(a->aeth.syndrome, 0x1f);
      EXPECT_EQ(a->aeth.msn, 1u);
    }
    const auto part = a.payload();
    all.insert(all.end(), part.begin(), part.end());
  }
  EXPECT_EQ(all, b.data(11, 8996));
  EXPECT_EQ(b.s.answers[9]->bth.opcode, 0x10);
  EXPECT_EQ(b.s.answers[9]->bth.psn.value(), 109u);
  EXPECT_EQ(b.s.answers[9]->aeth.msn, 2u);
  EXPECT_EQ(b.s.answers[9].payload(), b.data(0, 10));
  EXPECT_EQ(b.count("acks"), 0u);
}

TEST(responder_read, zero_length_needs_no_key) {
  bench b;
  b.read(100, 0x1, 0, 0xbad);
  b.run();
  ASSERT_EQ(b.s.answers.size(), 1u);
  EXPECT_EQ(b.s.answers[0]->bth.opcode, 0x10);
  EXPECT_EQ(b.s.answers[0]->payload_length, 0u);
}

/// 17: read_cycles. The next one asks while one is checked.
TEST(responder_read, requests_follow_each_other_at_the_interval_of_the_read_engine) {
  bench b;
  auto c = bench::context();
  c.log_max_rd_atomic = 4;
  b.put(c);
  for (unsigned i = 0; i < 9; ++i) b.read(100 + i, data_va, 8);
  b.run(5000);
  ASSERT_EQ(b.s.answers.size(), 9u);
  for (unsigned i = 2; i < 9; ++i) EXPECT_EQ(b.s.answers[i].at - b.s.answers[i - 1].at, 17u) << i;
  EXPECT_EQ(b.stats.value("read_engine.responder.grants"), 9u);
}

/// What its own context does not need, a READ of another queue pair finds.
TEST(responder_read, grant_of_a_queue_pair_that_is_stopped_is_used_by_the_next) {
  bench b;
  b.r.cr_write(cr::qp_select, qpn);
  b.read(100, data_va, 8);  // misses its context, and has asked for the engine meanwhile
  b.run(20);
  ASSERT_EQ(b.stats.value("read_engine.responder.grants"), 1u);
  b.r.cr_write(cr::qp_command, cr::qp_command_halt);
  b.run();
  ASSERT_EQ(b.r.cr_read(cr::qp_status), 0u);
  ASSERT_EQ(b.s.answers.size(), 0u);
  b.r.cr_write(cr::qp_command, cr::qp_command_release);
  b.read(100, data_va, 8);
  b.run();
  EXPECT_EQ(b.s.answers.size(), 1u);
  EXPECT_EQ(b.stats.value("read_engine.responder.grants"), 1u);
}

TEST(responder_read, later_acks_stay_behind) {
  bench b;
  b.write(operation::write_only, 100, bench::pattern(8, 5), data_va, 8);
  b.read(101, data_va, 3000);
  b.write(operation::write_only, 104, bench::pattern(8), data_va + 5000, 8);
  b.run(5000);
  ASSERT_GE(b.s.answers.size(), 4u);
  EXPECT_EQ(b.s.answers.back()->bth.opcode, 0x11);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 104u);
  EXPECT_EQ(b.s.answers.back()->aeth.msn, 3u);
  const auto& first = b.s.answers[b.s.answers.size() - 4];
  EXPECT_EQ(first->bth.opcode, 0x0d);
  const auto part = first.payload();  // what the WRITE before it put there
  EXPECT_EQ(std::vector<std::uint8_t>(part.begin(), part.begin() + 8), bench::pattern(8, 5));
}

TEST(responder_read, earlier_acks_go_first) {
  responder_config cfg;
  cfg.ack_cycles = 2000;  // far longer than it takes to read memory
  bench b({}, cfg);
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8);
  b.write(operation::write_only, 101, bench::pattern(8), data_va, 8);
  b.run(300);
  b.write(operation::write_only, 102, bench::pattern(8), data_va, 8);
  b.read(103, data_va, 100);
  b.run(8000);
  ASSERT_GE(b.s.answers.size(), 3u);
  for (std::size_t i = 1; i < b.s.answers.size(); ++i) {
    EXPECT_GT(b.s.answers[i]->bth.psn.value(), b.s.answers[i - 1]->bth.psn.value());
    EXPECT_GT(b.s.answers[i]->aeth.msn, b.s.answers[i - 1]->aeth.msn);
  }
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 103u);
}

TEST(responder_read, several_qps_share_the_generator) {
  bench b;
  auto c = bench::context();
  c.qpn = 0x49;
  c.remote_qpn = 0x4321;
  b.put(c);
  fill(b, 20000);
  b.read(100, data_va, 16384);
  b.send(operation::read_request, 100, {}, [](wire::packet& p) {
    p.bth.dest_qp = 0x49;
    p.reth = {data_va + 100, rkey, 2048};
  });
  b.run(8000);
  ASSERT_EQ(b.s.answers.size(), 18u);
  unsigned end_of_short = 0;
  for (unsigned i = 0; i < 18; ++i)
    if (b.s.answers[i]->bth.dest_qp == 0x4321) end_of_short = i;
  EXPECT_LT(end_of_short, 8u);  // not behind the long one
}

TEST(responder_read, repeated_request_is_executed_again) {
  bench b;
  fill(b, 8000);
  b.read(100, data_va, 4096);
  b.run(4000);
  fill(b, 8000);
  b.read(102, data_va + 2048, 2048);  // the peer lost packets 102 and 103
  b.run(4000);
  ASSERT_EQ(b.s.answers.size(), 6u);
  EXPECT_EQ(b.s.answers[4]->bth.opcode, 0x0d);
  EXPECT_EQ(b.s.answers[4]->bth.psn.value(), 102u);
  EXPECT_EQ(b.s.answers[4]->aeth.msn, 1u);
  EXPECT_EQ(b.s.answers[5]->bth.opcode, 0x0f);
  EXPECT_EQ(b.s.answers[4].payload(), b.data(2048, 1024));
  b.write(operation::write_only, 104, bench::pattern(8), data_va, 8);
  b.run();
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 104u);
}

TEST(responder_read, request_that_came_twice_is_answered_once) {
  bench b;
  fill(b, 8000);
  b.read(100, data_va, 4096);
  b.read(100, data_va, 4096);
  b.run(4000);
  ASSERT_EQ(b.s.answers.size(), 4u);
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(b.s.answers[i]->bth.psn.value(), 100 + i);
  EXPECT_EQ(b.count("drop.duplicate_read"), 1u);
}

/// The requester has lost a response, goes back and repeats all of its requests while the responder still works on
/// them (data plane C.7.3: what it has to keep is bounded by the number that was agreed on).
TEST(responder_read, repeated_requests_take_the_place_of_those_under_way) {
  bench b;  // four requests at once
  fill(b, 20000);
  for (unsigned i = 0; i < 4; ++i) b.read(100 + 4 * i, data_va + 4096 * i, 4096);
  while (b.s.answers.size() < 3) b.run(20);
  ASSERT_LT(b.s.answers.size(), 12u);
  b.read(101, data_va + 1024, 3072);
  for (unsigned i = 1; i < 4; ++i) b.read(100 + 4 * i, data_va + 4096 * i, 4096);
  b.run(8000);
  b.read(116, data_va, 100);
  b.read(116, data_va, 100);
  b.run(4000);
  EXPECT_TRUE(b.s.errors.empty());
  const auto& got = b.s.answers;
  ASSERT_GE(got.size(), 3u + 16u);
  std::size_t again = got.size() - 1;  // where the last answer to 101 begins
  while (got[again]->bth.psn.value() != 101) --again;
  ASSERT_EQ(got.size() - again, 16u);
  EXPECT_LT(again, 12u) << "what was under way was sent to its end first";
  for (unsigned i = 0; i < 16; ++i) EXPECT_EQ(got[again + i]->bth.psn.value(), 101 + i);
  EXPECT_EQ(got[again].payload(), b.data(1024, 1024));
  EXPECT_EQ(got[again + 14].payload(), b.data(15 * 1024, 1024));
}

/// PSNs of the answers from the last one to `psn` on.
std::vector<std::uint32_t> psns_from(const bench& b, std::uint32_t psn) {
  std::vector<std::uint32_t> psns;
  for (const auto& a : b.s.answers) {
    if (a->bth.psn.value() == psn) psns.clear();
    psns.push_back(a->bth.psn.value());
  }
  return psns;
}

void msns_never_fall(const bench& b) {
  std::uint32_t msn = 0;
  for (const auto& a : b.s.answers) {
    if (a->bth.opcode == 0x0e) continue;  // a middle has none
    EXPECT_GE(a->aeth.msn, msn);
    msn = a->aeth.msn;
  }
}

/// No answer passes the responses to an earlier READ (IBA 9.7.5.1.4), whatever of them was given up when the requester
/// went back, and whether its repetitions of what is behind arrive or not.
TEST(responder_read, what_is_behind_a_repetition_is_answered_unasked) {
  bench b;  // four requests at once
  fill(b, 20000);
  b.read(100, data_va, 4096);
  b.write(operation::write_only, 104, bench::pattern(8), data_va + 12000, 8);
  b.read(105, data_va + 4096, 4096);
  b.read(109, data_va + 8192, 2048);
  while (b.s.answers.size() < 7) b.run(20);
  ASSERT_EQ(b.s.answers.back()->bth.opcode, 0x0e) << "the READ of 105 is under way";
  b.read(101, data_va + 1024, 3072);
  b.write(operation::write_only, 111, bench::pattern(8), data_va + 12000, 8);
  b.run(8000);
  EXPECT_EQ(psns_from(b, 101), (std::vector<std::uint32_t>{101, 102, 103, 105, 106, 107, 108, 109, 110, 111}));
  const std::size_t n = b.s.answers.size();
  EXPECT_EQ(b.s.answers[n - 7]->bth.opcode, 0x0d) << "it begins again";
  EXPECT_EQ(b.s.answers[n - 7].payload(), b.data(4096, 1024));
  EXPECT_EQ(b.s.answers[n - 4].payload(), b.data(4096 + 3072, 1024));
  EXPECT_EQ(b.s.answers[n - 1]->bth.opcode, 0x11);
  msns_never_fall(b);
}

/// The ACK was already due when the requester went back.
TEST(responder_read, acknowledgements_wait_for_what_goes_before_them_again) {
  bench b;
  fill(b, 20000);
  b.read(100, data_va, 4096);
  b.read(104, data_va + 4096, 4096);
  b.write(operation::write_only, 108, bench::pattern(8), data_va + 12000, 8);
  while (b.s.answers.size() < 6) b.run(20);
  b.read(101, data_va + 1024, 3072);
  b.run(8000);
  EXPECT_EQ(psns_from(b, 101), (std::vector<std::uint32_t>{101, 102, 103, 104, 105, 106, 107, 108}));
  EXPECT_EQ(b.s.answers.back()->bth.opcode, 0x11);
  msns_never_fall(b);
}

TEST(responder_read, refusals_wait_for_what_goes_before_them_again) {
  bench b;
  fill(b, 20000);
  b.read(100, data_va, 4096);
  b.read(104, data_va + 4096, 4096);
  b.write(operation::write_only, 109, bench::pattern(8), data_va + 12000, 8);  // 108 is lost
  while (b.s.answers.size() < 6) b.run(20);
  b.read(101, data_va + 1024, 3072);
  b.run(8000);
  EXPECT_EQ(psns_from(b, 101), (std::vector<std::uint32_t>{101, 102, 103, 104, 105, 106, 107, 108}));
  EXPECT_EQ(b.s.answers.back()->aeth.syndrome, 0x60);
  msns_never_fall(b);
}

/// The PSN of a NAK acknowledges all that is before it (IBA 9.7.5.2.4): an acknowledgement that waits behind a READ
/// goes with it, not in front of it.
TEST(responder_read, a_nak_takes_the_acknowledgement_that_waits_with_it) {
  bench b;
  fill(b, 4096);
  b.read(100, data_va, 4096);
  b.write(operation::write_only, 104, bench::pattern(8), data_va, 8);
  b.write(operation::write_only, 106, bench::pattern(8), data_va, 8);  // 105 is lost
  b.run(8000);
  EXPECT_EQ(psns_from(b, 0), (std::vector<std::uint32_t>{100, 101, 102, 103, 105}));
  EXPECT_EQ(b.s.answers.back()->aeth.syndrome, 0x60);
  msns_never_fall(b);
}

/// A requester may ask for a part of a request's responses only: the others stay owed.
TEST(responder_read, repetition_of_a_part_leaves_the_rest) {
  bench b;
  fill(b, 20000);
  b.read(100, data_va, 8192);
  while (b.s.answers.size() < 4) b.run(20);
  b.read(101, data_va + 1024, 2048);
  b.write(operation::write_only, 108, bench::pattern(8), data_va + 12000, 8);
  b.run(8000);
  EXPECT_EQ(psns_from(b, 101), (std::vector<std::uint32_t>{101, 102, 103, 104, 105, 106, 107, 108}));
  const std::size_t n = b.s.answers.size();
  const unsigned opcodes[] = {0x0d, 0x0f, 0x0d, 0x0e, 0x0e, 0x0e, 0x0f, 0x11};
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(b.s.answers[n - 8 + i]->bth.opcode, opcodes[i]) << i;
  for (unsigned i = 0; i < 7; ++i) EXPECT_EQ(b.s.answers[n - 8 + i].payload(), b.data(1024 * (i + 1), 1024)) << i;
}

/// Four READs are under way for so many cycles when the requester goes back into the first of them.
class responder_gone_back : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(cycles, responder_gone_back, ::testing::Values(300, 410, 480, 560, 640, 730, 850, 1000, 1300));

TEST_P(responder_gone_back, order_holds) {
  bench b;
  fill(b, 20000);
  for (unsigned i = 0; i < 4; ++i) b.read(100 + 4 * i, data_va + 4096 * i, 4096);
  b.run(GetParam());
  b.read(102, data_va + 2048, 2048);
  b.read(104, data_va + 4096, 4096);
  b.write(operation::write_only, 116, bench::pattern(8), data_va + 18000, 8);
  b.run(10000);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 116u);
  msns_never_fall(b);
  std::uint32_t next = 100;  // each for the first time in order
  for (const auto& a : b.s.answers) {
    EXPECT_LE(a->bth.psn.value(), next);
    if (a->bth.psn.value() == next) ++next;
  }
  EXPECT_EQ(next, 117u);
  EXPECT_TRUE(b.s.errors.empty());
}

TEST(responder_read, repeated_requests_do_not_keep_new_ones_out) {
  bench b;
  fill(b, 20000);
  for (unsigned i = 0; i < 4; ++i) b.read(100 + 4 * i, data_va, 4096);
  b.run(8000);
  ASSERT_EQ(b.s.answers.size(), 16u);
  for (unsigned i = 0; i < 4; ++i) b.read(100 + 4 * i, data_va, 4096);  // too early a timeout
  for (unsigned i = 4; i < 8; ++i) b.read(100 + 4 * i, data_va, 4096);  // meanwhile it has all answers
  b.run(16000);
  EXPECT_TRUE(b.s.errors.empty());
  EXPECT_EQ(b.s.answers.size(), 48u);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 131u);
}

TEST(responder_read, repetition_without_rights_or_outside_is_dropped) {
  bench b;
  b.read(100, data_va, 2048);
  b.run(3000);
  b.read(101, data_va, 2048);          // reaches beyond what was asked
  b.read(100, data_va, 1024, 0x9900);  // no such key any more
  b.run(3000);
  EXPECT_EQ(b.s.answers.size(), 2u);
  EXPECT_TRUE(b.s.errors.empty());
  EXPECT_EQ(b.count("drop.duplicate_read"), 2u);
}

/// Of a queue pair that does not let its peer read (any more).
TEST(responder_read, repetition_after_the_right_to_read_is_gone_is_dropped) {
  bench b;
  auto c = bench::context();
  c.access = icm::responder_access_write;
  b.put(c);
  b.read(98, data_va, 1024);
  b.run(3000);
  EXPECT_TRUE(b.s.answers.empty());
  EXPECT_TRUE(b.s.errors.empty());
  EXPECT_EQ(b.count("drop.duplicate_read"), 1u);
  EXPECT_EQ(b.count("duplicates"), 1u);
}

TEST(responder_read, rights_are_checked_for_the_whole_range) {
  bench b;
  b.read(100, data_va, 0x100001);
  b.run();
  ASSERT_EQ(b.s.answers.size(), 1u);
  EXPECT_EQ(b.s.answers[0]->aeth.syndrome, 0x62);
  EXPECT_EQ(b.s.answers[0]->bth.psn.value(), 100u);
  EXPECT_EQ(b.s.answers[0]->aeth.msn, 0u);
  ASSERT_EQ(b.s.events.size(), 1u);
  EXPECT_EQ(b.s.events[0].type, 0x11);
}

/// Of two queue pairs whose translations miss.
class responder_read_misses : public ::testing::TestWithParam<std::pair<unsigned, bool>> {};
TEST_P(responder_read_misses, overlap_as_many_as_are_looked_up_at_once) {
  const auto [lookups, overlap] = GetParam();
  responder_config cfg;
  cfg.read_translations = lookups;
  bench b({}, cfg);
  auto c = bench::context();
  c.qpn = 0x49;
  b.put(c);
  b.s.slow_key[rkey] = 400;
  b.read(100, data_va, 64);
  b.send(operation::read_request, 100, {}, [](wire::packet& p) {
    p.bth.dest_qp = 0x49;
    p.reth = {data_va + 100, rkey, 64};
  });
  b.run(3000);
  ASSERT_EQ(b.s.answers.size(), 2u);
  const sim::cycle_t apart = b.s.answers[1].at - b.s.answers[0].at;
  EXPECT_EQ(apart < 100, overlap) << apart;
  EXPECT_EQ(apart > 400, !overlap) << apart;
}
INSTANTIATE_TEST_SUITE_P(lookups, responder_read_misses,
                         ::testing::Values(std::pair{1u, false}, std::pair{2u, true}, std::pair{16u, true}));

TEST(responder_read, key_that_goes_away_midway) {
  bench b;
  b.s.slow_key[rkey] = 400;
  b.read(100, data_va, 8192);
  b.run(900);
  b.s.regions.erase(rkey);
  b.run(9000);
  ASSERT_GE(b.s.answers.size(), 2u);
  ASSERT_LT(b.s.answers.size(), 9u);
  const auto& nak = b.s.answers.back();
  EXPECT_EQ(nak->aeth.syndrome, 0x62);
  EXPECT_EQ(nak->bth.psn.value(), 100 + b.s.answers.size() - 1);
  EXPECT_EQ(b.s.errors.size(), 1u);
}

TEST(responder_read, memory_that_cannot_be_read) {
  bench b;
  b.s.regions[0x6600] = {0, 0x10'0000'0000, 0x10000, 7, 0x1f};
  b.read(100, 0, 64, 0x6600);
  b.run();
  ASSERT_EQ(b.s.answers.size(), 1u);
  EXPECT_EQ(b.s.answers[0]->aeth.syndrome, 0x63);
  ASSERT_EQ(b.s.events.size(), 1u);
  EXPECT_EQ(b.s.events[0].type, 0x05);
}

TEST(responder_read, discard_ends_a_long_read) {
  bench b;
  b.read(100, data_va, 0x80000);
  b.run(3000);
  b.r.cr_write(cr::qp_select, qpn);
  b.r.cr_write(cr::qp_command, cr::qp_command_discard);
  b.run(500);
  EXPECT_EQ(b.r.cr_read(cr::qp_status), 0u);
  const std::size_t sent = b.s.answers.size();
  EXPECT_LT(sent, 512u);
  b.run(5000);
  EXPECT_EQ(b.s.answers.size(), sent);
}

TEST(responder_read, span_of_the_request_reaches_the_last_response) {
  bench b;
  b.spans.enable(true);
  b.read(100, data_va, 2000);
  b.run();
  ASSERT_EQ(b.s.answers.size(), 2u);
  EXPECT_EQ(b.s.answers[0].frame->span, 0u);
  const sim::span_id id = b.s.answers[1].frame->span;
  ASSERT_NE(id, 0u);
  EXPECT_GE(b.spans[id].count(), 3u);
  EXPECT_STREQ(b.spans[id][0].stage, "context");
  EXPECT_EQ(b.spans[id][0].waited, sim::wait::context_miss);
}

}  // namespace
}  // namespace rnic::transport::test
