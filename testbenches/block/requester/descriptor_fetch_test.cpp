// SPDX-License-Identifier: Apache-2.0
// Descriptor fetch alone: literal cycles idle, back to back and stalled by each neighbour; length by idle time by
// back-pressure; jobs that another one takes the place of.
#include "model/transport/requester/descriptor_fetch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <systemc>
#include <tuple>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"
#include "testbenches/bench/child.h"

namespace {

using namespace rnic;
using cycle = sim::cycle_t;
using transport::descriptor_memory;

constexpr unsigned log_ring = 12;
constexpr std::uint64_t buffer = 0x10000, offset = 0x400;  // of the ring in the buffer
constexpr std::uint16_t owner = 9;

/// Processing units, translation and memory in one.
struct world : sim::clocked_block {
  explicit world(sim::clock_domain& d) : clocked_block("world", d) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = byte_at(i);
  }
  static std::uint8_t byte_at(std::size_t i) { return static_cast<std::uint8_t>(i * 7 + (i >> 8)); }

  sim::fifo_out<transport::descriptor_job> job{*this};
  sim::fifo_in<transport::descriptor_result> result{*this};
  sim::fifo_in<pcie::dma_request> request{*this};
  sim::fifo_out<pcie::dma_response> response{*this};
  sim::fifo_in<icm::translate_request> address{*this};
  sim::fifo_out<icm::translate_response> translated{*this};

  struct start {
    unsigned idle;  ///< cycles in front of it
    transport::descriptor_job job;
  };
  struct end {
    cycle at;
    transport::descriptor_result result;
  };
  std::deque<start> starts;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(0x40000);
  unsigned memory_cycles = 20, every = 1;  ///< takes an address, a read and a result in one of so many cycles
  unsigned misses_for = 0;                 ///< cycles of an address that has to be fetched; 0: none
  bool translates = true, reads = true, takes = true, maps = true, misses_once = false;
  pcie::dma_status status = pcie::dma_status::ok;

  std::vector<cycle> pushed, asked, read;
  std::vector<std::uint64_t> asked_for;                         ///< places in the queue
  std::vector<std::pair<std::uint64_t, std::uint32_t>> places;  ///< that were read: address and length
  std::vector<end> ends;

 private:
  void tick() override {
    wake_next();
    begin();
    if (!reads_.empty() && reads_.front().first <= now() && response.claim()) {
      const pcie::dma_request& d = reads_.front().second;
      std::memcpy(d.destination, memory.data() + d.address, d.length);
      response.push({d.tag, d.function == owner ? status : pcie::dma_status::unsupported_request});
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
    if (takes && result.can_pop()) ends.push_back({now(), result.pop()});
  }
  void begin() {
    if (starts.empty()) return;
    if (starts.front().idle != 0) {
      --starts.front().idle;
      return;
    }
    if (!job.claim()) return;
    pushed.push_back(now());
    job.push(starts.front().job);
    starts.pop_front();
  }
  void find(const icm::translate_request& t) {
    asked.push_back(now());
    asked_for.push_back(t.va);
    icm::translate_response r;
    r.tag = t.tag;
    r.missed = misses_for != 0;
    if (t.what != icm::translate_request::kind::buffer || !maps) r.status = icm::translate_status::not_mapped;
    const std::uint64_t at = t.buffer_mtt + t.va, page = std::uint64_t{1} << t.log_page;
    const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(t.length, page - at % page));
    r.segments[r.count++] = {at, first};
    if (first < t.length) r.segments[r.count++] = {at + first, t.length - first};
    if (misses_for == 0 && found_.empty() && translated.claim())
      translated.push(r);
    else
      found_.emplace_back(now() + misses_for, r);
    if (misses_once) misses_for = 0;
  }
  std::deque<std::pair<cycle, pcie::dma_request>> reads_;
  std::deque<std::pair<cycle, icm::translate_response>> found_;
};

struct rig {
  explicit rig(bool always = false) : base({always, 0}) {
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
  static constexpr unsigned units = 4;
  sim::timebase base;
  sim::clock_domain core{"core", base, sim::clock_period::from_khz(500'000)};
  sim::span_recorder spans;
  sim::statistics stats;
  descriptor_memory memory{units};
  transport::descriptor_fetch dut{"fetch", core, memory, spans, stats};
  world w{core};
  sim::fifo<transport::descriptor_job> jobs{"jobs", core, 2};
  sim::fifo<transport::descriptor_result> results{"results", core, 2};
  sim::fifo<pcie::dma_request> reads{"reads", core, 4};
  sim::fifo<pcie::dma_response> answers{"answers", core, 4};
  sim::fifo<icm::translate_request> addresses{"addresses", core, 4};
  sim::fifo<icm::translate_response> translations{"translations", core, 4};

  void run(unsigned cycles) { sc_core::sc_start(2.0 * cycles, sc_core::SC_NS); }
  transport::descriptor_job& start(unsigned unit, std::uint64_t at, std::uint32_t bytes, unsigned idle = 0,
                                   std::uint32_t place = 0) {
    transport::descriptor_job j;
    j.mtt = buffer;
    j.offset = offset;
    j.at = at;
    j.bytes = bytes;
    j.place = place;
    j.qpn = 0x50 + unit;
    j.generation = ++generation;
    j.function = owner;
    j.unit = static_cast<std::uint8_t>(unit);
    j.log_ring = log_ring;
    w.starts.push_back({idle, j});
    return w.starts.back().job;
  }
  /// Whether the unit's memory has from `place` on what the ring has from `at` on.
  bool has(unsigned unit, std::uint32_t place, std::uint64_t at, std::uint32_t bytes) const {
    for (std::uint32_t i = 0; i < bytes; ++i) {
      const std::uint64_t from = buffer + offset + ((at + i) & ((1u << log_ring) - 1));
      if (memory.read(unit)[place + i] != world::byte_at(from)) return false;
    }
    return true;
  }
  std::uint64_t count(const char* counter) { return stats.value(std::string("fetch.") + counter); }
  std::uint32_t generation = 0;
};

using places = std::vector<std::pair<std::uint64_t, std::uint32_t>>;
constexpr std::uint64_t ring = buffer + offset;

/// Accepted and asked for in the cycle in which it is seen (1), seen by translation in the next (2), whose answer is
/// seen and becomes a read (3) that memory sees (4) and answers after 20; that is seen (25) and told (26).
TEST(descriptor_fetch, one_read_of_256_bytes) {
  rig r;
  r.start(2, 0x140, 256, 0, 64);
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 1u);
  const cycle t = r.w.pushed[0];
  EXPECT_EQ(r.w.asked[0] - t, 2u);
  EXPECT_EQ(r.w.read[0] - t, 4u);
  EXPECT_EQ(r.w.ends[0].at - t, 26u);
  const transport::descriptor_result& e = r.w.ends[0].result;
  EXPECT_TRUE(e.ok);
  EXPECT_EQ(e.unit, 2u);
  EXPECT_EQ(e.qpn, 0x52u);
  EXPECT_EQ(e.generation, 1u);
  EXPECT_EQ(e.bytes, 256u);
  EXPECT_EQ(r.w.places, (places{{ring + 0x140, 256}}));
  EXPECT_TRUE(r.has(2, 64, 0x140, 256));
  EXPECT_EQ(r.memory.read(2)[63], 0u);
  EXPECT_EQ(r.memory.read(2)[64 + 256], 0u);
  EXPECT_EQ(r.count("fetches"), 1u);
  EXPECT_EQ(r.count("bytes"), 256u);
}

/// Units follow each other at a job a cycle as long as nobody stands in their way.
TEST(descriptor_fetch, jobs_of_four_units_are_a_cycle_apart) {
  rig r;
  for (unsigned i = 0; i < 4; ++i) r.start(i, 0x100 * i, 256);
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 4u);
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_EQ(r.w.asked[i] - r.w.pushed[0], 2 + i);
    EXPECT_EQ(r.w.read[i] - r.w.pushed[0], 4 + i);
    EXPECT_EQ(r.w.ends[i].at - r.w.pushed[0], 26 + i);
    EXPECT_EQ(r.w.ends[i].result.unit, i);
    EXPECT_TRUE(r.has(i, 0, 0x100 * i, 256));
  }
}

/// Two addresses, a cycle apart.
TEST(descriptor_fetch, a_read_over_the_end_of_the_ring_has_two_parts) {
  rig r;
  r.start(0, 0xf80, 256);
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 1u);
  EXPECT_EQ(r.w.asked, (std::vector<cycle>{r.w.pushed[0] + 2, r.w.pushed[0] + 3}));
  EXPECT_EQ(r.w.read, (std::vector<cycle>{r.w.pushed[0] + 4, r.w.pushed[0] + 5}));
  EXPECT_EQ(r.w.ends[0].at - r.w.pushed[0], 27u);
  EXPECT_EQ(r.w.places, (places{{ring + 0xf80, 128}, {ring, 128}}));
  EXPECT_TRUE(r.has(0, 0, 0xf80, 256));
}

/// One address, two reads, a cycle apart.
TEST(descriptor_fetch, a_read_across_a_page_is_two_requests) {
  rig r;
  r.start(0, 0xb80, 256);
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 1u);
  EXPECT_EQ(r.w.asked.size(), 1u);
  EXPECT_EQ(r.w.read, (std::vector<cycle>{r.w.pushed[0] + 4, r.w.pushed[0] + 5}));
  EXPECT_EQ(r.w.ends[0].at - r.w.pushed[0], 27u);
  EXPECT_EQ(r.w.places, (places{{ring + 0xb80, 128}, {ring + 0xc00, 128}}));
  EXPECT_TRUE(r.has(0, 0, 0xb80, 256));
}

/// Of two jobs with two parts each, the units take turns with the port of translation.
TEST(descriptor_fetch, units_take_turns_asking) {
  rig r;
  r.w.translates = false;
  for (unsigned i = 0; i < 4; ++i) r.start(i, 0xf80, 256);
  r.run(20);
  EXPECT_EQ(r.addresses.pushes(), 4u) << "full";
  r.w.translates = true;
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 4u);
  for (unsigned i = 1; i < 8; ++i) EXPECT_EQ(r.w.asked[i] - r.w.asked[i - 1], 1u) << i;
  for (unsigned i = 0; i < 8; ++i)
    EXPECT_EQ(r.w.asked_for[i], offset + (i < 4 ? 0xf80 : 0)) << "the ends of all are behind the beginnings of all";
  for (unsigned i = 0; i < 4; ++i) EXPECT_TRUE(r.has(i, 0, 0xf80, 256));
}

TEST(descriptor_fetch, a_miss_of_one_unit_lets_the_others_pass) {
  rig r;
  r.w.misses_for = 30;
  r.w.misses_once = true;
  r.start(0, 0, 256);
  r.start(1, 0x100, 256, 35);
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 2u);
  EXPECT_EQ(r.w.ends[0].result.unit, 0u);
  EXPECT_EQ(r.w.ends[0].at - r.w.pushed[0], 56u);
  EXPECT_EQ(r.w.ends[1].at - r.w.pushed[1], 26u);
  EXPECT_EQ(r.count("translation_misses"), 1u);
}

TEST(descriptor_fetch, waits_while_memory_takes_no_read) {
  rig r;
  r.w.reads = false;
  for (unsigned i = 0; i < 4; ++i) r.start(i, 0xb80, 256);
  r.run(50);
  EXPECT_EQ(r.reads.pushes(), 4u) << "two of each of the first two";
  EXPECT_TRUE(r.w.ends.empty());
  r.w.reads = true;
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 4u);
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(r.w.read[i], 50 + i) << i;
}

/// Two results in the channel, two inside, all eight reads done.
TEST(descriptor_fetch, waits_while_nobody_takes_its_results) {
  rig r;
  r.w.takes = false;
  for (unsigned i = 0; i < 4; ++i) r.start(i, 0, 256);
  for (unsigned i = 0; i < 4; ++i) r.start(i, 0x100, 256, i == 0 ? 60 : 0);
  r.run(150);
  EXPECT_EQ(r.results.pushes(), 2u);
  EXPECT_EQ(r.w.read.size(), 4u + 2) << "the units that have told may read again";
  r.w.takes = true;
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 8u);
  for (unsigned i = 0; i < 4; ++i) EXPECT_TRUE(r.has(i, 0, 0x100, 256));
}

/// Length, idle cycles in front of each job, and in one of how many cycles a neighbour takes something.
class descriptor_fetch_load : public testing::TestWithParam<std::tuple<std::uint32_t, unsigned, unsigned>> {};

TEST_P(descriptor_fetch_load, every_job_ends_once_and_whole) {
  const auto [length, idle, every] = GetParam();
  rig r;
  r.w.every = every;
  constexpr unsigned many = 24;
  std::vector<std::uint64_t> begins;
  for (unsigned i = 0; i < many; ++i) {
    const std::uint64_t at = 64 * ((i * 37) % 64);
    begins.push_back(at);
    r.start(i % rig::units, at, length, i % rig::units == 0 ? idle + 80 * every + 80 : 0, 64 * (i % 5));
  }
  const unsigned rounds = many / rig::units;
  for (unsigned n = 0; n < rounds; ++n) {
    r.run(idle + 80 * every + 80);
    ASSERT_EQ(r.w.ends.size(), rig::units * n) << "round " << n;
    if (n == 0) continue;
    for (unsigned i = rig::units * (n - 1); i < rig::units * n; ++i)
      ASSERT_TRUE(r.has(i % rig::units, 64 * (i % 5), begins[i], length)) << i;
  }
  r.run(idle + 80 * every + 80);
  ASSERT_EQ(r.w.ends.size(), many);
  std::vector<std::uint32_t> generations;
  for (const auto& e : r.w.ends) {
    EXPECT_TRUE(e.result.ok);
    EXPECT_EQ(e.result.bytes, length);
    generations.push_back(e.result.generation);
  }
  std::sort(generations.begin(), generations.end());
  for (unsigned i = 0; i < many; ++i) EXPECT_EQ(generations[i], i + 1);
  EXPECT_EQ(r.count("fetches"), many);
  EXPECT_EQ(r.count("bytes"), many * length);
  EXPECT_EQ(r.count("failed") + r.count("cut"), 0u);
}

INSTANTIATE_TEST_SUITE_P(length_by_idle_by_back_pressure, descriptor_fetch_load,
                         testing::Combine(testing::Values(64u, 256u, 1008u), testing::Values(0u, 1u, 9u),
                                          testing::Values(1u, 3u, 40u)));

TEST(descriptor_fetch, a_queue_that_is_not_mapped_fails_without_a_read) {
  rig r;
  r.w.maps = false;
  r.start(1, 0xf80, 256);
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 1u);
  EXPECT_FALSE(r.w.ends[0].result.ok);
  EXPECT_TRUE(r.w.read.empty());
  EXPECT_EQ(r.w.ends[0].at - r.w.pushed[0], 5u) << "told behind the second answer";
  EXPECT_EQ(r.count("failed"), 1u);
}

TEST(descriptor_fetch, a_read_that_memory_refuses_fails) {
  rig r;
  r.start(1, 0, 256).function = owner + 1;
  r.start(1, 0, 256, 50);
  r.run(150);
  ASSERT_EQ(r.w.ends.size(), 2u);
  EXPECT_FALSE(r.w.ends[0].result.ok);
  EXPECT_EQ(r.w.ends[0].at - r.w.pushed[0], 26u);
  EXPECT_TRUE(r.w.ends[1].result.ok);
  EXPECT_EQ(r.count("failed"), 1u);
}

/// What the unit asked for first is under way to the same place. It comes first, and does not stay.
TEST(descriptor_fetch, a_job_behind_another_of_its_unit_begins_when_that_has_ended) {
  rig r;
  r.start(3, 0x000, 512);
  r.start(3, 0x800, 256, 9);
  r.run(150);
  ASSERT_EQ(r.w.ends.size(), 2u);
  EXPECT_EQ(r.w.ends[0].result.generation, 1u);
  EXPECT_FALSE(r.w.ends[0].result.ok) << "another took its place";
  EXPECT_EQ(r.w.ends[0].at - r.w.pushed[0], 26u);
  EXPECT_EQ(r.w.asked[1] - r.w.ends[0].at, 0u) << "asked for in the cycle in which the first one was told";
  EXPECT_EQ(r.w.ends[1].at - r.w.asked[1], 24u);
  EXPECT_TRUE(r.w.ends[1].result.ok);
  EXPECT_TRUE(r.has(3, 0, 0x800, 256));
  EXPECT_EQ(r.count("cut"), 1u);
  EXPECT_EQ(r.count("fetches"), 2u);
}

/// The first one's second part was not asked for yet, and what translation has found is not read.
TEST(descriptor_fetch, a_job_that_is_cut_reads_nothing_more) {
  rig r;
  r.w.translates = false;
  for (unsigned i = 0; i < 4; ++i) r.start(i, 0xf80, 256);  // four of eight addresses in the channel
  r.start(0, 0x200, 256, 10);
  r.run(30);
  r.w.translates = true;
  r.run(100);
  ASSERT_EQ(r.w.ends.size(), 5u);
  EXPECT_EQ(r.count("cut"), 1u);
  EXPECT_EQ(r.w.places.size(), 6u + 1) << "of three whole ones and of the new one";
  EXPECT_TRUE(r.has(0, 0, 0x200, 256));
  for (const auto& e : r.w.ends) EXPECT_EQ(e.result.ok, e.result.generation != 1u);
}

/// A third job of a unit stands in the channel until the first has ended; those behind it stand too.
TEST(descriptor_fetch, a_third_job_of_a_unit_waits_in_front) {
  rig r;
  r.start(0, 0x000, 64);
  r.start(0, 0x100, 64, 8);
  r.start(0, 0x200, 64);
  r.start(1, 0x300, 64);
  r.run(20);
  EXPECT_EQ(r.w.asked.size(), 1u);
  r.run(150);
  ASSERT_EQ(r.w.ends.size(), 4u);
  EXPECT_EQ(r.w.ends[0].at - r.w.pushed[0], 26u);
  EXPECT_EQ(r.w.asked[1] - r.w.ends[0].at, 1u) << "the second, which asks for nothing, has a cycle";
  for (const auto& e : r.w.ends) EXPECT_EQ(e.result.ok, e.result.generation > 2) << e.result.generation;
  EXPECT_TRUE(r.has(0, 0, 0x200, 64));
  EXPECT_TRUE(r.has(1, 0, 0x300, 64));
  EXPECT_EQ(r.count("cut"), 2u);
}

TEST(descriptor_fetch, the_message_that_waits_sees_address_and_read) {
  rig r;
  r.spans.enable(true);
  const sim::span_id span = r.spans.open(0);
  r.start(0, 0, 256).span = span;
  r.run(100);
  const sim::span& s = r.spans[span];
  ASSERT_EQ(s.count(), 2u);
  EXPECT_STREQ(s[0].stage, "address");
  EXPECT_EQ(s[0].waited, sim::wait::none);
  EXPECT_EQ(s[0].at, 2000u * (r.w.pushed[0] + 3));
  EXPECT_STREQ(s[1].stage, "read");
  EXPECT_EQ(s[1].waited, sim::wait::descriptor_fetch);
  EXPECT_EQ(s[1].at, 2000u * (r.w.pushed[0] + 25));
}

/// Units 0 and 1 have both reads of a job across a page in the channel that nobody empties, and unit 2's address stands
/// in front. A second job of that unit cuts it: the address is dropped without room for a read, and the cut job ends.
TEST(descriptor_fetch, an_address_of_a_cut_job_needs_no_room) {
  rig r;
  r.w.reads = false;
  const std::uint64_t across = 4096 - ring % 4096 - 128;
  for (unsigned unit = 0; unit < 3; ++unit) r.start(unit, across, 256);
  r.start(2, 64, 64, 100);
  r.run(300);
  ASSERT_EQ(r.w.pushed.size(), 4u);
  ASSERT_EQ(r.w.ends.size(), 1u);
  EXPECT_EQ(r.w.ends[0].result.unit, 2u);
  EXPECT_EQ(r.w.ends[0].result.generation, 3u);
  EXPECT_FALSE(r.w.ends[0].result.ok);
  // Accepted a cycle after it was pushed, dropped and ended in the next, seen in the one behind.
  EXPECT_EQ(r.w.ends[0].at - r.w.pushed[3], 3u);
  EXPECT_EQ(r.count("cut"), 1u);
  EXPECT_EQ(r.count("bytes"), 512u);
  r.w.reads = true;
  r.run(300);
  EXPECT_EQ(r.w.ends.size(), 4u);
}

/// When what ended, under load with jobs that take each other's place.
std::string results(bool always, unsigned every) {
  return rnic::bench::in_child([=] {
    rig r(always);
    r.w.every = every;
    for (unsigned i = 0; i < 40; ++i) r.start((i * 5) % 4, 64 * ((i * 23) % 64), 64 + 64 * (i % 9), (i * 7) % 30);
    r.run(every * 1500);
    std::string seen = std::to_string(r.w.ends.size()) + " results:";
    for (const auto& e : r.w.ends)
      seen += ' ' + std::to_string(e.at) + '/' + std::to_string(e.result.generation) + (e.result.ok ? "" : "-");
    return seen + ' ' + std::to_string(r.count("cut")) + ' ' + std::to_string(r.count("bytes"));
  });
}

TEST(descriptor_fetch, sleeping_is_invisible) {
  for (const unsigned every : {3u, 60u}) {  // the second one has the channel to the DMA engine full
    const std::string seen = results(false, every);
    EXPECT_EQ(seen.substr(0, 11), "40 results:");
    EXPECT_EQ(results(true, every), seen);
  }
}

}  // namespace
