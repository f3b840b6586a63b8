// SPDX-License-Identifier: Apache-2.0
// Polling by itself: owner bits over laps, what a completion gives back, queues that get another size.
#include "testbenches/system/driver/shim.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::driver_test {
namespace {

using host_driver::queue_pair;

TEST(DriverPoll, OwnerBitsOverLapsInBatchesOfAnySize) {
  for (const bool large : {false, true}) {
    const std::string result = system_test::in_child([large] {
      with_shim(
          [large](shim& s) {
            s.bus.closed = true;
            auto* cq = s.device.create_cq(7);
            ASSERT_EQ(cq->entries, 8u);
            ASSERT_EQ(cq->entry_bytes, large ? 64u : 32u);
            queue_pair* qp = s.qp({8, 8, 1, 1, 0}, cq);
            forged_completions completions(*cq);
            const ibv_sge sge = s.sge();
            std::uint32_t polled = 0;
            ibv_wc wc[8];
            for (std::uint32_t round = 0; round < 40; ++round) {
              const std::uint32_t batch = 1 + round % 8;
              receives more(batch, &sge, 1);
              for (std::uint32_t i = 0; i < batch; ++i) more[i].wr_id = polled + i;
              ASSERT_EQ(more.post(s, qp), 0);
              for (std::uint32_t i = 0; i < batch; ++i) completions.receive(*qp);
              if (batch != 8) completions.unfinished(*qp);
              const std::uint32_t first = batch / 2;
              ASSERT_EQ(s.device.poll_cq(cq, static_cast<int>(first), wc), static_cast<int>(first));
              ASSERT_EQ(s.device.poll_cq(cq, 8, wc + first), static_cast<int>(batch - first)) << "and not one more";
              for (std::uint32_t i = 0; i < batch; ++i) ASSERT_EQ(wc[i].wr_id, polled + i);
              polled += batch;
              ASSERT_EQ(abi::load32(cq->record.pointer), polled);
              ASSERT_EQ(s.device.poll_cq(cq, 8, wc), 0);
            }
          },
          [large](host_driver::config& c) { c.large_cqe = large; });
      return std::string(testing::Test::HasFailure() ? "failed" : "passed");
    });
    EXPECT_EQ(result, "passed") << large;
  }
}

/// The consumer's index has 24 bits in its record.
TEST(DriverPoll, TheIndexInTheRecordWraps) {
  with_shim([](shim& s) {
    s.bus.closed = true;
    auto* cq = s.device.create_cq(7);
    queue_pair* qp = s.qp({8, 8, 1, 1, 0}, cq);
    const ibv_sge sge = s.sge();
    receives four(4, &sge, 1);
    ASSERT_EQ(four.post(s, qp), 0);
    forged_completions completions(*cq);
    cq->consumer = completions.next = 0xfffffe;
    for (unsigned i = 0; i < 4; ++i) completions.receive(*qp);
    ibv_wc wc[4];
    EXPECT_EQ(s.device.poll_cq(cq, 4, wc), 4);
    EXPECT_EQ(abi::load32(cq->record.pointer), 2u);
  });
}

/// A completion ends its request and all unsignalled ones before it, over the end of the index's 16 bits too.
TEST(DriverPoll, ASignalledCompletionGivesBackWhatIsBeforeIt) {
  with_shim([](shim& s) {
    s.bus.closed = true;
    auto* cq = s.device.create_cq(63);
    queue_pair* qp = s.qp({20, 1, 1, 1, 0}, cq);
    const std::uint32_t most = qp->caps.max_send_wr;
    forged_completions completions(*cq);
    const ibv_sge sge = s.sge();
    qp->sq.head = qp->sq.tail = 0xfffa;
    ibv_wc wc{};
    for (unsigned round = 0; round < 6; ++round) {
      const std::uint32_t head = qp->sq.head;
      sends all(most, &sge, 1);
      for (std::uint32_t i = 0; i < most; ++i) all[i].wr_id = round * 1000 + i;
      ASSERT_EQ(all.post(s, qp), 0);
      const std::uint32_t signalled[] = {0, most / 2, most - 1};
      for (const std::uint32_t i : signalled) {
        completions.send(*qp, head + i);
        ASSERT_EQ(s.device.poll_cq(cq, 1, &wc), 1);
        EXPECT_EQ(wc.wr_id, round * 1000 + i);
        EXPECT_EQ(qp->sq.tail, head + i + 1);
        EXPECT_EQ(qp->sq.overflows(most - 1), i != most - 1) << "as many places as it gave back";
      }
    }
  });
}

TEST(DriverPoll, ACompletionOfWhatWasNotPostedIsRefused) {
  with_shim([](shim& s) {
    s.bus.closed = true;
    auto* cq = s.device.create_cq(63);
    queue_pair* qp = s.qp({20, 1, 1, 1, 0}, cq);
    forged_completions completions(*cq);
    const ibv_sge sge = s.sge();
    sends two(2, &sge, 1);
    ASSERT_EQ(two.post(s, qp), 0);
    ibv_wc wc{};
    completions.send(*qp, 2);  // the next that would be posted
    EXPECT_EQ(s.device.poll_cq(cq, 1, &wc), -EINVAL);
    EXPECT_EQ(qp->sq.tail, 0u);
    completions.send(*qp, 1);
    EXPECT_EQ(s.device.poll_cq(cq, 1, &wc), 1);
    completions.send(*qp, 1);  // once more
    EXPECT_EQ(s.device.poll_cq(cq, 1, &wc), -EINVAL);
    EXPECT_EQ(qp->sq.tail, 2u);
  });
}

/// Receives of a connection between two hosts, whose receive queue gets another size while completions are unread.
struct resized {
  explicit resized(hosts::two_nodes& system, int cqe) : l(system_test::make_link(system, {})) {
    from = hosts::make_buffer(l.a.at, 4096);
    to = hosts::make_buffer(l.b.at, 4096);
    cq = l.b.dev().create_cq(cqe);
    l.b.receive_cq = cq;
    l.b.qp = hosts::make_qp(l.b.at, {}, *l.b.send_cq, *cq);
    l.a.qp = hosts::make_qp(l.a.at, {}, *l.a.send_cq, *l.a.receive_cq);
    hosts::connect(l.a.at, {}, *l.a.qp, l.b.at, l.b.qp->qp_num, 5, 9);
    hosts::connect(l.b.at, {}, *l.b.qp, l.a.at, l.a.qp->qp_num, 9, 5);
  }
  void send(unsigned many) {
    for (unsigned i = 0; i < many; ++i) {
      system_test::post_receive(l.b, {{to.address(), 64, to.region->lkey}}, next);
      system_test::request r;
      r.opcode = IBV_WR_SEND_WITH_IMM;
      r.sges = {{from.address(), 64, from.region->lkey}};
      r.immediate = next++;
      system_test::post(l.a, r);
      ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    }
    l.b.at.bus->spend_ps(20 * system_test::us);
  }
  /// Polls exactly `many`, in order.
  void expect(unsigned many) {
    for (unsigned i = 0; i < many; ++i, ++polled) {
      ibv_wc wc{};
      ASSERT_EQ(l.b.dev().poll_cq(cq, 1, &wc), 1) << polled;
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc.wr_id, polled);
      ASSERT_EQ(__builtin_bswap32(wc.imm_data), polled);
    }
    ibv_wc wc{};
    ASSERT_EQ(l.b.dev().poll_cq(cq, 1, &wc), 0);
  }
  system_test::link l;
  hosts::buffer from, to;
  host_driver::completion_queue* cq = nullptr;
  std::uint32_t next = 0, polled = 0;
};

void with_resized(int cqe, const std::function<void(resized&)>& body) {
  hosts::two_nodes system(system_test::default_system());
  system_test::run(system, [&] {
    resized r(system, cqe);
    body(r);
  });
}

TEST(DriverResizeCq, AQueueWithAllThatItMayHoldGrowsAndLosesNothing) {
  with_resized(7, [](resized& r) {
    r.send(3);  // somewhere in the lap
    r.expect(3);
    r.send(7);
    ASSERT_EQ(r.l.b.dev().resize_cq(r.cq, 31), 0);
    EXPECT_EQ(r.cq->cqe, 31);
    r.expect(7);
    r.send(31);
    r.expect(31);
    r.send(40 - 31);
    r.expect(40 - 31);
    EXPECT_EQ(r.l.b.dev().resize_cq(r.cq, 20), 0) << "the size that it has already";
    EXPECT_EQ(r.cq->cqe, 31);
  });
}

/// Eight unread in a queue of eight: there is no place for the marker. Nothing changes.
TEST(DriverResizeCq, AQueueExactlyFullCannotAndIsAsItWas) {
  with_resized(7, [](resized& r) {
    r.send(8);
    EXPECT_EQ(r.l.b.dev().resize_cq(r.cq, 31), -ENOMEM) << "the device's word (BAD_SIZE)";
    EXPECT_EQ(r.cq->cqe, 7);
    r.expect(8);
    EXPECT_EQ(r.l.b.dev().resize_cq(r.cq, 31), 0);
    r.send(31);
    r.expect(31);
  });
}

/// Down to exactly what is unread, and the place that stays free.
TEST(DriverResizeCq, AQueueShrinksToExactlyWhatIsUnread) {
  with_resized(31, [](resized& r) {
    r.send(13);
    r.expect(13);
    r.send(7);
    EXPECT_EQ(r.l.b.dev().resize_cq(r.cq, 3), -EINVAL) << "four entries for seven";
    ASSERT_EQ(r.l.b.dev().resize_cq(r.cq, 7), 0);
    EXPECT_EQ(r.cq->cqe, 7);
    r.send(1);  // the eighth
    r.expect(8);
    r.send(7);
    r.expect(7);
  });
}

TEST(DriverResizeCq, AnEmptyQueueAndSizesThatAreNone) {
  with_resized(7, [](resized& r) {
    EXPECT_EQ(r.l.b.dev().resize_cq(r.cq, 0), -EINVAL);
    EXPECT_EQ(r.l.b.dev().resize_cq(r.cq, static_cast<int>(r.l.b.dev().caps().max_cqes)), -EINVAL);
    ASSERT_EQ(r.l.b.dev().resize_cq(r.cq, 1), 0);
    r.send(1);
    r.expect(1);
    ASSERT_EQ(r.l.b.dev().resize_cq(r.cq, 255), 0);
    r.send(20);
    r.expect(20);
  });
}

}  // namespace
}  // namespace rnic::driver_test
