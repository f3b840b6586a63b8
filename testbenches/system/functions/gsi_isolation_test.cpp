// SPDX-License-Identifier: Apache-2.0
// QP1 of a function whose driver wants more than it may: to speak as somebody else, to hear what is another's, or to do
// harm with what is not a message.
#include <gtest/gtest.h>

#include <vector>

#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"
#include "model/abi/queue_entries.h"
#include "testbenches/system/functions/gsi_host.h"

namespace rnic::system_test {
namespace {

namespace pv = abi::paravirtual;
using host_driver::command_channel;
using host_driver::mad_rules::fault;

/// Function 2 of host a is the thief; function 1 of host a its victim, and the physical function of host b their peer.
struct gsi_scene {
  explicit gsi_scene(hosts::two_nodes& s)
      : system(s), victim(s.node_a(), 1, 1), thief(s.node_a(), 2, 2), peer(s.node_b(), 0, 3) {}
  std::uint64_t dropped(fault f) const {
    return system.node_a().master().mads().counts().from_function[static_cast<std::size_t>(f)];
  }
  std::uint64_t dropped_arrivals(fault f) const {
    return system.node_a().master().mads().counts().from_wire[static_cast<std::size_t>(f)];
  }
  std::uint64_t at_a(const std::string& counter) const { return system.statistics().value("a.adapter." + counter); }
  bool anybody_heard() { return victim.receive().any || thief.receive().any || peer.receive().any; }
  cm::contents message() const { return request_from(thief, peer); }
  hosts::two_nodes& system;
  gsi_end victim, thief, peer;
};

void with_gsi_scene(const std::function<void(gsi_scene&)>& body) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    gsi_scene s(system);
    body(s);
    EXPECT_EQ(s.thief.send(s.thief.to(s.peer), cm::encode(s.message()).data()), IBV_WC_SUCCESS);
    EXPECT_TRUE(s.peer.receive().any) << "what is right gets through";
    EXPECT_FALSE(s.victim.receive().any);
  });
}

/// A work request as its driver would not write it. `header`: in front of the message, as to a tunnel.
struct forged_request {
  std::uint32_t qpn = 0, qkey = pv::own_qkey;
  std::vector<std::uint8_t> header = std::vector<std::uint8_t>(pv::to_tunnel::bytes);
  std::uint32_t bytes = host_driver::mad_bytes;
};

forged_request right_request(const gsi_scene& s) {
  forged_request r;
  r.qpn = s.thief.s.qp->tunnel_qpn;
  const host_driver::address_handle& ah = *s.thief.handle(s.thief.to(s.peer));
  std::copy_n(ah.av, pv::to_tunnel::address_vector, r.header.begin());
  abi::set(r.header.data(), pv::to_tunnel::remote_qpn, 1);
  abi::set(r.header.data(), pv::to_tunnel::qkey, host_driver::gsi_qkey);
  abi::set(r.header.data(), pv::to_tunnel::vlan, pv::to_tunnel::untagged);
  std::copy(ah.mac.begin(), ah.mac.end(), r.header.begin() + pv::to_tunnel::destination_mac);
  return r;
}

/// Written into the ring of the function's proxy, or of another datagram queue pair of it, with the doorbell.
ibv_wc_status post_forged(const gsi_end& by, host_driver::queue_pair& qp, const forged_request& r,
                          const void* message) {
  namespace wqe = abi::wqe;
  std::memcpy(by.outgoing(), message, std::min<std::size_t>(r.bytes, host_driver::mad_bytes));
  const std::uint32_t index = qp.sq.head++;
  qp.sq.wr_ids[index & (qp.sq.count - 1)] = 0;
  std::uint8_t* const entry = qp.send_entry(index);
  std::uint8_t* at = entry + wqe::control::bytes;
  std::memset(at, 0, wqe::datagram::bytes + 64);
  abi::set(at, wqe::datagram::port_pd, static_cast<host_driver::protection_domain*>(by.s.at.pd)->pdn | 1u << 24);
  abi::set(at, wqe::datagram::loopback, 1);
  abi::set(at, wqe::datagram::qpn, r.qpn);
  abi::set(at, wqe::datagram::qkey, r.qkey);
  at += wqe::datagram::bytes;
  abi::store32(at, 0, wqe::inline_data::flag | static_cast<std::uint32_t>(r.header.size()));
  std::copy(r.header.begin(), r.header.end(), at + wqe::inline_data::header);
  at += 64;
  abi::store32(at, 4, by.memory.region->lkey);
  abi::store64(at, 8, by.memory.region->iova + static_cast<std::uint64_t>(by.outgoing() - by.memory.at()));
  abi::store32(at, 0, r.bytes);
  at += wqe::data::bytes;
  abi::store32(entry, 8, wqe::control::cq_update);
  abi::store32(entry, 12, 0);
  abi::store32(entry, 4, static_cast<std::uint32_t>(at - entry) / static_cast<std::uint32_t>(wqe::unit));
  abi::store32(
      entry, 0,
      static_cast<std::uint32_t>(wqe::opcode::send) | ((index & qp.sq.count) != 0 ? wqe::control::owner_bit : 0));
  constexpr std::uint64_t page = std::uint64_t{abi::uar::reserved_pages} << abi::uar::log_page;
  by.s.at.bus->mmio_write32(2, page + abi::uar::send_doorbell, abi::uar::send_doorbell_value(qp.qp_num));
  return by.s.wait_send().status;
}

void expect_dropped(gsi_scene& s, fault why, const std::function<void(forged_request&, cm::mad&)>& change) {
  forged_request r = right_request(s);
  cm::mad m = cm::encode(s.message());
  change(r, m);
  const std::uint64_t before = s.dropped(why);
  EXPECT_EQ(post_forged(s.thief, *s.thief.s.qp, r, m.data()), IBV_WC_SUCCESS) << "it leaves the proxy";
  EXPECT_FALSE(s.anybody_heard());
  EXPECT_EQ(s.dropped(why), before + 1) << to_string(why);
}

TEST(FunctionGsi, AForgedRequestThatIsRightGetsThrough) {
  with_gsi_scene([](gsi_scene& s) {
    EXPECT_EQ(post_forged(s.thief, *s.thief.s.qp, right_request(s), cm::encode(s.message()).data()), IBV_WC_SUCCESS);
    const gsi_end::arrival got = s.peer.receive();
    ASSERT_TRUE(got.any);
    EXPECT_EQ(got.source, s.thief.s.at.mac);
    EXPECT_EQ(got.ends.source, s.thief.s.at.gid);
  });
}

TEST(FunctionGsi, SourceGidsAreOfTheFunctionsWindow) {
  with_gsi_scene([](gsi_scene& s) {
    for (const unsigned index : {55u, 56u, 72u, 127u, 128u, 255u})  // not valid, or beyond its 56 rows
      expect_dropped(s, fault::gid, [index](forged_request& r, cm::mad&) {
        abi::set(r.header.data(), abi::wqe::datagram::gid_index, static_cast<std::uint8_t>(index));
      });
  });
}

/// Who believes a REQ sends its data to the path that it names.
TEST(FunctionGsi, PathsInMessagesAreTheFunctionsOwn) {
  with_gsi_scene([](gsi_scene& s) {
    expect_dropped(s, fault::gid, [&s](forged_request&, cm::mad& m) {
      cm::contents c = s.message();
      c.connection.path.local = s.victim.s.at.gid;
      m = cm::encode(c);
    });
    expect_dropped(s, fault::gid, [&s](forged_request&, cm::mad& m) {
      cm::contents c = s.message();
      c.connection.alternate.local = s.victim.s.at.gid;
      c.connection.alternate.remote = s.peer.s.at.gid;
      m = cm::encode(c);
    });
    expect_dropped(s, fault::gid, [&s](forged_request&, cm::mad& m) {
      cm::contents c;
      c.kind = cm::message::lap;
      c.alternate.local = s.victim.s.at.gid;
      m = cm::encode(c);
    });
  });
}

TEST(FunctionGsi, HeadersOfTheTunnelNameQp1OfTheOwnPort) {
  with_gsi_scene([](gsi_scene& s) {
    expect_dropped(s, fault::header,
                   [](forged_request& r, cm::mad&) { abi::set(r.header.data(), pv::to_tunnel::remote_qpn, 0x123); });
    expect_dropped(s, fault::header, [](forged_request& r, cm::mad&) {
      abi::set(r.header.data(), pv::to_tunnel::qkey, hosts::datagram_qkey);
    });
    expect_dropped(s, fault::header,
                   [](forged_request& r, cm::mad&) { abi::set(r.header.data(), abi::wqe::datagram::port, 2u); });
  });
}

TEST(FunctionGsi, VlansAreThoseThatTheFunctionHasRegistered) {
  with_gsi_scene([](gsi_scene& s) {
    expect_dropped(s, fault::vlan, [](forged_request& r, cm::mad&) {
      abi::set(r.header.data(), pv::to_tunnel::vlan, std::uint16_t{77});
    });
    // The victim's registration is not the thief's.
    host_driver::device& victim = s.victim.s.dev();
    ASSERT_GE(victim.add_address(1, host_driver::ipv4_gid(0x0a000063), host_driver::roce_types::v2, 77), 0);
    command_channel& channel = victim.commands();
    std::uint64_t index = 0;
    ASSERT_EQ(channel.execute({abi::opcode::alloc_res, static_cast<std::uint32_t>(host_driver::resource::vlan) | 1 << 8,
                               abi::res_op::reserve_and_map, 77, 0, &index}),
              0);
    expect_dropped(s, fault::vlan, [](forged_request& r, cm::mad&) {
      abi::set(r.header.data(), pv::to_tunnel::vlan, std::uint16_t{77});
    });
  });
}

TEST(FunctionGsi, WhatIsNoMessageIsDropped) {
  with_gsi_scene([](gsi_scene& s) {
    for (const std::uint32_t bytes : {0u, 4u, 252u, 260u, 1024u})
      expect_dropped(s, fault::length, [bytes](forged_request& r, cm::mad&) {
        r.bytes = bytes != 0 ? bytes : 0x80000000;  // a byte count of zero is 2^31
      });
    expect_dropped(s, fault::length, [](forged_request& r, cm::mad&) { r.header.resize(52); });
    const struct {
      fault why;
      std::size_t at;
      std::vector<std::uint8_t> values;
    } bytes[] = {{fault::version, 0, {0, 2, 255}}, {fault::management, 1, {0, 1, 3, 4, 6, 8, 0x81, 255}},
                 {fault::version, 2, {0, 1, 3}},   {fault::method, 3, {0, 1, 2, 5, 6, 0x81, 0x83}},
                 {fault::attribute, 16, {1, 255}}, {fault::attribute, 17, {0, 1, 0x0f, 0x1b, 255}}};
    for (const auto& b : bytes)
      for (const std::uint8_t value : b.values)
        expect_dropped(s, b.why, [&b, value](forged_request&, cm::mad& m) { m[b.at] = value; });
    // Messages of connections that are none, as a replayed end of another's.
    for (const cm::message what : {cm::message::rtu, cm::message::dreq, cm::message::drep, cm::message::apr})
      expect_dropped(s, fault::connection_id, [what](forged_request&, cm::mad& m) {
        cm::contents c;
        c.kind = what;
        c.local_id = 0x1234;
        m = cm::encode(c);
      });
  });
}

/// Hardware says from which queue pair a datagram comes, and the Q_Key of a proxy opens its own tunnel alone.
TEST(FunctionGsi, ATunnelHearsItsProxyAlone) {
  with_gsi_scene([](gsi_scene& s) {
    const std::uint32_t base = s.victim.s.qp->qp_num - pv::proxy(0, 1, 1);
    const cm::mad m = cm::encode(request_from(s.victim, s.peer));
    const std::uint32_t theirs = pv::qkey(1, 1);
    // From the proxy to the victim's tunnel, and to the physical function's. Bit 31 of any of these keys means that of
    // the context.
    for (const std::uint32_t qpn : {pv::tunnel(base, 1, 1), pv::tunnel(base, 0, 1), pv::proxy(base, 1, 1)})
      for (const std::uint32_t key : {theirs, pv::own_qkey, hosts::datagram_qkey}) {
        forged_request r = right_request(s);
        r.qpn = qpn;
        r.qkey = key;
        const std::uint64_t before = s.at_a("responder.drop.qkey") + s.at_a("responder.drop.no_qp");
        EXPECT_EQ(post_forged(s.thief, *s.thief.s.qp, r, m.data()), IBV_WC_SUCCESS);
        EXPECT_FALSE(s.anybody_heard());
        EXPECT_EQ(s.at_a("responder.drop.qkey") + s.at_a("responder.drop.no_qp"), before + 1) << qpn;
      }
    // From a plain datagram queue pair, which is no special one, to the own tunnel, the victim's, the proxies.
    host_driver::queue_pair* const plain = make_datagram_qp(s.thief.s, hosts::datagram_qkey, 16, 8);
    for (const std::uint32_t qpn : {pv::tunnel(base, 2, 1), pv::tunnel(base, 1, 1), pv::proxy(base, 1, 1)})
      for (const std::uint32_t key : {pv::qkey(2, 1), theirs, pv::own_qkey}) {
        forged_request r = right_request(s);
        r.qpn = qpn;
        r.qkey = key;
        const std::uint64_t before = s.at_a("responder.drop.address");
        EXPECT_EQ(post_forged(s.thief, *plain, r, m.data()), IBV_WC_SUCCESS);
        EXPECT_FALSE(s.anybody_heard());
        EXPECT_EQ(s.at_a("responder.drop.address"), before + 1) << qpn;
      }
    for (const fault f : {fault::source, fault::length, fault::gid}) EXPECT_EQ(s.dropped(f), 0u);
  });
}

/// Controlled Q_Keys are not a function's to have.
TEST(FunctionGsi, ControlledQKeysAreRefused) {
  with_gsi_scene([](gsi_scene& s) {
    host_driver::device& dev = s.thief.s.dev();
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_UD;
    init.send_cq = s.thief.s.send_cq;
    init.recv_cq = s.thief.s.receive_cq;
    init.cap = {4, 4, 1, 1, 0};
    const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    for (const std::uint32_t key :
         {host_driver::gsi_qkey, pv::own_qkey, pv::qkey(1, 1), pv::qkey(2, 1), std::uint32_t{0xffffffff}}) {
      host_driver::queue_pair* const qp = dev.create_qp(s.thief.s.at.pd, &init);
      ASSERT_NE(qp, nullptr);
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_INIT;
      attr.port_num = 1;
      attr.qkey = key;
      EXPECT_NE(dev.modify_qp(qp, &attr, mask), 0) << std::hex << key;
      // Nor later.
      attr.qkey = hosts::datagram_qkey;
      ASSERT_EQ(dev.modify_qp(qp, &attr, mask), 0);
      attr.qkey = key;
      EXPECT_NE(dev.modify_qp(qp, &attr, IBV_QP_QKEY), 0) << std::hex << key;
      EXPECT_EQ(dev.destroy_qp(qp), 0);
    }
    // The physical function's programs may not have those of tunnels.
    host_driver::queue_pair* const qp = make_datagram_qp(s.peer.s, hosts::datagram_qkey, 4, 1);
    ibv_qp_attr attr{};
    attr.qkey = pv::qkey(2, 1);
    EXPECT_EQ(s.peer.s.dev().modify_qp(qp, &attr, IBV_QP_QKEY), -EINVAL);
  });
}

/// A queue pair that did would take whatever comes from inside, from whomever.
TEST(FunctionGsi, OtherQueuePairsDoNotWorkInsideThePort) {
  with_gsi_scene([](gsi_scene& s) {
    namespace p = abi::path;
    host_driver::device& dev = s.thief.s.dev();
    command_channel& channel = dev.commands();
    for (const std::uint8_t service : {std::uint8_t{3}, std::uint8_t{7}, std::uint8_t{0}}) {  // what it says that it is
      ibv_qp_init_attr init{};
      init.qp_type = IBV_QPT_UD;
      init.send_cq = s.thief.s.send_cq;
      init.recv_cq = s.thief.s.receive_cq;
      init.cap = {4, 4, 1, 1, 0};
      host_driver::queue_pair* const qp = dev.create_qp(s.thief.s.at.pd, &init);
      ASSERT_NE(qp, nullptr);
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_INIT;
      attr.port_num = 1;
      attr.qkey = hosts::datagram_qkey;
      ASSERT_EQ(dev.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
      command_channel::mailbox box(channel), found(channel);
      std::uint8_t* const c = box.data() + abi::qp_mailbox::context;
      std::uint8_t* const path = c + abi::qpc::primary_path;
      abi::set(c, abi::qpc::service, service);
      abi::set(path, p::fl, p::fl_loopback);
      abi::set(path, p::grh, 1);
      abi::set(path, p::link_type, p::link_ethernet);
      abi::set(path, p::mac_index, static_cast<std::uint8_t>(dev.port(1).mac_index));
      abi::set(path, p::sched_queue, std::uint8_t{0x83});
      ASSERT_EQ(channel.write(box, abi::opcode::init2rtr_qp, qp->qp_num), 0);
      ASSERT_EQ(channel.read(found, abi::opcode::query_qp, qp->qp_num), 0);
      const std::uint8_t* const got = found.data() + abi::qp_mailbox::context + abi::qpc::primary_path;
      EXPECT_EQ(abi::get(got, p::fl) & p::fl_loopback, 0) << unsigned{service};
    }
  });
}

/// QP1 of the wire: by its number in the adapter, and by 1.
TEST(FunctionGsi, Qp1OfTheWireIsNotReachedFromAPlainQueuePair) {
  with_gsi_scene([](gsi_scene& s) {
    const std::uint32_t base = s.victim.s.qp->qp_num - pv::proxy(0, 1, 1);
    host_driver::queue_pair* const plain = make_datagram_qp(s.thief.s, hosts::datagram_qkey, 16, 8);
    const cm::mad m = cm::encode(s.message());
    const auto heard = [&s] {
      std::uint64_t all = s.system.node_a().master().mads().counts().to_functions;
      for (const std::uint64_t n : s.system.node_a().master().mads().counts().from_wire) all += n;
      return all;
    };
    for (const std::uint32_t qpn : {1u, base + 2, base + 3})
      for (const std::uint32_t key : {host_driver::gsi_qkey, hosts::datagram_qkey}) {
        forged_request r;
        r.qpn = qpn;
        r.qkey = key;
        r.header.clear();
        const std::uint64_t before = heard();
        EXPECT_EQ(post_forged(s.thief, *plain, r, m.data()), IBV_WC_SUCCESS);
        EXPECT_FALSE(s.anybody_heard());
        EXPECT_EQ(heard(), before) << qpn;
      }
  });
}

/// From the wire neither proxies nor tunnels can be reached, with the right Q_Key either.
TEST(FunctionGsi, TunnelsAreInsideThePort) {
  with_gsi_scene([](gsi_scene& s) {
    const std::uint32_t base = s.victim.s.qp->qp_num - pv::proxy(0, 1, 1);
    side from = s.peer.s;
    from.qp = make_datagram_qp(s.peer.s, hosts::datagram_qkey, 16, 1);
    const auto change_key = [&](std::uint32_t key) {  // as the driver would not
      command_channel& channel = from.dev().commands();
      command_channel::mailbox box(channel);
      abi::set(box.data(), abi::qp_mailbox::optional, abi::qp_mailbox::opt_qkey);
      abi::set(box.data() + abi::qp_mailbox::context, abi::qpc::qkey, key);
      ASSERT_EQ(channel.write(box, abi::opcode::rts2rts_qp, from.qp->qp_num), 0);
    };
    for (const auto& [qpn, key] :
         {std::pair{pv::tunnel(base, 1, 1), pv::qkey(1, 1)}, std::pair{pv::proxy(base, 1, 1), pv::qkey(1, 1)},
          std::pair{pv::tunnel(base, 2, 1), pv::qkey(2, 1)}}) {
      change_key(key);
      const std::uint64_t before = s.at_a("responder.drop.address");
      ibv_sge sge{s.peer.memory.address(), 312, s.peer.memory.region->lkey};
      ibv_send_wr wr{}, *bad = nullptr;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.opcode = IBV_WR_SEND;
      wr.send_flags = IBV_SEND_SIGNALED;
      wr.wr.ud = {s.peer.handle(s.peer.to(s.victim)), qpn, pv::own_qkey};
      ASSERT_EQ(from.dev().post_send(from.qp, &wr, &bad), 0);
      EXPECT_EQ(from.wait_send().status, IBV_WC_SUCCESS);
      EXPECT_FALSE(s.anybody_heard());
      EXPECT_EQ(s.at_a("responder.drop.address"), before + 1) << qpn;
    }
  });
}

/// The address of a message decides who gets it, and its number must be one of that function's connections.
TEST(FunctionGsi, MessagesOfOthersAreNotHeard) {
  with_gsi_scene([](gsi_scene& s) {
    EXPECT_EQ(s.victim.send(s.victim.to(s.peer), cm::encode(request_from(s.victim, s.peer)).data()), IBV_WC_SUCCESS);
    const gsi_end::arrival request = s.peer.receive();
    ASSERT_TRUE(request.any);
    cm::contents answer;
    answer.kind = cm::message::rep;
    answer.local_id = 5;
    answer.remote_id = cm::decode(request.message.data(), request.message.size())->local_id;
    EXPECT_EQ(s.peer.send(s.peer.to(s.thief), cm::encode(answer).data()), IBV_WC_SUCCESS);
    EXPECT_FALSE(s.anybody_heard());
    EXPECT_EQ(s.dropped_arrivals(fault::connection_id), 1u) << "to the thief's address, of the victim's connection";
    answer.remote_id += 1000;
    EXPECT_EQ(s.peer.send(s.peer.to(s.victim), cm::encode(answer).data()), IBV_WC_SUCCESS);
    EXPECT_FALSE(s.anybody_heard());
    EXPECT_EQ(s.dropped_arrivals(fault::connection_id), 2u) << "of no connection";
    answer.remote_id -= 1000;
    EXPECT_EQ(s.peer.send(s.peer.to(s.victim), cm::encode(answer).data()), IBV_WC_SUCCESS);
    EXPECT_FALSE(s.thief.receive().any);
    const gsi_end::arrival got = s.victim.receive();
    ASSERT_TRUE(got.any);
    EXPECT_EQ(cm::decode(got.message.data(), got.message.size())->remote_id, 9u) << "its own number again";
    // What is no message of the communication manager is for nobody.
    cm::mad other = cm::encode(answer);
    other[1] = 4;
    EXPECT_EQ(s.peer.send(s.peer.to(s.victim), other.data()), IBV_WC_SUCCESS);
    EXPECT_FALSE(s.anybody_heard());
    EXPECT_EQ(s.system.node_b().master().mads().counts().from_function[static_cast<std::size_t>(fault::management)],
              1u);
  });
}

/// Commands that name special queue pairs: a function's own QP1 is what they get, as it is meant.
TEST(FunctionGsi, CommandsReachTheOwnProxyAlone) {
  with_gsi_scene([](gsi_scene& s) {
    using abi::opcode;
    using host_driver::resource;
    host_driver::device& dev = s.thief.s.dev();
    command_channel& channel = dev.commands();
    const std::uint32_t own = s.thief.s.qp->qp_num, base = own - pv::proxy(0, 2, 1);
    {
      command_channel::mailbox box(channel);
      ASSERT_EQ(channel.read(box, opcode::query_func_cap, 1, 1), 0);
      EXPECT_EQ(abi::get(box.data(), pv::qp1_proxy), own);
      EXPECT_EQ(abi::get(box.data(), pv::qp0_proxy), own - 2);
      EXPECT_EQ(abi::get(box.data(), pv::qp1_tunnel), pv::tunnel(base, 2, 1));
      EXPECT_EQ(abi::get(box.data(), pv::qp0_tunnel), pv::tunnel(base, 2, 1) - 2);
    }
    command_channel::mailbox box(channel);
    for (const std::uint32_t qpn :
         {s.victim.s.qp->qp_num, pv::tunnel(base, 2, 1), pv::proxy(base, 0, 1), base + 2, own - 2, own + 2}) {
      EXPECT_NE(channel.command(opcode::alloc_res, 0, abi::res_op::map, qpn), 0) << qpn;
      EXPECT_NE(channel.command(opcode::to_rst_qp, qpn, 2), 0) << qpn;
      EXPECT_NE(channel.write(box, opcode::rst2init_qp, qpn), 0) << qpn;
      EXPECT_EQ(dev.create_gsi(s.thief.s.at.pd, nullptr, 3), nullptr);
    }
    EXPECT_NE(channel.command(opcode::alloc_res, 0, abi::res_op::map, own), 0) << "it has it";
    EXPECT_NE(channel.command(opcode::free_res, 0, abi::res_op::map, own), 0) << "it is at work";
    // Its Q_Key stays what it is, whatever is asked for.
    abi::set(box.data(), abi::qp_mailbox::optional, abi::qp_mailbox::opt_qkey);
    std::uint8_t* const c = box.data() + abi::qp_mailbox::context;
    abi::set(c, abi::qpc::service, 3);
    abi::set(c, abi::qpc::qkey, pv::qkey(1, 1));
    EXPECT_EQ(channel.write(box, opcode::rts2rts_qp, own), 0);
    command_channel::mailbox found(channel);
    ASSERT_EQ(channel.read(found, opcode::query_qp, own), 0);
    EXPECT_EQ(abi::get(found.data() + abi::qp_mailbox::context, abi::qpc::qkey), pv::qkey(2, 1));
    abi::set(c, abi::qpc::service, 0);
    EXPECT_EQ(channel.write(box, opcode::rts2rts_qp, own), 0) << "a word without meaning";
    ASSERT_EQ(channel.read(found, opcode::query_qp, own), 0);
    EXPECT_EQ(abi::get(found.data() + abi::qp_mailbox::context, abi::qpc::service), abi::qpc::service_ud);
    EXPECT_EQ(abi::get(found.data() + abi::qp_mailbox::context, abi::qpc::qkey), pv::qkey(2, 1));
  });
}

/// A function that floods its tunnel does not stop others.
TEST(FunctionGsi, AFloodIsTheFunctionsOwnProblem) {
  hosts::two_nodes_config c = shared_cards(2);
  c.node.driver.function_mad_buffers = 16;
  hosts::two_nodes system(c);
  run(system, [&] {
    gsi_scene s(system);
    const cm::mad m = cm::encode(s.message());
    for (unsigned i = 0; i < 200; ++i) s.thief.send(s.thief.to(s.peer), m.data());
    EXPECT_EQ(s.victim.send(s.victim.to(s.peer), cm::encode(request_from(s.victim, s.peer)).data()), IBV_WC_SUCCESS);
    bool heard = false;
    for (gsi_end::arrival a = s.peer.receive(); a.any; a = s.peer.receive())
      heard = heard || a.ends.source == s.victim.s.at.gid;
    EXPECT_TRUE(heard);
    EXPECT_TRUE(s.victim.s.at.bus->now_ps() > 0);
  });
}

TEST(FunctionGsi, AFunctionWithoutRoceHasNone) {
  hosts::two_nodes_config c = shared_cards(1);
  c.node.function_settings.resize(1);
  c.node.function_settings[0].roce = false;
  hosts::two_nodes system(c);
  run(system, [&] {
    host_driver::device& dev = system.node_a().device(1);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = dev.create_cq(8);
    init.cap = {4, 4, 1, 1, 0};
    EXPECT_EQ(dev.create_gsi(dev.alloc_pd(), &init, 1), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  });
}

}  // namespace
}  // namespace rnic::system_test
