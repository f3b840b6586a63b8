// SPDX-License-Identifier: Apache-2.0
// How much of a send queue is read, and that no WQE is left lying there whenever its doorbell comes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "model/wire/bytes.h"
#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
using wire::operation;

/// A send queue whose SENDs carry its number and their own inline. All that is not posted is software's.
class queue {
 public:
  queue(bench::bench& b, std::uint32_t number, std::uint64_t at, std::uint8_t log_entries)
      : b_(b), number_(number), at_(at), mask_((1u << log_entries) - 1), log_(log_entries) {
    b.context.sq_address = at;
    b.context.log_sq_size = log_entries;
    b.make_qp(number);
    for (std::uint32_t i = 0; i <= mask_; ++i) slot(i)[0] = 0x80;
  }

  std::uint32_t posted() const { return posted_; }
  std::uint32_t messages() const { return messages_; }

  /// A SEND of `units` times 16 bytes of WQE: a control segment and pieces of 12 bytes.
  void post(unsigned units = 2) {
    std::vector<std::uint32_t> words{0x0a, units, 0xc, 0};
    for (unsigned i = 1; i < units; ++i)
      words.insert(words.end(), {0x8000000c, number_ << 16 | messages_, 0x11111111 * i, 0xeeeeeeee});
    post(std::move(words));
  }
  void post_read() {
    post({0x10, 3, 0xc, 0, 0x7f00, 0x5000, 0xabcd, 0, 8, bench::good_key, 0, static_cast<std::uint32_t>(bench::data)});
  }
  void post(std::vector<std::uint32_t> words) {
    if ((posted_ >> log_ & 1) != 0) words[0] |= 0x80000000;
    const std::uint32_t strides = (static_cast<std::uint32_t>(words.size()) + 15) / 16, end = posted_ + strides;
    slot(end)[0] = (end >> log_ & 1) != 0 ? 0 : 0x80;  // what is next is software's
    for (std::uint32_t i = 0; i < strides; ++i) {      // the ring may end inside
      std::uint8_t* const line = slot(posted_ + i);
      for (unsigned w = 0; w < 16; ++w)
        wire::store_be32(line + 4 * w, w + 16 * i < words.size() ? words[w + 16 * i] : 0);
    }
    last_ = slot(posted_);
    posted_ += strides;
    ++messages_;
  }

  void ring() {
    b_.w.to_ring.push_back(doorbell());
    b_.w.wake_next();
  }
  /// Rings with what was posted last.
  void blue_flame(payload::pool<scheduler::blueflame_wqe>& pool) {
    scheduler::send_doorbell d = doorbell();
    d.descriptor = pool.get();
    d.descriptor->length = 64;
    d.descriptor->index = static_cast<std::uint16_t>(posted_ - 1);
    std::memcpy(d.descriptor->bytes.data(), last_, 64);
    b_.w.to_ring.push_back(d);
    b_.w.wake_next();
  }
  std::uint8_t* slot(std::uint32_t index) { return b_.w.memory.data() + at_ + (index & mask_) * 64; }

 private:
  scheduler::send_doorbell doorbell() const {
    scheduler::send_doorbell d;
    d.qpn = number_;
    d.uar = bench::own_uar;
    return d;
  }

  bench::bench& b_;
  std::uint32_t number_;
  std::uint64_t at_;
  std::uint32_t mask_;
  std::uint8_t log_;
  std::uint32_t posted_ = 0, messages_ = 0;
  std::uint8_t* last_ = nullptr;
};

constexpr std::uint64_t rings = 0x100000, ring_distance = 0x4000;

bench::setup unreliable() {
  bench::setup s;
  s.type = icm::service::uc;  // complete when they have left
  return s;
}

/// Each of the messages of queue `number` was sent once and in order.
void expect_all(const bench::bench& b, std::uint32_t number, std::uint32_t messages) {
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < b.w.sent.size(); ++i) {
    const std::vector<std::uint8_t> payload = b.payload(i);
    if (payload.empty()) continue;  // a READ
    const std::uint32_t word = wire::load_be32(payload.data());
    if (word >> 16 != number) continue;
    ASSERT_EQ(word & 0xffff, next & 0xffff) << "of queue pair " << number;
    ++next;
  }
  EXPECT_EQ(next, messages) << "of queue pair " << number;
}

/// Bytes of send queue that `count` WQEs of `units` times 16 bytes cost, which one doorbell tells of.
std::uint64_t bytes_read(unsigned count, unsigned units, const bench::setup& s = unreliable()) {
  bench::bench b(s);
  queue q(b, bench::qpn, rings, 6);
  for (unsigned i = 0; i < count; ++i) q.post(units);
  q.ring();
  b.run_ns(10'000);
  expect_all(b, bench::qpn, count);
  return b.w.descriptors.read_bytes;
}

TEST(descriptors, a_write_of_29_bytes_reads_256_bytes_of_its_queue) {
  bench::bench b;
  b.post_write(29);
  b.ring_doorbell();
  b.run_ns(3000);
  EXPECT_EQ(b.w.sent.size(), 1u);
  EXPECT_EQ(b.w.descriptors.read_bytes, 256u);
  EXPECT_EQ(b.stats.value("descriptor_fetch.fetches"), 1u);
}

/// The first 256 bytes show where the queue ends: nothing behind them is read.
TEST(descriptors, two_wqes_of_64_bytes_are_one_read) { EXPECT_EQ(bytes_read(2, 4), 256u); }
TEST(descriptors, three_wqes_of_64_bytes_are_one_read) { EXPECT_EQ(bytes_read(3, 4), 256u); }
/// They fill 256 bytes: whether a fifth one is posted stands in the next.
TEST(descriptors, four_wqes_of_64_bytes_are_two_reads) { EXPECT_EQ(bytes_read(4, 4), 512u); }
TEST(descriptors, nine_wqes_of_128_bytes_are_1280_bytes_with_the_header_behind_them) {
  EXPECT_EQ(bytes_read(9, 8), 1280u);
}
/// They are 1 280 bytes, and no doorbell says how many WQEs there are: the eleventh header has to be read, and is read
/// with the 256 bytes that it begins.
TEST(descriptors, ten_wqes_of_128_bytes_are_1536_bytes) { EXPECT_EQ(bytes_read(10, 8), 1536u); }
/// The first read shows how long it is, the second has all of it, the third the header behind it.
TEST(descriptors, a_wqe_of_512_bytes_is_read_again_once) { EXPECT_EQ(bytes_read(1, 32), 256u + 512 + 256); }
TEST(descriptors, a_wqe_of_512_bytes_behind_another_is_read_again_once) {
  bench::bench b(unreliable());
  queue q(b, bench::qpn, rings, 6);
  q.post(4);
  q.post(32);  // 192 bytes with the one before it, 256 read ahead
  q.ring();
  b.run_ns(10'000);
  expect_all(b, bench::qpn, 2);
  EXPECT_EQ(b.w.descriptors.read_bytes, 512u + 512 + 256);
}

TEST(descriptors, a_long_wqe_is_not_taken_for_one_that_is_not_finished) {
  bench::setup s = unreliable();
  s.requester.stamp_retries = 1;
  EXPECT_EQ(bytes_read(1, 32, s), 256u + 512 + 256);
}

/// A turn may end behind each WQE, and the next one has no doorbell: what was read for the first serves all.
TEST(descriptors, turns_without_a_doorbell_between_them_read_once) {
  bench::setup s = unreliable();
  s.requester.turn_wqes = 1;
  EXPECT_EQ(bytes_read(3, 4, s), 256u);
}

/// The ring is as long as a read: behind its last entry comes its first.
TEST(descriptors, a_ring_as_long_as_a_read_goes_round) {
  bench::setup s = unreliable();
  s.requester.prefetch_bytes = 1024;
  bench::bench b(s);
  queue q(b, bench::qpn, rings, 4);
  for (unsigned i = 0; i < 20; ++i) {
    for (unsigned n = 0; n < 15; ++n) q.post();
    q.ring();
    b.run_ns(8000);
    ASSERT_EQ(b.w.sent.size(), q.messages()) << i;
  }
  expect_all(b, bench::qpn, q.messages());
}

/// The ring ends behind its 16th entry: the second one of these is read from both of its ends.
TEST(descriptors, a_read_over_the_end_of_the_ring_has_as_many_bytes) {
  bench::bench b(unreliable());
  queue q(b, bench::qpn, rings, 4);
  for (unsigned i = 0; i < 40; ++i) {
    q.post();
    q.ring();
    b.run_ns(2000);
    ASSERT_EQ(b.w.descriptors.read_bytes, 256u * (i + 1)) << i;
  }
  expect_all(b, bench::qpn, 40);
}

/// A WQE is posted, and another one `delay` cycles later, for every cycle of the first one's turn: whatever was read of
/// the queue by then, both are executed. No more is read than once for each doorbell.
void expect_no_lost_doorbell(bool samples_early, void (*second)(queue&, payload::pool<scheduler::blueflame_wqe>&)) {
  payload::pool<scheduler::blueflame_wqe> pool;
  bench::bench b(unreliable());
  b.w.samples_early = samples_early;
  queue q(b, bench::qpn, rings, 4);
  constexpr unsigned cycle_ns = 2;
  for (unsigned delay = 0; delay < 400; ++delay) {
    const std::uint64_t before = b.w.descriptors.read_bytes;
    q.post();
    q.ring();
    b.run_ns(delay * cycle_ns);
    second(q, pool);
    b.run_ns(3000);
    ASSERT_EQ(b.w.sent.size(), q.messages()) << delay << " cycles";
    ASSERT_EQ(b.w.cqes.size(), q.messages()) << delay << " cycles";
    ASSERT_LE(b.w.descriptors.read_bytes - before, 512u) << delay << " cycles";
  }
  expect_all(b, bench::qpn, q.messages());
}

void by_doorbell(queue& q, payload::pool<scheduler::blueflame_wqe>&) {
  q.post();
  q.ring();
}
void by_blue_flame(queue& q, payload::pool<scheduler::blueflame_wqe>& pool) {
  q.post();
  q.blue_flame(pool);
}

TEST(descriptors, a_doorbell_in_any_cycle_of_a_turn_is_not_lost) { expect_no_lost_doorbell(false, by_doorbell); }
TEST(descriptors, a_doorbell_in_any_cycle_is_not_lost_when_reads_are_old) {
  expect_no_lost_doorbell(true, by_doorbell);
}
TEST(descriptors, a_blue_flame_doorbell_in_any_cycle_of_a_turn_is_not_lost) {
  expect_no_lost_doorbell(false, by_blue_flame);
}
TEST(descriptors, a_blue_flame_doorbell_in_any_cycle_is_not_lost_when_reads_are_old) {
  expect_no_lost_doorbell(true, by_blue_flame);
}

/// First by BlueFlame, whose turn reads nothing, then by a doorbell.
TEST(descriptors, a_doorbell_in_any_cycle_of_a_blue_flame_turn_is_not_lost) {
  payload::pool<scheduler::blueflame_wqe> pool;
  bench::bench b(unreliable());
  b.w.samples_early = true;
  queue q(b, bench::qpn, rings, 4);
  for (unsigned delay = 0; delay < 300; ++delay) {
    q.post();
    q.blue_flame(pool);
    b.run_ns(delay * 2);
    q.post();
    q.ring();
    b.run_ns(3000);
    ASSERT_EQ(b.w.sent.size(), q.messages()) << delay << " cycles";
  }
  expect_all(b, bench::qpn, q.messages());
}

/// Read with the WQE in front of it, which is executed: the queue does not end there.
TEST(descriptors, a_wqe_that_is_not_finished_behind_another_is_read_until_it_is) {
  bench::bench b(unreliable());
  queue q(b, bench::qpn, rings, 6);
  q.post();
  q.post(8);
  std::uint8_t* const second_line = q.slot(2);
  std::array<std::uint8_t, 4> whole{};
  std::memcpy(whole.data(), second_line, 4);
  std::memset(second_line, 0xff, 4);
  q.ring();
  b.run_ns(1500);
  EXPECT_EQ(b.w.sent.size(), 1u);
  EXPECT_NE(b.stats.value("requester.stamped_wqes"), 0u);
  std::memcpy(second_line, whole.data(), 4);
  b.run_ns(2000);
  expect_all(b, bench::qpn, 2);
}

/// In every cycle of the turn that executes the third of them, the peer asks for the two before it again.
TEST(descriptors, a_retransmission_in_any_cycle_of_a_turn_loses_nothing) {
  bench::bench b;
  b.w.samples_early = true;
  std::uint32_t psn = b.context.next_psn;
  for (unsigned delay = 0; delay < 400; ++delay) {
    const std::size_t completed = b.w.cqes.size();
    b.post_write(10);
    b.post_write(10);
    b.ring_doorbell();
    b.run_ns(2000);
    b.post_write(10);
    b.ring_doorbell();
    b.run_ns(delay * 2);
    b.respond(operation::acknowledge, psn, 0x60);
    b.run_ns(3000);
    psn = (psn + 3) & 0xffffff;
    EXPECT_EQ(b.sent(b.w.sent.size() - 1).bth.psn.value(), (psn - 1) & 0xffffff) << delay << " cycles";
    b.ack((psn - 1) & 0xffffff);
    b.run_ns(1000);
    ASSERT_EQ(b.w.cqes.size(), completed + 3) << delay << " cycles";
  }
}

/// Its WQE lies in the unit's buffer, and no doorbell has come since: nothing is read.
TEST(descriptors, a_retransmission_of_what_is_on_chip_reads_nothing) {
  bench::bench b;
  b.post_write(10);
  b.ring_doorbell();
  b.run_ns(2000);
  for (unsigned i = 0; i < 5; ++i) {
    b.respond(operation::acknowledge, b.context.next_psn, 0x21);  // receiver not ready: 10 us
    b.run_ns(20'000);
    ASSERT_EQ(b.w.sent.size(), 2u + i);
    EXPECT_EQ(b.w.descriptors.read_bytes, 256u);
  }
  b.post_write(10);  // the header behind it was software's when it was read
  b.ring_doorbell();
  b.run_ns(2000);
  EXPECT_EQ(b.w.sent.size(), 7u);
  EXPECT_EQ(b.w.descriptors.read_bytes, 512u);
}

/// The queue pair's WQEs lie in the buffers of two units. One of them executes two READs and stops in front of the
/// third, of which the other has read no more than that it was not posted. When an answer lets the queue pair go on,
/// that other one may get it, and no doorbell comes again.
TEST(descriptors, what_another_unit_read_before_the_last_doorbell_does_not_end_a_turn) {
  payload::pool<scheduler::blueflame_wqe> pool;
  bench::setup s = unreliable();
  s.requester.processing_units = 2;
  s.requester.prefetch_bytes = 1024;
  bench::bench b(s);
  queue first(b, 0x51, rings, 4), second(b, 0x52, rings + ring_distance, 4);
  b.context.type = icm::service::rc;
  queue q(b, bench::qpn, rings + 2 * ring_distance, 6);
  const auto hold_a_unit = [&](queue& by) {  // for some 85 cycles; what is in its buffer stays
    by.post();
    by.blue_flame(pool);
  };
  std::uint32_t psn = b.context.next_psn;
  const auto answer = [&](std::uint32_t read) {
    b.respond(operation::read_response_only, (psn + 1 + read) & 0xffffff, 0x1f, std::vector<std::uint8_t>(8));
    b.run_ns(3000);
  };
  for (unsigned delay = 0; delay < 160; ++delay) {
    const std::size_t completed = b.w.cqes.size();
    q.post();
    q.ring();
    b.run_ns(2000);
    b.ack(psn);
    hold_a_unit(first);
    b.run_ns(20);
    for (unsigned i = 0; i < 3; ++i) q.post_read();
    q.ring();
    b.run_ns(2000);
    hold_a_unit(first);
    b.run_ns(120);
    hold_a_unit(second);
    b.run_ns(delay * 2);
    for (std::uint32_t i = 0; i < 3; ++i) answer(i);
    ASSERT_EQ(b.w.cqes.size(), completed + 4 + 3) << delay << " cycles";
    psn = (psn + 4) & 0xffffff;
  }
}

/// Memory takes longer than two READs, and a third may not be under way: the turn ends while the next four WQEs come.
/// The only unit takes another queue pair, whose WQE is read behind them; they are nobody's, and read again later.
TEST(descriptors, what_is_read_ahead_does_not_hold_the_unit_when_a_turn_ends) {
  payload::pool<scheduler::blueflame_wqe> pool;
  bench::setup s;
  s.requester.processing_units = 1;
  s.memory_cycles = 800;
  bench::bench b(s);
  queue reads(b, bench::qpn, rings, 6);
  b.context.type = icm::service::uc;
  queue other(b, 0x51, rings + ring_distance, 6), third(b, 0x52, rings + 2 * ring_distance, 6);
  third.post();
  third.ring();  // its context is on chip from here on
  b.run_ns(6000);
  ASSERT_EQ(b.w.sent.size(), 1u);
  for (unsigned i = 0; i < 6; ++i) reads.post_read();
  reads.ring();
  ASSERT_TRUE(b.run_until_sent(3)) << "and two READs";
  b.run_ns(100);
  ASSERT_EQ(b.w.sent.size(), 3u);
  EXPECT_EQ(b.stats.value("descriptor_fetch.fetches"), 3u);
  third.post();
  third.blue_flame(pool);
  b.run_ns(300);
  EXPECT_EQ(b.w.sent.size(), 4u) << "while the other's WQEs are on their way";
  other.post();
  other.ring();
  b.run_ns(20'000);
  EXPECT_EQ(b.w.sent.size(), 5u);
  EXPECT_EQ(b.stats.value("requester.late_descriptors"), 0u) << "they came while the context was read";
  std::uint32_t psn = b.context.next_psn;
  for (unsigned i = 0; i < 6; ++i) {
    b.respond(operation::read_response_only, (psn + i) & 0xffffff, 0x1f, std::vector<std::uint8_t>(8));
    b.run_ns(6000);
  }
  EXPECT_EQ(b.w.cqes.size(), 3u + 6);
  expect_all(b, 0x51, 1);
  expect_all(b, 0x52, 2);
}

/// The same, and the unit needs its memory before they have come.
TEST(descriptors, what_is_read_ahead_and_comes_late_is_nobodys) {
  bench::setup s;
  s.requester.processing_units = 1;
  s.memory_cycles = 800;
  bench::bench b(s);
  queue reads(b, bench::qpn, rings, 6);
  b.context.type = icm::service::uc;
  queue other(b, 0x51, rings + ring_distance, 6);
  other.post();
  other.ring();
  b.run_ns(6000);
  for (unsigned i = 0; i < 6; ++i) reads.post_read();
  reads.ring();
  ASSERT_TRUE(b.run_until_sent(3));
  b.run_ns(100);
  ASSERT_EQ(b.w.sent.size(), 3u);
  other.post();
  other.ring();
  b.run_ns(10'000);
  EXPECT_EQ(b.w.sent.size(), 4u);
  EXPECT_EQ(b.stats.value("requester.late_descriptors"), 1u);
  EXPECT_EQ(b.stats.value("descriptor_fetch.cut"), 1u);
  std::uint32_t psn = b.context.next_psn;
  for (unsigned i = 0; i < 6; ++i) {
    b.respond(operation::read_response_only, (psn + i) & 0xffffff, 0x1f, std::vector<std::uint8_t>(8));
    b.run_ns(6000);
  }
  EXPECT_EQ(b.w.cqes.size(), 2u + 6);
  expect_all(b, 0x51, 2);
}

/// Queue pairs take the units from each other while software posts and rings, with and without BlueFlame, at any time.
void expect_all_of_many(unsigned units, unsigned prefetch, unsigned seed) {
  payload::pool<scheduler::blueflame_wqe> pool;
  bench::setup s = unreliable();
  s.requester.processing_units = units;
  s.requester.prefetch_bytes = prefetch;
  s.memory_cycles = 60;
  bench::bench b(s);
  std::mt19937 generator(seed);
  const auto random = [&] { return static_cast<unsigned>(generator()); };
  b.w.samples_early = random() % 2 != 0;
  std::vector<queue> queues;
  for (unsigned i = 0; i < 4; ++i) queues.emplace_back(b, 0x40 + i, rings + i * ring_distance, 6);
  for (unsigned i = 0; i < 1500; ++i) {
    queue& q = queues[random() % queues.size()];
    const unsigned burst = 1 + random() % 3;
    for (unsigned n = 0; n < burst; ++n) q.post(2 + random() % 10);
    q.post();
    if (random() % 3 == 0)
      q.blue_flame(pool);
    else
      q.ring();
    b.run_ns(random() % 800);
    while (b.w.sent.size() + 8 < queues[0].messages() + queues[1].messages() + queues[2].messages() +
                                     queues[3].messages()) {  // the rings have room for so many
      const std::size_t before = b.w.sent.size();
      b.run_ns(4000);
      ASSERT_NE(b.w.sent.size(), before) << "stands still at " << i;
    }
  }
  b.run_ns(20'000);
  for (unsigned i = 0; i < 4; ++i) expect_all(b, 0x40 + i, queues[i].messages());
}

TEST(descriptors, four_queue_pairs_on_one_unit_lose_nothing) { expect_all_of_many(1, 256, 1); }
TEST(descriptors, four_queue_pairs_on_two_units_lose_nothing) { expect_all_of_many(2, 256, 2); }
TEST(descriptors, four_queue_pairs_on_three_units_lose_nothing) { expect_all_of_many(3, 64, 3); }
TEST(descriptors, four_queue_pairs_with_long_reads_lose_nothing) { expect_all_of_many(2, 1024, 4); }
TEST(descriptors, four_queue_pairs_with_reads_of_any_length_lose_nothing) { expect_all_of_many(8, 200, 5); }

}  // namespace
