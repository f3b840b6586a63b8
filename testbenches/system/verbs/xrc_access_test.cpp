// SPDX-License-Identifier: Apache-2.0
// XRC: no way into memory, receive queues and queue pairs of others.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "testbenches/system/verbs/xrc_town.h"

namespace rnic::system_test::xrc {
namespace {

TEST(Xrc, MemoryIsThatOfTheQueueNamed) {
  in_town([](town& t) {
    const process one = t.new_process(t.domain), other = t.new_process(t.domain);
    const link l = t.lane(t.domain);
    const auto at = one.memory.address(300);
    const auto key = one.memory.region->rkey;
    t.post(l, IBV_WR_RDMA_WRITE, one.srq->srqn, 0, 5000, at, key);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    t.settle();
    EXPECT_EQ(std::memcmp(one.memory.at(300), t.near.at(), 5000), 0);
    t.post(l, IBV_WR_RDMA_READ, one.srq->srqn, place, 5000, at, key);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(t.near.at(place), t.near.at(), 5000), 0);
    std::uint64_t before = 0, after = 0;
    std::memcpy(&before, one.memory.at(304), 8);
    t.post(l, IBV_WR_ATOMIC_FETCH_AND_ADD, one.srq->srqn, place, 8, at + 4, key);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    t.settle();
    std::memcpy(&after, one.memory.at(304), 8);
    EXPECT_EQ(after, before + 1);
    EXPECT_EQ(one.post(2), 0);
    t.post(l, IBV_WR_RDMA_WRITE_WITH_IMM, one.srq->srqn, 9, 3000, at, key);
    const ibv_wc wc = one.wait();
    EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(wc.wr_id, 2U);
    EXPECT_EQ(std::memcmp(one.memory.at(300), t.near.at(9), 3000), 0);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    // The same key by way of another process's queue.
    const std::vector<std::uint8_t> image(one.memory.at(), one.memory.at() + place);
    for (const ibv_wr_opcode verb : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
      const link intruder = t.lane(t.domain);
      t.post(intruder, verb, other.srq->srqn, 4 * place, 8, at + 4, key);
      EXPECT_EQ(intruder.a.wait_send().status, IBV_WC_REM_ACCESS_ERR);
      t.settle();
      EXPECT_EQ(intruder.b.state(), IBV_QPS_ERR);
    }
    EXPECT_EQ(std::memcmp(one.memory.at(), image.data(), place), 0);
  });
}

/// A SEND ends a key of the protection domain that the queue it names belongs to.
TEST(Xrc, SendWithInvalidateEndsAKeyOfTheQueuesOwner) {
  in_town([](town& t) {
    const process p = t.new_process(t.domain), other = t.new_process(t.domain);
    link own = t.first();
    own.b.at.pd = p.at.pd;
    connection_options by_kernel = quick();
    by_kernel.kernel = true;  // on its own queue pair the process may register memory
    own = make_sibling(own, by_kernel);
    patchwork pages(p.at);
    auto registration = pages.registration({3, 1, 2}, 0, 3 * 4096, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE);
    ASSERT_EQ(pages.register_on(own.b, registration).status, IBV_WC_SUCCESS);
    const std::uint32_t key = pages.region->rkey;
    const auto write = [&](const link& via) {
      t.post(via, IBV_WR_RDMA_WRITE, p.srq->srqn, 500, 100, patchwork::iova + 4000, key);
      return via.a.wait_send().status;
    };
    const auto send = [&](const link& via, const process& to) {
      EXPECT_EQ(to.post(1), 0);
      ibv_sge sge{t.near.address(64), 1500, t.near.region->lkey};
      ibv_send_wr wr{}, *bad = nullptr;
      wr.opcode = IBV_WR_SEND_WITH_INV;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.send_flags = IBV_SEND_SIGNALED;
      wr.invalidate_rkey = key;
      wr.qp_type.xrc.remote_srqn = to.srq->srqn;
      hosts::require(via.a.dev().post_send(via.a.qp, &wr, &bad), "post_send");
      return to.wait();
    };
    const link l = t.lane(t.domain);
    EXPECT_EQ(write(l), IBV_WC_SUCCESS);
    t.settle();
    for (unsigned i = 0; i < 100; ++i) ASSERT_EQ(*pages.byte(4000 + i), t.near.at(500)[i]);
    EXPECT_EQ(send(t.lane(t.domain), other).status, IBV_WC_REM_INV_REQ_ERR);  // the key of somebody else
    EXPECT_EQ(write(l), IBV_WC_SUCCESS);
    const ibv_wc wc = send(l, p);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wc_flags & IBV_WC_WITH_INV, static_cast<unsigned>(IBV_WC_WITH_INV));
    EXPECT_EQ(wc.invalidated_rkey, key);
    EXPECT_EQ(wc.byte_len, 1500U);
    EXPECT_EQ(std::memcmp(p.memory.at(place), t.near.at(64), 1500), 0);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(write(l), IBV_WC_REM_ACCESS_ERR);
  });
}

TEST(Xrc, NoWayIntoOtherQueues) {
  in_town([](town& t) {
    xrc_domain* const foreign = t.first().b.dev().open_xrcd();
    const process mine = t.new_process(t.domain), theirs = t.new_process(foreign), basic = t.new_process(nullptr);
    for (const process& p : {mine, theirs, basic})
      for (unsigned i = 0; i < 4; ++i) ASSERT_EQ(p.post(i), 0);
    const link good = t.lane(t.domain);
    const auto refused = [&](const link& l, std::uint32_t srqn, ibv_wr_opcode verb, const process& owner) {
      SCOPED_TRACE(srqn);
      t.post(l, verb, srqn, 0, verb == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 64, owner.memory.address(),
             owner.memory.region->rkey);
      EXPECT_EQ(l.a.wait_send().status, IBV_WC_REM_INV_REQ_ERR);
      t.settle();
      EXPECT_EQ(l.b.state(), IBV_QPS_ERR);
      ibv_async_event e{};
      do ASSERT_TRUE(l.b.dev().get_async_event(&e, ms));
      while (e.event_type != IBV_EVENT_QP_REQ_ERR);
      EXPECT_EQ(e.element.qp, l.b.qp);
    };
    for (const ibv_wr_opcode verb :
         {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
      refused(t.lane(t.domain), theirs.srq->srqn, verb, theirs);
      refused(t.lane(t.domain), basic.srq->srqn, verb, basic);
      refused(t.lane(foreign), mine.srq->srqn, verb, mine);
      // A queue pair that only sends has no domain, and a basic queue is in none.
      refused(t.lane(nullptr), basic.srq->srqn, verb, basic);
    }
    for (const std::uint32_t srqn : {0u, mine.srq->srqn + 100, 0xffffffu})
      refused(t.lane(t.domain), srqn, IBV_WR_SEND, mine);
    for (const process& p : {mine, theirs, basic}) {
      EXPECT_TRUE(p.silent());
      for (unsigned i = 0; i < place; ++i) ASSERT_EQ(*p.memory.at(i), 0);
    }
    t.post(good, IBV_WR_SEND, mine.srq->srqn, 0, 64);
    EXPECT_EQ(mine.wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(good.a.wait_send().status, IBV_WC_SUCCESS);
  });
}

TEST(Xrc, OtherTransportsAreNotMixedUp) {
  in_town([](town& t) {
    const process p = t.new_process(t.domain);
    ASSERT_EQ(p.post(0), 0);
    // An RC queue pair and an XRC one on either side: neither takes the other's packets.
    link l = t.first();
    l.a.qp = hosts::make_qp(l.a.at, quick(), *l.a.send_cq, *l.a.receive_cq);
    l.b.qp = t.make(l.b.at, IBV_QPT_XRC_RECV, nullptr, t.domain);
    t.join(l);
    request r;
    r.opcode = IBV_WR_SEND;
    r.sges = {{t.near.address(), 64, t.near.region->lkey}};
    post(l.a, r);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_RETRY_EXC_ERR);
    link m = t.first();
    m.a.qp = t.make(m.a.at, IBV_QPT_XRC_SEND, m.a.send_cq, nullptr);
    m.b.qp = hosts::make_qp(m.b.at, quick(), *m.b.send_cq, *m.b.receive_cq);
    t.join(m);
    post_receive(m.b, {{p.memory.address(), 64, p.memory.region->lkey}});
    t.post(m, IBV_WR_SEND, p.srq->srqn, 0, 64);
    EXPECT_EQ(m.a.wait_send().status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_TRUE(p.silent());
    EXPECT_EQ(*p.memory.at(), 0);
    // What receives does not send, and has no queue of its own.
    ibv_send_wr wr{}, *bad = nullptr;
    EXPECT_EQ(l.b.dev().post_send(l.b.qp, &wr, &bad), -EINVAL);
    ibv_recv_wr rwr{}, *rbad = nullptr;
    EXPECT_EQ(l.b.dev().post_recv(l.b.qp, &rwr, &rbad), -EINVAL);
  });
}

}  // namespace
}  // namespace rnic::system_test::xrc
