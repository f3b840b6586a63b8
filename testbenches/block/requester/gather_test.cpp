// SPDX-License-Identifier: Apache-2.0
// Gather alone: literal cycles, length by idle time by back-pressure, order, failures, withdrawals, keys.
#include "model/transport/requester/gather.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <systemc>
#include <tuple>
#include <utility>
#include <vector>

#include "model/gid/gid_cr.h"
#include "model/gid/gid_source.h"
#include "model/sim/timebase.h"
#include "testbenches/bench/held_up.h"

namespace {

using namespace rnic;
using cycle = sim::cycle_t;
using event_kind = transport::gather_event::kind;

constexpr std::uint32_t good_key = 0x12300, bad_key = 0x66600;

/// Transmit engine, translation, keys, memory and the block behind, in one.
struct world : sim::clocked_block {
  explicit world(sim::clock_domain& d) : clocked_block("world", d) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint8_t>(i * 7 + (i >> 8));
  }

  sim::fifo_out<transport::gather_job> job{*this};
  sim::fifo_out<transport::gather_piece> piece{*this};
  sim::fifo_out<transport::gather_verdict> verdict{*this};
  sim::fifo_in<payload::frame_ptr> tx{*this};
  sim::fifo_in<transport::gather_left> left{*this};
  sim::fifo_in<transport::gather_event> event{*this};
  sim::fifo_in<transport::gather_address> known{*this};
  sim::fifo_in<pcie::dma_request> request{*this};
  sim::fifo_out<pcie::dma_response> response{*this};
  sim::fifo_in<icm::translate_request> address{*this};
  sim::fifo_out<icm::translate_response> translated{*this};
  sim::fifo_out<icm::key_revocation> revoke{*this};
  sim::fifo_in<icm::key_revocation> revoked{*this};

  struct start {
    unsigned idle;  ///< cycles in front of it
    transport::gather_job job;
    std::vector<transport::gather_piece> pieces;
  };
  std::deque<start> starts;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(0x40000);
  unsigned memory_cycles = 20, every = 1;  ///< takes an address, a read and a frame in one of so many cycles
  unsigned misses_for = 0;                 ///< cycles of an address that has to be fetched; 0: none
  bool translates = true, judges = true, hears = true;
  std::deque<std::uint32_t> to_revoke;

  std::vector<cycle> pushed, asked, read, answered;
  std::vector<std::uint32_t> lengths;
  std::vector<std::pair<cycle, payload::frame_ptr>> frames;
  std::vector<std::pair<cycle, transport::gather_left>> gone;
  std::vector<std::pair<cycle, transport::gather_event>> events;
  std::vector<transport::gather_address> addresses;

 private:
  void tick() override {
    wake_next();
    begin();
    if (!to_revoke.empty() && revoke.claim()) {
      revoke.push({to_revoke.front()});
      to_revoke.pop_front();
    }
    if (revoked.can_pop()) {
      revoked.drop();
      answered.push_back(now());
    }
    if (event.can_pop()) {
      events.emplace_back(now(), event.pop());
      if (events.back().second.what == event_kind::failed && judges) verdict.push({});
    }
    if (left.can_pop()) gone.emplace_back(now(), left.pop());
    if (hears && known.can_pop()) addresses.push_back(known.pop());
    if (!reads_.empty() && reads_.front().first <= now() && response.claim()) {
      const pcie::dma_request& d = reads_.front().second;
      std::memcpy(d.destination, memory.data() + d.address, d.length);
      response.push({d.tag, pcie::dma_status::ok});
      reads_.pop_front();
    }
    if (!found_.empty() && found_.front().first <= now() && translated.claim()) {
      translated.push(found_.front().second);
      found_.pop_front();
    }
    if (now() % every != 0) return;
    if (translates && address.can_pop()) find(address.pop());
    if (request.can_pop()) {
      read.push_back(now());
      lengths.push_back(request.front().length);
      reads_.emplace_back(now() + memory_cycles, request.pop());
    }
    if (tx.can_pop()) frames.emplace_back(now(), tx.pop());
  }
  void begin() {
    if (starts.empty()) return;
    if (starts.front().idle != 0) {
      --starts.front().idle;
      return;
    }
    start& s = starts.front();
    if (!job.claim() || piece.free_slots() < s.pieces.size()) return;
    pushed.push_back(now());
    for (const auto& p : s.pieces) piece.push_after(p, 0);
    job.push(std::move(s.job));
    starts.pop_front();
  }
  void find(const icm::translate_request& t) {
    asked.push_back(now());
    icm::translate_response r;
    r.tag = t.tag;
    r.missed = misses_for != 0;
    if (t.key != good_key) r.status = icm::translate_status::bad_key;
    const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(t.length, 4096 - t.va % 4096));
    r.segments[r.count++] = {t.va, first};
    if (first < t.length) r.segments[r.count++] = {t.va + first, t.length - first};
    if (misses_for == 0 && found_.empty() && translated.claim())
      translated.push(r);
    else
      found_.emplace_back(now() + misses_for, r);
  }
  std::deque<std::pair<cycle, pcie::dma_request>> reads_;
  std::deque<std::pair<cycle, icm::translate_response>> found_;
};

transport::requester_config config() {
  transport::requester_config c;
  c.gather_depth = 8;
  return c;
}

struct rig {
  sim::timebase base{sim::timebase::options{}};
  sim::clock_domain core{"core", base, sim::clock_period::from_khz(500'000)};
  sim::span_recorder spans;
  sim::statistics stats;
  payload::frame_pool frames;
  std::array<gid::gid_table, 2> gids;
  std::array<gid::gid_source, 2> sources{gid::gid_source({}, gids[0]), gid::gid_source({}, gids[1])};
  transport::withdrawals withdrawn{18};
  transport::gather dut;
  world w{core};
  sim::fifo<transport::gather_job> jobs{"jobs", core, 2};
  sim::fifo<transport::gather_piece> pieces{"pieces", core, 128};
  sim::fifo<transport::gather_verdict> verdicts{"verdicts", core, 2};
  sim::fifo<payload::frame_ptr> tx{"tx", core, 60};
  sim::fifo<transport::gather_left> left{"left", core, 60};
  sim::fifo<transport::gather_event> events{"events", core, 2};
  sim::fifo<transport::gather_address> known{"known", core, 8};
  sim::fifo<pcie::dma_request> reads{"reads", core, 4};
  sim::fifo<pcie::dma_response> answers{"answers", core, 4};
  sim::fifo<icm::translate_request> addresses{"addresses", core, 4};
  sim::fifo<icm::translate_response> translations{"translations", core, 4};
  sim::fifo<icm::key_revocation> revocations{"revocations", core, 2}, revoked{"revoked", core, 2};

  /// `shared`: with the answers, one read port of the tables.
  explicit rig(bool shared = false)
      : dut("gather", core, config(), {{&sources[0], &sources[1]}, shared}, withdrawn, spans, stats) {
    w.job.bind(jobs);
    dut.job_in.bind(jobs);
    w.piece.bind(pieces);
    dut.piece_in.bind(pieces);
    w.verdict.bind(verdicts);
    dut.verdict_in.bind(verdicts);
    dut.tx_out.bind(tx);
    w.tx.bind(tx);
    dut.left_out.bind(left);
    w.left.bind(left);
    dut.event_out.bind(events);
    w.event.bind(events);
    dut.address_out.bind(known);
    w.known.bind(known);
    dut.dma.request.bind(reads);
    w.request.bind(reads);
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
  /// A packet of queue pair `qpn` whose payload is these places of memory.
  void start(const std::vector<std::pair<std::uint64_t, std::uint32_t>>& places, unsigned idle = 0,
             std::uint32_t qpn = 5, std::uint32_t key = good_key) {
    world::start s{idle, {}, {}};
    s.job.frame = frames.get();
    s.job.psn = wire::psn_t(number);
    s.job.message = number + 100;
    s.job.number = number++;
    s.job.qpn = qpn;
    s.job.unit = 3;
    std::uint16_t at = 0;
    for (const auto& [address, length] : places) {
      s.pieces.push_back({address, length, key, at});
      at = static_cast<std::uint16_t>(at + length);
    }
    s.job.pieces = static_cast<std::uint16_t>(places.size());
    s.job.frame->length = at;
    s.job.frame->port = 0;
    w.starts.push_back(std::move(s));
  }
  std::uint8_t byte(std::size_t frame, std::size_t at) const {
    return w.frames[frame].second->buffer[payload::frame::payload_start + at];
  }
  std::uint64_t count(const char* counter) { return stats.value(std::string("gather.") + counter); }
  std::uint32_t number = 0;
};

constexpr cycle pipeline = 44 + 1;  // and the register of the channel

/// Seen a cycle after its start, it leaves in the one behind accept.
TEST(gather, packet_without_payload_in_memory) {
  rig r;
  r.start({});
  r.run(100);
  ASSERT_EQ(r.w.frames.size(), 1u);
  EXPECT_EQ(r.w.frames[0].first - r.w.pushed[0], 2 + pipeline);
  ASSERT_EQ(r.w.gone.size(), 1u);
  EXPECT_EQ(r.w.gone[0].first, r.w.frames[0].first);
  EXPECT_TRUE(r.w.addresses.empty());
}

/// Asked for when it is accepted (1), seen by translation after one more (2), whose answer is seen and becomes a read
/// (3) that memory sees (4) and answers after 20; it leaves when the answer is seen (25).
TEST(gather, packet_of_one_piece) {
  rig r;
  r.start({{0x1000, 64}});
  r.run(200);
  ASSERT_EQ(r.w.frames.size(), 1u);
  const cycle t = r.w.pushed[0];
  EXPECT_EQ(r.w.asked[0] - t, 2u);
  EXPECT_EQ(r.w.read[0] - t, 4u);
  EXPECT_EQ(r.w.frames[0].first - t, 25 + pipeline);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(r.byte(0, i), r.w.memory[0x1000 + i]) << i;
  ASSERT_EQ(r.w.addresses.size(), 1u);
  EXPECT_EQ(r.w.addresses[0].unit, 3u);
  EXPECT_EQ(r.w.addresses[0].missed_for, 0u);
}

TEST(gather, one_packet_a_cycle_when_nothing_is_in_its_way) {
  rig r;
  r.w.memory_cycles = 1;  // eight packets cover all
  for (unsigned i = 0; i < 16; ++i) r.start({{0x1000 + 64 * i, 64}});
  r.run(200);
  ASSERT_EQ(r.w.frames.size(), 16u);
  for (unsigned i = 1; i < 16; ++i) {
    EXPECT_EQ(r.w.asked[i] - r.w.asked[i - 1], 1u) << i;
    EXPECT_EQ(r.w.frames[i].first - r.w.frames[i - 1].first, 1u) << i;
  }
  for (const char* engine : {"gather.ask", "gather.read", "gather.leave"})
    EXPECT_EQ(rnic::bench::busy_cycles(r.core, engine), 16u) << engine;
}

TEST(gather, a_piece_across_a_page_is_two_reads) {
  rig r;
  r.start({{0x1ff0, 64}});
  r.run(200);
  EXPECT_EQ(r.w.lengths, (std::vector<std::uint32_t>{16, 48}));
  EXPECT_EQ(r.w.read[1] - r.w.read[0], 1u);
  ASSERT_EQ(r.w.frames.size(), 1u);
  EXPECT_EQ(r.w.frames[0].first - r.w.read[1], 21 + pipeline);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(r.byte(0, i), r.w.memory[0x1ff0 + i]) << i;
  EXPECT_EQ(r.w.addresses.size(), 1u);
  EXPECT_EQ(rnic::bench::busy_cycles(r.core, "gather.ask"), 1u);
  EXPECT_EQ(rnic::bench::busy_cycles(r.core, "gather.read"), 2u);
}

/// The second read waits for the word that the address is known, which finds no room; memory has answered the first by
/// then. The packet waits for both.
TEST(gather, a_piece_across_a_page_whose_address_cannot_be_told_is_whole) {
  rig r;
  r.w.hears = false;
  r.w.memory_cycles = 2;
  for (unsigned i = 0; i < 8; ++i) r.start({{0x1000 + 64 * i, 64}});  // as many as can be told
  r.start({{0x2fc0, 128}}, 60);
  r.run(300);
  EXPECT_EQ(r.w.frames.size(), 8u);
  EXPECT_EQ(r.w.read.size(), 9u);
  r.w.hears = true;
  r.run(200);
  ASSERT_EQ(r.w.frames.size(), 9u);
  EXPECT_EQ(r.w.read.size(), 10u);
  for (std::size_t i = 0; i < 128; ++i) ASSERT_EQ(r.byte(8, i), r.w.memory[0x2fc0 + i]) << i;
}

TEST(gather, a_miss_is_told_with_its_cycles_and_holds_back_what_is_behind) {
  rig r;
  r.w.misses_for = 30;
  r.start({{0x1000, 64}});
  r.start({});
  r.run(200);
  ASSERT_EQ(r.w.addresses.size(), 1u);
  EXPECT_EQ(r.w.addresses[0].missed_for, 32u) << "and a cycle there and back";
  ASSERT_EQ(r.w.frames.size(), 2u);
  EXPECT_EQ(r.w.frames[1].first - r.w.frames[0].first, 1u);
  EXPECT_EQ(r.count("translation_misses"), 1u);
}

class gather_load : public testing::TestWithParam<std::tuple<unsigned, unsigned, unsigned>> {};

TEST_P(gather_load, every_frame_leaves_whole_once_and_in_order) {
  const auto [length, idle, every] = GetParam();
  rig r;
  r.w.every = every;
  constexpr unsigned many = 24;
  for (unsigned i = 0; i < many; ++i) {
    const std::uint64_t at = 0x1001 + 4096 * i;
    if (i % 3 == 2)
      r.start({}, idle);
    else
      r.start({{at, length / 2}, {at + length / 2, length - length / 2}}, idle);
  }
  r.run(many * (idle + 8 * every + 30) + 200);
  ASSERT_EQ(r.w.frames.size(), many);
  for (unsigned i = 0; i < many; ++i) {
    EXPECT_EQ(r.w.gone[i].second.message, 100 + i);
    for (std::size_t k = 0; i % 3 != 2 && k < length; ++k) ASSERT_EQ(r.byte(i, k), r.w.memory[0x1001 + 4096 * i + k]);
  }
  EXPECT_EQ(r.count("packets"), many);
  EXPECT_EQ(r.count("pieces"), 2 * (many - many / 3));
  EXPECT_EQ(r.count("bytes"), length * (many - many / 3));
  EXPECT_EQ(r.w.addresses.size(), 2 * (many - many / 3));
}

INSTANTIATE_TEST_SUITE_P(length_by_idle_by_back_pressure, gather_load,
                         testing::Combine(testing::Values(8u, 64u, 1000u, 4096u), testing::Values(0u, 1u, 9u),
                                          testing::Values(1u, 3u, 40u)));

TEST(gather, a_packet_that_fails_stands_until_the_verdict_and_goes_nowhere) {
  rig r;
  r.w.judges = false;
  r.start({{0x1000, 64}}, 0, 5, bad_key);
  r.start({}, 0, 6);
  r.run(100);
  ASSERT_EQ(r.w.events.size(), 1u);
  EXPECT_EQ(r.w.events[0].second.what, event_kind::failed);
  EXPECT_EQ(r.w.events[0].second.syndrome, transport::syndrome::local_protection);
  EXPECT_EQ(r.w.events[0].second.qpn, 5u);
  EXPECT_TRUE(r.w.frames.empty());
  r.w.verdict.push({});
  r.run(100);
  ASSERT_EQ(r.w.events.size(), 2u);
  EXPECT_EQ(r.w.events[1].second.what, event_kind::withdrawn);
  ASSERT_EQ(r.w.frames.size(), 1u);
  EXPECT_EQ(r.w.gone[0].second.qpn, 6u);
  EXPECT_TRUE(r.w.lengths.empty());
}

/// The oldest packet waits for its address. Of the four behind it, two are withdrawn by their numbers.
TEST(gather, packets_that_are_withdrawn_ask_for_nothing_more) {
  rig r;
  r.w.translates = false;
  for (unsigned i = 0; i < 5; ++i) r.start({{0x1000 + 0x1000 * i, 64}, {0x1100 + 0x1000 * i, 64}});
  r.run(50);
  r.withdrawn.write(5, {2, 4, 0}, r.core.now());
  r.w.translates = true;
  r.run(400);
  ASSERT_EQ(r.w.frames.size(), 3u);
  EXPECT_EQ(r.w.gone[0].second.message, 100u);
  EXPECT_EQ(r.w.gone[1].second.message, 101u);
  EXPECT_EQ(r.w.gone[2].second.message, 104u);
  EXPECT_EQ(r.w.events.size(), 2u);
  EXPECT_EQ(r.count("withdrawn"), 2u);
  EXPECT_EQ(r.w.lengths.size(), 6u) << "no read for those";
  EXPECT_EQ(r.w.addresses.size(), 10u) << "the unit waits for no piece of them";
  EXPECT_EQ(r.byte(2, 64), r.w.memory[0x5100]);
}

TEST(gather, a_withdrawn_packet_of_another_queue_pair_is_another) {
  rig r;
  r.withdrawn.write(6, {0, 10, 0}, r.core.now());
  r.start({}, 5, 5);
  r.start({}, 0, 6);
  r.run(100);
  EXPECT_EQ(r.w.frames.size(), 1u);
  EXPECT_EQ(r.w.events.size(), 1u);
}

TEST(gather, revocation_is_answered_when_what_was_asked_for_has_come) {
  rig r;
  r.w.memory_cycles = 60;
  r.start({{0x1000, 64}});
  r.run(20);
  r.w.to_revoke.push_back(good_key);
  r.run(200);
  ASSERT_EQ(r.w.answered.size(), 1u);
  EXPECT_EQ(r.w.answered[0] - r.w.read[0], 62u) << "memory, and a cycle there and to the keys";
}

std::string held_up(const rig& r, const char* engine) {
  return rnic::bench::held_up(r.core, std::string("gather.") + engine);
}

/// Of one piece: asked for at 1, all of it there when the answer is seen, at 25.
TEST(gather_held_up, by_payload) {
  rig r;
  r.start({{0x1000, 64}});
  r.run(200);
  EXPECT_EQ(held_up(r, "leave"), "payload 24; ");
  EXPECT_EQ(held_up(r, "ask") + held_up(r, "read"), "");
}

/// Four addresses in the channel, asked for from edge 2 on: the fifth waits from 6 to now, edge 100.
TEST(gather_held_up, by_translation) {
  rig r;
  r.w.translates = false;
  for (unsigned i = 0; i < 6; ++i) r.start({{0x1000 + 64 * i, 64}});
  r.run(100);
  EXPECT_EQ(r.w.pushed.at(0), 1u);
  EXPECT_EQ(held_up(r, "ask"), "translation 94; ");
}

/// An address and a read in 40 cycles, and two reads of each address: from edge 162 on four are in the channel and one
/// waits, but for a cycle behind 200, 240, 280, 320 and 360, in which memory takes one.
TEST(gather_held_up, by_dma) {
  rig r;
  r.w.every = 40;
  for (unsigned i = 0; i < 8; ++i) r.start({{0x1ff0 + 4096 * i, 64}});
  r.run(400);
  EXPECT_EQ(r.w.read, (std::vector<cycle>{80, 120, 160, 200, 240, 280, 320, 360}));
  EXPECT_EQ(held_up(r, "read"), "dma 233; ");
}

/// 60 places in the channel behind, taken from edge 3 on: the next packet waits from 63 to now, edge 500.
TEST(gather_held_up, by_the_block_behind) {
  rig r;
  r.w.every = 1000;
  for (unsigned i = 0; i < 64; ++i) r.start({});
  r.run(500);
  EXPECT_EQ(held_up(r, "leave"), "icrc insert 437; ");
}

/// Its address, asked for at edge 2, is refused at 4; who asked is told at 5, sees it at 6, and says nothing until now,
/// edge 100.
TEST(gather_held_up, by_the_requester) {
  rig r;
  r.w.judges = false;
  r.start({{0x1000, 64}}, 0, 5, bad_key);
  r.run(100);
  EXPECT_EQ(r.w.events.at(0).first, 6u);
  EXPECT_EQ(held_up(r, "leave"), "payload 2; requester 95; ");
}

/// The only read port is its own in even cycles: four packets, accepted from edge 2 on, leave at 4, 6, 8 and 10.
TEST(gather_held_up, by_the_tables_read_port) {
  rig r(true);
  for (unsigned i = 0; i < 4; ++i) r.start({});
  r.run(100);
  ASSERT_EQ(r.w.frames.size(), 4u);
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(r.w.frames[i].first, 4 + 2 * i + pipeline);
  EXPECT_EQ(held_up(r, "leave"), "gid table 4; ");
}

/// Looked up at 3, refused at 5; who asked sees it at 6 and says so, at 7 it is withdrawn, and the one behind it, which
/// has no headers to be written, leaves at 8.
TEST(gather, packet_without_a_source_fails_when_its_look_up_is_over) {
  rig r;
  r.start({});
  r.w.starts.back().job.source.checked = true;
  r.start({}, 0, 6);
  r.run(100);
  ASSERT_EQ(r.w.events.size(), 2u);
  EXPECT_EQ(r.w.events[0].first, 6u);
  EXPECT_EQ(r.w.events[0].second.what, event_kind::failed);
  EXPECT_EQ(r.w.events[0].second.syndrome, 0x02);
  EXPECT_EQ(r.w.events[1].second.what, event_kind::withdrawn);
  ASSERT_EQ(r.w.frames.size(), 1u);
  EXPECT_EQ(r.w.frames[0].first, 8 + pipeline);
  EXPECT_EQ(r.count("source_gid.invalid"), 1u);
  EXPECT_EQ(r.count("source_gid.look_ups"), 2u);
}

TEST(withdrawals, a_write_is_seen_a_cycle_later) {
  transport::withdrawals w(18);
  w.write(7, {3, 9, 0}, 100);
  EXPECT_FALSE(w.read(7, 5, 100));
  EXPECT_TRUE(w.read(7, 5, 101));
  EXPECT_FALSE(w.read(7, 2, 101));
  EXPECT_FALSE(w.read(7, 9, 101));
  EXPECT_FALSE(w.read(8, 5, 101));
}

TEST(withdrawals, what_was_withdrawn_stays_so_as_long_as_it_is_one_range) {
  transport::withdrawals w(18);
  w.write(7, {0, 9, 0}, 100);
  w.write(7, {5, 12, 0}, 200);
  EXPECT_TRUE(w.read(7, 1, 201));
  EXPECT_TRUE(w.read(7, 11, 201));
  w.write(7, {20, 22, 0}, 300);
  EXPECT_FALSE(w.read(7, 11, 301));
  EXPECT_FALSE(w.read(7, 19, 301));
  EXPECT_TRUE(w.read(7, 21, 301));
}

/// What is complete stays withdrawn whatever a failure calls back, and the other way round.
TEST(withdrawals, of_complete_messages_and_of_failures_are_kept_apart) {
  transport::withdrawals w(18);
  w.write(7, {0, 0, 9}, 100);
  w.write(7, {20, 22, 0}, 200);
  w.write(7, {0, 0, 5}, 300);
  for (const std::uint64_t n : {0u, 4u, 8u, 20u, 21u}) EXPECT_TRUE(w.read(7, n, 301)) << n;
  for (const std::uint64_t n : {9u, 19u, 22u}) EXPECT_FALSE(w.read(7, n, 301)) << n;
  w.write(7, {0, 0, 21}, 400);
  EXPECT_TRUE(w.read(7, 10, 401));
  EXPECT_TRUE(w.read(7, 21, 401));
  EXPECT_FALSE(w.read(7, 22, 401));
}

}  // namespace
