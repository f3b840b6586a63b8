// SPDX-License-Identifier: Apache-2.0
// Queue pairs: state machine, merging of fields, geometry, what hardware is given.
#include <gtest/gtest.h>

#include "model/abi/contexts.h"
#include "model/scheduler/scheduler_cr.h"
#include "model/transport/transport_cr.h"
#include "testbenches/unit/firmware/driver_model.h"

namespace rnic {

using abi::opcode;
using abi::status;
namespace q = abi::qpc;
namespace box = abi::qp_mailbox;

namespace {

struct fixture : driver_model {
  fixture() {
    bring_up();
    fill_cq(8, 5);
    if (run(opcode::sw2hw_cq, 0x80) != status::ok) throw std::runtime_error("no CQ");
  }
  icm::requester_context requester(std::uint32_t qpn) {
    return hardware_context<icm::requester_context>(icm.qpc + qpn * 256);
  }
  icm::responder_context responder(std::uint32_t qpn) {
    return hardware_context<icm::responder_context>(icm.qpc + qpn * 256 + 128);
  }
  void set_drained(std::uint32_t qpn) {
    hw.registers[static_cast<std::uint32_t>(register_bus::cr_base::transport) + transport::cr::drained] =
        transport::cr::drained_valid | qpn;
  }
  status change(opcode op, std::uint32_t qpn, std::uint32_t optional = 0) {
    fill_qp(icm::service::rc, qpn, 0x80, optional);
    return run(op, qpn);
  }
};

}  // namespace

TEST(Qp, ContextsReachHardware) {
  fixture d;
  ASSERT_EQ(d.make_rts(icm::service::rc, 0x20b, 0x80), status::ok);
  const auto rq = d.requester(0x20b);
  EXPECT_EQ(rq.qpn, 0x20bu);
  EXPECT_EQ(rq.remote_qpn, 0x1234u);
  EXPECT_EQ(rq.state, icm::qp_state::rts);
  EXPECT_EQ(rq.type, icm::service::rc);
  EXPECT_EQ(rq.log_sq_size, 7);
  EXPECT_EQ(rq.log_sq_stride, 6);
  EXPECT_EQ(rq.sq_offset, 0u);
  EXPECT_EQ(rq.sq_address, 0x400u);
  EXPECT_EQ(rq.log_page, 12);
  EXPECT_EQ(rq.cqn, 0x80u);
  EXPECT_EQ(rq.ack_timeout, 14);
  EXPECT_EQ(rq.retry_limit, 7);
  EXPECT_EQ(rq.retries_left, 7);
  EXPECT_EQ(rq.rnr_retries_left, 6);
  EXPECT_EQ(rq.log_max_rd_atomic, 4);
  EXPECT_EQ(rq.ack_request_log, 8);
  EXPECT_EQ(rq.next_psn, 0x112233u);
  EXPECT_EQ(rq.unacked_psn, 0x112233u);
  EXPECT_EQ(rq.flags, icm::requester_flag_reserved_lkey | icm::requester_flag_fast_reg);
  EXPECT_EQ(rq.dest.gid_index, 5);
  EXPECT_EQ(rq.dest.smac_index, 3);
  EXPECT_EQ(rq.dest.priority, 3);
  EXPECT_EQ(rq.dest.port, 0);
  EXPECT_EQ(rq.dest.mtu_code, 4);
  EXPECT_EQ(rq.dest.udp_source, 0xc123);
  EXPECT_EQ(rq.dest.flags, icm::path_flag_vlan | icm::path_flag_roce_v2);
  const auto rs = d.responder(0x20b);
  EXPECT_EQ(rs.state, icm::qp_state::rts);
  EXPECT_EQ(rs.log_rq_size, 6);
  EXPECT_EQ(rs.log_rq_stride, 4);
  EXPECT_EQ(rs.rq_offset, 128u * 64u) << "the larger stride first";
  EXPECT_EQ(rs.expected_psn, 0x445566u);
  EXPECT_EQ(rs.rnr_timer, 12);
  EXPECT_EQ(rs.log_max_rd_atomic, 3);
  EXPECT_EQ(rs.access, icm::responder_access_read | icm::responder_access_write);
  EXPECT_EQ(rs.db_record, 0x800001000u);
}

TEST(Qp, GeometryWithoutAndWithLargerReceiveQueue) {
  fixture d;
  d.fill_qp(icm::service::rc, 0x40, 0x80);
  d.put(q::rq_size_stride, 4 << 3 | 4, box::context);  // 16 of 256 bytes
  ASSERT_EQ(d.run(opcode::rst2init_qp, 0x40), status::ok);
  EXPECT_EQ(d.responder(0x40).rq_offset, 0u);
  EXPECT_EQ(d.requester(0x40).sq_offset, 16u * 256u);
  d.fill_qp(icm::service::xrc, 0x41, 0x80);
  d.put(q::rq_size_stride, 0xfc, box::context);
  ASSERT_EQ(d.run(opcode::rst2init_qp, 0x41), status::ok);
  EXPECT_EQ(d.responder(0x41).log_rq_stride, 0);
  EXPECT_EQ(d.requester(0x41).sq_offset, 0u);
}

TEST(Qp, WrongStatesAreRefusedAndChangeNothing) {
  fixture d;
  EXPECT_EQ(d.change(opcode::init2rtr_qp, 0x20b), status::bad_qp_state);
  ASSERT_EQ(d.change(opcode::rst2init_qp, 0x20b), status::ok);
  EXPECT_EQ(d.change(opcode::rst2init_qp, 0x20b), status::bad_qp_state);
  EXPECT_EQ(d.change(opcode::rtr2rts_qp, 0x20b), status::bad_qp_state);
  EXPECT_EQ(d.requester(0x20b).state, icm::qp_state::init);
  ASSERT_EQ(d.change(opcode::init2rtr_qp, 0x20b), status::ok);
  EXPECT_EQ(d.change(opcode::sqd2rts_qp, 0x20b), status::bad_qp_state);
  ASSERT_EQ(d.change(opcode::rtr2rts_qp, 0x20b), status::ok);
  ASSERT_EQ(d.change(opcode::rts2sqd_qp, 0x20b), status::ok);
  EXPECT_EQ(d.requester(0x20b).state, icm::qp_state::sqd);
  EXPECT_EQ(d.responder(0x20b).state, icm::qp_state::rts);
  ASSERT_EQ(d.change(opcode::sqd2rts_qp, 0x20b), status::ok);
  ASSERT_EQ(d.change(opcode::to_err_qp, 0x20b), status::ok);
  EXPECT_EQ(d.responder(0x20b).state, icm::qp_state::error);
  EXPECT_EQ(d.change(opcode::rts2rts_qp, 0x20b), status::bad_qp_state);
  ASSERT_EQ(d.run(opcode::to_rst_qp, 0x20b, 2), status::ok);
  EXPECT_EQ(d.requester(0x20b).qpn, 0u);
  ASSERT_EQ(d.run(opcode::to_rst_qp, 0x20b, 2), status::ok) << "from RESET too";
  EXPECT_EQ(d.change(opcode::to_err_qp, 0x20b), status::bad_qp_state);
}

/// The scheduler is told whose doorbells count before there is a context, and of nobody's once there is none.
TEST(Qp, DoorbellsHaveAnOwnerFromInitToReset) {
  fixture d;
  const auto owner = [&] { return d.hw.reg(register_bus::cr_base::scheduler, scheduler::cr::owner); };
  ASSERT_EQ(d.change(opcode::rst2init_qp, 0x20b), status::ok);
  EXPECT_EQ(d.hw.reg(register_bus::cr_base::scheduler, scheduler::cr::qp_select), 0x20bu);
  EXPECT_EQ(owner(), scheduler::uar_of(0, 130));
  ASSERT_EQ(d.run(opcode::to_rst_qp, 0x20b, 2), status::ok);
  EXPECT_EQ(owner(), scheduler::no_owner);
  d.hw.reg(register_bus::cr_base::scheduler, scheduler::cr::owner) = 1;
  d.fill_qp(icm::service::rc, 0x20b, 0x7fff);
  ASSERT_NE(d.run(opcode::rst2init_qp, 0x20b), status::ok);
  EXPECT_NE(owner(), scheduler::uar_of(0, 130)) << "a refused command makes nobody an owner";
}

TEST(Qp, HardwareMayHaveMovedToError) {
  fixture d;
  ASSERT_EQ(d.make_rts(icm::service::rc, 0x20b, 0x80), status::ok);
  auto rs = d.responder(0x20b);
  rs.state = icm::qp_state::error;
  ASSERT_TRUE(d.hw.icm_write(d.icm.qpc + 0x20b * 256 + 128, &rs, sizeof rs));
  EXPECT_EQ(d.change(opcode::rts2rts_qp, 0x20b), status::bad_qp_state);
  ASSERT_EQ(d.run(opcode::query_qp, 0x20b), status::ok);
  EXPECT_EQ(d.got(q::state, box::context), 6u);
}

TEST(Qp, FieldsOutsideOfATransitionAreKept) {
  fixture d;
  ASSERT_EQ(d.change(opcode::rst2init_qp, 0x20b), status::ok);
  ASSERT_EQ(d.change(opcode::init2rtr_qp, 0x20b), status::ok);
  d.clear_in();  // as the driver does: a context with nothing but the transition's own fields
  d.put(q::next_send_psn, 0x777, box::context);
  d.put(abi::at(q::primary_path, abi::path::ack_timeout), 10, box::context);
  ASSERT_EQ(d.run(opcode::rtr2rts_qp, 0x20b), status::ok);
  ASSERT_EQ(d.run(opcode::query_qp, 0x20b), status::ok);
  const std::size_t c = box::context;
  EXPECT_EQ(d.got(q::state, c), 3u);
  EXPECT_EQ(d.got(q::remote_qpn, c), 0x1234u);
  EXPECT_EQ(d.got(q::send_cqn, c), 0x80u);
  EXPECT_EQ(d.got(q::mtu, c), 4);
  EXPECT_EQ(d.got(q::roce_mode, c), 2);
  EXPECT_EQ(d.got(q::next_send_psn, c), 0x777u);
  EXPECT_EQ(d.got(q::next_receive_psn, c), 0x445566u);
  EXPECT_EQ(d.got(q::remote_write, c), 1u);
  EXPECT_EQ(d.got(abi::at(q::primary_path, abi::path::gid_index), c), 5);
  EXPECT_EQ(d.got(abi::at(q::primary_path, abi::path::ack_timeout), c), 10);
  d.clear_in();
  d.put(box::optional, box::opt_rnr_timer | box::opt_rwe);
  d.put(q::min_rnr_timer, 25, c);
  ASSERT_EQ(d.run(opcode::rts2rts_qp, 0x20b), status::ok);
  EXPECT_EQ(d.responder(0x20b).rnr_timer, 25);
  EXPECT_EQ(d.responder(0x20b).access, icm::responder_access_read);
  EXPECT_EQ(d.requester(0x20b).remote_qpn, 0x1234u);
  EXPECT_EQ(d.requester(0x20b).next_psn, 0x777u);
}

TEST(Qp, LiveFieldsSurviveAChange) {
  fixture d;
  ASSERT_EQ(d.make_rts(icm::service::rc, 0x20b, 0x80), status::ok);
  auto rq = d.requester(0x20b);
  rq.next_psn = 0x200;
  rq.next_wqe = 300;
  rq.outstanding = 2;
  rq.drain_end = 302;  // two descriptors had begun
  ASSERT_TRUE(d.hw.icm_write(d.icm.qpc + 0x20b * 256, &rq, sizeof rq));
  ASSERT_EQ(d.change(opcode::rts2rts_qp, 0x20b), status::ok);
  EXPECT_EQ(d.requester(0x20b).next_psn, 0x200u);
  ASSERT_EQ(d.run(opcode::query_qp, 0x20b), status::ok);
  EXPECT_EQ(d.got(q::sq_counter, box::context), 300);
  d.fill_qp(icm::service::rc, 0x20b, 0x80);
  ASSERT_EQ(d.run(opcode::rts2sqd_qp, 0x20b | box::sqd_event), status::ok);
  EXPECT_EQ(d.requester(0x20b).state, icm::qp_state::sq_draining);
  EXPECT_FALSE(d.fw.serve());
  d.set_drained(0x30b);  // of another QP, which nobody knows
  EXPECT_TRUE(d.fw.serve());
  EXPECT_TRUE(d.hw.events.empty());
  d.set_drained(0x20b);
  EXPECT_TRUE(d.fw.serve());
  ASSERT_EQ(d.hw.events.size(), 1u);
  EXPECT_EQ(d.hw.events[0].type, 3);
  EXPECT_EQ(d.hw.events[0].data[0], 0x20bu);
  d.set_drained(0x20b);
  EXPECT_TRUE(d.fw.serve());
  EXPECT_EQ(d.hw.events.size(), 1u) << "owed once";
}

TEST(Qp, UpdateTakesWhatItsMasksName) {
  namespace u = abi::update_qp;
  namespace p = abi::path;
  fixture d;
  ASSERT_EQ(d.make_rts(icm::service::rc, 0x20b, 0x80), status::ok);
  const auto before = d.requester(0x20b);
  const auto path = [](auto f) { return abi::at(q::primary_path, f); };
  const auto fill = [&](std::uint64_t fields, std::uint64_t bits) {
    d.clear_in();
    d.put(u::qp_mask, fields);
    d.put(u::path_mask, bits);
    for (std::uint16_t i = 0; i < q::bytes; ++i) d.put(abi::u8(static_cast<std::uint16_t>(u::context + i)), 0xff);
    d.put(path(p::vlan_index), 9, u::context);
    d.put(path(p::mac_index), 5, u::context);
    d.put(path(p::sched_queue), 0x83 | 1 << 6 | 4 << 3, u::context);
    d.put(q::rate_limit, 2 << 14 | 25, u::context);
  };
  fill(0, std::uint64_t{1} << 34);
  ASSERT_EQ(d.run(opcode::update_qp, 0x20b), status::ok);
  EXPECT_EQ(d.requester(0x20b).dest.smac_index, 5);
  EXPECT_EQ(d.requester(0x20b).dest.priority, before.dest.priority);
  EXPECT_EQ(d.requester(0x20b).rate_limit, 0);
  EXPECT_EQ(d.requester(0x20b).remote_qpn, before.remote_qpn);
  fill(std::uint64_t{1} << 33 | std::uint64_t{1} << 35, std::uint64_t{1} << 46 | std::uint64_t{1} << 37);
  ASSERT_EQ(d.run(opcode::update_qp, 0x20b), status::ok);
  EXPECT_EQ(d.requester(0x20b).rate_limit, 2 << 14 | 25);
  EXPECT_EQ(d.requester(0x20b).dest.priority, 4);
  EXPECT_EQ(d.requester(0x20b).dest.port, 1);
  EXPECT_EQ(d.responder(0x20b).dest.vlan_index, 9);
  EXPECT_EQ(d.requester(0x20b).state, icm::qp_state::rts);
  EXPECT_EQ(d.requester(0x20b).next_psn, before.next_psn);
  ASSERT_EQ(d.run(opcode::query_qp, 0x20b), status::ok);
  EXPECT_EQ(d.got(q::vlan_strip_disable, box::context), 1u);
  EXPECT_EQ(d.got(path(p::vlan_control), box::context), 0) << "not named";
  fill(0, std::uint64_t{1} << 37);
  d.put(path(p::vlan_index), 200, u::context);
  EXPECT_EQ(d.run(opcode::update_qp, 0x20b), status::bad_param);
  EXPECT_EQ(d.requester(0x20b).dest.vlan_index, 9);
}

/// The mask of net/resource_tracker.c: mlx4_vf_immed_vlan_work_handler, which has the service VLAN, 54, on devices that
/// have none. It can be named, and not asked for.
TEST(Qp, UpdateOfARunningFunctionsVlan) {
  namespace u = abi::update_qp;
  fixture d;
  ASSERT_EQ(d.make_rts(icm::service::rc, 0x20b, 0x80), status::ok);
  const auto ask = [&](std::uint8_t fl) {
    d.clear_in();
    std::uint64_t mask = 0;
    for (const unsigned bit : {35u, 36u, 37u, 38u, 39u, 40u, 41u, 42u, 43u, 44u, 45u, 46u, 48u, 54u})
      mask |= std::uint64_t{1} << bit;
    d.put(u::path_mask, mask);
    d.put(abi::at(q::primary_path, abi::path::vlan_index), 7, u::context);
    d.in()[u::context + q::primary_path] = fl;
    return d.run(opcode::update_qp, 0x20b);
  };
  EXPECT_EQ(ask(abi::path::fl_cvlan), status::ok);
  EXPECT_EQ(d.responder(0x20b).dest.vlan_index, 7);
  EXPECT_EQ(ask(abi::path::fl_cvlan | abi::path::fl_svlan), status::bad_param);
}

TEST(Qp, NothingToDrainIsReportedAtOnce) {
  fixture d;
  ASSERT_EQ(d.make_rts(icm::service::rc, 0x20b, 0x80), status::ok);
  d.fill_qp(icm::service::rc, 0x20b, 0x80);
  ASSERT_EQ(d.run(opcode::rts2sqd_qp, 0x20b | box::sqd_event), status::ok);
  EXPECT_EQ(d.requester(0x20b).state, icm::qp_state::sqd);
  EXPECT_TRUE(d.fw.serve());
  ASSERT_EQ(d.hw.events.size(), 1u);
  EXPECT_EQ(d.hw.events[0].type, 3);
}

TEST(Qp, DrainingIsReportedWhenAskedFor) {
  fixture d;
  ASSERT_EQ(d.make_rts(icm::service::rc, 0x20b, 0x80), status::ok);
  d.fill_qp(icm::service::rc, 0x20b, 0x80);
  ASSERT_EQ(d.run(opcode::rts2sqd_qp, 0x20b), status::ok);
  d.fw.serve();
  EXPECT_TRUE(d.hw.events.empty());
}

TEST(Qp, GenerationBitsMustMatch) {
  fixture d;
  const std::uint32_t later = 0x20b | 1u << 18;
  ASSERT_EQ(d.change(opcode::rst2init_qp, later), status::ok);
  EXPECT_EQ(d.requester(0x20b).qpn, later);
  EXPECT_EQ(d.change(opcode::init2rtr_qp, 0x20b), status::bad_index);
  EXPECT_EQ(d.change(opcode::init2rtr_qp, later), status::ok);
}

TEST(Qp, BadContextsAreRefused) {
  fixture d;
  d.fill_qp(icm::service::rc, 0x20b, 0x99);
  EXPECT_EQ(d.run(opcode::rst2init_qp, 0x20b), status::bad_resource);
  d.fill_qp(icm::service::rc, 0x20b, 1 << 16);
  EXPECT_EQ(d.run(opcode::rst2init_qp, 0x20b), status::bad_index);
  d.fill_qp(static_cast<icm::service>(5), 0x20b, 0x80);
  EXPECT_EQ(d.run(opcode::rst2init_qp, 0x20b), status::bad_param);
  d.fill_qp(icm::service::rc, 0x20b, 0x80);
  d.put(q::srqn_word, 1u << 24 | 0x40, box::context);
  EXPECT_EQ(d.run(opcode::rst2init_qp, 0x20b), status::bad_resource);
  EXPECT_EQ(d.change(opcode::rst2init_qp, 0x20000), status::icm_error) << "context not mapped";
  EXPECT_EQ(d.hw.reg(register_bus::cr_base::scheduler, scheduler::cr::qp_select), 0x20000u);
  EXPECT_EQ(d.hw.reg(register_bus::cr_base::scheduler, scheduler::cr::owner), scheduler::no_owner)
      << "nobody's doorbells count when its transition fails late";
  ASSERT_EQ(d.change(opcode::rst2init_qp, 0x20b), status::ok);
  d.fill_qp(icm::service::rc, 0x20b, 0x80);
  d.put(abi::path::gid_index, 200, box::context + q::primary_path);
  EXPECT_EQ(d.run(opcode::init2rtr_qp, 0x20b), status::bad_param);
  // Its service is what its first command said.
  d.put(q::service, static_cast<std::uint64_t>(icm::service::ud), box::context);
  EXPECT_EQ(d.run(opcode::init2rtr_qp, 0x20b), status::bad_param) << "datagrams have a window there";
  EXPECT_EQ(d.requester(0x20b).state, icm::qp_state::init);
}

TEST(Qp, ThereIsNoPathMigration) {
  fixture d;
  ASSERT_EQ(d.make_rts(icm::service::rc, 0x20b, 0x80), status::ok);
  const auto change = [&](std::uint32_t optional, std::uint32_t state) {
    d.fill_qp(icm::service::rc, 0x20b, 0x80, optional);
    d.put(q::path_migration, state, box::context);
    return d.run(opcode::rts2rts_qp, 0x20b);
  };
  EXPECT_EQ(change(box::opt_alt_path, 3), status::bad_param);
  EXPECT_EQ(change(box::opt_migration, 0), status::bad_param) << "armed";
  EXPECT_EQ(change(box::opt_migration, 1), status::bad_param) << "rearm";
  EXPECT_EQ(change(box::opt_migration, 3), status::ok) << "as it is";
  EXPECT_EQ(d.requester(0x20b).state, icm::qp_state::rts);
}

TEST(Qp, SpecialQps) {
  fixture d;
  EXPECT_EQ(d.run(opcode::conf_special_qp, 0x201), status::bad_param);
  ASSERT_EQ(d.run(opcode::conf_special_qp, 0x200), status::ok);
  EXPECT_EQ(
      d.hw.reg(register_bus::cr_base::transport, transport::cr::responder_offset + transport::cr::special_qp_base),
      0x200u);
}

TEST(Qp, EachCompletionQueueIsLookedAt) {
  fixture d;
  d.fill_qp(icm::service::rc, 0x20b, 0x80);
  d.put(q::send_cqn, 0x99, box::context);
  EXPECT_EQ(d.run(opcode::rst2init_qp, 0x20b), status::bad_resource);
  d.fill_qp(icm::service::rc, 0x20b, 0x80);
  d.put(q::receive_cqn, 0x99, box::context);
  EXPECT_EQ(d.run(opcode::rst2init_qp, 0x20b), status::bad_resource);
}

TEST(Qp, ResourcesOfAnEarlierOwnerAreForgotten) {
  fixture d;
  std::uint8_t old[16];
  std::fill_n(old, 16, std::uint8_t{0xa5});
  const std::uint64_t at = d.icm.rdmarc + (std::uint64_t{0x40} << (4 + 6));
  ASSERT_TRUE(d.hw.icm_write(at, old, 16));
  ASSERT_EQ(d.change(opcode::rst2init_qp, 0x40), status::ok);
  std::uint8_t now[16];
  ASSERT_TRUE(d.hw.icm_read(at, now, 16));
  for (unsigned i = 0; i < 16; ++i) EXPECT_EQ(now[i], 0) << i;
}

TEST(Qp, VlanIndexIsInItsTable) {
  fixture d;
  ASSERT_EQ(d.change(opcode::rst2init_qp, 0x20b), status::ok);
  d.fill_qp(icm::service::rc, 0x20b, 0x80);
  d.put(abi::path::vlan_index, 128, box::context + q::primary_path);
  EXPECT_EQ(d.run(opcode::init2rtr_qp, 0x20b), status::bad_param);
  d.put(abi::path::vlan_index, 127, box::context + q::primary_path);
  EXPECT_EQ(d.run(opcode::init2rtr_qp, 0x20b), status::ok);
}

TEST(Qp, OffsetIsInTheFirstPage) {
  fixture d;
  d.fill_eq(5);
  d.put(abi::eqc::page_offset, 4096);
  EXPECT_EQ(d.run(opcode::sw2hw_eq, 9), status::bad_param);
}

TEST(Qp, PagesUpToTheLargestOfItsField) {
  fixture d;
  d.fill_qp(icm::service::rc, 0x20b, 0x80);
  d.put(q::log_page, 20, box::context);
  EXPECT_EQ(d.run(opcode::rst2init_qp, 0x20b), status::bad_param);
  d.put(q::log_page, 19, box::context);
  EXPECT_EQ(d.run(opcode::rst2init_qp, 0x20b), status::ok);
}

}  // namespace rnic
