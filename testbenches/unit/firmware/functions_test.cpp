// SPDX-License-Identifier: Apache-2.0
// Commands for virtual functions, and what firmware tells of them (adapter control plane 8).
#include <gtest/gtest.h>

#include <cstring>

#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"
#include "model/abi/device.h"
#include "model/command/command_cr.h"
#include "model/completion/completion_cr.h"
#include "model/doorbell/doorbell_cr.h"
#include "model/gid/gid_cr.h"
#include "model/pcie/pcie_cr.h"
#include "model/scheduler/scheduler_cr.h"
#include "model/transport/transport_cr.h"
#include "testbenches/unit/firmware/driver_model.h"

namespace rnic {
namespace {

using abi::opcode;
using abi::status;
using register_bus::cr_base;
namespace cr = command::cr;

firmware::firmware_config with(std::uint16_t total) {
  firmware::firmware_config c;
  c.total_vfs = total;
  return c;
}

/// A card that may have eight functions, of which three are enabled.
struct shared_card : driver_model {
  shared_card() : driver_model(with(8)) {
    log_eqs = abi::init_hca::log_eqs_system;
    hw.reg(cr_base::pcie, pcie::cr::enabled_vfs) = 3;
    bring_up();
    put_event_map();
    while (fw.serve()) {
    }
    hw.events.clear();
  }
  void put_event_map() { run_immediate(opcode::map_eq, ~std::uint64_t{0}, 8); }
  std::uint32_t& word(std::uint32_t offset) { return hw.reg(cr_base::command, offset); }
  status in_name_of(std::uint32_t function, opcode op, std::uint32_t modifier) {
    return run_immediate(op, in_address | function, modifier);
  }
};

TEST(VirtualFunctions, AreOfferedWhereTheCapabilityIs) {
  driver_model alone;
  alone.bring_up();
  ASSERT_EQ(alone.run(opcode::query_dev_cap), status::ok);
  EXPECT_EQ(alone.got(abi::dev_cap::num_sys_eqs), 0u);
  EXPECT_EQ(alone.run(opcode::arm_comm_channel), status::bad_op);
  EXPECT_EQ(alone.run(opcode::inform_flr_done, 1), status::bad_param);
  EXPECT_EQ(alone.run(opcode::query_func, 1), status::bad_param);
  shared_card d;
  ASSERT_EQ(d.run(opcode::query_dev_cap), status::ok);
  EXPECT_EQ(d.got(abi::dev_cap::num_sys_eqs), 1024u);
}

TEST(VirtualFunctions, HaveEventQueuesOfTheirOwnNumbers) {
  shared_card d;
  d.hw.reg(cr_base::pcie, pcie::cr::bus_device_function) = 0x0500;
  ASSERT_EQ(d.run(opcode::query_func, 2), status::ok);
  EXPECT_EQ(d.got(abi::query_func_mailbox::bus), 5u);
  EXPECT_EQ(d.got(abi::query_func_mailbox::device_function), 2u);
  EXPECT_EQ(d.got(abi::query_func_mailbox::max_eqs), 8u);
  EXPECT_EQ(d.run(opcode::query_func, 4), status::bad_param) << "it is not enabled";
  EXPECT_EQ(d.hw.reg(cr_base::doorbell, doorbell::cr::first_virtual_eq), 256u);
  EXPECT_EQ(d.hw.reg(cr_base::doorbell, doorbell::cr::eqs_of_virtual), 8u);

  d.fill_eq(6);
  ASSERT_EQ(d.in_name_of(2, opcode::sw2hw_eq, 5), status::ok);
  const auto eq = d.hardware_context<icm::eq_context>(d.icm.eqc + (256 + 8 + 5) * 64);
  EXPECT_EQ(eq.eqn, 256u + 8 + 5);
  EXPECT_EQ(eq.function, 2u);
  EXPECT_EQ(d.in_name_of(2, opcode::sw2hw_eq, 5), status::bad_res_state);
  EXPECT_EQ(d.run_immediate(opcode::hw2sw_eq, d.in_address | 1, 5, 1), status::ok) << "its own one is software's";
  EXPECT_EQ(d.in_name_of(2, opcode::sw2hw_eq, 8), status::bad_index);
  EXPECT_EQ(d.in_name_of(9, opcode::sw2hw_eq, 0), status::bad_index);
  EXPECT_EQ(d.in_name_of(0, opcode::sw2hw_eq, 256 + 13), status::bad_index) << "nor the physical function's";
  EXPECT_EQ(d.run_immediate(opcode::map_eq, 1, 256 + 13), status::bad_index);

  // A completion queue of function 2 on its fifth queue, which says so when asked.
  d.fill_cq(5, 4);
  ASSERT_EQ(d.in_name_of(2, opcode::sw2hw_cq, 200), status::ok);
  EXPECT_EQ(d.hardware_context<icm::cq_context>(d.icm.cqc + 200 * 128).eqn, 256u + 13);
  ASSERT_EQ(d.run(opcode::query_cq, 200), status::ok);
  EXPECT_EQ(d.got(abi::cqc::eqn), 5u);
  d.fill_cq(5, 4);
  EXPECT_EQ(d.in_name_of(1, opcode::sw2hw_cq, 201), status::bad_resource) << "function 1 has no such queue";
}

TEST(VirtualFunctions, EventsAreWrittenIntoTheirQueues) {
  shared_card d;
  d.fill_eq(6);
  ASSERT_EQ(d.in_name_of(2, opcode::sw2hw_eq, 1), status::ok);
  d.clear_in();
  d.put(abi::eqe::type, 0x14);
  d.put(abi::eqe::number, 0x1234);
  ASSERT_EQ(d.run(opcode::gen_eqe, 2 | 1 << 16), status::ok);
  ASSERT_EQ(d.hw.events.size(), 1u);
  EXPECT_EQ(d.hw.events[0].type, 0x14);
  EXPECT_EQ(d.hw.events[0].data[0], 0x1234u);
  EXPECT_EQ(d.hw.reg(cr_base::completion, completion::cr::event_eqn), 256u + 9);
  EXPECT_EQ(d.run(opcode::gen_eqe, 2 | 2 << 16), status::bad_res_state);
  EXPECT_EQ(d.run(opcode::gen_eqe, 1 | 1 << 16), status::bad_res_state);
  EXPECT_EQ(d.run(opcode::gen_eqe, 0 | 8 << 16), status::bad_param) << "the physical function's own";
  EXPECT_EQ(d.run(opcode::gen_eqe, 5 | 1 << 16), status::bad_param);
  EXPECT_EQ(d.run(opcode::gen_eqe, 2 | 9 << 16), status::bad_param);
}

TEST(VirtualFunctions, MemoryIsCopiedBetweenTwoOfWhichOneIsPhysical) {
  shared_card d;
  const std::uint64_t from = d.hw.allocate(4096), to = d.hw.allocate(4096);
  for (unsigned i = 0; i < 4096; ++i) d.hw.host(from)[i] = static_cast<std::uint8_t>(i * 7);
  std::memset(d.hw.host(to), 0, 4096);
  const auto copy = [&](std::uint64_t source, std::uint64_t destination, std::uint32_t bytes) {
    firmware::command_request r;
    r.opcode = static_cast<std::uint16_t>(opcode::access_mem);
    r.modifier = bytes;
    r.in_param = source;
    r.out_param = destination;
    return d.fw.execute(r);
  };
  EXPECT_EQ(copy(from | 2, to, 512), status::ok);
  EXPECT_EQ(std::memcmp(d.hw.host(from), d.hw.host(to), 512), 0);
  EXPECT_EQ(d.hw.host(to)[512], 0);
  EXPECT_EQ(copy(from, to | 2, 4096), status::ok);
  EXPECT_EQ(copy(from | 1, to | 2, 256), status::bad_param) << "neither is the physical one";
  EXPECT_EQ(copy(from | 4, to, 256), status::bad_param) << "not enabled";
  EXPECT_EQ(copy(from, to, 0), status::bad_param);
  EXPECT_EQ(copy(from, to, 255), status::bad_param);
  EXPECT_EQ(copy(from, to, 4096 + 256), status::bad_param);
  EXPECT_EQ(copy(from + 256, to, 256), status::bad_param);
  EXPECT_EQ(copy(1ull << 50, to, 256), status::internal_error);
}

/// Once for each arming, with all that have written meanwhile.
TEST(VirtualFunctions, CommandsAreReportedOnceAnArming) {
  shared_card d;
  EXPECT_EQ(d.word(cr::channel_flags + 4 * 2), abi::comm::flag_offline);
  d.word(cr::channel_written) = 1u << 2;
  EXPECT_FALSE(d.fw.serve()) << "nobody listens";
  d.word(cr::channel_written) = 1u << 3;
  ASSERT_EQ(d.run(opcode::arm_comm_channel), status::ok);
  EXPECT_EQ(d.word(cr::channel_flags + 4 * 2), 0u);
  EXPECT_TRUE(d.fw.serve());
  ASSERT_EQ(d.hw.events.size(), 1u);
  EXPECT_EQ(d.hw.events[0].type, 0x18);
  EXPECT_EQ(d.hw.events[0].data[0], 1u << 2 | 1u << 3);
  d.word(cr::channel_written) = 1u << 1;
  EXPECT_FALSE(d.fw.serve());
  d.word(cr::channel_written) = 0;
  ASSERT_EQ(d.run(opcode::arm_comm_channel), status::ok);
  EXPECT_TRUE(d.fw.serve());
  ASSERT_EQ(d.hw.events.size(), 2u);
  EXPECT_EQ(d.hw.events[1].data[0], 1u << 1);
  EXPECT_FALSE(d.fw.serve());
}

/// Reset again while the driver cleans up behind the first one: the function is offline until the second one is done.
TEST(VirtualFunctions, ASecondResetKeepsTheChannelOffline) {
  shared_card d;
  ASSERT_EQ(d.run(opcode::arm_comm_channel), status::ok);
  for (unsigned round = 0; round < 2; ++round) {
    d.word(cr::channel_function_resets) = 1u << 2;
    EXPECT_TRUE(d.fw.serve());
    d.word(cr::channel_function_resets) = 0;
    EXPECT_EQ(d.word(cr::channel_flags + 4 * 2), abi::comm::flag_offline) << round;
    ASSERT_EQ(d.run(opcode::inform_flr_done, 2), status::ok);
    EXPECT_EQ(d.word(cr::channel_flags + 4 * 2), 0u);
  }
}

TEST(VirtualFunctions, ResetsAreReportedAndEndWhenTheDriverSaysSo) {
  shared_card d;
  namespace p = pcie::cr;
  d.word(cr::channel_function_resets) = 1u << 2;
  d.hw.reg(cr_base::pcie, p::release_function) = 0;
  EXPECT_FALSE(d.fw.serve() && d.hw.events.size() != 0) << "nobody listens";
  EXPECT_EQ(d.hw.reg(cr_base::pcie, p::release_function), 2u) << "so there is nothing to clean up";
  d.word(cr::channel_function_resets) = 0;
  ASSERT_EQ(d.run(opcode::arm_comm_channel), status::ok);
  // Asked for through the channel.
  d.word(cr::channel_flags + 4 * 3) = abi::comm::flag_reset_request;
  d.word(cr::channel_reset_requests) = 1u << 3;
  EXPECT_TRUE(d.fw.serve());
  d.word(cr::channel_reset_requests) = 0;
  ASSERT_EQ(d.hw.events.size(), 1u);
  EXPECT_EQ(d.hw.events[0].type, 0x1c);
  EXPECT_EQ(d.hw.events[0].data[0], 3u);
  EXPECT_EQ(d.hw.reg(cr_base::pcie, p::hold_function), 3u);
  EXPECT_EQ(d.hw.reg(cr_base::pcie, p::release_function), 2u);
  ASSERT_EQ(d.run(opcode::inform_flr_done, 3), status::ok);
  EXPECT_EQ(d.hw.reg(cr_base::pcie, p::release_function), 3u);
  EXPECT_EQ(d.word(cr::channel_flags + 4 * 3), abi::comm::flag_reset_request | abi::comm::flag_reset_done);
  EXPECT_EQ(d.run(opcode::inform_flr_done, 0), status::bad_param);
  EXPECT_EQ(d.run(opcode::inform_flr_done, 9), status::bad_param);
}

TEST(VirtualFunctions, WindowsFollowTheirNumber) {
  shared_card d;
  for (unsigned port = 0; port < 2; ++port) EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::num_vfs, port), 3u);
  d.hw.reg(cr_base::pcie, pcie::cr::enabled_vfs) = 0;
  EXPECT_TRUE(d.fw.serve());
  for (unsigned port = 0; port < 2; ++port) EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::num_vfs, port), 0u);
}

/// Three functions: one on port 1, one on port 2, one on both.
TEST(VirtualFunctions, WindowsArePortByPort) {
  namespace f = abi::config_dev_mailbox;
  shared_card d;
  const auto tell = [&](unsigned one, unsigned two, unsigned both) {
    d.clear_in();
    d.put(f::update_flags, f::update_function_ports);
    d.put(f::functions_port_1, static_cast<std::uint8_t>(one));
    d.put(f::functions_port_2, static_cast<std::uint8_t>(two));
    d.put(f::functions_both, static_cast<std::uint8_t>(both));
    return d.run(opcode::config_dev);
  };
  EXPECT_EQ(tell(1, 1, 0), status::bad_param) << "there are three";
  EXPECT_EQ(tell(2, 1, 1), status::bad_param);
  EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::num_vfs, 0), 3u);
  ASSERT_EQ(tell(1, 1, 1), status::ok);
  const auto numbers = [](std::uint32_t alone, std::uint32_t first_alone, std::uint32_t first) {
    return alone | first_alone << 8 | first << 16;
  };
  for (unsigned port = 0; port < 2; ++port) {
    EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::num_vfs, port), 2u);
    EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::vf_numbers, port), numbers(1, 1 + port, 3));
  }
  d.hw.reg(cr_base::pcie, pcie::cr::enabled_vfs) = 2;  // others: both ports again, until somebody says more
  EXPECT_TRUE(d.fw.serve());
  for (unsigned port = 0; port < 2; ++port) {
    EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::num_vfs, port), 2u);
    EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::vf_numbers, port), numbers(0, 1, 1));
  }
}

/// Without a check of ports packets may come in by either; where functions have windows, each port's table counts.
TEST(VirtualFunctions, TablesOfBothPortsWhereEitherWillDo) {
  namespace f = abi::config_dev_mailbox;
  shared_card d;
  const auto check = [&](bool off) {
    d.clear_in();
    d.put(f::update_flags, f::update_rx_port_check);
    d.put(f::roce_flags, off ? f::disable_rx_port_check : 0u);
    return d.run(opcode::config_dev);
  };
  const auto expect = [&](std::uint32_t map, std::uint32_t both_tables) {
    for (const std::uint32_t part : {0u, transport::cr::responder_offset, transport::cr::answer_offset})
      EXPECT_EQ(d.hw.reg(cr_base::transport, part + transport::cr::port_map), map);
    for (unsigned port = 0; port < 2; ++port)
      EXPECT_EQ(d.hw.reg(cr_base::gid, gid::cr::both_tables, port), both_tables);
  };
  ASSERT_EQ(check(true), status::ok);
  expect(2 | transport::cr::port_map_any_arrival | transport::cr::port_map_own_tables, 1);
  d.clear_in();
  d.put(abi::virt_port_map_mailbox::port_1, 2u);
  d.put(abi::virt_port_map_mailbox::port_2, 2u);
  ASSERT_EQ(d.run(opcode::virt_port_map, 0, abi::virt_port_map_mailbox::op_set), status::ok);
  expect(3 | transport::cr::port_map_any_arrival | transport::cr::port_map_own_tables, 1);
  ASSERT_EQ(check(false), status::ok);
  expect(3, 0);
}

/// Bits 23:17 of a protection domain are the function's number plus one, whoever fills the context in.
TEST(VirtualFunctions, ProtectionDomainsAreTheFunctions) {
  shared_card d;
  d.fill_mpt(0x120, false);
  d.put(abi::mpt::pd_flags, 7 | abi::mpt::pd_en_inv);
  ASSERT_EQ(d.in_name_of(2, opcode::sw2hw_mpt, 0x120), status::ok);
  std::uint8_t entry[64];
  ASSERT_TRUE(d.hw.icm_read(d.icm.dmpt + 0x120 * 64, entry, sizeof entry));
  EXPECT_EQ(abi::get(entry, abi::mpt::pd_flags), (7 | abi::mpt::pd_en_inv | 3u << 17));
  d.fill_mpt(0x121, false);
  d.put(abi::mpt::pd_flags, 7 | 2u << 17);
  EXPECT_EQ(d.in_name_of(2, opcode::sw2hw_mpt, 0x121), status::bad_param) << "function 1's";
  EXPECT_EQ(d.in_name_of(0, opcode::sw2hw_mpt, 0x121), status::bad_param);
  EXPECT_EQ(d.in_name_of(1, opcode::sw2hw_mpt, 0x121), status::ok);
  d.fill_eq(6);
  ASSERT_EQ(d.in_name_of(2, opcode::sw2hw_eq, 0), status::ok);
  d.fill_cq(0, 4);
  ASSERT_EQ(d.in_name_of(2, opcode::sw2hw_cq, 210), status::ok);
  d.fill_qp(icm::service::rc, 0x240, 210);
  EXPECT_EQ(d.in_name_of(1, opcode::rst2init_qp, 0x240), status::bad_resource) << "the queue is function 2's";
  d.fill_qp(icm::service::rc, 0x240, 210);
  ASSERT_EQ(d.in_name_of(2, opcode::rst2init_qp, 0x240), status::ok);
  const auto qp = d.hardware_context<icm::requester_context>(d.icm.qpc + 0x240 * 256);
  EXPECT_EQ(qp.function, 2u);
  EXPECT_EQ(qp.pd >> 17, 3u);
  EXPECT_EQ(d.hw.reg(cr_base::scheduler, scheduler::cr::owner), scheduler::uar_of(2, qp.uar));
}

TEST(VirtualFunctions, WhatWasSaidBeforeAResetIsVoid) {
  shared_card d;
  ASSERT_EQ(d.run(opcode::arm_comm_channel), status::ok);
  d.word(cr::channel_written) = 1u << 1;
  EXPECT_TRUE(d.fw.serve());
  d.word(cr::channel_written) = 1u << 2;
  EXPECT_FALSE(d.fw.serve()) << "not armed";
  d.word(cr::channel_written) = 0;
  d.word(cr::channel_function_resets) = 1u << 2;
  EXPECT_TRUE(d.fw.serve());
  d.word(cr::channel_function_resets) = 0;
  ASSERT_EQ(d.run(opcode::inform_flr_done, 2), status::ok);
  ASSERT_EQ(d.run(opcode::arm_comm_channel), status::ok);
  EXPECT_FALSE(d.fw.serve());
}

TEST(VirtualFunctions, SharedReceiveQueuesAreTheirFunctions) {
  shared_card d;
  namespace f = abi::srqc;
  for (const std::uint32_t function : {1u, 2u}) {
    d.fill_eq(6);
    ASSERT_EQ(d.in_name_of(function, opcode::sw2hw_eq, 0), status::ok);
    d.fill_cq(0, 4);
    ASSERT_EQ(d.in_name_of(function, opcode::sw2hw_cq, 210 + function), status::ok);
  }
  const auto b = d.make_buffer(64 * 32);
  d.clear_in();
  d.put(f::log_size, 6);
  d.put(f::srqn, 0x50);
  d.put(f::log_stride, 1);
  d.put(f::db_record, 0x800002000);
  abi::store_mtt(d.in(), f::mtt_high, f::mtt_low, b.mtt);
  ASSERT_EQ(d.in_name_of(2, opcode::sw2hw_srq, 0x50), status::ok);
  const auto with_srq = [&](std::uint32_t function) {
    d.fill_qp(icm::service::rc, 0x240, 210 + function);
    d.put(abi::qpc::srq_valid, 1, abi::qp_mailbox::context);
    d.put(abi::qpc::srqn, 0x50, abi::qp_mailbox::context);
    return d.in_name_of(function, opcode::rst2init_qp, 0x240);
  };
  EXPECT_EQ(with_srq(1), status::bad_resource);
  EXPECT_EQ(with_srq(2), status::ok);
}

}  // namespace
}  // namespace rnic
