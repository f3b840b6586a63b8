// SPDX-License-Identifier: Apache-2.0
// What QUERY_DEV_CAP says of numbers and sizes, held against what a driver gets.
#include "model/abi/device.h"
#include "testbenches/system/driver/shim.h"

namespace rnic::driver_test {
namespace {

host_driver::shared_receive_queue* make_srq(shim& s, unsigned wqes, unsigned sges = 1) {
  ibv_srq_init_attr init{};
  init.attr.max_wr = wqes;
  init.attr.max_sge = sges;
  return s.device.create_srq(s.pd, &init);
}

host_driver::queue_pair* make_qp(shim& s, const ibv_qp_cap& cap, host_driver::completion_queue* cq) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = cap;
  return s.device.create_qp(s.pd, &init);
}

}  // namespace

/// Reserved are 2^7 completion queues, 2^6 of queue pairs and shared queues, 16 regions, 4 event queues; the numbers
/// below are firmware's.
TEST(DriverLimits, NumbersBeginBehindTheReservedOnes) {
  with_shim([](shim& s) {
    const host_driver::device_caps& caps = s.device.caps();
    EXPECT_EQ(caps.reserved_cqs, 128u);
    EXPECT_EQ(caps.reserved_qps, 64u);
    EXPECT_EQ(caps.reserved_srqs, 64u);
    EXPECT_EQ(caps.reserved_mpts, 16u);
    EXPECT_EQ(caps.reserved_mtts, 16u);
    EXPECT_EQ(caps.reserved_eqs, 4u);
    host_driver::completion_queue* const cq = s.device.create_cq(7);
    ASSERT_NE(cq, nullptr);
    EXPECT_GE(cq->cqn, 128u);
    EXPECT_GE(cq->mtt.first, 16u);
    EXPECT_GE(s.qp({1, 1, 1, 1, 0}, cq)->qp_num, 64u);
    host_driver::shared_receive_queue* const srq = make_srq(s, 8);
    ASSERT_NE(srq, nullptr);
    EXPECT_GE(srq->srqn, 64u);
    EXPECT_GE(s.page.region->index & 0xffffff, 16u);
    bool rang = false;
    for (const auto& store : s.bus.stores) {
      const std::uint64_t in_page = store.offset & 0xfff;
      if (store.bytes.size() != 4 || in_page < abi::uar::eq_doorbell) continue;
      rang = true;
      EXPECT_GE(store.offset >> 12, 1u) << "four event queues have their doorbells in a page";
    }
    EXPECT_TRUE(rang);
  });
}

TEST(DriverLimits, QueuesUpToWhatIsAnnouncedAndNoLonger) {
  with_shim([](shim& s) {
    ibv_device_attr attr{};
    ASSERT_EQ(s.device.query_device(&attr), 0);
    EXPECT_EQ(attr.max_qp_wr, (1 << 14) - 33);
    EXPECT_EQ(attr.max_srq_wr, (1 << 14) - 1);
    EXPECT_EQ(attr.max_cqe, (1 << 22) - 1);
    const auto wr = [](int n) { return static_cast<unsigned>(n); };
    EXPECT_EQ(s.device.create_cq(attr.max_cqe + 1), nullptr);
    host_driver::completion_queue* const cq = s.device.create_cq(1 << 12);
    ASSERT_NE(cq, nullptr);
    EXPECT_NE(make_srq(s, wr(attr.max_srq_wr)), nullptr);
    EXPECT_EQ(make_srq(s, wr(attr.max_srq_wr) + 1), nullptr);
    EXPECT_NE(make_qp(s, {wr(attr.max_qp_wr), 1, 1, 1, 0}, cq), nullptr);
    EXPECT_EQ(make_qp(s, {wr(attr.max_qp_wr) + 1, 1, 1, 1, 0}, cq), nullptr);
    EXPECT_NE(make_qp(s, {1, wr(attr.max_qp_wr), 1, 1, 0}, cq), nullptr);
    EXPECT_EQ(make_qp(s, {1, wr(attr.max_qp_wr) + 1, 1, 1, 0}, cq), nullptr);
    const unsigned sges = s.device.caps().max_rq_sge;
    EXPECT_EQ(sges, 32u);
    EXPECT_EQ(s.device.caps().max_sq_sge, 62u);
    EXPECT_NE(make_qp(s, {1, 1, sges, sges, 0}, cq), nullptr);
    EXPECT_EQ(make_qp(s, {1, 1, 1, sges + 1, 0}, cq), nullptr);
    EXPECT_EQ(make_qp(s, {1, 1, 63, 1, 0}, cq), nullptr);
  });
}

TEST(DriverLimits, AttributesAreThoseOfTheDevice) {
  with_shim([](shim& s) {
    ibv_device_attr attr{};
    ASSERT_EQ(s.device.query_device(&attr), 0);
    EXPECT_EQ(attr.local_ca_ack_delay, 15);
    EXPECT_EQ(attr.max_pd, 1 << 15);
    EXPECT_EQ(attr.page_size_cap & 0xffff, 0xf000u) << "pages of 4 KiB and more";
    EXPECT_EQ(attr.max_qp_rd_atom, 16);
    EXPECT_EQ(attr.max_qp_init_rd_atom, 128);
    ibv_port_attr port{};
    ASSERT_EQ(s.device.query_port(1, &port), 0);
    EXPECT_EQ(port.max_msg_sz, 1u << 31);
    EXPECT_EQ(port.gid_tbl_len, 128);
  });
}

/// Entries that the driver writes itself have the sizes of its structures (struct mlx4_mpt_entry, __be64); the others
/// have room for what the interface shows of them (struct mlx4_qp_context: 0xf8 bytes).
TEST(DriverLimits, TablesHaveTheAnnouncedEntries) {
  with_shim([](shim& s) {
    using host_driver::icm_region;
    const host_driver::device_caps& caps = s.device.caps();
    const host_driver::icm_profile& tables = s.device.profile();
    EXPECT_EQ(caps.mtt_bytes, 8u);
    EXPECT_EQ(caps.dmpt_bytes, 64u);
    EXPECT_GE(caps.qpc_bytes, 0xf8u);
    EXPECT_GE(caps.altc_bytes, 0xf8u) << "where software's form of it is kept";
    EXPECT_GE(caps.cqc_bytes, 64u);
    EXPECT_GE(caps.srqc_bytes, 48u);
    EXPECT_GE(caps.eqc_bytes, 64u);
    const std::pair<icm_region, std::uint64_t> entries[] = {
        {icm_region::qp, caps.qpc_bytes},    {icm_region::altc, caps.altc_bytes},    {icm_region::srq, caps.srqc_bytes},
        {icm_region::cq, caps.cqc_bytes},    {icm_region::dmpt, caps.dmpt_bytes},    {icm_region::mtt, caps.mtt_bytes},
        {icm_region::auxc, caps.auxc_bytes}, {icm_region::rdmarc, caps.rdmarc_bytes}};
    for (const auto& [region, bytes] : entries)
      EXPECT_GE(tables[region].bytes, tables[region].count * bytes) << static_cast<unsigned>(region);
    // Two queue pairs whose contexts lie behind each other do not write into each other.
    host_driver::completion_queue* const cq = s.device.create_cq(7);
    host_driver::queue_pair* pairs[] = {s.qp({8, 8, 1, 1, 0}, cq), s.qp({8, 8, 1, 1, 0}, cq)};
    for (unsigned i = 0; i < 2; ++i) {
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_INIT;
      attr.port_num = static_cast<std::uint8_t>(i + 1);
      ASSERT_EQ(
          s.device.modify_qp(pairs[i], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    }
    for (unsigned i = 0; i < 2; ++i) {
      ibv_qp_attr attr{};
      ibv_qp_init_attr init{};
      ASSERT_EQ(s.device.query_qp(pairs[i], &attr, IBV_QP_STATE | IBV_QP_PORT, &init), 0);
      EXPECT_EQ(attr.qp_state, IBV_QPS_INIT);
      EXPECT_EQ(attr.port_num, i + 1);
    }
  });
}

}  // namespace rnic::driver_test
