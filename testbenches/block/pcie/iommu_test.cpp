// SPDX-License-Identifier: Apache-2.0
// The IOMMU by itself, in literal times: an access of a table takes 146.5 ns, a walk of three 439.5, of two 293.
#include "model/host/iommu.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/timebase.h"

namespace rnic::test {
namespace {

using host::host_memory;
using host::iommu;
using host::memory_class;

constexpr sim::time_ps ns = 1000;

/// Acts in a tick of the root complex's clock, before the IOMMU's of the same edge.
class earlier_block final : public sim::clocked_block {
 public:
  explicit earlier_block(sim::clock_domain& clock) : clocked_block("earlier", clock) {}
  void act_at(sim::cycle_t edge, std::function<void()> act) {
    edge_ = edge;
    act_ = std::move(act);
    wake_at(edge);
  }

 private:
  void tick() override {
    if (act_ && now() == edge_) act_();
  }
  sim::cycle_t edge_ = 0;
  std::function<void()> act_;
};

struct iommu_bench : host::translated_traffic_if {
  explicit iommu_bench(const host::iommu_config& c = {}, const host::memory_timing_config& m = {})
      : uncore("uncore", base, sim::clock_period::from_khz(1'000'000)),
        timing("root", m, memory, 1000),
        block("iommu", uncore, c, memory, timing, *this, statistics) {}

  struct seen {
    payload::tlp_type type;
    std::uint64_t address;
    sim::time_ps arrival, at;
    bool missed, refused;
  };
  void translated(payload::tlp_ptr packet, const passage& p) override {
    EXPECT_GT(p.at, uncore.now_ps());
    got.push_back({packet->type, packet->address, p.arrival, p.at, p.missed, p.refused});
  }
  /// Arrives at `at_ns`, all in order.
  void send(std::uint64_t address, std::uint64_t at_ns, unsigned function = 0,
            payload::tlp_type type = payload::tlp_type::mem_read) {
    payload::tlp_ptr t = packets.get();
    t->type = type;
    t->address = address;
    t->length = 64;
    t->requester = static_cast<std::uint16_t>(0x100 + function);
    block.request(std::move(t), at_ns * ns);
  }
  /// The times, in ns, at which those sent since the last call had their translations.
  std::vector<std::uint64_t> run(std::uint64_t ns_more = 10'000) {
    const std::size_t first = got.size();
    sc_core::sc_start(sc_core::sc_time::from_value(ns_more * ns));
    std::vector<std::uint64_t> at;
    for (std::size_t i = first; i < got.size(); ++i) at.push_back(got[i].at / ns);
    return at;
  }
  const iommu::counters& counts() const { return block.counts(); }

  sim::timebase base;
  sim::clock_domain uncore;
  payload::tlp_pool packets;
  sim::statistics statistics;
  host_memory memory{host_memory::config{0x1'0000'0000, 8ull << 30}};
  host::memory_timing timing;
  std::vector<seen> got;
  std::uint64_t page = memory.allocate(64 * 4096).address;
  earlier_block earlier{uncore};
  iommu block;
};

using times = std::vector<std::uint64_t>;

TEST(iommu, the_first_walk_reads_three_levels_the_next_ones_two_and_a_hit_none) {
  iommu_bench b;
  b.send(b.page, 1000);
  b.send(b.page + 64, 2000);
  b.send(b.page + 4096, 3000);
  b.send(b.page, 4000);
  EXPECT_EQ(b.run(), (times{1441, 2001, 3294, 4001}));
  EXPECT_EQ(b.counts().hits, 2u);
  EXPECT_EQ(b.counts().misses, 2u);
  EXPECT_EQ(b.counts().walks, 2u);
  EXPECT_EQ(b.counts().merged, 0u);
  EXPECT_EQ(b.counts().accesses, 5u);
  EXPECT_EQ(b.statistics.value("iommu.table_accesses"), 5u);
  EXPECT_TRUE(b.got[0].missed);
  EXPECT_FALSE(b.got[1].missed);
}

TEST(iommu, looks_up_one_a_cycle) {
  iommu_bench b;
  b.send(b.page, 100);
  b.run();
  for (unsigned i = 0; i < 4; ++i) b.send(b.page + 64 * i, 20'000);
  EXPECT_EQ(b.run(20'000), (times{20'001, 20'002, 20'003, 20'004}));
  for (unsigned i = 1; i <= 4; ++i)
    EXPECT_EQ(b.got[i].arrival, 20'000 * ns) << "at the root complex, not at the lookup";
}

TEST(iommu, a_lookup_of_several_cycles_is_a_pipeline) {
  host::iommu_config c;
  c.lookup_cycles = 9;
  iommu_bench b(c);
  b.send(b.page, 100);
  b.run();
  for (unsigned i = 0; i < 3; ++i) b.send(b.page + 64 * i, 20'000);
  EXPECT_EQ(b.run(20'000), (times{20'009, 20'010, 20'011}));
}

TEST(iommu, what_misses_a_page_that_is_walked_for_waits_for_that_walk) {
  iommu_bench b;
  b.send(b.page, 1000);
  b.send(b.page + 128, 1100);
  b.send(b.page + 192, 1440);  // the edge at which it is there
  EXPECT_EQ(b.run(), (times{1441, 1441, 1441}));
  EXPECT_EQ(b.counts().merged, 1u);
  EXPECT_EQ(b.counts().walks, 1u);
  EXPECT_EQ(b.counts().hits, 1u);
}

// The first one fills the walk cache; of the seven others five have a walker, the next ones wait for the first two.
TEST(iommu, as_many_walks_at_once_as_there_are_walkers) {
  iommu_bench b;
  b.send(b.page, 100);
  for (unsigned i = 1; i < 8; ++i) b.send(b.page + 4096 * i, 1000);
  EXPECT_EQ(b.run(), (times{541, 1294, 1295, 1296, 1297, 1298, 1587, 1588}));
}

TEST(iommu, a_hit_passes_a_miss) {
  iommu_bench b;
  b.send(b.page, 100);
  b.send(b.page + 4096, 1000);
  b.send(b.page, 1010);
  EXPECT_EQ(b.run(), (times{541, 1294, 1011}));
  EXPECT_EQ(b.got[2].address, b.page) << "handed on in the order of arrival";
}

// One way: while the walk of one page is under way there is none for another one, and what is behind it waits too.
TEST(iommu, a_lookup_waits_for_a_way_whose_walk_is_under_way) {
  host::iommu_config c;
  c.entries = c.ways = 1;
  iommu_bench b(c);
  b.send(b.page, 1000);
  b.send(b.page + 4096, 1010);
  b.send(b.page + 4096 + 64, 1011);
  EXPECT_EQ(b.run(), (times{1441, 1734, 1734}));
  EXPECT_EQ(b.counts().stalls, 1u);
  EXPECT_EQ(b.counts().merged, 1u);
  b.send(b.page, 20'000);
  EXPECT_EQ(b.run(20'000), (times{20'294})) << "it has left";
}

// A walk that waits for its walker looks for the upper tables when it begins, and the first one has read them by then.
TEST(iommu, a_walk_that_waited_begins_with_what_was_read_meanwhile) {
  host::iommu_config c;
  c.walkers = 1;
  iommu_bench b(c);
  b.send(b.page, 1000);
  b.send(b.page + 4096, 1010);
  EXPECT_EQ(b.run(), (times{1441, 1734}));
  EXPECT_EQ(b.counts().accesses, 5u);
}

// The first walk of a full set ends at 1440 and the second at 1450. Being ticked for something else, as a release is,
// is no other stall, and no other miss.
TEST(iommu, a_lookup_that_waits_for_a_way_takes_the_first_one_and_counts_once) {
  host::iommu_config c;
  c.entries = c.ways = 2;
  iommu_bench b(c);
  const auto other = b.memory.allocate(4096);
  for (unsigned i = 0; i < 3; ++i) b.send(b.page + 4096 * i, 1000 + 10 * i);
  b.run(1100);
  b.memory.release(other);
  EXPECT_EQ(b.run(), (times{1441 + 293}));
  EXPECT_EQ(b.got[1].at, 1451 * ns);
  EXPECT_EQ(b.counts().stalls, 1u);
  EXPECT_EQ(b.counts().misses, 3u);
}

// By number of the page and of the function: pages 0 and 4 of two functions are in sets 0 and 1 of four, pages 0 and 1
// of functions 0 and 3 in one.
TEST(iommu, functions_are_spread_over_the_sets) {
  host::iommu_config c;
  c.entries = 4;
  c.ways = 1;
  iommu_bench b(c);
  const auto of = [&](unsigned number, std::uint8_t function) {
    const std::uint64_t at = b.memory.allocate(8 * 4096, 8 * 4096, memory_class::llc, function).address;
    return at + 4096 * number;
  };
  const std::uint64_t apart = of(4, 1), together = of(1, 3);
  std::uint64_t at = 1000;
  const auto misses = [&](std::uint64_t address, unsigned function) {
    b.send(address, at, function);
    b.run(5000);
    at += 5000;
    return b.got.back().missed;
  };
  EXPECT_TRUE(misses(b.page, 0));
  EXPECT_TRUE(misses(apart, 1));
  EXPECT_FALSE(misses(b.page, 0));
  EXPECT_TRUE(misses(together, 3));
  EXPECT_TRUE(misses(b.page, 0)) << "the other one has its place";
}

TEST(iommu, the_translation_used_longest_ago_leaves_its_set) {
  host::iommu_config c;
  c.entries = 4;
  c.ways = 2;
  iommu_bench b(c);
  std::uint64_t at = 1000;
  const auto misses = [&](unsigned number) {
    b.send(b.page + 4096 * number, at);
    b.run(5000);
    at += 5000;
    return b.got.back().missed;
  };
  EXPECT_TRUE(misses(0));
  EXPECT_TRUE(misses(2));
  EXPECT_FALSE(misses(0));
  EXPECT_TRUE(misses(4)) << "2 leaves";
  EXPECT_FALSE(misses(0));
  EXPECT_TRUE(misses(2));
  EXPECT_TRUE(misses(1)) << "the other set";
  EXPECT_FALSE(misses(0));
}

TEST(iommu, a_window_of_as_many_pages_as_there_are_translations_has_no_conflicts) {
  host::iommu_config c;
  c.entries = 64;
  iommu_bench b(c);
  for (unsigned round = 0; round < 3; ++round)
    for (unsigned i = 0; i < 64; ++i) b.send(b.page + 4096 * i, 1000 + 100'000 * round + 1000 * i);
  b.run(400'000);
  EXPECT_EQ(b.counts().walks, 64u);
  EXPECT_EQ(b.counts().hits, 128u);
}

TEST(iommu, each_function_has_its_pages_and_nobody_elses) {
  iommu_bench b;
  const std::uint64_t own = b.memory.allocate(4096, 4096, memory_class::llc, 3).address;
  b.send(own, 1000, 3);
  b.send(own, 3000, 4);
  b.send(own, 5000, 4);
  b.send(own, 7000, 0);
  b.send(own, 9000, 3);
  const times at = b.run(12'000);
  EXPECT_EQ(at, (times{1441, 3441, 5294, 7441, 9001})) << "a refusal is not cached, upper tables are";
  for (unsigned i = 0; i < 5; ++i) EXPECT_EQ(b.got[i].refused, i >= 1 && i <= 3) << i;
  EXPECT_EQ(b.counts().faults, 3u);
}

TEST(iommu, what_is_released_is_refused) {
  iommu_bench b;
  const auto buffer = b.memory.allocate(3 * 4096);
  for (unsigned i = 0; i < 3; ++i) b.send(buffer.address + 4096 * i, 1000);
  b.run();
  EXPECT_EQ(b.counts().faults, 0u);
  b.memory.release(buffer);
  b.send(buffer.address + 4096, 20'000);
  b.run(20'000);
  EXPECT_TRUE(b.got.back().refused);
  EXPECT_EQ(b.counts().invalidations, 3u);
  const auto again = b.memory.allocate(3 * 4096);
  ASSERT_EQ(again.address, buffer.address);
  b.send(buffer.address + 4096, 40'000);
  EXPECT_EQ(b.run(20'000), (times{40'294})) << "what was cached before does not count";
  EXPECT_FALSE(b.got.back().refused);
}

TEST(iommu, a_release_leaves_the_pages_beside_it) {
  iommu_bench b;
  const auto buffer = b.memory.allocate(4096);
  const std::uint64_t next = b.memory.allocate(4096).address;
  ASSERT_EQ(next, buffer.address + 4096);
  const std::uint64_t all[] = {buffer.address - 4096, buffer.address, next};
  for (const std::uint64_t address : all) b.send(address, 1000);
  b.run();
  b.memory.release(buffer);
  for (const std::uint64_t address : {all[0], all[2]}) b.send(address, 20'000);
  EXPECT_EQ(b.run(20'000), (times{20'001, 20'002}));
  EXPECT_EQ(b.counts().invalidations, 1u);
}

// The edge at which a buffer is released still has it, however early in it the release comes: the order of blocks in an
// edge is nobody's business.
TEST(iommu, a_buffer_is_there_to_the_end_of_the_cycle_of_its_release) {
  iommu_bench b;
  const auto buffer = b.memory.allocate(2 * 4096);
  b.earlier.act_at(20'000, [&] { b.memory.release(buffer); });
  b.send(buffer.address + 4096, 1000);
  b.send(buffer.address + 2 * 4096 - 64, 20'000);
  b.send(buffer.address + 2 * 4096 - 64, 20'001);
  b.run(30'000);
  ASSERT_EQ(b.got.size(), 3u);
  EXPECT_FALSE(b.got[1].refused);
  EXPECT_EQ(b.got[1].at, 20'001 * ns);
  EXPECT_TRUE(b.got[2].refused);
}

TEST(iommu, what_lies_behind_a_release_is_not_there_in_its_cycle) {
  iommu_bench b;
  const auto buffer = b.memory.allocate(4096), behind = b.memory.allocate(4096);
  ASSERT_EQ(behind.address, buffer.address + 4096);
  b.memory.release(behind);
  b.earlier.act_at(20'000, [&] { b.memory.release(buffer); });
  b.send(behind.address, 20'000);
  b.run(30'000);
  ASSERT_EQ(b.got.size(), 1u);
  EXPECT_TRUE(b.got[0].refused);
}

// A translation is taken out while a lookup waits for its way: the next edge has it.
TEST(iommu, a_release_frees_the_way_of_a_walk) {
  host::iommu_config c;
  c.entries = c.ways = 1;
  iommu_bench b(c);
  const auto buffer = b.memory.allocate(4096);
  b.send(buffer.address, 1000);
  b.send(b.page, 1010);
  b.run(1100);
  b.memory.release(buffer);
  EXPECT_EQ(b.run(), (times{1101 + 440 + 1})) << "the upper table is being read by the first one";
}

TEST(iommu, a_large_page_is_one_translation_of_one_level_less) {
  host::iommu_config c;
  c.page = host::iommu_page::large;
  iommu_bench b(c);
  const std::uint64_t at = b.memory.allocate(4 << 20, 2 << 20).address;
  b.send(at, 1000);
  b.send(at + (1 << 20), 3000);
  b.send(at + (2 << 20), 5000);
  EXPECT_EQ(b.run(), (times{1294, 3001, 5148}));
}

TEST(iommu, a_huge_page_is_one_translation_of_one_access) {
  host::iommu_config c;
  c.page = host::iommu_page::huge;
  iommu_bench b(c);
  const std::uint64_t at = b.memory.allocate(4096, 1ull << 30).address;
  const std::uint64_t half = b.memory.allocate(4096, 512ull << 20).address, next = at + (1ull << 30);
  ASSERT_EQ(half, at - (512ull << 20)) << "of the page before";
  const std::uint64_t there = b.memory.allocate(4096, 1ull << 30).address;
  ASSERT_EQ(there, next);
  b.send(at, 1000);
  b.send(b.page, 3000);
  b.send(half, 5000);
  b.send(there, 7000);
  EXPECT_EQ(b.run(), (times{1148, 3148, 5001, 7148}));
}

// The table of large pages is the last one, and its entries are translations: no walk cache has them as well.
TEST(iommu, a_large_page_that_left_is_walked_for_from_the_table_above) {
  host::iommu_config c;
  c.page = host::iommu_page::large;
  c.cached_level = 2;
  c.entries = c.ways = 1;
  iommu_bench b(c);
  const std::uint64_t at = b.memory.allocate(4 << 20, 2 << 20).address;
  b.send(at, 1000);
  b.send(at + (2 << 20), 3000);
  b.send(at, 5000);
  EXPECT_EQ(b.run(), (times{1294, 3148, 5148}));
}

// Approximation of iommu.h: a large page is a translation, but what is mapped of it are pages of 4 KiB.
TEST(iommu, what_is_not_mapped_of_a_large_page_is_refused_where_it_hits) {
  host::iommu_config c;
  c.page = host::iommu_page::large;
  iommu_bench b(c);
  const std::uint64_t at = b.memory.allocate(4096, 2 << 20).address;
  b.send(at, 1000);
  b.send(at + 8192, 3000);
  EXPECT_EQ(b.run(), (times{1294, 3001}));
  EXPECT_TRUE(b.got[1].refused);
  EXPECT_FALSE(b.got[1].missed);
  EXPECT_EQ(b.counts().faults, 1u);
}

// Intel SDM vol. 3, 11.11: interrupts are writes from 0xFEE0'0000 to 0xFEEF'FFFF.
TEST(iommu, interrupts_end_where_their_window_ends) {
  iommu_bench b;
  for (const std::uint64_t at : {0xfedf'ffc0, 0xfee0'0000, 0xfeef'ffc0, 0xfef0'0000})
    b.send(at, 1000, 0, payload::tlp_type::mem_write);
  b.run();
  ASSERT_EQ(b.got.size(), 4u);
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(b.got[i].refused, i == 0 || i == 3) << i;
  EXPECT_EQ(b.counts().walks, 2u);
}

TEST(iommu, interrupts_and_completions_keep_their_place_and_are_not_looked_up) {
  iommu_bench b;
  b.send(b.page, 1000, 0, payload::tlp_type::mem_write);
  b.send(0xfee0'0000, 1000, 0, payload::tlp_type::mem_write);
  b.send(0, 1000, 0, payload::tlp_type::completion);
  b.send(0, 1000, 0, payload::tlp_type::message);
  EXPECT_EQ(b.run(), (times{1441, 1002, 1003, 1004}));
  EXPECT_EQ(b.counts().misses, 1u);
  EXPECT_EQ(b.counts().faults, 0u);
  EXPECT_EQ(b.got[2].type, payload::tlp_type::completion);
}

TEST(iommu, parameters_are_times_of_walks) {
  host::iommu_config c;
  c.lookup_cycles = 4;
  c.levels = 5;
  c.cached_level = 2;
  c.tables = memory_class::remote;
  iommu_bench b(c);
  b.send(b.page, 1000);
  b.send(b.page + 4096, 4000);
  EXPECT_EQ(b.run(), (times{1000 + 1233 + 4, 4000 + 247 + 4})) << "five times 246.5 ns, then once";
}

// Jitter is the memory's, so walks have it as well: two accesses, and each more than it usually takes.
TEST(iommu, tables_are_read_with_the_jitter_of_memory) {
  host::memory_timing_config m;
  m.jitter.law = host::jitter_law::exponential;
  m.jitter.mean_ps = 50'000;
  iommu_bench b({}, m);
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < 64; ++i) b.send(b.page + 4096 * i, 10'000 + 5000 * i);
  const times at = b.run(400'000);
  ASSERT_EQ(at.size(), 64u);
  for (unsigned i = 1; i < 64; ++i) {
    EXPECT_GE(at[i], 10'000 + 5000 * i + 294);
    sum += at[i] - (10'000 + 5000 * i + 294);
  }
  EXPECT_NEAR(static_cast<double>(sum) / 63, 100, 30);
}

TEST(iommu, refuses_what_cannot_be_built) {
  host::iommu_config c;
  c.ways = 7;
  EXPECT_THROW(iommu_bench{c}, sim::config_error);
  host_memory far{host_memory::config{1ull << 38, 1ull << 39}};
  sim::timebase base;
  sim::clock_domain uncore("uncore", base, sim::clock_period::from_khz(1'000'000));
  sim::statistics statistics;
  host::memory_timing timing("root", {}, far, 1000);
  struct : host::translated_traffic_if {
    void translated(payload::tlp_ptr, const passage&) override {}
  } nobody;
  EXPECT_THROW(iommu("iommu", uncore, host::iommu_config{}, far, timing, nobody, statistics), sim::config_error);
}

}  // namespace
}  // namespace rnic::test
