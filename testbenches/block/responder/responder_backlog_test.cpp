// SPDX-License-Identifier: Apache-2.0
// READs that have no place on chip: they wait in host memory and nothing waits for them.
#include <numeric>

#include "testbenches/bench/child.h"
#include "testbenches/block/responder/bench.h"

namespace rnic::transport::test {
namespace {

using wire::operation;

std::uint64_t kept(const bench& b) { return b.stats.value("responder.reads_held"); }

/// The port's egress queue, which was full, is empty.
void give_back(bench& b) {
  b.s.give_credits = true;
  for (unsigned i = 0; i < responder_config{}.egress_frames; ++i) {
    b.core.as_in_tick([&b] { b.s.credit.push({0, 3}); });
    b.run(2);
  }
}

std::vector<std::uint32_t> psns(const bench& b, std::uint32_t peer = peer_qpn) {
  std::vector<std::uint32_t> list;
  for (const auto& a : b.s.answers)
    if (a->bth.dest_qp == peer) list.push_back(a->bth.psn.value());
  return list;
}
std::vector<std::uint32_t> from_to(std::uint32_t first, std::uint32_t end) {
  std::vector<std::uint32_t> list(end - first);
  std::iota(list.begin(), list.end(), first);
  return list;
}

void put_qps(bench& b, unsigned n) {
  for (unsigned i = 0; i < n; ++i) {
    icm::responder_context c = bench::context();
    c.qpn = qpn + i;
    c.remote_qpn = peer_qpn + i;
    b.put(c);
  }
}
void read_on(bench& b, unsigned qp, std::uint32_t psn, std::uint64_t va, std::uint32_t length) {
  b.send(operation::read_request, psn, {}, [&](wire::packet& p) {
    p.bth.dest_qp = qpn + qp;
    p.reth = {va, rkey, length};
  });
}

TEST(responder_backlog, reads_that_waited_are_answered_in_order_with_their_bytes) {
  bench b({}, places(1));
  fill(b, 20000);
  for (unsigned i = 0; i < 4; ++i) b.read(100 + 4 * i, data_va + 4096 * i, 4096);
  b.write(operation::write_only, 116, bench::pattern(8), data_va + 18000, 8);
  b.run(12000);
  EXPECT_EQ(kept(b), 3u);
  EXPECT_EQ(psns(b), from_to(100, 117));
  for (unsigned i = 0; i < 16; ++i) {
    EXPECT_EQ(b.s.answers[i].payload(), b.data(1024 * i, 1024)) << i;
    if (i % 4 == 0) {
      EXPECT_EQ(b.s.answers[i]->aeth.msn, i / 4 + 1);
    }
  }
  EXPECT_EQ(b.s.answers.back()->aeth.msn, 5u);
  EXPECT_TRUE(b.s.errors.empty());
}

/// What waits lies in the QP's own entries: its ring and its context leave the chip and come back.
TEST(responder_backlog, reads_wait_in_host_memory) {
  responder_config cfg = places(1);
  cfg.histories.entries = cfg.histories.ways = 2;
  cfg.contexts.entries = cfg.contexts.ways = 4;  // two
  cfg.flows = 4;
  bench b({}, cfg);
  put_qps(b, 5);
  fill(b, 20000);
  b.s.give_credits = false;
  read_on(b, 4, 100, data_va, 1024 * 20);  // more packets than there are credits
  for (unsigned n = 0; n < 3; ++n)
    for (unsigned i = 0; i < 4; ++i) read_on(b, i, 100 + n, data_va + 1024 * (3 * i + n), 1000);
  b.run(20000);
  EXPECT_EQ(kept(b), 12u);
  give_back(b);
  b.run(40000);
  EXPECT_GT(b.stats.value("responder.histories.replaced_dirty"), 4u);
  EXPECT_GT(b.stats.value("responder.contexts.replaced_dirty"), 4u);
  std::array<unsigned, 5> answered{};
  for (const auto& a : b.s.answers) {
    const unsigned i = a->bth.dest_qp - peer_qpn;
    const unsigned n = answered.at(i)++;
    EXPECT_EQ(a->bth.psn.value(), 100 + n);
    if (i != 4) {
      EXPECT_EQ(a.payload(), b.data(1024 * (3 * i + n), 1000));
    }
  }
  EXPECT_EQ(answered, (std::array<unsigned, 5>{3, 3, 3, 3, 20}));
}

/// An entry as it lies in host memory: 64 bytes, host byte order.
TEST(responder_backlog, an_entry_names_the_request) {
  responder_config cfg = places(1);
  cfg.histories.entries = cfg.histories.ways = 2;
  bench b({}, cfg);
  put_qps(b, 3);
  b.s.give_credits = false;
  read_on(b, 0, 100, data_va, 1024 * 40);  // more packets than there are credits
  read_on(b, 0, 140, data_va + 0x77, 0x345);
  for (unsigned i = 1; i < 3; ++i) read_on(b, i, 100, data_va + 9, 10);  // other rings take the places on chip
  b.run(6000);
  std::array<std::uint32_t, 8> e{};
  std::memcpy(e.data(), b.s.memory.data() + history_bus + qpn * 1024, sizeof e);
  EXPECT_EQ(e[0], 1u << 24 | 140u) << "a READ, its PSN";
  EXPECT_EQ(e[1], 2u) << "MSN";
  EXPECT_EQ(e[2], rkey);
  EXPECT_EQ(e[3], 0x345u);
  EXPECT_EQ(e[4] | std::uint64_t{e[5]} << 32, data_va + 0x77);
  EXPECT_EQ(e[6], 7u) << "protection domain";
}

/// The responses of many QPs cannot leave, which holds nothing up that arrives for others.
TEST(responder_backlog, requests_behind_reads_go_on_when_responses_cannot_leave) {
  responder_config cfg = places(4);
  cfg.flows = 4;
  bench b({}, cfg);
  put_qps(b, 20);
  fill(b, 70000);
  b.s.give_credits = false;
  for (unsigned i = 0; i < 19; ++i)
    for (unsigned n = 0; n < 4; ++n) read_on(b, i, 100 + 16 * n, data_va + 1024 * i, 16384);
  b.send(operation::write_only, 100, bench::pattern(8, 9), [&](wire::packet& p) {
    p.bth.dest_qp = qpn + 19;
    p.reth = {data_va + 80000, rkey, 8};
  });
  b.run(20000);
  EXPECT_EQ(b.data(80000, 8), bench::pattern(8, 9));
  EXPECT_EQ(b.s.answers.size(), cfg.egress_frames);
  give_back(b);
  b.run(200000);
  EXPECT_EQ(b.s.answers.size(), 19u * 4 * 16 + 1);
  for (unsigned i = 0; i < 19; ++i) EXPECT_EQ(psns(b, peer_qpn + i), from_to(100, 164)) << i;
}

/// An ACK behind READs in host memory keeps no place: as many QPs as there are have one, and others are still served.
TEST(responder_backlog, answers_behind_what_waits_leave_the_chip_with_their_queue_pairs) {
  responder_config cfg = places(2);
  cfg.flows = 4;
  bench b({}, cfg);
  constexpr unsigned qps = 12;
  put_qps(b, qps);
  fill(b, 70000);
  b.s.give_credits = false;
  for (unsigned i = 0; i + 1 < qps; ++i) {
    read_on(b, i, 100, data_va, 1024 * 10);
    read_on(b, i, 110, data_va, 1024 * 2);
    b.send(operation::write_only, 112, bench::pattern(8, i), [&](wire::packet& p) {
      p.bth.dest_qp = qpn + i;
      p.bth.ack_request = true;
      p.reth = {data_va + 80000 + 8 * i, rkey, 8};
    });
    b.run(300);
  }
  b.send(operation::write_only, 100, bench::pattern(8, 99), [&](wire::packet& p) {
    p.bth.dest_qp = qpn + qps - 1;
    p.reth = {data_va + 90000, rkey, 8};
  });
  b.run(20000);
  EXPECT_EQ(b.data(90000, 8), bench::pattern(8, 99));
  EXPECT_GT(kept(b), 2u * (qps - 3));
  give_back(b);
  b.run(200000);
  for (unsigned i = 0; i + 1 < qps; ++i) {
    EXPECT_EQ(b.data(80000 + 8 * i, 8), bench::pattern(8, i)) << i;
    EXPECT_EQ(psns(b, peer_qpn + i), from_to(100, 113)) << i;
  }
  EXPECT_TRUE(b.s.errors.empty());
}

/// The same of a NAK: of a lost packet, and of a SEND without a receive.
TEST(responder_backlog, naks_behind_what_waits_come_back_as_they_were) {
  responder_config cfg = places(1);
  cfg.flows = 2;
  bench b({}, cfg);
  put_qps(b, 6);
  fill(b, 70000);
  b.s.give_credits = false;
  read_on(b, 5, 100, data_va, 1024 * 20);
  for (unsigned i = 0; i < 5; ++i) {
    read_on(b, i, 100, data_va, 1024);
    b.send(i % 2 == 0 ? operation::write_only : operation::send_only, i % 2 == 0 ? 102 : 101, bench::pattern(8),
           [&](wire::packet& p) {
             p.bth.dest_qp = qpn + i;
             if (i % 2 == 0) p.reth = {data_va + 80000, rkey, 8};
           });
    b.run(1500);
  }
  b.run(20000);
  EXPECT_EQ(kept(b), 5u);
  give_back(b);
  b.run(60000);
  for (unsigned i = 0; i < 5; ++i) {
    EXPECT_EQ(psns(b, peer_qpn + i), from_to(100, 102)) << i;
    for (const auto& a : b.s.answers)
      if (a->bth.dest_qp == peer_qpn + i && a->bth.psn.value() == 101) {
        EXPECT_EQ(a->bth.opcode, 0x11);
        EXPECT_EQ(a->aeth.syndrome, i % 2 == 0 ? 0x60 : 0x20 | bench::context().rnr_timer) << i;
      }
  }
}

/// PSNs and cycles of all answers of a run with random READs, WRITEs and repetitions on eight QPs.
std::string history_of(const sim::timebase::options& opts, std::uint32_t seed) {
  responder_config cfg = places(3);
  cfg.flows = 4;
  cfg.histories.entries = cfg.histories.ways = 2;
  cfg.contexts.entries = cfg.contexts.ways = 4;
  bench b(opts, cfg);
  put_qps(b, 8);
  fill(b, 20000);
  const auto random = [&](std::uint32_t n) { return (seed = seed * 1664525 + 1013904223, (seed >> 8) % n); };
  std::array<std::uint32_t, 8> next;
  next.fill(100);
  for (unsigned round = 0; round < 30; ++round) {
    for (unsigned k = 0; k < 6; ++k) {
      const unsigned i = random(8);
      const std::uint32_t length = random(4000) + 1;
      if (random(5) == 0 && next[i] > 103) read_on(b, i, next[i] - 3, data_va, 3 * 1024);
      read_on(b, i, next[i], data_va + random(10000), length);
      next[i] += (length - 1) / 1024 + 1;
    }
    b.run(random(1500) + 200);
  }
  b.run(60000);
  std::string seen = std::to_string(kept(b)) + " kept, " + std::to_string(b.stats.value("responder.histories.misses")) +
                     " misses, " + std::to_string(b.stats.value("responder.drop.duplicate_read")) + " dropped";
  for (const auto& a : b.s.answers)
    seen +=
        "\n" + std::to_string(a.at) + ": " + std::to_string(a->bth.dest_qp) + " " + std::to_string(a->bth.psn.value());
  return seen;
}

/// With some of these seeds four refused queue pairs, whose NAKs wait behind READs in host memory, have all places
/// while others are before them in the backlog.
class responder_backlog_random : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(seed, responder_backlog_random, ::testing::Range(1u, 25u));

TEST_P(responder_backlog_random, sleep_and_order_of_blocks_are_invisible) {
  const auto run = [](sim::timebase::options opts) {
    return rnic::bench::in_child([opts] { return history_of(opts, GetParam()); });
  };
  const std::string slept = run({});
  EXPECT_NE(slept.compare(0, 2, "0 "), 0) << "nothing has waited";
  EXPECT_GT(slept.size(), 2000u);
  EXPECT_EQ(run({true, 0}), slept);
  EXPECT_EQ(run({false, 77}), slept);
}

/// READs, some on chip and some not, are under way for so many cycles when the requester goes back into the first.
class responder_backlog_gone_back : public ::testing::TestWithParam<std::tuple<unsigned, unsigned>> {};
INSTANTIATE_TEST_SUITE_P(cycles, responder_backlog_gone_back,
                         ::testing::Combine(::testing::Values(300, 410, 480, 560, 640, 730, 850, 1000, 1300),
                                            ::testing::Values(2, 3)));

TEST_P(responder_backlog_gone_back, order_holds) {
  bench b({}, places(std::get<1>(GetParam())));
  fill(b, 20000);
  for (unsigned i = 0; i < 4; ++i) b.read(100 + 4 * i, data_va + 4096 * i, 4096);
  b.run(std::get<0>(GetParam()));
  b.read(102, data_va + 2048, 2048);
  b.read(112, data_va + 4096 * 3, 4096);
  b.write(operation::write_only, 116, bench::pattern(8), data_va + 18000, 8);
  b.run(14000);
  EXPECT_GT(kept(b), 0u);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 116u);
  std::uint32_t next = 100, msn = 0;  // each for the first time in order, and what is complete stays so
  for (const auto& a : b.s.answers) {
    EXPECT_LE(a->bth.psn.value(), next);
    if (a->bth.psn.value() == next) ++next;
    if (a->bth.opcode == 0x0e) continue;  // a middle has no MSN
    EXPECT_GE(a->aeth.msn, msn);
    msn = a->aeth.msn;
  }
  EXPECT_EQ(next, 117u);
  EXPECT_TRUE(b.s.errors.empty());
}

TEST(responder_backlog, more_than_agreed_on_are_refused_wherever_the_others_wait) {
  bench b({}, places(1));  // the context allows four
  b.s.give_credits = false;
  for (unsigned i = 0; i < 5; ++i) b.read(100 + 16 * i, data_va, 16384);
  b.run(6000);
  EXPECT_EQ(kept(b), 3u);
  ASSERT_EQ(b.s.errors.size(), 1u);
  give_back(b);
  b.run(20000);
  std::vector<std::uint32_t> all = from_to(100, 164);
  all.push_back(164);
  EXPECT_EQ(psns(b), all) << "what was accepted before is answered first";
  EXPECT_EQ(b.s.answers.back()->aeth.syndrome, 0x61);
}

TEST(responder_backlog, a_key_that_fails_ends_the_reads_that_wait) {
  bench b({}, places(1));
  b.s.give_credits = false;
  b.read(100, data_va, 1024 * 20);
  b.read(120, data_va, 1024);
  b.read(121, data_va, 1024);
  b.run(4000);
  ASSERT_EQ(kept(b), 2u);
  b.s.regions.erase(rkey);
  give_back(b);
  b.run(8000);
  EXPECT_EQ(psns(b), from_to(100, 121));
  EXPECT_EQ(b.s.answers.back()->aeth.syndrome, 0x62);
  EXPECT_EQ(b.s.errors.size(), 1u);
}

/// As with those on chip: what a halt finds is given up, and the peer's repetition is executed.
TEST(responder_backlog, a_halt_gives_up_what_waits) {
  responder_config cfg = places(2);
  cfg.flows = 2;
  bench b({}, cfg);
  put_qps(b, 2);
  fill(b, 20000);
  b.s.give_credits = false;
  read_on(b, 0, 100, data_va, 16384);
  read_on(b, 0, 116, data_va, 1024);
  read_on(b, 1, 100, data_va, 1024);
  read_on(b, 1, 101, data_va, 1024);
  b.run(4000);
  ASSERT_GE(kept(b), 2u);
  b.r.cr_write(cr::qp_select, qpn + 1);
  b.r.cr_write(cr::qp_command, cr::qp_command_halt);
  b.run(2000);
  ASSERT_EQ(b.r.cr_read(cr::qp_status), 0u);
  b.r.cr_write(cr::qp_command, cr::qp_command_release);
  give_back(b);
  b.run(8000);
  EXPECT_EQ(psns(b), from_to(100, 117));
  EXPECT_EQ(psns(b, peer_qpn + 1), from_to(100, 101)) << "what was handed over waits for a credit and leaves";
  read_on(b, 1, 100, data_va, 1024);
  read_on(b, 1, 101, data_va, 1024);
  read_on(b, 1, 102, data_va, 1024);
  b.run(8000);
  EXPECT_EQ(psns(b, peer_qpn + 1), (std::vector<std::uint32_t>{100, 100, 101, 102}));
}

TEST(responder_backlog, atomics_go_behind_reads_that_wait) {
  bench b({}, places(1));
  icm::responder_context c = bench::context();
  c.access |= icm::responder_access_atomic;
  b.put(c);
  fill(b, 20000);
  b.read(100, data_va, 4096);
  b.read(104, data_va + 5, 8);
  const std::vector<std::uint8_t> before = b.data(5, 8);
  b.send(operation::fetch_add, 105, {}, [&](wire::packet& p) { p.atomic = {data_va + 5, rkey, 1, 0, 0, 0}; });
  b.read(106, data_va + 5, 8);
  b.run(8000);
  EXPECT_EQ(psns(b), from_to(100, 107));
  ASSERT_EQ(b.s.answers.size(), 7u);
  EXPECT_EQ(b.s.answers[4].payload(), before);
  EXPECT_EQ(b.s.answers[6].payload(), b.data(5, 8));
  EXPECT_NE(b.s.answers[6].payload(), before);
}

/// Software that gave the QP no entries: a READ waits for its place on chip.
TEST(responder_backlog, without_memory_a_read_waits_where_it_is) {
  bench b({}, places(1));
  b.map.layout(icm::table::rdmarc).entry_bytes = 32;
  fill(b, 20000);
  for (unsigned i = 0; i < 4; ++i) b.read(100 + i, data_va + 1024 * i, 1024);
  b.run(8000);
  EXPECT_EQ(kept(b), 0u);
  EXPECT_EQ(psns(b), from_to(100, 104));
}

}  // namespace
}  // namespace rnic::transport::test
