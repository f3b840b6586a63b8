// SPDX-License-Identifier: Apache-2.0
// Scatter alone: literal cycles, length by idle time by back-pressure, lists, failures, keys that lose their meaning.
#include "model/transport/requester/scatter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <systemc>
#include <tuple>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"
#include "testbenches/bench/held_up.h"

namespace {

using namespace rnic;
using cycle = sim::cycle_t;

constexpr std::uint32_t good_key = 0x12300, bad_key = 0x66600;

/// Completer, translation, keys and memory in one block.
struct world : sim::clocked_block {
  explicit world(sim::clock_domain& d) : clocked_block("world", d) {}

  sim::fifo_out<transport::scatter_job> job{*this};
  sim::fifo_in<transport::scatter_done> done{*this};
  sim::fifo_in<pcie::dma_request> request{*this};
  sim::fifo_out<pcie::dma_response> response{*this};
  sim::fifo_in<icm::translate_request> address{*this};
  sim::fifo_out<icm::translate_response> translated{*this};
  sim::fifo_out<icm::key_revocation> revoke{*this};
  sim::fifo_in<icm::key_revocation> revoked{*this};

  std::deque<std::pair<unsigned, transport::scatter_job>> jobs;  ///< and idle cycles in front of each
  unsigned memory_cycles = 20;                                   ///< from a write to the answer that was asked for
  unsigned every = 1;  ///< takes an address, a write and a report in one of so many cycles
  unsigned writes_every = 1;
  bool translates = true, refuses = false;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(0x40000);
  std::deque<std::uint32_t> to_revoke;

  std::vector<cycle> pushed, asked, written, answered;
  std::vector<std::uint32_t> lengths;  ///< of writes; 0: nothing but an answer
  std::vector<std::pair<cycle, transport::scatter_done>> reports;

 private:
  void tick() override {
    wake_next();
    if (!jobs.empty() && jobs.front().first != 0) {
      --jobs.front().first;
    } else if (!jobs.empty() && job.claim()) {
      pushed.push_back(now());
      job.push(std::move(jobs.front().second));
      jobs.pop_front();
    }
    if (!to_revoke.empty() && revoke.claim()) {
      revoke.push({to_revoke.front()});
      to_revoke.pop_front();
    }
    if (revoked.can_pop()) {
      revoked.drop();
      answered.push_back(now());
    }
    if (!busy_.empty() && busy_.front().first <= now() && response.claim()) {
      response.push({busy_.front().second, refuses ? pcie::dma_status::unsupported_request : pcie::dma_status::ok});
      busy_.pop_front();
    }
    if (now() % every != 0) return;
    if (translates && address.can_pop() && translated.claim()) translate(address.pop());
    if (now() % writes_every == 0 && request.can_pop()) write(request.pop());
    if (done.can_pop()) reports.emplace_back(now(), done.pop());
  }
  void translate(const icm::translate_request& t) {
    asked.push_back(now());
    icm::translate_response r;
    r.tag = t.tag;
    if (t.key != good_key) r.status = icm::translate_status::bad_key;
    const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(t.length, 4096 - t.va % 4096));
    r.segments[r.count++] = {t.va, first};
    if (first < t.length) r.segments[r.count++] = {t.va + first, t.length - first};
    translated.push(r);
  }
  void write(const pcie::dma_request& d) {
    written.push_back(now());
    lengths.push_back(d.length);
    if (!refuses && d.source != nullptr) std::memcpy(memory.data() + d.address, d.source, d.length);
    if (d.notify) busy_.emplace_back(now() + memory_cycles, d.tag);
  }
  std::deque<std::pair<cycle, std::uint64_t>> busy_;
};

struct rig {
  sim::timebase base{sim::timebase::options{}};
  sim::clock_domain core{"core", base, sim::clock_period::from_khz(500'000)};
  sim::span_recorder spans;
  sim::statistics stats;
  payload::frame_pool frames;
  transport::scatter_lists lists{16};
  transport::scatter dut{"scatter", core, 8, lists, spans, stats};
  world w{core};
  sim::fifo<transport::scatter_job> jobs{"jobs", core, 2};
  sim::fifo<transport::scatter_done> reports{"reports", core, 2};
  sim::fifo<pcie::dma_request> writes{"writes", core, 4};
  sim::fifo<pcie::dma_response> answers{"answers", core, 4};
  sim::fifo<icm::translate_request> addresses{"addresses", core, 4};
  sim::fifo<icm::translate_response> translations{"translations", core, 4};
  sim::fifo<icm::key_revocation> revocations{"revocations", core, 2}, revoked{"revoked", core, 2};

  rig() {
    w.job.bind(jobs);
    dut.job_in.bind(jobs);
    dut.done_out.bind(reports);
    w.done.bind(reports);
    dut.dma.request.bind(writes);
    w.request.bind(writes);
    w.response.bind(answers);
    dut.dma.response.bind(answers);
    dut.translate.request.bind(addresses);
    w.address.bind(addresses);
    w.translated.bind(translations);
    dut.translate.response.bind(translations);
    w.revoke.bind(revocations);
    dut.keys.revoke.bind(revocations);
    dut.keys.revoked.bind(revoked);
    w.revoked.bind(revoked);
    w.wake_at(1);
  }
  void run(unsigned cycles) { sc_core::sc_start(2.0 * cycles, sc_core::SC_NS); }
  /// A READ that is scattered to these.
  std::uint32_t list(const std::vector<transport::wqe_segment>& segments) {
    static transport::send_wqe wqe;
    wqe.count = static_cast<std::uint16_t>(segments.size());
    std::copy(segments.begin(), segments.end(), wqe.segments.begin());
    const std::uint32_t index = lists.write(wqe);
    return index;
  }
  static std::uint8_t byte_at(std::uint32_t offset) { return static_cast<std::uint8_t>(offset * 7 + (offset >> 8)); }
  /// A response packet behind `idle` cycles.
  void respond(std::uint32_t list, std::uint32_t offset, std::uint32_t length, unsigned idle = 0) {
    transport::scatter_job j;
    j.frame = frames.get();
    j.frame->begin = 0;
    j.frame->packet.payload_offset = 54;
    j.frame->packet.payload_length = length;
    for (std::uint32_t i = 0; i < length; ++i) j.frame->data()[54 + i] = byte_at(offset + i);
    j.message = number++;
    j.list = list;
    j.offset = offset;
    lists.add_user(list);
    w.jobs.emplace_back(idle, std::move(j));
  }
  std::uint64_t count(const char* counter) { return stats.value(std::string("scatter.") + counter); }
  std::uint32_t number = 0;
};

/// Job seen and address asked for in the next cycle, seen in the one behind it by translation, which answers at once:
/// 2; the answer is seen and the write leaves a cycle later, seen after one more: 4. Memory answers after 20, seen a
/// cycle later, and the report after one more: 26.
TEST(scatter, one_packet_of_one_segment) {
  rig r;
  r.respond(r.list({{0x1000, 64, good_key, false}}), 0, 64);
  r.run(100);
  ASSERT_EQ(r.w.reports.size(), 1u);
  const cycle t = r.w.pushed[0];
  EXPECT_EQ(r.w.asked[0] - t, 2u);
  EXPECT_EQ(r.w.written[0] - t, 4u);
  EXPECT_EQ(r.w.reports[0].first - t, 26u);
  EXPECT_FALSE(r.w.reports[0].second.failed);
  for (std::uint32_t i = 0; i < 64; ++i) ASSERT_EQ(r.w.memory[0x1000 + i], rig::byte_at(i)) << i;
}

TEST(scatter, one_packet_a_cycle_when_nothing_is_in_its_way) {
  rig r;
  r.w.memory_cycles = 2;  // eight jobs cover all
  const std::uint32_t list = r.list({{0x1000, 64 * 16, good_key, false}});
  for (std::uint32_t i = 0; i < 16; ++i) r.respond(list, 64 * i, 64);
  r.run(100);
  ASSERT_EQ(r.w.reports.size(), 16u);
  for (unsigned i = 1; i < 16; ++i) {
    EXPECT_EQ(r.w.asked[i] - r.w.asked[i - 1], 1u) << i;
    EXPECT_EQ(r.w.written[i] - r.w.written[i - 1], 1u) << i;
    EXPECT_EQ(r.w.reports[i].first - r.w.reports[i - 1].first, 1u) << i;
  }
  EXPECT_EQ(rnic::bench::busy_cycles(r.core, "scatter.ask"), 16u);
  EXPECT_EQ(rnic::bench::busy_cycles(r.core, "scatter.write"), 16u);
}

TEST(scatter, a_piece_across_a_page_is_two_writes_and_one_report) {
  rig r;
  r.respond(r.list({{0x1ff0, 64, good_key, false}}), 0, 64);
  r.run(100);
  EXPECT_EQ(r.w.lengths, (std::vector<std::uint32_t>{16, 48}));
  EXPECT_EQ(r.w.written[1] - r.w.written[0], 1u);
  ASSERT_EQ(r.w.reports.size(), 1u);
  EXPECT_EQ(r.w.reports[0].first - r.w.written[1], 22u) << "of the last write";
}

TEST(scatter, packets_go_on_in_the_list_where_the_one_before_ended) {
  rig r;
  const std::uint32_t list =
      r.list({{0x1000, 100, good_key, false}, {0x8000, 30, good_key, false}, {0x3000, 200, good_key, false}});
  r.respond(list, 0, 64);
  r.respond(list, 64, 64);
  r.respond(list, 128, 202);
  r.run(200);
  EXPECT_EQ(r.w.lengths, (std::vector<std::uint32_t>{64, 36, 28, 2, 200}));
  EXPECT_EQ(r.w.reports.size(), 3u);
  for (std::uint32_t i = 0; i < 330; ++i) {
    const std::size_t at = i < 100 ? 0x1000 + i : i < 130 ? 0x8000 + i - 100 : 0x3000 + i - 130;
    ASSERT_EQ(r.w.memory[at], rig::byte_at(i)) << i;
  }
}

class passed_over : public testing::TestWithParam<unsigned> {};

/// A queue pair that was stopped asks for the rest only: its list is new, and the segments before are passed over.
TEST_P(passed_over, segment_costs_a_cycle) {
  const unsigned before = GetParam();
  rig r;
  std::vector<transport::wqe_segment> segments(before, {0x9000, 10, good_key, false});
  segments.push_back({0x1000, 64, good_key, false});
  r.respond(r.list(segments), 10 * before, 64);
  r.run(100);
  ASSERT_EQ(r.w.reports.size(), 1u);
  EXPECT_EQ(r.w.asked[0] - r.w.pushed[0], 2 + before);
  EXPECT_EQ(rnic::bench::busy_cycles(r.core, "scatter.ask"), 1 + before);
  EXPECT_EQ(r.w.memory[0x1000], rig::byte_at(10 * before));
  EXPECT_EQ(r.w.memory[0x9000], 0u);
}

INSTANTIATE_TEST_SUITE_P(scatter, passed_over, testing::Values(0u, 1u, 3u));

class scatter_load : public testing::TestWithParam<std::tuple<unsigned, unsigned, unsigned>> {};

TEST_P(scatter_load, every_byte_is_written_and_every_packet_reported_once_in_order) {
  const auto [length, idle, every] = GetParam();
  rig r;
  r.w.every = every;
  constexpr std::uint32_t many = 24;
  const std::uint32_t all = many * length;
  const std::uint32_t list = r.list({{0x1001, all / 3, good_key, false}, {0x20000, all - all / 3, good_key, false}});
  for (std::uint32_t i = 0; i < many; ++i) r.respond(list, i * length, length, idle);
  r.run(many * (idle + 8 * every + 30) + 200);
  ASSERT_EQ(r.w.reports.size(), many);
  for (std::uint32_t i = 0; i < many; ++i) {
    EXPECT_EQ(r.w.reports[i].second.message, i);
    EXPECT_FALSE(r.w.reports[i].second.failed);
  }
  for (std::uint32_t i = 0; i < all; ++i) {
    const std::size_t at = i < all / 3 ? 0x1001 + i : 0x20000 + i - all / 3;
    ASSERT_EQ(r.w.memory[at], rig::byte_at(i)) << i;
  }
  EXPECT_EQ(r.count("packets"), many);
  EXPECT_EQ(r.count("bytes"), all);
  EXPECT_EQ(r.count("writes"), r.w.written.size());
}

INSTANTIATE_TEST_SUITE_P(length_by_idle_by_back_pressure, scatter_load,
                         testing::Combine(testing::Values(8u, 64u, 1000u, 4096u), testing::Values(0u, 1u, 9u),
                                          testing::Values(1u, 3u, 40u)));

TEST(scatter, a_bad_key_fails_its_packet_and_no_other) {
  rig r;
  r.respond(r.list({{0x1000, 32, good_key, false}, {0x2000, 32, bad_key, false}}), 0, 64);
  r.respond(r.list({{0x3000, 64, good_key, false}}), 0, 64);
  r.run(100);
  ASSERT_EQ(r.w.reports.size(), 2u);
  EXPECT_TRUE(r.w.reports[0].second.failed);
  EXPECT_FALSE(r.w.reports[1].second.failed);
  EXPECT_EQ(r.w.memory[0x2000], 0u);
  EXPECT_EQ(r.w.memory[0x3001], rig::byte_at(1));
  EXPECT_EQ(r.count("failed"), 1u);
}

TEST(scatter, memory_that_refuses_fails_the_packet) {
  rig r;
  r.w.refuses = true;
  r.respond(r.list({{0x1000, 32, good_key, false}}), 0, 32);
  r.run(100);
  ASSERT_EQ(r.w.reports.size(), 1u);
  EXPECT_TRUE(r.w.reports[0].second.failed);
}

/// Five packets wait for the first one's address; their message is given up meanwhile.
TEST(scatter, what_was_not_begun_of_a_message_that_was_given_up_writes_nothing) {
  rig r;
  r.w.translates = false;
  const std::uint32_t first = r.list(std::vector<transport::wqe_segment>(8, {0x1000, 8, good_key, false}));
  const std::uint32_t second = r.list({{0x3000, 128, good_key, false}}),
                      third = r.list({{0x5000, 64, good_key, false}});
  r.respond(first, 0, 64);
  r.respond(second, 0, 64);
  r.respond(second, 64, 64);
  r.respond(third, 0, 64);
  r.run(50);
  r.lists.release(second, r.core.now());
  r.w.translates = true;
  r.run(200);
  ASSERT_EQ(r.w.reports.size(), 4u);
  EXPECT_EQ(r.count("given_up"), 2u);
  EXPECT_EQ(r.w.memory[0x3001], 0u);
  EXPECT_EQ(r.w.memory[0x5001], rig::byte_at(1));
  EXPECT_EQ(r.w.lengths.size(), 9u);
  EXPECT_FALSE(r.lists.remove_user(second));
  EXPECT_TRUE(r.lists.remove_user(second)) << "its last user has gone";
}

/// A packet begins in cycle 2, and what the message table writes is seen a cycle later: given up in cycle 1 it writes
/// nothing, in cycle 2 it goes on.
class given_up : public testing::TestWithParam<std::pair<cycle, std::uint64_t>> {};
TEST_P(given_up, is_seen_a_cycle_later) {
  rig r;
  const std::uint32_t list = r.list({{0x1000, 64, good_key, false}});
  r.respond(list, 0, 64);
  r.lists.release(list, GetParam().first);
  r.run(100);
  ASSERT_EQ(r.w.pushed[0], 1u);
  ASSERT_EQ(r.w.reports.size(), 1u);
  EXPECT_EQ(r.count("given_up"), GetParam().second);
  EXPECT_EQ(r.count("writes"), 1 - GetParam().second);
}
INSTANTIATE_TEST_SUITE_P(scatter, given_up, testing::Values(std::pair{cycle{1}, 1u}, std::pair{cycle{2}, 0u}));

/// The write of the packet that was begun is answered, then an empty write behind all others, then the revocation.
TEST(scatter, revocation_is_answered_when_what_was_begun_is_in_memory) {
  rig r;
  r.w.translates = false;
  r.respond(r.list({{0x1000, 64, good_key, false}}), 0, 64);
  r.run(20);
  r.w.to_revoke.push_back(good_key);
  r.run(100);
  EXPECT_TRUE(r.w.answered.empty());
  r.w.translates = true;
  r.run(100);
  ASSERT_EQ(r.w.answered.size(), 1u);
  EXPECT_EQ(r.w.lengths, (std::vector<std::uint32_t>{64, 0}));
  EXPECT_EQ(r.w.written[1] - r.w.written[0], 22u);
  EXPECT_EQ(r.w.answered[0] - r.w.written[1], 22u);
}

TEST(scatter, revocation_of_an_idle_block_costs_a_write_behind_all_others) {
  rig r;
  r.w.to_revoke.push_back(good_key);
  r.run(100);
  ASSERT_EQ(r.w.answered.size(), 1u);
  EXPECT_EQ(r.w.lengths, (std::vector<std::uint32_t>{0}));
}

std::string held_up(const rig& r, const char* engine) {
  return rnic::bench::held_up(r.core, std::string("scatter.") + engine);
}

/// Asked at 1; the answer of translation is seen at 3.
TEST(scatter_held_up, a_piece_waits_for_its_address) {
  rig r;
  r.respond(r.list({{0x1000, 64, good_key, false}}), 0, 64);
  r.run(100);
  EXPECT_EQ(held_up(r, "ask"), "");
  EXPECT_EQ(held_up(r, "write"), "translation 2; ");
}

/// Four addresses in the channel, asked for from edge 2 on: the fifth waits from 6 to now, edge 100, and what has been
/// asked for from 2 on.
TEST(scatter_held_up, by_translation) {
  rig r;
  r.w.translates = false;
  const std::uint32_t list = r.list({{0x1000, 64 * 6, good_key, false}});
  for (std::uint32_t i = 0; i < 6; ++i) r.respond(list, 64 * i, 64);
  r.run(100);
  EXPECT_EQ(r.w.pushed.at(0), 1u);
  EXPECT_EQ(held_up(r, "ask"), "translation 94; ");
  EXPECT_EQ(held_up(r, "write"), "translation 98; ");
}

/// Memory takes a write at edges 40 and 80. Four are in the channel from edge 4 on; the fifth waits from 8 to 41, the
/// sixth from 42 to 81.
TEST(scatter_held_up, by_dma) {
  rig r;
  r.w.writes_every = 40;
  const std::uint32_t list = r.list({{0x1000, 64 * 6, good_key, false}});
  for (std::uint32_t i = 0; i < 6; ++i) r.respond(list, 64 * i, 64);
  r.run(300);
  EXPECT_EQ(r.w.written, (std::vector<cycle>{40, 80, 120, 160, 200, 240}));
  EXPECT_EQ(held_up(r, "write"), "translation 2; dma 72; ");
}

}  // namespace
