// SPDX-License-Identifier: Apache-2.0
// Queue pairs that end while their packets and responses are under way: nothing of them stays on chip.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "model/transport/transport_cr.h"
#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
using wire::operation;
namespace cr = transport::cr;

/// Whether the queue pair is off the chip `ns` after firmware has asked for it.
bool ends(bench::bench& b, std::uint32_t command, std::uint64_t ns = 20'000) {
  b.dut.cr_write(cr::qp_select, bench::qpn);
  b.dut.cr_write(cr::qp_command, command);
  b.run_ns(ns);
  return b.dut.cr_read(cr::qp_status) == 0;
}

void break_off(bench::bench& b) {
  b.w.to_error.push_back(bench::qpn);
  b.w.wake_next();
}

/// A READ of 80 bytes into eight places: so many addresses of its answer fill the queue of requests for them, as long
/// as none is answered.
std::uint32_t post_scattered_read(bench::bench& b) {
  std::vector<std::uint32_t> words{0x10, 10, 0xc, 0, 0x7f00, 0x5000, 0xabcd, 0};
  for (std::uint32_t i = 0; i < 8; ++i)
    words.insert(words.end(), {10, bench::good_key, 0, static_cast<std::uint32_t>(bench::data + 10 * i)});
  return b.post(words);
}

void go_on_translating(bench::bench& b) {
  b.w.translates = true;
  b.w.wake_next();
}

TEST(teardown, responses_that_nobody_waits_for_any_more_do_not_keep_a_queue_pair) {
  bench::bench b;
  post_scattered_read(b);
  b.post_read(100);
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 2u);
  b.w.translates = false;
  b.respond(operation::read_response_only, 0xfffffe, 0x1f, std::vector<std::uint8_t>(80));
  b.respond(operation::read_response_only, 0xffffff, 0x1f, std::vector<std::uint8_t>(100));
  b.run_ns(1000);
  ASSERT_FALSE(b.scatter.translate.request.can_push());
  break_off(b);
  b.run_ns(1000);
  go_on_translating(b);
  EXPECT_TRUE(ends(b, cr::qp_command_halt));
  EXPECT_EQ(b.stats.value("scatter.given_up"), 1u);
}

/// Two READs are sent, a third may not be, and the turn has ended; what was read ahead takes some 1000 cycles.
void read_ahead(bench::bench& b) {
  for (unsigned i = 0; i < 6; ++i) b.post_read(8);
  b.ring_doorbell();
  ASSERT_TRUE(b.run_until_sent(2));
  b.run_ns(100);
  ASSERT_EQ(b.w.sent.size(), 2u);
  ASSERT_EQ(b.stats.value("descriptor_fetch.fetches"), 2u);
}

bench::setup with_slow_memory() {
  bench::setup s;
  s.memory_cycles = 1000;
  return s;
}

/// Memory of a queue pair that is gone is read by nobody.
void expect_to_stay_until_its_queue_is_read(std::uint32_t command) {
  bench::bench b(with_slow_memory());
  read_ahead(b);
  const std::uint64_t read = b.w.descriptors.read_bytes;
  EXPECT_FALSE(ends(b, command, 100));
  EXPECT_FALSE(b.w.contexts.request.can_pop());
  while (b.w.descriptors.read_bytes == read) {
    ASSERT_NE(b.dut.cr_read(cr::qp_status), 0u);
    ASSERT_TRUE(b.w.contexts.busy.empty()) << "its context does not go yet";
    b.run_ns(2);
  }
  b.run_ns(3000);
  EXPECT_EQ(b.dut.cr_read(cr::qp_status), 0u);
}

TEST(teardown, a_halt_waits_for_what_is_read_of_the_queue) {
  expect_to_stay_until_its_queue_is_read(cr::qp_command_halt);
}
TEST(teardown, a_discard_waits_for_what_is_read_of_the_queue) {
  expect_to_stay_until_its_queue_is_read(cr::qp_command_discard);
}

TEST(teardown, a_reset_waits_for_what_is_read_of_queues) {
  bench::bench b(with_slow_memory());
  read_ahead(b);
  const std::uint64_t read = b.w.descriptors.read_bytes;
  b.dut.device_reset();
  b.run_ns(100);
  while (b.w.descriptors.read_bytes == read) {
    ASSERT_EQ(b.dut.cr_read(cr::reset), 1u);
    b.run_ns(2);
  }
  b.run_ns(3000);
  EXPECT_EQ(b.dut.cr_read(cr::reset), 0u);
  EXPECT_EQ(b.stats.value("requester.late_descriptors"), 1u);
}

/// Also while the unit waits for its first WQE.
TEST(teardown, a_reset_in_any_cycle_of_a_turn_ends) {
  constexpr unsigned many = 160, step_ns = 6;
  std::vector<std::unique_ptr<bench::bench>> all;
  for (unsigned i = 0; i < many; ++i) {
    all.push_back(std::make_unique<bench::bench>());
    for (unsigned n = 0; n < 6; ++n) all.back()->post_read(8);
    all.back()->ring_doorbell();
  }
  for (auto& b : all) {
    b->run_ns(step_ns);
    b->dut.device_reset();
  }
  all[0]->run_ns(5000);
  for (unsigned i = 0; i < many; ++i) EXPECT_EQ(all[i]->dut.cr_read(cr::reset), 0u) << step_ns * (i + 1) << " ns";
}

TEST(teardown, response_behind_one_that_was_given_up_is_written_and_completes) {
  constexpr std::uint32_t other = bench::qpn + 1;
  bench::bench b;
  post_scattered_read(b);
  b.post_read(100);
  b.make_qp(other);  // of the same queue
  b.ring_doorbell();
  scheduler::send_doorbell d;
  d.qpn = other;
  d.uar = bench::own_uar;
  b.w.to_ring.push_back(d);
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 4u);
  b.w.translates = false;
  const std::vector<std::uint8_t> bytes(80, 0x5a);
  b.respond(operation::read_response_only, 0xfffffe, 0x1f, bytes);
  b.respond(operation::read_response_only, 0xffffff, 0x1f, std::vector<std::uint8_t>(100));
  b.respond(operation::read_response_only, 0xfffffe, 0x1f, bytes);
  b.w.to_rx.back()->packet.bth.dest_qp = other;
  b.run_ns(1000);
  ASSERT_FALSE(b.scatter.translate.request.can_push());
  break_off(b);
  b.run_ns(1000);
  go_on_translating(b);
  b.run_ns(3000);
  const auto of_other = [](const auto& e) { return e.second.qpn == other; };
  EXPECT_EQ(std::count_if(b.w.cqes.begin(), b.w.cqes.end(), of_other), 1);
  EXPECT_EQ(std::memcmp(b.w.memory.data() + bench::data, bytes.data(), bytes.size()), 0);
  EXPECT_TRUE(ends(b, cr::qp_command_halt));
  EXPECT_EQ(b.stats.value("scatter.given_up"), 1u);
}

/// A message whose payload takes long to read, and behind it a descriptor that cannot be executed.
void good_message_before_a_bad_one(icm::service type) {
  bench::setup s;
  s.type = type;
  s.memory_cycles = 600;
  bench::bench b(s);
  b.post_write(3000);
  b.post({0x1d, 2, 0xc, 0, 0, 0, 0, 0});
  b.ring_doorbell();
  b.run_ns(10'000);
  EXPECT_EQ(b.w.sent.size(), 3u);
  if (type == icm::service::rc) b.ack(0);
  b.run_ns(3000);
  ASSERT_EQ(b.w.cqes.size(), 2u);
  EXPECT_EQ(b.w.cqes[0].second.opcode, 0x48);
  EXPECT_EQ(b.w.cqes[1].second.syndrome, 0x02);
  EXPECT_TRUE(ends(b, cr::qp_command_halt));
}

TEST(teardown, uc_message_before_a_bad_descriptor_still_leaves) { good_message_before_a_bad_one(icm::service::uc); }
TEST(teardown, rc_message_before_a_bad_descriptor_still_leaves) { good_message_before_a_bad_one(icm::service::rc); }

TEST(teardown, bad_key_of_a_message_that_was_put_back_takes_no_packet_of_its_repetition_along) {
  bench::setup s;
  s.requester.translation_blocks = false;
  bench::bench b(s);
  b.post_send(3000);
  b.post_send(16, bench::data, bench::bad_key);
  b.ring_doorbell();
  while (b.stats.value("requester.packets") < 3) b.run_ns(2);
  b.run_ns(20);
  b.w.translates = false;  // the second one's key is looked at later
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 3u);
  b.respond(operation::acknowledge, 0xfffffe, 0x60);  // all of the first message was lost
  b.run_ns(3000);
  b.w.translates = true;
  b.w.wake_next();
  b.run_ns(5000);
  ASSERT_EQ(b.w.sent.size(), 6u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(b.payload(3 + i), b.payload(i)) << i;
  b.ack(0);
  b.run_ns(3000);
  ASSERT_EQ(b.w.cqes.size(), 2u);
  EXPECT_EQ(b.w.cqes[0].second.opcode, 0x4a);
  EXPECT_EQ(b.w.cqes[1].second.syndrome, 0x04);
}

/// A queue pair with everything under way, a peer that answers at random, memory that answers when it likes.
struct random_life {
  explicit random_life(unsigned seed) : rng(seed), b(random_setup()) {
    for (unsigned i = 0; i < 12; ++i) {
      const std::uint32_t length = below(3000) + 1;
      if (below(2) == 0)
        b.post_read(length);
      else
        b.post_send(length, bench::data, below(12) == 0 ? bench::bad_key : bench::good_key);
    }
    b.ring_doorbell();
  }
  void step() {
    translate(below(3) == 0);
    if (b.w.sent.empty()) return;
    for (unsigned k = below(4); k != 0; --k) answer(b.sent(below(static_cast<std::uint32_t>(b.w.sent.size()))));
    if (below(12) == 0) break_off(b);
  }
  void end() {
    if (below(2) == 0) break_off(b);
    translate(true);
    b.dut.cr_write(cr::qp_select, bench::qpn);
    b.dut.cr_write(cr::qp_command, below(2) == 0 ? cr::qp_command_halt : cr::qp_command_discard);
  }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(rng() % n); }

  std::mt19937 rng;
  bench::bench b;

 private:
  bench::setup random_setup() {
    bench::setup s;
    s.ack_timeout = 2;
    s.memory_cycles = 20 + below(400);
    s.requester.translation_blocks = below(2) == 0;
    s.requester.scatter_jobs = 1 + below(4);
    s.requester.gather_depth = 1 + below(8);
    return s;
  }
  void translate(bool on) {
    b.w.translates = on;
    b.w.wake_next();
  }
  void answer(const wire::packet& p) {
    const std::uint32_t psn = p.bth.psn.value();
    if (wire::operation_of(p.bth.opcode) != operation::read_request)
      return b.respond(operation::acknowledge, psn, below(8) == 0 ? 0x60 : 0x1f);
    const std::uint32_t n = (p.reth.length + 1023) / 1024;
    for (std::uint32_t i = 0; i < n; ++i) {
      const operation o = n == 1      ? operation::read_response_only
                          : i == 0    ? operation::read_response_first
                          : i + 1 < n ? operation::read_response_middle
                                      : operation::read_response_last;
      b.respond(o, (psn + i) & 0xffffff, 0x1f, std::vector<std::uint8_t>(std::min(1024u, p.reth.length - i * 1024)));
    }
  }
};

TEST(teardown, queue_pair_ends_at_any_moment) {
  constexpr unsigned many = 60;
  std::vector<std::unique_ptr<random_life>> lives;  // in one kernel
  for (unsigned seed = 1; seed <= many; ++seed) lives.push_back(std::make_unique<random_life>(seed));
  std::mt19937 rng(many);
  for (unsigned i = 0; i < 40; ++i) {
    for (auto& life : lives) life->step();
    lives.front()->b.run_ns(rng() % 600);
  }
  for (auto& life : lives) life->end();
  lives.front()->b.run_ns(50'000);
  std::vector<std::uint64_t> ticks;
  for (unsigned i = 0; i < many; ++i) {
    EXPECT_EQ(lives[i]->b.dut.cr_read(cr::qp_status), 0u) << "seed " << i + 1;
    ticks.push_back(lives[i]->b.core.ticks());
  }
  lives.front()->b.run_ns(20'000);
  for (unsigned i = 0; i < many; ++i) EXPECT_LT(lives[i]->b.core.ticks() - ticks[i], 100u) << "seed " << i + 1;
}

}  // namespace
