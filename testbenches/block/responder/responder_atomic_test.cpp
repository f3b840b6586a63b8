// SPDX-License-Identifier: Apache-2.0
// Atomics: answers, repetition from the resources, locks, refusals.
#include "testbenches/block/responder/bench.h"

namespace rnic::transport::test {
namespace {

using wire::operation;

struct atomic_bench : bench {
  explicit atomic_bench(const responder_config& cfg = {}) : bench({}, cfg) {
    icm::responder_context c = context();
    c.access |= icm::responder_access_atomic;
    c.log_max_rd_atomic = 4;
    put(c);
  }
  void add(std::uint32_t psn, std::uint64_t addend = 1, std::uint64_t va = aligned_va, std::uint32_t key = rkey) {
    send(operation::fetch_add, psn, {}, [&](wire::packet& p) { p.atomic = {va, key, addend, 0, 0, 0}; });
  }
  std::uint64_t word(std::uint64_t offset = 0) const {
    std::uint64_t v = 0;
    for (unsigned i = 8; i-- != 0;) v = v << 8 | s.memory[data_bus + 0x128 + offset + i];
    return v;
  }
  unsigned atomic_writes() const {
    unsigned n = 0;
    for (const pcie::dma_request& w : s.writes) n += w.length == 8 ? 1 : 0;
    return n;
  }
};

TEST(responder_atomic, answer_has_what_was_there) {
  atomic_bench b;
  b.s.memory[data_bus + 0x128] = 0x34;
  b.s.memory[data_bus + 0x128 + 7] = 0x12;  // the host's most significant byte
  b.add(100, 2);
  b.send(operation::compare_swap, 101, {},
         [](wire::packet& p) { p.atomic = {aligned_va, rkey, 0xfeed, 0x1200'0000'0000'0036, 0, 0}; });
  b.send(operation::compare_swap, 102, {}, [](wire::packet& p) { p.atomic = {aligned_va, rkey, 1, 2, 0, 0}; });
  b.run();
  ASSERT_EQ(b.s.answers.size(), 3u);
  const std::uint64_t originals[] = {0x1200'0000'0000'0034, 0x1200'0000'0000'0036, 0xfeed};
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(b.s.answers[i]->bth.opcode, 0x12);
    EXPECT_EQ(b.s.answers[i]->bth.psn.value(), 100 + i);
    EXPECT_EQ(b.s.answers[i]->aeth.syndrome, 0x1f);
    EXPECT_EQ(b.s.answers[i]->aeth.msn, i + 1);
    EXPECT_EQ(b.s.answers[i]->atomic_original, originals[i]);
  }
  EXPECT_EQ(b.word(), 0xfeedu);
}

TEST(responder_atomic, repetitions_are_answered_and_not_executed) {
  atomic_bench b;
  for (std::uint32_t n = 0; n < 20; ++n) {  // more than the sixteen that are kept
    b.add(100 + n, 1);
    b.run(1000);
  }
  ASSERT_EQ(b.s.answers.size(), 20u);
  EXPECT_EQ(b.word(), 20u);
  const unsigned writes = b.atomic_writes();
  for (std::uint32_t n = 0; n < 20; ++n) {
    b.add(100 + n, 1);
    b.run(1000);
  }
  ASSERT_EQ(b.s.answers.size(), 36u) << "the four oldest are forgotten, the others are answered";
  for (unsigned n = 0; n < 16; ++n) {
    EXPECT_EQ(b.s.answers[20 + n]->bth.psn.value(), 104 + n);
    EXPECT_EQ(b.s.answers[20 + n]->atomic_original, 4u + n);
    EXPECT_EQ(b.s.answers[20 + n]->aeth.msn, 20u);
  }
  EXPECT_EQ(b.count("drop.duplicate_atomic"), 4u);
  EXPECT_EQ(b.word(), 20u);
  EXPECT_EQ(b.atomic_writes(), writes);
}

/// The answers outlive the chip: a QP whose history was replaced is still answered.
TEST(responder_atomic, history_lives_in_host_memory) {
  responder_config cfg;
  cfg.histories.entries = cfg.histories.ways = 2;
  atomic_bench b(cfg);
  b.add(100, 1);
  b.run();
  for (std::uint32_t n = 1; n < 4; ++n) {
    icm::responder_context other = b.context();
    other.qpn = qpn + n;
    other.access |= icm::responder_access_atomic;
    b.put(other);
    b.send(operation::fetch_add, 100, {}, [n](wire::packet& p) {
      p.atomic = {aligned_va, rkey, 1, 0, 0, 0};
      p.bth.dest_qp = qpn + n;
    });
    b.run();
  }
  EXPECT_GT(b.count("histories.replaced_dirty"), 0u);
  b.add(100, 1);
  b.run();
  ASSERT_EQ(b.s.answers.size(), 5u);
  EXPECT_EQ(b.s.answers[4]->atomic_original, 0u);
  EXPECT_EQ(b.word(), 4u);
}

/// Cycles from the first to the last of eight answers, four for each of two queue pairs, words `distance` apart.
sim::cycle_t cycles_of_two(unsigned locks, std::uint64_t distance) {
  responder_config cfg;
  cfg.atomics.in_flight = 16;
  cfg.atomics.lock_buckets = locks;
  atomic_bench b(cfg);
  icm::responder_context other = b.context();
  other.qpn = 0x49;
  other.access |= icm::responder_access_atomic;
  other.log_max_rd_atomic = 4;
  b.put(other);
  for (std::uint32_t n = 0; n < 4; ++n) {
    b.add(100 + n);
    b.send(operation::fetch_add, 100 + n, {}, [&](wire::packet& p) {
      p.atomic = {aligned_va + distance, rkey, 1, 0, 0, 0};
      p.bth.dest_qp = 0x49;
    });
  }
  b.run(20000);
  EXPECT_EQ(b.s.answers.size(), 8u);
  EXPECT_EQ(b.word(), distance == 0 ? 8u : 4u);
  return b.s.answers.back().at - b.s.answers.front().at;
}
constexpr sim::cycle_t one_operation = 130 + 26;  // memory's answer, the lock's time

TEST(responder_atomic, one_lock_serialises_all) { EXPECT_GE(cycles_of_two(1, 64), 7 * one_operation); }
TEST(responder_atomic, many_locks_serialise_one_word) { EXPECT_GE(cycles_of_two(4096, 0), 7 * one_operation); }
TEST(responder_atomic, many_locks_leave_other_words_alone) { EXPECT_LE(cycles_of_two(4096, 64), 4 * one_operation); }

TEST(responder_atomic, order_in_a_queue_pair_needs_no_lock) {
  responder_config cfg;
  cfg.atomics.in_flight = 16;
  cfg.atomics.lock_buckets = 4096;
  atomic_bench b(cfg);
  for (std::uint32_t n = 0; n < 8; ++n) b.add(100 + n, 1, aligned_va + n * 64);
  b.run(20000);
  ASSERT_EQ(b.s.answers.size(), 8u);
  EXPECT_GE(b.s.answers.back().at - b.s.answers.front().at, 7 * one_operation);
  for (unsigned n = 0; n < 8; ++n) EXPECT_EQ(b.s.answers[n]->bth.psn.value(), 100 + n);
}

/// An atomic's answer does not overtake the responses to a READ before it that begins again; it is executed once.
TEST(responder_atomic, answers_wait_for_reads_that_begin_again) {
  atomic_bench b;
  b.read(100, data_va, 4096);
  b.read(104, data_va + 4096, 4096);
  b.add(108, 5);
  while (b.s.answers.size() < 6) b.run(20);
  b.read(101, data_va + 1024, 3072);
  b.run(6000);
  const std::size_t n = b.s.answers.size();
  ASSERT_GE(n, 14u);
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(b.s.answers[n - 8 + i]->bth.psn.value(), 101 + i);
  EXPECT_EQ(b.s.answers.back()->bth.opcode, 0x12);
  EXPECT_EQ(b.s.answers.back()->atomic_original, 0u);
  EXPECT_EQ(b.word(), 5u);
}

TEST(responder_atomic, repeated_answers_go_before_reads_behind_them) {
  atomic_bench b;
  b.add(100, 5);
  b.read(101, data_va, 8192);
  while (b.s.answers.size() < 3) b.run(20);
  ASSERT_LT(b.s.answers.size(), 9u);
  b.add(100, 5);
  b.run(6000);
  const std::size_t n = b.s.answers.size();
  ASSERT_GE(n, 12u);
  for (unsigned i = 0; i < 9; ++i) EXPECT_EQ(b.s.answers[n - 9 + i]->bth.psn.value(), 100 + i);
  EXPECT_EQ(b.s.answers[n - 9]->bth.opcode, 0x12);
  EXPECT_EQ(b.s.answers[n - 8]->bth.opcode, 0x0d);
  EXPECT_EQ(b.word(), 5u);
}

TEST(responder_atomic, refusals) {
  struct refusal {
    std::uint64_t va;
    std::uint32_t key;
    bool enabled;
    std::uint8_t syndrome, event;
  };
  const refusal cases[] = {{aligned_va + 1, rkey, true, 0x61, 0x10}, {aligned_va + 4, rkey, true, 0x61, 0x10},
                           {aligned_va, rkey, false, 0x61, 0x10},    {aligned_va, read_only_key, true, 0x62, 0x11},
                           {aligned_va, rkey + 1, true, 0x62, 0x11}, {aligned_va + 0x200000, rkey, true, 0x62, 0x11}};
  unsigned index = 0;
  atomic_bench b;
  for (const refusal& c : cases) {
    SCOPED_TRACE(index++);
    icm::responder_context ctx = b.context();
    ctx.qpn = 0x50 + index;
    if (c.enabled) ctx.access |= icm::responder_access_atomic;
    b.put(ctx);
    const std::size_t answers = b.s.answers.size(), events = b.s.events.size();
    b.send(operation::fetch_add, 100, {}, [&](wire::packet& p) {
      p.atomic = {c.va, c.key, 1, 0, 0, 0};
      p.bth.dest_qp = ctx.qpn;
    });
    b.run();
    ASSERT_EQ(b.s.answers.size(), answers + 1);
    EXPECT_EQ(b.s.answers.back()->bth.opcode, 0x11);
    EXPECT_EQ(b.s.answers.back()->aeth.syndrome, c.syndrome);
    EXPECT_EQ(b.s.answers.back()->aeth.msn, 0u);
    ASSERT_EQ(b.s.events.size(), events + 1);
    EXPECT_EQ(b.s.events.back().type, c.event);
    EXPECT_EQ(b.atomic_writes(), 0u);
  }
}

/// Software that gave queue pairs no memory for resources is told, instead of atomics that may be executed twice.
TEST(responder_atomic, no_memory_for_resources) {
  atomic_bench b;
  b.map.layout(icm::table::rdmarc).entry_bytes = 32;
  b.add(100);
  b.run();
  ASSERT_EQ(b.s.answers.size(), 1u);
  EXPECT_EQ(b.s.answers[0]->aeth.syndrome, 0x61);
  EXPECT_EQ(b.atomic_writes(), 0u);
}

TEST(responder_atomic, memory_that_cannot_be_read) {
  atomic_bench b;
  b.s.regions[rkey] = {data_va, 0x10000123, 0x100000, 7, 0x1f};  // outside of the host
  b.add(100);
  b.run();
  ASSERT_EQ(b.s.answers.size(), 1u);
  EXPECT_EQ(b.s.answers[0]->aeth.syndrome, 0x63);
  ASSERT_EQ(b.s.events.size(), 1u);
  EXPECT_EQ(b.s.events[0].type, 0x05);
  EXPECT_EQ(b.atomic_writes(), 0u);
}

TEST(responder_atomic, one_atomic_more_than_agreed) {
  atomic_bench b;
  icm::responder_context c = b.context();
  c.access |= icm::responder_access_atomic;
  c.log_max_rd_atomic = 1;
  b.put(c);
  b.s.read_cycles = 2000;
  b.add(100);
  b.add(101);
  b.add(102);
  b.run(20000);
  ASSERT_EQ(b.s.answers.size(), 3u);
  EXPECT_EQ(b.s.answers.back()->bth.opcode, 0x11);
  EXPECT_EQ(b.s.answers.back()->aeth.syndrome, 0x61);
}

}  // namespace
}  // namespace rnic::transport::test
