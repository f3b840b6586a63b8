// SPDX-License-Identifier: Apache-2.0
// Receive descriptors of own and shared queues by themselves.
#include <tuple>

#include "testbenches/block/responder/parts_bench.h"

namespace rnic::transport::test::parts {
namespace {

using result = receive_descriptors::result;

/// Asks in every cycle from `from` on until the answer is not pending; then takes, if there is something.
struct taker {
  bench& t;
  icm::responder_context& ctx;
  cycle from = 100;
  bool keep = false;
  unsigned most = 1;  ///< descriptors
  unsigned idle = 0;  ///< cycles between two
  std::vector<std::pair<cycle, result>> found{};
  std::vector<std::uint64_t> addresses{};
  std::vector<std::uint16_t> indices{};
  cycle next = 0;

  void start() {
    next = from;
    t.b.in_cycle = [this] { step(); };
  }
  void step() {
    if (t.b.now() < next || found.size() == most) return;
    receive_descriptors::entry e;
    const result r = t.b.receives.find(ctx, true, true, e);
    if (r == result::pending) return;
    found.emplace_back(t.b.now(), r);
    next = t.b.now() + idle + 1;
    if (r != result::ready) return;
    receive_segment part;
    ASSERT_TRUE(read_segment(e.segments, e.bytes, 0, part));
    addresses.push_back(part.address);
    indices.push_back(e.index);
    t.b.receives.take(ctx, e, keep);
    t.b.receives.look_ahead(ctx);
  }
};

/// Doorbell record (asked of receive fetch at 100, seen by memory at 102, told of at 124), translation of the ring
/// (asked for at 124, seen at 126, at receive fetch at 132), descriptor (seen by memory at 133, told of at 155).
TEST(receive_descriptors, first_one_of_an_own_queue_takes_three_accesses) {
  bench t;
  responder_flow& f = t.open();
  t.post(0, 0x100, 64);
  taker k{t, *f.ctx};
  k.start();
  t.run(300);
  ASSERT_EQ(k.found.size(), 1u);
  EXPECT_EQ(k.found[0], (std::pair<cycle, result>{155, result::ready}));
  EXPECT_EQ(k.addresses[0], 0x100u);
  ASSERT_GE(t.w.reads_seen.size(), 2u);
  EXPECT_EQ(t.w.reads_seen[0].when, 102u);
  EXPECT_EQ(t.w.reads_seen[0].what.address, record_bus);
  EXPECT_EQ(t.w.reads_seen[1].when, 133u);
  EXPECT_EQ(t.w.reads_seen[1].what.address, ring_bus);
}

TEST(receive_descriptors, empty_is_said_by_a_record_that_was_read_for_it) {
  bench t;
  responder_flow& f = t.open();
  taker k{t, *f.ctx};
  k.start();
  t.run(300);
  ASSERT_EQ(k.found.size(), 1u);
  EXPECT_EQ(k.found[0], (std::pair<cycle, result>{124, result::empty}));
  EXPECT_EQ(t.w.reads_seen.size(), 1u);
}

/// Of a shared queue: context (22), record (24), translation and descriptors (31).
TEST(receive_descriptors, first_one_of_a_shared_queue_takes_four_accesses) {
  bench t;
  responder_flow& f = t.open();
  t.share(*f.ctx);
  for (unsigned i = 0; i != 3; ++i) t.post(i, 0x100 * (i + 1), 64, true);
  taker k{t, *f.ctx};
  k.most = 3;
  k.start();
  t.run(400);
  ASSERT_EQ(k.found.size(), 3u);
  EXPECT_EQ(k.found[0], (std::pair<cycle, result>{100 + 22 + 24 + 31, result::ready}));
  EXPECT_EQ(k.found[1].first, k.found[0].first + 1);  // read with it
  EXPECT_EQ(k.addresses, (std::vector<std::uint64_t>{0x100, 0x200, 0x300}));
  EXPECT_EQ(f.ctx->rq_consumed, 2u);  // the entry, not a count
}

TEST(receive_descriptors, own_one_is_given_back_to_the_next_message) {
  bench t;
  responder_flow& f = t.open();
  f.ctx->in_message = 1;
  f.ctx->rq_consumed = 5;
  t.at(100, [&] { EXPECT_TRUE(t.b.receives.give_back(f)); });
  t.run(200);
  EXPECT_EQ(f.ctx->rq_consumed, 4u);
  EXPECT_TRUE(t.w.cqes.empty());
}

TEST(receive_descriptors, shared_one_is_given_back_by_a_completion_in_error) {
  bench t;
  responder_flow& f = t.open();
  t.share(*f.ctx);
  f.ctx->in_message = 1;
  f.ctx->rq_consumed = 5;
  t.at(100, [&] {
    f.slots = 1;
    EXPECT_FALSE(t.b.receives.give_back(f));  // its payload may be on its way
    f.slots = 0;
    EXPECT_TRUE(t.b.receives.give_back(f));
  });
  t.run(200);
  ASSERT_EQ(t.w.cqes.size(), 1u);
  EXPECT_EQ(t.w.cqes[0].when, 102u);
  EXPECT_EQ(t.w.cqes[0].what.wqe_index, 5u);
  EXPECT_EQ(t.w.cqes[0].what.syndrome, cqe_remote_invalid);
}

/// The next descriptors are read while the first ones are used: who asks later than they take waits for none.
TEST(receive_descriptors, next_ones_of_an_own_queue_are_read_ahead) {
  responder_config c;
  c.receive_prefetch = 2;
  bench t(c);
  responder_flow& f = t.open();
  for (unsigned i = 0; i != 8; ++i) t.post(i, 0x100 * (i + 1), 64);
  taker k{t, *f.ctx};
  k.most = 8;
  k.idle = 40;
  k.start();
  t.run(700);
  ASSERT_EQ(k.found.size(), 8u);
  for (unsigned i = 1; i != 8; ++i) EXPECT_EQ(k.found[i].first - k.found[i - 1].first, 41u) << i;
}

/// The shared queue's context in host memory.
template <class F>
void change_srq(bench& t, F change) {
  icm::srq_context s;
  std::memcpy(&s, t.w.memory.data() + srqc_bus + srqn * sizeof s, sizeof s);
  change(s);
  std::memcpy(t.w.memory.data() + srqc_bus + srqn * sizeof s, &s, sizeof s);
}

/// Four entries, of which three are taken; the limit is two. Events when software has posted `more` before the third.
std::size_t limit_events(unsigned more) {
  bench t;
  responder_flow& f = t.open();
  t.share(*f.ctx);
  change_srq(t, [](icm::srq_context& s) { s.limit = 2; });
  for (unsigned i = 0; i != 4; ++i) t.post(i, 0x100, 64, true);
  taker k{t, *f.ctx};
  k.most = 3;
  k.idle = 60;
  k.start();
  t.run(250);
  EXPECT_EQ(k.found.size(), 2u);
  EXPECT_TRUE(t.w.events.empty()) << "two are left, not less";
  for (unsigned i = 0; i != more; ++i) t.post(4 + i, 0x100, 64, true);
  t.run(400);
  EXPECT_EQ(k.found.size(), 3u);
  for (const auto& e : t.w.events) EXPECT_EQ(e.what.type, 0x14);
  return t.w.events.size();
}
TEST(receive_descriptors, less_than_the_limit_is_told_once) { EXPECT_EQ(limit_events(0), 1u); }
TEST(receive_descriptors, exactly_the_limit_is_told_nobody) { EXPECT_EQ(limit_events(1), 0u); }

TEST(receive_descriptors, the_limit_is_told_once_until_it_is_set_again) {
  bench t;
  responder_flow& f = t.open();
  t.share(*f.ctx);
  change_srq(t, [](icm::srq_context& s) { s.limit = 3; });
  for (unsigned i = 0; i != 4; ++i) t.post(i, 0x100, 64, true);
  taker k{t, *f.ctx};
  k.most = 4;
  k.idle = 60;
  k.start();
  t.run(1000);
  EXPECT_EQ(k.found.size(), 4u);
  EXPECT_EQ(t.w.events.size(), 1u) << "two, one and none were left";
}

/// The answer for a queue of domain `queue`, asked for by a queue pair of domain `qp`.
result in_domain(std::uint16_t queue, std::uint16_t qp) {
  bench t;
  responder_flow& f = t.open();
  t.share(*f.ctx);
  change_srq(t, [queue](icm::srq_context& s) { s.xrcd = queue; });
  f.ctx->type = icm::service::xrc;
  f.ctx->qkey = qp;
  result found = result::pending;
  std::uint32_t pd = 0;
  for (const cycle c : {100u, 150u}) t.at(c, [&] { found = t.b.receives.in_domain(*f.ctx, srqn, pd); });
  t.run(200);
  EXPECT_EQ(pd, found == result::ready ? 9u : 0u);
  return found;
}
TEST(receive_descriptors, of_the_own_domain) { EXPECT_EQ(in_domain(3, 3), result::ready); }
TEST(receive_descriptors, of_another_domain) { EXPECT_EQ(in_domain(3, 4), result::failed); }
TEST(receive_descriptors, domain_0_is_no_domain) { EXPECT_EQ(in_domain(0, 0), result::failed); }

/// What a queue pair in error has taken of a shared queue: one a cycle, but for the one that has its completion.
TEST(receive_descriptors, flushes_one_in_a_cycle) {
  bench t;
  responder_flow& f = t.open();
  t.share(*f.ctx);
  for (std::uint16_t n = 0; n != 4; ++n)
    t.at(97 + n, [&t, &f, n] {
      payload::frame_ptr frame = t.frame();
      responder_slot& s = t.b.intake.begin(f, frame, action::write);
      s.completion.has_wqe = s.completion.due = true;
      s.completion.wqe_index = n;
    });
  t.at(100, [&] {
    t.b.receives.flush(f, t.b.slots, 2);
    t.b.errors.cancel(f);
    EXPECT_TRUE(t.b.receives.flushing(first_qpn));
  });
  t.at(104, [&] { EXPECT_FALSE(t.b.receives.flushing(first_qpn)); });
  t.run(300);
  std::vector<std::pair<cycle, std::uint16_t>> seen;
  for (const auto& c : t.w.cqes) seen.emplace_back(c.when, c.what.wqe_index);
  const std::vector<std::pair<cycle, std::uint16_t>> expected{{102, 0}, {103, 1}, {104, 3}};
  EXPECT_EQ(seen, expected);
}

/// Any number of descriptors in any distance, any prefetch, memory of any latency, own or shared queue: each is given
/// once and in order, and none is read more often than it must be.
using descriptor_case = std::tuple<unsigned, unsigned, unsigned, unsigned, bool, bool>;
struct receive_sweep : testing::TestWithParam<descriptor_case> {};

TEST_P(receive_sweep, gives_every_descriptor_once_and_in_order) {
  const auto [posted, idle, prefetch, latency, shared, halves] = GetParam();
  responder_config c;
  c.receive_prefetch = prefetch;
  bench t(c);
  t.w.read_cycles = latency;
  t.w.halves = halves;  // ends of pages
  responder_flow& f = t.open();
  if (shared) t.share(*f.ctx);
  for (unsigned i = 0; i != posted; ++i) t.post(i, 0x100 * (i + 1), 64, shared);
  taker k{t, *f.ctx};
  k.most = posted + 1;
  k.idle = idle;
  k.start();
  t.run(1000 + posted * (idle + 40 + 3 * latency));
  ASSERT_EQ(k.found.size(), posted + 1);
  EXPECT_EQ(k.found.back().second, result::empty);
  ASSERT_EQ(k.addresses.size(), posted);
  for (unsigned i = 0; i != posted; ++i) {
    EXPECT_EQ(k.addresses[i], 0x100 * (i + 1));
    EXPECT_EQ(k.indices[i], i);
  }
  std::uint32_t bytes = 0;
  for (const auto& r : t.w.reads_seen)
    if (r.what.address >= ring_bus) bytes += r.what.length;
  EXPECT_EQ(bytes, posted * entry_bytes);
}
INSTANTIATE_TEST_SUITE_P(all, receive_sweep,
                         testing::Combine(testing::Values(1u, 2u, 7u, 15u), testing::Values(0u, 3u, 60u),
                                          testing::Values(1u, 3u, 8u), testing::Values(1u, 20u, 150u), testing::Bool(),
                                          testing::Bool()));

}  // namespace
}  // namespace rnic::transport::test::parts
