// SPDX-License-Identifier: Apache-2.0
// Queue pairs in the error state, and what is left in its lists of those that were there.
#include "testbenches/block/responder/parts_bench.h"

namespace rnic::transport::test::parts {
namespace {

/// A doorbell record was read of a queue pair that has left the error state meanwhile: its receives are not flushed.
TEST(error_state, flushes_receives_of_the_error_state_only) {
  bench t;
  responder_flow& a = t.open(0);
  responder_flow& b = t.open(1);
  t.contexts[1].state = icm::qp_state::error;
  t.at(100, [&] {
    for (responder_flow* f : {&a, &b}) {
      f->posted = 3;
      t.b.flows.add_todo(*f, flow_todo_flush);
    }
  });
  for (cycle c = 101; c != 110; ++c) t.at(c, [&] { t.b.errors.attend(); });
  t.run(200);
  ASSERT_EQ(t.w.cqes.size(), 3u);
  for (const auto& c : t.w.cqes) EXPECT_EQ(c.what.qpn, first_qpn + 1);
  EXPECT_EQ(t.contexts[0].rq_consumed, 0u);
  EXPECT_TRUE(t.b.flows.to_do().empty());
}

/// Sixteen receives are a full ring and all are flushed; seventeen are no count that software can have posted.
TEST(error_state, flushes_a_ring_that_is_exactly_full) {
  bench t;
  responder_flow& full = t.open(0);
  responder_flow& too_many = t.open(1);
  t.contexts[0].state = t.contexts[1].state = icm::qp_state::error;
  t.at(100, [&] {
    full.posted = 16;
    too_many.posted = 17;
    for (responder_flow* f : {&full, &too_many}) t.b.flows.add_todo(*f, flow_todo_flush);
  });
  for (cycle c = 101; c != 150; ++c) t.at(c, [&] { t.b.errors.attend(); });
  t.run(300);
  ASSERT_EQ(t.w.cqes.size(), 16u);
  for (unsigned i = 0; i != 16; ++i) {
    EXPECT_EQ(t.w.cqes[i].what.qpn, first_qpn);
    EXPECT_EQ(t.w.cqes[i].what.wqe_index, i);
  }
  EXPECT_EQ(t.contexts[1].rq_consumed, 0u);
}

/// An error of its former life still waits, behind a queue pair without a place, when firmware releases the next one.
TEST(error_state, what_waits_of_a_former_life_is_dropped) {
  responder_config c;
  c.flows = 1;
  bench t(c);
  t.open(0);
  sim::fifo_out<qp_error> requester{t.b};
  sim::fifo_in<qp_error> in{t.b};
  sim::fifo<qp_error> channel{"errors", t.core, 2};
  requester.bind(channel);
  in.bind(channel);
  t.at(100, [&] {
    t.b.errors.check(first_qpn + 1);
    requester.push({first_qpn});
  });
  t.at(105, [&] {
    t.b.errors.take(in);
    t.b.errors.check(first_qpn);  // the release
    t.b.flows.halts().halt(first_qpn + 1);
  });
  for (cycle n = 106; n != 115; ++n) t.at(n, [&] { t.b.errors.attend(); });
  t.run(200);
  EXPECT_EQ(t.contexts[0].state, icm::qp_state::rts);
  EXPECT_TRUE(t.b.flows.to_do().empty());
}

/// The ACK goes behind a READ in host memory, which is given up.
TEST(error_state, an_answer_behind_reads_that_are_given_up_leaves) {
  bench t;
  responder_flow& f = t.open();
  t.at(100, [&] {
    t.contexts[0].flags |= icm::responder_flag_reads_held;
    f.requests.held = f.requests.accepted = f.requests.fresh = 1;
    t.b.answers.set_ack(f, 70, 5, 0);
  });
  t.at(120, [&] { t.b.answers.forget_held(f); });
  t.run(200);
  ASSERT_EQ(t.w.answers.size(), 1u);
  EXPECT_EQ(t.w.answers[0].when, 122u);
}

}  // namespace
}  // namespace rnic::transport::test::parts
