// SPDX-License-Identifier: Apache-2.0
// Atomics that have no place on chip: they wait in host memory, nothing waits for them, and each is executed once, in
// the order of its queue pair.
#include <array>
#include <cstring>
#include <map>
#include <string>

#include "testbenches/bench/child.h"
#include "testbenches/block/responder/bench.h"

namespace rnic::transport::test {
namespace {

using wire::operation;

struct waiting_atomics : bench {
  waiting_atomics(const responder_config& cfg, unsigned qps, const sim::timebase::options& opts = {})
      : bench(opts, cfg) {
    for (unsigned i = 0; i < qps; ++i) {
      icm::responder_context c = context();
      c.qpn = qpn + i;
      c.remote_qpn = peer_qpn + i;
      c.access |= icm::responder_access_atomic;
      c.log_max_rd_atomic = 4;
      put(c);
    }
  }
  void atomic(operation what, unsigned qp, std::uint32_t psn, const wire::atomic_eth& a, bool masked = false) {
    send(what, psn, {}, [&](wire::packet& p) {
      p.bth.dest_qp = qpn + qp;
      p.atomic = a;
      if (masked) p.bth.opcode = wire::make_opcode(wire::transport::manufacturer, what);
    });
  }
  void add(unsigned qp, std::uint32_t psn, std::uint64_t addend = 1) {
    atomic(operation::fetch_add, qp, psn, {word_of(qp), rkey, addend, 0, 0, 0});
  }
  void read_on(unsigned qp, std::uint32_t psn, std::uint32_t length) {
    send(operation::read_request, psn, {}, [&](wire::packet& p) {
      p.bth.dest_qp = qpn + qp;
      p.reth = {data_va + 0x1000, rkey, length};
    });
  }
  static std::uint64_t word_of(unsigned qp) { return aligned_va + 8 * qp; }
  std::uint64_t word(unsigned qp = 0) const {
    std::uint64_t v = 0;
    std::memcpy(&v, s.memory.data() + data_bus + 0x128 + 8 * std::size_t{qp}, sizeof v);
    return v;
  }
  void set_word(std::uint64_t v) { std::memcpy(s.memory.data() + data_bus + 0x128, &v, sizeof v); }
  std::uint64_t kept() const { return stats.value("responder.reads_held"); }
  /// The port's egress queue, which was full, is empty.
  void give_back() {
    s.give_credits = true;
    for (unsigned i = 0; i < responder_config{}.egress_frames; ++i) {
      core.as_in_tick([this] { s.credit.push({0, 3}); });
      run(2);
    }
  }
};

/// Answers of many QPs cannot leave, which holds nothing up that arrives for others: so two adapters that pause each
/// other while each has more atomics for the other than this one has places for go on.
TEST(responder_atomic_backlog, requests_behind_atomics_go_on_when_answers_cannot_leave) {
  responder_config cfg = places(4);
  cfg.flows = 4;
  waiting_atomics b(cfg, 20);
  b.s.give_credits = false;
  for (std::uint32_t n = 0; n < 8; ++n)
    for (unsigned i = 0; i < 19; ++i) b.add(i, 100 + n);
  b.send(operation::write_only, 100, bench::pattern(8, 9), [&](wire::packet& p) {
    p.bth.dest_qp = qpn + 19;
    p.reth = {data_va + 80000, rkey, 8};
  });
  b.run(60000);
  EXPECT_EQ(b.data(80000, 8), bench::pattern(8, 9));
  EXPECT_EQ(b.s.answers.size(), cfg.egress_frames);
  EXPECT_GT(b.kept(), 19u * 8 / 2);
  b.give_back();
  b.run(200000);
  ASSERT_EQ(b.s.answers.size(), 19u * 8 + 1);
  std::array<std::uint32_t, 20> next{};
  for (const auto& a : b.s.answers) {
    const unsigned i = a->bth.dest_qp - peer_qpn;
    if (i == 19) continue;
    EXPECT_EQ(a->bth.psn.value(), 100 + next.at(i));
    EXPECT_EQ(a->atomic_original, next.at(i));
    ++next.at(i);
  }
  for (unsigned i = 0; i < 19; ++i) EXPECT_EQ(b.word(i), 8u) << i;
  EXPECT_TRUE(b.s.errors.empty());
}

/// All four operations keep their operands.
TEST(responder_atomic_backlog, operands_come_back) {
  waiting_atomics b(places(1), 1);
  b.set_word(0x1111'2222'3333'4444);
  b.read_on(0, 100, 4096);
  b.atomic(operation::fetch_add, 0, 104, {aligned_va, rkey, 0x0f00'0000'0000'0001, 0, 0, 0});
  b.atomic(operation::compare_swap, 0, 105, {aligned_va, rkey, 0xaaaa'bbbb'cccc'dddd, 0x2011'2222'3333'4445, 0, 0});
  b.atomic(operation::compare_swap, 0, 106,
           {aligned_va, rkey, 0x0000'0000'0000'1234, 0xffff'ffff'ffff'dddd, 0xffff, 0xff00}, true);
  b.atomic(operation::fetch_add, 0, 107, {aligned_va, rkey, 0x0000'0000'0000'f001, 0x8000, 0, 0}, true);
  b.atomic(operation::compare_swap, 0, 108, {aligned_va, rkey, 1, 2, 0, 0});
  b.run(20000);
  EXPECT_EQ(b.kept(), 5u);
  ASSERT_EQ(b.s.answers.size(), 9u);
  const std::uint64_t originals[] = {0x1111'2222'3333'4444, 0x2011'2222'3333'4445, 0xaaaa'bbbb'cccc'dddd,
                                     0xaaaa'bbbb'cccc'1234, 0xaaaa'bbbb'cccc'0235};
  for (unsigned i = 0; i < 5; ++i) {
    EXPECT_EQ(b.s.answers[4 + i]->bth.opcode, 0x12);
    EXPECT_EQ(b.s.answers[4 + i]->bth.psn.value(), 104 + i);
    EXPECT_EQ(b.s.answers[4 + i]->aeth.msn, 2 + i);
    EXPECT_EQ(b.s.answers[4 + i]->atomic_original, originals[i]) << i;
  }
  EXPECT_EQ(b.word(), originals[4]);
}

/// An entry as it lies in host memory: 64 bytes, host byte order.
TEST(responder_atomic_backlog, an_entry_names_the_operation) {
  responder_config cfg = places(1);
  cfg.histories.entries = cfg.histories.ways = 2;
  waiting_atomics b(cfg, 3);
  b.s.give_credits = false;
  b.read_on(0, 100, 1024 * 40);  // more packets than there are credits
  b.atomic(operation::compare_swap, 0, 140, {aligned_va, rkey, 5, 6, 7, 8}, true);
  for (unsigned i = 1; i < 3; ++i) b.add(i, 100);  // other rings take the places on chip
  b.run(6000);
  std::array<std::uint64_t, 8> e{};
  std::memcpy(e.data(), b.s.memory.data() + history_bus + qpn * 1024, sizeof e);
  EXPECT_EQ(static_cast<std::uint32_t>(e[0]), 3u << 24 | 140u) << "compare and swap, its PSN";
  EXPECT_EQ(e[0] >> 32, 2u) << "MSN";
  EXPECT_EQ(static_cast<std::uint32_t>(e[1]), rkey);
  EXPECT_EQ(e[2], aligned_va);
  EXPECT_EQ(static_cast<std::uint32_t>(e[3]), 7u) << "protection domain";
  EXPECT_EQ(e[4], 5u);
  EXPECT_EQ(e[5], 6u);
  EXPECT_EQ(e[6], 7u);
  EXPECT_EQ(e[7], 8u);
}

/// The key is looked at when the atomic comes back, and what was accepted before it is still answered.
TEST(responder_atomic_backlog, a_key_that_was_withdrawn_meanwhile_lets_nothing_in) {
  waiting_atomics b(places(1), 1);
  b.s.give_credits = false;
  b.read_on(0, 100, 1024 * 20);
  b.add(0, 120);
  b.add(0, 121);
  b.run(6000);
  ASSERT_EQ(b.kept(), 2u);
  b.s.regions[rkey].rights &= ~(1u << static_cast<unsigned>(icm::access::remote_atomic));
  b.give_back();
  b.run(20000);
  ASSERT_EQ(b.s.answers.size(), 21u);
  EXPECT_EQ(b.s.answers.back()->bth.opcode, 0x11);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 120u);
  EXPECT_EQ(b.s.answers.back()->aeth.syndrome, 0x62);
  ASSERT_EQ(b.s.events.size(), 1u);
  EXPECT_EQ(b.s.events[0].type, 0x11);
  EXPECT_EQ(b.word(), 0u);
  EXPECT_EQ(b.s.errors.size(), 1u);
}

/// One that waits is answered once, however often it is repeated; one that was executed before is answered again, ahead
/// of those that wait.
TEST(responder_atomic_backlog, repetitions) {
  waiting_atomics b(places(9), 2);
  b.add(0, 100);
  b.run(2000);
  ASSERT_EQ(b.s.answers.size(), 1u);
  b.s.give_credits = false;
  for (unsigned n = 0; n < 8; ++n) b.read_on(1, 100 + 20 * n, 1024 * 20);  // all places that new requests get
  b.run(4000);
  for (std::uint32_t n = 1; n < 4; ++n) b.add(0, 100 + n);
  b.run(2000);
  ASSERT_EQ(b.kept(), 3u);
  b.add(0, 100);
  b.add(0, 101);
  b.add(0, 102);
  b.run(2000);
  EXPECT_EQ(b.count("drop.duplicate_atomic"), 2u) << "their answers are to come";
  b.give_back();
  b.run(40000);
  std::vector<std::pair<std::uint32_t, std::uint64_t>> answers;
  for (const auto& a : b.s.answers)
    if (a->bth.dest_qp == peer_qpn) answers.emplace_back(a->bth.psn.value(), a->atomic_original);
  const std::vector<std::pair<std::uint32_t, std::uint64_t>> wanted{{100, 0}, {100, 0}, {101, 1}, {102, 2}, {103, 3}};
  EXPECT_EQ(answers, wanted);
  EXPECT_EQ(b.word(), 4u);
}

/// What a halt finds is given up, and the peer's repetition is executed.
TEST(responder_atomic_backlog, a_halt_gives_up_what_waits) {
  waiting_atomics b(places(1), 2);
  b.s.give_credits = false;
  b.read_on(1, 100, 1024 * 20);
  for (std::uint32_t n = 0; n < 3; ++n) b.add(0, 100 + n, 1 + n);
  b.run(6000);
  ASSERT_EQ(b.kept(), 3u);
  b.r.cr_write(cr::qp_select, qpn);
  b.r.cr_write(cr::qp_command, cr::qp_command_halt);
  b.run(2000);
  ASSERT_EQ(b.r.cr_read(cr::qp_status), 0u);
  b.r.cr_write(cr::qp_command, cr::qp_command_release);
  b.give_back();
  b.run(20000);
  EXPECT_EQ(b.word(), 0u);
  for (std::uint32_t n = 0; n < 3; ++n) b.add(0, 100 + n, 1 + n);
  b.run(20000);
  EXPECT_EQ(b.word(), 0u) << "repeated, and no answer is known: they were accepted once";
  EXPECT_EQ(b.count("drop.duplicate_atomic"), 3u);
}

/// Answers, cycles and counters of a run with random atomics, READs and repetitions on eight QPs; each atomic adds 1 to
/// its QP's word.
std::string atomic_history_of(const sim::timebase::options& opts, std::uint32_t seed) {
  responder_config cfg = places(3);
  cfg.flows = 4;
  cfg.histories.entries = cfg.histories.ways = 2;
  cfg.contexts.entries = cfg.contexts.ways = 4;
  constexpr unsigned qps = 8;
  waiting_atomics b(cfg, qps, opts);
  const auto random = [&](std::uint32_t n) { return (seed = seed * 1664525 + 1013904223, (seed >> 8) % n); };
  std::array<std::uint32_t, qps> next, adds{};
  next.fill(100);
  std::array<std::map<std::uint32_t, std::uint64_t>, qps> wanted;  // what the atomic of a PSN finds
  for (unsigned round = 0; round < 30; ++round) {
    for (unsigned k = 0; k < 6; ++k) {
      const unsigned i = random(qps);
      if (random(6) == 0 && !wanted[i].empty()) b.add(i, wanted[i].rbegin()->first);
      if (random(3) == 0) {
        const std::uint32_t length = random(3000) + 1;
        b.read_on(i, next[i], length);
        next[i] += (length - 1) / 1024 + 1;
      } else {
        wanted[i][next[i]] = adds[i]++;
        b.add(i, next[i]++);
      }
    }
    b.run(random(1500) + 1200);
  }
  b.run(80000);
  std::string seen = std::to_string(b.kept()) + " kept, " + std::to_string(b.count("drop.duplicate_atomic")) +
                     " dropped, " + std::to_string(b.stats.value("responder.histories.misses")) + " misses";
  const auto fault = [&seen](const std::string& what, unsigned i) {
    seen += "\nfault: " + what + ", " + std::to_string(i);
  };
  std::array<std::uint32_t, qps> answered{};
  for (const auto& a : b.s.answers) {
    const unsigned i = a->bth.dest_qp - peer_qpn;
    seen += "\n" + std::to_string(a.at) + ": " + std::to_string(i) + " " + std::to_string(a->bth.psn.value());
    if (a->bth.opcode != 0x12) continue;
    if (a->atomic_original != wanted.at(i).at(a->bth.psn.value())) fault("an answer is that of another", i);
    ++answered.at(i);
  }
  for (unsigned i = 0; i < qps; ++i) {
    if (b.word(i) != adds[i]) fault("not executed once each", i);
    if (answered[i] < adds[i]) fault("not answered", i);
  }
  if (!b.s.errors.empty()) fault("queue pairs in error", static_cast<unsigned>(b.s.errors.size()));
  return seen;
}

class responder_atomic_backlog_random : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(seed, responder_atomic_backlog_random, ::testing::Range(1u, 25u));

TEST_P(responder_atomic_backlog_random, each_is_executed_once_and_sleep_is_invisible) {
  const auto run = [](sim::timebase::options opts) {
    return rnic::bench::in_child([opts] { return atomic_history_of(opts, GetParam()); });
  };
  const std::string slept = run({});
  EXPECT_NE(slept.compare(0, 2, "0 "), 0) << "nothing has waited";
  EXPECT_EQ(slept.find("fault"), std::string::npos) << slept;
  EXPECT_EQ(run({true, 0}), slept);
  EXPECT_EQ(run({false, 77}), slept);
}

}  // namespace
}  // namespace rnic::transport::test
