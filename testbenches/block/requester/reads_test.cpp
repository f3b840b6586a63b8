// SPDX-License-Identifier: Apache-2.0
// Many READs under way, on a wire that loses packets, at a peer that answers one after the other and takes its time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <set>

#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
using wire::operation;

constexpr std::uint32_t packet = 1024;

/// As Soft-RoCE: requests wait in a queue, repeated ones too, and nothing in it is given up.
struct slow_peer {
  slow_peer(bench::bench& bench, unsigned seed, unsigned percent) : b(bench), rng(seed), loss_percent(percent) {}
  bench::bench& b;
  std::mt19937 rng;
  unsigned loss_percent;
  std::size_t seen = 0;
  std::uint32_t expected = 0xfffffe, wanted = 0xfffffe, to_lose = ~0u;  // the last: an answer, by PSN
  bool nak_sent = false;
  struct read {
    std::uint32_t psn, offset, left;
    bool begun;
  };
  std::deque<read> queue;
  std::set<std::uint32_t> open;  // last PSNs of READs on the wire that were not answered to the end
  std::size_t most_open = 0, requests = 0, answers = 0;

  bool lost() { return rng() % 100 < loss_percent; }
  static std::uint8_t byte_at(std::uint32_t offset) { return static_cast<std::uint8_t>(offset * 11 + (offset >> 8)); }

  void listen() {
    for (; seen < b.w.sent.size(); ++seen) {
      const wire::packet p = b.sent(seen);
      if (wire::operation_of(p.bth.opcode) != operation::read_request) continue;
      const std::uint32_t psn = p.bth.psn.value(), n = (p.reth.length + packet - 1) / packet;
      ++requests;
      if (wire::psn_t(psn).before(wire::psn_t(wanted))) wanted = psn;  // it did not take what came before its time
      open.insert((psn + n - 1) & 0xffffff);
      most_open = std::max(most_open, open.size());
      if (!lost()) take(p, psn, n);
    }
  }
  void take(const wire::packet& p, std::uint32_t psn, std::uint32_t n) {
    const std::int32_t ahead = wire::psn_t(psn) - wire::psn_t(expected);
    if (ahead > 0) {
      if (!nak_sent && !lost()) b.respond(operation::acknowledge, expected, 0x60);
      nak_sent = true;
      return;
    }
    if (ahead == 0) {
      nak_sent = false;
      expected = (expected + n) & 0xffffff;
    }
    queue.push_back({psn, static_cast<std::uint32_t>(p.reth.va - 0x7f0000000000), p.reth.length, false});
  }
  /// One packet of the answer to the oldest request.
  void answer() {
    if (queue.empty()) return;
    read& r = queue.front();
    const std::uint32_t n = std::min(packet, r.left);
    std::vector<std::uint8_t> bytes(n);
    for (std::uint32_t i = 0; i < n; ++i) bytes[i] = byte_at(r.offset + i);
    const bool last = n == r.left;
    ++answers;
    const operation o = last && !r.begun ? operation::read_response_only
                        : !r.begun       ? operation::read_response_first
                        : last           ? operation::read_response_last
                                         : operation::read_response_middle;
    if (r.psn == to_lose)
      to_lose = ~0u;
    else if (!lost())
      deliver(o, r.psn, bytes);
    r.begun = true;
    r.psn = (r.psn + 1) & 0xffffff;
    r.offset += n;
    r.left -= n;
    if (last) queue.pop_front();
  }
  /// The requester takes answers in order only.
  void deliver(operation o, std::uint32_t psn, const std::vector<std::uint8_t>& bytes) {
    if (psn == wanted) {
      wanted = (wanted + 1) & 0xffffff;
      open.erase(psn);
    }
    b.respond(o, psn, 0x1f, bytes);
  }
};

struct reads : bench::bench {
  reads(const ::bench::setup& s, std::uint8_t log_depth) : bench(s) {
    context.log_max_rd_atomic = log_depth;
    make_qp(::bench::qpn);
  }
  std::uint32_t post(std::uint32_t offset, std::uint32_t length) {
    return bench::post({0x10, 3, 0xc, 0, 0x7f00, offset, 0xabcd, 0, length, ::bench::good_key, 0,
                        static_cast<std::uint32_t>(::bench::data + offset)});
  }
  void expect_data(std::uint32_t bytes) const {
    for (std::uint32_t i = 0; i < bytes; ++i) ASSERT_EQ(w.memory[::bench::data + i], slow_peer::byte_at(i)) << i;
  }
};

::bench::setup with_timer(std::uint8_t code) {
  ::bench::setup s;
  s.ack_timeout = code;
  return s;
}

TEST(reads, one_lost_answer_of_many_that_take_longer_than_all_retries) {
  reads b(with_timer(3), 7);  // 33 us, 7 retries
  slow_peer peer(b, 1, 0);
  peer.to_lose = 0;
  constexpr std::uint32_t many = 15, length = 8 * packet;
  for (std::uint32_t i = 0; i < many; ++i) b.post(i * length, length);
  b.ring_doorbell();
  for (unsigned us = 0; us < 3000 && b.w.cqes.size() < many; us += 3) {
    b.run_ns(3000);  // a packet: all answers take 360 us
    peer.listen();
    peer.answer();
  }
  ASSERT_EQ(b.w.cqes.size(), many);
  for (const auto& [at, e] : b.w.cqes) EXPECT_EQ(e.opcode, 0x50);
  b.expect_data(many * length);
  EXPECT_LE(peer.requests, 2 * many);  // none of the others was asked for more than once again
}

/// `packets`: of a READ. The peer answers one in a microsecond. `times`: the answers that it may make, of those that
/// there would be without a loss. Asked for alone, a READ of 64 takes 2.1 times its answers at 5 %, and 3.4 at 9 %.
void lossy_reads(unsigned percent, std::uint8_t log_depth, unsigned seed, std::uint32_t packets = 4,
                 unsigned times = 4) {
  reads b(with_timer(4), log_depth);  // 66 us
  slow_peer peer(b, seed, percent);
  constexpr std::uint32_t many = 200;
  const std::uint32_t length = (packets - 1) * packet + 100;
  std::uint32_t posted = 0;
  for (unsigned us = 0; us < 300'000 && b.w.cqes.size() < many; ++us) {
    const bool room = posted < many && posted < b.w.cqes.size() + 14;
    for (; posted < many && posted < b.w.cqes.size() + 14; ++posted) b.post(posted % 16 * length, length);
    if (room) b.ring_doorbell();
    b.run_ns(1000);
    peer.listen();
    peer.answer();
    ASSERT_TRUE(b.w.errors.empty()) << b.w.cqes.size();
  }
  ASSERT_EQ(b.w.cqes.size(), many);
  for (const auto& [at, e] : b.w.cqes) ASSERT_EQ(e.opcode, 0x50);
  b.expect_data(16 * length);
  EXPECT_LE(peer.most_open, std::size_t{1} << log_depth);
  EXPECT_LE(peer.answers, times * packets * many) << "answers that are thrown away";
  if (percent != 0) {
    EXPECT_GT(b.stats.value("requester.retransmissions"), 3u);
  }
}

std::uint64_t read_engine_cycles(const ::bench::bench& b) {
  for (const sim::server* s : b.core.servers())
    if (s->name() == "read_engine.turns") return s->busy_cycles();
  throw std::runtime_error("no READ engine");
}

/// The request takes the engine for 19 cycles, 16 of them for a response. That takes 5 for itself, 8 for each piece of
/// 256 bytes and one for each 32 bytes. Of three packets, the first takes 5 + 4 * 8 + 32 in all, the second as much
/// again, and the third, of 952 bytes, 5 + 4 * 8 + 30.
TEST(reads, a_response_takes_the_engine_for_its_pieces_and_bytes) {
  reads b({}, 7);
  slow_peer peer(b, 1, 0);
  const auto cycles_of = [&](std::uint32_t length) {
    const std::size_t done = b.w.cqes.size() + 1;
    const auto before = read_engine_cycles(b);
    b.post(0, length);
    b.ring_doorbell();
    for (unsigned us = 0; us < 100 && b.w.cqes.size() < done; ++us) {
      b.run_ns(1000);
      peer.listen();
      peer.answer();
    }
    EXPECT_EQ(b.w.cqes.size(), done);
    return read_engine_cycles(b) - before;
  };
  cycles_of(64);  // its context was missing
  EXPECT_EQ(cycles_of(64), 19u);
  EXPECT_EQ(cycles_of(3 * 32), 19u);
  EXPECT_EQ(cycles_of(3 * 32 + 1), 20u);
  EXPECT_EQ(cycles_of(256), 3u + 5 + 8 + 8);
  EXPECT_EQ(cycles_of(257), 3u + 5 + 2 * 8 + 9);
  EXPECT_EQ(cycles_of(512), 3u + 5 + 2 * 8 + 16);
  EXPECT_EQ(cycles_of(513), 3u + 5 + 3 * 8 + 17);
  EXPECT_EQ(cycles_of(3000), 3u + 69 + 69 + 67);
}

TEST(reads, one_at_a_time) { lossy_reads(0, 0, 1); }
TEST(reads, eight_at_a_time) { lossy_reads(0, 3, 1); }
TEST(reads, one_percent_lost) { lossy_reads(1, 3, 2); }
TEST(reads, five_percent_lost) { lossy_reads(5, 3, 3); }
TEST(reads, nine_percent_lost) { lossy_reads(9, 3, 4); }
TEST(reads, nine_percent_lost_of_as_many_as_there_can_be) { lossy_reads(9, 7, 5); }
TEST(reads, five_percent_lost_of_long_ones) { lossy_reads(5, 7, 6, 64); }
TEST(reads, nine_percent_lost_of_long_ones) { lossy_reads(9, 7, 7, 64, 6); }

}  // namespace
