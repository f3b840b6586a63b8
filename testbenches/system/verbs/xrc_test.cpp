// SPDX-License-Identifier: Apache-2.0
// XRC: one pair of queue pairs and many receive queues behind it, also where packets are lost or a queue is empty.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "testbenches/system/verbs/xrc_town.h"

namespace rnic::system_test::xrc {
namespace {

TEST(Xrc, OneConnectionReachesAllQueuesOfItsDomain) {
  watcher w;
  in_town(
      [&](town& t) {
        process people[] = {t.new_process(t.domain), t.new_process(t.domain), t.new_process(t.domain)};
        const link l = t.lane(t.domain);
        EXPECT_NE(l.b.qp->qp_num & 1u << 23, 0U);
        std::uint64_t id = 0;
        for (const std::uint32_t bytes : {0u, 1u, 100u, 1024u, 1025u, 9000u})
          for (const process& p : people) {
            SCOPED_TRACE(bytes);
            const ibv_wr_opcode opcode = id % 2 == 0 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
            ASSERT_EQ(p.post(id % places), 0);
            t.post(l, opcode, p.srq->srqn, 77 * id, bytes);
            const ibv_wc wc = p.wait();
            EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
            EXPECT_EQ(wc.opcode, IBV_WC_RECV);
            EXPECT_EQ(wc.wr_id, id % places);
            EXPECT_EQ(wc.byte_len, bytes);
            EXPECT_EQ(wc.qp_num, l.b.qp->qp_num);
            if (opcode == IBV_WR_SEND_WITH_IMM) {
              EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
              EXPECT_EQ(__builtin_bswap32(wc.imm_data), 0xabcd0000 | bytes);
            }
            EXPECT_EQ(std::memcmp(p.memory.at((id % places) * place), t.near.at(77 * id), bytes), 0);
            EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
            ++id;
          }
        for (const process& p : people) {
          EXPECT_TRUE(p.silent());
          EXPECT_NE(std::find(w.seen.begin(), w.seen.end(), p.srq->srqn), w.seen.end());
        }
        EXPECT_EQ(w.requests, 3U * (1 + 1 + 1 + 1 + 2 + 9));  // each packet of a message names the queue
        EXPECT_GE(w.answers, 18U);                            // some packets ask in the middle of a message
      },
      &w);
}

TEST(Xrc, WaitsForAnEmptyQueue) {
  in_town([](town& t) {
    const process empty = t.new_process(t.domain), full = t.new_process(t.domain);
    for (unsigned i = 0; i < 4; ++i) ASSERT_EQ(full.post(i), 0);
    const link l = t.lane(t.domain);
    t.post(l, IBV_WR_SEND, full.srq->srqn, 0, 2000);
    t.post(l, IBV_WR_SEND, empty.srq->srqn, 100, 3000);
    t.post(l, IBV_WR_SEND, full.srq->srqn, 200, 10);
    EXPECT_EQ(full.wait().byte_len, 2000U);
    t.first().b.at.bus->spend_ps(300 * us);
    EXPECT_TRUE(full.silent());  // in order
    ASSERT_EQ(empty.post(5), 0);
    EXPECT_EQ(empty.wait().wr_id, 5U);
    EXPECT_EQ(full.wait().byte_len, 10U);
    EXPECT_EQ(std::memcmp(empty.memory.at(5 * place), t.near.at(100), 3000), 0);
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
  });
}

TEST(Xrc, EveryPacketLostOnce) {
  watcher w;
  in_town(
      [&](town& t) {
        const process one = t.new_process(t.domain), two = t.new_process(t.domain);
        const link l = t.lane(t.domain);
        for (unsigned lost = 1; lost <= 7; ++lost) {
          SCOPED_TRACE(lost);
          ASSERT_EQ(one.post(0), 0);
          ASSERT_EQ(two.post(1), 0);
          fill_random(t.near.at(), 8192, t.random);
          w.lose = lost;
          t.post(l, IBV_WR_SEND, one.srq->srqn, 0, 3000);
          t.post(l, IBV_WR_RDMA_READ, two.srq->srqn, place, 2000, two.memory.address(8 * place),
                 two.memory.region->rkey);
          t.post(l, IBV_WR_SEND, two.srq->srqn, 4000, 2500);
          for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
          EXPECT_EQ(w.lose, 0U);
          EXPECT_EQ(one.wait().byte_len, 3000U);
          EXPECT_EQ(two.wait().byte_len, 2500U);
          EXPECT_EQ(std::memcmp(one.memory.at(), t.near.at(), 3000), 0);
          EXPECT_EQ(std::memcmp(two.memory.at(place), t.near.at(4000), 2500), 0);
          EXPECT_TRUE(one.silent() && two.silent());
        }
      },
      &w);
}

/// A message that its queue pair cannot finish gives its receive back.
TEST(Xrc, HalfAMessageIsFlushed) {
  in_town([](town& t) {
    const process p = t.new_process(t.domain);
    ASSERT_EQ(p.post(3), 0);
    ASSERT_EQ(p.post(4), 0);
    const link l = t.lane(t.domain);
    ibv_sge sges[2] = {{t.near.address(), 4096, t.near.region->lkey}, {t.near.address(), 64, t.near.region->lkey ^ 1}};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.opcode = IBV_WR_SEND;
    wr.sg_list = sges;
    wr.num_sge = 2;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.qp_type.xrc.remote_srqn = p.srq->srqn;
    ASSERT_EQ(l.a.dev().post_send(l.a.qp, &wr, &bad), 0);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_LOC_PROT_ERR);  // its end never comes
    t.settle();
    EXPECT_TRUE(p.silent());
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(l.b.dev().modify_qp(l.b.qp, &attr, IBV_QP_STATE), 0);
    const ibv_wc wc = p.wait();
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(wc.wr_id, 3U);
    // The queue itself goes on.
    const link next = t.lane(t.domain);
    t.post(next, IBV_WR_SEND, p.srq->srqn, 0, 2000);
    EXPECT_EQ(p.wait().wr_id, 4U);
    EXPECT_EQ(next.a.wait_send().status, IBV_WC_SUCCESS);
  });
}

/// The times at which a fixed piece of work completes.
std::string history(const sim::timebase::options& timing) {
  hosts::two_nodes_config config = default_system();
  config.timing = timing;
  hosts::two_nodes system(config);
  std::string text;
  run(system, [&] {
    town t(system);
    const process one = t.new_process(t.domain), two = t.new_process(t.domain);
    const link l = t.lane(t.domain);
    for (unsigned i = 0; i < 12; ++i) {
      const process& p = i % 3 == 0 ? one : two;
      t.post(l, IBV_WR_SEND, p.srq->srqn, i, 1000 * i);
      if (i % 4 == 2) l.b.at.bus->spend_ps(30 * us);  // nothing posted yet
      EXPECT_EQ(p.post(i), 0);
      text += std::to_string(p.wait().byte_len) + "@" + std::to_string(system.now_ps()) + " ";
      EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      text += std::to_string(system.now_ps()) + " ";
    }
  });
  return text;
}

TEST(Xrc, SleepOrderAndRunningAheadChangeNothing) {
  sim::timebase::options always, shuffled, stepping;
  always.always_tick = true;
  shuffled.shuffle_seed = 7;
  stepping.run_ahead = false;
  std::vector<std::string> texts;
  for (const auto& timing : {sim::timebase::options{}, always, shuffled, stepping})
    texts.push_back(in_child([&] { return history(timing); }));
  EXPECT_GT(texts[0].size(), 100U);
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
}

}  // namespace
}  // namespace rnic::system_test::xrc
