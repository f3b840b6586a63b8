// SPDX-License-Identifier: Apache-2.0
// What the requester sends for what software posts.
#include <gtest/gtest.h>

#include <cstring>

#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
using wire::operation;

std::uint8_t rc(operation o) { return wire::make_opcode(wire::transport::rc, o); }

TEST(requester, send_of_the_reference_example) {
  bench::bench b;
  b.post_send(16);
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 1u);
  const wire::packet p = b.sent(0);
  EXPECT_EQ(p.bth.opcode, rc(operation::send_only));
  EXPECT_EQ(p.bth.dest_qp, bench::remote_qpn);
  EXPECT_EQ(p.bth.psn.value(), 0xfffffeu);
  EXPECT_EQ(p.bth.pkey, 0xffff);
  EXPECT_TRUE(p.bth.ack_request);
  EXPECT_FALSE(p.bth.solicited);
  EXPECT_EQ(p.dmac, (wire::mac_address{2, 9, 8, 7, 6, 5}));
  EXPECT_EQ(p.smac, (wire::mac_address{2, 2, 3, 4, 5, 6}));
  EXPECT_EQ(p.encap, wire::encapsulation::roce_v2_ipv4);
  EXPECT_EQ(p.udp_source, 0xc001);
  EXPECT_EQ(p.udp_dest, 4791);
  EXPECT_EQ(p.hop_limit, 63);
  EXPECT_EQ(p.traffic_class, 0x68);
  EXPECT_FALSE(p.vlan_present);
  EXPECT_EQ(b.payload(0),
            std::vector<std::uint8_t>(b.w.memory.begin() + bench::data, b.w.memory.begin() + bench::data + 16));
  EXPECT_TRUE(b.w.sent[0].second->insert_icrc);
  EXPECT_TRUE(b.w.cqes.empty());
  b.ack(0xfffffe);
  b.run_ns(1000);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.cqn, 0x85u);
  EXPECT_EQ(b.w.cqes[0].second.qpn, bench::qpn);
  EXPECT_EQ(b.w.cqes[0].second.opcode, 0x4a);
  EXPECT_EQ(b.w.cqes[0].second.wqe_index, 0);
}

TEST(requester, vlan_tag_carries_priority_and_v1_has_a_grh) {
  bench::setup s;
  s.vlan = true;
  s.v2 = false;
  bench::bench b(s);
  b.post_send(3);
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 1u);
  const wire::packet p = b.sent(0);
  EXPECT_TRUE(p.vlan_present);
  EXPECT_EQ(p.vlan_tci, 3 << 13 | 77);
  EXPECT_EQ(p.encap, wire::encapsulation::roce_v1);
  EXPECT_EQ(p.flow_label, 0x12345u);
  EXPECT_EQ(p.bth.pad, 1);
  EXPECT_EQ(b.w.sent[0].second->priority, 3);
}

TEST(requester, write_of_2500_bytes_is_three_packets_with_one_reth) {
  bench::bench b;
  b.post_write(2500);
  b.ring_doorbell();
  b.run_ns(4000);
  ASSERT_EQ(b.w.sent.size(), 3u);
  EXPECT_EQ(b.sent(0).bth.opcode, rc(operation::write_first));
  EXPECT_EQ(b.sent(1).bth.opcode, rc(operation::write_middle));
  EXPECT_EQ(b.sent(2).bth.opcode, rc(operation::write_last));
  EXPECT_EQ(b.sent(0).reth.va, 0x7f0000005000u);
  EXPECT_EQ(b.sent(0).reth.rkey, 0xabcdu);
  EXPECT_EQ(b.sent(0).reth.length, 2500u);
  EXPECT_FALSE(b.sent(0).bth.ack_request);
  EXPECT_TRUE(b.sent(2).bth.ack_request);
  EXPECT_EQ(b.sent(2).bth.psn.value(), 0u);  // 0xfffffe, 0xffffff, 0
  std::vector<std::uint8_t> all;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto part = b.payload(i);
    all.insert(all.end(), part.begin(), part.end());
  }
  ASSERT_EQ(all.size(), 2500u);
  EXPECT_EQ(std::memcmp(all.data(), b.w.memory.data() + bench::data, 2500), 0);
}

TEST(requester, zero_lengths_are_one_packet) {
  bench::bench b;
  b.post({0x0a, 1, 0xc, 0});
  b.post({0x0a, 2, 0xc, 0, 0x80000000, 0, 0, 0});
  b.post({0x0a, 2, 0xc, 0, 0, bench::bad_key, 0, 0});  // byte_count 0: nothing to read, no key to check
  b.ring_doorbell();
  b.run_ns(4000);
  ASSERT_EQ(b.w.sent.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(b.sent(i).payload_length, 0u);
  EXPECT_EQ(b.sent(2).bth.psn.value(), 0u);
}

TEST(requester, inline_segments_stay_inside_64_byte_lines) {
  bench::bench b;
  // ctrl, raddr, inline of 28 to the end of the line, inline of 5 at the start of the next: 5 units of 16.
  std::vector<std::uint32_t> wqe = {0x08, 5, 0xc, 0, 0, 0x5000, 0xabcd, 0, 0x8000001c};
  for (std::uint32_t i = 0; i < 7; ++i) wqe.push_back(0x01010101 * (i + 1));
  wqe.push_back(0x80000005);
  wqe.push_back(0xaabbccdd);
  wqe.push_back(0xee000000);
  wqe.push_back(0);
  b.post(wqe);
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 1u);
  const auto bytes = b.payload(0);
  ASSERT_EQ(bytes.size(), 33u);
  EXPECT_EQ(bytes[0], 1);
  EXPECT_EQ(bytes[27], 7);
  EXPECT_EQ(bytes[28], 0xaa);
  EXPECT_EQ(bytes[32], 0xee);
  b.ack(0xfffffe);
  b.run_ns(1000);
  b.post_send(8);  // continues two strides later
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 2u);
  b.ack(0xffffff);
  b.run_ns(1000);
  ASSERT_EQ(b.w.cqes.size(), 2u);
  EXPECT_EQ(b.w.cqes[1].second.wqe_index, 2);
}

TEST(requester, scatter_gather_across_pages_and_segments) {
  bench::bench b;
  const std::uint64_t at = bench::data + 4096 - 100;
  b.post({0x0a, 3, 0xc, 0, 300, bench::good_key, 0, static_cast<std::uint32_t>(at), 900, bench::good_key, 0,
          bench::data + 0x4000});
  b.ring_doorbell();
  b.run_ns(4000);
  ASSERT_EQ(b.w.sent.size(), 2u);
  std::vector<std::uint8_t> all = b.payload(0);
  const auto rest = b.payload(1);
  all.insert(all.end(), rest.begin(), rest.end());
  ASSERT_EQ(all.size(), 1200u);
  EXPECT_EQ(std::memcmp(all.data(), b.w.memory.data() + at, 300), 0);
  EXPECT_EQ(std::memcmp(all.data() + 300, b.w.memory.data() + bench::data + 0x4000, 900), 0);
}

TEST(requester, many_laps_of_the_ring_in_order) {
  bench::bench b;
  std::uint32_t psn = 0xfffffe;
  for (int lap = 0; lap < 9; ++lap) {
    for (int i = 0; i < 7; ++i) b.post_send(64);
    b.ring_doorbell();
    b.run_ns(5000);
    psn = (psn + 7) & 0xffffff;
    b.ack((psn - 1) & 0xffffff);
    b.run_ns(1000);
  }
  ASSERT_EQ(b.w.cqes.size(), 63u);
  for (std::size_t i = 0; i < 63; ++i) EXPECT_EQ(b.w.cqes[i].second.wqe_index, i);
}

TEST(requester, blueflame_needs_no_descriptor_fetch_and_its_marks_are_ignored) {
  bench::bench b;
  payload::pool<scheduler::blueflame_wqe> pool;
  scheduler::send_doorbell d;
  d.qpn = bench::qpn;
  d.uar = bench::own_uar;
  d.descriptor = pool.get();
  d.descriptor->length = 64;
  d.descriptor->index = 0;
  d.descriptor->bytes.fill(0);
  const std::uint8_t head[] = {0, 0, 0, 0x0a, 0,    0, 0x48, 2, 0,   0,   0,   0xc,
                               0, 0, 0, 0,    0x80, 0, 0,    4, 'w', 'o', 'r', 'd'};
  std::memcpy(d.descriptor->bytes.data(), head, sizeof head);
  b.post({0x0a, 0x4802, 0xc, 0, 0x80000004, 0x776f7264, 0, 0});
  b.w.to_ring.push_back(d);
  b.w.wake_next();
  b.run_ns(2000);
  ASSERT_EQ(b.w.sent.size(), 1u);
  EXPECT_EQ(b.payload(0), (std::vector<std::uint8_t>{'w', 'o', 'r', 'd'}));
  EXPECT_EQ(b.stats.value("requester.blueflame_used"), 1u);
}

TEST(requester, doorbell_on_a_foreign_page_is_ignored) {
  bench::bench b;
  b.post_send(16);
  b.ring_doorbell(0x81);
  b.run_ns(3000);
  EXPECT_TRUE(b.w.sent.empty());
  EXPECT_EQ(b.stats.value("scheduler.wrong_uar"), 1u);
  b.ring_doorbell();
  b.run_ns(3000);
  EXPECT_EQ(b.w.sent.size(), 1u);
  EXPECT_EQ(b.stats.value("requester.wrong_uar"), 0u);
}

/// A grant that was on its way while the number got another owner: what it brought is not executed.
TEST(requester, a_grant_of_an_earlier_owner_is_ignored) {
  bench::bench b;
  b.post_send(16);
  b.sched.cr_write(scheduler::cr::qp_select, bench::qpn);
  b.sched.cr_write(scheduler::cr::owner, scheduler::uar_of(bench::owning_function, 0x81));
  b.ring_doorbell(0x81);
  b.run_ns(3000);
  EXPECT_TRUE(b.w.sent.empty());
  EXPECT_EQ(b.stats.value("requester.wrong_uar"), 1u);
  b.sched.cr_write(scheduler::cr::owner, bench::own_uar);
  b.ring_doorbell();
  b.run_ns(3000);
  EXPECT_EQ(b.w.sent.size(), 1u);
}

TEST(requester, stamped_descriptor_is_read_again) {
  bench::bench b;
  b.post({0x0a,       6,
          0xc,        0,
          4,          bench::good_key,
          0,          bench::data,
          4,          bench::good_key,
          0,          bench::data,
          4,          bench::good_key,
          0,          bench::data,
          0xffffffff, bench::good_key,
          0,          bench::data,
          4,          bench::good_key,
          0,          bench::data});
  b.ring_doorbell();
  b.run_ns(1500);
  EXPECT_TRUE(b.w.sent.empty());
  const std::uint8_t four[4] = {0, 0, 0, 4};
  std::memcpy(b.w.memory.data() + bench::ring + 64, four, 4);
  b.run_ns(2000);
  ASSERT_EQ(b.w.sent.size(), 1u);
  EXPECT_EQ(b.sent(0).payload_length, 20u);
}

TEST(requester, ud_send_takes_its_address_from_the_descriptor) {
  bench::setup s;
  s.type = icm::service::ud;
  bench::bench b(s);
  std::vector<std::uint32_t> wqe = {0x0b, 5, 0xe, 0xcafe0001};
  const std::uint32_t av[12] = {0x01000007, 0x00800000, 0x00030040, 0x60500000, 0,          0,
                                0x0000ffff, 0x0a000009, 0x000456,   0x80000000, 0x000002aa, 0xbbccddee};
  wqe.insert(wqe.end(), av, av + 12);
  wqe.insert(wqe.end(), {100, bench::good_key, 0, bench::data});
  b.post(wqe);
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 1u);
  const wire::packet p = b.sent(0);
  EXPECT_EQ(p.bth.opcode, wire::make_opcode(wire::transport::ud, operation::send_only_immediate));
  EXPECT_EQ(p.bth.dest_qp, 0x456u);
  EXPECT_EQ(p.deth.qkey, 0x11111111u);  // bit 31 of the WQE's: the QP's own
  EXPECT_EQ(p.deth.src_qp, bench::qpn);
  EXPECT_EQ(p.immediate, 0xcafe0001u);
  EXPECT_TRUE(p.bth.solicited);
  EXPECT_FALSE(p.bth.ack_request);
  EXPECT_EQ(p.traffic_class, 5);
  EXPECT_EQ(p.hop_limit, 0x40);
  EXPECT_EQ(p.dmac, (wire::mac_address{0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xee}));
  ASSERT_EQ(b.w.cqes.size(), 1u);  // sent is done
  EXPECT_EQ(b.w.cqes[0].second.opcode, 0x4b);
}

/// Bit 31 of the request's Q_Key decides, whatever the others are (IBA volume 1, 10.2.5).
void expect_q_keys(std::uint32_t own) {
  bench::setup s;
  s.type = icm::service::ud;
  bench::bench b(s);
  b.context.qkey = own;
  b.make_qp(bench::qpn);
  const std::vector<std::uint32_t> asked = {0x80000000, 0xffffffff, 0x80010001, 0x7fffffff, 0x40000000, 0};
  for (const std::uint32_t key : asked) {
    std::vector<std::uint32_t> wqe = {0x0a, 5, 0xc, 0};
    const std::uint32_t av[12] = {0x01000007, 0x00800000, 0x00030040, 0x60500000, 0,          0,
                                  0x0000ffff, 0x0a000009, 0x000456,   key,        0x000002aa, 0xbbccddee};
    wqe.insert(wqe.end(), av, av + 12);
    wqe.insert(wqe.end(), {100, bench::good_key, 0, bench::data});
    b.post(wqe);
  }
  b.ring_doorbell();
  b.run_ns(8000);
  ASSERT_EQ(b.w.sent.size(), asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(b.sent(i).deth.qkey, i < 3 ? own : asked[i]) << i;
}
TEST(requester, a_q_key_with_its_highest_bit_stands_for_the_queue_pairs_own) { expect_q_keys(0x11111111); }
TEST(requester, a_q_key_with_its_highest_bit_stands_for_an_own_one_with_it) { expect_q_keys(0x80010000); }

/// The event is asked for by the last packet alone (IBA volume 1, 9.2.3): one for the message, when all of it is there.
TEST(requester, only_the_last_packet_of_a_solicited_send_says_so) {
  bench::bench b;
  b.post({0x0a, 2, 0xe, 0, 3000, bench::good_key, 0, bench::data});                             // SEND of three packets
  b.post({0x09, 3, 0xe, 7, 0x7f00, 0x5000, 0xabcd, 0, 2000, bench::good_key, 0, bench::data});  // WRITE with immediate
  b.post({0x08, 3, 0xe, 0, 0x7f00, 0x5000, 0xabcd, 0, 2000, bench::good_key, 0, bench::data});  // WRITE
  b.post({0x0a, 2, 0xc, 0, 3000, bench::good_key, 0, bench::data});                             // not solicited
  b.ring_doorbell();
  b.run_ns(12'000);
  ASSERT_EQ(b.w.sent.size(), 10u);
  std::vector<bool> solicited;
  for (std::size_t i = 0; i < 10; ++i) solicited.push_back(b.sent(i).bth.solicited);
  EXPECT_EQ(solicited, (std::vector<bool>{false, false, true, false, true, false, false, false, false, false}));
}

TEST(requester, no_frame_without_egress_room) {
  bench::setup s;
  s.requester.egress_frames = 2;
  bench::bench b(s);
  b.w.return_credits = false;
  b.post_write(5 * 1024);
  b.ring_doorbell();
  b.run_ns(5000);
  EXPECT_EQ(b.w.sent.size(), 2u);
  b.w.return_credits = true;
  b.core.as_in_tick([&b] { b.credit.push({0, 3}); });
  b.run_ns(5000);
  EXPECT_EQ(b.w.sent.size(), 5u);
}

TEST(requester, service_time_of_one_queue_pair) {
  bench::bench b;
  for (int i = 0; i < 6; ++i) b.post({0x0a, 2, 0, 0, 0x80000004, 0x776f7264, 0, 0});
  b.ring_doorbell();
  b.run_ns(4000);
  ASSERT_EQ(b.w.sent.size(), 6u);
  for (std::size_t i = 2; i < 5; ++i) EXPECT_EQ(b.w.sent[i].first - b.w.sent[i - 1].first, 78u);  // behind the miss
}

}  // namespace
