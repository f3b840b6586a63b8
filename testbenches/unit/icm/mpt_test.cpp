// SPDX-License-Identifier: Apache-2.0
// Entries of the protection table under operations on keys: against the layouts that mlx4's driver writes (net/mlx4.h
// mlx4_mpt_entry, net/mr.c) and the rules of IBA volume 1, 10.6.4 to 10.6.7.
#include "model/icm/mpt.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "model/abi/contexts.h"

namespace rnic {
namespace {

using icm::key_operation;
using icm::key_status;
using kind = key_operation::kind;
namespace mpt = abi::mpt;

/// As mlx4_mw_enable writes it.
std::array<std::uint8_t, 64> window_bytes(bool type_2, std::uint32_t index, std::uint32_t pd) {
  std::array<std::uint8_t, 64> b{};
  abi::set(b.data(), mpt::key, index);
  abi::set(b.data(), mpt::pd_flags, pd);
  if (type_2) {
    abi::set(b.data(), mpt::owner, mpt::owner_free);
    abi::set(b.data(), mpt::qpn, 0x80u);
    abi::set(b.data(), mpt::pd_flags, pd | mpt::pd_en_inv);
  }
  return b;
}

/// As mlx4_mr_enable writes it for mlx4_ib_alloc_mr.
std::array<std::uint8_t, 64> fast_bytes(std::uint32_t index, std::uint32_t pd) {
  std::array<std::uint8_t, 64> b{};
  abi::set(b.data(), mpt::flags, mpt::flag_mio | mpt::flag_region);
  abi::set(b.data(), mpt::owner, mpt::owner_free);
  abi::set(b.data(), mpt::key, index);
  abi::set(b.data(), mpt::pd_flags, pd | mpt::pd_en_inv | mpt::pd_fast_reg | mpt::pd_remote_access);
  abi::set(b.data(), mpt::mtt_address, std::uint64_t{0x1230});
  abi::set(b.data(), mpt::mtt_count, 16u);
  return b;
}

TEST(mpt, every_published_field_survives) {
  std::mt19937_64 random(3);
  for (unsigned n = 0; n < 200; ++n) {
    std::array<std::uint8_t, 64> b{}, again{};
    for (auto& x : b) x = static_cast<std::uint8_t>(random());
    b[0x28] = b[0x29] = b[0x2a] = 0;  // reserved
    icm::encode_mpt(icm::decode_mpt(b.data()), again.data());
    ASSERT_EQ(again, b);
  }
}

TEST(mpt, window_of_type_2_from_free_to_bound_and_back) {
  const auto free = window_bytes(true, 0x4500'0123, 7);
  const auto entry = icm::decode_mpt(free.data());
  key_operation o;
  o.what = kind::bind;
  o.type_2 = true;
  o.key = 0x00012346;
  o.lkey = 0x00077788;
  o.pd = 7;
  o.qpn = 0x321;
  o.start = 0x1000;
  o.length = 0x200;
  o.rights = icm::right_remote_write | icm::right_local_read;  // the latter is no right of a window
  ASSERT_EQ(icm::check_target(entry, o), key_status::ok);
  const auto bound = icm::after(entry, o);
  std::array<std::uint8_t, 64> b{};
  icm::encode_mpt(bound, b.data());
  EXPECT_EQ(abi::get(b.data(), mpt::owner), mpt::owner_hardware);
  EXPECT_EQ(abi::get(b.data(), mpt::flags), mpt::flag_remote_write);
  EXPECT_EQ(abi::get(b.data(), mpt::key), 0x4600'0123U);
  EXPECT_EQ(abi::get(b.data(), mpt::lkey), 0x00077788U);
  EXPECT_EQ(abi::get(b.data(), mpt::start), 0x1000U);
  EXPECT_EQ(abi::get(b.data(), mpt::length), 0x200U);
  EXPECT_EQ(abi::get(b.data(), mpt::pd_flags), 7 | mpt::pd_en_inv);
  EXPECT_EQ(abi::get(b.data(), mpt::qpn) & 0x80, 0x80U);

  EXPECT_EQ(icm::check_target(bound, o), key_status::wrong_state);
  key_operation end;
  end.key = o.key;
  end.pd = 7;
  end.qpn = 0x321;
  for (const kind what : {kind::local_invalidate, kind::remote_invalidate}) {
    end.what = what;
    EXPECT_EQ(icm::check_target(bound, end), key_status::ok);
    key_operation wrong = end;
    wrong.key ^= 1;
    EXPECT_EQ(icm::check_target(bound, wrong), key_status::bad_key);
    wrong = end;
    wrong.pd = 8;
    EXPECT_EQ(icm::check_target(bound, wrong), key_status::wrong_owner);
    wrong = end;
    wrong.qpn = 0x322;
    EXPECT_EQ(icm::check_target(bound, wrong), key_status::wrong_owner);
  }
  const auto ended = icm::after(bound, end);
  icm::encode_mpt(ended, b.data());
  auto expected = free;
  abi::set(expected.data(), mpt::key, 0x4600'0123U);
  EXPECT_EQ(b, expected);
  EXPECT_EQ(icm::check_target(ended, end), key_status::wrong_state);  // from afar it has to be valid
}

TEST(mpt, window_of_type_1_is_never_invalidated) {
  const auto entry = icm::decode_mpt(window_bytes(false, 0x4500'0123, 7).data());
  key_operation o;
  o.key = 0x00012345;
  o.pd = 7;
  for (const kind what : {kind::local_invalidate, kind::remote_invalidate}) {
    o.what = what;
    EXPECT_EQ(icm::check_target(entry, o), key_status::not_allowed);
  }
  o.what = kind::bind;
  EXPECT_EQ(icm::check_target(entry, o), key_status::ok);  // of no length: it lies nowhere
  o.type_2 = true;
  EXPECT_EQ(icm::check_target(entry, o), key_status::not_allowed);
}

/// A region of [0x1000, 0x1000 + `length`) of domain 7 with these flags beside those of a region.
icm::mpt_entry region(std::uint32_t flags, std::uint64_t length) {
  std::array<std::uint8_t, 64> b{};
  abi::set(b.data(), mpt::flags, mpt::flag_mio | mpt::flag_region | flags);
  abi::set(b.data(), mpt::owner, mpt::owner_hardware);
  abi::set(b.data(), mpt::key, 0x123u);
  abi::set(b.data(), mpt::pd_flags, 7u);
  abi::set(b.data(), mpt::start, std::uint64_t{0x1000});
  abi::set(b.data(), mpt::length, length);
  abi::set(b.data(), mpt::entity_size, 12u);
  return icm::decode_mpt(b.data());
}

TEST(mpt, a_window_writes_only_where_its_region_does) {
  key_operation o;
  o.what = kind::bind;
  o.lkey = 0x00012300;
  o.pd = 7;
  o.start = 0x1000;
  o.length = 0x200;
  o.rights = icm::right_remote_write;
  EXPECT_EQ(icm::check_bound_region(region(mpt::flag_bind, 0x1000), o), key_status::not_allowed);
  EXPECT_EQ(icm::check_bound_region(region(mpt::flag_bind | icm::right_local_write, 0x1000), o), key_status::ok);
  o.rights = icm::right_remote_read;
  EXPECT_EQ(icm::check_bound_region(region(mpt::flag_bind, 0x1000), o), key_status::ok);
}

TEST(mpt, nothing_lies_exactly_at_the_end) {
  const icm::mpt_entry e = region(icm::right_local_read, 0x1000);
  icm::translate_request r;
  r.pd = 7;
  const auto at = [&](std::uint64_t va, std::uint32_t length) {
    r.va = va;
    r.length = length;
    return icm::check_mpt(e, r, 0x00012300, false);
  };
  EXPECT_EQ(at(0x1fff, 1), icm::translate_status::ok);
  EXPECT_EQ(at(0x2000, 0), icm::translate_status::ok) << "of no bytes";
  EXPECT_EQ(at(0x2000, 1), icm::translate_status::out_of_range);
  EXPECT_EQ(at(0x1fff, 2), icm::translate_status::out_of_range);
  EXPECT_EQ(at(0x0fff, 1), icm::translate_status::out_of_range);
}

TEST(mpt, fast_registration) {
  const auto entry = icm::decode_mpt(fast_bytes(0x0100'0042, 9).data());
  key_operation o;
  o.what = kind::fast_register;
  o.key = 0x00004202;
  o.pd = 9;
  o.rights = icm::right_local_read | icm::right_local_write | icm::right_remote_read;
  o.start = 0x7000'0000'0123;
  o.length = 16 * 4096 - 0x123;
  ASSERT_EQ(icm::pages_of(o), 16U);
  ASSERT_EQ(icm::check_target(entry, o), key_status::ok);
  const auto valid = icm::after(entry, o);
  std::array<std::uint8_t, 64> b{};
  icm::encode_mpt(valid, b.data());
  EXPECT_EQ(abi::get(b.data(), mpt::flags),
            mpt::flag_mio | mpt::flag_region | mpt::flag_local_read | mpt::flag_local_write | mpt::flag_remote_read);
  EXPECT_EQ(abi::get(b.data(), mpt::key), 0x0200'0042U);
  EXPECT_EQ(abi::get(b.data(), mpt::entity_size), 12U);
  EXPECT_EQ(abi::get(b.data(), mpt::mtt_address), 0x1230U);
  EXPECT_EQ(abi::get(b.data(), mpt::mtt_count), 16U);
  EXPECT_EQ(icm::check_target(valid, o), key_status::wrong_state);
  o.length += 1;
  EXPECT_EQ(icm::check_target(entry, o), key_status::out_of_range);
  o.length = ~std::uint64_t{0};
  EXPECT_EQ(icm::check_target(entry, o), key_status::out_of_range);
  o.start = ~std::uint64_t{0} - 4095;  // up to the last address there is
  o.length = 4096;
  EXPECT_EQ(icm::check_target(entry, o), key_status::ok);
  o.length = 4097;
  EXPECT_EQ(icm::check_target(entry, o), key_status::out_of_range);
  o.start += 4095;
  o.length = 1;
  EXPECT_EQ(icm::check_target(entry, o), key_status::ok);
  auto with_windows = valid;
  with_windows.windows = 1;
  key_operation end;
  end.key = 0x00004202;
  end.pd = 9;
  EXPECT_EQ(icm::check_target(with_windows, end), key_status::wrong_state);
  EXPECT_EQ(icm::check_target(valid, end), key_status::ok);
}

}  // namespace
}  // namespace rnic
