// SPDX-License-Identifier: Apache-2.0
// The translation to the cycle, at the ends of its lines, and after its tables have changed.
#include <gtest/gtest.h>

#include <algorithm>

#include "testbenches/bench/held_up.h"
#include "testbenches/block/icm/translation_rig.h"

namespace {
using namespace translation_test;

/// Cycles from the question to the answer.
sim::cycle_t took(const rig& b, std::uint64_t tag, unsigned user = 0) {
  return b.users[user]->answered.at(tag) - b.users[user]->asked.at(tag);
}

/// Sixteen pages at entries 36 to 51 of the table: lines of eight from 32, 40 and 48 on.
constexpr std::uint64_t region_start = 0x80000;
icm::translate_request in_region(std::uint64_t offset, std::uint32_t length, std::uint64_t tag) {
  icm::translate_request r;
  r.key = 0x60 << 8 | 9;
  r.pd = 7;
  r.va = region_start + offset;
  r.length = length;
  r.tag = tag;
  return r;
}
struct region_of_three_lines : rig {
  explicit region_of_three_lines(const icm::translation_config& c = at_once()) : rig(c) {
    region(0x60, 9, 7, region_start, 0x10000, 8 * 36);
  }
  /// What WRITE_MTT does: entries in ICM, then the command to forget them.
  void write_mtt(std::uint64_t first, std::vector<std::uint64_t> pages) {
    for (std::size_t i = 0; i < pages.size(); ++i) memory.be64(mtt_host + 8 * (first + i), pages[i] | 1);
    cr(icm::cr::tpt_mtt_hi, 0);
    cr(icm::cr::tpt_mtt_lo, static_cast<std::uint32_t>(8 * first));
    cr(icm::cr::tpt_count, static_cast<std::uint32_t>(pages.size()));
    cr(icm::cr::tpt_command, icm::cr::tpt_command_drop_mtt_range);
  }
};

/// Asked at 0, taken at 1, two reads of 100 cycles one after the other with a cycle each way, answered four cycles
/// later: 1 + 102 + 102 + 4 + 1.
TEST(translation_timing, a_miss_of_both_tables) {
  rig b;
  b.answer(b.key(0x10010, 64, 1));
  EXPECT_EQ(took(b, 1), 210u);
}

/// And what is fetched can be used 60 cycles after it has come.
TEST(translation_timing, a_miss_with_the_time_of_the_fill) {
  rig b{icm::translation_config{}};
  b.answer(b.key(0x10010, 64, 1));
  EXPECT_EQ(took(b, 1), 210u + 2 * 60);
}

TEST(translation_timing, a_miss_of_the_page_only) {
  region_of_three_lines b;
  b.answer(in_region(0, 64, 1));
  b.answer(in_region(0x4000, 64, 2));  // entry 40: the next line
  EXPECT_EQ(took(b, 2), 108u);
  b.answer(in_region(0xb000, 64, 3));  // entry 47: the last of it
  EXPECT_EQ(took(b, 3), 6u);
}

/// The window is read in one cycle and its region in the next: one more than of a region alone.
TEST(translation_timing, of_a_window_its_region_is_read_a_cycle_later) {
  rig b;
  const std::uint64_t at = mpt_host + 0x30 * 64;
  b.region(0x30, 2, 7, 0x11000, 0x1000, 0);
  b.memory.be32(at, 1u << 12);  // window, remote read
  b.memory.be32(at + 0x20, 0x123 << 8 | 0x45);
  auto through = b.key(0x11020, 16, 1);
  through.key = 0x30 << 8 | 2;
  through.access = icm::access::remote_read;
  ASSERT_EQ(b.answer(through).status, translate_status::ok);
  through.tag = 2;
  ASSERT_EQ(b.answer(through).status, translate_status::ok);
  EXPECT_EQ(took(b, 2), 7u);
  b.answer(b.key(0x11020, 16, 3));
  EXPECT_EQ(took(b, 3), 6u);
}

TEST(translation_timing, hits_one_a_cycle) {
  rig b;
  b.answer(b.key(0x10000, 64, 0));
  for (std::uint64_t t = 1; t <= 6; ++t) b.users[0]->ask(b.key(0x10000 + 64 * t, 64, t));
  b.run(50);
  for (std::uint64_t t = 1; t <= 6; ++t) {
    EXPECT_EQ(took(b, t), 6u) << t;
    EXPECT_EQ(b.users[0]->asked.at(t), b.users[0]->asked.at(1) + t - 1) << t;
  }
  EXPECT_EQ(rnic::bench::busy_cycles(b.clock, "tpt.look_up"), 3u + 6) << "the first one misses twice";
}

/// Both ask in every cycle: one look-up a cycle, in turn.
TEST(translation_timing, two_clients_take_turns) {
  rig b;
  b.answer(b.key(0x10000, 64, 0));  // client 0 was the last
  for (std::uint64_t t = 1; t <= 3; ++t) {
    b.users[0]->ask(b.key(0x10000, 64, t));
    b.users[1]->ask(b.key(0x10000, 64, t));
  }
  b.run(50);
  const sim::cycle_t start = b.users[0]->asked.at(1);
  ASSERT_EQ(b.users[1]->asked.at(1), start);
  for (std::uint64_t t = 1; t <= 3; ++t) {
    EXPECT_EQ(b.users[1]->answered.at(t) - start, 6 + 2 * (t - 1)) << t;
    EXPECT_EQ(b.users[0]->answered.at(t) - start, 7 + 2 * (t - 1)) << t;
  }
}

/// Four places in the client's channel; what waits in the block for one goes on one a cycle, and another client is not
/// held up.
TEST(translation_timing, a_client_that_takes_no_answers_holds_up_itself_only) {
  rig b;
  b.answer(b.key(0x10000, 64, 0));
  const sim::cycle_t until = b.clock.now() + 100;
  b.users[0]->take_from(until);
  for (std::uint64_t t = 1; t <= 7; ++t) b.users[0]->ask(b.key(0x10000, 64, t));
  b.run(20);
  b.users[1]->ask(b.key(0x10000, 64, 1));
  b.run(200);
  EXPECT_EQ(took(b, 1, 1), 6u);
  for (std::uint64_t t = 1; t <= 7; ++t) EXPECT_EQ(b.users[0]->answered.at(t), until + t - 1) << t;
}

/// One request more than the block has places for waits in its channel, and is looked up when the first has left.
TEST(translation_timing, as_many_requests_inside_as_there_are_places) {
  icm::translation_config c = at_once();
  c.waiting = 2;
  region_of_three_lines b(c);
  b.answer(in_region(0, 64, 0));
  b.memory.log.clear();
  b.users[0]->ask(in_region(0x4000, 64, 1));  // two lines that are not on chip
  b.users[0]->ask(in_region(0xc000, 64, 2));
  b.users[0]->ask(in_region(0, 64, 3));  // a hit behind them
  b.run(300);
  EXPECT_EQ(took(b, 1), 108u);
  EXPECT_EQ(took(b, 2), 108u);
  EXPECT_EQ(b.users[0]->answered.at(3) - b.users[0]->answered.at(1), 2u) << "behind the look-up of the second";
}

std::string held_up(const rig& b) { return rnic::bench::held_up(b.clock, "tpt.look_up"); }

/// Asked at 0, 1 and 2. The first two are misses, looked up at 1 and 2; the third waits from 3 on, until what was
/// fetched for the first is looked up at 103.
TEST(translation_held_up, by_memory_that_has_all_places) {
  icm::translation_config c = at_once();
  c.waiting = 2;
  region_of_three_lines b(c);
  b.answer(in_region(0, 64, 0));
  ASSERT_EQ(held_up(b), "");
  b.users[0]->ask(in_region(0x4000, 64, 1));
  b.users[0]->ask(in_region(0xc000, 64, 2));
  b.users[0]->ask(in_region(0, 64, 3));
  b.run(300);
  EXPECT_EQ(held_up(b), "memory 100; ");
}

/// One fetch at a time: the second request is looked up at 2, and waits until that of the first is there.
TEST(translation_held_up, by_memory_that_has_all_fetches) {
  icm::translation_config c = at_once();
  c.fills = 1;
  region_of_three_lines b(c);
  b.answer(in_region(0, 64, 0));
  b.users[0]->ask(in_region(0x4000, 64, 1));
  b.users[0]->ask(in_region(0xc000, 64, 2));
  b.run(300);
  EXPECT_EQ(took(b, 2), 210u) << "as after a miss of both tables";
  EXPECT_EQ(held_up(b), "memory 100; ") << "while its own fetch is under way nothing waits for the look-up";
}

/// Four answers in the client's channel and two in the block: the seventh, asked at 7 and here at 8, waits. What is
/// taken at 100 makes room at 101.
TEST(translation_held_up, by_clients_that_take_no_answers) {
  icm::translation_config c = at_once();
  c.waiting = 2;
  rig b(c);
  b.answer(b.key(0x10000, 64, 0));
  const sim::cycle_t start = b.clock.now();
  b.users[0]->take_from(start + 100);
  for (std::uint64_t t = 1; t <= 7; ++t) b.users[0]->ask(b.key(0x10000, 64, t));
  b.run(300);
  EXPECT_EQ(b.users[0]->asked.at(7) - start, 7u);
  EXPECT_EQ(held_up(b), "clients 93; ");
}

/// The DMA channel takes four fetches. The sixth request is looked up at 7; the two that wait go on at 101, when there
/// is room of what memory took at 100.
TEST(translation_held_up, by_dma) {
  region_of_three_lines b;
  for (std::uint32_t i = 0; i < 6; ++i) b.region(0x61 + i, 9, 7, region_start, 0x1000, 0x400 + 64 * i);
  const sim::cycle_t start = b.clock.now();
  b.memory.hold_until(start + 100);
  for (std::uint32_t i = 0; i < 6; ++i) {
    auto r = in_region(0, 64, i);
    r.key = (0x61 + i) << 8 | 9;
    b.users[0]->ask(r);
  }
  b.run(600);
  EXPECT_EQ(held_up(b), "dma 93; ");
}

/// The two pages of a request lie in two lines of the table: each is fetched, both at once, and each page is its own.
TEST(translation_lines, a_request_over_the_end_of_a_line_fetches_both) {
  region_of_three_lines b;
  b.answer(in_region(0xf000, 16, 0));  // the key, and the line from 48 on
  b.memory.log.clear();
  const auto a = b.answer(in_region(0x3ff0, 0x20, 1));
  ASSERT_EQ(a.status, translate_status::ok);
  ASSERT_EQ(a.count, 2u);
  EXPECT_EQ(a.segments[0].address, 0x5030ff0u);
  EXPECT_EQ(a.segments[0].length, 0x10u);
  EXPECT_EQ(a.segments[1].address, 0x5040000u);
  EXPECT_EQ(a.segments[1].length, 0x10u);
  ASSERT_EQ(b.memory.log.size(), 2u);
  EXPECT_EQ(b.memory.log[0].address, mtt_host + 8 * 32);
  EXPECT_EQ(b.memory.log[1].address, mtt_host + 8 * 40);
  EXPECT_EQ(b.memory.log[1].at - b.memory.log[0].at, 1u) << "asked for one after the other";
  EXPECT_EQ(took(b, 1), 109u) << "a cycle more than a single miss: the answers come one a cycle";
  EXPECT_EQ(b.tpt.counters().mtt_misses, 3u);
  b.answer(in_region(0x3ff0, 0x20, 2));
  EXPECT_EQ(took(b, 2), 6u);
  EXPECT_EQ(b.memory.log.size(), 2u);
}

/// Two lines on chip, read in one cycle where there are two ports; with one the second is read in the next cycle, and a
/// request behind it is looked up a cycle later. `took`: cycles of the request over the end and of the one behind it.
struct line_ports : region_of_three_lines {
  explicit line_ports(unsigned ports) : region_of_three_lines(with(ports)) {
    tpt.announce(stats);
    for (const std::uint64_t page : {3, 4, 12}) answer(in_region(page << 12, 16, page));
    const std::uint64_t before = accesses();
    users[0]->ask(in_region(0x3ff0, 0x20, 20));
    users[0]->ask(in_region(0xc000, 16, 21));
    run(50);
    read = accesses() - before;
    over_the_end = users[0]->answers.at(20);
    for (const std::uint64_t tag : {20, 21}) took.push_back(users[0]->answered.at(tag) - users[0]->asked.at(tag));
  }
  static icm::translation_config with(unsigned ports) {
    icm::translation_config c = at_once();
    c.mtt_read_ports = ports;
    return c;
  }
  std::uint64_t accesses() const {
    for (const sim::memory_ports* m : clock.memories())
      if (m->name() == "tpt.mtt_reads") return m->accesses(0);
    return 0;
  }
  std::uint64_t waits() const { return stats.value("tpt.mtt_reads.look_up.waits"); }
  sim::statistics stats;
  std::uint64_t read = 0;
  icm::translate_response over_the_end;
  std::vector<sim::cycle_t> took;
};

TEST(translation_ports, two_lines_are_read_in_a_cycle) {
  const line_ports b(2);
  EXPECT_EQ(b.took, (std::vector<sim::cycle_t>{6, 6}));
  EXPECT_EQ(b.read, 3u);
  EXPECT_EQ(b.waits(), 0u);
}
TEST(translation_ports, of_one_the_second_line_is_read_a_cycle_later) {
  const line_ports b(1);
  EXPECT_EQ(b.took, (std::vector<sim::cycle_t>{7, 7}));
  EXPECT_EQ(b.read, 3u);
  EXPECT_EQ(b.waits(), 1u);
  ASSERT_EQ(b.over_the_end.count, 2u);
  EXPECT_EQ(b.over_the_end.segments[0].address, 0x5030ff0u);
  EXPECT_EQ(b.over_the_end.segments[1].address, 0x5040000u);
}
/// Pages 14 and 15 are in one line, which is read once.
TEST(translation_ports, two_pages_of_a_line_are_one_access) {
  line_ports b(1);
  const std::uint64_t before = b.accesses();
  b.answer(in_region(0xeff0, 0x20, 30));
  EXPECT_EQ(took(b, 30), 6u);
  EXPECT_EQ(b.accesses() - before, 1u);
  EXPECT_EQ(b.waits(), 1u) << "that of the request over the end";
}
/// What was fetched is handed to the request: only a line that was on chip is read.
TEST(translation_ports, a_line_that_was_fetched_is_not_read) {
  line_ports b(1);
  const std::uint64_t before = b.accesses();
  b.write_mtt(40, {0x7000000});
  b.answer(in_region(0x3ff0, 0x20, 30));
  EXPECT_EQ(took(b, 30), 108u);
  EXPECT_EQ(b.accesses() - before, 1u);
}

/// One of the two is on chip: only the other is fetched.
void expect_one_fetch(bool first_known) {
  region_of_three_lines b;
  b.answer(in_region(first_known ? 0x3000 : 0x4000, 16, 0));
  b.memory.log.clear();
  const auto a = b.answer(in_region(0x3fff, 2, 1));
  EXPECT_EQ(a.segments[0].address, 0x5030fffu);
  EXPECT_EQ(a.segments[1].address, 0x5040000u);
  ASSERT_EQ(b.memory.log.size(), 1u);
  EXPECT_EQ(b.memory.log[0].address, mtt_host + 8 * (first_known ? 40 : 32));
  EXPECT_EQ(took(b, 1), 108u);
}
TEST(translation_lines, a_request_out_of_a_known_line_fetches_the_next) { expect_one_fetch(true); }
TEST(translation_lines, a_request_into_a_known_line_fetches_the_one_before) { expect_one_fetch(false); }

TEST(translation_lines, the_last_byte_of_a_line_needs_no_other) {
  region_of_three_lines b;
  b.answer(in_region(0, 16, 0));
  b.memory.log.clear();
  const auto a = b.answer(in_region(0x3ff0, 0x10, 1));
  EXPECT_EQ(a.count, 1u);
  EXPECT_TRUE(b.memory.log.empty());
}

/// The last page has no entry behind it that would have to be there.
TEST(translation_lines, the_second_page_not_present_refuses_all) {
  region_of_three_lines b;
  b.memory.be64(mtt_host + 8 * 40, 0x9000);  // not present
  const auto a = b.answer(in_region(0x3ff0, 0x20, 1));
  EXPECT_EQ(a.status, translate_status::not_mapped);
  EXPECT_EQ(a.count, 0u);
  EXPECT_EQ(b.answer(in_region(0x3ff0, 0x10, 2)).status, translate_status::ok);
}

/// WRITE_MTT of entries that are on chip: they are read again, and all of a range over several lines.
TEST(translation_lines, entries_written_after_their_use_are_read_again) {
  region_of_three_lines b;
  for (const std::uint64_t page : {3, 4, 12}) b.answer(in_region(page << 12, 16, page));
  b.memory.log.clear();
  b.write_mtt(39, {0x7000000, 0x7010000});  // the last entry of a line and the first of the next
  const auto a = b.answer(in_region(0x3ff0, 0x20, 20));
  ASSERT_EQ(a.count, 2u);
  EXPECT_EQ(a.segments[0].address, 0x7000ff0u);
  EXPECT_EQ(a.segments[1].address, 0x7010000u);
  EXPECT_EQ(b.memory.log.size(), 2u);
  b.answer(in_region(0xc000, 16, 21));
  EXPECT_EQ(b.memory.log.size(), 2u) << "the third line is as it was";
}

/// Exactly the lines of the range: not the one in front, not the one behind.
TEST(translation_lines, a_range_that_fills_a_line_drops_that_one) {
  region_of_three_lines b;
  for (const std::uint64_t page : {3, 4, 12}) b.answer(in_region(page << 12, 16, page));
  b.memory.log.clear();
  b.write_mtt(40, std::vector<std::uint64_t>(8, 0x7000000));
  for (const std::uint64_t page : {3, 12}) b.answer(in_region(page << 12, 16, 100 + page));
  EXPECT_TRUE(b.memory.log.empty());
  EXPECT_EQ(b.answer(in_region(0xb000, 16, 20)).segments[0].address, 0x7000000u);
  EXPECT_EQ(b.memory.log.size(), 1u);
}

/// Written while its line is on the way: the old one is not used, nor kept.
TEST(translation_lines, entries_written_while_they_are_fetched_are_fetched_again) {
  region_of_three_lines b;
  b.answer(in_region(0, 16, 0));
  b.users[0]->ask(in_region(0x4000, 16, 1));
  b.run(103);  // memory has read the line, the answer is on its way
  b.write_mtt(40, {0x7000000});
  b.run(300);
  EXPECT_EQ(b.users[0]->answers.at(1).segments[0].address, 0x7000000u);
  EXPECT_EQ(b.tpt.counters().stale, 1u);
  EXPECT_EQ(b.answer(in_region(0x4000, 16, 2)).segments[0].address, 0x7000000u);
}

}  // namespace
