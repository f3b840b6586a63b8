// SPDX-License-Identifier: Apache-2.0
// Answers on their way out: cycles idle, back to back and stalled; order; credits; headers.
#include <algorithm>
#include <map>
#include <tuple>

#include "testbenches/bench/child.h"
#include "testbenches/block/responder/answer_bench.h"
#include "testbenches/unit/wire/oracle.h"

namespace rnic::transport::test::answers {
namespace {

/// Seen by the block a cycle after it was handed over, 29 in its stages, and the register of the channel behind.
constexpr cycle way = 1 + 29 + 1;

class answer_alone : public testing::TestWithParam<unsigned> {};
TEST_P(answer_alone, leaves_at_once) {
  rig r;
  r.start(GetParam(), 100, 3, 10);
  r.run(100);
  ASSERT_EQ(r.w.frames.size(), 1u);
  EXPECT_EQ(r.w.frames[0].first - r.w.pushed[0].at, way);
}
INSTANTIATE_TEST_SUITE_P(user, answer_alone, testing::Values(responses, acknowledgements, notifications));

/// `places` a user, `interval` cycles between its answers.
void expect_stream(unsigned places, cycle interval) {
  rig r(64, places);
  for (unsigned i = 0; i < 100; ++i) r.start(responses, i);
  r.run(400);
  ASSERT_EQ(r.w.frames.size(), 100u);
  for (unsigned i = 1; i < 100; ++i) {
    ASSERT_EQ(r.w.pushed[i].at - r.w.pushed[i - 1].at, interval) << i;
    ASSERT_EQ(r.w.frames[i].first - r.w.frames[i - 1].first, interval) << i;
    ASSERT_EQ(r.w.frames[i].second->packet.bth.psn.value(), i);
  }
  EXPECT_EQ(r.count("responses"), 100u);
  ASSERT_EQ(r.core.servers().size(), 1u);
  EXPECT_EQ(r.core.servers().front()->busy_cycles(), 100u);
}
TEST(answer_transmit, two_places_carry_an_answer_a_cycle) { expect_stream(2, 1); }
TEST(answer_transmit, one_place_carries_an_answer_in_two_cycles) { expect_stream(1, 2); }

TEST(answer_transmit, answers_of_one_cycle_leave_one_a_cycle_response_first_then_ack_then_cnp) {
  rig r;
  for (const unsigned u : {notifications, acknowledgements, responses}) r.start(u, 10 + u, 3, 5);
  r.run(100);
  EXPECT_EQ(r.psns(), (std::vector<std::uint32_t>{10, 11, 12}));
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(r.w.pushed[i].at, r.w.pushed[0].at);
    EXPECT_EQ(r.w.frames[i].first - r.w.pushed[0].at, way + i);
  }
}

/// Its address is one of the port's own: an acknowledgement, and a CNP, which nobody else addresses.
TEST(answer_transmit, answers_to_the_port_itself_come_back) {
  rig r;
  const icm::responder_context c = context();
  r.gids[0].cr_write(gid::cr::mac_word(9, 0), gid::cr::mac_valid | unsigned{c.dest.dmac[0]} << 8 | c.dest.dmac[1]);
  r.gids[0].cr_write(gid::cr::mac_word(9, 1), c.dest.dmac[5]);
  r.start(acknowledgements, 1);
  r.start(notifications, 2, 3, 5);
  std::copy_n(c.dest.dmac, 6, r.w.starts[notifications].back().job.frame->packet.dmac.begin());
  r.start(notifications, 3, 3, 5);  // to another one
  r.run(100);
  ASSERT_EQ(r.w.frames.size(), 3u);
  EXPECT_EQ(r.w.frames[0].second->loopback, payload::frame::loopback_only);
  EXPECT_EQ(r.w.frames[1].second->loopback, payload::frame::loopback_only);
  EXPECT_EQ(r.w.frames[2].second->loopback, payload::frame::loopback_none);
}

/// The requests look up in even cycles and those of the other port in odd ones: an answer of a port in two cycles, of
/// both ports one a cycle.
TEST(answer_transmit, an_only_read_port_of_the_tables_is_used_in_turn) {
  rig r(64, 2, {}, true);
  for (unsigned i = 0; i < 4; ++i) r.start(responses, i);
  r.run(100);
  ASSERT_EQ(r.w.frames.size(), 4u);
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ((r.w.frames[i].first - (way - 1)) % 2, 1u) << i;
  EXPECT_EQ(r.w.frames[3].first - r.w.frames[0].first, 6u);
  for (unsigned i = 0; i < 8; ++i) r.start(responses, i, 3, 0, i % 2);
  r.run(100);
  ASSERT_EQ(r.w.frames.size(), 12u);
  EXPECT_EQ(r.w.frames[11].first - r.w.frames[4].first, 7u);
}

/// Handed over as READ response 1, response 2, ACK 3, response 4, ACK 5; only the first has a credit.
TEST(answer_transmit, answers_of_a_queue_pair_leave_in_the_order_in_which_they_were_handed_over) {
  rig r(1);
  r.w.gives[0][3] = false;
  r.start(responses, 1);
  r.start(responses, 2);
  r.start(acknowledgements, 3, 3, 2);
  r.start(responses, 4, 3, 1);
  r.start(acknowledgements, 5, 3, 1);
  r.run(100);
  EXPECT_EQ(r.psns(), (std::vector<std::uint32_t>{1}));
  for (unsigned i = 0; i < 5; ++i) EXPECT_EQ(r.w.pushed[i].psn, i + 1);
  for (unsigned i = 0; i < 4; ++i) r.w.to_give.push_back({0, 3});
  r.run(100);
  EXPECT_EQ(r.psns(), (std::vector<std::uint32_t>{1, 2, 3, 4, 5}));
}

/// Priority 3 of port 0 has one credit and gets none back: of each user two answers wait for one, and no third is
/// handed over. Whoever wants to leave by another priority, or by the same one of the other port, does not notice.
TEST(answer_transmit, a_priority_without_credits_is_in_nobody_elses_way) {
  rig r(1);
  r.w.gives[0][3] = false;
  r.start(responses, 1);
  for (const unsigned u : {responses, acknowledgements, notifications})
    for (unsigned i = 0; i < 2; ++i) r.start(u, 10 * u + 10 + i);
  r.run(100);
  EXPECT_EQ(r.w.frames.size(), 1u);
  EXPECT_EQ(r.w.pushed.size(), 7u);
  for (const unsigned u : {responses, acknowledgements, notifications}) {
    r.start(u, 100, 5);
    r.start(u, 101, 3, 50, 1);
    r.start(u, 102, 3);  // finds no place
    const std::size_t frames = r.w.frames.size(), pushed = r.w.pushed.size();
    r.run(200);
    ASSERT_EQ(r.w.pushed.size(), pushed + 2);
    ASSERT_EQ(r.w.frames.size(), frames + 2);
    for (unsigned i = 0; i < 2; ++i) {
      EXPECT_EQ(r.w.frames[frames + i].first - r.w.pushed[pushed + i].at, way) << u;
      EXPECT_EQ(r.w.frames[frames + i].second->packet.bth.psn.value(), 100 + i);
    }
  }
  for (unsigned i = 0; i < 9; ++i) r.w.to_give.push_back({0, 3});
  r.run(200);
  EXPECT_EQ(r.w.frames.size(), 16u);
}

/// Answers of both virtual ports by one port: one a cycle, with its number in the frame, on its credits alone.
class mapped_to : public testing::TestWithParam<unsigned> {};
TEST_P(mapped_to, answers_go_by_that_port) {
  const unsigned to = GetParam();
  rig r;
  r.dut.cr_write(cr::port_map, to == 0 ? 0 : 3);
  for (unsigned i = 0; i < 8; ++i) r.start(responses, i, 3, 0, i % 2 != 0 ? 1 : 0);
  r.start(notifications, 8, 3, 20, to == 0 ? 1 : 0);
  r.run(200);
  ASSERT_EQ(r.w.frames.size(), 9u);
  for (const auto& [at, f] : r.w.frames) EXPECT_EQ(f->port, to);
  for (unsigned i = 0; i < 7; ++i) EXPECT_EQ(r.w.frames[i + 1].first - r.w.frames[i].first, 1u);
}
INSTANTIATE_TEST_SUITE_P(port, mapped_to, testing::Values(0u, 1u));

/// Port 0 has no credit, and answers wait. The map changes: the first one leaves in the next cycle, by the credits of
/// port 1; those of port 0 that come later are for what goes there again.
TEST(answer_transmit, answers_that_wait_for_a_port_go_by_the_other_one) {
  rig r(2);
  r.w.gives[0][3] = false;
  for (unsigned i = 0; i < 4; ++i) r.start(responses, i);
  r.run(100);
  EXPECT_EQ(r.psns(), (std::vector<std::uint32_t>{0, 1}));
  const cycle changed = r.dut.now();
  r.dut.cr_write(cr::port_map, 3);
  r.run(100);
  ASSERT_EQ(r.psns(), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(r.w.frames[2].second->port, 1u);
  EXPECT_LE(r.w.frames[2].first - changed, way + 1);
  EXPECT_EQ(r.count("credit_wait_cycles"), changed - r.w.pushed[2].at);
  // Back: there are still no credits of port 0, and what comes waits.
  r.dut.cr_write(cr::port_map, cr::port_map_identity);
  r.start(acknowledgements, 9);
  r.run(100);
  EXPECT_EQ(r.w.frames.size(), 4u);
  r.w.to_give.push_back({0, 3});
  r.run(100);
  ASSERT_EQ(r.w.frames.size(), 5u);
  EXPECT_EQ(r.w.frames[4].second->port, 0u);
}

TEST(answer_transmit, reset_puts_the_map_back) {
  rig r;
  r.dut.cr_write(cr::port_map, 3);
  r.dut.device_reset();
  r.start(responses, 1);
  r.run(100);
  ASSERT_EQ(r.w.frames.size(), 1u);
  EXPECT_EQ(r.w.frames[0].second->port, 0u);
  EXPECT_EQ(r.dut.cr_read(cr::port_map), cr::port_map_identity);
}

TEST(answer_transmit, a_credit_is_used_in_the_cycle_in_which_it_is_seen) {
  rig r(1);
  r.spans.enable(true);
  r.w.gives[0][3] = false;
  r.start(acknowledgements, 1);
  r.start(acknowledgements, 2, 3, 20);
  const sim::span_id span = r.spans.open(0);
  r.w.starts[acknowledgements][1].job.frame->span = span;
  r.run(100);
  r.w.to_give.push_back({0, 3});
  r.run(100);
  ASSERT_EQ(r.w.frames.size(), 2u);
  ASSERT_EQ(r.w.given.size(), 1u);
  EXPECT_EQ(r.w.frames[1].first - r.w.given[0], way);
  const cycle waited = r.w.given[0] - r.w.pushed[1].at;
  EXPECT_EQ(r.count("credit_wait_cycles"), waited);
  const sim::span& s = r.spans[span];
  const std::vector<std::pair<std::string, cycle>> stages{{"accept", r.w.pushed[1].at + 1},
                                                          {"egress credit", waited},
                                                          {"source gid", 2},
                                                          {"path", 6},
                                                          {"headers", 12},
                                                          {"hand-over", 9}};
  ASSERT_EQ(s.count(), stages.size());
  sim::time_ps before = 0;
  for (unsigned i = 0; i < stages.size(); ++i) {
    EXPECT_EQ(s[i].stage, stages[i].first);
    EXPECT_EQ(s[i].at - before, 2000 * stages[i].second) << stages[i].first;
    before = s[i].at;
  }
}

/// The last credit of a priority goes with an answer, and the next one is there already.
TEST(answer_transmit, waiting_for_a_credit_counts_from_the_first_cycle_without_one) {
  rig r(1);
  r.w.gives[0][3] = false;
  r.start(responses, 1);
  r.start(acknowledgements, 2);
  r.run(50);
  r.w.to_give.push_back({0, 3});
  r.run(100);
  ASSERT_EQ(r.w.frames.size(), 2u);
  EXPECT_EQ(r.count("credit_wait_cycles"), r.w.given[0] + 1 - (r.w.pushed[0].at + 2));
}

TEST(answer_transmit, what_stands_behind_a_full_channel_stays_in_order_and_whole) {
  rig r;
  r.w.takes = false;
  constexpr unsigned many = tx_depth + 10;
  for (unsigned i = 0; i < many; ++i) r.start(responses, i);
  r.run(300);
  EXPECT_EQ(r.w.pushed.size(), tx_depth + 2) << "the registers of the channel, and two places";
  r.w.takes = true;
  r.run(300);
  ASSERT_EQ(r.w.frames.size(), many);
  for (unsigned i = 0; i < many; ++i) EXPECT_EQ(r.w.frames[i].second->packet.bth.psn.value(), i);
  for (unsigned i = 1; i < tx_depth; ++i) EXPECT_EQ(r.w.frames[i].first - r.w.frames[i - 1].first, 1u);
  EXPECT_EQ(r.count("credit_wait_cycles"), 0u);
}

TEST(answer_transmit, priorities_take_turns) {
  rig r;
  for (unsigned i = 0; i < 20; ++i) {
    r.start(responses, i, 1);
    r.start(acknowledgements, 100 + i, 6);
  }
  r.run(200);
  ASSERT_EQ(r.w.frames.size(), 40u);
  for (unsigned i = 0; i < 40; ++i) {
    EXPECT_EQ(r.w.frames[i].second->packet.bth.psn.value(), i % 2 == 0 ? i / 2 : 100 + i / 2);
    EXPECT_EQ(r.w.frames[i].first - r.w.frames[0].first, i);
  }
}

/// An entry that is not valid, one of the other version, one of another function, IPv4 with an IPv6 peer. Each has the
/// only credit for the two cycles of its look-up.
TEST(answer_transmit, an_answer_without_a_source_ends_here_and_gives_its_credit_back) {
  rig r(1);
  r.w.gives[0][3] = false;
  r.gids[0].cr_write(gid::cr::num_vfs, 4);
  icm::responder_context none = context(9), other = context(v1_entry), foreign = context(foreign_entry),
                         mixed = context(v6_entry);
  other.dest.flags = icm::path_flag_roce_v2;
  std::memcpy(mixed.dest.remote_gid, context().dest.remote_gid, 16);
  for (unsigned i = 0; i < 2; ++i)
    for (const auto& c : {none, other, foreign, mixed})
      r.w.starts[responses].push_back({0, r.job(c, operation::read_response_only, 7, 64)});
  foreign.function = 1;  // its owner
  r.w.starts[responses].push_back({0, r.job(foreign, operation::read_response_only, 8, 64)});
  r.run(100);
  EXPECT_EQ(r.count("sourceless"), 8u);
  for (const char* why : {"invalid", "version", "function", "family"})
    EXPECT_EQ(r.count((std::string("source_gid.") + why).c_str()), 2u) << why;
  EXPECT_EQ(r.count("source_gid.look_ups"), 9u);
  EXPECT_EQ(r.psns(), (std::vector<std::uint32_t>{8}));
  ASSERT_EQ(r.w.frames.size(), 1u);
  EXPECT_EQ(r.w.frames[0].first - r.w.pushed[0].at, 8 * 2 + way);
}

// Bytes by scapy 2.5.0 (Ether, Dot1Q, IP, IPv6, UDP and contrib.roce's GRH, BTH, AETH), up to the ICRC.
struct example {
  const char* name;
  std::uint8_t entry;
  bool vlan;
  operation op;
  std::uint32_t psn, msn;
  std::uint8_t syndrome;
  std::vector<std::uint8_t> payload;
  const char* bytes;
};
const example examples[] = {
    {"ack_in_a_vlan",
     v4_entry,
     true,
     operation::acknowledge,
     0x64,
     0xfedc,
     0x1f,
     {},
     "02000000000202000000000181006007080045200030000040004011269b0a0000010a000002c12312b7001c00001140"
     "ffff00001234000000641f00fedc"},
    {"nak_by_ipv6",
     v6_entry,
     false,
     operation::acknowledge,
     0xffffff,
     0x123456,
     0x62,
     {},
     "02000000000202000000000186dd62012345001c1140fe80000000000000000000fffe000001fe800000000000000000"
     "00fffe000002c12312b7001c00001140ffff0000123400ffffff62123456"},
    {"atomic_by_v1",
     v1_entry,
     false,
     operation::atomic_acknowledge,
     0x777,
     5,
     0x1f,
     {},
     "020000000002020000000001891562012345001c1b40fe80000000000000000000fffe000001fe800000000000000000"
     "00fffe0000021240ffff00001234000007771f0000050123456789abcdef"},
    {"read_response_with_pad",
     v4_entry,
     false,
     operation::read_response_only,
     0x800000,
     9,
     0x1f,
     {1, 2, 3, 4, 5},
     "02000000000202000000000108004520003800004000401126930a0000010a000002c12312b7002400001070ffff0000"
     "1234008000001f0000090102030405000000"},
    {"read_response_without_aeth",
     v4_entry,
     false,
     operation::read_response_middle,
     0x800001,
     9,
     0x1f,
     {1, 2, 3, 4},
     "020000000002020000000001080045200030000040004011269b0a0000010a000002c12312b7001c00000e40ffff0000"
     "12340080000101020304"}};

class answer_headers : public testing::TestWithParam<example> {};
TEST_P(answer_headers, are_those_of_another_implementation) {
  const example& e = GetParam();
  rig r;
  icm::responder_context c = context(e.entry);
  if (e.vlan) c.dest.flags |= icm::path_flag_vlan;
  answer_job j = r.job(c, e.op, e.psn, static_cast<std::uint32_t>(e.payload.size()));
  std::copy(e.payload.begin(), e.payload.end(), j.frame->buffer.begin() + payload::frame::payload_start);
  j.syndrome = e.syndrome;
  j.msn = e.msn;
  const std::uint32_t length = answer_length(j);
  r.w.starts[responses].push_back({0, std::move(j)});
  r.run(100);
  ASSERT_EQ(r.w.frames.size(), 1u);
  const payload::frame& f = *r.w.frames[0].second;
  EXPECT_EQ(f.length, length) << "what a rate limiter is told";
  EXPECT_EQ(std::vector<std::uint8_t>(f.data(), f.data() + f.length - 4), wire::test::from_hex(e.bytes));
  EXPECT_TRUE(f.insert_icrc);
  EXPECT_EQ(f.source, static_cast<std::uint8_t>(egress_source::responder));
  EXPECT_EQ(f.gid_index, e.entry);
}
INSTANTIATE_TEST_SUITE_P(scapy, answer_headers, testing::ValuesIn(examples),
                         [](const auto& tested) { return std::string(tested.param.name); });

class answer_load : public testing::TestWithParam<std::tuple<unsigned, unsigned, unsigned>> {};

void start_all(rig& r, unsigned length, unsigned idle, unsigned each) {
  unsigned seed = 12345;
  for (unsigned i = 0; i < each; ++i)
    for (unsigned u = 0; u < 3; ++u) {
      seed = seed * 1103515245 + 12345;
      const unsigned way_out = seed >> 16;
      r.start(u, 1000 * u + i, static_cast<std::uint8_t>(way_out % 3 * 2), u == responses ? idle : 2 * idle,
              static_cast<std::uint8_t>(way_out / 3 % 2), length);
    }
}

TEST_P(answer_load, every_answer_leaves_whole_once_and_in_the_order_of_its_priority) {
  const auto [length, idle, every] = GetParam();
  constexpr unsigned each = 30;
  rig r(2);
  r.w.every = every;
  start_all(r, length, idle, each);
  r.run(3 * each * (2 * idle + every + 1) + 2000);
  ASSERT_EQ(r.w.frames.size(), 3 * each);
  std::map<std::pair<unsigned, unsigned>, std::vector<std::uint32_t>> handed, left;
  for (const auto& h : r.w.pushed) handed[{h.port, h.priority}].push_back(h.psn);
  for (const auto& [at, f] : r.w.frames) {
    const std::uint32_t psn = f->packet.bth.psn.value();
    left[{f->port, f->priority}].push_back(psn);
    if (f->packet.bth.opcode == wire::opcode_cnp) continue;
    wire::packet p;
    ASSERT_EQ(wire::decode(f->data(), f->length, p), wire::decode_error::none);
    ASSERT_EQ(p.payload_length, psn < 1000 ? length : 0);
    for (std::uint32_t i = 0; i < p.payload_length; ++i)
      ASSERT_EQ(f->data()[p.payload_offset + i], static_cast<std::uint8_t>(i * 3 + psn + 1)) << i;
  }
  EXPECT_EQ(left, handed);
  EXPECT_EQ(r.count("responses") + r.count("acknowledgements") + r.count("notifications"), 3 * each);
}
INSTANTIATE_TEST_SUITE_P(length_by_idle_by_back_pressure, answer_load,
                         testing::Combine(testing::Values(0u, 5u, 1024u, 4096u), testing::Values(0u, 1u, 9u),
                                          testing::Values(1u, 3u, 40u)));

/// Cycles and counters of a loaded run, as text.
std::string history_of(const sim::timebase::options& opts) {
  rig r(2, 2, opts);
  r.w.every = 3;
  start_all(r, 64, 1, 30);
  r.run(2000);
  std::string all;
  for (const auto& [at, f] : r.w.frames)
    all += std::to_string(at) + ":" + std::to_string(f->packet.bth.psn.value()) + " ";
  return all + std::to_string(r.count("credit_wait_cycles"));
}

TEST(answer_transmit, is_the_same_however_blocks_sleep_and_are_ordered) {
  const auto run = [](const sim::timebase::options& opts) {
    return rnic::bench::in_child([opts] { return history_of(opts); });
  };
  const std::string asleep = run({});
  EXPECT_GT(asleep.size(), 400u);
  sim::timebase::options awake, shuffled;
  awake.always_tick = true;
  shuffled.shuffle_seed = 77;
  EXPECT_EQ(run(awake), asleep);
  EXPECT_EQ(run(shuffled), asleep);
}

}  // namespace
}  // namespace rnic::transport::test::answers
