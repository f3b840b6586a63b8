// SPDX-License-Identifier: Apache-2.0
// Completion events as the shim reads them: many at once, an event queue that is too small, queues that are gone.
#include "testbenches/system/driver/shim.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::driver_test {
namespace {

constexpr std::uint64_t us = sim::ps_per_us, ms = 1000 * us;

/// A queue with a completion that nobody polls: every request of notification with a new sequence number is an event.
struct noisy {
  explicit noisy(shim& to) : s(to), cq(to.device.create_cq(7)), qp(to.qp({8, 8, 1, 1, 0}, cq)) {
    hosts::require(s.device.req_notify_cq(cq, 0), "req_notify_cq");
    const ibv_sge sge = s.sge();
    receives one(1, &sge, 1);
    hosts::require(one.post(s, qp), "post_recv");
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    hosts::require(s.device.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
                   "INIT");
    attr.qp_state = IBV_QPS_ERR;  // flushes it
    hosts::require(s.device.modify_qp(qp, &attr, IBV_QP_STATE), "ERR");
    s.bus.spend_ps(200 * us);
  }
  /// Arms again, as one event after the other was taken, without taking any.
  void raise(unsigned many) {
    const std::uint64_t doorbell = find_doorbell();
    for (unsigned i = 0; i < many; ++i) {
      const std::uint64_t high = abi::uar::cq_arm_word(++sequence, abi::uar::cq_arm_next, cq->cqn);
      s.bus.mmio_write64(2, doorbell, high << 32);
    }
    s.bus.spend_ps(200 * us);
  }
  shim& s;
  host_driver::completion_queue* cq;
  host_driver::queue_pair* qp;
  unsigned sequence = 1;

 private:
  std::uint64_t find_doorbell() const {
    for (const auto& store : s.bus.stores)
      if (store.bytes.size() == 8) return store.offset;
    throw std::runtime_error("no queue was armed");
  }
};

/// Stores to EQ doorbells since `from`: consumer index and whether it armed.
std::vector<std::pair<std::uint32_t, bool>> index_updates(const shim& s, std::size_t from) {
  std::vector<std::pair<std::uint32_t, bool>> seen;
  for (std::size_t i = from; i < s.bus.stores.size(); ++i) {
    const auto& store = s.bus.stores[i];
    if (store.bytes.size() == 4 && (store.offset & 0xfff) >= abi::uar::eq_doorbell)
      seen.emplace_back(store.word() & abi::uar::eq_index_mask, (store.word() & abi::uar::eq_arm) != 0);
  }
  return seen;
}

/// The handler tells how far it is after every 128 events (net/eq.c), and arms when it has taken all.
TEST(DriverEvents, MoreThan128AtOnce) {
  with_shim(
      [](shim& s) {
        noisy n(s);
        n.raise(299);
        const std::size_t before = s.bus.stores.size();
        for (unsigned i = 0; i < 300; ++i) ASSERT_EQ(s.device.get_cq_event(0, ms), n.cq) << i;
        EXPECT_EQ(s.device.get_cq_event(0, 100 * us), nullptr) << "each once";
        EXPECT_EQ(index_updates(s, before),
                  (std::vector<std::pair<std::uint32_t, bool>>{{128, false}, {256, false}, {300, true}}));
        n.sequence = n.cq->arm_sn - 1;
        n.raise(300);  // over the end of the queue
        for (unsigned i = 0; i < 300; ++i) ASSERT_EQ(s.device.get_cq_event(0, ms), n.cq) << i;
        EXPECT_EQ(s.device.get_cq_event(0, 100 * us), nullptr);
      },
      [](host_driver::config& c) { c.log_completion_eq = 9; });
}

/// 255 of 300 have a place in 256 entries; the device counts the others, the driver reads what there is and goes on.
TEST(DriverEvents, AnEventQueueThatIsTooSmallLosesWhatIsCounted) {
  hosts::two_nodes_config c;
  c.node = hosts::make_node_config("connectx3pro_40g");
  c.node.driver.log_completion_eq = 8;
  hosts::two_nodes system(c);
  system.run(
      [&] {
        {
          shim s(system, c.node.driver);
          noisy n(s);
          n.raise(299);
          unsigned got = 0;
          while (s.device.get_cq_event(0, 100 * us) != nullptr) ++got;
          EXPECT_EQ(got, 255u);
          n.raise(1);
          EXPECT_EQ(s.device.get_cq_event(0, ms), n.cq) << "the queue works again";
          EXPECT_EQ(system_test::counted(system, "eq_overflow"), 45u);
          hosts::require(s.device.close(), "close");
        }
        hosts::require(system.a().device->open(), "open");
      },
      [] {});
}

/// Its event is in the event queue and nobody has looked. The next queue has its number, and is not told of it.
TEST(DriverEvents, ADestroyedQueueLeavesNoEventToItsSuccessor) {
  with_shim([](shim& s) {
    noisy n(s);
    n.raise(2);
    const std::uint32_t number = n.cq->cqn;
    ASSERT_EQ(s.device.destroy_qp(n.qp), 0);
    ASSERT_EQ(s.device.destroy_cq(n.cq), 0);
    noisy next(s);
    ASSERT_EQ(next.cq->cqn, number);
    EXPECT_EQ(next.cq->arm_sn, 1u);
    EXPECT_EQ(s.device.get_cq_event(0, 200 * us), next.cq);
    EXPECT_EQ(next.cq->arm_sn, 2u);
    EXPECT_EQ(s.device.get_cq_event(0, 200 * us), nullptr) << "one of its own and no other";
  });
}

/// Another queue's events, read on that occasion, are still delivered.
TEST(DriverEvents, ADestroyedQueueTakesNoEventsOfOthersWithIt) {
  with_shim([](shim& s) {
    noisy one(s), other(s);
    ASSERT_EQ(s.device.destroy_qp(one.qp), 0);
    ASSERT_EQ(s.device.destroy_cq(one.cq), 0);
    EXPECT_EQ(s.device.get_cq_event(0, ms), other.cq);
    EXPECT_EQ(s.device.get_cq_event(0, 200 * us), nullptr);
    ibv_wc wc{};
    EXPECT_EQ(s.device.poll_cq(other.cq, 1, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  });
}

/// Solicited events only: a SEND of several packets is one event, when its last packet is there.
TEST(DriverEvents, ASolicitedSendOfSeveralPacketsIsOneEvent) {
  hosts::two_nodes system(system_test::default_system());
  system_test::run(system, [&] {
    system_test::link l = system_test::make_link(system, {});
    hosts::buffer from = hosts::make_buffer(l.a.at, 20'000), to = hosts::make_buffer(l.b.at, 20'000);
    host_driver::device& b = l.b.dev();
    for (unsigned n = 0; n < 3; ++n) {
      hosts::require(b.req_notify_cq(l.b.receive_cq, 1), "req_notify_cq");
      for (const bool solicited : {false, true}) {
        system_test::post_receive(l.b, {{to.address(), 20'000, to.region->lkey}});
        system_test::request r;
        r.opcode = IBV_WR_SEND;
        r.sges = {{from.address(), 20'000, from.region->lkey}};
        if (solicited) r.flags |= IBV_SEND_SOLICITED;
        system_test::post(l.a, r);
        ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
        if (!solicited) {
          EXPECT_EQ(b.get_cq_event(0, 50 * us), nullptr);
        }
      }
      ASSERT_EQ(b.get_cq_event(0, ms), l.b.receive_cq);
      EXPECT_EQ(b.get_cq_event(0, 50 * us), nullptr);
      for (unsigned i = 0; i < 2; ++i) ASSERT_EQ(l.b.wait_receive().byte_len, 20'000u);
    }
  });
}

}  // namespace
}  // namespace rnic::driver_test
