// SPDX-License-Identifier: Apache-2.0
// Requests that succeed: payload, completions, acknowledgements, order, registers, the laws.
#include <systemc>

#include "testbenches/block/responder/bench.h"

namespace rnic::transport::test {

// It never ends at an edge: whether that was served before the test goes on depends on who ticks at it.
void bench::run(unsigned cycles) {
  const sim::time_ps end = sc_core::sc_time_stamp().value() + sim::time_ps{cycles} * 2342;
  const bool at_edge = core.edge_time(core.edge_at_or_after(end)) == end;
  sc_core::sc_start(sc_core::sc_time::from_value(end + (at_edge ? 1 : 0)) - sc_core::sc_time_stamp());
}

namespace {

using wire::operation;

constexpr std::uint8_t ack_opcode = 0x11;

TEST(responder, write_only_reaches_memory_and_is_acknowledged) {
  bench b;
  const auto data = bench::pattern(777);
  b.write(operation::write_only, 100, data, data_va + 5, 777);
  b.run();
  EXPECT_EQ(b.data(5, 777), data);
  ASSERT_EQ(b.s.answers.size(), 1u);
  const auto& a = b.s.answers[0];
  EXPECT_EQ(a->bth.opcode, ack_opcode);
  EXPECT_EQ(a->bth.psn.value(), 100u);
  EXPECT_EQ(a->bth.dest_qp, peer_qpn);
  EXPECT_EQ(a->aeth.syndrome, 0x1f);
  EXPECT_EQ(a->aeth.msn, 1u);
  EXPECT_TRUE(a.frame->insert_icrc);
  EXPECT_EQ(a.frame->priority, 3);
  EXPECT_TRUE(b.s.cqes.empty());
  EXPECT_TRUE(b.s.events.empty());
  // What was built is what the wire says: decode the bytes again.
  wire::packet p;
  ASSERT_EQ(wire::decode(a.frame->data(), a.frame->length, p), wire::decode_error::none);
  EXPECT_EQ(p.dmac, (wire::mac_address{2, 0, 0, 0, 0, 2}));
  EXPECT_EQ(p.smac, (wire::mac_address{2, 0, 0, 0, 0, 1}));
  EXPECT_EQ(p.sgid, bench::own_gid());
  EXPECT_EQ(p.dgid, bench::peer_gid());
  EXPECT_EQ(p.udp_source, 0xc123);
  EXPECT_EQ(p.bth.pkey, 0xffff);
  EXPECT_EQ(p.aeth.msn, 1u);
}

TEST(responder, long_write_crosses_psn_wrap) {
  bench b;
  auto c = bench::context();
  c.expected_psn = 0xfffffe;
  b.put(c);
  const auto data = bench::pattern(4096 + 17);
  for (unsigned i = 0; i < 5; ++i) {
    const std::vector<std::uint8_t> part(data.begin() + i * 1024, data.begin() + std::min<long>(4113, (i + 1) * 1024));
    const operation op = i == 0 ? operation::write_first : i == 4 ? operation::write_last : operation::write_middle;
    b.write(op, (0xfffffe + i) & 0xffffff, part, data_va, 4113);
  }
  b.run();
  EXPECT_EQ(b.data(0, 4113), data);
  ASSERT_EQ(b.s.answers.size(), 1u);
  EXPECT_EQ(b.s.answers[0]->bth.psn.value(), 2u);
  EXPECT_EQ(b.s.answers[0]->aeth.msn, 1u);
}

TEST(responder, zero_length_write_needs_no_key) {
  bench b;
  b.write(operation::write_only, 100, {}, 0xdead0000, 0, 0xbad);
  b.run();
  ASSERT_EQ(b.s.answers.size(), 1u);
  EXPECT_EQ(b.s.answers[0]->aeth.syndrome, 0x1f);
  EXPECT_TRUE(b.s.writes.empty());
}

TEST(responder, send_is_scattered_and_completed_after_its_payload) {
  bench b;
  b.post(0, {{data_va, lkey, 100}, {data_va + 5000, lkey, 0}, {data_va + 8000, lkey, 5000}});
  const auto data = bench::pattern(1500);
  b.send(operation::send_first, 100, {data.begin(), data.begin() + 1024});
  b.send(operation::send_last_immediate, 101, {data.begin() + 1024, data.end()}, [](wire::packet& p) {
    p.immediate = 0xcafe0123;
    p.bth.solicited = true;
  });
  b.run();
  EXPECT_EQ(b.data(0, 100), std::vector<std::uint8_t>(data.begin(), data.begin() + 100));
  EXPECT_EQ(b.data(8000, 1400), std::vector<std::uint8_t>(data.begin() + 100, data.end()));
  ASSERT_EQ(b.s.cqes.size(), 1u);
  const auto& [at, c] = b.s.cqes[0];
  EXPECT_EQ(c.cqn, 0x85u);
  EXPECT_EQ(c.qpn, qpn);
  EXPECT_EQ(c.opcode, 2);
  EXPECT_EQ(c.immediate, 0xcafe0123u);
  EXPECT_EQ(c.byte_count, 1500u);
  EXPECT_EQ(c.wqe_index, 0u);
  EXPECT_TRUE(c.solicited);
  EXPECT_GE(at, b.s.write_cycle.back() + b.s.write_cycles);
  ASSERT_EQ(b.s.answers.size(), 1u);
  EXPECT_EQ(b.s.answers[0]->bth.psn.value(), 101u);
}

/// A message asks for an event with its last packet: what the others say is nothing (IBA volume 1, 9.2.3).
TEST(responder, the_last_packet_alone_says_that_a_send_is_solicited) {
  bench b;
  for (unsigned i = 0; i < 3; ++i) b.post(i, {{data_va, lkey, 3000}});
  const auto data = bench::pattern(2100);
  const auto asks = [](bool yes) { return [yes](wire::packet& p) { p.bth.solicited = yes; }; };
  std::uint32_t psn = 100;
  for (const unsigned packet : {0u, 1u, 2u}) {
    b.send(operation::send_first, psn++, {data.begin(), data.begin() + 1024}, asks(packet == 0));
    b.send(operation::send_middle, psn++, {data.begin() + 1024, data.begin() + 2048}, asks(packet == 1));
    b.send(operation::send_last, psn++, {data.begin() + 2048, data.end()}, asks(packet == 2));
  }
  b.run();
  ASSERT_EQ(b.s.cqes.size(), 3u);
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(b.s.cqes[i].second.solicited, i == 2) << i;
}

/// All of its bits count, the highest too.
TEST(responder, ud_send_with_a_q_key_that_differs_in_its_highest_bit) {
  bench b;
  auto c = bench::context();
  c.type = icm::service::ud;
  c.qkey = 0x80001ee7;
  b.put(c);
  b.post(0, {{data_va, lkey, 60}, {data_va + 100, lkey, 100}});
  std::uint32_t psn = 1;
  for (const std::uint32_t key : {0x1ee7u, 0x80001ee6u, 0x80000000u, 0x80001ee7u})
    b.send(
        operation::send_only, psn++, bench::pattern(50),
        [key](wire::packet& p) {
          p.deth = {key, 0, 0x777};
        },
        wire::transport::ud);
  b.run();
  EXPECT_EQ(b.count("drop.qkey"), 3u);
  EXPECT_EQ(b.s.cqes.size(), 1u);
}

TEST(responder, write_with_immediate_takes_a_wqe_and_reports_all_bytes) {
  bench b;
  b.post(0, {});
  b.post(1, {});
  const auto data = bench::pattern(1100);
  b.write(operation::write_first, 100, {data.begin(), data.begin() + 1024}, data_va, 1100);
  b.send(operation::write_last_immediate, 101, {data.begin() + 1024, data.end()},
         [](wire::packet& p) { p.immediate = 7; });
  b.send(operation::write_only_immediate, 102, {}, [](wire::packet& p) { p.immediate = 8; });
  b.run();
  EXPECT_EQ(b.data(0, 1100), data);
  ASSERT_EQ(b.s.cqes.size(), 2u);
  EXPECT_EQ(b.s.cqes[0].second.opcode, 0);
  EXPECT_EQ(b.s.cqes[0].second.byte_count, 1100u);
  EXPECT_EQ(b.s.cqes[0].second.immediate, 7u);
  EXPECT_EQ(b.s.cqes[1].second.byte_count, 0u);
  EXPECT_EQ(b.s.cqes[1].second.wqe_index, 1u);
  EXPECT_EQ(b.s.answers.back()->aeth.msn, 2u);
}

TEST(responder, many_sends_wrap_the_ring_in_order) {
  bench b;
  auto c = bench::context();
  c.rq_consumed = c.rq_posted = 0xfff8;  // the 16-bit count wraps as well
  b.put(c);
  for (unsigned i = 0; i < 16; ++i) b.post(0xfff8 + i, {{data_va + i * 64, lkey, 64}});
  for (unsigned i = 0; i < 16; ++i) b.send(operation::send_only, 100 + i, bench::pattern(64, i));
  b.run(6000);
  ASSERT_EQ(b.s.cqes.size(), 16u);
  for (unsigned i = 0; i < 16; ++i) {
    EXPECT_EQ(b.s.cqes[i].second.wqe_index, (0xfff8 + i) & 0xffff);
    EXPECT_EQ(b.data(i * 64, 64), bench::pattern(64, i));
  }
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 115u);
  EXPECT_EQ(b.s.answers.back()->aeth.msn, 16u);
  EXPECT_LE(b.s.wqe_reads, 4u);  // prefetched in batches
}

TEST(responder, one_ack_answers_the_requests_that_wait) {
  responder_config cfg;
  cfg.ack_cycles = 100;
  bench b({}, cfg);
  for (unsigned i = 0; i < 30; ++i) b.write(operation::write_only, 100 + i, bench::pattern(8), data_va, 8);
  b.run();
  EXPECT_LT(b.s.answers.size(), 8u);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 129u);
  EXPECT_EQ(b.s.answers.back()->aeth.msn, 30u);
}

TEST(responder, no_coalescing_when_configured) {
  responder_config cfg;
  cfg.ack_cycles = 50;
  cfg.ack_coalesce = 1;
  bench b({}, cfg);
  for (unsigned i = 0; i < 30; ++i) b.write(operation::write_only, 100 + i, bench::pattern(8), data_va, 8);
  b.run();
  ASSERT_EQ(b.s.answers.size(), 30u);
  for (unsigned i = 0; i < 30; ++i) EXPECT_EQ(b.s.answers[i]->bth.psn.value(), 100 + i);
}

TEST(responder, initiation_interval_is_the_engines) {
  bench b;
  for (unsigned i = 0; i < 20; ++i) b.write(operation::write_only, 100 + i, bench::pattern(8), data_va, 8);
  for (unsigned i = 0; i < 20; ++i) b.write(operation::write_only, 120 + i, bench::pattern(1024), data_va, 1024);
  b.run(5000);
  ASSERT_EQ(b.s.writes.size(), 40u);
  EXPECT_EQ(b.s.write_cycle[19] - b.s.write_cycle[9], 10u * 12);
  EXPECT_EQ(b.s.write_cycle[39] - b.s.write_cycle[29], 10u * (5 + 64));
}

TEST(responder, a_waiting_qp_does_not_hold_up_another) {
  bench b;
  auto c = bench::context();
  c.qpn = 0x49;
  b.put(c);
  const auto to_other = [](wire::packet& p) {
    p.bth.dest_qp = 0x49;
    p.reth = {data_va + 64, rkey, 8};
  };
  b.send(operation::write_only, 100, bench::pattern(8), to_other);
  b.run();  // its context is on chip now
  b.s.slow_key[0x4400] = 1500;
  b.s.regions[0x4400] = b.s.regions[rkey];
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8, 0x4400);  // context miss and slow translation
  b.write(operation::write_only, 101, bench::pattern(8), data_va, 8);          // behind it
  b.send(operation::write_only, 101, bench::pattern(8), to_other);
  b.run(4000);
  ASSERT_EQ(b.s.writes.size(), 4u);
  EXPECT_EQ(b.s.writes[1].address, data_bus + 0x123 + 64);  // the other QP passed
  EXPECT_LT(b.s.write_cycle[1] + 1000, b.s.write_cycle[2]);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 101u);
}

TEST(responder, comm_est_once) {
  bench b;
  auto c = bench::context();
  c.state = icm::qp_state::rtr;
  b.put(c);
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8);
  b.write(operation::write_only, 101, bench::pattern(8), data_va, 8);
  b.run();
  ASSERT_EQ(b.s.events.size(), 1u);
  EXPECT_EQ(b.s.events[0].type, 0x02);
  EXPECT_EQ(b.s.events[0].data[3], qpn);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 101u);
}

TEST(responder, credits_bound_what_is_sent) {
  responder_config cfg;
  cfg.egress_frames = 2;
  cfg.ack_coalesce = 1;
  bench b({}, cfg);
  b.s.give_credits = false;
  for (unsigned i = 0; i < 5; ++i) b.write(operation::write_only, 100 + i, bench::pattern(8), data_va, 8);
  b.run();
  EXPECT_EQ(b.s.answers.size(), 2u);
}

TEST(responder, halt_writes_the_context_back_and_release_goes_on) {
  bench b;
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8);
  b.run();
  b.r.cr_write(cr::qp_select, qpn);
  b.r.cr_write(cr::qp_command, cr::qp_command_halt);
  EXPECT_EQ(b.r.cr_read(cr::qp_status), 1u);
  b.run();
  EXPECT_EQ(b.r.cr_read(cr::qp_status), 0u);
  EXPECT_EQ(b.get().expected_psn, 101u);
  EXPECT_EQ(b.get().msn, 1u);
  b.write(operation::write_only, 101, bench::pattern(8), data_va, 8);
  b.run();
  EXPECT_EQ(b.s.answers.size(), 1u);  // dropped
  EXPECT_EQ(b.count("drop.halted"), 1u);
  b.r.cr_write(cr::qp_command, cr::qp_command_release);
  b.write(operation::write_only, 101, bench::pattern(8), data_va, 8);
  b.run();
  ASSERT_EQ(b.s.answers.size(), 2u);
  EXPECT_EQ(b.s.answers[1]->aeth.msn, 2u);
}

TEST(responder, uc_write_and_send_resynchronise) {
  bench b;
  auto c = bench::context();
  c.type = icm::service::uc;
  b.put(c);
  b.post(0, {{data_va + 9000, lkey, 4096}});
  const auto reth = [](wire::packet& p) { p.reth = {data_va, rkey, 8}; };
  b.send(operation::write_only, 500, bench::pattern(8), reth, wire::transport::uc);
  const auto plain = [](wire::packet&) {};
  b.send(operation::send_first, 501, bench::pattern(1024), plain, wire::transport::uc);
  b.send(operation::send_last, 503, bench::pattern(8), plain, wire::transport::uc);  // 502 was lost
  b.send(operation::send_only, 504, bench::pattern(33, 5), plain, wire::transport::uc);
  b.run();
  EXPECT_EQ(b.data(0, 8), bench::pattern(8));
  ASSERT_EQ(b.s.cqes.size(), 1u);
  EXPECT_EQ(b.s.cqes[0].second.wqe_index, 0u);  // used again
  EXPECT_EQ(b.s.cqes[0].second.byte_count, 33u);
  EXPECT_EQ(b.data(9000, 33), bench::pattern(33, 5));
  EXPECT_TRUE(b.s.answers.empty());
}

/// What waits, more than there is time for. Bit 0: requests, 1: copies for groups, 2: plain frames.
class responder_turns : public testing::TestWithParam<unsigned> {};

TEST_P(responder_turns, each_kind_that_waits_has_its_turn) {
  constexpr std::uint32_t member = 0x50, ethernet = 0x51;
  constexpr unsigned each = 7;
  const unsigned kinds = GetParam();
  bench b;
  auto c = bench::context();
  c.type = icm::service::ud;
  b.put(c);
  c.qpn = member;
  b.put(c);
  c.qpn = ethernet;
  c.type = icm::service::ethernet;
  b.put(c);
  for (unsigned i = 0; i < 16; ++i) b.post(i, {{data_va, lkey, 1000}});
  const auto load = [&](unsigned n) {
    for (unsigned i = 0; i < n; ++i) {
      if ((kinds & 4) != 0) b.steer(ethernet, bench::pattern(200));
      for (const bool copy : {false, true}) {
        if ((kinds & (copy ? 2 : 1)) == 0) continue;
        b.send(
            operation::send_only, 1, bench::pattern(100),
            [copy](wire::packet& p) { p.bth.dest_qp = copy ? member : qpn; }, wire::transport::ud);
        if (!copy) continue;
        b.s.to_members.push_back(std::move(b.s.to_send.back()));
        b.s.to_send.pop_back();
      }
    }
  };
  load(1);
  b.run();
  b.s.cqes.clear();  // contexts and receives are on chip
  load(each);
  b.run();
  std::vector<std::uint32_t> expected, got;
  for (unsigned i = 0; i < each; ++i) {
    if ((kinds & 1) != 0) expected.push_back(qpn);
    if ((kinds & 2) != 0) expected.push_back(member);
    if ((kinds & 4) != 0) expected.push_back(ethernet);
  }
  for (const auto& [at, cqe] : b.s.cqes) got.push_back(cqe.qpn & 0xffffff);
  EXPECT_EQ(got, expected) << kinds;
}

INSTANTIATE_TEST_SUITE_P(kinds, responder_turns, testing::Values(3u, 5u, 6u, 7u));

/// A copy that waits for its queue pair's context lets requests pass.
TEST(responder, a_copy_that_waits_does_not_hold_up_requests) {
  bench b;
  auto c = bench::context();
  c.type = icm::service::ud;
  for (const std::uint32_t number : {qpn, 0x50u}) {
    c.qpn = number;
    b.put(c);
  }
  for (unsigned i = 0; i < 16; ++i) b.post(i, {{data_va, lkey, 1000}});
  const auto datagram = [&](std::uint32_t to) {
    b.send(
        operation::send_only, 1, bench::pattern(100), [to](wire::packet& p) { p.bth.dest_qp = to; },
        wire::transport::ud);
  };
  datagram(qpn);
  b.run();
  b.s.cqes.clear();
  datagram(0x50);
  b.s.to_members.push_back(std::move(b.s.to_send.back()));
  b.s.to_send.pop_back();
  for (unsigned i = 0; i < 4; ++i) datagram(qpn);
  b.run();
  ASSERT_EQ(b.s.cqes.size(), 5u);
  EXPECT_EQ(b.s.cqes[4].second.qpn & 0xffffff, 0x50u);
}

TEST(responder, ud_send_has_the_grh_area) {
  bench b;
  auto c = bench::context();
  c.type = icm::service::ud;
  c.qkey = 0x1ee7;
  b.put(c);
  b.post(0, {{data_va, lkey, 60}, {data_va + 100, lkey, 100}});
  const auto with_key = [](std::uint32_t key) {
    return [key](wire::packet& p) {
      p.deth = {key, 0, 0x777};
      p.vlan_present = true;
      p.vlan_tci = 3 << 13 | 9;
    };
  };
  b.send(operation::send_only, 1, bench::pattern(50), with_key(0xbad), wire::transport::ud);
  b.send(operation::send_only, 2, bench::pattern(50), with_key(0x1ee7), wire::transport::ud);
  b.run();
  EXPECT_EQ(b.count("drop.qkey"), 1u);
  ASSERT_EQ(b.s.cqes.size(), 1u);
  const auto& cqe = b.s.cqes[0].second;
  EXPECT_EQ(cqe.byte_count, 90u);
  EXPECT_EQ(cqe.remote_qpn, 0x80000777u);
  EXPECT_EQ(cqe.qpn, qpn | 1u << 29);
  EXPECT_EQ(cqe.sl_vid, 3 << 13 | 9);
  EXPECT_EQ(cqe.smac, (std::array<std::uint8_t, 6>{2, 0, 0, 0, 0, 2}));
  const auto area = b.data(0, 60);
  EXPECT_EQ(std::vector<std::uint8_t>(area.begin(), area.begin() + 20), std::vector<std::uint8_t>(20));
  EXPECT_EQ(area[20], 0x45);
  EXPECT_EQ(area[29], 17);  // UDP
  EXPECT_EQ(area[39], 1);   // 10.0.0.1
  const auto data = bench::pattern(50);
  EXPECT_EQ(std::vector<std::uint8_t>(area.begin() + 40, area.end()),
            std::vector<std::uint8_t>(data.begin(), data.begin() + 20));
  EXPECT_EQ(b.data(100, 30), std::vector<std::uint8_t>(data.begin() + 20, data.end()));
}

// A mixed run, and everything that can be seen of it, with cycles.
void load(bench& b) {
  auto c = bench::context();
  c.qpn = 0x49;
  c.state = icm::qp_state::rtr;
  b.put(c);
  for (unsigned i = 0; i < 12; ++i) b.post(i, {{data_va + i * 2000, lkey, 1500}});
  unsigned psn = 100;
  for (unsigned i = 0; i < 10; ++i) {
    b.send(operation::send_only, psn++, bench::pattern(100 + i));
    b.write(operation::write_only, psn++, bench::pattern(700), data_va, 700);
    if (i % 3 == 0) {
      b.read(psn, data_va, 3000);
      psn += 3;
    }
    b.send(operation::write_only, 100 + i, bench::pattern(64), [](wire::packet& p) {
      p.bth.dest_qp = 0x49;
      p.reth = {data_va + 64, rkey, 64};
    });
  }
  b.write(operation::write_only, psn, bench::pattern(8), data_va, 8, read_only_key);
}

std::vector<std::uint64_t> record(const bench& b) {
  std::vector<std::uint64_t> seen;
  for (const auto& a : b.s.answers)
    seen.insert(seen.end(), {a.at, a->bth.psn.value(), a->bth.opcode, a->aeth.syndrome, a->aeth.msn});
  for (const auto& [at, e] : b.s.cqes) seen.insert(seen.end(), {at, e.wqe_index, e.byte_count, e.syndrome});
  for (const auto at : b.s.write_cycle) seen.push_back(at);
  for (const auto& [name, value] : b.stats.all()) seen.push_back(*value);
  seen.push_back(b.count("packets"));
  return seen;
}

/// Ports of the contexts.
struct responder_laws_by_ports : testing::TestWithParam<unsigned> {
  responder_config config() const {
    responder_config c;
    c.context_ports = GetParam();
    return c;
  }
};
INSTANTIATE_TEST_SUITE_P(ports, responder_laws_by_ports, testing::Values(1u, 2u));

TEST_P(responder_laws_by_ports, sleeping_is_invisible) {
  sim::timebase::options always;
  always.always_tick = true;
  bench asleep({}, config());
  bench awake(always, config());
  load(asleep);
  load(awake);
  asleep.run(60000);                     // both are in the same kernel
  EXPECT_EQ(asleep.s.cqes.size(), 12u);  // ten messages, two flushed
  EXPECT_EQ(asleep.count("reads"), 4u);
  EXPECT_EQ(asleep.s.errors.size(), 1u);
  EXPECT_EQ(record(asleep), record(awake));
}

TEST_P(responder_laws_by_ports, order_inside_an_edge_is_nothing) {
  sim::timebase::options shuffled;
  shuffled.shuffle_seed = 12345;
  bench one({}, config());
  bench other(shuffled, config());
  load(one);
  load(other);
  one.run(60000);
  EXPECT_EQ(one.s.cqes.size(), 12u);
  EXPECT_EQ(record(one), record(other));
}

/// The requester's error waits for a place on chip: the READ of one queue pair has one, the SEND of another, whose
/// receive is being looked for, the other.
TEST(responder_laws, sleeping_is_invisible_to_one_that_waits_for_a_place) {
  sim::timebase::options always;
  always.always_tick = true;
  responder_config c;
  c.flows = 2;
  bench asleep({}, c);
  bench awake(always, c);
  for (bench* b : {&asleep, &awake}) {
    for (const std::uint32_t n : {qpn + 1, qpn + 2}) {
      icm::responder_context other = bench::context();
      other.qpn = n;
      b->put(other);
    }
    b->s.read_cycles = 1000;
    b->post(0, {{data_va, lkey, 64}});
    b->send(operation::read_request, 100, {}, [](wire::packet& p) {
      p.bth.dest_qp = qpn + 1;
      p.reth = {data_va, rkey, 64};
    });
    b->send(operation::send_only, 100, bench::pattern(64), [](wire::packet& p) { p.bth.dest_qp = qpn + 2; });
  }
  asleep.run(600);
  for (bench* b : {&asleep, &awake}) {
    b->s.to_tell.push_back({qpn});
    b->s.wake_next();
  }
  asleep.run(20000);
  EXPECT_EQ(asleep.s.answers.size(), 2u);
  EXPECT_EQ(asleep.s.cqes.size(), 2u);  // the SEND, and what was flushed
  EXPECT_EQ(record(asleep), record(awake));
}

TEST(responder_laws, steady_state_takes_no_more_frames) {
  bench b;
  for (unsigned i = 0; i < 50; ++i) b.write(operation::write_only, 100 + i, bench::pattern(64), data_va, 64);
  b.run(5000);
  b.s.answers.clear();
  const std::size_t frames = b.frames.allocated();
  for (unsigned i = 0; i < 50; ++i) b.write(operation::write_only, 150 + i, bench::pattern(64), data_va, 64);
  b.run(5000);
  b.s.answers.clear();
  EXPECT_EQ(b.frames.in_use(), 0u);
  EXPECT_EQ(b.frames.allocated(), frames);
}

/// Port 1 gives no credits back: its CNPs fill its queue, and the rest is lost.
TEST(responder, cnps_of_a_port_that_stands_hold_up_no_other) {
  bench b;
  sim::fifo<congestion_notice> notices("notices", b.core, 64);
  b.cnps.notices[cnp_sender::requester].bind(notices);
  const unsigned credits = responder_config{}.egress_frames, places = 2,
                 queue = responder_config{}.congestion.notification.queue;
  const auto notify = [&](unsigned port, std::uint32_t number) {
    congestion_notice n;
    n.qpn = number;
    n.cnp = b.frames.get();
    n.cnp->port = static_cast<std::uint8_t>(port);
    n.cnp->priority = 6;
    n.cnp->begin = payload::frame::payload_start;
    n.cnp->length = 78;
    n.cnp->packet = wire::packet{};
    b.core.as_in_tick([&] { notices.push(std::move(n)); });
    b.run(20);
  };
  for (unsigned i = 0; i < credits + places + queue + 5; ++i) notify(1, 0x100 + i);
  EXPECT_EQ(b.s.answers.size(), credits);
  EXPECT_EQ(b.stats.value("cnp_sender.np_cnp_lost"), 5u);
  notify(0, 0x90);
  b.run(200);
  ASSERT_EQ(b.s.answers.size(), credits + 1);
  EXPECT_EQ(b.s.answers.back().frame->port, 0u);
}

}  // namespace
}  // namespace rnic::transport::test
