// SPDX-License-Identifier: Apache-2.0
// How many queue pairs fit on chip: those of acknowledged services take two entries, others one.
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

/// Looks up queue pairs, one after the other, as often as it takes.
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
    if (next == todo.size() || contexts.lookup(todo[next], c) != cache::result::hit) return;
    ++next;
    wake_next();
  }
};

struct bench {
  bench() : base({false, 0}), clock("core", base, {1000, 1, 0}), memory(clock, 0x20000, 50), user(clock, one_set, map) {
    map.layout(icm::table::qpc) = {0x110800000, entry_bytes, 4};
    map.map(0x110800000, host, 0x1000);
    memory.attach(user.contexts.dma);
  }
  void make(std::uint32_t number, icm::service type) {
    icm::requester_context c{};
    c.qpn = number;
    c.type = type;
    std::memcpy(memory.at(host + entry_bytes * number), &c, sizeof c);
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
  static constexpr icm::context_cache_config one_set{4, 4, 1, 0, 2};
  bool started = false;
  sim::timebase base;
  sim::clock_domain clock;
  icm::icm_map map;
  rnic::bench::fake_memory memory;
  owner user;
};

TEST(context_share, a_fill_claims_two_entries_until_it_is_known_what_has_come) {
  bench b;
  for (std::uint32_t n = 0; n < 4; ++n) b.make(n, n % 2 == 0 ? icm::service::uc : icm::service::ud);
  EXPECT_EQ(b.misses({0, 1, 2}), 3u);
  EXPECT_EQ(b.misses({0, 1, 2, 0, 1, 2}), 0u);
  EXPECT_EQ(b.misses({3}), 1u);  // claims two of four: drives out the first, and needs one
  EXPECT_EQ(b.misses({1, 2, 3}), 0u);
  EXPECT_EQ(b.misses({0}), 1u);
}

TEST(context_share, two_acknowledged_ones_fit_into_four_entries) {
  bench b;
  for (std::uint32_t n = 0; n < 3; ++n) b.make(n, n == 1 ? icm::service::xrc : icm::service::rc);
  EXPECT_EQ(b.misses({0, 1}), 2u);
  EXPECT_EQ(b.misses({0, 1, 0, 1}), 0u);
  EXPECT_EQ(b.misses({2}), 1u);
  EXPECT_EQ(b.misses({1, 2}), 0u);
  EXPECT_EQ(b.misses({0}), 1u);
}

TEST(context_share, an_acknowledged_one_drives_out_two_others) {
  bench b;
  for (std::uint32_t n = 0; n < 3; ++n) b.make(n, icm::service::uc);
  b.make(3, icm::service::rc);
  EXPECT_EQ(b.misses({0, 1, 2}), 3u);
  EXPECT_EQ(b.misses({3}), 1u);
  EXPECT_EQ(b.misses({1, 2, 3}), 0u);  // 2 + 1 + 1
  EXPECT_EQ(b.misses({0}), 1u);        // drives out 1 and 2, which were used before 3
  EXPECT_EQ(b.misses({3, 0}), 0u);
  EXPECT_EQ(b.misses({1}), 1u);
}

}  // namespace
