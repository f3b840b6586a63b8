// SPDX-License-Identifier: Apache-2.0
// Ways in of a function with a raw packet queue pair: RoCE packets that software has made whole, with any number of a
// queue pair and any Q_Key in them.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "model/abi/command_set.h"
#include "model/abi/contexts.h"
#include "model/sim/simulation.h"
#include "model/wire/bytes.h"
#include "model/wire/icrc.h"
#include "model/wire/packet.h"
#include "testbenches/system/ethernet/station.h"
#include "testbenches/system/functions/gsi_host.h"
#include "testbenches/system/functions/scene.h"

namespace rnic::system_test {
namespace {

namespace pv = abi::paravirtual;
using abi::opcode;
using host_driver::command_channel;
using host_driver::resource;

/// A packet between two endpoints, all of whose headers are its sender's.
wire::packet packet_between(const hosts::endpoint& from, const hosts::endpoint& to, wire::transport transport,
                            wire::operation what, std::uint32_t qpn, std::uint32_t psn) {
  wire::packet p;
  p.smac = from.mac;
  p.dmac = to.mac;
  p.encap = wire::encapsulation::roce_v2_ipv4;
  p.sgid = from.gid;
  p.dgid = to.gid;
  p.udp_source = 0xc123;
  p.hop_limit = 64;
  p.bth.opcode = wire::make_opcode(transport, what);
  p.bth.dest_qp = qpn & 0xffffff;
  p.bth.psn = wire::psn_t(psn);
  return p;
}

bytes whole(wire::packet p, const std::vector<std::uint8_t>& payload) {
  p.payload_length = static_cast<std::uint32_t>(payload.size());
  constexpr std::size_t headers = 256, icrc = 8;
  bytes room(headers + payload.size() + icrc, 0);
  std::uint8_t* const begin = wire::build(p, room.data() + headers);
  std::copy(payload.begin(), payload.end(), begin + p.payload_offset);
  wire::store_le32(begin + p.icrc_offset, wire::icrc(begin, p));
  return {begin, begin + p.icrc_offset + 4};
}

/// Function 2 of host a is the thief, with spoof check and a VLAN of its own; `victim` another function, or 0.
struct raw_scene {
  raw_scene(hosts::two_nodes& s, unsigned function)
      : system(s),
        number(function),
        victim(s.node_a(), function, 1),
        peer(s.node_b(), 0, 3),
        end(end_of(s.node_a(), 2)),
        thief((hosts::set_address(end, {}, 2), end)),
        base(s.node_a().device(0).tables().base_special_qpn()) {}
  /// A datagram inside the adapter, as the victim's proxy or tunnel would send it.
  void send(std::uint32_t to, std::uint32_t as, const std::vector<std::uint8_t>& payload) {
    wire::packet p = packet_between(end, end, wire::transport::ud, wire::operation::send_only, to, 5);
    p.deth = {pv::qkey(number, 1), 0, as};
    thief.send(whole(p, payload));
    EXPECT_EQ(thief.wait_sent().status, IBV_WC_SUCCESS) << "nobody says so";
    end.bus->spend_ps(100 * us);
  }
  std::uint32_t tunnel() const { return pv::tunnel(base, number, 1); }
  std::uint32_t proxy() const { return pv::proxy(base, number, 1); }
  std::uint64_t dropped() const { return tally(system, "a.adapter.responder.drop.address"); }
  hosts::two_nodes& system;
  unsigned number;
  gsi_end victim, peer;
  hosts::endpoint end;
  station thief;
  std::uint32_t base;
};

void with_raw_scene(unsigned victim, unsigned mtu, const std::function<void(raw_scene&)>& body) {
  hosts::two_nodes_config c = shared_cards(2);
  host_driver::function_settings of_thief;
  of_thief.spoof_check = true;
  c.node.function_settings = {{}, of_thief};
  if (mtu != 0) c.node.driver.mtu = mtu;
  hosts::two_nodes system(c);
  run(system, [&] {
    raw_scene s(system, victim);
    body(s);
    const cm::mad m = cm::encode(request_from(s.victim, s.peer));
    EXPECT_EQ(s.victim.send(s.victim.to(s.peer), m.data()), IBV_WC_SUCCESS);
    EXPECT_TRUE(s.peer.receive().any) << "the victim's own messages get through";
  });
}

std::vector<std::uint8_t> tunnelled(const raw_scene& s) {
  std::vector<std::uint8_t> payload(pv::to_tunnel::bytes);
  const host_driver::address_handle& to = *s.victim.handle(s.victim.to(s.peer));
  std::copy_n(to.av, pv::to_tunnel::address_vector, payload.begin());
  abi::set(payload.data(), pv::to_tunnel::remote_qpn, 1);
  abi::set(payload.data(), pv::to_tunnel::qkey, host_driver::gsi_qkey);
  abi::set(payload.data(), pv::to_tunnel::vlan, pv::to_tunnel::untagged);
  std::copy(to.mac.begin(), to.mac.end(), payload.begin() + pv::to_tunnel::destination_mac);
  const cm::mad m = cm::encode(request_from(s.victim, s.peer));
  payload.insert(payload.end(), m.begin(), m.end());
  return payload;
}

/// As another function to that one's tunnel: its message would leave with that function's addresses.
TEST(RawIntrusion, NobodySpeaksThroughAnothersTunnel) {
  for (const unsigned victim : {0u, 1u}) {
    const sim::simulation kernel;
    with_raw_scene(victim, 0, [](raw_scene& s) {
      s.send(s.tunnel(), s.proxy(), tunnelled(s));
      EXPECT_FALSE(s.peer.receive().any);
      EXPECT_EQ(s.system.node_a().master().mads().counts().to_wire, 0u);
      EXPECT_EQ(s.dropped(), 1u);
    });
  }
}

/// As the tunnel to another function's proxy: a message that nobody has looked at.
TEST(RawIntrusion, NobodySpeaksToAnothersProxy) {
  with_raw_scene(1, 0, [](raw_scene& s) {
    std::vector<std::uint8_t> payload(pv::to_proxy::bytes + 40);
    abi::set(payload.data(), pv::to_proxy::source_qpn, 1);
    abi::set(payload.data(), pv::to_proxy::vlan, pv::to_tunnel::untagged);
    payload[pv::to_proxy::bytes + 20] = 0x45;
    const cm::mad m = cm::encode(request_from(s.victim, s.peer));
    payload.insert(payload.end(), m.begin(), m.end());
    s.send(s.proxy(), s.tunnel(), payload);
    EXPECT_FALSE(s.victim.receive().any);
    EXPECT_EQ(s.dropped(), 1u);
  });
}

/// More than a tunnel's receives take would end its queue pair.
TEST(RawIntrusion, ATunnelOutlivesWhatIsTooLongForIt) {
  with_raw_scene(1, 9000, [](raw_scene& s) {
    s.send(s.tunnel(), s.proxy(), std::vector<std::uint8_t>(8000, 0x11));
    EXPECT_EQ(s.dropped(), 1u);
  });
}

/// No datagram is longer than the largest MTU (IBA volume 1, 9.8.3): it is dropped, and its queue pair goes on.
TEST(RawIntrusion, DatagramsBeyondTheMtuAreDropped) {
  hosts::two_nodes_config c = default_system();
  c.node.driver.mtu = 9000;
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::connection_options o;
    o.type = IBV_QPT_UD;
    const link l = connect(system.node_a(), 0, system.node_b(), 0, 11, o);
    hosts::endpoint end = end_of(system.node_a(), 0);
    station peer(end);
    const hosts::buffer to = hosts::make_buffer(l.b.at, 8192);
    for (unsigned i = 0; i < 2; ++i) post_receive(l.b, {{to.address(), 4096 + 40, to.region->lkey}});
    const auto send = [&](std::size_t length) {
      wire::packet p =
          packet_between(l.a.at, l.b.at, wire::transport::ud, wire::operation::send_only, l.b.qp->qp_num, 5);
      p.deth = {hosts::datagram_qkey, 0, 0x1234};
      peer.send(whole(p, std::vector<std::uint8_t>(length, 0x22)));
      EXPECT_EQ(peer.wait_sent().status, IBV_WC_SUCCESS);
      end.bus->spend_ps(100 * us);
    };
    send(4100);
    send(8000);
    EXPECT_EQ(tally(system, "b.adapter.responder.drop.length"), 2u);
    send(4096);
    ibv_wc wc{};
    ASSERT_EQ(l.b.dev().poll_cq(l.b.receive_cq, 1, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.byte_len, 4096u + 40);
  });
}

struct xrc_receiver {
  host_driver::completion_queue* cq = nullptr;
  host_driver::shared_receive_queue* srq = nullptr;
  host_driver::queue_pair* qp = nullptr;
  hosts::endpoint far;
};

/// A queue pair of the thief's that has had the first packet of a SEND, for a shared receive queue with a CQ of its
/// own.
xrc_receiver begun_message(hosts::two_nodes& system, scene& s) {
  xrc_receiver x;
  hosts::endpoint thief = s.thief.b.at;
  host_driver::device& dev = s.thief.b.dev();
  x.far = s.thief.a.at;
  x.cq = dev.create_cq(15);
  ibv_srq_init_attr_ex attr{};
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  attr.srq_type = IBV_SRQT_XRC;
  attr.pd = thief.pd;
  attr.xrcd = hosts::domain_of(thief);
  attr.cq = x.cq;
  attr.attr.max_wr = 16;
  attr.attr.max_sge = 1;
  x.srq = dev.create_srq_ex(&attr);
  ibv_sge sge{s.own.address(), 8192, s.own.region->lkey};
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  EXPECT_EQ(dev.post_srq_recv(x.srq, &wr, &bad), 0);
  hosts::connection_options sends, receives;
  sends.type = IBV_QPT_XRC_SEND;
  receives.type = IBV_QPT_XRC_RECV;
  host_driver::queue_pair* const sender = hosts::make_qp(x.far, sends, *s.thief.a.send_cq, *s.thief.a.receive_cq);
  x.qp = hosts::make_qp(thief, receives, *s.thief.b.send_cq, *s.thief.b.receive_cq);
  hosts::connect(x.far, sends, *sender, thief, x.qp->qp_num, 0, 0);
  hosts::connect(thief, receives, *x.qp, x.far, sender->qp_num, 0, 0);
  ibv_qp_attr a{};
  ibv_qp_init_attr i{};
  EXPECT_EQ(dev.query_qp(x.qp, &a, IBV_QP_RQ_PSN | IBV_QP_PATH_MTU, &i), 0);
  hosts::endpoint raw_end = end_of(system.node_a(), 0);
  station raw(raw_end);
  wire::packet p =
      packet_between(x.far, thief, wire::transport::xrc, wire::operation::send_first, x.qp->qp_num, a.rq_psn);
  p.bth.ack_request = true;
  p.xrceth = x.srq->srqn;
  raw.send(whole(p, std::vector<std::uint8_t>(128u << a.path_mtu, 0x66)));
  EXPECT_EQ(raw.wait_sent().status, IBV_WC_SUCCESS);
  thief.bus->spend_ps(50 * us);
  EXPECT_EQ(s.own.at()[0], 0x66) << "the first packet is there";
  return x;
}

/// The queue pair keeps the number of its message's CQ when that is given back with its shared receive queue, and the
/// number goes to another function: that one's CQ takes no completion of it.
TEST(RawIntrusion, ACompletionQueuesNumberOutlivesItsOwnerInNoQueuePair) {
  with_scene([](hosts::two_nodes& system, scene& s) {
    const xrc_receiver x = begun_message(system, s);
    command_channel& channel = s.thief.b.dev().commands();
    const auto kind = [](resource what) { return static_cast<std::uint32_t>(what); };
    const std::uint32_t cqn = x.cq->cqn, srqn = x.srq->srqn;
    ASSERT_EQ(channel.command(opcode::hw2sw_srq, srqn, 1), 0);
    ASSERT_EQ(channel.command(opcode::free_res, kind(resource::srq), abi::res_op::reserve_and_map, srqn), 0);
    ASSERT_EQ(channel.command(opcode::hw2sw_cq, cqn, 1), 0);
    ASSERT_EQ(channel.command(opcode::free_res, kind(resource::cq), abi::res_op::reserve_and_map, cqn), 0);
    host_driver::completion_queue* theirs = nullptr;
    for (unsigned tries = 0; tries < 300 && (theirs == nullptr || theirs->cqn != cqn); ++tries)
      theirs = s.victim.b.dev().create_cq(15);
    ASSERT_EQ(theirs->cqn, cqn);
    const std::uint64_t before = tally(system, "b.adapter.completion.cqe_invalid");
    EXPECT_EQ(channel.command(opcode::to_err_qp, x.qp->qp_num), 0);
    s.thief.b.at.bus->spend_ps(100 * us);
    EXPECT_EQ(tally(system, "b.adapter.completion.cqe_invalid"), before + 1);
    command_channel& v = s.victim.b.dev().commands();
    command_channel::mailbox box(v);
    ASSERT_EQ(v.read(box, opcode::query_cq, cqn), 0);
    EXPECT_EQ(abi::get(box.data(), abi::cqc::producer), 0u);
    ibv_wc wc{};
    EXPECT_EQ(s.victim.b.dev().poll_cq(theirs, 1, &wc), 0);
  });
}

}  // namespace
}  // namespace rnic::system_test
