// SPDX-License-Identifier: Apache-2.0
// Many queue pairs for few messages, scatter lists, units, timers and ports: each of them comes to its end.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/transport/transport_cr.h"
#include "model/wire/bytes.h"
#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
using ::bench::first_psn;
using wire::operation;

constexpr std::uint32_t ring_bytes = 1024, many = 12;

/// Queue pairs with a ring each, and peers that answer each packet that they expect. `lost`: of so many packets the
/// last one does not arrive; 0: all arrive.
struct few : bench::bench {
  few(const ::bench::setup& s, unsigned qps, unsigned lost = 0) : bench(s), lost_(lost), expected_(qps, first_psn) {
    for (std::uint32_t i = 0; i < qps; ++i) {
      context.sq_address = ::bench::ring + i * ring_bytes;
      context.remote_qpn = ::bench::remote_qpn + i;
      make_qp(::bench::qpn + i);
    }
  }
  /// What queue pair `i` has to send: READs, WRITEs, requests to do nothing, or one after the other.
  void post(std::uint32_t i, const char* verbs, std::uint32_t messages = many) {
    for (std::uint32_t n = 0; n <= messages; ++n) {
      std::uint8_t* const slot = w.memory.data() + ::bench::ring + i * ring_bytes + n * 64;
      const char verb = verbs[n % 2];
      const std::uint32_t words[] = {verb == 'r' ? 0x10u : verb == 'w' ? 0x08u : 0x00u,
                                     3,
                                     0xc,
                                     0,
                                     0x7f00,
                                     0x5000,
                                     0xabcd,
                                     0,
                                     64,
                                     ::bench::good_key,
                                     0,
                                     static_cast<std::uint32_t>(::bench::data + 64 * i)};
      for (std::size_t k = 0; k < std::size(words); ++k) wire::store_be32(slot + 4 * k, words[k]);
      if (n == messages) slot[0] = 0x80;  // software's
    }
    w.to_ring.push_back({::bench::qpn + i, ::bench::own_uar, {}, 0});
    w.wake_next();
  }
  void answer() {
    for (; seen_ < w.sent.size(); ++seen_) {
      const wire::packet p = sent(seen_);
      const std::uint32_t i = p.bth.dest_qp - ::bench::remote_qpn, psn = p.bth.psn.value();
      if ((lost_ != 0 && seen_ % lost_ == lost_ - 1) || wire::psn_t(psn).after(wire::psn_t(expected_[i]))) continue;
      if (psn == expected_[i]) expected_[i] = (psn + 1) & 0xffffff;
      const bool reads = wire::operation_of(p.bth.opcode) == operation::read_request;
      if (reads)
        respond(operation::read_response_only, psn, 0x1f, std::vector<std::uint8_t>(64));
      else
        ack(psn);
      w.to_rx.back()->packet.bth.dest_qp = ::bench::qpn + i;
    }
  }
  void expect_completions(std::size_t completions) {
    for (unsigned us = 0; us < 5000 && w.cqes.size() < completions; ++us) {
      run_ns(500);
      if (context.type == icm::service::rc) answer();
    }
    ASSERT_EQ(w.cqes.size(), completions);
  }
  std::size_t completed(std::uint32_t i) const {
    return static_cast<std::size_t>(std::count_if(w.cqes.begin(), w.cqes.end(), [&](const auto& e) {
      return e.second.qpn == ::bench::qpn + i && e.second.syndrome == 0;
    }));
  }

 private:
  unsigned lost_;
  std::vector<std::uint32_t> expected_;
  std::size_t seen_ = 0;
};

struct scarce {
  const char* what;
  unsigned messages, lists, units, timers;
};
std::ostream& operator<<(std::ostream& to, const scarce& s) { return to << s.what; }

class room : public testing::TestWithParam<std::tuple<scarce, unsigned, const char*, unsigned>> {};
TEST_P(room, that_one_leaves_is_taken_by_the_next) {
  const auto [s, qps, verbs, lost] = GetParam();
  ::bench::setup with;
  with.requester.outstanding_entries = s.messages;
  with.requester.scatter_lists = s.lists;
  with.requester.processing_units = s.units;
  with.requester.timers.entries = s.timers;
  with.ack_timeout = lost != 0 ? 1 : 0;
  few b(with, qps, lost);
  for (unsigned i = 0; i < qps; ++i) b.post(i, verbs);
  b.expect_completions(std::size_t{qps} * many);
  for (unsigned i = 0; i < qps; ++i) EXPECT_EQ(b.completed(i), many);
}
constexpr scarce scarcities[] = {{"one message", 1, 64, 8, 64},
                                 {"two messages", 2, 64, 8, 64},
                                 {"three messages", 3, 64, 8, 64},
                                 {"one list", 64, 1, 8, 64},
                                 {"two messages and a list", 2, 1, 8, 64},
                                 {"one unit and three messages", 3, 2, 1, 64},
                                 {"one timer", 64, 64, 8, 1},
                                 {"one of each", 1, 1, 1, 1}};
INSTANTIATE_TEST_SUITE_P(requester, room,
                         testing::Combine(testing::ValuesIn(scarcities), testing::Values(1u, 2u, 4u, 16u),
                                          testing::Values("ww", "rr", "wr"), testing::Values(0u, 7u)));

TEST(room, of_messages_that_complete_when_they_have_left) {
  ::bench::setup with;
  with.type = icm::service::uc;
  with.requester.outstanding_entries = 1;
  few b(with, 5);
  for (unsigned i = 0; i < 5; ++i) b.post(i, "ww");
  b.expect_completions(5 * many);
}

/// One message is under way, and two more queue pairs wait for its room.
struct two_wait : few {
  two_wait() : few(one_message(), 3) {
    post(0, "ww", 1);
    run_ns(3000);
    for (unsigned i = 1; i < 3; ++i) {
      post(i, "ww");
      run_ns(3000);
    }
    EXPECT_EQ(w.sent.size(), 1u);
  }
  static ::bench::setup one_message() {
    ::bench::setup s;
    s.requester.outstanding_entries = 1;
    return s;
  }
};

TEST(room, is_not_kept_by_one_that_was_halted) {
  two_wait b;
  b.dut.cr_write(transport::cr::qp_select, ::bench::qpn + 1);
  b.dut.cr_write(transport::cr::qp_command, transport::cr::qp_command_halt);
  b.run_ns(3000);
  EXPECT_EQ(b.dut.cr_read(transport::cr::qp_status), 0u);
  b.expect_completions(1 + many);
  EXPECT_EQ(b.completed(2), many);
  b.dut.cr_write(transport::cr::qp_command, transport::cr::qp_command_release);
  b.expect_completions(1 + 2 * many);
  EXPECT_EQ(b.completed(1), many);
}

TEST(room, is_not_kept_by_one_that_does_not_need_it_any_more) {
  two_wait b;
  b.w.to_error.push_back(::bench::qpn + 1);
  b.w.wake_next();
  b.expect_completions(1 + 2 * many);
  EXPECT_EQ(b.completed(1), 0u);
  EXPECT_EQ(b.completed(2), many);
}

/// Two queue pairs, of which the second one has its descriptors 244 cycles after the first: so its first request meets
/// the third of the first one, which has one each 122 cycles.
struct meeting : few {
  meeting(const char* verb, unsigned append_ports) : few(with(append_ports), 2) {
    post(0, "nn", 3);
    post(1, verb, 1);
    expect_completions(4);
  }
  static ::bench::setup with(unsigned append_ports) {
    ::bench::setup s;
    s.requester.wqe_cycles = 122;
    s.requester.message_append_ports = append_ports;
    return s;
  }
  std::uint64_t waits(const char* user) const {
    return stats.value(std::string("requester.message_append.") + user + ".waits");
  }
  std::vector<sim::cycle_t> completed_at() const {
    std::vector<sim::cycle_t> at;
    for (const auto& [cycle, e] : w.cqes) at.push_back(cycle - w.cqes[0].first);
    return at;
  }
};
using cycles = std::vector<sim::cycle_t>;

TEST(message_append, is_one_a_cycle_for_all_units) {
  const meeting b("nn", 1);
  EXPECT_EQ(b.completed_at(), (cycles{0, 122, 244, 245}));
  EXPECT_EQ(b.waits("unit0"), 0u);
  EXPECT_EQ(b.waits("unit1"), 1u) << "that of the second queue pair";
}

TEST(message_append, of_two_ports_takes_those_of_two_units) {
  const meeting b("nn", 2);
  EXPECT_EQ(b.waits("unit0") + b.waits("unit1"), 0u);
}

/// The transmit engine is refused, and comes first a cycle later.
TEST(message_append, of_the_transmit_engine_waits_for_a_unit) {
  const meeting b("ww", 1);
  EXPECT_EQ(b.waits("transmit"), 1u);
  EXPECT_EQ(b.waits("unit0") + b.waits("unit1"), 0u);
}

/// Three queue pairs have started a packet each; firmware discards them in one cycle: when gather sees of each that its
/// packet is withdrawn.
struct discards : few {
  explicit discards(unsigned ports) : few(with(ports), 3) {
    for (unsigned i = 0; i < 3; ++i) post(i, "ww", 1);
    run_ns(3000);
    const sim::cycle_t asked = core.now();
    for (unsigned i = 0; i < 3; ++i) {
      dut.cr_write(transport::cr::qp_select, ::bench::qpn + i);
      dut.cr_write(transport::cr::qp_command, transport::cr::qp_command_discard);
    }
    for (unsigned n = 0; n < 10; ++n) {
      run_ns(2);
      for (unsigned i = 0; i < 3; ++i)
        if (seen[i] == 0 && memories.withdrawn.read(::bench::qpn + i, i, core.now())) seen[i] = core.now() - asked;
    }
  }
  static ::bench::setup with(unsigned ports) {
    ::bench::setup s;
    s.requester.withdrawal_ports = ports;
    return s;
  }
  std::uint64_t waits() const { return stats.value("requester.withdrawals.go_back.waits"); }
  cycles seen = cycles(3);
};

/// Asked for between two edges, written at the next one, seen a cycle later; one queue pair behind the other.
TEST(withdrawals, are_written_one_a_cycle) {
  const discards b(1);
  EXPECT_EQ(b.seen, (cycles{2, 3, 4}));
  EXPECT_EQ(b.waits(), 2u);
}
TEST(withdrawals, of_two_ports_are_written_two_a_cycle) {
  const discards b(2);
  EXPECT_EQ(b.seen, (cycles{2, 2, 3}));
  EXPECT_EQ(b.waits(), 1u);
}

}  // namespace
