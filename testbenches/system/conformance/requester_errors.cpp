// SPDX-License-Identifier: Apache-2.0
// The requester's error classes (IBA volume 1, 9.9.2 and table 57; adapter data plane C.8.1 and C.8.2), one row each.
#include <vector>

#include "testbenches/system/conformance/scenario.h"

namespace rnic::conformance {
namespace {

using op = operation;
constexpr std::uint8_t sequence = 0x60, invalid = 0x61, access = 0x62, operational = 0x63;
constexpr std::uint8_t rnr_10us = 0x21, rnr_80us = 0x26, rnr_320us = 0x2a;
constexpr int vendor_access = 0x88, vendor_retry = 0x81, vendor_rnr = 0x87;  // adapter data plane C.8.2
const std::string naks = "requester.naks", rnr_naks = "requester.rnr_naks", again = "requester.retransmissions",
                  stray = "requester.stray_responses", ghost = "requester.ghost_responses",
                  old = "requester.duplicate_responses", not_ours = "requester.foreign_responses",
                  oos = "diag.sq_num_oos", rnr = "diag.sq_num_rnr", timeouts = "diag.sq_num_to",
                  tree = "diag.sq_num_tree", rree = "diag.sq_num_rree", rire = "diag.sq_num_rire",
                  rae = "diag.sq_num_rae", roe = "diag.sq_num_roe", bre = "diag.sq_num_bre", lle = "diag.sq_num_lle",
                  lpe = "diag.sq_num_lpe", lqpoe = "diag.sq_num_lqpoe", mwbe = "diag.sq_num_mwbe";

// What is posted,
work write(std::uint32_t bytes = 100) { return work(IBV_WR_RDMA_WRITE, bytes); }
work read(std::uint32_t bytes) { return work(IBV_WR_RDMA_READ, bytes); }
work atomic() { return work(IBV_WR_ATOMIC_FETCH_AND_ADD, 8); }
// what the peer sees of it,
packet written(int psn, std::uint32_t bytes = 100) { return packet(op::write_only, psn).bytes(bytes); }
packet asked(int psn, std::int64_t bytes, std::uint64_t at = 0) {
  return packet(op::read_request, psn).of(bytes).at(at);
}
packet added(int psn) { return packet(op::fetch_add, psn); }
// and what it answers.
packet nak(std::uint8_t code, int psn = 0) { return ack(psn, 0, code); }
packet part(op which, int psn, std::uint32_t bytes) { return read_response(which, psn, bytes); }
packet value(int psn) { return packet(op::atomic_acknowledge, psn).aeth(0x1f, 1); }

const completion done = good(IBV_WC_RDMA_WRITE);
outcome fine() { return {}; }
outcome wrote(unsigned n = 1) {
  outcome o;
  while (n-- != 0) o.sends(done);
  return o;
}
outcome fails(ibv_wc_status status, const std::string& counter, int vendor = -1) {
  return outcome().error().sends(bad(status, vendor)).counts(counter);
}
outcome bad_response() { return fails(IBV_WC_BAD_RESP_ERR, bre); }

/// A WRITE, another behind it, and an answer to the first that ends both.
row answered(const char* name, const packet& answer, const outcome& o) {
  return {name, service::rc, {}, {post(write()), post(write()), hear(written(0)), hear(written(1)), inject(answer)}, o};
}

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
step refused(op which, int psn, std::uint32_t bytes) { return inject(part(which, psn, bytes)); }

const std::vector<row> read_rows = {
    reading("whole", {first(), middle(), last()}, has_read(600)),
    {"one_packet",
     service::rc,
     {},
     {post(read(100)), hear(asked(0, 100)), inject(part(op::read_response_only, 0, 100).lands_at(0))},
     has_read(100)},
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

// ---------------------------------------------------------------- local errors

constexpr std::uint32_t signalled = 0x0c;
/// WQE: opcode, size in units of 16 bytes, then segments.
work raw(std::uint32_t opcode, std::uint32_t units, const std::vector<std::uint32_t>& segments = {}) {
  std::vector<std::uint32_t> words{opcode, units, signalled, 0};
  words.insert(words.end(), segments.begin(), segments.end());
  words.resize(16);
  return work(words);
}
const std::uint32_t half_of_all = 0x7fffffff;
/// Ends without a packet, and takes what follows with it.
row stops(const char* name, const work& w, ibv_wc_status status, const std::string& counter) {
  return {name, service::rc, {}, {post(w), post(write()), silence(20)}, fails(status, counter)};
}

const std::vector<row> local_rows = {
    stops("key_unknown", write().with(key::unknown), IBV_WC_LOC_PROT_ERR, lpe),
    stops("key_of_another_domain", write().with(key::other_domain), IBV_WC_LOC_PROT_ERR, lpe),
    stops("key_freed", write().with(key::freed), IBV_WC_LOC_PROT_ERR, lpe),
    stops("key_of_another_time", write().with(key::stale), IBV_WC_LOC_PROT_ERR, lpe),
    stops("beyond_the_end", write().at(8192 - 99), IBV_WC_LOC_PROT_ERR, lpe),
    {"good_ones_before_end_well",
     service::rc,
     {},
     {post(write()), post(write().with(key::unknown)), post(write()), hear(written(0)), silence(20), inject(ack(0, 1))},
     outcome().error().sends(done).sends(bad(IBV_WC_LOC_PROT_ERR)).counts(lpe)},
    {"in_the_second_packet",
     service::rc,
     {},
     {post(write(600).at(8192 - 300)),
      hear(packet(op::write_first).bytes(256).of(600).silent().from_memory(8192 - 300)), silence(20)},
     fails(IBV_WC_LOC_PROT_ERR, lpe)},
    {"read_into_what_may_not_be_written",
     service::rc,
     {},
     {post(read(100).with(key::not_writable)), hear(asked(0, 100)), refused(op::read_response_only, 0, 100)},
     fails(IBV_WC_LOC_PROT_ERR, lpe)},
    {"read_into_a_key_unknown",
     service::rc,
     {},
     {post(read(100).with(key::unknown)), hear(asked(0, 100)), refused(op::read_response_only, 0, 100)},
     fails(IBV_WC_LOC_PROT_ERR, lpe)},
    {"atomic_into_a_key_of_another_domain",
     service::rc,
     {},
     {post(atomic().with(key::other_domain)), hear(added(0)), inject(value(0))},
     fails(IBV_WC_LOC_PROT_ERR, lpe)},
    stops("request_of_no_size", raw(0x08, 0), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    stops("request_of_no_known_kind", raw(0x1e, 2), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    stops("write_without_an_address", raw(0x08, 1), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    stops("atomic_without_operands", raw(0x12, 2), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    stops("inline_data_across_a_line", raw(0x0a, 3, {0x80000000 | 60, 0, 0, 0}), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    stops("inline_data_beyond_the_request", raw(0x0a, 2, {0x80000000 | 20, 0, 0, 0}), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    stops("longer_than_any_message", raw(0x0a, 4, {half_of_all, 0, 0, 0, half_of_all, 0, 0, 0, half_of_all, 0, 0, 0}),
          IBV_WC_LOC_LEN_ERR, lle),
    stops("invalidation_of_a_bad_key", work(IBV_WR_LOCAL_INV, 0), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    stops("binding_of_a_bad_key", raw(0x18, 4, {0xe0000000, 0, 0x0fffff00, 0x0fffff00, 0, 0, 0, 0}), IBV_WC_MW_BIND_ERR,
          mwbe),
    stops("registration_of_a_bad_key", raw(0x19, 4, {0, 0x0fffff00}), IBV_WC_LOC_QP_OP_ERR, lqpoe),
};
const std::vector<row> atomic_length_rows = {
    stops("atomic_of_four_bytes", work(IBV_WR_ATOMIC_FETCH_AND_ADD, 4), IBV_WC_LOC_QP_OP_ERR, lqpoe),
};

// ---------------------------------------------------------------- unreliable services

/// The send queue alone is in error (IBA 10.3.1.6), everything behind is flushed.
row breaks(const char* name, const work& w, ibv_wc_status status, const std::string& counter) {
  outcome o = fails(status, counter).in(IBV_QPS_SQE);
  o.receives_live = true;
  return {name, service::uc, {}, {post(w), post(work(IBV_WR_SEND, 100)), silence(20)}, o};
}
work send(std::uint32_t bytes = 100) { return work(IBV_WR_SEND, bytes); }

const std::vector<row> unreliable_rows = {
    {"sent",
     service::uc,
     {},
     {post(send()), hear(packet(op::send_only).bytes(100).silent())},
     outcome().sends(good(IBV_WC_SEND))},
    breaks("key_unknown", send().with(key::unknown), IBV_WC_LOC_PROT_ERR, lpe),
    breaks("key_of_another_domain", send().with(key::other_domain), IBV_WC_LOC_PROT_ERR, lpe),
    breaks("beyond_the_end", send().at(8192 - 99), IBV_WC_LOC_PROT_ERR, lpe),
    breaks("request_of_no_size", raw(0x0a, 0), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    breaks("read", raw(0x10, 3), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    breaks("fetch_add", raw(0x12, 4), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    breaks("compare_swap", raw(0x11, 4), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    breaks("send_with_invalidate", raw(0x01, 1), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    {"good_ones_before_end_well",
     service::uc,
     {},
     {post(send()), post(send().with(key::unknown)), post(send()), hear(packet(op::send_only).bytes(100).silent()),
      silence(20)},
     [] {
       outcome o = outcome().error().sends(good(IBV_WC_SEND)).sends(bad(IBV_WC_LOC_PROT_ERR)).counts(lpe);
       o.receives_live = true;
       return o.in(IBV_QPS_SQE);
     }()},
};
const std::vector<row> datagram_rows = {
    breaks("longer_than_a_packet", send(4097), IBV_WC_LOC_LEN_ERR, lle),
    breaks("write", raw(0x08, 8), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    breaks("write_with_immediate", raw(0x09, 8), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    breaks("without_an_address", raw(0x0a, 2), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    {"longest",
     service::ud,
     {},
     {post(send(4096)), hear(packet(op::send_only).bytes(4096).silent())},
     outcome().sends(good(IBV_WC_SEND))},
};
const std::vector<row> uc_only_rows = {
    {"answers_are_nothing_to_it",
     service::uc,
     {},
     {post(send()), hear(packet(op::send_only).bytes(100).silent()), rest(5), inject(ack(0, 1).raw(0x11))},
     outcome().sends(good(IBV_WC_SEND)).counts(stray)},
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
ROWS(local, on(reliable, local_rows));
ROWS(atomic, on(reliable, atomic_length_rows));
ROWS(unreliable, on({service::uc, service::ud}, unreliable_rows));
ROWS(datagram, on({service::ud}, datagram_rows));
ROWS(uc, on({service::uc}, uc_only_rows));

}  // namespace
}  // namespace rnic::conformance
