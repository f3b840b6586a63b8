// SPDX-License-Identifier: Apache-2.0
// The completer's pace: a response a cycle, and what keeps it from that.
#include <gtest/gtest.h>

#include <tuple>

#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
using ::bench::first_psn;
using wire::operation;

struct pace : bench::bench {
  explicit pace(const ::bench::setup& s = {}) : bench(s) {
    context.log_max_rd_atomic = 4;
    make_qp(::bench::qpn);
  }
  std::uint64_t count(const char* name) const { return stats.value(std::string("requester.") + name); }
  std::vector<sim::cycle_t> between_cqes() const {
    std::vector<sim::cycle_t> out;
    for (std::size_t i = 1; i < w.cqes.size(); ++i) out.push_back(w.cqes[i].first - w.cqes[i - 1].first);
    return out;
  }
};

::bench::setup with_ports(unsigned ports, unsigned scatter_jobs = 32) {
  ::bench::setup s;
  s.requester.context_ports = ports;
  s.requester.scatter_jobs = scatter_jobs;
  return s;
}

/// Acknowledgements by number, cycles between them, and ports of the context memory. Each is an access of the completer
/// and one of completions: with one port they take turns.
class acknowledgements : public testing::TestWithParam<std::tuple<unsigned, unsigned, unsigned>> {};
TEST_P(acknowledgements, complete_one_a_cycle_when_the_contexts_have_ports) {
  const auto [many, gap, ports] = GetParam();
  pace b(with_ports(ports));
  for (unsigned i = 0; i < many; ++i) b.post_write(16);
  b.ring_doorbell();
  b.run_ns(8000);
  ASSERT_EQ(b.w.sent.size(), many);
  for (unsigned i = 0; i < many; ++i) {
    b.ack(first_psn + i);
    if (gap != 0) b.run_ns(2 * gap);
  }
  b.run_ns(200);
  ASSERT_EQ(b.w.cqes.size(), many);
  const sim::cycle_t apart = std::max(gap, ports == 1 ? 2u : 1u);
  EXPECT_EQ(b.between_cqes(), std::vector<sim::cycle_t>(many - 1, apart));
  const std::uint64_t waits = b.count("context_memory.completer.waits") + b.count("context_memory.completions.waits");
  if (ports == 1)
    EXPECT_GE(waits, many);  // what an acknowledgement completes waits a cycle for it
  else
    EXPECT_EQ(waits, 0u);
}
INSTANTIATE_TEST_SUITE_P(completer, acknowledgements,
                         testing::Combine(testing::Values(1u, 2u, 7u, 14u), testing::Values(0u, 1u, 2u, 5u),
                                          testing::Values(1u, 2u)));

/// READ responses that scatter does not take: so many are accepted as it has places, and the one in front of them
/// waits; when it goes on, so do they.
class blocked : public testing::TestWithParam<std::tuple<unsigned, unsigned>> {};
TEST_P(blocked, responses_wait_for_scatter_and_lose_nothing) {
  const auto [many, jobs] = GetParam();
  pace b(with_ports(2, jobs));
  for (unsigned i = 0; i < many; ++i) b.post_read(64, ::bench::data + 64 * i);
  b.ring_doorbell();
  b.run_ns(8000);
  ASSERT_EQ(b.w.sent.size(), many);
  b.w.translates = false;
  for (unsigned i = 0; i < many; ++i)
    b.respond(operation::read_response_only, (first_psn + i) & 0xffffff, 0x1f,
              std::vector<std::uint8_t>(64, static_cast<std::uint8_t>(i + 1)));
  b.run_ns(400);
  EXPECT_TRUE(b.w.cqes.empty());
  // Places: the queue of scatter and the channel in front of it; four responses wait in theirs.
  const unsigned taken = std::min(many, jobs + 2);
  EXPECT_EQ(b.w.to_rx.size(), many - std::min(many, taken + 4));
  b.w.translates = true;
  b.w.wake_next();
  b.run_ns(2000);
  ASSERT_EQ(b.w.cqes.size(), many);
  for (unsigned i = 0; i < many; ++i) {
    EXPECT_EQ(b.w.cqes[i].second.wqe_index, i);
    EXPECT_EQ(b.w.memory[::bench::data + 64 * i + 63], i + 1);
  }
  EXPECT_EQ(b.count("duplicate_responses") + b.count("stray_responses") + b.count("retransmissions"), 0u);
}
INSTANTIATE_TEST_SUITE_P(completer, blocked,
                         testing::Combine(testing::Values(1u, 3u, 4u, 8u), testing::Values(1u, 2u, 5u)));

/// A response that names a message which is refused waits until that is found, a message a cycle.
TEST(completer, searches_a_message_a_cycle_for_what_is_refused) {
  pace b;
  for (unsigned i = 0; i < 8; ++i) b.post_write(16);
  b.ring_doorbell();
  b.run_ns(8000);
  b.respond(operation::acknowledge, (first_psn + 5) & 0xffffff, 0x61);
  b.run_ns(500);
  EXPECT_EQ(b.count("searched_messages"), 5u);
  EXPECT_EQ(b.count("go_back.taken_back"), 2u);  // what is behind it
  ASSERT_EQ(b.w.cqes.size(), 8u);
  EXPECT_EQ(b.w.cqes[4].second.syndrome, 0);
  EXPECT_EQ(b.w.cqes[5].second.syndrome, transport::syndrome::remote_invalid_request);
  EXPECT_EQ(b.w.cqes[6].second.syndrome, transport::syndrome::flush);
}

/// What answers and acknowledgements name is known: no search, however many messages are under way.
TEST(completer, does_not_search_for_the_answer_that_is_expected) {
  pace b;
  for (unsigned i = 0; i < 6; ++i) b.post_write(16);
  b.post_read(64);
  b.post_write(16);
  b.post_read(64);
  b.ring_doorbell();
  b.run_ns(8000);
  ASSERT_EQ(b.w.sent.size(), 9u);
  b.respond(operation::read_response_only, 4, 0x1f, std::vector<std::uint8_t>(64));
  b.ack(5);
  b.respond(operation::read_response_only, 6, 0x1f, std::vector<std::uint8_t>(64));
  b.run_ns(2000);
  EXPECT_EQ(b.w.cqes.size(), 9u);
  EXPECT_EQ(b.count("searched_messages"), 0u);
}

/// Law 17, planted: a response that the channel in front gives before its last byte is there.
TEST(completer, a_response_without_its_last_byte_ends_the_run) {
  pace b;
  b.post_write(16);
  b.ring_doorbell();
  ASSERT_TRUE(b.run_until_sent(1));
  b.ack(first_psn);
  b.w.to_rx.back()->first_byte = 1'000'000;
  try {
    b.run_ns(200);
    FAIL() << "its bytes come from cycle 1000000 on";
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find("requester: byte 61 of a frame is used at cycle "), std::string::npos)
        << e.what();
  }
}

}  // namespace
