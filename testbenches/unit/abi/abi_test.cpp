// SPDX-License-Identifier: Apache-2.0
// Layouts against the byte-level examples of the reference (adapter data plane A.11.1, A.12).
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "model/abi/bar_layout.h"
#include "model/abi/command_set.h"
#include "model/abi/contexts.h"
#include "model/abi/device.h"
#include "model/abi/queue_entries.h"

namespace rnic {
namespace wqe = abi::wqe;

namespace {

std::vector<std::uint32_t> words(const std::uint8_t* bytes, std::size_t count) {
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(static_cast<std::uint32_t>(bytes[4 * i] << 24 | bytes[4 * i + 1] << 16 | bytes[4 * i + 2] << 8 |
                                             bytes[4 * i + 3]));
  return out;
}

}  // namespace

TEST(Endian, BytesAreMostSignificantFirst) {
  std::array<std::uint8_t, 16> b{};
  abi::store16(b.data(), 1, 0x1234);
  abi::store32(b.data(), 3, 0x56789abc);
  abi::store64(b.data(), 7, 0x0123456789abcdef);
  const std::array<std::uint8_t, 16> expected{0,    0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0x01,
                                              0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0};
  EXPECT_EQ(b, expected);
  EXPECT_EQ(abi::load16(b.data(), 1), 0x1234);
  EXPECT_EQ(abi::load32(b.data(), 3), 0x56789abcu);
  EXPECT_EQ(abi::load64(b.data(), 7), 0x0123456789abcdefu);
}

TEST(Endian, AFieldChangesItsBitsOnly) {
  std::array<std::uint8_t, 8> b;
  b.fill(0xff);
  abi::set(b.data(), abi::bits32(4, 27, 24), 0u);
  EXPECT_EQ(words(b.data(), 2), (std::vector<std::uint32_t>{0xffffffff, 0xf0ffffff}));
  abi::set(b.data(), abi::bits32(4, 27, 24), 0x35u);  // one bit too many is dropped
  EXPECT_EQ(abi::load32(b.data(), 4), 0xf5ffffffu);
  EXPECT_EQ(abi::get(b.data(), abi::bits32(4, 27, 24)), 5u);
  abi::set(b.data(), abi::bits64(0, 63, 63), 0u);
  EXPECT_EQ(abi::load64(b.data()), 0x7ffffffff5ffffffu);
  abi::set(b.data(), abi::at(2, abi::u16(1)), std::uint16_t{0x0102});
  EXPECT_EQ(abi::load64(b.data()), 0x7fffff0102ffffffu);
}

TEST(Wqe, SendExample) {
  std::array<std::uint8_t, 32> b{};
  abi::set(b.data(), wqe::control::opcode, static_cast<std::uint32_t>(wqe::opcode::send));
  abi::set(b.data(), wqe::control::size, std::uint8_t{2});
  abi::set(b.data(), wqe::control::flags, wqe::control::cq_update);
  abi::set(b.data() + 16, wqe::data::byte_count, 16u);
  abi::set(b.data() + 16, wqe::data::lkey, 0x00012300u);
  abi::set(b.data() + 16, wqe::data::address, std::uint64_t{0x00007f0000001000});
  EXPECT_EQ(words(b.data(), 8),
            (std::vector<std::uint32_t>{0x0000000a, 0x00000002, 0x0000000c, 0, 0x10, 0x00012300, 0x00007f00, 0x1000}));
  abi::set(b.data(), wqe::control::owner, 1u);
  EXPECT_EQ(abi::load32(b.data()), 0x8000000au);
}

TEST(Wqe, BlueFlameExample) {
  std::array<std::uint8_t, 16> b{};
  abi::store32(b.data(), 0, 0x00000510);
  abi::store32(b.data(), 4, 0x00004803);
  EXPECT_EQ(abi::get(b.data(), wqe::control::index), 5u);
  EXPECT_EQ(abi::get(b.data(), wqe::control::opcode), static_cast<std::uint32_t>(wqe::opcode::rdma_read));
  EXPECT_EQ(abi::get(b.data(), wqe::control::qpn), 0x48u);
  EXPECT_EQ(abi::get(b.data(), wqe::control::size), 3u);
}

TEST(Cqe, ReadCompletionExample) {
  std::array<std::uint8_t, 32> b{};
  abi::set(b.data(), abi::cqe::qpn, 0x48u);
  abi::set(b.data(), abi::cqe::byte_count, 0x1000u);
  abi::set(b.data(), abi::cqe::wqe_index, std::uint16_t{5});
  abi::set(b.data(), abi::cqe::owner_opcode, static_cast<std::uint8_t>(abi::cqe::send_bit | 0x10));
  EXPECT_EQ(words(b.data(), 8), (std::vector<std::uint32_t>{0x48, 0, 0, 0, 0, 0x1000, 0x00050000, 0x00000050}));
}

TEST(Doorbells, Examples) {
  namespace uar = abi::uar;
  EXPECT_EQ(uar::send_doorbell_value(0x48), 0x00004800u);
  EXPECT_EQ(uar::send_doorbell_qpn(0x00004800), 0x48u);
  EXPECT_EQ(uar::cq_arm_word(1, uar::cq_arm_next, 7), 0x12000007u);
  EXPECT_EQ(uar::cq_arm_word(1, uar::cq_arm_next, 0x85), 0x12000085u);
  EXPECT_EQ(uar::cq_arm_sequence(0x12000085), 1u);
  EXPECT_EQ(uar::cq_arm_command(0x12000085), uar::cq_arm_next);
  EXPECT_EQ(uar::eq_doorbell_offset(6), 0x1810u);
  EXPECT_EQ(uar::eq_doorbell_value(0x20, true), 0x80000020u);
  EXPECT_EQ(300 & 0xffff, 0x012c);
  EXPECT_EQ(70000 & 0xffff, 0x1170);
}

TEST(Keys, Rotation) {
  EXPECT_EQ(abi::key_to_index(0x00012345), 0x45000123u);
  EXPECT_EQ(abi::key_to_index(0x00012345) & 0xffffff, 0x123u);
  EXPECT_EQ(abi::index_to_key(0x45000123), 0x00012345u);
  for (const std::uint32_t key : {0u, 0xffffffffu, 0x80000001u, 0x12345678u})
    EXPECT_EQ(abi::index_to_key(abi::key_to_index(key)), key);
}

TEST(Contexts, FortyBitTranslationAddress) {
  std::array<std::uint8_t, 64> b{};
  abi::store_mtt(b.data(), abi::cqc::mtt_high, abi::cqc::mtt_low, 0x1234567898);
  EXPECT_EQ(b[0x1b], 0x12);
  EXPECT_EQ(abi::load32(b.data(), 0x1c), 0x34567898u);
  EXPECT_EQ(abi::load_mtt(b.data(), abi::cqc::mtt_high, abi::cqc::mtt_low), 0x1234567898u);
}

TEST(Contexts, SizesOfQueueBytes) {
  std::array<std::uint8_t, 0xf8> b{};
  b[0x09] = 7 << 3 | 2;  // 128 receive WQEs of 64 bytes
  b[0x0a] = 0x80 | 9 << 3 | 2;
  b[0x0b] = 2 << 6 | 1 << 4;
  EXPECT_EQ(abi::get(b.data(), abi::qpc::log_rq_size), 7);
  EXPECT_EQ(abi::get(b.data(), abi::qpc::log_rq_stride), 2);
  EXPECT_EQ(abi::get(b.data(), abi::qpc::log_sq_size), 9);
  EXPECT_EQ(abi::get(b.data(), abi::qpc::log_sq_stride), 2);
  EXPECT_EQ(abi::get(b.data(), abi::qpc::roce_mode), abi::qpc::roce_mode_v2);
  EXPECT_EQ(abi::get(b.data(), abi::qpc::reserved_lkey), 1);
  // sched_queue of port 2, SL 5 (data plane A.7): 0x83 | 1 << 6 | 5 << 3
  b[abi::qpc::primary_path + 32] = 0x83 | 1 << 6 | 5 << 3;
  EXPECT_EQ(abi::get(b.data(), abi::at(abi::qpc::primary_path, abi::path::port)), 1);
  EXPECT_EQ(abi::get(b.data(), abi::at(abi::qpc::primary_path, abi::path::priority)), 5);
}

}  // namespace rnic
