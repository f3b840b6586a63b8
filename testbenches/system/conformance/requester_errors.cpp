// SPDX-License-Identifier: Apache-2.0
// The requester's error classes that come from the wire (IBA volume 1, 9.9.2 and table 57; adapter data plane C.8.1 and
// C.8.2), one row each.
#include <vector>

#include "testbenches/system/conformance/requester_rows.h"

namespace rnic::conformance {
namespace {

using namespace requester_rows;

// ---------------------------------------------------------------- acknowledgements

const std::vector<row> acknowledge_rows = {
    {"acknowledged", service::rc, {}, {post(write()), hear(written(0)), inject(ack(0, 1))}, wrote()},
    {"acknowledged_without_credits",
     service::rc,
     {},
     {post(write()), hear(written(0)), inject(ack(0, 1, 0)), post(write()), hear(written(1)), inject(ack(1, 2, 0))},
     wrote(2)},
    {"three_by_one",
     service::rc,
     {},
     {post(write()), post(write()), post(write()), hear(written(0)), hear(written(1)), hear(written(2)),
      inject(ack(2, 3))},
     wrote(3)},
    {"unsignalled_ones_are_silent",
     service::rc,
     {},
     {post(write().unsignalled()), hear(written(0)), inject(ack(0, 1)), rest(10)},
     fine()},
    {"old",
     service::rc,
     {},
     {post(write()), post(write()), hear(written(0)), hear(written(1)), inject(ack(0, 1)), inject(ack(0, 1)),
      inject(ack(-7, 1)), inject(ack(1, 2))},
     wrote(2).counts(old, 2)},
    {"of_what_was_never_sent",
     service::rc,
     {},
     {post(write()), hear(written(0)), inject(ack(1, 2)), inject(ack(500, 2)), rest(10), inject(ack(0, 1))},
     wrote().counts(ghost, 2)},
    {"nak_of_what_was_never_sent",
     service::rc,
     {},
     {post(write()), hear(written(0)), inject(nak(access, 3)), rest(10), inject(ack(0, 1))},
     wrote().counts(ghost)},
    {"without_a_request",
     service::rc,
     {},
     {post(write()), hear(written(0)), inject(ack(0, 1)), rest(10), inject(ack(0, 1)), inject(nak(access, 1))},
     wrote().counts(stray, 2)},
    {"of_another_service",
     service::rc,
     {},
     {post(write()), hear(written(0)), inject(ack(0, 1).raw(0xb1)), rest(10), inject(ack(0, 1))},
     wrote().counts(stray)},
    {"of_a_stranger",
     service::rc,
     {},
     {post(write()), hear(written(0)), inject(ack(0, 1).by(source::stranger)), inject(nak(access).by(source::stranger)),
      rest(10), inject(ack(0, 1))},
     wrote().counts(not_ours, 2)},
    {"of_another_partition",
     service::rc,
     {},
     {post(write()), hear(written(0)), inject(ack(0, 1).partition(0x1234)), rest(10), inject(ack(0, 1))},
     wrote().counts(not_ours)},
    {"for_nobody",
     service::rc,
     {},
     {post(write()), hear(written(0)), inject(ack(0, 1).for_whom(target::absent)), rest(10), inject(ack(0, 1))},
     wrote().counts(stray)},
    {"with_bad_icrc",
     service::rc,
     {},
     {post(write()), hear(written(0)), inject(ack(0, 1).broken(damage::icrc)), rest(10), inject(ack(0, 1))},
     wrote().counts("icrc_check.drop.bad_icrc.port1")},
    {"with_bytes_behind_its_icrc",
     service::rc,
     {},
     {post(write()), hear(written(0)), inject(ack(0, 1).broken(damage::trailer))},
     wrote()},
    {"of_the_reserved_kind",
     service::rc,
     {},
     {post(write()), hear(written(0)), inject(ack(0, 1, 0x40)), rest(10), inject(ack(0, 1))},
     wrote().counts("requester.not_a_response")},
};

// ---------------------------------------------------------------- refusals

const std::vector<row> nak_rows = {
    answered("invalid_request", nak(invalid), fails(IBV_WC_REM_INV_REQ_ERR, rire).counts(naks)),
    answered("access", nak(access), fails(IBV_WC_REM_ACCESS_ERR, rae, vendor_access).counts(naks)),
    answered("operational", nak(operational), fails(IBV_WC_REM_OP_ERR, roe).counts(naks)),
    answered("invalid_rd_request", nak(0x64), bad_response().counts(naks)),
    answered("reserved_code", nak(0x6f), bad_response().counts(naks)),
    {"of_the_second",
     service::rc,
     {},
     {post(write()), post(write()), post(write()), hear(written(0)), hear(written(1)), hear(written(2)),
      inject(nak(access, 1))},
     outcome().error().sends(done).sends(bad(IBV_WC_REM_ACCESS_ERR, vendor_access)).counts(rae).counts(naks)},
    {"in_a_message",
     service::rc,
     {},
     {post(write(600)), hear(packet(op::write_first).bytes(256).of(600).silent()),
      hear(packet(op::write_middle, 1).bytes(256).at(256).silent()), hear(packet(op::write_last, 2).bytes(88).at(512)),
      inject(nak(access, 1))},
     fails(IBV_WC_REM_ACCESS_ERR, rae, vendor_access).counts(naks)},
    {"of_a_read",
     service::rc,
     {},
     {post(read(600)), hear(asked(0, 600)), inject(nak(access))},
     fails(IBV_WC_REM_ACCESS_ERR, rae, vendor_access).counts(naks)},
    {"in_a_read",
     service::rc,
     {},
     {post(read(600)), hear(asked(0, 600)), inject(part(op::read_response_first, 0, 256).lands_at(0)),
      inject(nak(access, 1))},
     fails(IBV_WC_REM_ACCESS_ERR, rae, vendor_access).counts(naks)},
    {"of_an_atomic",
     service::rc,
     {},
     {post(atomic()), hear(added(0)), inject(nak(invalid))},
     fails(IBV_WC_REM_INV_REQ_ERR, rire).counts(naks)},
    {"later_posts_are_flushed",
     service::rc,
     {},
     {post(write()), hear(written(0)), inject(nak(access)), rest(10), post(write()), post(read(8)), silence(20)},
     fails(IBV_WC_REM_ACCESS_ERR, rae, vendor_access).counts(naks)},
    {"unsignalled_ones_tell_of_errors",
     service::rc,
     {},
     {post(write().unsignalled()), hear(written(0)), inject(nak(access))},
     fails(IBV_WC_REM_ACCESS_ERR, rae, vendor_access).counts(naks)},
};

// ---------------------------------------------------------------- losses

const std::vector<row> retry_rows = {
    {"sequence_error",
     service::rc,
     {},
     {post(write()), post(write()), hear(written(0)), hear(written(1)), inject(nak(sequence)), hear(written(0)),
      hear(written(1)), inject(ack(1, 2))},
     wrote(2).counts(naks).counts(oos).counts(again)},
    {"sequence_error_acknowledges_what_is_before",
     service::rc,
     {},
     {post(write()), post(write()), hear(written(0)), hear(written(1)), inject(nak(sequence, 1)), hear(written(1)),
      silence(20), inject(ack(1, 2))},
     wrote(2).counts(naks).counts(oos).counts(again)},
    {"sequence_error_in_a_message",
     service::rc,
     {},
     {post(write(600)), hear(packet(op::write_first).bytes(256).of(600).silent()),
      hear(packet(op::write_middle, 1).bytes(256).at(256).silent()), hear(packet(op::write_last, 2).bytes(88).at(512)),
      inject(nak(sequence, 1)), hear(packet(op::write_middle, 1).bytes(256).at(256).silent()),
      hear(packet(op::write_last, 2).bytes(88).at(512)), inject(ack(2, 1))},
     wrote().counts(naks).counts(oos).counts(again)},
    {"one_retry_for_many_sequence_errors",
     service::rc,
     {},
     {post(write()), hear(written(0)), inject(nak(sequence)), hear(written(0)), inject(nak(sequence)), silence(20),
      inject(ack(0, 1))},
     wrote().counts(naks, 2).counts(oos, 2).counts(again)},
    {"no_answer_and_no_retries",
     service::rc,
     setup().timer(4, 0),
     {post(write()), post(write()), hear(written(0)), hear(written(1)), silence(150)},
     fails(IBV_WC_RETRY_EXC_ERR, tree, vendor_retry).counts(timeouts)},
    {"no_answer_twice_repeated",
     service::rc,
     setup().timer(4, 2),
     {post(write()), hear(written(0)), hear(written(0)), hear(written(0)), silence(150)},
     fails(IBV_WC_RETRY_EXC_ERR, tree, vendor_retry).counts(timeouts, 3).counts(again, 2)},
    {"answer_to_the_repetition",
     service::rc,
     setup().timer(4, 1),
     {post(write()), hear(written(0)), hear(written(0)), inject(ack(0, 1)), silence(150)},
     wrote().counts(timeouts).counts(again)},
    {"progress_gives_the_retries_back",
     service::rc,
     setup().timer(4, 1),
     {post(write()), post(write()), hear(written(0)), hear(written(1)), hear(written(0)), hear(written(1)),
      inject(ack(0, 1)), hear(written(1)), inject(ack(1, 2)), silence(150)},
     wrote(2).counts(timeouts, 2).counts(again, 2)},
    {"sequence_errors_use_up_retries",
     service::rc,
     setup().timer(4, 0),
     {post(write()), hear(written(0)), inject(nak(sequence))},
     fails(IBV_WC_RETRY_EXC_ERR, tree, vendor_retry).counts(naks).counts(oos)},
    {"no_timer_without_a_timeout",
     service::rc,
     setup().timer(0, 0),
     {post(write()), hear(written(0)), silence(3000), inject(ack(0, 1))},
     wrote()},
    {"receiver_not_ready_and_no_retries",
     service::rc,
     setup().rnr(0),
     {post(write()), post(write()), hear(written(0)), hear(written(1)), inject(nak(rnr_10us))},
     fails(IBV_WC_RNR_RETRY_EXC_ERR, rree, vendor_rnr).counts(rnr_naks).counts(rnr)},
    {"receiver_not_ready_twice",
     service::rc,
     setup().rnr(1),
     {post(write()), hear(written(0)), inject(nak(rnr_10us)), hear(written(0)), inject(nak(rnr_10us))},
     fails(IBV_WC_RNR_RETRY_EXC_ERR, rree, vendor_rnr).counts(rnr_naks, 2).counts(rnr, 2).counts(again)},
    {"receiver_not_ready_waits",
     service::rc,
     setup().rnr(1),
     {post(write()), hear(written(0)), inject(nak(rnr_320us)), silence(300), hear(written(0)), inject(ack(0, 1))},
     wrote().counts(rnr_naks).counts(rnr).counts(again)},
    // From the RNR NAK on nothing counts as sent: the other one is of a packet that is not known.
    {"sequence_error_while_not_ready",
     service::rc,
     setup().rnr(1),
     {post(write()), post(write()), hear(written(0)), hear(written(1)), inject(nak(rnr_80us)), inject(nak(sequence)),
      silence(70), hear(written(0)), hear(written(1)), inject(ack(1, 2))},
     wrote(2).counts(rnr_naks).counts(rnr).counts(ghost).counts(again)},
    // Nor when it comes after the wait, for what was under way then: all of that has been sent again. There are no
    // retries.
    {"sequence_error_after_the_wait",
     service::rc,
     setup().rnr(1).timer(8, 0),
     {post(write()), post(write()), hear(written(0)), hear(written(1)), inject(nak(rnr_10us)), hear(written(0)),
      hear(written(1)), inject(nak(sequence)), silence(20), inject(ack(1, 2))},
     wrote(2).counts(rnr_naks).counts(rnr).counts(naks).counts(oos).counts(again)},
    {"loss_behind_a_sequence_error_after_the_wait",
     service::rc,
     setup().rnr(1).timer(4, 1),
     {post(write()), post(write()), hear(written(0)), hear(written(1)), inject(nak(rnr_10us)), hear(written(0)),
      hear(written(1)), inject(nak(sequence)), hear(written(0)), hear(written(1)), inject(ack(1, 2))},
     wrote(2).counts(rnr_naks).counts(rnr).counts(naks).counts(oos).counts(timeouts).counts(again, 2)},
    {"receiver_not_ready_acknowledges_what_is_before",
     service::rc,
     setup().rnr(1),
     {post(write()), post(write()), hear(written(0)), hear(written(1)), inject(nak(rnr_10us, 1)), hear(written(1)),
      inject(ack(1, 2))},
     wrote(2).counts(rnr_naks).counts(rnr).counts(again)},
};

row never_tires() {
  row r{"receiver_not_ready_for_ever", service::rc, setup().rnr(7), {post(write()), hear(written(0))}, wrote()};
  for (unsigned i = 0; i < 12; ++i) {
    r.steps.push_back(inject(nak(rnr_10us)));
    r.steps.push_back(hear(written(0)));
  }
  r.steps.push_back(inject(ack(0, 1)));
  r.after.counts(rnr_naks, 12).counts(rnr, 12).counts(again, 12);
  return r;
}

// ---------------------------------------------------------------- READ and atomics

const completion got = good(IBV_WC_RDMA_READ);
outcome has_read(std::int64_t bytes) { return outcome().sends(good(IBV_WC_RDMA_READ, bytes)); }
/// A READ of 600 bytes, three packets, and its answers.
row reading(const char* name, std::vector<step> answers, const outcome& o) {
  row r{name, service::rc, {}, {post(read(600)), hear(asked(0, 600))}, o};
  r.steps.insert(r.steps.end(), answers.begin(), answers.end());
  return r;
}
step first(int psn = 0, std::uint32_t bytes = 256) {
  return inject(part(op::read_response_first, psn, bytes).lands_at(psn * 256));
}
step middle(int psn = 1, std::uint32_t bytes = 256) {
  return inject(part(op::read_response_middle, psn, bytes).lands_at(psn * 256));
}
step last(int psn = 2, std::uint32_t bytes = 88) {
  return inject(part(op::read_response_last, psn, bytes).lands_at(psn * 256));
}
step only(int psn) { return inject(part(op::read_response_only, psn, 8).lands_at(0)); }
const std::vector<row> read_rows = {
    reading("whole", {first(), middle(), last()}, has_read(600)),
    {"one_packet",
     service::rc,
     {},
     {post(read(100)), hear(asked(0, 100)), inject(part(op::read_response_only, 0, 100).lands_at(0))},
     has_read(100)},
    // Three may be under way, which the context cannot say: two are.
    {"depth_is_rounded_down",
     service::rc,
     setup().reads(3),
     {post(read(8)), post(read(8)), post(read(8)), post(read(8)), hear(asked(0, 8)), hear(asked(1, 8)), silence(20),
      only(0), hear(asked(2, 8)), silence(20), only(1), hear(asked(3, 8)), only(2), only(3)},
     outcome().sends(got).sends(got).sends(got).sends(got).counts("scheduler.dropped_descriptors")},
    {"nothing",
     service::rc,
     {},
     {post(read(0)), hear(asked(0, 0)), inject(part(op::read_response_only, 0, 0))},
     has_read(0)},
    reading("first_lost", {refused(op::read_response_middle, 1, 256), hear(asked(0, 600)), first(), middle(), last()},
            has_read(600).counts(again)),
    reading("middle_lost_and_answered_as_a_new_read",
            {first(), refused(op::read_response_last, 2, 88), hear(asked(1, 344, 256)), first(1), last()},
            has_read(600).counts(again)),
    reading("middle_lost_and_answered_as_the_rest",
            {first(), refused(op::read_response_last, 2, 88), hear(asked(1, 344, 256)), middle(), last()},
            has_read(600).counts(again)),
    reading("duplicate_response", {first(), refused(op::read_response_first, 0, 256), middle(), last()},
            has_read(600).counts(old)),
    reading("response_beyond_the_end", {refused(op::read_response_middle, 3, 256), first(), middle(), last()},
            has_read(600).counts(ghost)),
    reading("short_first", {refused(op::read_response_first, 0, 255)}, bad_response()),
    reading("long_first", {refused(op::read_response_first, 0, 257)}, bad_response()),
    reading("short_middle", {first(), refused(op::read_response_middle, 1, 255)}, bad_response()),
    reading("short_last", {first(), middle(), refused(op::read_response_last, 2, 87)}, bad_response()),
    reading("long_last", {first(), middle(), refused(op::read_response_last, 2, 89)}, bad_response()),
    reading("last_of_nothing", {first(), middle(), refused(op::read_response_last, 2, 0)}, bad_response()),
    reading("negative_response", {inject(part(op::read_response_first, 0, 256).aeth(0x60, 1))}, bad_response()),
    {"short_only",
     service::rc,
     {},
     {post(read(100)), hear(asked(0, 100)), refused(op::read_response_only, 0, 99)},
     bad_response()},
    {"atomic_answer_to_a_read", service::rc, {}, {post(read(8)), hear(asked(0, 8)), inject(value(0))}, bad_response()},
    {"read_answer_to_an_atomic",
     service::rc,
     {},
     {post(atomic()), hear(added(0)), refused(op::read_response_only, 0, 8)},
     bad_response()},
    {"read_answer_to_a_write",
     service::rc,
     {},
     {post(write()), hear(written(0)), refused(op::read_response_only, 0, 8)},
     bad_response()},
    {"atomic_answer_to_a_write", service::rc, {}, {post(write()), hear(written(0)), inject(value(0))}, bad_response()},
    {"acknowledgement_of_a_read_says_nothing",
     service::rc,
     {},
     {post(read(100)), hear(asked(0, 100)), inject(ack(0, 1)), rest(10),
      inject(part(op::read_response_only, 0, 100).lands_at(0))},
     has_read(100)},
    {"acknowledgement_behind_a_read_asks_again",
     service::rc,
     {},
     {post(read(100)), post(write()), hear(asked(0, 100)), hear(written(1)), inject(ack(1, 2)), hear(asked(0, 100)),
      hear(written(1)), inject(part(op::read_response_only, 0, 100).lands_at(0)), inject(ack(1, 2))},
     outcome().sends(got).sends(done).counts(again)},
    {"no_answer_to_a_read",
     service::rc,
     setup().timer(4, 1),
     {post(read(600)), hear(asked(0, 600)), first(), hear(asked(1, 344, 256)), silence(150)},
     fails(IBV_WC_RETRY_EXC_ERR, tree, vendor_retry).counts(timeouts, 2).counts(again)},
    {"atomic",
     service::rc,
     {},
     {post(atomic()), hear(added(0)), inject(value(0).lands_at(0))},
     outcome().sends(good(IBV_WC_FETCH_ADD, 8))},
    {"second_answer_to_an_atomic",
     service::rc,
     {},
     {post(atomic()), post(write()), hear(added(0)), hear(written(1)), inject(value(0).lands_at(0)), inject(value(0)),
      inject(ack(1, 2))},
     outcome().sends(good(IBV_WC_FETCH_ADD, 8)).sends(done).counts(old)},
};

// ----------------------------------------------------------------

class requester_errors : public testing::TestWithParam<row> {};
TEST_P(requester_errors, row) { play("requester_errors", GetParam()); }

#define ROWS(name, rows) INSTANTIATE_TEST_SUITE_P(name, requester_errors, testing::ValuesIn(rows), row_name())
constexpr std::initializer_list<service> reliable = {service::rc, service::xrc};
ROWS(acknowledge, on({service::rc}, acknowledge_rows));
ROWS(nak, on(reliable, nak_rows));
ROWS(retry, on(reliable, retry_rows));
ROWS(patience, on(reliable, {never_tires()}));
ROWS(read, on(reliable, read_rows));

}  // namespace
}  // namespace rnic::conformance
