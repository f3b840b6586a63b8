// SPDX-License-Identifier: Apache-2.0
// Everything arrives once and in order on a wire that loses packets, against a small responder of the test's own.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>

#include "model/transport/transport_cr.h"
#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
using wire::operation;

// Responder of IBA 9.7.5 in its simplest form: one expected PSN, one NAK per gap.
struct responder {
  bench::bench& b;
  std::mt19937 rng;
  unsigned loss_percent;
  std::size_t seen = 0;
  std::uint32_t expected = 0xfffffe;
  bool nak_sent = false;
  unsigned rnr = 0;  // of 100 SENDs
  std::vector<std::uint8_t> remote = std::vector<std::uint8_t>(0x10000);
  std::uint64_t at = 0;
  std::vector<std::vector<std::uint8_t>> sends{{}};
  std::uint32_t lost = 0;

  bool drop() { return rng() % 100 < loss_percent; }
  void answer(operation o, std::uint32_t psn, std::uint8_t syndrome, const std::vector<std::uint8_t>& bytes = {}) {
    if (drop())
      ++lost;
    else
      b.respond(o, psn, syndrome, bytes);
  }
  void step() {
    for (; seen < b.w.sent.size(); ++seen) {
      if (drop()) {
        ++lost;
        continue;
      }
      take(b.sent(seen), b.payload(seen));
    }
  }
  void take(const wire::packet& p, const std::vector<std::uint8_t>& bytes) {
    const std::int32_t ahead = p.bth.psn - wire::psn_t(expected);
    const auto op = wire::operation_of(p.bth.opcode);
    if (ahead > 0) {
      if (!nak_sent) answer(operation::acknowledge, expected, 0x60);
      nak_sent = true;
      return;
    }
    if (op == operation::read_request) return read(p);
    if (ahead < 0) return answer(operation::acknowledge, (expected - 1) & 0xffffff, 0x1f);
    const bool send = op <= operation::send_only_immediate;
    if (send && wire::traits(p.bth.opcode).first && rng() % 100 < rnr)
      return answer(operation::acknowledge, expected, 0x21);
    nak_sent = false;
    expected = (expected + 1) & 0xffffff;
    const wire::opcode_traits& t = wire::traits(p.bth.opcode);
    if (send) {
      sends.back().insert(sends.back().end(), bytes.begin(), bytes.end());
      if (t.last) sends.emplace_back();
    } else {
      if (t.reth) at = p.reth.va & 0xffff;
      std::memcpy(remote.data() + at, bytes.data(), bytes.size());
      at += bytes.size();
    }
    if (p.bth.ack_request) answer(operation::acknowledge, p.bth.psn.value(), 0x1f);
  }
  void read(const wire::packet& p) {
    const std::uint32_t n = (p.reth.length + 1023) / 1024;
    if (p.bth.psn.value() == expected) {
      nak_sent = false;
      expected = (expected + n) & 0xffffff;
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto first = remote.begin() + static_cast<std::ptrdiff_t>((p.reth.va & 0xffff) + i * 1024);
      const auto o = n == 1      ? operation::read_response_only
                     : i == 0    ? operation::read_response_first
                     : i + 1 < n ? operation::read_response_middle
                                 : operation::read_response_last;
      answer(o, (p.bth.psn.value() + i) & 0xffffff, 0x1f, {first, first + std::min(1024u, p.reth.length - i * 1024)});
    }
  }
};

void lossy(unsigned percent, unsigned rnr, unsigned seed, bench::setup s = {}, bool halts = false) {
  s.ack_timeout = 3;  // 33 us
  s.requester.turn_bytes = 3000;
  bench::bench b(s);
  responder r{b, std::mt19937(seed), percent};
  r.rnr = rnr;
  std::mt19937 rng(seed + 1);
  std::vector<std::uint8_t> kinds;
  std::vector<std::uint32_t> lengths;
  std::size_t sends = 0;
  while (kinds.size() < 150 || b.w.cqes.size() < kinds.size()) {
    while (kinds.size() < 150 && kinds.size() < b.w.cqes.size() + 12) {
      const auto kind = static_cast<unsigned>(rng() % 3);
      const auto length = static_cast<std::uint32_t>(rng() % 5000 + 1);
      if (kind == 0) b.post_send(length);
      if (kind == 1) b.post_write(length);
      if (kind == 2) b.post_read(length, bench::data + 0x10000);
      kinds.push_back(kind == 0 ? 0x4a : kind == 1 ? 0x48 : 0x50);
      lengths.push_back(length);
      sends += kind == 0;
      b.ring_doorbell();
    }
    const std::size_t before = b.w.sent.size();
    b.run_ns(500 + rng() % 3000);
    r.step();
    if (halts && rng() % 8 == 0) {
      b.dut.cr_write(transport::cr::qp_select, bench::qpn);
      b.dut.cr_write(transport::cr::qp_command, transport::cr::qp_command_halt);
      for (int i = 0; b.dut.cr_read(transport::cr::qp_status) != 0; ++i) {
        ASSERT_LT(i, 100);
        b.run_ns(100);
      }
      const std::size_t quiet = b.w.sent.size();
      b.run_ns(2000);
      ASSERT_EQ(b.w.sent.size(), quiet);
      b.dut.cr_write(transport::cr::qp_command, transport::cr::qp_command_release);
    }
    ASSERT_TRUE(b.w.errors.empty());
    ASSERT_LT(before, 20000u);
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    ASSERT_EQ(b.w.cqes[i].second.opcode, kinds[i]) << i;
    ASSERT_EQ(b.w.cqes[i].second.wqe_index, i);
  }
  ASSERT_EQ(r.sends.size(), sends + 1);
  std::size_t n = 0;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] != 0x4a) continue;
    ASSERT_EQ(r.sends[n].size(), lengths[i]);
    EXPECT_EQ(std::memcmp(r.sends[n++].data(), b.w.memory.data() + bench::data, lengths[i]), 0);
  }
  if (percent != 0) {
    EXPECT_GT(r.lost, 10u);
  }
}

TEST(loss, none) { lossy(0, 0, 1); }
TEST(loss, two_percent) { lossy(2, 0, 2); }
TEST(loss, ten_percent) { lossy(10, 0, 3); }
TEST(loss, receiver_not_ready) { lossy(0, 20, 4); }
TEST(loss, all_at_once) { lossy(5, 10, 5); }

TEST(loss, halted_and_released_all_the_time) { lossy(3, 5, 8, {}, true); }

TEST(loss, tables_of_few_entries) {
  bench::setup s;
  s.requester.outstanding_entries = 3;
  s.requester.scatter_lists = 1;
  s.requester.max_unacked_packets = 4;
  s.requester.gather_depth = 2;
  s.requester.scatter_jobs = 2;
  s.requester.egress_frames = 1;
  s.requester.credit_wait_cycles = 4;
  s.requester.turn_wqes = 1;
  lossy(4, 5, 6, s);
}

/// Makes so many QPs from the bench's context and rings for each of them.
void ring_for(bench::bench& b, std::uint32_t qps) {
  for (std::uint32_t q = 0; q < qps; ++q) {
    b.make_qp(0x100 + q);
    scheduler::send_doorbell d;
    d.qpn = 0x100 + q;
    d.uar = bench::own_uar;
    b.w.to_ring.push_back(d);
  }
  b.w.wake_next();
}

TEST(rates, engine_intervals_with_many_queue_pairs) {
  bench::setup s;
  s.memory_cycles = 60;
  s.requester.contexts.entries = 512;
  s.requester.miss_stall_cycles = 0;  // of the first look at each context
  bench::bench b(s);
  // 16 QPs share one ring image of unsignalled 4-byte inline WRITEs; only their contexts differ.
  for (int i = 0; i < 15; ++i) b.post({0x08, 3, 0, 0, 0x7f00, 0x5000, 0xabcd, 0, 0x80000004, 0x776f7264, 0, 0});
  b.context.type = icm::service::uc;
  ring_for(b, 16);
  b.run_ns(30000);
  ASSERT_EQ(b.w.sent.size(), 240u);
  const auto cycles = b.w.sent[150].first - b.w.sent[50].first;
  EXPECT_GE(cycles, 1300u);  // 13 cycles each: descriptors of 64 bytes from the ring
  EXPECT_LE(cycles, 1400u);
}

/// Cycles at which the second packets of four QPs come whose first ones are not answered.
std::vector<sim::cycle_t> repetitions(const bench::setup& s) {
  bench::bench b(s);
  b.post({0x08, 3, 0, 0, 0x7f00, 0x5000, 0xabcd, 0, 0x80000004, 0x776f7264, 0, 0});
  ring_for(b, 4);
  b.run_ns(60'000);
  std::vector<sim::cycle_t> at;
  for (std::size_t i = 4; i < b.w.sent.size() && i < 8; ++i) at.push_back(b.w.sent[i].first - b.w.sent[0].first);
  return at;
}

bench::setup with_timers(unsigned entries, std::uint32_t granularity_ps, unsigned expiry_cycles) {
  bench::setup s;
  s.ack_timeout = 1;  // 8.192 us
  s.retry_limit = 1;
  s.requester.timers.entries = entries;
  s.requester.timers.granularity_ps = granularity_ps;
  s.requester.timers.expiry_cycles = expiry_cycles;
  return s;
}

TEST(timers, that_end_together_are_served_one_after_the_other) {
  constexpr unsigned apart = 300;
  const auto at = repetitions(with_timers(64, 4'096'000, apart));  // all of them end at one multiple of it
  ASSERT_EQ(at.size(), 4u);
  for (std::size_t i = 1; i < at.size(); ++i) EXPECT_GE(at[i], at[i - 1] + apart);
  EXPECT_LT(at[3], at[0] + 4 * apart);
}

TEST(timers, that_find_no_entry_begin_when_another_has_ended) {
  constexpr sim::cycle_t timeout = 4096;  // cycles of 2 ns
  const auto at = repetitions(with_timers(2, 1000, 1));
  ASSERT_EQ(at.size(), 4u);
  EXPECT_LT(at[1], timeout + 500);
  EXPECT_GE(at[2], 2 * timeout);
  EXPECT_GE(at[3], at[2]);
}

TEST(rates, cost_of_a_packet) {
  bench::setup s;
  s.requester.egress_frames = 64;
  bench::bench b(s);
  b.w.keep_frames = false;
  for (int i = 0; i < 12; ++i) b.post({0x08, 3, 0, 0, 0x7f00, 0x5000, 0xabcd, 0, 0x300000, bench::good_key, 0, 0});
  b.ring_doorbell();
  const auto start = std::chrono::steady_clock::now();
  b.run_ns(10'000'000);
  const auto spent = std::chrono::steady_clock::now() - start;
  const std::size_t packets = b.w.taken;
  ASSERT_EQ(packets, 36864u);
  RecordProperty("ns_per_packet", static_cast<int>(spent.count() / static_cast<long>(packets)));
  std::printf("%zu packets, %ld ns of processor each, bench included\n", packets,
              static_cast<long>(spent.count()) / static_cast<long>(packets));
}

}  // namespace
