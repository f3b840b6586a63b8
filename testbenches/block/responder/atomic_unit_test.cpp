// SPDX-License-Identifier: Apache-2.0
// The atomic unit by itself: literal cycles idle, back to back, stalled by each neighbour and full; order of a lock;
// jobs that are given up.
#include "model/transport/responder/atomic_unit.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"
#include "testbenches/bench/child.h"

namespace rnic::transport::test {
namespace {

using cycle = sim::cycle_t;
using cycles = std::vector<cycle>;

constexpr unsigned read_cycles = 100, write_cycles = 20, lock_cycles = 26;
/// From a job's hand-over to its request of memory, as that sees it.
constexpr cycle to_memory = 2;
/// From memory's answer to the request of the write, and from its notice to the outcome, as both are seen.
constexpr cycle to_write = 1 + lock_cycles + 1, to_outcome = 2;
/// From the start of a job to that of the next one of its lock.
constexpr cycle one_operation = 1 + read_cycles + to_write + write_cycles + 1;

/// The READ generator, as many jobs as the test says, and host memory.
struct world : sim::clocked_block {
  explicit world(sim::clock_domain& d) : clocked_block("world", d) {}

  sim::fifo_out<atomic_job> job{*this};
  sim::fifo_in<atomic_outcome> outcome{*this};
  sim::fifo_in<pcie::dma_request> read{*this}, write{*this};
  sim::fifo_out<pcie::dma_response> read_done{*this}, written{*this};

  struct start {
    cycle at;
    atomic_job job;
  };
  std::deque<start> starts;
  unsigned every = 1;  ///< memory takes a request in one of so many cycles
  cycle reads_from = 0, writes_from = 0, outcomes_from = 0;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(1 << 16);

  cycles handed;
  std::vector<std::pair<cycle, std::uint64_t>> reads, writes;  ///< addresses
  cycles answered, noticed;
  std::vector<std::pair<cycle, atomic_outcome>> outcomes;

 private:
  using due = std::pair<cycle, pcie::dma_response>;
  std::deque<due> reads_, writes_;

  void tick() override {
    wake_next();
    if (!starts.empty() && starts.front().at <= now() && job.claim()) {
      handed.push_back(now());
      job.push(starts.front().job);
      starts.pop_front();
    }
    if (now() >= outcomes_from && outcome.can_pop()) outcomes.emplace_back(now(), outcome.pop());
    if (now() >= reads_from && now() % every == 0 && read.can_pop()) {
      const pcie::dma_request r = read.pop();
      const bool inside = r.address + r.length <= memory.size();
      if (inside) std::memcpy(r.destination, memory.data() + r.address, r.length);
      reads.emplace_back(now(), r.address);
      const pcie::dma_status status = inside ? pcie::dma_status::ok : pcie::dma_status::unsupported_request;
      reads_.push_back({now() + read_cycles, {r.tag, status}});
    }
    if (now() >= writes_from && now() % every == 0 && write.can_pop()) {
      const pcie::dma_request r = write.pop();
      std::memcpy(memory.data() + r.address, r.bytes.data(), r.length);
      writes.emplace_back(now(), r.address);
      writes_.push_back({now() + write_cycles, {r.tag, pcie::dma_status::ok}});
    }
    answer(reads_, read_done, answered);
    answer(writes_, written, noticed);
  }
  void answer(std::deque<due>& from, sim::fifo_out<pcie::dma_response>& to, cycles& when) const {
    if (from.empty() || from.front().first > now() || !to.claim()) return;
    when.push_back(now());
    to.push(from.front().second);
    from.pop_front();
  }
};

atomic_unit_config many_locks(unsigned in_flight) {
  atomic_unit_config c;
  c.in_flight = in_flight;
  c.lock_buckets = 4096;
  return c;
}

/// 1 GHz: a cycle is 1 ns.
struct rig {
  explicit rig(const atomic_unit_config& c = {}, const sim::timebase::options& o = {})
      : base(o), core("core", base, {1000, 1, 0}), dut("atomic_unit", core, c, spans, stats), w(core) {
    connect(w.job, jobs, dut.job_in);
    connect(dut.outcome_out, outcomes, w.outcome);
    connect(dut.dma_read.request, reads, w.read);
    connect(w.read_done, reads_done, dut.dma_read.response);
    connect(dut.dma_write.request, writes, w.write);
    connect(w.written, writes_done, dut.dma_write.response);
    w.wake_at(1);
  }
  template <class T>
  static void connect(sim::fifo_out<T>& from, sim::fifo<T>& by, sim::fifo_in<T>& to) {
    from.bind(by);
    to.bind(by);
  }
  /// Fetch and add of `value`, from cycle `at` on, behind those before it.
  void add(std::uint16_t number, std::uint64_t address, std::uint64_t value = 1, cycle at = 10) {
    atomic_job j;
    j.job = number;
    j.address = address;
    j.operation.swap_add = value;
    w.starts.push_back({at, j});
  }
  void abandon(std::uint16_t number, cycle at) {
    atomic_job j;
    j.what = atomic_job::kind::abandon;
    j.job = number;
    w.starts.push_back({at, j});
  }
  void run(unsigned ns) { sc_core::sc_start(static_cast<double>(ns), sc_core::SC_NS); }
  std::vector<unsigned> order() const {
    std::vector<unsigned> all;
    for (const auto& [at, o] : w.outcomes) all.push_back(o.job);
    return all;
  }
  std::uint64_t count(const std::string& name) const { return stats.value("atomic_unit." + name); }
  const sim::server& engine(unsigned i = 0) const { return *core.servers()[i]; }
  std::map<std::string, std::uint64_t> blocked(unsigned i = 0) const {
    std::map<std::string, std::uint64_t> all;
    for (const sim::server::hold_up& h : engine(i).blocked_cycles()) all[h.by] = h.cycles;
    return all;
  }

  sim::timebase base;
  sim::clock_domain core;
  sim::span_recorder spans;
  sim::statistics stats;
  atomic_unit dut;
  world w;
  sim::fifo<atomic_job> jobs{"jobs", core, 2};
  sim::fifo<atomic_outcome> outcomes{"outcomes", core, 2};
  sim::fifo<pcie::dma_request> reads{"reads", core, 2}, writes{"writes", core, 2};
  sim::fifo<pcie::dma_response> reads_done{"reads_done", core, 8}, writes_done{"writes_done", core, 8};
};

// ---------------------------------------------------------------- literal cycles

TEST(atomic_unit, one_job_alone_takes_a_cycle_in_and_one_out) {
  rig r;
  r.w.memory[0x100] = 7;
  r.add(3, 0x100, 5);
  r.run(300);
  ASSERT_EQ(r.w.outcomes.size(), 1u);
  EXPECT_EQ(r.w.reads[0].first - r.w.handed[0], to_memory);
  EXPECT_EQ(r.w.writes[0].first - r.w.answered[0], to_write);
  EXPECT_EQ(r.w.outcomes[0].first - r.w.noticed[0], to_outcome);
  EXPECT_EQ(r.w.outcomes[0].second.job, 3u);
  EXPECT_TRUE(r.w.outcomes[0].second.executed);
  EXPECT_EQ(r.w.outcomes[0].second.original, 7u);
  EXPECT_EQ(r.w.memory[0x100], 12u);
  EXPECT_EQ(r.engine().operations(), 1u);
  EXPECT_EQ(r.engine().busy_cycles(), one_operation);
  EXPECT_EQ(r.count("executed"), 1u);
  EXPECT_TRUE(r.blocked().empty());
}

/// The next one starts in the cycle in which the lock is free.
TEST(atomic_unit, jobs_of_a_lock_follow_each_other_without_a_gap) {
  rig r;
  for (std::uint16_t n = 0; n < 5; ++n) r.add(n, 0x100);
  r.run(1000);
  ASSERT_EQ(r.w.outcomes.size(), 5u);
  for (unsigned i = 1; i < 5; ++i) {
    EXPECT_EQ(r.w.reads[i].first - r.w.reads[i - 1].first, one_operation) << i;
    EXPECT_EQ(r.w.outcomes[i].second.original, i);
  }
  EXPECT_EQ(r.order(), (std::vector<unsigned>{0, 1, 2, 3, 4}));
  EXPECT_EQ(r.engine().busy_cycles(), 5 * one_operation);
  EXPECT_EQ(r.count("lock_waits"), 4u);
  EXPECT_TRUE(r.blocked().empty()) << "the one engine is busy all the time";
}

/// Four engines: one starts in a cycle, the fifth when the first has ended.
TEST(atomic_unit, jobs_of_other_locks_start_one_a_cycle) {
  rig r(many_locks(4));
  for (std::uint16_t n = 0; n < 8; ++n) r.add(n, 0x100 + 8 * n);
  r.run(1000);
  ASSERT_EQ(r.w.outcomes.size(), 8u);
  for (unsigned i = 1; i < 8; ++i)
    EXPECT_EQ(r.w.reads[i].first - r.w.reads[i - 1].first, i == 4 ? one_operation - 3 : 1) << i;
  for (unsigned i = 1; i < 4; ++i) EXPECT_EQ(r.w.outcomes[i].first - r.w.outcomes[i - 1].first, 1u);
  EXPECT_EQ(r.count("lock_waits"), 0u);
}

/// 0, 1 and 4 are of one lock, 2 and 3 of another: 2 does not wait for 1, and 3 not for 4.
TEST(atomic_unit, the_oldest_whose_lock_is_free_starts) {
  rig r(many_locks(3));
  for (const auto& [n, at] :
       {std::pair<std::uint16_t, std::uint64_t>{0, 0x100}, {1, 0x100}, {2, 0x200}, {3, 0x200}, {4, 0x100}})
    r.add(n, at);
  r.run(1000);
  ASSERT_EQ(r.w.reads.size(), 5u);
  const std::vector<std::uint64_t> addresses{0x100, 0x200, 0x100, 0x200, 0x100};
  for (unsigned i = 0; i < 5; ++i) EXPECT_EQ(r.w.reads[i].second, addresses[i]) << i;
  EXPECT_EQ(r.w.reads[1].first - r.w.reads[0].first, 2u) << "handed over two cycles later";
  EXPECT_EQ(r.w.reads[2].first - r.w.reads[0].first, one_operation);
  EXPECT_EQ(r.w.reads[3].first - r.w.reads[1].first, one_operation);
  EXPECT_EQ(r.w.reads[4].first - r.w.reads[2].first, one_operation);
  EXPECT_EQ(r.order(), (std::vector<unsigned>{0, 2, 1, 3, 4}));
  EXPECT_EQ(r.w.memory[0x100], 3u);
  EXPECT_EQ(r.w.memory[0x200], 2u);
  EXPECT_EQ(r.count("lock_waits"), 3u);
  // 1 is there at 12 and has the second engine in front of it until 2 starts there at 13; then the third one, from 14
  // until 0 has ended at 161, from 162, with 3, until 2 has ended at 163, and 4 from 164 until 1 has ended at 311.
  EXPECT_EQ(r.blocked(1).at("lock"), 1u);
  EXPECT_EQ(r.blocked(2).at("lock"), 161u - 14 + 163 - 162 + 311 - 164);
}

/// One lock or the whole unit: the value one bit more takes two words apart.
TEST(atomic_unit, locks_are_chosen_by_the_low_bits_of_the_address) {
  const auto apart = [](unsigned locks) {
    return rnic::bench::in_child([locks] {
      atomic_unit_config c = many_locks(2);
      c.lock_buckets = locks;
      rig r(c);
      r.add(0, 0x100);
      r.add(1, 0x108);
      r.run(600);
      return r.w.reads.at(1).first - r.w.reads.at(0).first;
    });
  };
  EXPECT_EQ(apart(8), one_operation);
  EXPECT_EQ(apart(16), 1u);
}

// ---------------------------------------------------------------- stalled by each neighbour

/// The channel has two places, and a third one has the request that memory takes in the cycle.
TEST(atomic_unit, memory_that_takes_no_reads_holds_up_those_that_have_none) {
  rig r(many_locks(4));
  r.w.reads_from = 60;
  for (std::uint16_t n = 0; n < 4; ++n) r.add(n, 0x100 + 8 * n);
  r.run(600);
  ASSERT_EQ(r.w.reads.size(), 4u);
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(r.w.reads[i].first, 60u + i);
  // 2 is there at 13; the place that comes free at 60 is one at 61.
  EXPECT_EQ(r.blocked(2).at("memory"), 61u - 13);
  EXPECT_EQ(r.blocked(3).count("memory"), 0u) << "3 stands behind it";
  EXPECT_EQ(r.w.outcomes.size(), 4u);
}

TEST(atomic_unit, memory_that_takes_no_writes_keeps_locks_taken) {
  rig r(many_locks(4));
  r.w.writes_from = 300;
  for (std::uint16_t n = 0; n < 4; ++n) r.add(n, 0x100 + 8 * n);
  r.add(4, 0x100);
  r.run(1000);
  ASSERT_EQ(r.w.writes.size(), 5u);
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(r.w.writes[i].first, 300u + i);
  EXPECT_EQ(r.w.reads[4].first - r.w.noticed[0], to_memory) << "in the cycle of the notice";
  EXPECT_EQ(r.w.memory[0x100], 2u);
}

/// Two outcomes in the channel; the others wait with their engines.
TEST(atomic_unit, outcomes_that_nobody_takes_keep_engines) {
  rig r(many_locks(4));
  r.w.outcomes_from = 500;
  for (std::uint16_t n = 0; n < 5; ++n) r.add(n, 0x100 + 8 * n);
  r.run(1000);
  ASSERT_EQ(r.w.outcomes.size(), 5u);
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(r.w.outcomes[i].first, 500u + i);
  EXPECT_EQ(r.w.reads[4].first - r.w.reads[0].first, one_operation) << "the first engine was free in time";
  EXPECT_EQ(r.engine(3).busy_cycles(), 502u - 14) << "its outcome is pushed in the cycle after the second was taken";
}

// ---------------------------------------------------------------- full

/// All jobs for which there are places are taken as fast as they come, whatever they wait for.
TEST(atomic_unit, takes_a_job_a_cycle_until_all_places_are_taken) {
  atomic_unit_config c;
  c.waiting = 5;
  rig r(c);
  r.w.reads_from = 100;
  for (std::uint16_t n = 0; n < 6; ++n) r.add(n, 0x100);
  r.run(2000);
  EXPECT_EQ(r.w.handed, (cycles{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(r.order(), (std::vector<unsigned>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(r.w.memory[0x100], 6u);
}

// ---------------------------------------------------------------- given up, failed

/// What waits ends at once: in and out.
TEST(atomic_unit, an_abandoned_job_that_waits_ends_at_once) {
  rig r;
  for (std::uint16_t n = 0; n < 3; ++n) r.add(n, 0x100);
  r.abandon(1, 40);
  r.run(600);
  ASSERT_EQ(r.w.outcomes.size(), 3u);
  EXPECT_EQ(r.order(), (std::vector<unsigned>{1, 0, 2}));
  EXPECT_EQ(r.w.outcomes[0].first - r.w.handed[3], 2u);
  EXPECT_FALSE(r.w.outcomes[0].second.executed);
  EXPECT_EQ(r.w.reads[1].first - r.w.reads[0].first, one_operation) << "the lock passes to the one behind it";
  EXPECT_EQ(r.w.memory[0x100], 2u);
  EXPECT_EQ(r.count("abandoned"), 1u);
  EXPECT_EQ(r.count("executed"), 2u);
}

struct abandoned_case {
  cycle at;       ///< word is given
  bool executed;  ///< all the same
  cycle outcome;  ///< is there
};
/// Handed over at 10: the operand is there at 113, the write is asked for at 139, the outcome is there at 162.
class atomic_unit_abandons : public testing::TestWithParam<abandoned_case> {};
TEST_P(atomic_unit_abandons, what_has_not_asked_for_its_write) {
  const auto [at, executed, outcome] = GetParam();
  rig r;
  r.add(0, 0x100);
  r.abandon(0, at);
  r.run(400);
  ASSERT_EQ(r.w.outcomes.size(), 1u);
  EXPECT_EQ(r.w.outcomes[0].second.executed, executed);
  EXPECT_EQ(r.w.outcomes[0].first, outcome);
  EXPECT_EQ(r.w.memory[0x100], executed ? 1u : 0u);
  EXPECT_EQ(r.engine().busy_cycles(), outcome - 1 - 11);
}
INSTANTIATE_TEST_SUITE_P(at, atomic_unit_abandons,
                         testing::Values(abandoned_case{11, false, 114}, abandoned_case{111, false, 114},
                                         abandoned_case{112, false, 114}, abandoned_case{113, false, 115},
                                         abandoned_case{138, false, 140}, abandoned_case{139, true, 162},
                                         abandoned_case{160, true, 162}, abandoned_case{300, true, 162}));

/// A number is given again; word of its last job comes too late for that one, and in front of the new one.
TEST(atomic_unit, late_word_is_nobodys) {
  rig r;
  r.add(0, 0x100);
  r.abandon(0, 161);
  r.add(0, 0x100, 1, 163);
  r.run(600);
  ASSERT_EQ(r.w.outcomes.size(), 2u);
  EXPECT_TRUE(r.w.outcomes[0].second.executed);
  EXPECT_TRUE(r.w.outcomes[1].second.executed);
  EXPECT_EQ(r.w.memory[0x100], 2u);
  EXPECT_EQ(r.count("abandoned"), 0u);
}

TEST(atomic_unit, memory_that_cannot_be_read_is_not_written) {
  rig r;
  r.add(0, 0x7000000);
  r.add(1, 0x100);
  r.run(600);
  ASSERT_EQ(r.w.outcomes.size(), 2u);
  EXPECT_FALSE(r.w.outcomes[0].second.executed);
  EXPECT_EQ(r.w.outcomes[0].first - r.w.answered[0], to_outcome);
  EXPECT_EQ(r.w.reads[1].first - r.w.answered[0], to_memory) << "in the cycle of the outcome";
  EXPECT_TRUE(r.w.outcomes[1].second.executed);
  EXPECT_EQ(r.w.writes.size(), 1u);
  EXPECT_EQ(r.count("failed"), 1u);
}

// ---------------------------------------------------------------- however blocks sleep

/// 40 jobs on few words, never more than the places there are: what was there, and the cycles, as text.
std::string history_of(unsigned engines, unsigned words, unsigned every, const sim::timebase::options& o) {
  atomic_unit_config c = many_locks(engines);
  c.waiting = 3;
  rig r(c, o);
  r.w.every = every;
  std::uint64_t seed = 7;
  std::uint16_t next = 0;
  while (r.w.outcomes.size() < 40) {
    while (next < 40 && next - r.w.outcomes.size() < c.places()) {
      seed = seed * 6364136223846793005 + 1442695040888963407;
      r.add(next, 0x100 + (seed >> 40) % words * 8, 1 + next);
      if ((seed >> 50) % 4 == 0) r.abandon(next, 10);
      ++next;
    }
    r.run(50);
  }
  std::string history;
  std::uint64_t sum = 0, expected = 0;
  for (const auto& [at, x] : r.w.outcomes) {
    history += std::to_string(at) + (x.executed ? " " : " not ");
    expected += x.executed ? 1u + x.job : 0;
  }
  for (unsigned i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, r.w.memory.data() + 0x100 + 8 * std::size_t{i}, sizeof word);
    sum += word;
  }
  for (unsigned i = 0; i < engines; ++i)
    for (const auto& [by, n] : r.blocked(i)) history += by + " " + std::to_string(n) + " ";
  return history + (sum == expected ? "right" : "wrong");
}

class atomic_unit_sweep : public testing::TestWithParam<std::tuple<unsigned, unsigned, unsigned>> {};
TEST_P(atomic_unit_sweep, every_job_is_executed_once_or_not_at_all) {
  const auto [engines, words, every] = GetParam();
  const auto run = [engines = engines, words = words, every = every](const sim::timebase::options& o) {
    return rnic::bench::in_child([&] { return history_of(engines, words, every, o); });
  };
  const std::string history = run({});
  EXPECT_EQ(history.substr(history.size() - 5), "right") << history;
  sim::timebase::options awake, shuffled;
  awake.always_tick = true;
  shuffled.shuffle_seed = 7;
  EXPECT_EQ(run(awake), history);
  EXPECT_EQ(run(shuffled), history);
}
INSTANTIATE_TEST_SUITE_P(all, atomic_unit_sweep,
                         testing::Combine(testing::Values(1u, 2u, 8u), testing::Values(1u, 3u, 32u),
                                          testing::Values(1u, 7u)));

}  // namespace
}  // namespace rnic::transport::test
