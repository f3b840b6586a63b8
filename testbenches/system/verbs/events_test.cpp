// SPDX-License-Identifier: Apache-2.0
// Completion events: one for each request of notification, and with solicited-only for those alone that asked for it.
#include <gtest/gtest.h>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

void send(const link& l, const hosts::buffer& from, const hosts::buffer& to, bool solicited) {
  post_receive(l.b, {{to.address(), 64, to.region->lkey}});
  request r;
  r.opcode = IBV_WR_SEND;
  r.sges = {{from.address(), 64, from.region->lkey}};
  if (solicited) r.flags |= IBV_SEND_SOLICITED;
  post(l.a, r);
  ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
}

TEST(CompletionEvents, OneForEachRequest) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    link l = make_link(system, {});
    hosts::buffer from = hosts::make_buffer(l.a.at, 64), to = hosts::make_buffer(l.b.at, 64);
    host_driver::device& b = l.b.dev();
    send(l, from, to, false);
    EXPECT_EQ(b.get_cq_event(0, 100 * us), nullptr) << "an event that nobody asked for";
    ASSERT_EQ(l.b.wait_receive().status, IBV_WC_SUCCESS);
    for (unsigned n = 0; n < 20; ++n) {
      hosts::require(b.req_notify_cq(l.b.receive_cq, 0), "req_notify_cq");
      EXPECT_EQ(b.get_cq_event(0, 20 * us), nullptr) << "an event without a completion";
      send(l, from, to, false);
      ASSERT_EQ(b.get_cq_event(0, ms), l.b.receive_cq);
      ASSERT_EQ(l.b.wait_receive().status, IBV_WC_SUCCESS);
      send(l, from, to, true);  // the queue is not armed any more
      EXPECT_EQ(b.get_cq_event(0, 20 * us), nullptr);
      ASSERT_EQ(l.b.wait_receive().status, IBV_WC_SUCCESS);
    }
  });
}

TEST(CompletionEvents, SolicitedOnly) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    link l = make_link(system, {});
    hosts::buffer from = hosts::make_buffer(l.a.at, 64), to = hosts::make_buffer(l.b.at, 64);
    host_driver::device& b = l.b.dev();
    for (unsigned n = 0; n < 10; ++n) {
      hosts::require(b.req_notify_cq(l.b.receive_cq, 1), "req_notify_cq");
      send(l, from, to, false);
      EXPECT_EQ(b.get_cq_event(0, 50 * us), nullptr) << "not solicited";
      send(l, from, to, true);
      ASSERT_EQ(b.get_cq_event(0, ms), l.b.receive_cq);
      ASSERT_EQ(l.b.wait_receive().status, IBV_WC_SUCCESS);
      ASSERT_EQ(l.b.wait_receive().status, IBV_WC_SUCCESS);
    }
  });
}

TEST(CompletionEvents, SolicitedOnlyOnAnError) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    link l = make_link(system, {});
    hosts::buffer from = hosts::make_buffer(l.a.at, 64), to = hosts::make_buffer(l.b.at, 64);
    host_driver::device& b = l.b.dev();
    hosts::require(b.req_notify_cq(l.b.receive_cq, 1), "req_notify_cq");
    post_receive(l.b, {{to.address(), 32, to.region->lkey}});
    request r;
    r.opcode = IBV_WR_SEND;
    r.sges = {{from.address(), 64, from.region->lkey}};
    post(l.a, r);
    ASSERT_EQ(b.get_cq_event(0, ms), l.b.receive_cq) << "an error is always solicited (IBA 11.4.2.2)";
    EXPECT_NE(l.b.wait_receive().status, IBV_WC_SUCCESS);
  });
}

TEST(CompletionEvents, OfARequester) {
  hosts::two_nodes_config c = default_system();
  c.node.driver.large_cqe = !c.node.driver.large_cqe;
  hosts::two_nodes system(c);
  run(system, [&] {
    link l = make_link(system, {});
    EXPECT_EQ(l.a.send_cq->entry_bytes, c.node.driver.large_cqe ? 64U : 32U);
    hosts::buffer from = hosts::make_buffer(l.a.at, 64), to = hosts::make_buffer(l.b.at, 64);
    for (unsigned n = 0; n < 50; ++n) {
      hosts::require(l.a.dev().req_notify_cq(l.a.send_cq, 0), "req_notify_cq");
      request r;
      r.sges = {{from.address(), 64, from.region->lkey}};
      r.remote = to.address();
      r.rkey = to.region->rkey;
      r.id = n;
      post(l.a, r);
      ASSERT_EQ(l.a.dev().get_cq_event(0, ms), l.a.send_cq);
      EXPECT_EQ(l.a.wait_send().wr_id, n);
    }
  });
}

}  // namespace
}  // namespace rnic::system_test
