// SPDX-License-Identifier: Apache-2.0
// Queue pairs on chip: accesses to their contexts, frames that wait for them, and their leaving.
#include "testbenches/block/responder/parts_bench.h"

namespace rnic::transport::test::parts {
namespace {

/// One port: the check finds it taken by an ACK and has it in the next cycle, before the ACK that would go then.
TEST(flow_table, users_of_the_contexts_have_the_port_in_turn) {
  responder_config c;
  c.context_ports = 1;
  c.ack_cycles = 1;
  bench t(c);
  responder_flow& a = t.open(0);
  responder_flow& b = t.open(1);
  t.b.flows.ports().announce(t.stats);
  std::vector<bool> may;
  const auto check = [&] {
    may.push_back(t.b.flows.may_access(a, context_user::check));
    if (may.back()) t.b.flows.access(a, context_user::check);
  };
  t.at(100, [&] {
    t.b.answers.set_ack(a, 1, 1, 0);
    t.b.answers.set_ack(b, 2, 1, 0);
  });
  t.at(101, check);
  t.at(102, check);
  t.run(200);
  EXPECT_EQ(may, (std::vector<bool>{false, true}));
  ASSERT_EQ(t.w.answers.size(), 2u);
  EXPECT_EQ(t.w.answers[0].when, 102u);
  EXPECT_EQ(t.w.answers[1].when, 104u);
  EXPECT_EQ(t.stats.value("parts.context_memory.check.waits"), 1u);
  EXPECT_EQ(t.stats.value("parts.context_memory.answers.waits"), 1u);
}

TEST(flow_table, two_ports_are_enough_for_a_check_and_an_answer) {
  responder_config c;
  c.ack_cycles = 1;
  bench t(c);
  responder_flow& a = t.open(0);
  responder_flow& b = t.open(1);
  t.b.flows.ports().announce(t.stats);
  t.at(100, [&] { t.b.answers.set_ack(a, 1, 1, 0); });
  t.at(101, [&] {
    for (unsigned twice = 0; twice != 2; ++twice) {  // read and written back: one access
      EXPECT_TRUE(t.b.flows.may_access(a, context_user::check));
      t.b.flows.access(a, context_user::check);
    }
    EXPECT_FALSE(t.b.flows.may_access(b, context_user::errors));
  });
  t.run(200);
  ASSERT_EQ(t.w.answers.size(), 1u);
  EXPECT_EQ(t.w.answers[0].when, 102u);
  EXPECT_EQ(t.stats.value("parts.context_memory.check.waits"), 0u);
  EXPECT_EQ(t.stats.value("parts.context_memory.errors.waits"), 1u);
}

/// Frames of a queue pair wait in order, in places that all share.
TEST(flow_table, frames_wait_in_order_and_places_come_back) {
  responder_config c;
  c.context_wait_frames = 3;
  bench t(c);
  responder_flow& a = t.open(0);
  responder_flow& b = t.open(1);
  std::array<payload::frame*, 3> frames{};
  for (unsigned i = 0; i != 3; ++i) {
    EXPECT_TRUE(t.b.flows.has_room_to_wait());
    payload::frame_ptr f = t.frame();
    frames[i] = &*f;
    t.b.flows.wait(i == 1 ? b : a, std::move(f));
  }
  EXPECT_FALSE(t.b.flows.has_room_to_wait());
  EXPECT_EQ(&*t.b.flows.front(a), frames[0]);
  t.b.flows.pop(a);
  EXPECT_EQ(&*t.b.flows.front(a), frames[2]);
  EXPECT_EQ(&*t.b.flows.front(b), frames[1]);
  std::uint64_t dropped = 0;
  t.b.flows.drop_waiting(a, &dropped);
  t.b.flows.drop_waiting(b, &dropped);
  EXPECT_EQ(dropped, 2u);
  EXPECT_EQ(t.frames.in_use(), 0u);
}

/// It stays as long as anything of it is left; then its place is the next one's.
TEST(flow_table, idle_queue_pair_leaves_its_place) {
  responder_config c;
  c.flows = 2;
  bench t(c);
  const std::uint16_t place = t.b.flows.open(first_qpn);
  ASSERT_NE(place, no_link);
  ASSERT_NE(t.b.flows.open(first_qpn + 1), no_link);
  EXPECT_EQ(t.b.flows.open(first_qpn + 2), no_link);
  t.b.flows[place].slots = 1;
  t.b.flows.leave();
  EXPECT_EQ(t.b.flows.find(first_qpn), place);
  t.b.flows[place].slots = 0;
  t.b.flows.leave();
  EXPECT_EQ(t.b.flows.find(first_qpn), no_link);
  EXPECT_EQ(t.b.flows.open(first_qpn + 2), place);
}

/// A queue pair whose context is not there takes no port.
TEST(flow_table, who_waits_for_a_context_leaves_the_port_to_others) {
  responder_config c;
  c.context_ports = 1;
  bench t(c);
  responder_flow& there = t.open(0);
  responder_flow& missing = t.b.flows[t.b.flows.open(first_qpn + 7)];
  t.map.layout(icm::table::qpc) = {0x10000, 256, 8};
  t.map.map(0x10000, 0x4000, 0x8000);  // no DMA is bound: it never comes
  sim::fifo<pcie::dma_request> requests("context_reads", t.core, 4);
  sim::fifo<pcie::dma_response> answers("contexts", t.core, 4);
  sim::fifo_in<pcie::dma_request> asked(t.w);
  sim::fifo_out<pcie::dma_response> never(t.w);
  t.b.contexts.dma.request.bind(requests);
  asked.bind(requests);
  never.bind(answers);
  t.b.contexts.dma.response.bind(answers);
  std::vector<bool> may;
  t.at(99, [&] {  // the port is taken when they ask for the first time
    ASSERT_TRUE(t.b.flows.may_access(there, context_user::check));
    t.b.flows.access(there, context_user::check);
    t.b.flows.resolve(missing, context_user::errors);
    t.b.flows.resolve(missing, context_user::reads);
  });
  for (const cycle at : {100u, 101u, 102u, 103u, 104u})
    t.at(at, [&] {
      t.b.flows.resolve(missing, context_user::errors);
      t.b.flows.resolve(missing, context_user::reads);
      may.push_back(t.b.flows.may_access(there, context_user::check));
    });
  t.run(200);
  EXPECT_EQ(may, std::vector<bool>(5, true));
}

}  // namespace
}  // namespace rnic::transport::test::parts
