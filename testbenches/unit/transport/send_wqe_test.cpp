// SPDX-License-Identifier: Apache-2.0
// Requests on keys as drivers write them, byte by byte: set_reg_seg and set_local_inv_seg of mlx4_ib (ib/qp.c),
// set_bind_seg of libmlx4 (qp.c), with the structures of include/linux/mlx4/qp.h.
#include "model/transport/requester/send_wqe.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace {
using namespace rnic;
using transport::send_wqe;
using transport::wqe_opcode;

/// Big-endian words behind each other.
std::vector<std::uint8_t> words(const std::vector<std::uint32_t>& list) {
  std::vector<std::uint8_t> b;
  for (const std::uint32_t w : list)
    for (unsigned i = 0; i < 4; ++i) b.push_back(static_cast<std::uint8_t>(w >> (24 - 8 * i)));
  return b;
}

send_wqe parse(const std::vector<std::uint32_t>& list, icm::service type = icm::service::rc) {
  send_wqe w;
  transport::parse_send_wqe(words(list).data(), type, w);
  return w;
}

constexpr std::uint32_t strong_order_signalled = 0x8c;

TEST(send_wqe, local_invalidate) {
  const std::vector<std::uint32_t> bytes = {0x1b, 3, strong_order_signalled, 0, 0, 0, 0x00012345, 0, 0, 0, 0, 0};
  const send_wqe w = parse(bytes);
  EXPECT_EQ(w.error, 0);
  EXPECT_TRUE(w.local);
  EXPECT_TRUE(w.signalled);
  EXPECT_EQ(w.keys.what, icm::key_operation::kind::local_invalidate);
  EXPECT_EQ(w.keys.key, 0x00012345U);
  EXPECT_EQ(parse(bytes, icm::service::uc).error, 0);
  EXPECT_EQ(parse(bytes, icm::service::ud).error, transport::syndrome::local_qp_operation);
  std::vector<std::uint32_t> cut = bytes;
  cut[1] = 2;
  EXPECT_EQ(parse(cut).error, transport::syndrome::local_qp_operation);
}

TEST(send_wqe, fast_register) {
  // IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ: bits 28, 27 and 29.
  std::vector<std::uint32_t> bytes = {0x19,       4,          strong_order_signalled,
                                      0,          0x38000000, 0x00012346,
                                      0x00000001, 0x23456780, 0x00007700,
                                      0x00000123, 0,          0x0000fedd,
                                      0,          12,         0,
                                      0};
  const send_wqe w = parse(bytes);
  EXPECT_EQ(w.error, 0);
  EXPECT_TRUE(w.local);
  EXPECT_EQ(w.keys.what, icm::key_operation::kind::fast_register);
  EXPECT_EQ(w.keys.rights, icm::right_local_read | icm::right_local_write | icm::right_remote_read);
  EXPECT_EQ(w.keys.key, 0x00012346U);
  EXPECT_EQ(w.keys.page_list, 0x1'2345'6780U);
  EXPECT_EQ(w.keys.start, 0x7700'0000'0123U);
  EXPECT_EQ(w.keys.length, 0xfeddU);
  EXPECT_EQ(w.keys.log_page, 12);
  bytes[4] = 0xf8000000;
  EXPECT_EQ(parse(bytes).keys.rights, 0x1fU << 10);
}

TEST(send_wqe, bind_window) {
  // IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, type 2, then type 1 with atomics.
  std::vector<std::uint32_t> bytes = {
      0x18, 3, strong_order_signalled, 0, 0x60000000, 0x80000000, 0x00055501, 0x00066600, 0, 0x7f001000, 1, 0x00000010};
  const send_wqe w = parse(bytes);
  EXPECT_EQ(w.error, 0);
  EXPECT_TRUE(w.local);
  EXPECT_EQ(w.keys.what, icm::key_operation::kind::bind);
  EXPECT_TRUE(w.keys.type_2);
  EXPECT_FALSE(w.keys.zero_based);
  EXPECT_EQ(w.keys.rights, icm::right_remote_write | icm::right_remote_read);
  EXPECT_EQ(w.keys.key, 0x00055501U);
  EXPECT_EQ(w.keys.lkey, 0x00066600U);
  EXPECT_EQ(w.keys.start, 0x7f00'1000U);
  EXPECT_EQ(w.keys.length, 0x1'0000'0010U);
  bytes[4] = 0x80000000;
  bytes[5] = 0x40000000;
  const send_wqe other = parse(bytes);
  EXPECT_FALSE(other.keys.type_2);
  EXPECT_TRUE(other.keys.zero_based);
  EXPECT_EQ(other.keys.rights, icm::right_remote_atomic);
}

TEST(send_wqe, send_with_invalidate_travels) {
  const send_wqe w = parse({0x01, 2, 0x0c, 0x00012345, 16, 0x00012300, 0x00007f00, 0x1000});
  EXPECT_EQ(w.error, 0);
  EXPECT_FALSE(w.local);
  EXPECT_EQ(w.opcode, wqe_opcode::send_inval);
  EXPECT_EQ(w.immediate, 0x00012345U);
  EXPECT_EQ(w.length, 16U);
}

}  // namespace
