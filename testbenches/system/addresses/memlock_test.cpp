// SPDX-License-Identifier: Apache-2.0
// config::memlock_bytes: what programs may pin (RHEL 9 guide, 4.2; core/umem.c).
#include <gtest/gtest.h>

#include <cerrno>

#include "testbenches/system/addresses/captured.h"

namespace rnic::system_test {
namespace {

constexpr std::uint64_t page = 4096;

void with_limit(std::uint64_t bytes, const std::function<void(host_driver::device&, ibv_pd*)>& body) {
  hosts::two_nodes_config c = default_system();
  c.node.driver.memlock_bytes = bytes;
  hosts::two_nodes system(c);
  run(system, [&] {
    host_driver::device& d = *system.a().device;
    body(d, d.alloc_pd());
  });
}

TEST(Memlock, HoldsForRegions) {
  with_limit(16 * page, [](host_driver::device& d, ibv_pd* pd) {
    const auto memory = d.allocate_buffer(32 * page);
    const auto reg = [&](std::uint64_t from, std::uint64_t bytes) {
      errno = 0;
      return d.reg_mr(pd, memory.pointer + from, bytes, IBV_ACCESS_LOCAL_WRITE);
    };
    auto* const all = reg(0, 16 * page);
    ASSERT_NE(all, nullptr);
    EXPECT_EQ(reg(0, 1), nullptr) << "the same page counts again";
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(d.dereg_mr(all), 0);
    EXPECT_EQ(d.pinned().bytes(), 0u);
    EXPECT_EQ(reg(1, 16 * page), nullptr) << "17 pages are touched";
    EXPECT_EQ(errno, ENOMEM);
    auto* const most = reg(1, 16 * page - 1);
    ASSERT_NE(most, nullptr);
    EXPECT_EQ(d.dereg_mr(most), 0);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(reg(0, 17 * page), nullptr) << "what is refused costs nothing";
    EXPECT_NE(reg(0, 16 * page), nullptr);
  });
}

TEST(Memlock, HoldsForQueues) {
  // A completion queue of 63 entries of 64 bytes is a page, its doorbell record in another one that all share.
  with_limit(3 * page, [](host_driver::device& d, ibv_pd* pd) {
    auto* const first = d.create_cq(63);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(d.pinned().bytes(), 2 * page);
    auto* const second = d.create_cq(63);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(d.pinned().bytes(), 3 * page);
    errno = 0;
    EXPECT_EQ(d.create_cq(1), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(d.resize_cq(first, 127), -ENOMEM);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = first;
    init.qp_type = IBV_QPT_RC;
    init.cap = {1, 1, 1, 1, 0};
    errno = 0;
    EXPECT_EQ(d.create_qp(pd, &init), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    ibv_srq_init_attr srq{};
    srq.attr.max_wr = 16;
    srq.attr.max_sge = 1;
    errno = 0;
    EXPECT_EQ(d.create_srq(pd, &srq), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(d.destroy_cq(second), 0);
    auto* const shared = d.create_srq(pd, &srq);
    ASSERT_NE(shared, nullptr);
    EXPECT_EQ(d.destroy_srq(shared), 0);
    EXPECT_EQ(d.destroy_cq(first), 0);
    EXPECT_EQ(d.pinned().bytes(), 0u);
  });
}

TEST(Memlock, ResizingChargesTheNewBuffer) {
  with_limit(4 * page, [](host_driver::device& d, ibv_pd*) {
    auto* const cq = d.create_cq(63);
    ASSERT_NE(cq, nullptr);
    EXPECT_EQ(d.resize_cq(cq, 255), -ENOMEM) << "four pages beside two, as long as both are there";
    EXPECT_EQ(d.resize_cq(cq, 127), 0);
    EXPECT_EQ(d.pinned().bytes(), 3 * page);
  });
}

/// What the kernel has for itself: event queues, QP1 (ib/qp.c allocates its buffer).
TEST(Memlock, IsNotTheKernels) {
  with_limit(6 * page, [](host_driver::device& d, ibv_pd* pd) {
    EXPECT_EQ(d.pinned().bytes(), 0u) << "the driver's own";
    auto* const cq = d.create_cq(63);
    ASSERT_NE(cq, nullptr);
    const std::uint64_t before = d.pinned().bytes();
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap = {1000, 1000, 1, 1, 0};
    ASSERT_NE(d.create_gsi(pd, &init, 1), nullptr);
    EXPECT_EQ(d.pinned().bytes(), before);
  });
}

TEST(Memlock, IsUnlimitedByDefault) {
  EXPECT_EQ(host_driver::config{}.memlock_bytes, host_driver::no_memlock);
  EXPECT_FALSE(host_driver::pinned_memory(host_driver::config::small().memlock_bytes).is_limited());
}

}  // namespace
}  // namespace rnic::system_test
