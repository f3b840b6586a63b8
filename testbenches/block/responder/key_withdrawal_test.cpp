// SPDX-License-Identifier: Apache-2.0
// A key that loses its meaning while the responder has packets under it.
#include "testbenches/block/responder/parts_bench.h"

namespace rnic::transport::test::parts {
namespace {

constexpr unsigned pipeline = 46;  // responder_config::receive
constexpr std::uint32_t key = 0x2200, other_key = 0x3300;

void check(bench& t, responder_flow& f, std::uint32_t bytes, std::uint32_t with, std::uint32_t piece = 4096) {
  payload::frame_ptr frame = t.frame(bytes);
  responder_slot& s = t.b.intake.begin(f, frame, action::write);
  s.last = true;
  for (std::uint32_t at = 0; at < bytes; at += piece)
    t.b.places.add(s, 0x100 + at, with, std::min(piece, bytes - at), 0, icm::access::remote_write);
  t.b.places.issue(s);
}

/// The generator is told (seen there at c) and answers (here at c + 1), an empty write behind all payload goes to
/// memory (seen at c + 2, answered 10 cycles later, here at c + 13).
TEST(key_withdrawal, with_nothing_under_the_key_it_takes_the_way_to_memory) {
  bench t;
  t.at(99, [&] { t.w.to_revoke.push_back({key}); });
  t.run(300);
  ASSERT_EQ(t.w.commands.size(), 1u);
  EXPECT_EQ(t.w.commands[0].what.key, key);
  ASSERT_EQ(t.w.writes_seen.size(), 1u);
  EXPECT_EQ(t.w.writes_seen[0].what.length, 0u);
  ASSERT_EQ(t.w.withdrawn.size(), 1u);
  EXPECT_EQ(t.w.withdrawn[0].when - t.w.commands[0].when, 14u);
  EXPECT_EQ(t.w.withdrawn[0].what.key, key);
}

/// One packet a cycle is looked at: with five the generator is told four cycles later than with one. Those under the
/// key are refused, the others written.
struct key_withdrawal_walk : testing::TestWithParam<std::pair<unsigned, cycle>> {};

TEST_P(key_withdrawal_walk, refuses_what_has_not_begun) {
  const auto [packets, told] = GetParam();
  bench t;
  for (unsigned n = 0; n != packets; ++n) {
    responder_flow& f = t.open(n);
    f.ctx->type = icm::service::uc;
    t.at(100 + n, [&t, &f, n] { check(t, f, 8, n % 2 == 0 ? key : other_key); });
  }
  t.at(120, [&] { t.w.to_revoke.push_back({key}); });
  t.run(400);
  EXPECT_EQ(t.w.commands.at(0).when, told);
  EXPECT_EQ(t.w.writes_seen.size(), packets / 2 + 1);  // and the empty one
  EXPECT_EQ(t.b.drops.unreliable, (packets + 1) / 2);
  EXPECT_EQ(t.w.withdrawn.size(), 1u);
}
INSTANTIATE_TEST_SUITE_P(packets, key_withdrawal_walk,
                         testing::Values(std::pair<unsigned, cycle>{0, 122}, std::pair<unsigned, cycle>{1, 122},
                                         std::pair<unsigned, cycle>{2, 123}, std::pair<unsigned, cycle>{5, 126}));

/// A packet that has begun to write is waited for; its last write comes before the empty one.
TEST(key_withdrawal, waits_for_what_has_begun) {
  bench t;
  t.w.write_every = 40;
  responder_flow& f = t.open();
  t.at(100, [&] { check(t, f, 160, key, 16); });
  t.at(100 + pipeline, [&] { t.w.to_revoke.push_back({key}); });
  t.run(1500);
  ASSERT_EQ(t.w.writes_seen.size(), 11u);
  EXPECT_EQ(t.w.writes_seen.back().what.length, 0u);
  ASSERT_EQ(t.w.withdrawn.size(), 1u);
  EXPECT_GT(t.w.withdrawn[0].when, t.w.writes_seen.back().when);
  EXPECT_GT(t.w.commands[0].when, t.w.writes_seen[4].when);
}

/// The key engine, which is busy with the revocation, has no place for the requests of two others: the third,
/// whose payload is on its way, is not waited for.
TEST(key_withdrawal, does_not_wait_for_one_that_waits_for_the_key_engine) {
  constexpr std::uint32_t key = 0x2200;
  bench t;
  sim::fifo<icm::key_operation> channel("keys", t.core, 2);
  sim::fifo_in<icm::key_operation> asked(t.w);  // takes none
  t.b.keys.request.bind(channel);
  asked.bind(channel);
  for (unsigned n = 0; n != 3; ++n) {
    responder_flow& f = t.open(n);
    t.at(100 + n, [&t, &f, n] {
      payload::frame_ptr frame = t.frame(8);
      responder_slot& s = t.b.intake.begin(f, frame, action::write);
      s.last = s.invalidates = true;
      t.b.places.add(s, 0x100 + 8 * n, key, 8, 0, icm::access::local_write);
      t.b.places.issue(s);
    });
  }
  t.at(300, [&] { t.w.to_revoke.push_back({key}); });
  t.run(600);
  EXPECT_EQ(t.w.withdrawn.size(), 1u);
}

}  // namespace
}  // namespace rnic::transport::test::parts
