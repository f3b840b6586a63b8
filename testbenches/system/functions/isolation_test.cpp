// SPDX-License-Identifier: Apache-2.0
// Every way in from one function to another: none leads anywhere.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"
#include "testbenches/system/functions/scene.h"

namespace rnic::system_test {
namespace {

using host_driver::command_channel;

TEST(Isolation, AKeyOfAnotherFunctionOpensNothingFromOutside) {
  with_scene([](hosts::two_nodes&, scene& s) {
    request r;
    r.sges.push_back({s.sent.address(), 4096, s.sent.region->lkey});
    r.remote = s.theirs.address();
    r.rkey = s.theirs.region->rkey;  // right, but of function 1, and the queue pair is function 2's
    post(s.thief.a, r);
    EXPECT_EQ(s.thief.a.wait_send().status, IBV_WC_REM_ACCESS_ERR);
  });
}

TEST(Isolation, AKeyOfAnotherFunctionOpensNothingFromInside) {
  with_scene([](hosts::two_nodes&, scene& s) {
    const hosts::buffer far = hosts::make_buffer(s.thief.a.at, 8192);
    request r;
    r.sges.push_back({s.theirs.address(), 4096, s.theirs.region->lkey});
    r.remote = far.address();
    r.rkey = far.region->rkey;
    post(s.thief.b, r);
    EXPECT_EQ(s.thief.b.wait_send().status, IBV_WC_LOC_PROT_ERR);
    for (unsigned i = 0; i < 8192; ++i) ASSERT_EQ(far.at()[i], 0);
  });
}

/// A region of the function's own whose pages are another's memory: the bus does not let it through.
void reach_for_pages_of_another_function(hosts::two_nodes& system, scene& s) {
  command_channel& channel = s.thief.b.dev().commands();
  {
    command_channel::mailbox box(channel);
    abi::set(box.data(), abi::write_mtt_mailbox::start_index, std::uint64_t{s.own.region->mtt.first});
    for (unsigned i = 0; i < 2; ++i)
      abi::store64(box.data(), abi::write_mtt_mailbox::entries + 8 * i,
                   (s.theirs.memory.bus_address + 4096 * i) | abi::mtt::present);
    ASSERT_EQ(channel.write(box, abi::opcode::write_mtt, 2), 0) << "they are its own entries";
    ASSERT_EQ(channel.command(abi::opcode::sync_tpt), 0);
  }
  request r;
  r.sges.push_back({s.sent.address(), 4096, s.sent.region->lkey});
  r.remote = s.own.address();
  r.rkey = s.own.region->rkey;
  post(s.thief.a, r);
  s.thief.a.wait_send();
  EXPECT_GT(system.statistics().value("b.root_complex.unsupported_writes"), 0u);
  r.opcode = IBV_WR_RDMA_READ;
  std::memset(s.sent.at(), 0x5a, 8192);
  link again = make_sibling(s.thief, {}, 5);
  post(again.a, r);
  EXPECT_NE(again.a.wait_send(1000 * ms).status, IBV_WC_SUCCESS);
  for (unsigned i = 0; i < 4096; ++i) ASSERT_EQ(s.sent.at()[i], 0x5a);
}

TEST(Isolation, PagesOfAnotherFunctionAreNotReached) { with_scene(reach_for_pages_of_another_function); }

/// The IOMMU refuses them, counts each, and serves the others in between.
TEST(Isolation, PagesOfAnotherFunctionAreFaultsOfAnIommu) {
  with_scene(
      [](hosts::two_nodes& system, scene& s) {
        const auto of_b = [&](const char* name) {
          return system.statistics().value(std::string("b.root_complex.") + name);
        };
        EXPECT_EQ(of_b("iommu.faults"), 0u) << "what the drivers have done so far is mapped";
        EXPECT_GT(of_b("iommu.hits"), 100u);
        reach_for_pages_of_another_function(system, s);
        EXPECT_GT(of_b("unsupported_writes"), 0u);
        EXPECT_GT(of_b("unsupported_reads"), 0u);
        EXPECT_EQ(of_b("iommu.faults"), of_b("unsupported_writes") + of_b("unsupported_reads"));
        EXPECT_EQ(of_b("poisoned"), 0u);
      },
      true);
}

/// Physical addresses with the reserved key, or a region of all memory: what they reach is the function's own.
TEST(Isolation, ARegionOfAllMemoryIsOfTheFunctions) {
  with_scene([](hosts::two_nodes&, scene& s) {
    namespace f = abi::mpt;
    host_driver::device& dev = s.thief.b.dev();
    command_channel& channel = dev.commands();
    std::uint64_t number = 0;
    const auto kind = static_cast<std::uint32_t>(host_driver::resource::mpt);
    ASSERT_EQ(channel.execute({abi::opcode::alloc_res, kind, abi::res_op::reserve, 0, 0, &number}), 0);
    const auto index = static_cast<std::uint32_t>(number);
    command_channel::mailbox box(channel);
    abi::set(box.data(), f::flags,
             f::flag_mio | f::flag_region | f::flag_physical | f::flag_local_read | f::flag_local_write |
                 f::flag_remote_write | f::flag_remote_read);
    abi::set(box.data(), f::owner, f::owner_software);
    abi::set(box.data(), f::key, index);
    abi::set(box.data(), f::pd_flags, s.thief.b.at.pd->pdn);
    abi::set(box.data(), f::length, ~std::uint64_t{0});
    abi::set(box.data(), f::entity_size, 12);
    ASSERT_EQ(channel.write(box, abi::opcode::sw2hw_mpt, index & 0xfff), 0);
    request r;
    r.sges.push_back({s.sent.address(), 4096, s.sent.region->lkey});
    r.rkey = abi::index_to_key(index);
    r.remote = s.own.memory.bus_address;
    post(s.thief.a, r);
    EXPECT_EQ(s.thief.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(s.own.at(), s.sent.at(), 4096), 0);
    r.remote = s.theirs.memory.bus_address;
    post(s.thief.a, r);
    s.thief.a.wait_send(1000 * ms);
  });
}

TEST(Isolation, DoorbellsOfAnotherFunctionAreNotHeard) {
  with_scene([](hosts::two_nodes& system, scene& s) {
    host_driver::bus_if& bus = system.node_b().bus(2);
    constexpr std::uint64_t page = std::uint64_t{abi::uar::reserved_pages} << abi::uar::log_page;
    // Its queue pair's send doorbell.
    const std::uint64_t wrong = at_b(system, "scheduler.wrong_uar");
    bus.mmio_write32(2, page + abi::uar::send_doorbell, abi::uar::send_doorbell_value(s.victim.b.qp->qp_num));
    bus.spend_ps(10 * us);
    EXPECT_EQ(at_b(system, "scheduler.wrong_uar"), wrong + 1);
    // Through all of its pages at once, behind the owner's: no queue is looked at but for the owner's doorbell.
    const std::uint64_t grants = at_b(system, "scheduler.grants");
    for (std::uint64_t n = 0; n < 6; ++n)
      bus.mmio_write32(2, page + (n << abi::uar::log_page) + abi::uar::send_doorbell,
                       abi::uar::send_doorbell_value(s.victim.b.qp->qp_num));
    bus.spend_ps(10 * us);
    EXPECT_EQ(at_b(system, "scheduler.wrong_uar"), wrong + 7);
    EXPECT_EQ(at_b(system, "scheduler.grants"), grants);
    // The arming of its completion queue: an event that it has not asked for would come.
    const std::uint64_t bad = at_b(system, "completion.bad_doorbell");
    const std::uint32_t cqn = s.victim.b.receive_cq->cqn;
    bus.mmio_write64(2, page + abi::uar::cq_doorbell,
                     std::uint64_t{abi::uar::cq_arm_word(1, abi::uar::cq_arm_next, cqn)} << 32);
    bus.spend_ps(10 * us);
    EXPECT_EQ(at_b(system, "completion.bad_doorbell"), bad + 1);
    // Event queues beyond its own, in its own pages.
    const std::uint64_t nowhere = at_b(system, "doorbell.bad_offset");
    for (const std::uint32_t eqn : {8u, 9u, 15u, 255u, 256u})
      if (const std::uint64_t at = abi::uar::eq_doorbell_offset(eqn); at < 0x2000 || at >= 0x4000)
        bus.mmio_write32(2, at, abi::uar::eq_doorbell_value(77, true));
    bus.spend_ps(10 * us);
    EXPECT_EQ(at_b(system, "doorbell.bad_offset"), nowhere + 2);
    // BlueFlame, which virtual functions have not.
    const std::uint8_t line[64] = {};
    bus.mmio_write_combined(2, 0x400000 + page, line, 64);
    bus.spend_ps(10 * us);
    EXPECT_EQ(at_b(system, "doorbell.bad_offset"), nowhere + 3);
  });
}

/// The registers of the physical function, and another function's part of the range, are at other addresses; a virtual
/// function's own BAR holds nothing of them.
TEST(Isolation, TheBarHoldsTheFunctionsOwnRegisters) {
  with_scene([](hosts::two_nodes& system, scene&) {
    host_driver::bus_if& bus = system.node_b().bus(2);
    EXPECT_EQ(bus.mmio_read32(2, abi::comm::flags) & abi::comm::flag_offline, 0u);
    EXPECT_EQ(bus.mmio_read32(2, abi::comm::capabilities), abi::comm::capability_reset);
    // What it writes to its answer's register stays without effect: that is the physical function's.
    const std::uint32_t answer = bus.mmio_read32(2, abi::comm::slave_read);
    bus.mmio_write32(2, abi::comm::slave_read, ~answer);
    EXPECT_EQ(bus.mmio_read32(2, abi::comm::slave_read), answer);
    bus.mmio_write32(2, abi::comm::flags, 0xffff'ffff & ~abi::comm::flag_reset_request);
    EXPECT_EQ(bus.mmio_read32(2, abi::comm::flags) & abi::comm::flag_offline, 0u);
    EXPECT_EQ(bus.config_read32(0x10), 0u);
    bus.config_write32(0x10, ~0u);
    bus.config_write32(0x18, ~0u);
    EXPECT_EQ(bus.config_read32(0x10), 0u);
    EXPECT_EQ(bus.config_read32(0x18), 0u);
  });
}

/// What is addressed to one function does not reach a queue pair of another, even where its number is right.
TEST(Isolation, TheAddressDecidesTheFunction) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    hosts::connection_options o;
    o.type = IBV_QPT_UD;
    const link first = connect(system.node_a(), 0, system.node_b(), 1, 11, o);
    const link second = connect(system.node_a(), 0, system.node_b(), 2, 21, o);
    const hosts::buffer from = hosts::make_buffer(first.a.at, 4096), to = hosts::make_buffer(second.b.at, 4096);
    post_receive(second.b, {{to.address(), 2048, to.region->lkey}});
    const std::uint64_t before = at_b(system, "responder.drop.function");
    const std::uint32_t qpn = second.b.qp->qp_num;
    EXPECT_EQ(send_datagram(first.a, o, first.b.at, qpn, from, 64), IBV_WC_SUCCESS) << "it leaves";
    second.b.at.bus->spend_ps(20 * us);
    EXPECT_EQ(at_b(system, "responder.drop.function"), before + 1);
    EXPECT_TRUE(second.b.silent());
    EXPECT_EQ(send_datagram(first.a, o, second.b.at, qpn, from, 64), IBV_WC_SUCCESS);
    EXPECT_EQ(second.b.wait_receive().status, IBV_WC_SUCCESS);
  });
}

/// Commands that name another function's objects, through the function's own channel: each is refused.
TEST(Isolation, CommandsReachOwnObjectsOnly) {
  with_scene([](hosts::two_nodes&, scene& s) {
    using host_driver::resource;
    using abi::opcode;
    command_channel& channel = s.thief.b.dev().commands();
    const std::uint32_t qpn = s.victim.b.qp->qp_num, cqn = s.victim.b.send_cq->cqn;
    const std::uint32_t mpt = s.theirs.region->index & 0xfff, mtt = s.theirs.region->mtt.first;
    command_channel::mailbox box(channel), out(channel);
    const auto refused = [&](opcode op, std::uint32_t modifier, std::uint8_t op_modifier = 0, std::uint64_t in = 0) {
      EXPECT_NE(channel.execute({op, modifier, op_modifier, in, out.address(), nullptr}), 0)
          << std::hex << static_cast<unsigned>(op) << " of " << modifier;
    };
    refused(opcode::to_rst_qp, qpn, 2);
    refused(opcode::to_err_qp, qpn);
    refused(opcode::query_qp, qpn);
    refused(opcode::rts2sqd_qp, qpn, 0, box.address());
    refused(opcode::rts2rts_qp, qpn, 0, box.address());
    refused(opcode::rst2init_qp, qpn, 0, box.address());
    refused(opcode::hw2sw_cq, cqn, 1);
    refused(opcode::query_cq, cqn);
    refused(opcode::modify_cq, cqn, 1, box.address());
    refused(opcode::hw2sw_mpt, mpt, 1);
    refused(opcode::hw2sw_srq, 70, 1);
    refused(opcode::arm_srq, 70, 0, 1);
    refused(opcode::query_mpt, mpt);
    refused(opcode::free_res, static_cast<std::uint32_t>(resource::cq), abi::res_op::reserve_and_map, cqn);
    refused(opcode::free_res, static_cast<std::uint32_t>(resource::qp), abi::res_op::reserve, qpn);
    refused(opcode::free_res, static_cast<std::uint32_t>(resource::mtt), abi::res_op::reserve_and_map, mtt);
    abi::set(box.data(), abi::write_mtt_mailbox::start_index, std::uint64_t{mtt});
    refused(opcode::write_mtt, 1, 0, box.address());
    // The device is the physical function's.
    for (const opcode op :
         {opcode::init_hca,          opcode::close_hca,        opcode::run_fw,         opcode::unmap_fa,
          opcode::map_icm,           opcode::unmap_icm,        opcode::set_icm_size,   opcode::mad_ifc,
          opcode::config_dev,        opcode::conf_special_qp,  opcode::access_mem,     opcode::gen_eqe,
          opcode::inform_flr_done,   opcode::arm_comm_channel, opcode::query_func,     opcode::read_mcg,
          opcode::write_mcg,         opcode::update_qp,        opcode::set_mcast_fltr, opcode::diag_rprt,
          static_cast<opcode>(0x7ff)})
      refused(op, 1, 0, box.address());
    // Another function's or the physical one's rows and addresses of a port.
    namespace f = abi::set_port;
    refused(opcode::set_port, f::modifier(f::selector::mac_table, 1), f::op_ethernet, box.address());
    refused(opcode::set_port, f::modifier(f::selector::vlan_table, 1), f::op_ethernet, box.address());
    refused(opcode::set_port, f::modifier(f::selector::prio2tc, 1), f::op_ethernet, box.address());
    refused(opcode::alloc_res, static_cast<std::uint32_t>(resource::mac) | 1 << 8, abi::res_op::reserve_and_map,
            0x0200'1111'2222);
  });
}

/// A queue pair of the function's own on a completion queue, a row, an address or entries that are not.
TEST(Isolation, AnOwnQueuePairTakesOwnThingsOnly) {
  with_scene([](hosts::two_nodes&, scene& s) {
    namespace q = abi::qpc;
    host_driver::device& dev = s.thief.b.dev();
    command_channel& channel = dev.commands();
    std::uint64_t number = 0;
    ASSERT_EQ(
        channel.execute({abi::opcode::alloc_res, 0, abi::res_op::reserve, std::uint64_t{1} << 32 | 1, 0, &number}), 0);
    const auto qpn = static_cast<std::uint32_t>(number);
    const auto init = [&](const std::function<void(std::uint8_t*)>& change) { return begin_qp(s, qpn, change); };
    EXPECT_NE(init([&](std::uint8_t* c) { abi::set(c, q::send_cqn, s.victim.b.send_cq->cqn); }), 0);
    EXPECT_NE(init([&](std::uint8_t* c) { abi::set(c, q::receive_cqn, s.victim.b.receive_cq->cqn); }), 0);
    EXPECT_NE(init([&](std::uint8_t* c) {
                abi::store_mtt(c, q::mtt_high, q::mtt_low, std::uint64_t{s.theirs.region->mtt.first} * abi::mtt::bytes);
              }),
              0);
    EXPECT_NE(init([&](std::uint8_t* c) { abi::set(c, q::pd, s.thief.b.at.pd->pdn | 2u << 17); }), 0)
        << "a domain of function 1";
    EXPECT_NE(init([&](std::uint8_t* c) { abi::set(c, q::service, 7); }), 0) << "raw frames";
    EXPECT_NE(init([&](std::uint8_t* c) { abi::set(c, q::rate_limit, std::uint16_t{0x4001}); }), 0);
    ASSERT_EQ(init([](std::uint8_t*) {}), 0);
    const auto rtr = [&](const std::function<void(std::uint8_t*)>& change) {
      command_channel::mailbox box(channel);
      std::uint8_t* c = box.data() + abi::qp_mailbox::context;
      abi::set(box.data(), abi::qp_mailbox::optional, abi::qp_mailbox::opt_primary_path);
      c[0x08] = 3 << 5 | 31;
      std::uint8_t* path = c + q::primary_path;
      abi::set(path, abi::path::grh, 1);
      abi::set(path, abi::path::mac_index, static_cast<std::uint8_t>(dev.port(1).mac_index));
      abi::set(path, abi::path::sched_queue, std::uint8_t{0x83});
      change(path);
      return channel.write(box, abi::opcode::init2rtr_qp, qpn);
    };
    const auto& window = dev.port(1).gid_rows;
    EXPECT_EQ(window, 56u);
    EXPECT_NE(rtr([&](std::uint8_t* p) { abi::set(p, abi::path::gid_index, std::uint8_t{56}); }), 0);
    EXPECT_NE(rtr([&](std::uint8_t* p) { abi::set(p, abi::path::gid_index, std::uint8_t{0xff}); }), 0);
    EXPECT_NE(rtr([&](std::uint8_t* p) { abi::set(p, abi::path::mac_index, std::uint8_t{0}); }), 0)
        << "the physical function's address";
    const auto victims = static_cast<std::uint8_t>(s.victim.b.dev().port(1).mac_index);
    EXPECT_NE(rtr([&](std::uint8_t* p) { abi::set(p, abi::path::mac_index, victims); }), 0);
    EXPECT_NE(rtr([&](std::uint8_t* p) {
                abi::set(p, abi::path::fl, abi::path::fl_cvlan);
                abi::set(p, abi::path::vlan_index, std::uint8_t{2});
              }),
              0);
    EXPECT_EQ(rtr([](std::uint8_t*) {}), 0);
  });
}

class RandomCommands : public testing::TestWithParam<unsigned> {};

/// A driver that has lost its mind, or wants something: commands of all kinds, on its own objects and on others', with
/// mailboxes of any content. What is not its own is as it was, and everybody goes on working.
TEST_P(RandomCommands, HurtNobodyElse) {
  with_scene([](hosts::two_nodes& system, scene& s) {
    using abi::opcode;
    std::mt19937 random(GetParam());
    const auto below = [&random](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
    command_channel& channel = s.thief.b.dev().commands();
    const side& victim = s.victim.b;
    const side& thief = s.thief.b;
    const std::vector<std::uint32_t> numbers{victim.qp->qp_num,
                                             thief.qp->qp_num,
                                             victim.send_cq->cqn,
                                             victim.receive_cq->cqn,
                                             thief.send_cq->cqn,
                                             s.theirs.region->index & 0xfff,
                                             s.own.region->index & 0xfff,
                                             s.theirs.region->mtt.first,
                                             s.own.region->mtt.first,
                                             0,
                                             1,
                                             2,
                                             3,
                                             4,
                                             7,
                                             8,
                                             0x200,
                                             0x202,
                                             1 << 8,
                                             2 << 8,
                                             0xd01,
                                             0x501,
                                             0x201,
                                             0x2000,
                                             0xffffff,
                                             0xffffffff};
    const opcode known[] = {opcode::query_fw,
                            opcode::query_hca,
                            opcode::query_dev_cap,
                            opcode::query_func_cap,
                            opcode::query_port,
                            opcode::init_port,
                            opcode::close_port,
                            opcode::set_port,
                            opcode::alloc_res,
                            opcode::free_res,
                            opcode::write_mtt,
                            opcode::sync_tpt,
                            opcode::sw2hw_mpt,
                            opcode::hw2sw_mpt,
                            opcode::sw2hw_eq,
                            opcode::map_eq,
                            opcode::sw2hw_cq,
                            opcode::hw2sw_cq,
                            opcode::query_cq,
                            opcode::modify_cq,
                            opcode::sw2hw_srq,
                            opcode::hw2sw_srq,
                            opcode::query_srq,
                            opcode::arm_srq,
                            opcode::rst2init_qp,
                            opcode::init2rtr_qp,
                            opcode::rtr2rts_qp,
                            opcode::rts2rts_qp,
                            opcode::rts2sqd_qp,
                            opcode::sqd2rts_qp,
                            opcode::to_err_qp,
                            opcode::to_rst_qp,
                            opcode::query_qp,
                            opcode::qp_attach,
                            opcode::query_if_stat,
                            opcode::nop,
                            opcode::query_adapter,
                            opcode::flow_steering_attach,
                            opcode::flow_steering_detach};
    command_channel::mailbox box(channel), out(channel);
    const auto number = [&] {
      return below(4) == 0 ? static_cast<std::uint32_t>(random()) : numbers[below(numbers.size())];
    };
    unsigned accepted = 0;
    for (unsigned n = 0; n < 1500; ++n) {
      if (below(3) != 0) std::memset(box.data(), 0, abi::mailbox_bytes);
      for (unsigned words = below(60); words != 0; --words) abi::store32(box.data(), 4 * below(96), number());
      const opcode op = below(10) == 0 ? static_cast<opcode>(below(0x1000)) : known[below(std::size(known))];
      std::uint64_t result = 0;
      const std::uint64_t in = below(3) == 0 ? std::uint64_t{number()} << 32 | number() : box.address();
      if (channel.execute({op, number(), static_cast<std::uint8_t>(below(4)), in, out.address(), &result}) == 0)
        ++accepted;
    }
    EXPECT_GT(accepted, 40u) << "they are not all nonsense";
    expect_works(connect(system.node_a(), 0, system.node_b(), 0, 81));
    // Begun anew it is as any other function.
    EXPECT_EQ(s.thief.b.dev().abandon(), 0);
    EXPECT_EQ(s.thief.b.dev().open(), 0);
    expect_works(connect(system.node_a(), 0, system.node_b(), 2, 91));
  });
}
INSTANTIATE_TEST_SUITE_P(isolation, RandomCommands, testing::Range(1u, 9u));

/// A function that takes all that it may have leaves the others theirs.
TEST(Isolation, QuotasLeaveTheOthersTheirs) {
  with_scene([](hosts::two_nodes& system, scene& s) {
    host_driver::device& greedy = s.thief.b.dev();
    const auto& most = system.node_b().master().tracker().most(1);
    std::vector<host_driver::completion_queue*> cqs;
    while (host_driver::completion_queue* cq = greedy.create_cq(7)) cqs.push_back(cq);
    EXPECT_EQ(errno, EIO) << "the kernel's word for more than its quota";
    EXPECT_EQ(cqs.size() + 2, most[static_cast<unsigned>(host_driver::resource::cq)]);
    host_driver::completion_queue* const other = s.victim.b.dev().create_cq(7);
    EXPECT_NE(other, nullptr);
    host_driver::completion_queue* const physical = system.node_b().device(0).create_cq(7);
    EXPECT_NE(physical, nullptr);
    for (host_driver::completion_queue* cq : cqs) EXPECT_EQ(greedy.destroy_cq(cq), 0);
    EXPECT_NE(greedy.create_cq(7), nullptr);
    // Memory: a region larger than its translation entries.
    const auto large =
        greedy.allocate_buffer(std::size_t{most[static_cast<unsigned>(host_driver::resource::mtt)]} * 4096);
    ASSERT_NE(large.pointer, nullptr);
    EXPECT_EQ(greedy.reg_mr(s.thief.b.at.pd, large.pointer, large.bytes, IBV_ACCESS_LOCAL_WRITE), nullptr);
    EXPECT_EQ(errno, ENOMEM);
  });
}

}  // namespace
}  // namespace rnic::system_test
