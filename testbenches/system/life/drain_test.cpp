// SPDX-License-Identifier: Apache-2.0
// Send queues that are drained, and completion queues that run over.
#include <gtest/gtest.h>

#include <cstring>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

int move(const side& s, ibv_qp_state to, bool notify) {
  ibv_qp_attr attr{};
  attr.qp_state = to;
  attr.en_sqd_async_notify = notify ? 1 : 0;
  return s.dev().modify_qp(s.qp, &attr, IBV_QP_STATE | (notify ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0));
}

/// All asynchronous events of a device but those of its ports.
bool next_event(const side& s, ibv_async_event& e, std::uint64_t timeout_ps) {
  do {
    if (!s.dev().get_async_event(&e, timeout_ps)) return false;
  } while (e.event_type == IBV_EVENT_PORT_ACTIVE || e.event_type == IBV_EVENT_COMM_EST);
  return true;
}

struct writes {
  explicit writes(const link& l, std::uint32_t bytes)
      : size(bytes), from(hosts::make_buffer(l.a.at, bytes)), to(hosts::make_buffer(l.b.at, bytes)) {
    std::mt19937_64 random(5);
    fill_random(from.at(), bytes, random);
  }
  void post_one(const side& s, std::uint64_t id) const { post_write(s, from, to, size, id); }
  std::uint32_t size;
  hosts::buffer from, to;
};

/// The event comes when the last message that had begun is complete, not before, and firmware sleeps meanwhile.
TEST(Drain, EventAfterWhatHadBegun) {
  hosts::two_nodes_config c = default_system();
  c.cable_metres = 100'000;  // 505 us: the acknowledgement takes longer than any command
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::connection_options options;
    options.ack_timeout = 16;
    const link l = make_link(system, options);
    const writes w(l, 20'000);
    w.post_one(l.a, 1);
    w.post_one(l.a, 2);
    l.a.at.bus->spend_ps(50 * us);  // both are on the cable
    ASSERT_EQ(move(l.a, IBV_QPS_SQD, true), 0);
    const std::uint64_t start = l.a.at.bus->now_ps();
    w.post_one(l.a, 3);  // not before the queue goes on
    ibv_async_event e{};
    EXPECT_FALSE(next_event(l.a, e, 400 * us)) << "nothing can have been acknowledged";
    ASSERT_TRUE(next_event(l.a, e, 5 * ms));
    EXPECT_EQ(e.event_type, IBV_EVENT_SQ_DRAINED);
    EXPECT_EQ(e.element.qp, l.a.qp);
    EXPECT_GT(l.a.at.bus->now_ps() - start, 900 * us);
    ibv_wc wc{};
    for (std::uint64_t id = 1; id <= 2; ++id) {
      ASSERT_EQ(l.a.dev().poll_cq(l.a.send_cq, 1, &wc), 1) << "complete before the event";
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, id);
    }
    l.a.at.bus->spend_ps(3 * ms);
    EXPECT_TRUE(l.a.silent()) << "a drained queue does not work";
    EXPECT_EQ(l.a.state(), IBV_QPS_SQD);
    ASSERT_EQ(move(l.a, IBV_QPS_RTS, false), 0);
    const ibv_wc third = l.a.wait_send();
    EXPECT_EQ(third.status, IBV_WC_SUCCESS);
    EXPECT_EQ(third.wr_id, 3U);
    EXPECT_EQ(std::memcmp(w.from.at(), w.to.at(), w.size), 0);
    EXPECT_FALSE(next_event(l.a, e, 3 * ms)) << "one event for one request";
  });
}

TEST(Drain, NothingUnderWay) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    ASSERT_EQ(move(l.a, IBV_QPS_SQD, true), 0);
    ibv_async_event e{};
    ASSERT_TRUE(next_event(l.a, e, ms));
    EXPECT_EQ(e.event_type, IBV_EVENT_SQ_DRAINED);
    ASSERT_EQ(move(l.a, IBV_QPS_RTS, false), 0);
    ASSERT_EQ(move(l.a, IBV_QPS_SQD, false), 0);
    EXPECT_FALSE(next_event(l.a, e, ms)) << "nobody asked";
  });
}

struct small_queue {
  link l;
  host_driver::completion_queue* cq = nullptr;
};

/// A further queue pair on host a whose completions all go to a queue of `entries`.
small_queue with_small_queue(const link& first, int entries, bool of_receiver) {
  small_queue s{first, nullptr};
  side& mine = of_receiver ? s.l.b : s.l.a;
  s.cq = mine.dev().create_cq(entries);
  if (s.cq == nullptr) throw std::runtime_error("create_cq failed");
  (of_receiver ? mine.receive_cq : mine.send_cq) = s.cq;
  s.l = make_sibling(s.l, {}, 5000);
  return s;
}

void expect_overrun(const small_queue& s, bool of_receiver) {
  const side& mine = of_receiver ? s.l.b : s.l.a;
  ibv_async_event e{};
  unsigned queue_errors = 0, fatal = 0;
  while (next_event(mine, e, 2 * ms)) {
    if (e.event_type == IBV_EVENT_CQ_ERR) {
      ++queue_errors;
      EXPECT_EQ(e.element.cq, s.cq);
    } else {
      ++fatal;
      EXPECT_EQ(e.event_type, IBV_EVENT_QP_FATAL);
      EXPECT_EQ(e.element.qp, mine.qp);
    }
  }
  EXPECT_EQ(queue_errors, 1U);
  EXPECT_EQ(fatal, 1U);
  EXPECT_EQ(mine.state(), IBV_QPS_ERR);
}

TEST(Overrun, OfASender) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    const small_queue s = with_small_queue(l, 7, false);
    const writes w(s.l, 64);
    for (unsigned i = 0; i < 40; ++i) w.post_one(s.l.a, i);
    expect_overrun(s, false);
    ibv_wc wc{};
    for (unsigned i = 0; i < 8; ++i) {
      ASSERT_EQ(l.a.dev().poll_cq(s.cq, 1, &wc), 1) << "what was written before stays";
      EXPECT_EQ(wc.wr_id, i);
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    }
    // The other queue pair of the device has nothing to do with it.
    w.post_one(l.a, 77);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
  });
  EXPECT_GT(system.statistics().value("a.adapter.port1.rx_frames"), 0U);
}

TEST(Overrun, OfAReceiver) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    const small_queue s = with_small_queue(l, 7, true);
    const writes w(s.l, 64);
    for (unsigned i = 0; i < 20; ++i) post_receive(s.l.b, {{w.to.address(), 64, w.to.region->lkey}}, i);
    request r;
    r.opcode = IBV_WR_SEND;
    r.sges = {{w.from.address(), 64, w.from.region->lkey}};
    for (r.id = 0; r.id < 20; ++r.id) post(s.l.a, r);
    expect_overrun(s, true);
    w.post_one(l.a, 77);
    ibv_wc wc{};
    do {
      wc = l.a.wait_send();
    } while (wc.qp_num != l.a.qp->qp_num && !::testing::Test::HasFailure());
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  });
}

}  // namespace
}  // namespace rnic::system_test
