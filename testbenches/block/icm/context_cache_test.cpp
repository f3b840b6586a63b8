// SPDX-License-Identifier: Apache-2.0
// Cache of contexts in front of a memory that answers DMA.
#include "model/icm/context_cache.h"

#include <gtest/gtest.h>

#include <deque>
#include <systemc>

#include "model/icm/contexts.h"
#include "model/sim/timebase.h"
#include "testbenches/bench/child.h"
#include "testbenches/block/icm/fake_memory.h"

namespace {
using namespace rnic;
using cache = icm::context_cache<icm::cq_context>;

constexpr std::uint64_t host = 0x4000;

/// Looks up what the test asks for, one after the other, and optionally changes it.
class owner : public sim::clocked_block {
 public:
  struct work {
    std::uint32_t number;
    bool change;
    bool pin;
  };
  owner(sim::clock_domain& d, const icm::context_cache_config& c, const icm::icm_map& map)
      : clocked_block("owner", d), contexts("cache", *this, c, map, icm::table::cqc, 0) {}
  void ask(std::uint32_t number, bool change = false, bool pin = false) {
    todo.push_back({number, change, pin});
    wake_next();
  }
  cache contexts;
  std::deque<work> todo;
  std::vector<cache::result> results;
  std::vector<sim::cycle_t> done_at;
  std::vector<icm::cq_context> got;

 private:
  void tick() override {
    contexts.service();
    for (auto w = todo.begin(); w != todo.end();) {
      icm::cq_context* c = nullptr;
      const auto r = contexts.lookup(w->number, c);
      if (r == cache::result::pending) {
        ++w;
        continue;
      }
      results.push_back(r);
      done_at.push_back(now());
      if (r == cache::result::hit) {
        got.push_back(*c);
        if (w->change) {
          ++c->producer;
          contexts.mark_dirty(w->number);
        }
        if (w->pin) contexts.pin(w->number);
      }
      w = todo.erase(w);
    }
  }
};

struct bench {
  explicit bench(const icm::context_cache_config& c, bool always = false, unsigned entries_log = 6)
      : base({always, 0}), clock("core", base, {1000, 1, 0}), memory(clock, 0x10000, 100), user(clock, c, map) {
    map.layout(icm::table::cqc) = {0x110800000, 64, entries_log};
    map.map(0x110800000, host, 0x1000);
    memory.attach(user.contexts.dma);
    user.contexts.announce(stats);
    for (std::uint32_t i = 0; i < 64; ++i) {
      icm::cq_context x{};
      x.cqn = i;
      x.producer = 1000 + i;
      std::memcpy(memory.at(host + 64 * i), &x, sizeof x);
    }
  }
  icm::cq_context in_memory(std::uint32_t n) {
    icm::cq_context x;
    std::memcpy(&x, memory.at(host + 64 * n), sizeof x);
    return x;
  }
  /// Between edges, as firmware does; also the first time.
  void run(unsigned cycles) {
    if (!started) sc_core::sc_start(500, sc_core::SC_PS);
    started = true;
    sc_core::sc_start(static_cast<double>(cycles), sc_core::SC_NS);
  }
  bool started = false;
  sim::timebase base;
  sim::clock_domain clock;
  sim::statistics stats;
  icm::icm_map map;
  rnic::bench::fake_memory memory;
  owner user;
};

TEST(context_cache, miss_is_a_read_and_then_it_hits) {
  bench b({4, 4, 2, 0, 2});
  b.run(1);
  b.user.ask(5);
  b.run(300);
  ASSERT_EQ(b.user.got.size(), 1u);
  EXPECT_EQ(b.user.got[0].producer, 1005u);
  ASSERT_EQ(b.memory.log.size(), 1u);
  EXPECT_EQ(b.memory.log[0].address, host + 5 * 64);
  EXPECT_EQ(b.memory.log[0].length, 64u);
  EXPECT_GE(b.user.done_at[0] - b.memory.log[0].at, 100u);
  b.user.ask(5);
  b.run(5);
  EXPECT_EQ(b.user.got.size(), 2u);
  EXPECT_EQ(b.memory.log.size(), 1u);
  EXPECT_EQ(b.user.contexts.counters().hits, 1u);
  EXPECT_EQ(b.user.contexts.counters().misses, 1u);
}

TEST(context_cache, asking_is_no_use) {
  bench b({4, 4, 4, 0, 2});
  b.run(1);
  for (std::uint32_t n : {1u, 2u, 3u, 4u, 2u, 3u, 4u}) {
    b.user.ask(n);
    b.run(300);
  }
  const std::uint64_t hits = b.user.contexts.counters().hits;
  icm::cq_context* c = nullptr;
  for (unsigned tries = 0; tries < 5; ++tries) {
    ASSERT_EQ(b.user.contexts.ask(1, c), cache::result::hit);
    EXPECT_EQ(c->producer, 1001u);
  }
  EXPECT_EQ(b.user.contexts.counters().hits, hits);
  b.user.ask(5);  // takes the place of 1, which nobody has used
  b.run(300);
  EXPECT_EQ(b.user.contexts.peek(1), nullptr);
  ASSERT_EQ(b.user.contexts.ask(2, c), cache::result::hit);
  b.user.contexts.use(2);
  EXPECT_EQ(b.user.contexts.counters().hits, hits + 1);
  b.user.ask(6);  // 2 was used since: 3 has to go
  b.run(300);
  EXPECT_NE(b.user.contexts.peek(2), nullptr);
  EXPECT_EQ(b.user.contexts.peek(3), nullptr);
}

TEST(context_cache, least_recently_used_is_replaced) {
  bench b({4, 4, 4, 0, 2});
  b.run(1);
  for (std::uint32_t n : {1u, 2u, 3u, 4u, 1u, 5u}) {  // 5 replaces 2
    b.user.ask(n);
    b.run(300);
  }
  EXPECT_EQ(b.memory.reads(), 5u);
  for (std::uint32_t n : {1u, 3u, 4u, 5u}) b.user.ask(n);
  b.run(300);
  EXPECT_EQ(b.memory.reads(), 5u);
  b.user.ask(2);
  b.run(300);
  EXPECT_EQ(b.memory.reads(), 6u);
  EXPECT_EQ(b.memory.writes(), 0u);
}

/// One that was fetched and not asked for yet stays, though the other was used since: else who fetched it would fetch
/// it again, and so on.
TEST(context_cache, what_nobody_has_seen_yet_is_not_replaced) {
  bench b({2, 2, 2, 0, 2});
  b.run(1);
  b.user.ask(1);
  b.run(300);
  icm::cq_context* c = nullptr;
  b.clock.as_in_tick([&] { EXPECT_EQ(b.user.contexts.lookup(2, c), cache::result::pending); });
  b.run(300);
  b.user.ask(1);
  b.run(10);
  EXPECT_EQ(b.user.contexts.counters().hits, 1u);
  b.user.ask(3);
  b.run(300);
  EXPECT_EQ(b.user.contexts.peek(1), nullptr);
  EXPECT_NE(b.user.contexts.peek(2), nullptr);
  EXPECT_NE(b.user.contexts.peek(3), nullptr);
}

/// Of two ways one is left free by who may wait long: a set with a pinned one is crowded for all others.
TEST(context_cache, a_set_is_crowded_when_one_way_is_left) {
  bench b({2, 2, 2, 0, 2});
  b.run(1);
  b.user.ask(1);
  b.run(300);
  EXPECT_FALSE(b.user.contexts.crowded(2));
  b.user.contexts.pin(1);
  EXPECT_TRUE(b.user.contexts.crowded(2));
  EXPECT_FALSE(b.user.contexts.crowded(1)) << "it has its way";
  b.user.contexts.unpin(1);
  EXPECT_FALSE(b.user.contexts.crowded(2));
  icm::cq_context* c = nullptr;
  b.clock.as_in_tick([&] { EXPECT_EQ(b.user.contexts.lookup(3, c), cache::result::pending); });
  EXPECT_TRUE(b.user.contexts.crowded(2)) << "one that is being filled stays, too";
}

TEST(context_cache, dirty_entry_is_written_back_and_read_again) {
  bench b({1, 1, 4, 0, 1});
  b.run(1);
  b.user.ask(7, true);
  b.run(300);
  EXPECT_EQ(b.in_memory(7).producer, 1007u);
  b.user.ask(8, true);
  b.run(300);
  EXPECT_EQ(b.in_memory(7).producer, 1008u);
  b.user.ask(7);
  b.run(300);
  EXPECT_EQ(b.user.got.back().producer, 1008u);
  EXPECT_EQ(b.user.contexts.counters().replaced_dirty, 2u);
}

TEST(context_cache, pinned_entry_stays) {
  bench b({2, 2, 4, 0, 1});
  b.run(1);
  b.user.ask(1, true, true);
  b.run(300);
  b.user.ask(2, false, true);
  b.run(300);
  b.user.ask(3);
  b.run(1000);
  EXPECT_EQ(b.user.got.size(), 2u);
  EXPECT_EQ(b.user.contexts.counters().stalls, 1u);
  b.user.contexts.unpin(2);
  b.run(300);
  ASSERT_EQ(b.user.got.size(), 3u);
  EXPECT_EQ(b.user.got[2].cqn, 3u);
  EXPECT_TRUE(b.user.contexts.on_chip(1));
  EXPECT_FALSE(b.user.contexts.on_chip(2));
}

TEST(context_cache, fills_under_way_are_bounded) {
  bench b({16, 4, 2, 0, 1});
  b.run(1);
  for (std::uint32_t n = 0; n < 6; ++n) b.user.ask(n);
  b.run(90);
  EXPECT_EQ(b.memory.reads(), 2u);
  EXPECT_EQ(b.stats.value("cache.full_cycles"), 0u) << "none has come free";
  b.run(1000);
  EXPECT_EQ(b.memory.reads(), 6u);
  EXPECT_EQ(b.user.got.size(), 6u);
  // A read is asked for a cycle before memory sees it. The other one is under way until the last context but one is
  // there.
  std::uint64_t both = 0;
  for (unsigned i = 1; i < 6; ++i) both += b.user.done_at[i - 1] - (b.memory.log[i].at - 1);
  EXPECT_EQ(b.stats.value("cache.full_cycles"), both);
}

TEST(context_cache, one_of_two_places_is_not_all) {
  bench b({16, 4, 2, 0, 1});
  b.run(1);
  for (std::uint32_t n = 0; n < 4; ++n) {
    b.user.ask(n);
    b.run(300);
  }
  EXPECT_EQ(b.user.got.size(), 4u);
  EXPECT_EQ(b.stats.value("cache.full_cycles"), 0u);
}

TEST(context_cache, refused_when_not_mapped_or_unreadable) {
  bench b({16, 4, 2, 0, 1}, false, 16);
  b.map.map(0x110801000, 0xfff000, 0x1000);  // beyond the memory
  b.run(1);
  b.user.ask(64);    // second page: DMA fails
  b.user.ask(1000);  // not mapped
  b.run(300);
  ASSERT_EQ(b.user.results.size(), 2u);
  EXPECT_EQ(b.user.results[0], cache::result::refused);
  EXPECT_EQ(b.user.results[1], cache::result::refused);
  EXPECT_FALSE(b.user.contexts.on_chip(64));
  EXPECT_EQ(b.user.contexts.counters().failed_fills, 1u);
}

TEST(context_cache, flush_writes_back_and_drop_does_not) {
  bench b({16, 4, 2, 0, 2});
  b.run(1);
  b.user.ask(1, true);
  b.user.ask(2, true);
  b.run(300);
  EXPECT_TRUE(b.user.contexts.busy(1));
  b.clock.as_in_tick([&b] { b.user.contexts.flush(1); });
  b.user.contexts.drop(2);
  EXPECT_TRUE(b.user.contexts.busy(1));
  EXPECT_FALSE(b.user.contexts.busy(2));
  b.run(50);
  EXPECT_FALSE(b.user.contexts.busy(1));
  EXPECT_EQ(b.in_memory(1).producer, 1002u);
  EXPECT_EQ(b.in_memory(2).producer, 1002u);
  b.user.ask(2);
  b.run(300);
  EXPECT_EQ(b.user.got.back().producer, 1002u);
}

TEST(context_cache, dropped_fill_is_not_used) {
  bench b({16, 4, 4, 0, 2});
  b.run(1);
  b.user.ask(3);
  b.run(50);
  b.user.contexts.drop(3);
  b.run(1);
  icm::cq_context changed = b.in_memory(3);
  changed.producer = 77;
  b.user.contexts.drop(3);
  std::memcpy(b.memory.at(host + 3 * 64), &changed, sizeof changed);
  b.run(600);
  ASSERT_EQ(b.user.got.size(), 1u);
  EXPECT_EQ(b.user.got[0].producer, 77u);
  EXPECT_GE(b.memory.reads(), 2u);
}

/// Who waits for it asks again in the next cycle, whatever else the owner does: with one fill at a time that is a
/// stall.
TEST(context_cache, who_waits_for_a_dropped_fill_asks_again) {
  bench b({16, 4, 1, 0, 2});
  b.run(1);
  b.user.ask(3);
  b.run(50);
  EXPECT_EQ(b.user.contexts.counters().stalls, 0u);
  b.user.contexts.drop(3);
  b.run(1);
  EXPECT_EQ(b.user.contexts.counters().stalls, 1u);
  b.run(600);
  EXPECT_EQ(b.user.got.size(), 1u);
}

TEST(context_cache, numbers_wrap_at_the_table) {
  bench b({16, 4, 4, 0, 2});
  b.run(1);
  b.user.ask(64 + 9);
  b.run(300);
  EXPECT_EQ(b.user.got.at(0).cqn, 9u);
  EXPECT_TRUE(b.user.contexts.on_chip(9));
}

/// The observable record of a mixed load, for both ways of ticking.
std::vector<std::uint64_t> record(bool always) {
  bench b({4, 2, 2, 3, 1}, always);
  b.run(1);
  for (std::uint32_t n = 0; n < 40; ++n) {
    b.user.ask(n * 7 % 13, n % 3 == 0);
    b.run(1 + n % 5 * 40);
  }
  b.run(3000);
  std::vector<std::uint64_t> r(b.user.done_at.begin(), b.user.done_at.end());
  for (const auto& s : b.memory.log) r.insert(r.end(), {s.at, s.address});
  const auto& c = b.user.contexts.counters();
  r.insert(r.end(), {c.hits, c.misses, c.replaced_dirty, c.stalls, b.stats.value("cache.full_cycles")});
  return r;
}
std::uint64_t digest(const std::vector<std::uint64_t>& v) {
  std::uint64_t h = 14695981039346656037u;
  for (const std::uint64_t x : v) h = (h ^ x) * 1099511628211u;
  return h;
}

TEST(context_cache, sleeping_is_invisible) {
  EXPECT_EQ(rnic::bench::in_child([] { return digest(record(false)); }),
            rnic::bench::in_child([] { return digest(record(true)); }));
}
}  // namespace
