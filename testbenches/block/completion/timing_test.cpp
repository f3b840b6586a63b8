// SPDX-License-Identifier: Apache-2.0
// The completion block to the cycle: alone, back to back, two sources at once, stalled, full; and queues exactly full.
#include <gtest/gtest.h>

#include "testbenches/block/completion/rig.h"

namespace {
using namespace completion_test;
using cycles = std::vector<sim::cycle_t>;

/// Everything is on chip when the test begins: one completion has gone through, the log is empty.
struct warm : rig {
  explicit warm(const completion::completion_config& cfg = {}, unsigned log_cq = 6, std::uint16_t period_us = 0)
      : rig(32, false, log_cq, cfg) {
    memory.be32(record, 0);
    cq.period_us = period_us;
    store_cq();
    complete(0);
    run(800);
    completion::queue_doorbell d;  // brings the EQ's context
    d.what = completion::queue_doorbell::kind::eq_update;
    d.number = eqn;
    d.arm = true;
    doorbells.send(d);
    block.cr_write(cr::event_map + 4 * 2, eqn);
    completion::event_request e;
    e.type = 2;
    events.send(e);
    run(800);
    eq_doorbell(1, true);
    forget();
  }
  void forget() {
    memory.log.clear();
    cqes.sent.clear();
    other_cqes.sent.clear();
    events.sent.clear();
    doorbells.sent.clear();
    pins.seen.clear();
  }
  void other(std::uint32_t n, std::uint32_t to = cqn) {
    completion::cqe_request r;
    r.cqn = to;
    r.qpn = 0x1000 + n;
    r.opcode = 1;
    other_cqes.send(r);
  }
  void event() {
    completion::event_request e;
    e.type = 2;
    events.send(e);
  }
  /// A second CQ, in the page of `cq_buffer` + 0x8000.
  void second_cq() {
    icm::cq_context c = cq;
    c.cqn = 6;
    c.log_size = 3;
    c.address = 0x80;
    std::memcpy(memory.at(cqc + 64 * 6), &c, sizeof c);
    memory.be64(mtt + 0x80, (cq_buffer + 0x8000) | 1);
  }
  /// When memory saw the writes, counted from the cycle `from`.
  cycles writes(sim::cycle_t from) const {
    cycles t;
    for (const auto& s : memory.log)
      if (s.op == pcie::dma_request::kind::write) t.push_back(s.at - from);
    return t;
  }
  /// Whose completions lie in the queue from slot `from` on.
  std::vector<std::uint32_t> owners(unsigned from, unsigned many) const {
    std::vector<std::uint32_t> q;
    for (unsigned i = 0; i < many; ++i) q.push_back(memory.get32(cqe_at(from + i)));
    return q;
  }
};

/// Taken a cycle after it was pushed, handed over after the eight of the pipeline, seen a cycle later.
TEST(completion_timing, an_entry_takes_ten_cycles) {
  warm b;
  b.complete(1);
  b.run(100);
  EXPECT_EQ(b.writes(b.cqes.sent.at(0)), cycles{10});
}

TEST(completion_timing, an_entry_every_four_cycles) {
  warm b;
  for (std::uint32_t n = 1; n <= 4; ++n) b.complete(n);
  b.run(100);
  EXPECT_EQ(b.writes(b.cqes.sent.at(0)), (cycles{10, 14, 18, 22}));
}

TEST(completion_timing, latency_and_interval_are_their_parameters) {
  completion::completion_config c;
  c.cqe_latency_cycles = 3;
  c.cqe_cycles = 7;
  warm b(c);
  for (std::uint32_t n = 1; n <= 3; ++n) b.complete(n);
  b.run(100);
  EXPECT_EQ(b.writes(b.cqes.sent.at(0)), (cycles{5, 12, 19}));
}

/// Requester and responder complete in the same cycle: in turn, after source 0 source 1.
TEST(completion_timing, two_sources_in_one_cycle_take_turns) {
  warm b;  // source 0 was the last
  for (std::uint32_t n = 1; n <= 3; ++n) {
    b.complete(n);
    b.other(n);
  }
  b.run(100);
  ASSERT_EQ(b.cqes.sent, b.other_cqes.sent);
  EXPECT_EQ(b.writes(b.cqes.sent.at(0)), (cycles{10, 14, 18, 22, 26, 30}));
  EXPECT_EQ(b.owners(1, 6), (std::vector<std::uint32_t>{0x1001, 0x48, 0x1002, 0x48, 0x1003, 0x48}));
  b.forget();
  b.other(4);
  b.run(100);
  b.forget();
  b.complete(4);
  b.other(5);
  b.run(100);
  EXPECT_EQ(b.owners(8, 2), (std::vector<std::uint32_t>{0x48, 0x1005})) << "source 1 was the last";
}

/// One whose queue is not on chip holds up nobody but its own source.
TEST(completion_timing, a_source_that_waits_for_its_queue_lets_the_other_pass) {
  warm b;
  b.second_cq();
  b.other(1, 6);
  b.other(2);
  for (std::uint32_t n = 1; n <= 3; ++n) b.complete(n);
  b.run(50);
  EXPECT_EQ(b.writes(b.cqes.sent.at(0)), (cycles{10, 14, 18}));
  EXPECT_EQ(b.owners(1, 3), (std::vector<std::uint32_t>(3, 0x48)));
  b.run(800);
  EXPECT_EQ(b.memory.get32(cq_buffer + 0x8000), 0x1001u);
  EXPECT_EQ(b.owners(4, 1), std::vector<std::uint32_t>{0x1002}) << "behind the one that waited";
}

/// Memory takes nothing: four lie in the channel, the last but one place of the ring stays free for an event.
TEST(completion_timing, memory_that_takes_nothing_stops_it_when_the_ring_is_full) {
  completion::completion_config c;
  c.write_depth = 8;
  warm b(c);
  const sim::cycle_t until = b.clock.now() + 400;
  b.memory.hold_until(until);
  for (std::uint32_t n = 1; n <= 20; ++n) b.complete(n);
  b.run(300);
  EXPECT_EQ(b.count(cr::count_cqe), 1u + 4 + 7);
  b.run(400);
  EXPECT_EQ(b.count(cr::count_cqe), 1u + 20);
  const cycles seen = b.writes(until);
  ASSERT_EQ(seen.size(), 20u);
  EXPECT_EQ(cycles(seen.begin(), seen.begin() + 8), (cycles{0, 1, 2, 3, 4, 5, 6, 7}))
      << "the channel's and the ring's, one a cycle";
  for (std::uint32_t n = 1; n <= 20; ++n) EXPECT_EQ(b.memory.get32(b.cqe_at(n) + 0x14), 0x1000 + n);
}

/// Entry at 10 as a completion's, written three cycles later; the interrupt is on its way when that is known.
TEST(completion_timing, an_event_and_its_interrupt) {
  warm b;
  b.event();
  b.run(100);
  EXPECT_EQ(b.writes(b.events.sent.at(0)), cycles{10});
  ASSERT_EQ(b.pins.seen.size(), 1u);
  EXPECT_EQ(b.pins.seen[0].second - b.events.sent.at(0), 15u);
  b.forget();
  for (unsigned n = 0; n < 3; ++n) b.event();
  b.run(100);
  EXPECT_EQ(b.writes(b.events.sent.at(0)), (cycles{10, 14, 18}));
  EXPECT_TRUE(b.pins.seen.empty()) << "not armed";
}

/// The condition is there already: the doorbell is taken after a cycle, the event raised, a cycle later it is served.
TEST(completion_timing, an_arm_that_fires_at_once) {
  warm b;
  completion::queue_doorbell d;
  d.number = cqn;
  d.command = 2;
  d.sequence = 1;
  b.doorbells.send(d);
  b.run(100);
  EXPECT_EQ(b.writes(b.doorbells.sent.at(0)), cycles{11});
  ASSERT_EQ(b.pins.seen.size(), 1u);
  EXPECT_EQ(b.pins.seen[0].second - b.doorbells.sent.at(0), 16u);
}

/// A completion that fires: its entry goes out at 10; the event raised with it is served a cycle later.
TEST(completion_timing, a_completion_that_fires_and_its_event) {
  warm b;
  b.arm(2, 1, 1);
  b.forget();
  b.complete(1);
  b.run(100);
  EXPECT_EQ(b.writes(b.cqes.sent.at(0)), (cycles{10, 11}));
  EXPECT_EQ(b.pins.seen.at(0).second - b.cqes.sent.at(0), 16u);
}

TEST(completion_timing, a_doorbell_every_two_cycles) {
  completion::completion_config c;
  c.event_cycles = 1;
  warm b(c);
  b.second_cq();
  b.other(1, 6);
  b.run(800);
  b.forget();
  completion::queue_doorbell d;
  d.command = 2;
  d.sequence = 1;
  for (const std::uint32_t q : {cqn, 6u}) {
    d.number = q;
    b.doorbells.send(d);
  }
  b.run(100);
  EXPECT_EQ(b.writes(b.doorbells.sent.at(0)), (cycles{11, 13}));
}

/// A queue of eight with eight unread: the ninth waits for software's index and goes where it has made room for one.
TEST(completion_queues, a_queue_exactly_full_is_asked_for_its_index_and_not_overrun) {
  rig b;
  for (std::uint32_t n = 0; n < 8; ++n) b.complete(n);
  b.run(1500);
  EXPECT_EQ(b.count(cr::count_cqe), 8u);
  EXPECT_EQ(b.memory.reads(), 2u) << "context and page: nobody has asked for the index";
  b.memory.log.clear();
  b.memory.be32(record, 1);
  b.complete(8);
  b.run(500);
  EXPECT_EQ(b.memory.reads(), 1u);
  EXPECT_EQ(b.memory.log.at(0).address, record);
  EXPECT_EQ(b.count(cr::count_cqe), 9u);
  EXPECT_EQ(b.count(cr::count_cq_overflow), 0u);
  EXPECT_EQ(b.memory.get32(b.cqe_at(0) + 0x14), 0x1008u);
  EXPECT_EQ(b.memory.get32(b.cqe_at(1) + 0x14), 0x1001u) << "unread";
  b.complete(9);  // nothing has been read since
  b.run(500);
  EXPECT_EQ(b.count(cr::count_cqe), 9u);
  EXPECT_EQ(b.count(cr::count_cq_overflow), 1u);
  EXPECT_EQ(b.memory.get32(b.cqe_at(1) + 0x14), 0x1001u);
}

/// Software has read all of it, and nothing that is not there yet.
TEST(completion_queues, an_index_beyond_what_was_written_is_not_believed) {
  rig b;
  for (std::uint32_t n = 0; n < 8; ++n) b.complete(n);
  b.run(1500);
  b.memory.be32(record, 8);
  for (std::uint32_t n = 8; n < 16; ++n) b.complete(n);
  b.run(1500);
  EXPECT_EQ(b.count(cr::count_cqe), 16u);
  EXPECT_EQ(b.count(cr::count_cq_overflow), 0u);
  b.memory.be32(record, 17);
  b.complete(16);
  b.run(1500);
  EXPECT_EQ(b.count(cr::count_cqe), 16u);
  EXPECT_EQ(b.count(cr::count_cq_overflow), 1u);
  b.command(cr::queue_command_halt);
  b.run(800);
  EXPECT_EQ(b.stored_cq().producer, 16u);
  EXPECT_EQ(b.stored_cq().consumer, 8u) << "the last one that could be";
}

/// 300 events and nobody reads: one less than the queue has entries are kept, the rest is counted. Then software reads
/// in steps of 128, as the driver does, and nothing is lost over the end of the buffer.
TEST(completion_queues, more_than_128_events_at_once) {
  rig b;
  b.eq.log_size = 8;
  b.store_eq();
  b.block.cr_write(cr::event_map + 4 * 2, eqn);
  const auto raise = [&b](std::uint32_t n) {
    completion::event_request e;
    e.type = 2;
    for (unsigned i = 0; i < 4; ++i) e.data[i] = static_cast<std::uint8_t>(n >> (24 - 8 * i));
    b.events.send(e);
  };
  for (std::uint32_t n = 0; n < 300; ++n) raise(n);
  b.run(6000);
  EXPECT_EQ(b.count(cr::count_eqe), 255u);
  EXPECT_EQ(b.count(cr::count_eq_overflow), 45u);
  EXPECT_EQ(b.pins.seen.size(), 1u);
  for (std::uint32_t n = 0; n < 255; ++n) {
    ASSERT_EQ(b.memory.get32(b.eqe_at(n) + 4), n);
    ASSERT_EQ(*b.memory.at(b.eqe_at(n) + 0x1f), 0u);
  }
  EXPECT_EQ(*b.memory.at(b.eqe_at(255) + 0x1f), 0xffu) << "not written";
  std::uint32_t read = 128;  // of 255
  b.eq_doorbell(read, false);
  std::uint32_t next = 300;
  for (unsigned i = 0; i < 128; ++i) raise(next++);
  b.run(3000);
  EXPECT_EQ(b.count(cr::count_eqe), 255u + 128);
  EXPECT_EQ(b.count(cr::count_eq_overflow), 45u) << "exactly as many as there was room for";
  raise(0xdead);
  b.run(500);
  EXPECT_EQ(b.count(cr::count_eq_overflow), 46u);
  for (; read != 255 + 128; ++read) {
    const std::uint32_t expected = read < 255 ? read : read - 255 + 300;
    ASSERT_EQ(b.memory.get32(b.eqe_at(read % 256) + 4), expected) << read;
    ASSERT_EQ(*b.memory.at(b.eqe_at(read % 256) + 0x1f), (read & 256) != 0 ? 0x80 : 0) << read;
  }
  EXPECT_EQ(b.pins.seen.size(), 1u);
  b.eq_doorbell(read, true);
  EXPECT_EQ(b.pins.seen.size(), 1u) << "all has been read";
  raise(7);
  b.run(500);
  EXPECT_EQ(b.pins.seen.size(), 2u);
}

/// 24 bits of running index go over their end with the queue full.
TEST(completion_queues, the_running_index_wraps) {
  rig b;
  b.cq.producer = b.cq.consumer = 0xfffffc;
  b.store_cq();
  b.memory.be32(record, 0xfffffc);
  for (std::uint32_t n = 0; n < 8; ++n) b.complete(n);
  b.run(1500);
  EXPECT_EQ(b.count(cr::count_cqe), 8u);
  b.memory.be32(record, 2);  // six have been read
  for (std::uint32_t n = 8; n < 15; ++n) b.complete(n);
  b.run(1500);
  EXPECT_EQ(b.count(cr::count_cqe), 14u);
  EXPECT_EQ(b.count(cr::count_cq_overflow), 1u);
  EXPECT_EQ(b.memory.get32(b.cqe_at(4) + 0x14), 0x1008u);
}

/// The period begins when the entry is decided, a cycle after its request was pushed, and ends to the cycle; the event
/// then takes its pipeline and a channel.
TEST(completion_timing, a_moderated_event_comes_at_the_end_of_its_period) {
  warm b({}, 6, 5);
  b.arm(2, 1, 1);
  b.forget();
  b.complete(1);
  b.run(6000);
  EXPECT_EQ(b.writes(b.cqes.sent.at(0)), (cycles{10, 1 + 5000 + 9}));
}

}  // namespace
