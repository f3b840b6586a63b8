// SPDX-License-Identifier: Apache-2.0
// Ways in from one function to another through what is stale, named twice, or said in a field that nobody reads.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "model/abi/bar_layout.h"
#include "model/abi/command_set.h"
#include "model/abi/contexts.h"
#include "model/sim/simulation.h"
#include "testbenches/system/functions/scene.h"
#include "testbenches/system/verbs/keys.h"

namespace rnic::system_test {
namespace {

using abi::opcode;
using host_driver::command_channel;
using host_driver::resource;

/// One field of a queue pair that sends, in the way that a driver of a function may say it.
int change_live(const side& s, std::uint32_t optional, const std::function<void(std::uint8_t* context)>& change) {
  command_channel& channel = s.dev().commands();
  command_channel::mailbox box(channel);
  abi::set(box.data(), abi::qp_mailbox::optional, optional);
  change(box.data() + abi::qp_mailbox::context);
  return channel.write(box, opcode::rts2rts_qp, s.qp->qp_num);
}

constexpr auto in_path(abi::field<std::uint8_t> f) { return abi::at(abi::qpc::primary_path, f); }

/// Hardware's table has the low bits of a number: another number with the same ones is nobody's.
TEST(Intrusion, AQueuePairHasOneNumber) {
  with_scene([](hosts::two_nodes& system, scene& s) {
    namespace q = abi::qpc;
    command_channel& channel = s.thief.b.dev().commands();
    std::uint64_t number = 0;
    ASSERT_EQ(channel.execute({opcode::alloc_res, 0, abi::res_op::reserve, std::uint64_t{1} << 32 | 1, 0, &number}), 0);
    const auto qpn = static_cast<std::uint32_t>(number);
    const auto init = [&](std::uint32_t as) { return begin_qp(s, as, [](std::uint8_t*) {}); };
    EXPECT_NE(init(qpn ^ 1u << 23), 0);
    EXPECT_NE(init(qpn ^ 1u << 18), 0);
    EXPECT_EQ(init(qpn), 0);
    EXPECT_EQ(channel.command(opcode::to_rst_qp, qpn, abi::qp_mailbox::to_reset_op_modifier), 0);
    // It is hardware's no more: the next owner of its place in the table can have it.
    command_channel& host = system.node_b().device(0).commands();
    command_channel::mailbox box(host);
    for (const std::uint32_t as : {qpn, qpn ^ 1u << 23}) {
      ASSERT_EQ(host.read(box, opcode::query_qp, as), 0);
      EXPECT_EQ(abi::get(box.data(), abi::at(abi::qp_mailbox::context, q::state)), 0u);
    }
  });
}

/// Queue pairs that receive for XRC have a bit beside their number: with it they go when the function goes.
TEST(Intrusion, XrcQueuePairsGoWithTheFunction) {
  with_scene([](hosts::two_nodes& system, scene& s) {
    hosts::endpoint at = s.thief.b.at;
    hosts::connection_options x;
    x.type = IBV_QPT_XRC_RECV;
    hosts::domain_of(at);
    const std::uint32_t qpn = hosts::make_qp(at, x, *s.thief.b.send_cq, *s.thief.b.receive_cq)->qp_num;
    EXPECT_NE(qpn & 1u << 23, 0u);
    command_channel& host = system.node_b().device(0).commands();
    command_channel::mailbox box(host);
    const auto state = [&] {
      EXPECT_EQ(host.read(box, opcode::query_qp, qpn), 0);
      return abi::get(box.data(), abi::at(abi::qp_mailbox::context, abi::qpc::state));
    };
    EXPECT_NE(state(), 0u);
    initiate_reset(system.node_b().bus(2));
    s.victim.b.at.bus->spend_ps(1000 * us);
    EXPECT_EQ(state(), 0u);
    EXPECT_EQ(s.thief.b.dev().abandon(), 0);
    EXPECT_EQ(s.thief.b.dev().open(), 0);
  });
}

/// Priority and port of a path that comes without the rest of it: the administrator's VLAN has the priority that he
/// gave it, and a rate that counts at one priority counts.
TEST(Intrusion, NeitherPriorityNorPortIsTheFunctions) {
  hosts::two_nodes_config c = shared_cards(2);
  c.node.function_settings.resize(2);
  c.node.function_settings[0].vlan = 50;
  c.node.function_settings[0].max_rate_mbps = 2000;
  c.node.function_settings[1].vlan = 60;
  c.node.function_settings[1].priority = 3;
  hosts::two_nodes system(c);
  run(system, [&] {
    for (const unsigned function : {1u, 2u}) {
      const link l = connect(system.node_a(), function, system.node_b(), function, 11 * function);
      for (const unsigned queue : {0x83u | 5u << 3, 0xc3u, 0x83u | 7u << 3})
        EXPECT_NE(change_live(l.a, abi::qp_mailbox::opt_sched_queue,
                              [&](std::uint8_t* context) {
                                abi::set(context, in_path(abi::path::sched_queue), static_cast<std::uint8_t>(queue));
                              }),
                  0);
      expect_works(l);
    }
    host_driver::port_statistics counted;
    ASSERT_EQ(system.node_a().device(0).query_statistics(1, &counted), 0);
    EXPECT_EQ(counted.tx_frames[5], 0u);
    EXPECT_EQ(counted.tx_frames[7], 0u);
  });
}

/// What hardware tells of an object that is given back it writes with the physical function's rights: not where the
/// function says, which could be anywhere in that one's memory.
TEST(Intrusion, WhatIsGivenBackIsWrittenNowhere) {
  for (const bool iommu : {false, true}) {
    const sim::simulation kernel;
    with_scene(
        [](hosts::two_nodes& system, scene& s) {
          hosts::endpoint physical = end_of(system.node_b(), 0);
          hosts::set_address(physical, {}, 77);
          const hosts::buffer secret = hosts::make_buffer(physical, 8192);
          std::memset(secret.at(), 0x5a, 8192);
          const std::uint64_t target = (secret.memory.bus_address + 0x1ff) & ~std::uint64_t{0xff};
          host_driver::device& dev = s.thief.b.dev();
          auto* const cq = dev.create_cq(7);
          ibv_srq_init_attr a{};
          a.attr = {16, 1, 0};
          auto* const srq = dev.create_srq(s.thief.b.at.pd, &a);
          EXPECT_EQ(dev.commands().execute({opcode::hw2sw_cq, cq->cqn, 0, 0, target, nullptr}), 0);
          EXPECT_EQ(dev.commands().execute({opcode::hw2sw_srq, srq->srqn, 0, 0, target, nullptr}), 0);
          s.thief.b.at.bus->spend_ps(20 * us);
          const std::vector<std::uint8_t> as_before(8192, 0x5a);
          EXPECT_EQ(std::memcmp(secret.at(), as_before.data(), as_before.size()), 0);
        },
        iommu);
  }
}

/// A counter that queue pairs name is not given back: the next function that gets it would see what they send.
TEST(Intrusion, CountersAreGivenBackByNobodyWhoCountsInThem) {
  with_scene([](hosts::two_nodes&, scene& s) {
    host_driver::device& dev = s.thief.b.dev();
    const auto kind = static_cast<std::uint32_t>(resource::counter);
    const std::uint32_t counter = dev.port(1).counter;
    const auto give_back = [&] {
      return dev.commands().command(opcode::free_res, kind, abi::res_op::reserve_and_map, counter);
    };
    EXPECT_NE(give_back(), 0);
    EXPECT_EQ(dev.commands().last_status(), static_cast<int>(abi::status::resource_busy));
    expect_works(s.thief);
    EXPECT_EQ(dev.commands().command(opcode::to_rst_qp, s.thief.b.qp->qp_num, abi::qp_mailbox::to_reset_op_modifier),
              0);
    EXPECT_EQ(give_back(), 0) << "nobody names it any more";
  });
}

/// A counter of another function's in a path that comes without the rest of it.
TEST(Intrusion, CountersOfOthersDoNotCount) {
  with_scene([](hosts::two_nodes&, scene& s) {
    host_driver::traffic_statistics before, after;
    ASSERT_EQ(s.victim.b.dev().query_traffic(1, &before), 0);
    const std::uint8_t theirs = s.victim.b.dev().port(1).counter;
    change_live(s.thief.b, abi::qp_mailbox::opt_counter,
                [&](std::uint8_t* context) { abi::set(context, in_path(abi::path::counter_index), theirs); });
    expect_works(s.thief);
    ASSERT_EQ(s.victim.b.dev().query_traffic(1, &after), 0);
    EXPECT_EQ(after.tx_frames, before.tx_frames);
    EXPECT_EQ(after.rx_frames, before.rx_frames);
  });
}

/// What a queue pair uses stays with its function as long as it does: numbers that were given back are another one's.
TEST(Intrusion, WhatIsInUseIsNotGivenBack) {
  with_scene([](hosts::two_nodes&, scene& s) {
    host_driver::device& dev = s.thief.b.dev();
    command_channel& channel = dev.commands();
    const auto kind = [](resource what) { return static_cast<std::uint32_t>(what); };
    const auto free_mtt = [&](const host_driver::mtt_range& m) {
      return channel.command(opcode::free_res, kind(resource::mtt), abi::res_op::reserve_and_map,
                             std::uint64_t{m.order} << 32 | m.first);
    };
    // A queue of completions, the domain and the shared queue of an XRC queue pair.
    EXPECT_NE(channel.command(opcode::hw2sw_cq, s.thief.b.send_cq->cqn, 1), 0);
    EXPECT_NE(channel.command(opcode::hw2sw_cq, s.thief.b.receive_cq->cqn, 1), 0);
    EXPECT_NE(free_mtt(s.own.region->mtt), 0) << "a region's pages";
    EXPECT_NE(free_mtt(s.thief.b.send_cq->mtt), 0) << "a completion queue's";
    EXPECT_NE(free_mtt(s.thief.b.qp->mtt), 0) << "a queue pair's";
    ibv_srq_init_attr shared{};
    shared.attr = {16, 1, 0};
    host_driver::shared_receive_queue* const srq = dev.create_srq(s.thief.b.at.pd, &shared);
    ASSERT_NE(srq, nullptr);
    hosts::endpoint at = s.thief.b.at;
    host_driver::queue_pair* const qp = hosts::make_qp(at, {}, *s.thief.b.send_cq, *s.thief.b.receive_cq, srq);
    EXPECT_NE(channel.command(opcode::hw2sw_srq, srq->srqn, 1), 0);
    EXPECT_NE(free_mtt(srq->mtt), 0) << "a shared queue's";
    hosts::connection_options x;
    x.type = IBV_QPT_XRC_RECV;
    hosts::domain_of(at);
    host_driver::queue_pair* const xrc = hosts::make_qp(at, x, *s.thief.b.send_cq, *s.thief.b.receive_cq);
    EXPECT_NE(channel.command(opcode::free_res, kind(resource::xrcd), abi::res_op::reserve_and_map, at.xrcd->xrcdn), 0);
    // In order all can be given back.
    EXPECT_EQ(dev.destroy_qp(xrc), 0);
    EXPECT_EQ(dev.close_xrcd(at.xrcd), 0);
    EXPECT_EQ(dev.destroy_qp(qp), 0);
    EXPECT_EQ(dev.destroy_srq(srq), 0);
    EXPECT_EQ(dev.resize_cq(s.thief.b.send_cq, 511), 0);
    expect_works(s.thief);
  });
}

/// Queues whose last entries would be behind the function's translation entries, whatever the size of an entry is.
TEST(Intrusion, QueuesLieInOwnEntries) {
  with_scene([](hosts::two_nodes&, scene& s) {
    host_driver::device& dev = s.thief.b.dev();
    command_channel& channel = dev.commands();
    ASSERT_EQ(dev.cqe_bytes(), 64u);
    ASSERT_EQ(dev.eqe_bytes(), 64u);
    const auto kind = [](resource what) { return static_cast<std::uint32_t>(what); };
    const auto take = [&](resource what) {
      std::uint64_t number = 0;
      EXPECT_EQ(channel.execute({opcode::alloc_res, kind(what), abi::res_op::reserve_and_map, 0, 0, &number}), 0);
      return static_cast<std::uint32_t>(number);
    };
    const std::uint64_t page = std::uint64_t{take(resource::mtt)} * abi::mtt::bytes;  // 4096 bytes
    {
      namespace f = abi::cqc;
      command_channel::mailbox box(channel);
      ASSERT_EQ(channel.read(box, opcode::query_cq, s.thief.b.send_cq->cqn), 0);
      abi::store_mtt(box.data(), f::mtt_high, f::mtt_low, page);
      const std::uint32_t cqn = take(resource::cq);
      const auto begin = [&](unsigned log_size, unsigned offset) {
        abi::set(box.data(), f::log_size, static_cast<decltype(abi::get(box.data(), f::log_size))>(log_size));
        abi::set(box.data(), f::page_offset, static_cast<std::uint16_t>(offset));
        return channel.write(box, opcode::sw2hw_cq, cqn, 1);
      };
      EXPECT_NE(begin(7, 0), 0) << "128 entries";
      EXPECT_NE(begin(6, 64), 0) << "64, from the second place on";
      EXPECT_EQ(begin(6, 0), 0);
      EXPECT_EQ(channel.command(opcode::hw2sw_cq, cqn, 1), 0);
    }
    {
      namespace f = abi::eqc;
      command_channel::mailbox box(channel);
      abi::store_mtt(box.data(), f::mtt_high, f::mtt_low, page);
      const auto begin = [&](unsigned log_size, unsigned offset) {
        abi::set(box.data(), f::log_size, static_cast<decltype(abi::get(box.data(), f::log_size))>(log_size));
        abi::set(box.data(), f::page_offset, static_cast<std::uint16_t>(offset));
        return channel.write(box, opcode::sw2hw_eq, 6);
      };
      EXPECT_NE(begin(7, 0), 0);
      EXPECT_NE(begin(6, 64), 0);
    }
    namespace q = abi::qpc;
    const std::uint32_t qpn = [&] {
      std::uint64_t number = 0;
      EXPECT_EQ(channel.execute({opcode::alloc_res, 0, abi::res_op::reserve, std::uint64_t{1} << 32 | 1, 0, &number}),
                0);
      return static_cast<std::uint32_t>(number);
    }();
    const auto at_page = [&](std::uint8_t* c) { abi::store_mtt(c, q::mtt_high, q::mtt_low, page); };
    EXPECT_NE(begin_qp(s, qpn,
                       [&](std::uint8_t* c) {
                         at_page(c);
                         abi::set(c, q::page_offset, 63u);  // of 64 bytes
                       }),
              0);
    EXPECT_NE(begin_qp(s, qpn,
                       [&](std::uint8_t* c) {
                         at_page(c);
                         abi::set(c, q::rq_size_stride, std::uint8_t{8 << 3 | 2});  // a receive queue without a record
                       }),
              0);
    EXPECT_EQ(begin_qp(s, qpn, at_page), 0);
  });
}

/// Requests on keys that a function's queue pair has no business with: each ends the request, not the key.
TEST(Intrusion, KeysOfAnotherFunctionStayAsTheyAre) {
  with_scene([](hosts::two_nodes& system, scene& s) {
    const std::uint32_t key = s.theirs.region->rkey;
    hosts::connection_options kernel;
    kernel.kernel = true;
    kernel.ack_timeout = 8;
    std::uint32_t psn = 1000;
    const auto fresh = [&] { return make_sibling(s.thief, kernel, psn += 1000); };
    const auto still_there = [&] {
      request r;
      r.opcode = IBV_WR_RDMA_READ;
      const hosts::buffer near = hosts::make_buffer(s.victim.a.at, 4096);
      r.sges.push_back({near.address(), 4096, near.region->lkey});
      r.remote = s.theirs.address();
      r.rkey = key;
      post(s.victim.a, r);
      EXPECT_EQ(s.victim.a.wait_send().status, IBV_WC_SUCCESS);
      EXPECT_EQ(std::memcmp(near.at(), s.theirs.at(), 4096), 0);
    };
    EXPECT_NE(shop::invalidate(fresh().b, key).status, IBV_WC_SUCCESS);
    still_there();
    const link by_peer = fresh();
    post_receive(by_peer.b, {{s.own.address(), 4096, s.own.region->lkey}});
    shop::send_invalidate(by_peer.a, {{s.sent.address(), 64, s.sent.region->lkey}}, key);
    by_peer.a.wait_send();
    still_there();
    for (const bool from_outside : {true, false}) {
      const link l = fresh();
      const hosts::buffer& result = from_outside ? s.sent : s.own;
      ibv_sge sge{result.address(), 8, result.region->lkey};
      ibv_send_wr wr{};
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.send_flags = IBV_SEND_SIGNALED;
      hosts::make_atomic(wr, false, s.theirs.address(), key, 0);
      EXPECT_NE(shop::run(from_outside ? l.a : l.b, wr).status, IBV_WC_SUCCESS) << from_outside;
    }
    still_there();
    // Windows and fast registration, which functions have not: those of the physical function, by their keys.
    hosts::endpoint physical = end_of(system.node_b(), 0);
    hosts::set_address(physical, {}, 77);
    const hosts::buffer secret = shop::region(physical, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2}) {
      host_driver::memory_window* const w = physical.device->alloc_mw(physical.pd, type);
      ASSERT_NE(w, nullptr);
      for (const hosts::buffer* under : {&secret, static_cast<const hosts::buffer*>(&s.own)}) {
        ibv_send_wr wr{};
        wr.opcode = IBV_WR_BIND_MW;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.bind_mw.mw = w;
        wr.bind_mw.rkey = ibv_inc_rkey(w->rkey);
        wr.bind_mw.bind_info = {under->region, under->address(), 4096, all_remote};
        EXPECT_NE(shop::run(fresh().b, wr).status, IBV_WC_SUCCESS);
      }
    }
    patchwork pages(physical);
    host_driver::fast_register_wr wr = pages.registration({3, 1}, 0, 8192, IBV_ACCESS_LOCAL_WRITE | all_remote);
    EXPECT_NE(shop::run(fresh().b, wr).status, IBV_WC_SUCCESS);
    EXPECT_EQ(s.thief.b.dev().alloc_mw(s.thief.b.at.pd, IBV_MW_TYPE_2), nullptr);
    EXPECT_EQ(s.thief.b.dev().alloc_fast_reg_mr(s.thief.b.at.pd, 4), nullptr);
  });
}

/// A number of a queue pair that was a group's member: the group has lost it with the function.
TEST(Intrusion, GroupsForgetAFunctionThatIsGone) {
  with_scene([](hosts::two_nodes& system, scene& s) {
    hosts::connection_options o;
    o.type = IBV_QPT_UD;
    hosts::endpoint at = s.thief.b.at;
    host_driver::queue_pair* const qp = hosts::make_qp(at, o, *s.thief.b.send_cq, *s.thief.b.receive_cq);
    ibv_gid group{};
    group.raw[0] = 0xff;
    group.raw[1] = 0x0e;
    group.raw[15] = 9;
    ASSERT_EQ(s.thief.b.dev().attach_mcast(qp, &group), 0);
    const auto members = [&] {
      command_channel& host = system.node_b().device(0).commands();
      command_channel::mailbox box(host), entry(host);
      std::memcpy(box.data(), group.raw, sizeof group.raw);
      std::uint64_t bucket = 0;
      EXPECT_EQ(host.execute({opcode::mgid_hash, 0, 0, box.address(), 0, &bucket}), 0);
      EXPECT_EQ(host.read(entry, opcode::read_mcg, static_cast<std::uint32_t>(bucket)), 0);
      return abi::get(entry.data(), abi::mcg::member_count);
    };
    EXPECT_EQ(members(), 1u);
    // Given back, its number is no member any more.
    command_channel& channel = s.thief.b.dev().commands();
    EXPECT_EQ(channel.command(opcode::to_rst_qp, qp->qp_num, abi::qp_mailbox::to_reset_op_modifier), 0);
    EXPECT_EQ(channel.command(opcode::free_res, static_cast<std::uint32_t>(resource::qp), abi::res_op::reserve,
                              std::uint64_t{1} << 32 | qp->qp_num),
              0);
    EXPECT_EQ(members(), 0u);
    hosts::endpoint again = s.thief.b.at;
    ASSERT_EQ(s.thief.b.dev().attach_mcast(hosts::make_qp(again, o, *s.thief.b.send_cq, *s.thief.b.receive_cq), &group),
              0);
    EXPECT_EQ(members(), 1u);
    initiate_reset(system.node_b().bus(2));
    s.victim.b.at.bus->spend_ps(1000 * us);
    EXPECT_EQ(members(), 0u);
    EXPECT_EQ(s.thief.b.dev().abandon(), 0);
    EXPECT_EQ(s.thief.b.dev().open(), 0);
  });
}

/// A group has places for all: who takes more than its part is refused.
TEST(Intrusion, GroupsHaveRoomForOthers) {
  with_scene([](hosts::two_nodes& system, scene& s) {
    command_channel& channel = s.thief.b.dev().commands();
    constexpr unsigned wanted = 250;
    std::uint64_t first = 0;
    ASSERT_EQ(channel.execute({opcode::alloc_res, 0, abi::res_op::reserve, std::uint64_t{1} << 32 | wanted, 0, &first}),
              0);
    ibv_gid group{};
    group.raw[0] = 0xff;
    group.raw[1] = 0x0e;
    group.raw[15] = 9;
    command_channel::mailbox box(channel);
    std::memcpy(box.data(), group.raw, sizeof group.raw);
    unsigned members = 0;
    while (members < wanted &&
           channel.write(box, opcode::qp_attach, static_cast<std::uint32_t>(first) + members, 1) == 0)
      ++members;
    const auto& most = system.node_b().master().tracker().most(2);
    EXPECT_EQ(members, most[static_cast<unsigned>(host_driver::resource_member)]);
    EXPECT_LE(2 * members, 248u) << "of an entry of 1024 bytes; two functions";
    hosts::connection_options o;
    o.type = IBV_QPT_UD;
    for (const unsigned function : {0u, 1u}) {
      hosts::endpoint at = function == 0 ? end_of(system.node_b(), 0) : s.victim.b.at;
      if (function == 0) hosts::set_address(at, o, 77);
      host_driver::completion_queue* const cq = at.device->create_cq(15);
      EXPECT_EQ(at.device->attach_mcast(hosts::make_qp(at, o, *cq, *cq), &group), 0) << function;
    }
  });
}

/// The table of VLANs is everybody's.
TEST(Intrusion, VlansAreLeftForOthers) {
  with_scene([](hosts::two_nodes& system, scene& s) {
    command_channel& channel = s.thief.b.dev().commands();
    std::uint64_t index = 0;
    for (std::uint16_t vid = 1000; vid < 1200; ++vid)
      channel.execute({opcode::alloc_res, static_cast<std::uint32_t>(resource::vlan) | 1 << 8,
                       abi::res_op::reserve_and_map, vid, 0, &index});
    EXPECT_GE(system.node_b().device(0).add_vlan(1, 7), 0);
    host_driver::gid_bytes ip{};
    ip[0] = 0xfd;
    ip[15] = 99;
    EXPECT_GE(s.victim.b.dev().add_address(1, ip, host_driver::roce_types::both, 8), 0);
  });
}

/// A queue pair that says that its peer is another function's: the address decides, and the peer knows its own.
TEST(Intrusion, GuessedNumbersLeadNowhere) {
  with_scene([](hosts::two_nodes& system, scene& s) {
    hosts::connection_options o;
    o.retries = 0;
    o.ack_timeout = 8;
    const auto attempt = [&](const hosts::endpoint& peer, std::uint32_t psn) {
      hosts::endpoint at = s.thief.b.at;
      host_driver::queue_pair* const qp = hosts::make_qp(at, o, *s.thief.b.send_cq, *s.thief.b.receive_cq);
      hosts::connect(at, o, *qp, peer, s.victim.b.qp->qp_num, 0, psn);
      side by = s.thief.b;
      by.qp = qp;
      request r;
      r.sges.push_back({s.own.address(), 64, s.own.region->lkey});
      r.remote = s.theirs.address();
      r.rkey = s.theirs.region->rkey;
      post(by, r);
      return by.wait_send(1000 * ms).status;
    };
    // Inside the adapter: to the victim's address, and to the thief's own.
    EXPECT_NE(attempt(s.victim.b.at, 0), IBV_WC_SUCCESS);
    EXPECT_NE(attempt(s.thief.b.at, 0), IBV_WC_SUCCESS);
    EXPECT_GT(at_b(system, "responder.drop.address") + at_b(system, "responder.drop.function"), 0u);
  });
}

/// A receive queue of another function's domain, and a domain of another function's.
TEST(Intrusion, XrcDomainsAreTheFunctions) {
  with_scene([](hosts::two_nodes&, scene& s) {
    hosts::endpoint victim = s.victim.b.at, thief = s.thief.b.at;
    ibv_srq_init_attr_ex attr{};
    attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attr.srq_type = IBV_SRQT_XRC;
    attr.pd = victim.pd;
    attr.xrcd = hosts::domain_of(victim);
    attr.cq = s.victim.b.receive_cq;
    attr.attr.max_wr = 16;
    attr.attr.max_sge = 1;
    host_driver::shared_receive_queue* const srq = victim.device->create_srq_ex(&attr);
    ASSERT_NE(srq, nullptr);
    ibv_sge sge{s.theirs.address(), 4096, s.theirs.region->lkey};
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ASSERT_EQ(victim.device->post_srq_recv(srq, &wr, &bad), 0);
    hosts::domain_of(thief);
    hosts::connection_options sends, receives;
    sends.type = IBV_QPT_XRC_SEND;
    receives.type = IBV_QPT_XRC_RECV;
    sends.retries = receives.retries = 1;
    sends.ack_timeout = receives.ack_timeout = 8;
    hosts::endpoint far = s.thief.a.at;
    host_driver::queue_pair* const sender = hosts::make_qp(far, sends, *s.thief.a.send_cq, *s.thief.a.receive_cq);
    host_driver::queue_pair* const receiver =
        hosts::make_qp(thief, receives, *s.thief.b.send_cq, *s.thief.b.receive_cq);
    hosts::connect(far, sends, *sender, thief, receiver->qp_num, 0, 0);
    hosts::connect(thief, receives, *receiver, far, sender->qp_num, 0, 0);
    ibv_sge from{s.sent.address(), 64, s.sent.region->lkey};
    ibv_send_wr send{}, *wrong = nullptr;
    send.sg_list = &from;
    send.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    send.qp_type.xrc.remote_srqn = srq->srqn;
    ASSERT_EQ(far.device->post_send(sender, &send, &wrong), 0);
    EXPECT_NE(s.thief.a.wait_send(1000 * ms).status, IBV_WC_SUCCESS);
    EXPECT_TRUE(s.victim.b.silent());
  });
}

/// Commands whose mailboxes are in another function's memory: nothing is read from there, and nothing written.
TEST(Intrusion, MailboxesAreInOwnMemory) {
  with_scene([](hosts::two_nodes&, scene& s) {
    command_channel& channel = s.thief.b.dev().commands();
    const std::uint64_t foreign = s.theirs.memory.bus_address & ~std::uint64_t{4095};
    EXPECT_NE(channel.execute({opcode::rst2init_qp, s.thief.b.qp->qp_num, 0, foreign, 0, nullptr}), 0);
    channel.execute({opcode::query_qp, s.thief.b.qp->qp_num, 0, 0, foreign, nullptr});
    expect_works(s.thief);
  });
}

/// A driver that does not look at its events, of which there are more than its queue has places.
TEST(Intrusion, EventsThatNobodyTakesAreTheFunctions) {
  with_scene([](hosts::two_nodes& system, scene& s) {
    hosts::node& n = system.node_b();
    using link_state = host_driver::function_link;
    for (unsigned i = 0; i < 400; ++i)
      ASSERT_EQ(n.master().set_link(2, i % 2 == 0 ? link_state::down : link_state::up), 0);
    // Another one's come.
    ibv_async_event event{};
    while (n.device(1).get_async_event(&event, ms)) {
    }
    ASSERT_EQ(n.master().set_link(1, link_state::down), 0);
    ASSERT_TRUE(n.device(1).get_async_event(&event, 50 * ms));
    EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
    expect_works(s.victim);
    expect_works(s.thief);
  });
}

/// Interrupt messages are stores: to where the function's memory is not they do not go.
TEST(Intrusion, InterruptMessagesReachNoMemory) {
  with_scene([](hosts::two_nodes& system, scene& s) {
    host_driver::bus_if& bus = system.node_b().bus(2);
    ASSERT_EQ(s.thief.b.dev().req_notify_cq(s.thief.b.receive_cq, 0), 0);  // its driver has set the vector up
    constexpr std::uint64_t table = 0x2000, entry_bytes = 16;              // config_space: vf_msix_table_offset
    for (std::uint64_t vector = 0; vector < 4; ++vector) {
      bus.mmio_write32(2, table + vector * entry_bytes, static_cast<std::uint32_t>(s.theirs.memory.bus_address));
      bus.mmio_write32(2, table + vector * entry_bytes + 4,
                       static_cast<std::uint32_t>(s.theirs.memory.bus_address >> 32));
    }
    const auto counter = [&](const char* name) {
      return system.statistics().value(std::string("b.root_complex.") + name);
    };
    const std::uint64_t before = counter("unsupported_writes");
    post_receive(s.thief.b, {{s.own.address(), 4096, s.own.region->lkey}});
    request r;
    r.opcode = IBV_WR_SEND;
    r.sges.push_back({s.sent.address(), 64, s.sent.region->lkey});
    post(s.thief.a, r);
    EXPECT_EQ(s.thief.b.wait_receive().status, IBV_WC_SUCCESS) << "polled";
    s.thief.b.at.bus->spend_ps(20 * us);
    EXPECT_GT(counter("unsupported_writes"), before);
  });
}

}  // namespace
}  // namespace rnic::system_test
