// SPDX-License-Identifier: Apache-2.0
// XRC: domains, receive queues, queue pairs and completions come and go in any order.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "testbenches/system/verbs/xrc_town.h"

namespace rnic::system_test::xrc {
namespace {

/// Numbers that the caller chooses: of a queue pair also without the bit that others of its kind have.
TEST(Xrc, NumbersMayBeChosen) {
  in_town([](town& t) {
    process p = t.new_process(t.domain);
    host_driver::device& device = *p.at.device;
    ibv_srq_init_attr_ex attr = queue_attributes(p, t.domain, 16);
    const std::uint32_t chosen = p.srq->srqn + 77, beyond = 1u << 20;
    p.srq = device.create_srq_ex(&attr, &chosen);
    ASSERT_NE(p.srq, nullptr);
    EXPECT_EQ(p.srq->srqn, chosen);
    EXPECT_EQ(device.create_srq_ex(&attr, &chosen), nullptr);
    EXPECT_EQ(errno, EBUSY);
    EXPECT_EQ(device.create_srq_ex(&attr, &beyond), nullptr);
    EXPECT_EQ(errno, EINVAL);
    std::uint64_t id = 0;
    for (const std::uint32_t qpn : {0x345u, 0x800347u}) {
      const link l = t.lane(t.domain, &qpn);
      EXPECT_EQ(l.b.qp->qp_num, qpn);
      ASSERT_EQ(p.post(id), 0);
      t.post(l, IBV_WR_SEND, chosen, 100, 1500);
      const ibv_wc wc = p.wait();
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, id);
      EXPECT_EQ(wc.qp_num, qpn);
      EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      EXPECT_EQ(std::memcmp(p.memory.at(id * place), t.near.at(100), 1500), 0);
      EXPECT_EQ(device.destroy_qp(l.b.qp), 0);
      ++id;
    }
    ASSERT_EQ(device.destroy_srq(p.srq), 0);
    p.srq = device.create_srq_ex(&attr, &chosen);  // the number is free again
    EXPECT_NE(p.srq, nullptr);
  });
}

/// What a queue pair has received belongs to the processes whose queues were named, not to who made the queue pair.
TEST(Xrc, CompletionsOutliveTheQueuePair) {
  in_town([](town& t) {
    const process p = t.new_process(t.domain), other = t.new_process(t.domain);
    for (unsigned round = 0; round < 3; ++round) {
      SCOPED_TRACE(round);
      const link l = t.lane(t.domain);
      const std::uint32_t qpn = l.b.qp->qp_num;
      for (std::uint64_t id = 0; id < 4; ++id) {
        ASSERT_EQ(p.post(id), 0);
        ASSERT_EQ(other.post(id), 0);
      }
      for (std::uint64_t id = 0; id < 4; ++id) {
        t.post(l, IBV_WR_SEND, p.srq->srqn, 100 * id, 2000);
        t.post(l, IBV_WR_SEND_WITH_IMM, other.srq->srqn, 100 * id, 500);
        EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
        EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      }
      t.settle();
      if (round != 0) {
        EXPECT_EQ(p.wait().wr_id, 0U);  // one of them while the queue pair is there
      }
      ASSERT_EQ(l.b.dev().destroy_qp(l.b.qp), 0);
      for (std::uint64_t id = round != 0 ? 1 : 0; id < 4; ++id) {
        const ibv_wc wc = p.wait();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, IBV_WC_RECV);
        EXPECT_EQ(wc.wr_id, id);
        EXPECT_EQ(wc.byte_len, 2000U);
        EXPECT_EQ(wc.qp_num, qpn);
        EXPECT_EQ(std::memcmp(p.memory.at(id * place), t.near.at(100 * id), 2000), 0);
      }
      for (std::uint64_t id = 0; id < 4; ++id) EXPECT_EQ(other.wait().wr_id, id);
      EXPECT_TRUE(p.silent());
    }
  });
}

/// Several receive queues on one completion queue: one goes with messages that nobody fetched, another comes.
TEST(Xrc, CompletionsEndWithTheirReceiveQueue) {
  in_town([](town& t) {
    process gone = t.new_process(t.domain), stays = t.new_process(t.domain);
    stays.cq = gone.cq;
    ibv_srq_init_attr_ex attr = queue_attributes(stays, t.domain);
    stays.srq = stays.at.device->create_srq_ex(&attr);
    ASSERT_NE(stays.srq, nullptr);
    const link l = t.lane(t.domain);
    for (std::uint64_t id = 0; id < 3; ++id) {
      ASSERT_EQ(gone.post(id), 0);
      ASSERT_EQ(stays.post(10 + id), 0);
    }
    for (std::uint64_t id = 0; id < 3; ++id)
      for (const process* p : {&gone, &stays}) {
        t.post(l, IBV_WR_SEND, p->srq->srqn, 0, 64);
        EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      }
    t.settle();
    ASSERT_EQ(gone.at.device->destroy_srq(gone.srq), 0);
    gone.srq = gone.at.device->create_srq_ex(&attr);  // perhaps with the same number
    ASSERT_NE(gone.srq, nullptr);
    for (std::uint64_t id = 0; id < 3; ++id) {
      const ibv_wc wc = stays.wait();
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, 10 + id);
    }
    ibv_wc wc{};
    EXPECT_EQ(stays.at.device->poll_cq(stays.cq, 1, &wc), 0);
    ASSERT_EQ(stays.post(1), 0);
    t.post(l, IBV_WR_SEND, stays.srq->srqn, 0, 64);
    EXPECT_EQ(stays.wait().wr_id, 1U);
    // In any order: the completion queue is in use as long as one of them is.
    EXPECT_EQ(stays.at.device->destroy_cq(stays.cq), -EBUSY);
    EXPECT_EQ(stays.at.device->destroy_srq(stays.srq), 0);
    EXPECT_EQ(stays.at.device->destroy_cq(stays.cq), -EBUSY);
    EXPECT_EQ(gone.at.device->destroy_srq(gone.srq), 0);
    EXPECT_EQ(stays.at.device->destroy_cq(stays.cq), 0);
  });
}

TEST(Xrc, ObjectsHoldEachOther) {
  in_town([](town& t) {
    host_driver::device& dev = t.first().b.dev();
    xrc_domain* const x = dev.open_xrcd();
    const process p = t.new_process(x);
    const std::uint32_t srqn = p.srq->srqn;
    EXPECT_EQ(dev.close_xrcd(x), -EBUSY);
    const link l = t.lane(x);
    EXPECT_EQ(dev.destroy_cq(p.cq), -EBUSY);
    EXPECT_EQ(dev.destroy_srq(p.srq), 0);
    EXPECT_EQ(dev.destroy_cq(p.cq), 0);
    EXPECT_EQ(dev.close_xrcd(x), -EBUSY);
    t.post(l, IBV_WR_SEND, srqn, 0, 64);  // no such queue any more
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_REM_INV_REQ_ERR);
    EXPECT_EQ(dev.destroy_qp(l.b.qp), 0);
    EXPECT_EQ(dev.close_xrcd(x), 0);
  });
}

}  // namespace
}  // namespace rnic::system_test::xrc
