// SPDX-License-Identifier: Apache-2.0
// Memory regions, CQs, EQs, SRQs: ownership, statuses, what hardware is given.
#include <gtest/gtest.h>

#include "model/abi/contexts.h"
#include "model/completion/completion_cr.h"
#include "model/icm/icm_cr.h"
#include "testbenches/unit/firmware/driver_model.h"

namespace rnic {

using abi::opcode;
using abi::status;
using register_bus::cr_base;

TEST(Eq, EntriesBelongToHardwareAfterSw2hw) {
  driver_model d;
  d.bring_up();
  const auto c = d.hardware_context<icm::eq_context>(d.icm.eqc + 8 * 64);
  EXPECT_EQ(c.eqn, 8u);
  EXPECT_EQ(c.valid, 1);
  EXPECT_EQ(c.log_size, 9);
  EXPECT_EQ(c.vector, 3);
  EXPECT_EQ(c.log_page, 12);
  std::uint8_t entry[8];
  ASSERT_TRUE(d.hw.icm_read(d.icm.mtt + c.address, entry, 8));
  const std::uint8_t* buffer = d.hw.host(abi::load64(entry) & ~1ull);
  for (unsigned i = 0; i < 512; ++i) ASSERT_EQ(buffer[i * 32 + 31], 0x80) << i;
  EXPECT_EQ(d.run(opcode::sw2hw_eq, 8), status::bad_res_state);
  EXPECT_EQ(d.run(opcode::sw2hw_eq, 128), status::bad_index);
}

TEST(Eq, MapAndTakeBack) {
  driver_model d;
  d.bring_up();
  ASSERT_EQ(d.run_immediate(opcode::map_eq, 0x1d1f46fe, 8), status::ok);
  EXPECT_EQ(d.hw.reg(cr_base::completion, completion::cr::event_map + 4 * 0x0a), 8u);
  EXPECT_EQ(d.run_immediate(opcode::map_eq, 1, 9), status::bad_res_state);
  ASSERT_EQ(d.run_immediate(opcode::map_eq, 1 << 0xa, 8 | 1u << 31), status::ok);
  EXPECT_EQ(d.hw.reg(cr_base::completion, completion::cr::event_map + 4 * 0x0a), completion::cr::event_unmapped);
  ASSERT_EQ(d.run(opcode::hw2sw_eq, 8, 1), status::ok);
  EXPECT_EQ(d.run(opcode::hw2sw_eq, 8, 1), status::ok) << "a closing command does not fail";
  EXPECT_EQ(d.hardware_context<icm::eq_context>(d.icm.eqc + 8 * 64).valid, 0);
}

TEST(Cq, OwnershipDependsOnWhoInitialises) {
  driver_model d;
  d.bring_up();
  const auto by_device = d.fill_cq(8, 5);
  d.put(abi::cqc::timestamp, 1);
  EXPECT_EQ(d.run(opcode::sw2hw_cq, 0x80, 0), status::bad_param) << "times of completions, which are not announced";
  d.put(abi::cqc::timestamp, 0);
  ASSERT_EQ(d.run(opcode::sw2hw_cq, 0x80, 0), status::ok);
  EXPECT_EQ(d.hw.host(by_device.address)[31 * 32 + 31], 0x80);
  EXPECT_EQ(d.hw.host(by_device.address)[32 * 32 + 31], 0x00) << "behind the queue";
  const auto by_software = d.fill_cq(8, 5);
  ASSERT_EQ(d.run(opcode::sw2hw_cq, 0x81, 1), status::ok);
  EXPECT_EQ(d.hw.host(by_software.address)[31], 0x00);
  EXPECT_EQ(d.run(opcode::sw2hw_cq, 0x81), status::bad_res_state);
  d.fill_cq(9, 5);
  EXPECT_EQ(d.run(opcode::sw2hw_cq, 0x82), status::bad_resource) << "EQ is software's";
  d.fill_cq(8, 5);
  d.put(abi::cqc::log_size, 23);
  EXPECT_EQ(d.run(opcode::sw2hw_cq, 0x82), status::bad_param);
  EXPECT_EQ(d.run(opcode::sw2hw_cq, 1 << 16), status::bad_index);
}

TEST(Cq, QueryGivesWhatWasWritten) {
  driver_model d;
  d.bring_up();
  d.fill_cq(8, 6);
  const std::uint64_t record = abi::get(d.in(), abi::cqc::db_record);
  ASSERT_EQ(d.run(opcode::sw2hw_cq, 0x80), status::ok);
  d.clear_in();
  d.put(abi::cqc::period, 16);
  d.put(abi::cqc::max_count, 44);
  ASSERT_EQ(d.run(opcode::modify_cq, 0x80, 1), status::ok);
  ASSERT_EQ(d.run(opcode::query_cq, 0x80), status::ok);
  EXPECT_EQ(d.got(abi::cqc::log_size), 6u);
  EXPECT_EQ(d.got(abi::cqc::uar), 130u);
  EXPECT_EQ(d.got(abi::cqc::period), 16);
  EXPECT_EQ(d.got(abi::cqc::max_count), 44);
  EXPECT_EQ(d.got(abi::cqc::db_record), record);
  EXPECT_EQ(d.run(opcode::modify_cq, 0x99, 1), status::bad_res_state);
}

TEST(Cq, ResizeLeavesAMarkerAndGoesOnBehindIt) {
  driver_model d;
  d.bring_up();
  const auto old = d.fill_cq(8, 4);
  const std::uint64_t record = abi::get(d.in(), abi::cqc::db_record);
  ASSERT_EQ(d.run(opcode::sw2hw_cq, 0x80), status::ok);
  auto c = d.hardware_context<icm::cq_context>(d.icm.cqc + 0x80 * 128);
  c.producer = 20;  // second lap, slot 4
  ASSERT_TRUE(d.hw.icm_write(d.icm.cqc + 0x80 * 128, &c, sizeof c));
  abi::store32(d.hw.host(record), 0, 17);
  const auto fresh = d.fill_cq(8, 3);
  ASSERT_EQ(d.run(opcode::modify_cq, 0x80, 0), status::ok);
  EXPECT_EQ(d.hw.host(old.address)[4 * 32 + 31], 0x80 | 0x16);
  c = d.hardware_context<icm::cq_context>(d.icm.cqc + 0x80 * 128);
  EXPECT_EQ(c.producer, 21u);
  EXPECT_EQ(c.log_size, 3);
  EXPECT_EQ(c.address, fresh.mtt);
  for (unsigned n = 21; n < 29; ++n) {
    const bool software = (n & 8) != 0;
    EXPECT_EQ(d.hw.host(fresh.address)[(n & 7) * 32 + 31], software ? 0 : 0x80) << n;
  }
  d.fill_cq(8, 1);
  EXPECT_EQ(d.run(opcode::modify_cq, 0x80, 0), status::bad_size);
}

/// One entry of the old buffer has to be free for the marker, and one of the new one for its index.
TEST(Cq, ResizeOfAQueueExactlyFull) {
  for (const unsigned unread : {15u, 16u}) {
    driver_model d;
    d.bring_up();
    d.fill_cq(8, 4);
    const std::uint64_t record = abi::get(d.in(), abi::cqc::db_record);
    ASSERT_EQ(d.run(opcode::sw2hw_cq, 0x80), status::ok);
    auto c = d.hardware_context<icm::cq_context>(d.icm.cqc + 0x80 * 128);
    c.producer = 20;
    ASSERT_TRUE(d.hw.icm_write(d.icm.cqc + 0x80 * 128, &c, sizeof c));
    abi::store32(d.hw.host(record), 0, 20 - unread);
    d.fill_cq(8, 5);
    EXPECT_EQ(d.run(opcode::modify_cq, 0x80, 0), unread == 15 ? status::ok : status::bad_size);
    c = d.hardware_context<icm::cq_context>(d.icm.cqc + 0x80 * 128);
    EXPECT_EQ(c.producer, unread == 15 ? 21u : 20u);
    EXPECT_EQ(c.log_size, unread == 15 ? 5 : 4);
    if (unread != 15) continue;
    d.fill_cq(8, 4);  // fifteen, the marker's index: sixteen
    EXPECT_EQ(d.run(opcode::modify_cq, 0x80, 0), status::bad_size);
    abi::store32(d.hw.host(record), 0, 6);
    EXPECT_EQ(d.run(opcode::modify_cq, 0x80, 0), status::ok);
  }
}

TEST(Mpt, LifeOfARegion) {
  driver_model d;
  d.bring_up();
  d.fill_mpt(0x123, false);
  ASSERT_EQ(d.run(opcode::sw2hw_mpt, 0x123), status::ok);
  EXPECT_EQ(d.run(opcode::sw2hw_mpt, 0x123), status::bad_res_state);
  ASSERT_EQ(d.run(opcode::query_mpt, 0x123), status::ok);
  EXPECT_EQ(d.got(abi::mpt::owner), abi::mpt::owner_hardware);
  EXPECT_EQ(d.got(abi::mpt::start), 0x7f0000001000u);
  ASSERT_EQ(d.run(opcode::hw2sw_mpt, 0x123, 1), status::ok);
  EXPECT_EQ(d.hw.reg(register_bus::cr_base::icm, icm::cr::tpt_command), icm::cr::tpt_command_revoke_key);
  EXPECT_EQ(d.hw.reg(register_bus::cr_base::icm, icm::cr::tpt_index), 0x12300u) << "who uses it is waited for";
  ASSERT_EQ(d.run(opcode::query_mpt, 0x123), status::ok);
  EXPECT_EQ(d.out()[0], 0xf0) << "back in software's hands";
  EXPECT_EQ(d.run(opcode::sync_tpt), status::ok);
  EXPECT_EQ(d.run(opcode::hw2sw_mpt, 0x123, 1), status::ok) << "after a change in place";
}

TEST(Mpt, WindowsMustBeEnabled) {
  for (const bool enabled : {false, true}) {
    driver_model d;
    d.windows = enabled;
    d.bring_up();
    d.fill_mpt(0x123, true);
    d.put(abi::mpt::flags, abi::mpt::owner_software << 28);
    EXPECT_EQ(d.run(opcode::sw2hw_mpt, 0x123), enabled ? status::ok : status::bad_op);
    EXPECT_EQ(d.run(opcode::hw2sw_mpt, 0x123, 1), status::ok);
  }
}

TEST(Mpt, BadOnesAreRefused) {
  driver_model d;
  d.bring_up();
  d.fill_mpt(0x123, false);
  EXPECT_EQ(d.run(opcode::sw2hw_mpt, 1 << 19), status::bad_index);
  EXPECT_EQ(d.run(opcode::sw2hw_mpt, 0x124), status::bad_param) << "key of another entry";
  d.put(abi::mpt::entity_size, 3);
  EXPECT_EQ(d.run(opcode::sw2hw_mpt, 0x123), status::bad_param);
  d.fill_mpt(0x123, false);
  d.put(abi::mpt::length, ~std::uint64_t{0});
  EXPECT_EQ(d.run(opcode::sw2hw_mpt, 0x123), status::bad_param) << "more pages than there are translations";
  d.fill_mpt(0x123, false);
  d.put(abi::mpt::start, ~std::uint64_t{0} - 4095);
  d.put(abi::mpt::length, std::uint64_t{4097});
  EXPECT_EQ(d.run(opcode::sw2hw_mpt, 0x123), status::bad_param) << "round the end of the address space";
  d.put(abi::mpt::length, std::uint64_t{4096});
  EXPECT_EQ(d.run(opcode::sw2hw_mpt, 0x123), status::ok) << "up to the last address";
  ASSERT_EQ(d.run(opcode::hw2sw_mpt, 0x123, 1), status::ok);
  d.fill_mpt(0x3ffff, true);
  EXPECT_EQ(d.run(opcode::sw2hw_mpt, 0x3ffff), status::icm_error) << "its page is not mapped";
  d.fill_mpt(0x45000123, true);
  EXPECT_EQ(d.run(opcode::sw2hw_mpt, 0x123), status::ok) << "tag bits above the index";
  std::uint8_t windows[4] = {0, 0, 0, 1};
  ASSERT_TRUE(d.hw.icm_write(d.icm.dmpt + 0x123 * 64 + 0x24, windows, 4));
  EXPECT_EQ(d.run(opcode::hw2sw_mpt, 0x123, 1), status::reg_bound);
}

/// The translation table has 2^31 entries: a region of two pages may have the last two, and not one behind them.
TEST(Mpt, TranslationsUpToTheLastOneOfTheTable) {
  driver_model d;
  d.bring_up();
  d.fill_mpt(0x123, false);
  d.put(abi::mpt::mtt_address, (std::uint64_t{8} << 31) - 8);
  EXPECT_EQ(d.run(opcode::sw2hw_mpt, 0x123), status::bad_param);
  d.put(abi::mpt::mtt_address, (std::uint64_t{8} << 31) - 16);
  EXPECT_EQ(d.run(opcode::sw2hw_mpt, 0x123), status::ok);
  EXPECT_EQ(d.hw.reg(register_bus::cr_base::icm, icm::cr::tpt_count), 2u);
}

TEST(Srq, LifeOfAnSrq) {
  driver_model d;
  d.bring_up();
  namespace f = abi::srqc;
  const auto b = d.make_buffer(64 * 32);
  d.clear_in();
  d.put(f::log_size, 6);
  d.put(f::srqn, 0x40);
  d.put(f::log_stride, 1);
  d.put(f::pd, 3);
  d.put(f::db_record, 0x800002000);
  abi::store_mtt(d.in(), f::mtt_high, f::mtt_low, b.mtt);
  EXPECT_EQ(d.run(opcode::sw2hw_srq, 0x41), status::bad_param);
  ASSERT_EQ(d.run(opcode::sw2hw_srq, 0x40), status::ok);
  const auto c = d.hardware_context<icm::srq_context>(d.icm.srqc + 0x40 * 128);
  EXPECT_EQ(c.log_stride, 5);
  EXPECT_EQ(c.address, b.mtt);
  ASSERT_EQ(d.run(opcode::query_srq, 0x40), status::ok);
  EXPECT_EQ(d.got(f::db_record), 0x800002000u);
  EXPECT_EQ(d.run(opcode::hw2sw_srq, 0x40, 1), status::ok);
  EXPECT_EQ(d.run(opcode::query_srq, 0x40), status::bad_res_state);
}

TEST(Mtt, WriteMttPutsEntriesIntoIcm) {
  driver_model d;
  d.bring_up();
  d.clear_in();
  abi::store64(d.in(), 0, 0x100);
  abi::store64(d.in(), 16, 0x80000001);
  abi::store64(d.in(), 24, 0x90000001);
  ASSERT_EQ(d.run(opcode::write_mtt, 2), status::ok);
  std::uint8_t entries[16];
  ASSERT_TRUE(d.hw.icm_read(d.icm.mtt + 0x800, entries, 16));
  EXPECT_EQ(abi::load64(entries, 8), 0x90000001u);
  // The adapter may have them on chip: it is told to forget exactly these.
  EXPECT_EQ(d.hw.reg(register_bus::cr_base::icm, icm::cr::tpt_command), icm::cr::tpt_command_drop_mtt_range);
  EXPECT_EQ(d.hw.reg(register_bus::cr_base::icm, icm::cr::tpt_mtt_lo), 0x800u);
  EXPECT_EQ(d.hw.reg(register_bus::cr_base::icm, icm::cr::tpt_mtt_hi), 0u);
  EXPECT_EQ(d.hw.reg(register_bus::cr_base::icm, icm::cr::tpt_count), 2u);
  EXPECT_EQ(d.run(opcode::write_mtt, 0), status::bad_param);
  abi::store64(d.in(), 0, std::uint64_t{1} << 40);
  EXPECT_EQ(d.run(opcode::write_mtt, 2), status::bad_index);
}

TEST(Cq, QueryTellsHowItIsArmed) {
  driver_model d;
  d.bring_up();
  d.fill_cq(8, 4);
  ASSERT_EQ(d.run(opcode::sw2hw_cq, 0x80), status::ok);
  const std::uint32_t states[] = {abi::cqc::state_fired, abi::cqc::state_armed_solicited, abi::cqc::state_armed};
  for (unsigned arm = 0; arm < 3; ++arm) {
    auto c = d.hardware_context<icm::cq_context>(d.icm.cqc + 0x80 * 128);
    c.arm = static_cast<decltype(c.arm)>(arm);
    ASSERT_TRUE(d.hw.icm_write(d.icm.cqc + 0x80 * 128, &c, sizeof c));
    ASSERT_EQ(d.run(opcode::query_cq, 0x80), status::ok);
    EXPECT_EQ(d.got(abi::cqc::state), states[arm]) << arm;
  }
}

TEST(Srq, ThatIsSoftwaresHasNoLimit) {
  driver_model d;
  d.bring_up();
  EXPECT_EQ(d.run_immediate(opcode::arm_srq, 5, 0x40), status::bad_res_state);
  EXPECT_EQ(d.hardware_context<icm::srq_context>(d.icm.srqc + 0x40 * 128).limit, 0);
}

/// A bound window that is taken back is taken off its region as well.
TEST(Mpt, AWindowOnARegionIsTakenOffIt) {
  driver_model d;
  d.bring_up();
  d.fill_mpt(0x123, false);
  d.put(abi::mpt::flags, abi::mpt::owner_software << 28);
  ASSERT_EQ(d.run(opcode::sw2hw_mpt, 0x123), status::ok);
  std::uint8_t entry[abi::mpt::bytes];
  ASSERT_TRUE(d.hw.icm_read(d.icm.dmpt + 0x123 * 64, entry, sizeof entry));
  abi::set(entry, abi::mpt::lkey, 0x12400);
  ASSERT_TRUE(d.hw.icm_write(d.icm.dmpt + 0x123 * 64, entry, sizeof entry));
  ASSERT_EQ(d.run(opcode::hw2sw_mpt, 0x123, 1), status::ok);
  EXPECT_EQ(d.hw.reg(register_bus::cr_base::icm, icm::cr::tpt_command), icm::cr::tpt_command_release_window);
  EXPECT_EQ(d.hw.reg(register_bus::cr_base::icm, icm::cr::tpt_index), 0x123u);
}

}  // namespace rnic
