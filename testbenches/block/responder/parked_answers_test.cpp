// SPDX-License-Identifier: Apache-2.0
// Answers whose port is paused: what arrives for others goes on, and no answer is lost.
#include "model/transport/responder/parked_answers.h"

#include <vector>

#include "testbenches/block/responder/bench.h"

namespace rnic::transport::test {
namespace {

using wire::operation;

/// Two queue pairs on chip, and so many that the first ones' answers fill the port and answer_transmit.
struct paused : bench {
  static constexpr unsigned others = 12;
  static responder_config config(unsigned parked) {
    responder_config c;
    c.flows = 2;
    c.parked_answers = parked;
    return c;
  }
  explicit paused(unsigned parked = responder_config{}.parked_answers) : bench({}, config(parked)) {
    const responder_config c;
    passed = c.egress_frames + c.answer.waiting;
    for (unsigned i = 0; i < all(); ++i) {
      icm::responder_context context = bench::context();
      context.qpn = qpn + i;
      context.remote_qpn = peer_qpn + i;
      put(context);
    }
    s.give_credits = false;
  }
  unsigned all() const { return passed + others; }
  void write(unsigned i, std::uint32_t psn = 100) {
    send(operation::write_only, psn, pattern(8, i), [&](wire::packet& p) {
      p.bth.dest_qp = qpn + i;
      p.bth.ack_request = true;
      p.reth = {data_va + 8 * i, rkey, 8};
    });
  }
  void go_on() {
    s.give_credits = true;
    for (unsigned i = 0; i < responder_config{}.egress_frames; ++i) {
      core.as_in_tick([this] { s.credit.push({0, 3}); });
      run(2);
    }
    run(40'000);
  }
  std::uint64_t parked() const { return stats.value("responder.parked_answers"); }
  /// Of the answers to a queue pair: PSN and syndrome without credits.
  std::vector<std::pair<std::uint32_t, unsigned>> answers_of(unsigned i) const {
    std::vector<std::pair<std::uint32_t, unsigned>> list;
    for (const auto& a : s.answers)
      if (a->bth.dest_qp == peer_qpn + i) list.emplace_back(a->bth.psn.value(), a->aeth.syndrome);
    return list;
  }

  unsigned passed = 0;
};
using answers = std::vector<std::pair<std::uint32_t, unsigned>>;
constexpr unsigned ack = 0x1f, sequence_nak = 0x60;

TEST(parked_answers, what_arrives_for_others_goes_on) {
  paused b;
  for (unsigned i = 0; i < b.all(); ++i) b.write(i);
  b.run(30'000);
  EXPECT_EQ(b.s.answers.size(), responder_config{}.egress_frames) << "the port is paused";
  for (unsigned i = 0; i < b.all(); ++i) EXPECT_EQ(b.data(8 * i, 8), bench::pattern(8, i)) << i;
  EXPECT_EQ(b.parked(), paused::others - 2u) << "but for those that nobody wants the places of";
  b.go_on();
  for (unsigned i = 0; i < b.all(); ++i) EXPECT_EQ(b.answers_of(i), (answers{{100, ack}})) << i;
}

TEST(parked_answers, naks_come_back_as_they_were) {
  paused b;
  for (unsigned i = 0; i < b.all(); ++i) {
    if (i < b.passed || i % 3 == 0)
      b.write(i);
    else if (i % 3 == 1)
      b.write(i, 102);
    else
      b.send(operation::send_only, 100, bench::pattern(8), [&](wire::packet& p) { p.bth.dest_qp = qpn + i; });
  }
  b.run(40'000);
  EXPECT_EQ(b.parked(), paused::others - 2u);
  b.go_on();
  const unsigned rnr_nak = 0x20u | bench::context().rnr_timer;
  for (unsigned i = b.passed; i < b.all(); ++i)
    EXPECT_EQ(b.answers_of(i), (answers{{100, i % 3 == 0 ? ack : i % 3 == 1 ? sequence_nak : rnr_nak}})) << i;
}

/// What was expected has come while the NAK that asks for it was away: all of that is acknowledged.
TEST(parked_answers, a_nak_that_is_out_of_date_comes_back_as_an_ack) {
  paused b;
  for (unsigned i = 0; i < b.passed; ++i) b.write(i);
  for (unsigned i = b.passed; i < b.all(); ++i) b.write(i, 101);
  b.run(20'000);
  for (unsigned i = b.passed; i < b.all(); ++i)
    b.send(operation::write_only, 100, bench::pattern(8, i), [&](wire::packet& p) {
      p.bth.dest_qp = qpn + i;
      p.reth = {data_va + 8 * i, rkey, 8};
    });
  b.run(20'000);
  b.go_on();
  for (unsigned i = b.passed; i < b.all(); ++i) {
    const answers got = b.answers_of(i);
    ASSERT_FALSE(got.empty()) << i;
    EXPECT_EQ(got.back(), (std::pair<std::uint32_t, unsigned>{100, ack})) << i;
  }
}

/// Without room for its number an answer goes with the next packet of its queue pair.
TEST(parked_answers, beyond_their_room_wait_for_the_next_packet) {
  paused b(3);
  for (unsigned i = 0; i < b.all(); ++i) b.write(i);
  b.run(30'000);
  EXPECT_EQ(b.parked(), paused::others - 2u);
  b.go_on();
  unsigned answered = 0;
  for (unsigned i = b.passed; i < b.all(); ++i) answered += b.answers_of(i).empty() ? 0 : 1;
  EXPECT_EQ(answered, 3u + 2u);
  for (unsigned i = b.passed; i < b.all(); ++i) b.write(i);  // again
  b.run(40'000);
  for (unsigned i = b.passed; i < b.all(); ++i) EXPECT_FALSE(b.answers_of(i).empty()) << i;
}

/// Firmware has taken the queue pair away: nothing of it comes back.
TEST(parked_answers, of_a_queue_pair_that_is_discarded_are_forgotten) {
  paused b;
  for (unsigned i = 0; i < b.all(); ++i) b.write(i);
  b.run(30'000);
  const unsigned gone = b.passed + 1;
  b.r.cr_write(cr::qp_select, qpn + gone);
  b.r.cr_write(cr::qp_command, cr::qp_command_discard);
  b.run(2'000);
  EXPECT_EQ(b.r.cr_read(cr::qp_status), 0u);
  b.r.cr_write(cr::qp_command, cr::qp_command_release);
  b.go_on();
  EXPECT_EQ(b.answers_of(gone), answers{});
  for (unsigned i = b.passed; i < b.all(); ++i) {
    if (i == gone) continue;
    EXPECT_EQ(b.answers_of(i), (answers{{100, ack}})) << i;
  }
}

}  // namespace
}  // namespace rnic::transport::test
