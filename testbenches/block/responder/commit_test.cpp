// SPDX-License-Identifier: Apache-2.0
// Commit by itself: one packet goes on in a cycle, in the order of its queue pair.
#include <numeric>
#include <tuple>

#include "testbenches/block/responder/parts_bench.h"

namespace rnic::transport::test::parts {
namespace {

constexpr unsigned pipeline = 46;  // responder_config::receive

/// A packet of `bytes` to `address` in pieces of `piece`, the last of its message, checked in this cycle.
responder_slot& check(bench& t, responder_flow& f, std::uint32_t bytes, std::uint64_t address, std::uint32_t key = 1,
                      std::uint32_t piece = 4096) {
  payload::frame_ptr frame = t.frame(bytes);
  responder_slot& s = t.b.intake.begin(f, frame, action::write);
  s.last = true;
  for (std::uint32_t at = 0; at < bytes; at += piece)
    t.b.places.add(s, address + at, key, std::min(piece, bytes - at), 0, icm::access::remote_write);
  t.b.places.issue(s);
  return s;
}
std::vector<cycle> cycles_of_writes(const bench& t) {
  std::vector<cycle> all;
  for (const auto& r : t.w.writes_seen) all.push_back(r.when);
  return all;
}

TEST(commit, writes_when_the_pipeline_has_ended) {
  bench t;
  responder_flow& f = t.open();
  t.at(100, [&] {
    responder_slot& s = check(t, f, 64, 0x100);
    s.completion.due = true;
    s.completion.wqe_index = 7;
    s.completion.byte_count = 64;
    s.answered = true;
    s.msn = 3;
  });
  t.run(300);
  EXPECT_EQ(cycles_of_writes(t), (std::vector<cycle>{100 + pipeline + 1}));
  EXPECT_TRUE(t.w.writes_seen.at(0).what.notify);
  ASSERT_EQ(t.w.cqes.size(), 1u);
  EXPECT_EQ(t.w.cqes[0].when, 100 + pipeline + 1 + 10 + 1 + 1);  // behind its payload: 10 cycles, two channels
  EXPECT_EQ(t.w.cqes[0].what.wqe_index, 7u);
  ASSERT_EQ(t.w.answers.size(), 1u);
  EXPECT_EQ(t.w.answers[0].when, 100 + pipeline + 1);  // an ACK does not wait for it
  EXPECT_EQ(t.b.slots_left.back(), (std::pair<cycle, std::size_t>{100 + pipeline, 0}));
}

/// The first packet's event is its turn, though its ACK is full: the second queue pair's packet goes a cycle later.
TEST(commit, an_event_is_all_of_a_cycle) {
  responder_config c;
  c.ack_coalesce = 1;
  bench t(c);
  responder_flow& a = t.open(0);
  responder_flow& b = t.open(1);
  responder_flow& other = t.open(2);
  t.at(100, [&] {
    responder_slot& s = check(t, a, 64, 0x100);
    s.answered = s.completion.comm_est = true;
  });
  t.at(101, [&] { check(t, b, 64, 0x200).ready = 100 + pipeline; });  // due with the one before
  t.at(100 + pipeline - 2, [&] { t.b.answers.set_ack(other, 1, 1, 0); });
  t.at(100 + pipeline - 1, [&] { t.b.answers.set_ack(a, 1, 1, 0); });
  t.run(300);
  EXPECT_EQ(t.w.events.size(), 1u);
  ASSERT_EQ(t.b.slots_left.size(), 4u);
  EXPECT_EQ(t.b.slots_left[2], (std::pair<cycle, std::size_t>{100 + pipeline + 1, 1}));
}

/// So are the last write and the key's request.
TEST(commit, a_request_for_a_key_is_all_of_a_cycle) {
  bench t;
  sim::fifo<icm::key_operation> channel{"keys", t.core, 2};
  sim::fifo_in<icm::key_operation> asked{t.w};
  t.b.keys.request.bind(channel);
  asked.bind(channel);
  responder_flow& a = t.open(0);
  responder_flow& b = t.open(1);
  t.at(100, [&] { check(t, a, 64, 0x100).invalidates = true; });
  t.at(101, [&] { check(t, b, 64, 0x200).ready = 100 + pipeline; });  // due with the one before
  t.run(300);
  ASSERT_EQ(t.b.slots_left.size(), 3u) << "the key's answer never comes";
  EXPECT_EQ(t.b.slots_left[2], (std::pair<cycle, std::size_t>{100 + pipeline + 1, 1}));
}

TEST(commit, one_write_in_a_cycle) {
  bench t;
  responder_flow& f = t.open();
  t.at(100, [&] { check(t, f, 64, 0x100, 1, 16); });
  t.run(300);
  const cycle first = 100 + pipeline + 1;
  EXPECT_EQ(cycles_of_writes(t), (std::vector<cycle>{first, first + 1, first + 2, first + 3}));
  EXPECT_EQ(t.b.slots_left.back(), (std::pair<cycle, std::size_t>{100 + pipeline + 3, 0}));
}

/// All have waited for the same thing and are ready at once: they leave one a cycle, in the order of acceptance.
TEST(commit, one_packet_in_a_cycle) {
  bench t;
  t.w.held_key = 9;
  responder_flow& a = t.open(0);
  responder_flow& b = t.open(1);
  t.at(100, [&] { check(t, a, 8, 0x100, 9); });
  for (unsigned n = 0; n != 4; ++n)
    t.at(101 + n, [&t, &a, n] {
      payload::frame_ptr frame = t.frame();
      responder_slot& s = t.b.intake.begin(a, frame, action::answer);
      s.nak = syndrome_ack;
      s.psn = 200 + n;
    });
  t.at(110, [&] { check(t, b, 8, 0x200); });
  t.run(220);
  EXPECT_TRUE(t.w.writes_seen.empty());  // b's address is behind a's in translation
  t.w.held_key = 0;
  t.run(80);
  std::vector<cycle> left;
  for (const auto& [when, n] : t.b.slots_left)
    if (when > 200) left.push_back(when - t.b.slots_left[6].first);
  EXPECT_EQ(left, (std::vector<cycle>{0, 1, 2, 3, 4, 5}));
}

TEST(commit, one_that_waits_holds_up_its_queue_pair_and_no_other) {
  bench t;
  responder_flow& a = t.open(0);
  responder_flow& b = t.open(1);
  t.w.translate_cycles = 200;
  t.at(100, [&] { check(t, a, 8, 0x100); });
  t.at(101, [&] { check(t, a, 0, 0); });
  t.at(102, [&] {
    payload::frame_ptr frame = t.frame();
    responder_slot& s = t.b.intake.begin(b, frame, action::answer);
    s.nak = syndrome_ack;
    s.psn = 200;
  });
  t.run(500);
  const std::vector<std::pair<cycle, std::size_t>> expected{{100, 1}, {101, 2}, {102, 3}, {102 + pipeline, 2},
                                                            {302, 1}, {303, 0}};
  EXPECT_EQ(t.b.slots_left, expected);  // the address is asked for at 100, seen at 101, answered at 301
}

/// A failure ends the queue pair: what is behind it is given up, one a cycle.
TEST(commit, failure_gives_up_what_is_behind_it) {
  bench t;
  responder_flow& f = t.open();
  t.at(100, [&] {
    payload::frame_ptr frame = t.frame();
    responder_slot& s = t.b.intake.begin(f, frame, action::failure);
    s.nak = syndrome_access;
    s.completion.event = event_qp_access;
    s.psn = 200;
  });
  t.at(101, [&] { check(t, f, 8, 0x100); });
  t.at(102, [&] { check(t, f, 8, 0x200); });
  t.run(300);
  EXPECT_TRUE(t.w.writes_seen.empty());
  ASSERT_EQ(t.w.events.size(), 1u);
  EXPECT_EQ(t.w.events[0].when, 100 + pipeline + 1);
  ASSERT_EQ(t.w.answers.size(), 1u);
  EXPECT_EQ(t.w.answers[0].what.syndrome, syndrome_access);
  EXPECT_EQ(t.contexts[0].state, icm::qp_state::error);
  const std::vector<std::pair<cycle, std::size_t>> expected{
      {100, 1}, {101, 2}, {102, 3}, {100 + pipeline, 2}, {101 + pipeline, 1}, {102 + pipeline, 0}};
  EXPECT_EQ(t.b.slots_left, expected);
}

/// Completions wait in a ring; a full one holds up whoever completes.
TEST(commit, full_ring_of_completions_holds_it_up) {
  responder_config c;
  c.cqe_queue = 2;
  bench t(c);
  t.w.cqe_every = 100;
  responder_flow& f = t.open();
  for (unsigned n = 0; n != 8; ++n)
    t.at(100 + n, [&t, &f, n] {
      responder_slot& s = check(t, f, 0, 0);
      s.completion.due = true;
      s.completion.wqe_index = static_cast<std::uint16_t>(n);
    });
  t.run(1500);
  ASSERT_EQ(t.w.cqes.size(), 8u);
  for (unsigned n = 0; n != 8; ++n) EXPECT_EQ(t.w.cqes[n].what.wqe_index, n);
  for (unsigned n = 1; n != 8; ++n) EXPECT_EQ(t.w.cqes[n].when - t.w.cqes[n - 1].when, 100u);
}

/// Payload of any length in any pieces, packets at any distance, memory as slow as it may be: all bytes arrive, packets
/// of a queue pair in order, completions behind their payload.
using commit_case = std::tuple<unsigned, unsigned, unsigned, unsigned>;
struct commit_sweep : testing::TestWithParam<commit_case> {};

TEST_P(commit_sweep, every_byte_arrives_in_order) {
  const auto [bytes, piece, idle, write_every] = GetParam();
  bench t;
  t.w.write_every = write_every;
  constexpr unsigned packets = 10, pairs = 2;
  for (unsigned n = 0; n != pairs; ++n) t.open(n);
  for (unsigned i = 0; i != packets; ++i)
    t.at(100 + i * (idle + 1), [&t, i, bytes = bytes, piece = piece] {
      responder_flow& f = t.b.flows[t.b.flows.find(first_qpn + i % pairs)];
      responder_slot& s = check(t, f, bytes, 0x4000 + i * 0x1000, 1, piece);
      s.completion.due = true;
      s.completion.wqe_index = static_cast<std::uint16_t>(i);
      s.completion.byte_count = bytes;
    });
  const unsigned writes = bytes == 0 ? 0 : (bytes - 1) / piece + 1;
  t.run(500 + packets * (idle + 1 + (writes + 1) * write_every));
  ASSERT_EQ(t.w.cqes.size(), packets);
  ASSERT_EQ(t.w.writes_seen.size(), packets * writes);
  std::array<int, pairs> last{-1, -1};
  for (const auto& [when, c] : t.w.cqes) {
    const int i = c.wqe_index;
    EXPECT_GT(i, last[c.qpn - first_qpn]);
    last[c.qpn - first_qpn] = i;
    for (const auto& [written, r] : t.w.writes_seen)
      if (r.address / 0x1000 == 4u + static_cast<unsigned>(i)) {
        EXPECT_GE(when, written + 10);
      }
  }
  for (unsigned i = 0; i != packets; ++i)
    for (unsigned k = 0; k != bytes; ++k)
      ASSERT_EQ(t.w.memory[0x4000 + i * 0x1000 + k], static_cast<std::uint8_t>(k * 7 + 1)) << i << ' ' << k;
}
INSTANTIATE_TEST_SUITE_P(all, commit_sweep,
                         testing::Combine(testing::Values(0u, 1u, 64u, 1000u), testing::Values(16u, 300u, 4096u),
                                          testing::Values(0u, 3u, 40u), testing::Values(1u, 3u, 20u)));

/// New READs leave half of the flows to queue pairs that have none with the generator, repeated ones a quarter: of
/// twelve, 6 and 9 may have some; who has one already takes more.
TEST(commit, repeated_reads_leave_places_to_other_queue_pairs) {
  responder_config c;
  c.flows = 12;
  bench t(c);
  responder_flow& f = t.open();
  t.at(100, [&] {
    for (unsigned taken = 0; taken != 12; ++taken) {
      EXPECT_EQ(t.b.reads.can_take_new(false), taken < 6) << taken;
      EXPECT_EQ(t.b.reads.can_take(false), taken < 9) << taken;
      EXPECT_EQ(t.b.held.has_place_for_repeated(f), taken < 9) << taken;
      EXPECT_TRUE(t.b.reads.can_take(true)) << taken;
      t.b.reads.take_place(true);
    }
  });
  t.run(150);
}

/// The message's first packet is on its way to memory when its second one ends it.
TEST(commit, completion_in_error_is_behind_the_payload_of_its_message) {
  bench t;
  t.w.write_every = 400;
  responder_flow& f = t.open();
  t.at(100, [&] {
    payload::frame_ptr frame = t.frame(64);
    responder_slot& s = t.b.intake.begin(f, frame, action::write);
    s.completion.has_wqe = true;
    s.place.of_receive = true;
    t.b.places.add(s, 0x100, 1, 64, 0, icm::access::local_write);
    t.b.places.issue(s);
  });
  t.at(101, [&] {
    payload::frame_ptr frame = t.frame();
    responder_slot& s = t.b.intake.begin(f, frame, action::failure);
    s.completion.has_wqe = true;
    s.completion.syndrome = cqe_remote_invalid;
  });
  t.run(1500);
  ASSERT_FALSE(t.w.cqes.empty());
  ASSERT_FALSE(t.w.writes_seen.empty());
  EXPECT_GT(t.w.cqes[0].when, t.w.writes_seen[0].when);
}

}  // namespace
}  // namespace rnic::transport::test::parts
