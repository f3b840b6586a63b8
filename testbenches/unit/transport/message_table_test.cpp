// SPDX-License-Identifier: Apache-2.0
// Messages under way: order, READs among them, what a cut forgets, the search, the port to release.
#include "model/transport/requester/message_table.h"

#include <gtest/gtest.h>

#include <functional>
#include <systemc>
#include <vector>

#include "model/sim/timebase.h"

namespace {
using namespace rnic;
using transport::message_search;
using transport::message_table;
using transport::no_index;
using wire::psn_t;

struct time_of_a_bench {
  sim::timebase base{{false, 0}};
  sim::clock_domain clock{"core", base, {1000, 1, 0}};
};

/// The table in a block that does in each cycle what the test says, until that says no.
struct bench final : time_of_a_bench, sim::clocked_block {
  explicit bench(unsigned entries = 16)
      : clocked_block("bench", clock), table(*this, entries, 1, 2, qps, lists, resumes) {}

  std::uint32_t append(std::uint32_t psn, std::uint32_t packets = 1, bool read = false, bool local = false) {
    std::uint32_t index = no_index;
    transport::message& m = table.append(r, index);
    m.first_psn = psn_t(psn);
    m.last_psn = psn_t(psn) + (packets - 1);
    m.local = local;
    if (read) table.append_read(c, r, index, transport::send_wqe{});
    ++c.outstanding;
    return index;
  }
  void take_back_behind_head() {
    table.cut_behind(r, r.head);
    message_table::returned counts;
    while (r.cut != no_index) table.release_cut(r, counts);
  }
  void run(std::function<bool()> each_cycle) {
    act = std::move(each_cycle);
    wake_next();
    sc_core::sc_start(sc_core::sc_time::from_value(200'000));
  }
  /// Cycles that the search takes, and what it finds.
  std::pair<sim::cycle_t, std::uint32_t> search(std::uint32_t psn) {
    sim::cycle_t begun = sim::never, ended = 0;
    std::uint32_t index = no_index;
    run([&] {
      if (begun == sim::never) begun = now();
      const auto result = finder.find(r, psn_t(psn), index);
      ended = now();
      if (result == message_search::result::none) index = no_index;
      return result == message_search::result::pending;
    });
    return {ended - begun, index};
  }

  transport::qp_table qps{10};
  transport::scatter_lists lists{8};
  transport::congestion_config congestion;
  transport::rate_limiter limiter{congestion, clock, 10};
  sim::fifo_out<scheduler::report> report{*this};
  transport::resumptions resumes{qps, limiter, report};
  message_table table;
  message_search finder{*this, table};
  transport::qp_runtime& r = qps[5];
  icm::requester_context c{};
  std::function<bool()> act;

 private:
  void tick() override {
    if (act && act()) wake_next();
  }
};

TEST(message_table, a_read_that_waits_for_its_answer_is_known_without_a_search) {
  bench b;
  b.append(10);
  const auto first = b.append(11, 4, true);
  b.append(15);
  b.append(16);
  const auto second = b.append(17, 1, true);
  EXPECT_EQ(b.r.reading, first);
  EXPECT_EQ(b.c.rd_outstanding, 2u);
  b.table.answered(b.r);
  EXPECT_EQ(b.r.reading, second);
  b.table.answered(b.r);
  EXPECT_EQ(b.r.reading, no_index);
  const auto third = b.append(18, 1, true);
  EXPECT_EQ(b.r.reading, third);
}

TEST(message_table, a_cut_forgets_what_is_behind_and_keeps_the_reads_before_it) {
  bench b;
  const auto read = b.append(0xfffffe, 4, true);  // to 1
  const auto keep = b.append(2);
  b.append(3, 2, true);
  b.append(5);
  ASSERT_TRUE(b.table.cut_behind(b.r, keep));
  EXPECT_EQ(b.r.tail, keep);
  EXPECT_EQ(b.r.reading, read);
  const auto again = b.append(3, 2, true);
  b.table.answered(b.r);
  EXPECT_EQ(b.r.reading, again);
  message_table::returned counts;
  b.table.release_cut(b.r, counts);
  EXPECT_NE(b.r.cut, no_index);
  b.table.release_cut(b.r, counts);
  EXPECT_EQ(b.r.cut, no_index);
  counts.take_off(b.c);
  EXPECT_EQ(counts.messages, 2u);
  EXPECT_EQ(b.c.rd_outstanding, 2u);
  EXPECT_EQ(b.c.outstanding, 3u);
}

TEST(message_table, a_cut_in_front_of_all_reads_leaves_none_to_wait_for) {
  bench b;
  const auto keep = b.append(1);
  b.append(2, 1, true);
  b.table.cut_behind(b.r, keep);
  EXPECT_EQ(b.r.reading, no_index);
  b.append(2, 1, true);
  EXPECT_NE(b.r.reading, no_index);
  b.table.cut_behind(b.r, no_index);
  EXPECT_EQ(b.r.reading, no_index);
  EXPECT_EQ(b.r.head, no_index);
  EXPECT_FALSE(b.table.cut_behind(b.r, no_index));
}

/// A local message has the PSN of what comes behind it.
TEST(message_table, a_cut_behind_a_local_message_forgets_the_read_with_its_psn) {
  bench b;
  const auto before = b.append(6, 2, true);
  const auto local = b.append(8, 1, false, true);
  b.append(8, 2, true);
  EXPECT_EQ(b.r.reading, before);
  b.table.answered(b.r);
  EXPECT_NE(b.r.reading, no_index);
  b.table.cut_behind(b.r, local);
  EXPECT_EQ(b.r.reading, no_index);
}

TEST(message_table, a_search_looks_at_a_message_a_cycle) {
  bench b;
  std::vector<std::uint32_t> index;
  for (const unsigned messages : {1u, 2u, 5u, 12u}) {
    for (unsigned n = static_cast<unsigned>(index.size()); n < messages; ++n)
      index.push_back(b.append(0xfffffd + 3 * n, 3));
    for (unsigned n = 0; n < messages; n += 3)
      for (const unsigned packet : {0u, 2u})
        EXPECT_EQ(b.search(0xfffffd + 3 * n + packet), std::make_pair(sim::cycle_t{n}, index[n])) << messages;
    EXPECT_EQ(b.search(0xfffffd + 3 * messages), std::make_pair(sim::cycle_t{messages}, no_index));
    EXPECT_EQ(b.search(0xfffffc), std::make_pair(sim::cycle_t{messages}, no_index));
  }
}

TEST(message_table, a_search_begins_anew_when_the_message_at_which_it_stands_has_gone) {
  bench b;
  for (unsigned n = 0; n < 4; ++n) b.append(n);
  sim::cycle_t begun = sim::never, ended = 0;
  std::uint32_t index = no_index;
  b.run([&] {
    if (begun == sim::never) begun = b.now();
    if (b.now() == begun + 1) b.table.release_head(b.c, b.r);  // looked at in the cycle before
    ended = b.now();
    return b.finder.find(b.r, psn_t(3), index) == message_search::result::pending;
  });
  EXPECT_EQ(ended - begun, 3u);  // 0; then 1, 2, 3
  EXPECT_EQ(b.table[index].first_psn, psn_t(3));
}

TEST(message_table, one_is_released_a_cycle_and_its_users_take_turns) {
  bench b;
  std::vector<std::pair<sim::cycle_t, char>> seen;
  sim::cycle_t begun = sim::never;
  b.run([&] {
    if (begun == sim::never) begun = b.now();
    if (seen.size() == 4) return false;
    if (b.table.may_release(message_table::by_completion)) seen.emplace_back(b.now() - begun, 'c');
    if (b.table.may_release(message_table::by_go_back)) seen.emplace_back(b.now() - begun, 'g');
    return true;
  });
  EXPECT_EQ(seen, (std::vector<std::pair<sim::cycle_t, char>>{{0, 'c'}, {1, 'g'}, {2, 'c'}, {3, 'g'}}));
}

TEST(message_table, one_is_appended_a_cycle_and_its_users_take_turns) {
  bench b;
  std::vector<std::pair<sim::cycle_t, char>> seen;
  sim::cycle_t begun = sim::never;
  b.run([&] {
    if (begun == sim::never) begun = b.now();
    if (seen.size() == 6) return false;
    for (unsigned unit = 0; unit != 2; ++unit)
      if (b.table.may_append(message_table::by_unit(unit)))
        seen.emplace_back(b.now() - begun, static_cast<char>('0' + unit));
    if (b.table.may_append(message_table::by_transmit)) seen.emplace_back(b.now() - begun, 't');
    return true;
  });
  EXPECT_EQ(seen,
            (std::vector<std::pair<sim::cycle_t, char>>{{0, '0'}, {1, '1'}, {2, 't'}, {3, '0'}, {4, '1'}, {5, 't'}}));
}

TEST(message_table, room_that_comes_lets_one_queue_pair_go_on_that_found_none) {
  bench b(2);
  b.append(1);
  const auto second = b.append(2);
  EXPECT_FALSE(b.table.has_room(b.qps[7], false));
  EXPECT_FALSE(b.table.has_room(b.qps[8], false));
  const auto generation = b.table[second].generation;
  b.take_back_behind_head();
  EXPECT_TRUE(b.qps[7].turn.has_work);
  EXPECT_FALSE(b.qps[8].turn.has_work);
  EXPECT_NE(b.table[second].generation, generation);
  EXPECT_TRUE(b.table.has_room(b.qps[7], true));
}

TEST(message_table, room_that_a_queue_pair_has_not_taken_is_left_to_the_next_one) {
  bench b(2);
  b.append(1);
  b.append(2);
  for (unsigned qpn : {7, 8, 9}) EXPECT_FALSE(b.table.has_room(b.qps[qpn], false));
  b.table.pass_on();
  EXPECT_FALSE(b.qps[7].turn.has_work) << "there is none";
  b.take_back_behind_head();
  b.qps[8].stop.halted = true;
  b.table.pass_on();
  EXPECT_FALSE(b.qps[8].turn.has_work);
  EXPECT_TRUE(b.qps[9].turn.has_work);
}

TEST(message_table, room_for_a_message_is_not_for_one_that_waits_for_a_list) {
  bench b(16);
  b.append(1);
  for (unsigned i = 0; i < 8; ++i) b.append(2 + i, 1, true);
  b.append(10);
  EXPECT_TRUE(b.table.has_room(b.qps[7], false));
  EXPECT_FALSE(b.table.has_room(b.qps[7], true));
  b.table.pass_on();
  b.table.release_head(b.c, b.r);
  EXPECT_FALSE(b.qps[7].turn.has_work);
  b.table.release_head(b.c, b.r);
  EXPECT_TRUE(b.qps[7].turn.has_work);
}

}  // namespace
