// SPDX-License-Identifier: Apache-2.0
// End-to-end flow control of the requester (IBA volume 1, 9.7.7.2): what each answer lets go.
#include <vector>

#include "testbenches/system/conformance/requester_rows.h"

namespace rnic::conformance {
namespace {

using namespace requester_rows;

constexpr std::uint8_t uncounted = 0x1f;
inline work send() { return work(IBV_WR_SEND, 100); }
packet sent(int psn) { return packet(op::send_only, psn).bytes(100); }
work announced() { return work(IBV_WR_RDMA_WRITE_WITH_IMM, 100); }
packet announcement(int psn) { return packet(op::write_only_immediate, psn).bytes(100); }

outcome all_sent(unsigned n) {
  outcome o;
  while (n-- != 0) o.sends(good(IBV_WC_SEND));
  return o;
}

/// Answered with each code: so many go as the code says, and one that finds out.
std::vector<row> codes() {
  constexpr int credits[] = {0, 1, 2, 3, 4, 6, 8, 12, 16};  // IBA table 46
  std::vector<row> rows;
  for (unsigned code = 0; code < std::size(credits); ++code) {
    const int go = credits[code] + 1, all = go + 3;
    row r;
    r.name = "code_" + std::to_string(code);
    r.after = all_sent(static_cast<unsigned>(all));
    for (int i = 0; i < all; ++i) r.steps.push_back(post(send()));
    r.steps.insert(r.steps.end(), {hear(sent(0)), silence(10), inject(ack(0, 1, static_cast<std::uint8_t>(code)))});
    for (int i = 1; i <= go; ++i) r.steps.push_back(hear(sent(i)));
    r.steps.insert(r.steps.end(), {silence(10), inject(ack(go, static_cast<std::uint32_t>(go + 1), uncounted))});
    for (int i = go + 1; i < all; ++i) r.steps.push_back(hear(sent(i)));
    r.steps.push_back(inject(ack(all - 1, static_cast<std::uint32_t>(all), uncounted)));
    rows.push_back(std::move(r));
  }
  return rows;
}

const std::vector<row> credit_rows = {
    {"none_known_of_at_first",
     service::rc,
     {},
     {post(send()), post(send()), hear(sent(0)), silence(20), inject(ack(0, 1, 1)), hear(sent(1)),
      inject(ack(1, 2, 1))},
     all_sent(2)},
    {"writes_reads_and_atomics_need_none",
     service::rc,
     {},
     {post(write()), post(read(100)), post(atomic()), post(write()), hear(written(0)), hear(asked(1, 100)),
      hear(added(2)), hear(written(3)), inject(ack(0, 1, 0)), inject(part(op::read_response_only, 1, 100).lands_at(0)),
      inject(value(2).lands_at(0)), inject(ack(3, 4, 0))},
     outcome().sends(done).sends(good(IBV_WC_RDMA_READ, 100)).sends(good(IBV_WC_FETCH_ADD, 8)).sends(done)},
    {"an_announced_write_needs_one",
     service::rc,
     {},
     {post(announced()), post(announced()), hear(announcement(0)), silence(20), inject(ack(0, 1, 1)),
      hear(announcement(1)), inject(ack(1, 2, 1))},
     wrote(2)},
    {"what_is_behind_waits_too",
     service::rc,
     {},
     {post(send()), post(send()), post(write()), hear(sent(0)), silence(20), inject(ack(0, 1, 0)), hear(sent(1)),
      hear(written(2)), inject(ack(2, 3, 0))},
     outcome().sends(good(IBV_WC_SEND)).sends(good(IBV_WC_SEND)).sends(done)},
    {"the_same_answer_tells_of_more",
     service::rc,
     {},
     {post(send()), post(send()), post(send()), hear(sent(0)), inject(ack(0, 1, 0)), hear(sent(1)), silence(20),
      inject(ack(0, 1, 1)), hear(sent(2)), inject(ack(2, 3, 0))},
     all_sent(3).counts(old)},
    {"an_older_answer_tells_nothing",
     service::rc,
     {},
     {post(send()), post(send()), post(send()), post(send()), hear(sent(0)), inject(ack(0, 1, 1)), hear(sent(1)),
      hear(sent(2)), inject(ack(1, 2, 0)), silence(20), inject(ack(0, 1, 8)), silence(20), inject(ack(2, 3, 0)),
      hear(sent(3)), inject(ack(3, 4, 0))},
     all_sent(4).counts(old)},
    {"a_nak_tells_nothing",
     service::rc,
     {},
     {post(send()), post(send()), post(send()), post(send()), post(send()), hear(sent(0)), inject(ack(0, 1, 2)),
      hear(sent(1)), hear(sent(2)), hear(sent(3)), inject(nak(sequence, 2)), hear(sent(2)), hear(sent(3)), silence(20),
      inject(ack(3, 4, 0)), hear(sent(4)), inject(ack(4, 5, 0))},
     all_sent(5).counts(naks).counts(oos).counts(again)},
    {"not_ready_is_none",
     service::rc,
     {},
     {post(send()), post(send()), post(send()), post(send()), hear(sent(0)), inject(ack(0, 1, 8)), hear(sent(1)),
      hear(sent(2)), hear(sent(3)), inject(nak(rnr_80us, 1)), silence(70), hear(sent(1)), silence(20),
      inject(ack(1, 2, uncounted)), hear(sent(2)), hear(sent(3)), inject(ack(3, 4, 0))},
     all_sent(4).counts(rnr_naks).counts(rnr).counts(again)},
    {"the_answer_to_a_read_tells",
     service::rc,
     {},
     {post(read(100)), post(send()), post(send()), hear(asked(0, 100)), hear(sent(1)), silence(20),
      inject(part(op::read_response_only, 0, 100).aeth(1, 1).lands_at(0)), hear(sent(2)), inject(ack(2, 3, 0))},
     outcome().sends(good(IBV_WC_RDMA_READ, 100)).sends(good(IBV_WC_SEND)).sends(good(IBV_WC_SEND))},
    {"the_answer_to_an_atomic_tells",
     service::rc,
     {},
     {post(atomic()), post(send()), post(send()), hear(added(0)), hear(sent(1)), silence(20),
      inject(value(0).aeth(1, 1).lands_at(0)), hear(sent(2)), inject(ack(2, 3, 0))},
     outcome().sends(good(IBV_WC_FETCH_ADD, 8)).sends(good(IBV_WC_SEND)).sends(good(IBV_WC_SEND))},
    {"a_wrong_msn_does_not_stop_it",
     service::rc,
     {},
     {post(send()), post(send()), post(send()), hear(sent(0)), inject(ack(0, 0, 0)), hear(sent(1)),
      inject(ack(1, 0x800000, 0)), hear(sent(2)), inject(ack(2, 7, 0))},
     all_sent(3)},
};

class requester_credits : public testing::TestWithParam<row> {};
TEST_P(requester_credits, row) { play("requester_credits", GetParam()); }
INSTANTIATE_TEST_SUITE_P(code, requester_credits, testing::ValuesIn(codes()), row_name());
INSTANTIATE_TEST_SUITE_P(rule, requester_credits, testing::ValuesIn(credit_rows), row_name());

}  // namespace
}  // namespace rnic::conformance
