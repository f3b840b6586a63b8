// SPDX-License-Identifier: Apache-2.0
// Receive fetch alone: literal cycles idle, back to back and stalled by each neighbour; length by idle time by
// back-pressure; descriptors across a page, doorbell records, refusals.
#include "model/transport/responder/receive_fetch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <systemc>
#include <tuple>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"
#include "testbenches/bench/child.h"

namespace {

using namespace rnic;
using cycle = sim::cycle_t;
using part = transport::receive_place::part;

constexpr std::uint64_t buffer = 0x10000, records = 0x2000;
constexpr std::uint16_t owner = 9;

/// The responder, translation and memory in one.
struct world : sim::clocked_block {
  world(sim::clock_domain& d, const transport::receive_memory& m) : clocked_block("world", d), read_from(m) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = byte_at(i);
  }
  static std::uint8_t byte_at(std::size_t i) { return static_cast<std::uint8_t>(i * 7 + (i >> 8)); }

  sim::fifo_out<transport::receive_job> job{*this};
  sim::fifo_in<transport::receive_fetch_result> result{*this};
  sim::fifo_in<pcie::dma_request> request{*this};
  sim::fifo_out<pcie::dma_response> response{*this};
  sim::fifo_in<icm::translate_request> address{*this};
  sim::fifo_out<icm::translate_response> translated{*this};

  struct start {
    unsigned idle;  ///< cycles in front of it
    transport::receive_job job;
  };
  struct end {
    cycle at;
    transport::receive_fetch_result result;
    bool whole;  ///< the receive memory has its bytes
  };
  const transport::receive_memory& read_from;
  std::deque<start> starts;  ///< each when its place has no job
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(0x20000);
  unsigned memory_cycles = 20, every = 1;  ///< takes an address, a read and a result in one of so many cycles
  unsigned misses_for = 0;                 ///< cycles of an address that has to be fetched; 0: none
  bool translates = true, reads = true, takes = true, maps = true, misses_once = false;

  std::vector<cycle> pushed, asked, read;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> places;  ///< that were read: address and length
  std::vector<end> ends;

 private:
  static bool same(const transport::receive_place& a, const transport::receive_place& b) {
    return a.in == b.in && a.number == b.number;
  }
  void tick() override {
    wake_next();
    begin();
    if (!reads_.empty() && reads_.front().first <= now() && response.claim()) {
      const pcie::dma_request& d = reads_.front().second;
      std::memcpy(d.destination, memory.data() + d.address, d.length);
      response.push({d.tag, d.function == owner ? pcie::dma_status::ok : pcie::dma_status::unsupported_request});
      reads_.pop_front();
    }
    if (!found_.empty() && found_.front().first <= now() && translated.claim()) {
      translated.push(found_.front().second);
      found_.pop_front();
    }
    if (now() % every != 0) return;
    if (translates && address.can_pop()) find(address.pop());
    if (reads && request.can_pop()) {
      read.push_back(now());
      places.emplace_back(request.front().address, request.front().length);
      reads_.emplace_back(now() + memory_cycles, request.pop());
    }
    if (takes && result.can_pop()) take(result.pop());
  }
  void begin() {
    if (starts.empty()) return;
    if (starts.front().idle != 0) {
      --starts.front().idle;
      return;
    }
    const transport::receive_place& place = starts.front().job.place;
    const auto there = [&](const transport::receive_job& j) { return same(j.place, place); };
    if (std::any_of(open_.begin(), open_.end(), there) || !job.claim()) return;
    pushed.push_back(now());
    open_.push_back(starts.front().job);
    job.push(starts.front().job);
    starts.pop_front();
  }
  void take(const transport::receive_fetch_result& r) {
    const auto of = std::find_if(open_.begin(), open_.end(),
                                 [&](const transport::receive_job& j) { return same(j.place, r.place); });
    ASSERT_NE(of, open_.end()) << "told of what was not asked for";
    const std::uint64_t from = of->mtt + of->at;
    ends.push_back({now(), r, std::memcmp(read_from.read(r.place), memory.data() + from, of->bytes) == 0});
    open_.erase(of);
  }
  void find(const icm::translate_request& t) {
    asked.push_back(now());
    icm::translate_response r;
    r.tag = t.tag;
    r.missed = misses_for != 0;
    if (t.what != icm::translate_request::kind::buffer || !maps) r.status = icm::translate_status::not_mapped;
    const std::uint64_t at = t.buffer_mtt + t.va, page = std::uint64_t{1} << t.log_page;
    const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(t.length, page - at % page));
    r.segments[r.count++] = {at, first};
    if (first < t.length) r.segments[r.count++] = {at + first, t.length - first};
    if (misses_for == 0 && translated.claim())
      translated.push(r);
    else
      found_.emplace_back(now() + misses_for, r);
    if (misses_once) misses_for = 0;
  }
  std::vector<transport::receive_job> open_;
  std::deque<std::pair<cycle, pcie::dma_request>> reads_;
  std::deque<std::pair<cycle, icm::translate_response>> found_;
};

struct rig {
  explicit rig(unsigned fetches = 16, bool always = false)
      : base({always, 0}), memory(transport::responder_config{}), dut("fetch", core, fetches, memory, stats) {
    w.job.bind(jobs);
    dut.job_in.bind(jobs);
    dut.result_out.bind(results);
    w.result.bind(results);
    dut.dma.request.bind(reads);
    w.request.bind(reads);
    w.response.bind(answers);
    dut.dma.response.bind(answers);
    dut.translate.request.bind(addresses);
    w.address.bind(addresses);
    w.translated.bind(translations);
    dut.translate.response.bind(translations);
    w.wake_at(1);
  }
  sim::timebase base;
  sim::clock_domain core{"core", base, sim::clock_period::from_khz(500'000)};
  sim::statistics stats;
  transport::receive_memory memory;
  transport::receive_fetch dut;
  world w{core, memory};
  sim::fifo<transport::receive_job> jobs{"jobs", core, 2};
  sim::fifo<transport::receive_fetch_result> results{"results", core, 2};
  sim::fifo<pcie::dma_request> reads{"reads", core, 2};
  sim::fifo<pcie::dma_response> answers{"answers", core, 4};
  sim::fifo<icm::translate_request> addresses{"addresses", core, 4};
  sim::fifo<icm::translate_response> translations{"translations", core, 4};

  void run(unsigned cycles) { sc_core::sc_start(2.0 * cycles, sc_core::SC_NS); }
  /// Descriptors of `in`, for place `number`.
  transport::receive_job& start(std::uint32_t number, std::uint64_t at, std::uint32_t bytes, unsigned idle = 0,
                                part in = part::own) {
    transport::receive_job j;
    j.place = {in, number};
    j.mtt = buffer;
    j.at = at;
    j.bytes = bytes;
    j.function = owner;
    w.starts.push_back({idle, j});
    return w.starts.back().job;
  }
  /// The doorbell record of a line.
  transport::receive_job& record(std::uint32_t line, unsigned idle = 0, part in = part::own_record) {
    transport::receive_job& j = start(line, records + 4 * line, transport::receive_memory::record_bytes, idle, in);
    j.mtt = 0;
    return j;
  }
  std::uint64_t count(const char* counter) { return stats.value(std::string("fetch.") + counter); }
};

using places = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

/// Accepted and asked for in the cycle in which it is seen (1), seen by translation in the next (2), whose answer is
/// seen and becomes a read (3) that memory sees (4) and answers after 20; that is seen (25) and told (26).
TEST(receive_fetch, descriptors_of_512_bytes) {
  rig r;
  r.start(5, 0x140, 512);
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 1u);
  const cycle t = r.w.pushed[0];
  EXPECT_EQ(r.w.asked[0] - t, 2u);
  EXPECT_EQ(r.w.read[0] - t, 4u);
  EXPECT_EQ(r.w.ends[0].at - t, 26u);
  const transport::receive_fetch_result& e = r.w.ends[0].result;
  EXPECT_TRUE(e.ok);
  EXPECT_TRUE(e.place.in == part::own);
  EXPECT_EQ(e.place.number, 5u);
  EXPECT_TRUE(r.w.ends[0].whole);
  EXPECT_EQ(r.w.places, (places{{buffer + 0x140, 512}}));
  EXPECT_EQ(r.memory.read({part::own, 5})[512], 0u) << "nothing behind it";
  EXPECT_EQ(r.memory.read({part::own, 4})[1023], 0u) << "nothing in front of it";
  EXPECT_EQ(r.count("fetches"), 1u);
  EXPECT_EQ(r.count("bytes"), 512u);
  EXPECT_EQ(r.count("records"), 0u);
}

/// Read in the cycle in which it is seen.
TEST(receive_fetch, a_record_needs_no_address) {
  rig r;
  r.record(3);
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 1u);
  EXPECT_TRUE(r.w.asked.empty());
  EXPECT_EQ(r.w.read[0] - r.w.pushed[0], 2u);
  EXPECT_EQ(r.w.ends[0].at - r.w.pushed[0], 24u);
  EXPECT_TRUE(r.w.ends[0].result.ok && r.w.ends[0].whole);
  EXPECT_EQ(r.w.places, (places{{records + 12, 4}}));
  EXPECT_EQ(r.count("records"), 1u);
  EXPECT_EQ(r.count("fetches") + r.count("bytes"), 0u);
}

/// Each part of the receive memory has places of its own.
TEST(receive_fetch, every_part_is_written_in_its_place) {
  rig r;
  std::uint64_t at = 0;
  for (const part in : {part::own, part::shared, part::taken}) r.start(2, at += 0x200, 64, 0, in);
  for (const part in : {part::own_record, part::shared_record}) r.record(2, 0, in).at += 8 * (at += 8);
  r.record(0, 0, part::error_record);
  r.run(200);
  ASSERT_EQ(r.w.ends.size(), 6u);
  for (const auto& e : r.w.ends) EXPECT_TRUE(e.result.ok && e.whole);
  for (unsigned i = 0; i != 64; ++i) {
    EXPECT_EQ(r.memory.read({part::own, 2})[i], world::byte_at(buffer + 0x200 + i));
    EXPECT_EQ(r.memory.read({part::shared, 2})[i], world::byte_at(buffer + 0x400 + i));
    EXPECT_EQ(r.memory.read({part::taken, 2})[i], world::byte_at(buffer + 0x600 + i));
  }
}

/// Jobs follow each other at one a cycle as long as nobody stands in their way.
TEST(receive_fetch, jobs_are_a_cycle_apart) {
  rig r;
  for (unsigned i = 0; i < 4; ++i) r.start(i, 0x100 * i, 256);
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 4u);
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_EQ(r.w.asked[i] - r.w.pushed[0], 2 + i);
    EXPECT_EQ(r.w.read[i] - r.w.pushed[0], 4 + i);
    EXPECT_EQ(r.w.ends[i].at - r.w.pushed[0], 26 + i);
    EXPECT_EQ(r.w.ends[i].result.place.number, i);
    EXPECT_TRUE(r.w.ends[i].whole);
  }
}

/// One address, two reads, a cycle apart; what is behind them waits that cycle.
TEST(receive_fetch, descriptors_across_a_page_are_two_requests) {
  rig r;
  r.start(0, 0xf80, 256);
  r.start(1, 0x100, 256);
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 2u);
  const cycle t = r.w.pushed[0];
  EXPECT_EQ(r.w.asked, (std::vector<cycle>{t + 2, t + 3}));
  EXPECT_EQ(r.w.read, (std::vector<cycle>{t + 4, t + 5, t + 6}));
  EXPECT_EQ(r.w.ends[0].at - t, 27u);
  EXPECT_EQ(r.w.ends[1].at - t, 28u);
  EXPECT_EQ(r.w.places, (places{{buffer + 0xf80, 128}, {buffer + 0x1000, 128}, {buffer + 0x100, 256}}));
  EXPECT_TRUE(r.w.ends[0].whole && r.w.ends[1].whole);
}

TEST(receive_fetch, a_miss_lets_the_others_pass) {
  rig r;
  r.w.misses_for = 30;
  r.w.misses_once = true;
  r.start(0, 0, 256);
  r.start(1, 0x100, 256);
  r.record(2);
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 3u);
  EXPECT_EQ(r.w.ends[0].result.place.number, 2u);
  EXPECT_EQ(r.w.ends[0].at - r.w.pushed[2], 24u);
  EXPECT_EQ(r.w.ends[1].result.place.number, 1u);
  EXPECT_EQ(r.w.ends[1].at - r.w.pushed[1], 26u);
  EXPECT_EQ(r.w.ends[2].at - r.w.pushed[0], 56u);
  EXPECT_EQ(r.count("translation_misses"), 1u);
}

/// Records go on.
TEST(receive_fetch, waits_while_translation_takes_nothing) {
  rig r;
  r.w.translates = false;
  for (unsigned i = 0; i < 6; ++i) r.start(i, 0x100 * i, 256);
  r.record(2);
  r.run(50);
  EXPECT_EQ(r.addresses.pushes(), 4u) << "full";
  ASSERT_EQ(r.w.ends.size(), 1u);
  EXPECT_EQ(r.w.ends[0].at - r.w.pushed[6], 24u);
  r.w.translates = true;
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 7u);
  for (unsigned i = 1; i < 6; ++i) EXPECT_EQ(r.w.asked[i] - r.w.asked[i - 1], 1u) << i;
  for (const auto& e : r.w.ends) EXPECT_TRUE(e.result.ok && e.whole);
}

TEST(receive_fetch, waits_while_memory_takes_no_read) {
  rig r;
  r.w.reads = false;
  for (unsigned i = 0; i < 4; ++i) r.start(i, 0xf80, 256);
  r.run(50);
  EXPECT_EQ(r.reads.pushes(), 2u) << "both of the first one";
  EXPECT_TRUE(r.w.ends.empty());
  r.w.reads = true;
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 4u);
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(r.w.read[i], r.w.read[0] + i) << i;
  for (const auto& e : r.w.ends) EXPECT_TRUE(e.result.ok && e.whole);
}

/// The first two are in front of memory when records come.
TEST(receive_fetch, descriptors_and_records_take_turns) {
  rig r;
  r.w.reads = false;
  for (unsigned i = 0; i < 4; ++i) r.start(i, 0x100 * i, 256);
  for (unsigned i = 0; i < 4; ++i) r.record(i);
  r.run(50);
  r.w.reads = true;
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 8u);
  std::string order;
  for (const auto& p : r.w.places) order += p.second == 4 ? 'r' : 'd';
  EXPECT_EQ(order, "ddrdrdrr");
}

/// Two results in the channel, two inside; those that have told have made room for two more.
TEST(receive_fetch, waits_while_nobody_takes_its_results) {
  rig r(4);
  r.w.takes = false;
  for (unsigned i = 0; i < 8; ++i) r.start(i, 0x100 * i, 256);
  r.run(150);
  EXPECT_EQ(r.results.pushes(), 2u);
  EXPECT_EQ(r.w.read.size(), 4u + 2);
  r.w.takes = true;
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 8u);
  for (const auto& e : r.w.ends) EXPECT_TRUE(e.result.ok && e.whole);
}

/// When the second of two jobs that come together has ended, in cycles behind the first one's.
cycle second_of_two(unsigned fetches) {
  return rnic::bench::in_child([fetches] {
    rig r(fetches);
    r.start(0, 0, 256);
    r.start(1, 0x100, 256);
    r.run(100);
    return r.w.ends.size() == 2 ? r.w.ends[1].at - r.w.ends[0].at : 0;
  });
}
/// With one under way, the second is accepted in the cycle in which the first is told of.
TEST(receive_fetch, as_many_are_under_way_as_there_are_places_for) {
  EXPECT_EQ(second_of_two(2), 1u);
  EXPECT_EQ(second_of_two(1), 25u);
}

TEST(receive_fetch, a_queue_that_is_not_mapped_fails_without_a_read) {
  rig r;
  r.w.maps = false;
  r.start(1, 0xf80, 256);
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 1u);
  EXPECT_FALSE(r.w.ends[0].result.ok);
  EXPECT_TRUE(r.w.read.empty());
  EXPECT_EQ(r.w.ends[0].at - r.w.pushed[0], 4u) << "told in the cycle of the answer";
  EXPECT_EQ(r.count("failed"), 1u);
}

/// A refusal and a record, a cycle later, take the DMA port from nobody.
TEST(receive_fetch, a_refusal_does_not_hold_up_a_record) {
  rig r;
  r.w.maps = false;
  r.start(1, 0, 256);
  r.record(2, 1);
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 2u);
  EXPECT_FALSE(r.w.ends[0].result.ok);
  EXPECT_TRUE(r.w.ends[1].result.ok);
  EXPECT_EQ(r.w.ends[1].at - r.w.pushed[1], 24u);
}

TEST(receive_fetch, what_memory_refuses_fails) {
  rig r;
  r.start(1, 0xf80, 256).function = owner + 1;
  r.record(1, 50).function = owner + 1;
  r.start(1, 0, 256, 50);
  r.run(200);
  ASSERT_EQ(r.w.ends.size(), 3u);
  EXPECT_FALSE(r.w.ends[0].result.ok);
  EXPECT_EQ(r.w.ends[0].at - r.w.pushed[0], 27u) << "behind both reads";
  EXPECT_FALSE(r.w.ends[1].result.ok);
  EXPECT_TRUE(r.w.ends[2].result.ok && r.w.ends[2].whole);
  EXPECT_EQ(r.count("failed"), 2u);
}

/// Length, idle cycles in front of each job, and in one of how many cycles a neighbour takes something.
class receive_fetch_load : public testing::TestWithParam<std::tuple<std::uint32_t, unsigned, unsigned>> {};

TEST_P(receive_fetch_load, every_job_ends_once_and_whole) {
  const auto [length, idle, every] = GetParam();
  rig r(4);
  r.w.every = every;
  constexpr unsigned many = 48;
  unsigned descriptors = 0;
  for (unsigned i = 0; i < many; ++i) {
    if (i % 3 == 2) {
      r.record(i % 5, idle);
      continue;
    }
    ++descriptors;
    r.start(i % 7, 64 * ((i * 37) % 96), length, idle);
  }
  r.run(many * (idle + 80 + 8 * every));
  ASSERT_EQ(r.w.ends.size(), many);
  for (const auto& e : r.w.ends) EXPECT_TRUE(e.result.ok && e.whole);
  EXPECT_EQ(r.count("fetches"), descriptors);
  EXPECT_EQ(r.count("bytes"), descriptors * length);
  EXPECT_EQ(r.count("records"), many - descriptors);
  EXPECT_EQ(r.count("failed"), 0u);
}

INSTANTIATE_TEST_SUITE_P(length_by_idle_by_back_pressure, receive_fetch_load,
                         testing::Combine(testing::Values(16u, 512u, 1024u), testing::Values(0u, 1u, 9u),
                                          testing::Values(1u, 3u, 40u)));

/// When what ended, under load with misses and refusals.
std::string results(bool always) {
  return rnic::bench::in_child([always] {
    rig r(3, always);
    r.w.every = 3;
    for (unsigned i = 0; i < 40; ++i) {
      const unsigned idle = (i * 7) % 30;
      transport::receive_job& j =
          i % 4 == 1 ? r.record(i % 3, idle) : r.start((i * 5) % 8, 64 * ((i * 23) % 96), 64 + 64 * (i % 9), idle);
      if (i % 11 == 0) j.function = owner + 1;
    }
    r.run(200);
    r.w.misses_for = 30;
    r.w.misses_once = true;
    r.run(4000);
    std::string seen = std::to_string(r.w.ends.size()) + " results:";
    for (const auto& e : r.w.ends)
      seen += ' ' + std::to_string(e.at) + '/' + std::to_string(e.result.place.number) + (e.result.ok ? "" : "-");
    return seen + ' ' + std::to_string(r.count("failed")) + ' ' + std::to_string(r.count("bytes"));
  });
}

TEST(receive_fetch, sleeping_is_invisible) {
  const std::string seen = results(false);
  EXPECT_EQ(seen.substr(0, 11), "40 results:");
  EXPECT_EQ(results(true), seen);
}

}  // namespace
