// SPDX-License-Identifier: Apache-2.0
// Programs and peers that try what they may not.
#include <gtest/gtest.h>

#include <random>

#include "model/abi/bar_layout.h"
#include "model/abi/command_set.h"
#include "model/abi/contexts.h"
#include "model/abi/queue_entries.h"
#include "testbenches/system/ethernet/station.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

template <class Body>
void with_stations(Body body) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    station a(system.a()), b(system.b());
    b.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    b.post_receives(16);
    body(system, a, b);
  });
}

ibv_send_wr request_for(ibv_sge& sge) {
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  return wr;
}

/// The queue pair is in error and gives back what is posted, others are not hurt.
void expect_stopped(station& s) {
  EXPECT_EQ(s.state(), IBV_QPS_ERR);
  s.send(frames::udp4);
  EXPECT_EQ(s.wait_sent().status, IBV_WC_WR_FLUSH_ERR);
}

TEST(EthernetHostile, SendWithForeignKeys) {
  with_stations([](hosts::two_nodes& system, station& a, station& b) {
    station other(system.a()), third(system.a()), fourth(system.a()), fifth(system.a());
    hosts::endpoint elsewhere = system.a();
    elsewhere.pd = elsewhere.device->alloc_pd();
    const hosts::buffer secret = hosts::make_buffer(elsewhere, 4096);
    ibv_sge sge{secret.address(), 100, secret.region->lkey};
    ibv_send_wr wr = request_for(sge);
    ASSERT_EQ(a.post(wr), 0);
    EXPECT_EQ(a.wait_sent().status, IBV_WC_LOC_PROT_ERR);  // a key of another protection domain
    expect_stopped(a);
    sge = {other.send_buffer().address(), 100, 0x12345};
    ASSERT_EQ(other.post(wr), 0);
    EXPECT_EQ(other.wait_sent().status, IBV_WC_LOC_PROT_ERR);
    sge = {third.send_buffer().address(16 * 16384 - 50), 100, third.send_buffer().region->lkey};
    ASSERT_EQ(third.post(wr), 0);
    EXPECT_EQ(third.wait_sent().status, IBV_WC_LOC_PROT_ERR);  // beyond the end
    sge = {~std::uint64_t{2}, 100, fifth.send_buffer().region->lkey};
    ASSERT_EQ(fifth.post(wr), 0);
    EXPECT_EQ(fifth.wait_sent().status, IBV_WC_LOC_PROT_ERR);  // round the end of the address space
    EXPECT_TRUE(b.silent());
    fourth.send(frames::tcp4);
    EXPECT_EQ(b.receive().frame, frames::tcp4);
  });
}

TEST(EthernetHostile, ReceiveWithForeignKeys) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    station a(system.a()), b(system.b());
    b.steer(frames_destination);
    hosts::endpoint elsewhere = system.b();
    elsewhere.pd = elsewhere.device->alloc_pd();
    const hosts::buffer secret = hosts::make_buffer(elsewhere, 4096);
    std::fill_n(secret.at(), 4096, std::uint8_t{0x77});
    ibv_sge sge{secret.address(), 4096, secret.region->lkey};
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ASSERT_EQ(b.dev().post_recv(b.qp(), &wr, &bad), 0);
    a.send(frames::udp4);
    EXPECT_EQ(b.receive().wc.status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(b.state(), IBV_QPS_ERR);
    for (unsigned i = 0; i < 4096; ++i) ASSERT_EQ(secret.at()[i], 0x77);
  });
}

TEST(EthernetHostile, FramesLongerThanTheReceive) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    station::options o;
    o.receive_bytes = 300;
    station a(system.a()), b(system.b(), o);
    b.steer(frames_destination);
    b.post_receives(3);
    a.send(frames::udp6);
    EXPECT_EQ(b.receive().frame, frames::udp6);
    a.send(frames::tcp4);  // 831 bytes
    EXPECT_EQ(b.receive().wc.status, IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(b.state(), IBV_QPS_ERR);
    EXPECT_EQ(b.receive().wc.status, IBV_WC_WR_FLUSH_ERR);
  });
}

TEST(EthernetHostile, OperationsThatAreNotFrames) {
  with_stations([](hosts::two_nodes& system, station&, station& b) {
    // What the shim refuses to post is written by hand.
    const std::uint8_t opcodes[] = {0x01, 0x08, 0x09, 0x0b, 0x10, 0x11, 0x12, 0x14, 0x18, 0x19, 0x1b, 0x1f, 0x05};
    for (const std::uint8_t opcode : opcodes) {
      station a(system.a());
      ibv_sge sge{a.send_buffer().address(), 100, a.send_buffer().region->lkey};
      ibv_send_wr wr = request_for(sge);
      wr.opcode = IBV_WR_RDMA_WRITE;
      EXPECT_EQ(a.post(wr), -EINVAL);
      host_driver::queue_pair& qp = *a.qp();
      std::uint8_t* entry = qp.send_entry(0);
      abi::store32(entry, 4, 4);
      abi::store32(entry, 8, abi::wqe::control::cq_update | abi::wqe::control::solicited);
      abi::store32(entry, 16, 100);
      abi::store32(entry, 20, a.send_buffer().region->lkey);
      abi::store64(entry, 24, a.send_buffer().address());
      abi::store32(entry, 0, opcode);
      ++qp.sq.head;
      ibv_send_wr next = request_for(sge);
      ASSERT_EQ(a.post(next), 0);
      EXPECT_EQ(a.wait_sent().status, IBV_WC_LOC_QP_OP_ERR) << unsigned{opcode};
      EXPECT_EQ(a.wait_sent().status, IBV_WC_WR_FLUSH_ERR);
    }
    EXPECT_TRUE(b.silent());
  });
}

TEST(EthernetHostile, BrokenSegmentation) {
  with_stations([](hosts::two_nodes& system, station&, station& b) {
    struct {
      std::uint16_t mss, header;
    } const cases[] = {{0, 66}, {1000, 0}, {1000, 13}, {1000, 0xffff}, {1000, 400}, {9000, 66}};
    for (const auto& c : cases) {
      station a(system.a());
      host_driver::queue_pair& qp = *a.qp();
      std::uint8_t* entry = qp.send_entry(0);
      std::copy(frames::lso4_header.begin(), frames::lso4_header.end(), entry + 20);
      abi::store32(entry, 16, std::uint32_t{c.mss} << 16 | c.header);
      const unsigned at = 16 + 80;
      abi::store32(entry, at, 8000);
      abi::store32(entry, at + 4, a.send_buffer().region->lkey);
      abi::store64(entry, at + 8, a.send_buffer().address());
      abi::store32(entry, 4, (at + 16) / 16);
      abi::store32(entry, 8, abi::wqe::control::cq_update | abi::wqe::control::solicited);
      abi::store32(entry, 0, 0x0e | abi::wqe::control::long_header);
      ++qp.sq.head;
      a.send(frames::udp4);
      const ibv_wc_status status = a.wait_sent().status;
      EXPECT_TRUE(status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_LOC_LEN_ERR) << c.mss << " " << c.header;
      EXPECT_EQ(a.wait_sent().status, IBV_WC_WR_FLUSH_ERR);
    }
    EXPECT_TRUE(b.silent());
  });
}

TEST(EthernetHostile, SegmentationOfWhatIsNotTcp) {
  with_stations([](hosts::two_nodes&, station& a, station& b) {
    // Nothing to complete: the packets leave with the header as it was given.
    a.send_segmented(bytes(frames::arp.begin(), frames::arp.begin() + 42), bytes(150, 3), 100);
    EXPECT_EQ(a.wait_sent().status, IBV_WC_SUCCESS);
    EXPECT_EQ(b.receive().frame.size(), 142u);
    EXPECT_EQ(b.receive().frame.size(), 92u);
  });
}

TEST(EthernetHostile, RandomRequestsStopNothingElse) {
  std::mt19937_64 random(5);
  with_stations([&](hosts::two_nodes& system, station&, station& b) {
    for (unsigned round = 0; round < 60; ++round) {
      station a(system.a());
      host_driver::queue_pair& qp = *a.qp();
      std::uint8_t* entry = qp.send_entry(0);
      for (unsigned i = 4; i < 1u << qp.sq.log_stride; ++i) entry[i] = static_cast<std::uint8_t>(random());
      abi::store32(entry, 0, (random() & 1) != 0 ? 0x0a : 0x0e);
      entry[7] = static_cast<std::uint8_t>(random() % ((1u << qp.sq.log_stride) / 16 + 1));
      ++qp.sq.head;
      ibv_sge sge{a.send_buffer().address(), 60, a.send_buffer().region->lkey};
      ibv_send_wr wr = request_for(sge);
      a.post(wr);
      a.at().bus->spend_ps(5 * station_us);
      EXPECT_EQ(a.dev().destroy_qp(a.qp()), 0);
    }
    while (!b.silent()) {
    }
    station good(system.a()), fresh(system.b());
    fresh.steer(frames_destination);
    fresh.post_receives(1);
    good.send(frames::tcp4);
    EXPECT_EQ(good.wait_sent().status, IBV_WC_SUCCESS);
    EXPECT_EQ(fresh.receive().frame, frames::tcp4);
  });
}

TEST(EthernetHostile, SourceAddressOfAnother) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    station::options o;
    o.ethernet.feup = abi::path::feup_force_smac;
    station a(system.a(), o), b(system.b());
    b.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    b.post_receives(2);
    a.send(frames::udp4);
    EXPECT_EQ(a.wait_sent().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(b.silent());
    EXPECT_EQ(tally(system, "a.adapter.requester.ethernet_blocked"), 1u);
    bytes own = frames::udp4;
    const auto& mac = a.dev().port(1).mac;
    std::copy(mac.begin(), mac.end(), own.begin() + 6);
    a.send(own);
    EXPECT_EQ(b.receive().frame, own);
  });
}

TEST(EthernetHostile, VlansOfAnother) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    namespace p = abi::path;
    station::options o;
    o.ethernet.vlan_control = p::block_tx_tagged | p::block_rx_untagged | p::block_rx_priority;
    station a(system.a(), o), b(system.b());
    b.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    b.post_receives(4);
    a.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    a.post_receives(4);
    a.send(frames::udp4_ctag);
    send_options tag;
    tag.flags = IBV_SEND_SIGNALED | host_driver::send_insert_ctag;
    tag.tci = 100;
    a.send(frames::udp4, tag);
    EXPECT_TRUE(b.silent());
    EXPECT_EQ(tally(system, "a.adapter.requester.ethernet_blocked"), 2u);
    a.send(frames::udp4_ctag0);
    EXPECT_EQ(b.receive().frame, frames::udp4_ctag0);
    b.send(frames::udp4);
    b.send(frames::udp4_ctag0);
    EXPECT_TRUE(a.silent());
    EXPECT_EQ(tally(system, "a.adapter.responder.drop.ethernet_vlan"), 2u);
    b.send(frames::udp4_ctag);
    EXPECT_EQ(a.receive().frame, frames::udp4_ctag);
  });
}

TEST(EthernetHostile, AForcedVlan) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    // A function in VLAN 100: its frames get the tag, and it gets those of this VLAN only.
    system.a().device->add_address(1, {0xfd, 1}, host_driver::roce_types::v2, 100);
    station::options o;
    o.ethernet.priority = 5;
    o.ethernet.feup = abi::path::feup_force_vlan | abi::path::feup_force_up;
    o.ethernet.fvl_rx = abi::path::fvl_rx_enforce;
    o.ethernet.vlan_index = 2;
    o.ethernet.strip_vlan = true;
    o.ethernet.fl = abi::path::fl_hide_vlan;
    station a(system.a(), o), b(system.b());
    b.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    b.post_receives(4);
    a.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    a.post_receives(4);
    a.send(frames::udp4);
    EXPECT_EQ(b.receive().frame, frames::udp4_ctag);
    b.send(frames::udp4_ctag200);
    b.send(frames::udp4);
    EXPECT_TRUE(a.silent());
    b.send(frames::udp4_ctag);
    const arrival got = a.receive();
    EXPECT_EQ(got.frame, frames::udp4);
    EXPECT_FALSE(got.plain.ctag);  // hidden from the function
  });
}

TEST(EthernetHostile, RocePacketsToTheNumberOfARing) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    station ring(system.b());
    ring.post_receives(4);
    ring.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    hosts::connection_options options;
    options.ack_timeout = 8;
    options.retries = 1;
    link l = make_link(system, options);
    side s = l.a;
    s.qp = hosts::make_qp(s.at, options, *s.send_cq, *s.receive_cq);
    hosts::connect(s.at, options, *s.qp, l.b.at, ring.qp()->qp_num, 5, 6);
    const hosts::buffer from = hosts::make_buffer(s.at, 64);
    request r;
    r.opcode = IBV_WR_SEND;
    r.sges = {{from.address(), 64, from.region->lkey}};
    post(s, r);
    EXPECT_EQ(s.wait_send().status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_TRUE(ring.silent());
    EXPECT_EQ(ring.state(), IBV_QPS_RTS);
    EXPECT_GT(tally(system, "b.adapter.responder.drop.service"), 0u);
  });
}

TEST(EthernetHostile, PlainFramesSteeredToAConnection) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    const link l = make_link(system, {});
    station a(system.a());
    EXPECT_EQ(l.b.dev().create_flow(l.b.qp, nullptr), nullptr);  // the shim refuses; a driver's bug need not
    auto& commands = l.b.dev().commands();
    namespace mcg = abi::mcg;
    host_driver::command_channel::mailbox box(commands);
    abi::store32(box.data(), mcg::members, l.b.qp->qp_num);
    abi::store32(box.data(), mcg::members + 4, 0);         // no queue pair has this number,
    abi::store32(box.data(), mcg::members + 8, 0xffffff);  // nor this one
    abi::set(box.data(), mcg::member_count, 3);
    abi::set(box.data(), mcg::protocol, mcg::protocol_ethernet);
    ASSERT_EQ(commands.write(box, abi::opcode::write_mcg, 1u << mcg::default_port_shift | 2, 1), 0);
    a.send(frames::udp4);
    EXPECT_EQ(a.wait_sent().status, IBV_WC_SUCCESS);
    l.b.at.bus->spend_ps(10 * station_us);
    EXPECT_TRUE(l.b.silent());
    EXPECT_EQ(tally(system, "b.adapter.responder.drop.service"), 1u);
    EXPECT_EQ(tally(system, "b.adapter.responder.drop.no_qp"), 2u);
    expect_works(l);
  });
}

TEST(EthernetHostile, ASpreaderThatPointsToItself) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    station a(system.a()), b(system.b());
    b.post_receives(2);
    host_driver::spreading how;
    how.targets = {b.qp()};
    host_driver::queue_pair* first = b.dev().create_rss_qp(b.at().pd, how);
    ASSERT_NE(first, nullptr);
    how.otherwise = first;  // a spreader behind a spreader
    how.fields = 0;
    host_driver::queue_pair* second = b.dev().create_rss_qp(b.at().pd, how);
    ASSERT_NE(second, nullptr);
    b.steer(frames_destination, second);
    a.send(frames::udp4);
    EXPECT_EQ(a.wait_sent().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(b.silent());
    EXPECT_EQ(tally(system, "b.adapter.responder.drop.service"), 1u);
    b.steer({2, 0, 0, 0, 0x0b, 2}, first);
    a.send(with_destination(frames::udp4, {2, 0, 0, 0, 0x0b, 2}));
    EXPECT_EQ(b.receive().wc.status, IBV_WC_SUCCESS);
  });
}

TEST(EthernetHostile, ErrorAndResetOfRingAndSpreader) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    station a(system.a()), b(system.b());
    b.post_receives(3);
    b.steer(frames_destination);
    host_driver::spreading how;
    how.targets = {b.qp()};
    how.key.fill(0xff);  // would be addresses and sizes if it was taken for a queue
    host_driver::queue_pair* spreader = b.dev().create_rss_qp(b.at().pd, how);
    ASSERT_NE(spreader, nullptr);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(b.dev().modify_qp(spreader, &attr, IBV_QP_STATE), 0);
    ASSERT_EQ(b.dev().modify_qp(b.qp(), &attr, IBV_QP_STATE), 0);
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(b.receive().wc.status, IBV_WC_WR_FLUSH_ERR);
    a.send(frames::udp4);
    EXPECT_TRUE(b.silent());
    attr.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(b.dev().modify_qp(b.qp(), &attr, IBV_QP_STATE), 0);
    b.to_rts();
    b.post_receives(1);
    a.send(frames::udp4);
    EXPECT_EQ(b.receive().frame, frames::udp4);
  });
}

TEST(EthernetHostile, DeviceResetUnderTraffic) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    station a(system.a());
    {
      station b(system.b());
      b.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
      b.post_receives(16);
      for (unsigned i = 0; i < 10; ++i) a.send(frames::tcp4);
      ASSERT_EQ(b.dev().reset(), 0);
    }
    ASSERT_EQ(system.b().device->open(), 0);
    system.b().pd = nullptr;
    station b(system.b());
    b.post_receives(4);
    a.send(frames::udp4);
    EXPECT_TRUE(b.silent());  // nothing of the rules is left
    b.steer(frames_destination);
    a.send(frames::udp6);
    EXPECT_EQ(b.receive().frame, frames::udp6);
  });
}

}  // namespace
}  // namespace rnic::system_test
