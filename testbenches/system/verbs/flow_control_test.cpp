// SPDX-License-Identifier: Apache-2.0
// End-to-end flow control (IBA 9.7.7.2): messages that take a receive wait until the peer has one.
#include <gtest/gtest.h>

#include <algorithm>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

using hosts::connection_options;

constexpr std::uint32_t bytes = 64;

struct setting {
  link l;
  hosts::buffer from, to;

  setting(hosts::two_nodes& system, const connection_options& options)
      : l(make_link(system, options)), from(hosts::make_buffer(l.a.at, 65536)), to(hosts::make_buffer(l.b.at, 65536)) {}
  void receives(unsigned count) const {
    for (unsigned i = 0; i < count; ++i) post_receive(l.b, {{to.address(0), bytes, to.region->lkey}});
  }
  void send(unsigned count, ibv_wr_opcode opcode = IBV_WR_SEND) const {
    for (unsigned i = 0; i < count; ++i) {
      request r;
      r.opcode = opcode;
      r.sges.push_back({from.address(0), bytes, from.region->lkey});
      r.remote = to.address(0);
      r.rkey = to.region->rkey;
      post(l.a, r);
    }
  }
  void all_sent(unsigned count) const {
    for (unsigned i = 0; i < count; ++i) ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS) << i;
  }
  /// Three of twenty messages find receives; then there is time for more, but less than the RNR timer's.
  void twenty_for_three_receives() const {
    receives(3);
    send(20);
    all_sent(3);
    l.a.at.bus->spend_ps(100 * us);
  }
  /// The other seventeen.
  void receives_for_the_rest() const {
    receives(17);
    all_sent(17);
    all_received(20);
  }
  void all_received(unsigned count) const {
    for (unsigned i = 0; i < count; ++i) ASSERT_EQ(l.b.wait_receive().status, IBV_WC_SUCCESS) << i;
  }
};

std::uint64_t value(hosts::two_nodes& system, const std::string& name) { return system.statistics().value(name); }
std::uint64_t packets(hosts::two_nodes& system) { return value(system, "a.adapter.requester.packets"); }
std::uint64_t refusals(hosts::two_nodes& system) { return value(system, "b.adapter.responder.rnr"); }

/// What the peer has receives for goes, and one more, which finds out; the others stay until there are receives.
TEST(EndToEndCredits, MessagesWaitForReceives) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    connection_options options;
    options.receive_depth = 64;
    const setting s(system, options);
    s.twenty_for_three_receives();
    EXPECT_EQ(packets(system), 4u);
    EXPECT_EQ(refusals(system), 1u);
    EXPECT_GT(value(system, "a.adapter.requester.receive_waits"), 0u);
    s.receives_for_the_rest();
    EXPECT_EQ(packets(system), 21u) << "one was sent twice";
    EXPECT_EQ(refusals(system), 1u);
  });
}

/// The same without: everything goes, and all of it again after the refusal.
TEST(EndToEndCredits, CanBeTurnedOff) {
  hosts::two_nodes_config config = default_system();
  config.node.adapter.requester.end_to_end_credits = false;
  hosts::two_nodes system(config);
  run(system, [&] {
    connection_options options;
    options.receive_depth = 64;
    const setting s(system, options);
    s.twenty_for_three_receives();
    EXPECT_GT(packets(system), 6u) << "as many as software had posted when the refusal came";
    s.receives_for_the_rest();
  });
}

/// A stream does not stop while software keeps posting.
TEST(EndToEndCredits, AStreamGoesOn) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    connection_options options;
    options.receive_depth = 32;
    const setting s(system, options);
    s.receives(32);
    constexpr unsigned messages = 2000, window = 64;
    s.send(window);
    unsigned sent = 0, received = 0, posted = window;
    while (sent < messages || received < messages) {
      ibv_wc wc[8];
      const int got = s.l.b.dev().poll_cq(s.l.b.receive_cq, 8, wc);
      for (int i = 0; i < got; ++i) ASSERT_EQ(wc[i].status, IBV_WC_SUCCESS);
      s.receives(static_cast<unsigned>(got));
      received += static_cast<unsigned>(got);
      const int done = s.l.a.dev().poll_cq(s.l.a.send_cq, 8, wc);
      for (int i = 0; i < done; ++i) ASSERT_EQ(wc[i].status, IBV_WC_SUCCESS);
      sent += static_cast<unsigned>(done);
      const unsigned more = std::min(messages - posted, static_cast<unsigned>(done));
      s.send(more);
      posted += more;
    }
    EXPECT_EQ(refusals(system), 0u);
    EXPECT_EQ(packets(system), messages);
  });
}

TEST(EndToEndCredits, WritesReadsAndAtomicsNeedNone) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const setting s(system, connection_options{});
    s.send(50, IBV_WR_RDMA_WRITE);
    s.send(20, IBV_WR_RDMA_READ);
    s.all_sent(70);
    EXPECT_EQ(value(system, "a.adapter.requester.receive_waits"), 0u);
    s.send(10, IBV_WR_RDMA_WRITE_WITH_IMM);
    s.l.a.at.bus->spend_ps(100 * us);
    EXPECT_EQ(packets(system), 71u) << "one finds out";
    s.receives(10);
    s.all_sent(10);
    s.all_received(10);
    EXPECT_EQ(refusals(system), 1u);
  });
}

/// Receives of a shared queue are nobody's own: its queue pairs do not count them.
TEST(EndToEndCredits, ASharedQueueIsNotCounted) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    connection_options options;
    setting s(system, options);
    ibv_srq_init_attr init{};
    init.attr.max_wr = 64;
    init.attr.max_sge = 1;
    ibv_srq* srq = s.l.b.dev().create_srq(s.l.b.at.pd, &init);
    ASSERT_NE(srq, nullptr);
    s.l.a.qp = hosts::make_qp(s.l.a.at, options, *s.l.a.send_cq, *s.l.a.receive_cq);
    s.l.b.qp = hosts::make_qp(s.l.b.at, options, *s.l.b.send_cq, *s.l.b.receive_cq, srq);
    hosts::connect(s.l.a.at, options, *s.l.a.qp, s.l.b.at, s.l.b.qp->qp_num, 5, 9);
    hosts::connect(s.l.b.at, options, *s.l.b.qp, s.l.a.at, s.l.a.qp->qp_num, 9, 5);
    for (unsigned i = 0; i < 3; ++i) {
      ibv_sge sge{s.to.address(0), bytes, s.to.region->lkey};
      ibv_recv_wr wr{}, *bad = nullptr;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      hosts::require(s.l.b.dev().post_srq_recv(srq, &wr, &bad), "post_srq_recv");
    }
    s.send(20);
    s.all_sent(3);
    s.l.a.at.bus->spend_ps(100 * us);
    EXPECT_GT(packets(system), 6u) << "as many as software had posted when the refusal came";
  });
}

}  // namespace
}  // namespace rnic::system_test
