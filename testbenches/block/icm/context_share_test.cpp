// SPDX-License-Identifier: Apache-2.0
// The second entry of a context: looked up, filled and replaced by itself.
#include <gtest/gtest.h>

#include <cstring>
#include <systemc>
#include <vector>

#include "model/icm/context_cache.h"
#include "model/sim/timebase.h"
#include "testbenches/block/icm/fake_memory.h"

namespace {
using namespace rnic;
using cache = icm::context_cache<icm::requester_context>;

constexpr std::uint64_t host = 0x8000;
constexpr std::uint32_t entry_bytes = 256;

/// Looks up queue pairs, one after the other, as often as it takes; a number from 100 on is the second entry of that
/// less 100.
class owner : public sim::clocked_block {
 public:
  owner(sim::clock_domain& d, const icm::context_cache_config& c, const icm::icm_map& map)
      : clocked_block("owner", d), contexts("cache", *this, c, map, icm::table::qpc, 0) {}
  void ask(const std::vector<std::uint32_t>& numbers) {
    todo = numbers;
    next = 0;
    wake_next();
  }
  cache contexts;
  std::vector<std::uint32_t> todo;
  std::size_t next = 0;

 private:
  void tick() override {
    contexts.service();
    icm::requester_context* c = nullptr;
    if (next == todo.size()) return;
    const std::uint32_t n = todo[next];
    if ((n < 100 ? contexts.lookup(n, c) : contexts.second(n - 100)) != cache::result::hit) return;
    ++next;
    wake_next();
  }
};

struct bench {
  explicit bench(const icm::context_cache_config& c = one_set)
      : base({false, 0}), clock("core", base, {1000, 1, 0}), memory(clock, 0x20000, 50), user(clock, c, map) {
    map.layout(icm::table::qpc) = {0x110800000, entry_bytes, 4};
    map.map(0x110800000, host, 0x1000);
    memory.attach(user.contexts.dma);
  }
  /// Reads of memory for these, in order.
  std::uint64_t misses(const std::vector<std::uint32_t>& numbers) {
    const std::uint64_t before = user.contexts.counters().misses;
    if (!started) sc_core::sc_start(500, sc_core::SC_PS);
    started = true;
    user.ask(numbers);
    sc_core::sc_start(5000, sc_core::SC_NS);
    EXPECT_EQ(user.next, numbers.size());
    return user.contexts.counters().misses - before;
  }
  inline static const icm::context_cache_config one_set{4, 4, 1, 0, 2};
  bool started = false;
  sim::timebase base;
  sim::clock_domain clock;
  icm::icm_map map;
  rnic::bench::fake_memory memory;
  owner user;
};

TEST(context_second_entry, is_filled_by_itself_and_takes_a_place) {
  bench b;
  EXPECT_EQ(b.misses({0, 100}), 2u);
  EXPECT_EQ(b.misses({0, 100, 0, 100}), 0u);
  EXPECT_EQ(b.misses({1, 101}), 2u);
  EXPECT_EQ(b.misses({0, 100, 1, 101}), 0u) << "two of two fit into four entries";
  EXPECT_EQ(b.misses({2}), 1u) << "drives out the first entry of 0";
  EXPECT_EQ(b.misses({100, 1, 101, 2}), 0u);
  EXPECT_EQ(b.misses({0}), 1u) << "and comes back without the second";
}

TEST(context_second_entry, others_take_one) {
  bench b;
  EXPECT_EQ(b.misses({0, 1, 2, 3}), 4u);
  EXPECT_EQ(b.misses({0, 1, 2, 3}), 0u);
}

TEST(context_second_entry, is_not_written_back) {
  bench b;
  EXPECT_EQ(b.misses({0, 100}), 2u);
  b.user.contexts.mark_dirty(0);
  EXPECT_EQ(b.misses({1, 2, 0}), 2u);
  EXPECT_EQ(b.misses({3, 4}), 2u) << "100 and 1 go";
  EXPECT_EQ(b.misses({0, 2, 3}), 0u);
  EXPECT_EQ(b.user.contexts.counters().replaced_dirty, 0u);
}

TEST(context_second_entry, goes_with_its_context) {
  bench b;
  EXPECT_EQ(b.misses({0, 100, 1, 101}), 4u);
  b.user.contexts.drop(0);
  EXPECT_EQ(b.misses({1, 101, 100}), 1u);
  b.user.contexts.flush(1);
  EXPECT_FALSE(b.user.contexts.busy(1));
  EXPECT_EQ(b.misses({101}), 1u);
}

/// Sixteen sets of one: two that share a set drive each other out.
const icm::context_cache_config sets_of_one{16, 1, 1, 0, 2};

TEST(context_second_entry, has_a_hash_of_its_own) {
  bench b(sets_of_one);
  std::vector<std::uint32_t> own, firsts, both;  // numbers; pairs that share the first set, and the second
  const auto share = [&b](std::uint32_t x, std::uint32_t y) {
    b.misses({x, y});
    return b.misses({x, y}) != 0;
  };
  for (std::uint32_t n = 0; n < 16; ++n)
    if (share(n, 100 + n)) own.push_back(n);
  for (std::uint32_t n = 0; n < 16; ++n)
    for (std::uint32_t m = 0; m < n; ++m) {
      if (!share(n, m)) continue;
      firsts.push_back(16 * n + m);
      if (share(100 + n, 100 + m)) both.push_back(16 * n + m);
    }
  EXPECT_EQ(own, std::vector<std::uint32_t>{1}) << "one in sixteen";
  EXPECT_EQ(firsts.size(), 8u) << "120 pairs over sixteen sets";
  EXPECT_TRUE(both.empty()) << "those that share the first set are apart in the second";
}

/// The first entry of 6 is in the set of the second one of 2, that of 4 in that of 0's first.
TEST(context_second_entry, either_goes_without_the_other) {
  bench b(sets_of_one);
  EXPECT_EQ(b.misses({2, 102, 6}), 3u);
  EXPECT_EQ(b.misses({2}), 0u) << "the first one stays";
  EXPECT_EQ(b.misses({102}), 1u) << "and waits for the second";
  EXPECT_EQ(b.misses({0, 100, 4}), 3u);
  EXPECT_EQ(b.misses({100}), 0u) << "the second one stays";
  EXPECT_EQ(b.misses({0}), 1u);
  EXPECT_EQ(b.misses({100, 0}), 0u);
}

TEST(context_second_entry, one_that_is_not_to_be_filled_is_passed_over) {
  bench b;
  EXPECT_EQ(b.misses({0}), 1u);
  EXPECT_EQ(b.user.contexts.second(0, false), cache::result::hit);
  EXPECT_EQ(b.user.contexts.counters().misses, 1u);
}

TEST(context_second_entry, is_nobody_for_who_walks_over_contexts) {
  bench b;
  EXPECT_EQ(b.misses({0, 100, 1}), 3u);
  unsigned seen = 0;
  b.user.contexts.for_each([&](std::uint32_t number, icm::requester_context&) {
    EXPECT_LT(number, 2u);
    ++seen;
  });
  EXPECT_EQ(seen, 2u);
}

}  // namespace
