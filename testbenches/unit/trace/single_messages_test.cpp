// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/single_messages.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/payload/frame.h"
#include "testbenches/bench/trace/stages_text.h"

namespace rnic::bench::test {
namespace {

std::string stages_of(const sim::followed_request::way& w) {
  std::string text;
  sim::time_ps at = w.start;
  for (const sim::span::mark& m : w.marks) {
    text += std::string(text.empty() ? "" : ", ") + m.stage + " " + std::to_string(m.at - at);
    at = m.at;
  }
  return text;
}

struct told final : message_sink_if {
  void add_flow(std::uint32_t number, const std::string& name, unsigned host) override {
    flows.push_back(std::to_string(number) + " " + name + " at " + std::to_string(host));
  }
  void take(const sim::followed_request& r, sim::time_ps nothing_before) override {
    messages.push_back(r);
    before.push_back(nothing_before);
  }
  void under_way(unsigned host, std::uint64_t number, sim::time_ps now) override {
    counts.push_back({{host, number}, now});
  }
  std::vector<std::string> flows;
  std::vector<sim::followed_request> messages;
  std::vector<sim::time_ps> before;
  std::vector<std::pair<std::pair<unsigned, std::uint64_t>, sim::time_ps>> counts;
};

class SingleMessages : public ::testing::Test {
 protected:
  SingleMessages() {
    spans.enable(true);
    system.spans = &spans;
    system.hosts = {{"a", nullptr, nullptr}, {"b", nullptr, nullptr}};
  }
  single_messages follower(sim::time_ps from = 0, sim::time_ps until = ~sim::time_ps{0}) {
    return {system, {from, until, {"64 B", "64 B, to warm up"}}, &out};
  }
  /// A message of a host, posted at `start`, which the other one's memory has 100 ps later; then somebody polls it.
  sim::span_id send(single_messages& f, unsigned host, sim::time_ps start, unsigned flow = 0) {
    const sim::span_id id = spans.open(start);
    f.open(host, flow, start, id);
    ibv_sge bytes{};
    bytes.length = 64;
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.sg_list = &bytes;
    wr.num_sge = 1;
    ibv_qp qp{};
    qp.qp_num = 500 + host;
    f.posted(host, qp, {&wr, index[host]++, 1, start});
    spans.leave(id, "a.root_complex", "post", start + 10);
    spans.leave(id, "b.adapter.responder", "commit", start + 60);
    return id;
  }

  sim::span_recorder spans;
  watched_system system;
  told out;
  std::uint32_t index[2] = {0, 65'535};
};

TEST_F(SingleMessages, WayEndsWhereTheOtherHostHasItAndTheRestIsBeside) {
  single_messages f = follower();
  EXPECT_EQ(out.flows, (std::vector<std::string>{"0 64 B at 0", "1 64 B, to warm up at 0", "2 64 B at 1",
                                                 "3 64 B, to warm up at 1"}));
  f.begin(1'000);
  const sim::span_id id = send(f, 0, 1'000), ack = spans.fork(id);
  spans.leave(id, "b.root_complex", "memory write", 1'100);
  spans.leave(id, "b.processor", "poll", 1'140);
  f.arrived(0, 1'140);
  spans.leave(ack, "b.adapter.port1", "wire", 1'090);
  spans.leave(ack, "a.adapter.requester", "complete", 1'200);
  spans.leave(id, "b.adapter.pcie", "credit", 1'300);  // behind its end
  f.finish();
  ASSERT_EQ(out.messages.size(), 1u);
  const sim::followed_request& r = out.messages[0];
  EXPECT_EQ(stages_of(r.path), "post 10, commit 50, memory write 40, poll 40");
  EXPECT_EQ(stages_of(r.beside), "credit 160");
  EXPECT_EQ(stages_of(r.beside_answer), "wire 30, complete 110");  // since it split off
  EXPECT_EQ(r.path.start, 1'000u);
  EXPECT_TRUE(r.polled);
  EXPECT_EQ(r.number, 1u);
  const message_note note = message_note::unpacked(r.what);
  EXPECT_EQ(note.bytes, 64u);
  EXPECT_EQ(note.flow, 0u);
  EXPECT_STREQ(note.verb_name(), "write");
  EXPECT_EQ(r.key.qpn, 500u);
  EXPECT_EQ(r.key.index, 0u);
  using count = std::pair<std::pair<unsigned, std::uint64_t>, sim::time_ps>;
  EXPECT_EQ(out.counts, (std::vector<count>{{{0, 1}, 1'000}, {{0, 0}, 1'140}}));
}

TEST_F(SingleMessages, PingsAndPongsAreOfTheirHosts) {
  single_messages f = follower();
  f.begin(0);
  for (unsigned n = 0; n < 3; ++n) {
    send(f, 0, 1'000 * n + 100, n == 0 ? 1 : 0);
    f.arrived(0, 1'000 * n + 200);
    send(f, 1, 1'000 * n + 200);
    f.arrived(1, 1'000 * n + 300);
  }
  f.arrived(1, 9'000);  // of a message that has arrived: nothing
  f.finish();
  ASSERT_EQ(out.messages.size(), 6u);
  EXPECT_EQ(out.counts.size(), 12u);
  for (unsigned i = 0; i < 6; ++i) {
    const sim::followed_request& r = out.messages[i];
    EXPECT_EQ(r.number, i + 1);
    EXPECT_EQ(r.path.start, 1'000 * (i / 2) + 100 * (i % 2 + 1));
    EXPECT_EQ(message_note::unpacked(r.what).flow, i == 0 ? 1 : i % 2 == 0 ? 0 : 2);
    EXPECT_EQ(r.key.qpn, 500 + i % 2);
    EXPECT_EQ(r.key.index, static_cast<std::uint16_t>(i % 2 == 0 ? i / 2 : 65'535 + i / 2));
    EXPECT_EQ(stages_of(r.path), "post 10, commit 50");
  }
  EXPECT_NE(out.messages[0].key.adapter, out.messages[1].key.adapter);
}

TEST_F(SingleMessages, AreHandedOverWhenTheirAcknowledgementsAreThrough) {
  single_messages f = follower();
  f.begin(0);
  for (unsigned n = 0; n < 9; ++n) {
    EXPECT_TRUE(out.messages.empty());
    send(f, 0, 1'000 * n);
    if (n != 8) f.arrived(0, 1'000 * n + 100);
  }
  ASSERT_EQ(out.messages.size(), 1u);
  EXPECT_EQ(out.before[0], 1'000u);  // the next one's post
  f.finish();
  ASSERT_EQ(out.messages.size(), 9u);
  EXPECT_TRUE(out.messages[7].polled);
  EXPECT_FALSE(out.messages[8].polled);
  EXPECT_EQ(stages_of(out.messages[8].path), "post 10, commit 50");
}

TEST_F(SingleMessages, OnlyThoseOfTheWindowAreToldOf) {
  single_messages f = follower(500, 2'500);
  send(f, 0, 900);  // before it begins
  f.arrived(0, 950);
  f.begin(1'000);
  for (const sim::time_ps at : {1'499, 1'500, 3'499, 3'500}) {
    send(f, 0, at);
    f.arrived(0, at + 100);
  }
  f.finish();
  ASSERT_EQ(out.messages.size(), 2u);
  EXPECT_EQ(out.messages[0].path.start, 1'500u);
  EXPECT_EQ(out.messages[1].path.start, 3'499u);
  EXPECT_EQ(out.messages[1].number, 2u);
  EXPECT_EQ(out.counts.size(), 4u);
}

TEST_F(SingleMessages, FramesSayWhichMessageAndItsLastOneWhereTheTimeWent) {
  single_messages f = follower();
  f.begin(0);
  const sim::span_id first = send(f, 0, 2'000'000), second = send(f, 1, 5'000'000);
  payload::frame_pool pool;
  const payload::frame_ptr frame = pool.get();
  std::string text = "of another frame";
  f.describe(*frame, 2'000'070, 0, text);
  EXPECT_EQ(text, "");
  frame->part_of = first;
  f.describe(*frame, 2'000'070, 0, text);
  EXPECT_EQ(text, "message 1 of 64 B, write 64 B, qpn 500 index 0 of a, posted 0.000070 us before");
  frame->part_of = 0;
  frame->span = second;
  f.describe(*frame, 6'234'567, 15'150, text);
  EXPECT_EQ(text,
            "message 2 of 64 B, write 64 B, qpn 501 index 65535 of b, posted 1.249717 us before: a.root_complex post "
            "0.010 ns; b.adapter.responder commit 0.050 ns; line elsewhere 1234.507 ns, cable 15.150 ns");
}

TEST(StagesText, AStageThatEndsWithTheFirstBitIsBeforeIt) {
  std::string text;
  const sim::followed_request::way way{
      100, {{"a", "x", sim::wait::none, 110}, {"a", "y", sim::wait::pcie, 130}, {"b", "wire", sim::wait::none, 131}}};
  put_stages(way, 130, 0, text);
  EXPECT_EQ(text, ": a x 0.010 ns, y 0.020 ns (pcie)");
}

}  // namespace
}  // namespace rnic::bench::test
