// SPDX-License-Identifier: Apache-2.0
// The responder's error classes (IBA volume 1, 9.9.3 and table 58; adapter data plane C.7.2), one row each.
#include <vector>

#include "testbenches/system/conformance/scenario.h"

namespace rnic::conformance {
namespace {

using op = operation;
constexpr std::uint8_t sequence = 0x60, invalid = 0x61, access = 0x62, operational = 0x63;
constexpr std::uint64_t memory_end = 8192;
constexpr int seen_on_hardware = 0x88;  // vendor error of a responder (adapter data plane A.5.3)
const std::string naks = "responder.naks", oos = "diag.rq_num_oos", dup = "diag.rq_num_dup", rnr = "diag.rq_num_rnr",
                  rire = "diag.rq_num_rire", rae = "diag.rq_num_rae", lle = "diag.rq_num_lle", lpe = "diag.rq_num_lpe";

packet send(int psn, std::uint32_t bytes = 100) { return packet(op::send_only, psn).bytes(bytes); }
packet write(int psn, std::uint32_t bytes = 100) { return packet(op::write_only, psn).bytes(bytes); }
packet read(int psn, std::int64_t bytes) { return packet(op::read_request, psn).of(bytes); }
packet atomic(int psn) { return packet(op::fetch_add, psn); }
packet value(int psn, std::uint32_t msn, std::uint64_t adds = 0) {
  return packet(op::atomic_acknowledge, psn).aeth(0x1f, msn).after_adding(adds);
}

outcome fine() { return {}; }
/// Class C without a receive: NAK, event, error state.
outcome refused() { return outcome().error().event(IBV_EVENT_QP_REQ_ERR).counts(naks).counts(rire); }
/// The same in a message that has taken a receive.
outcome refused_with_receive() {
  return outcome().error().receives(bad(IBV_WC_REM_INV_REQ_ERR, seen_on_hardware)).counts(naks).counts(rire);
}
outcome no_access() { return outcome().error().event(IBV_EVENT_QP_ACCESS_ERR).counts(naks).counts(rae); }
outcome dropped(const std::string& where) { return outcome().counts(where); }

/// One packet, and what comes of it.
row one(const char* name, const packet& p, int nak, const outcome& o) {
  row r{name, service::rc, {}, {inject(p)}, o};
  if (nak >= 0) r.steps.push_back(hear(ack(0, 0, static_cast<std::uint8_t>(nak))));
  return r;
}
row one(const char* name, const setup& s, const packet& p, int nak, const outcome& o) {
  row r = one(name, p, nak, o);
  r.before = s;
  return r;
}

// ---------------------------------------------------------------- packet sequence numbers

const std::vector<row> sequence_rows = {
    {"expected",
     service::rc,
     {},
     {inject(send(0).lands_at(0)), hear(ack(0, 1))},
     fine().receives(good(IBV_WC_RECV, 100))},
    {"ahead", service::rc, {}, {inject(send(1)), hear(ack(0, 0, sequence))}, fine().counts(oos).counts(naks)},
    {"ahead_by_half_the_window",
     service::rc,
     {},
     {inject(send(0x7fffff)), hear(ack(0, 0, sequence))},
     fine().counts(oos).counts(naks)},
    {"one_nak_for_a_gap",
     service::rc,
     {},
     {inject(send(1)), hear(ack(0, 0, sequence)), inject(send(2)), inject(send(3)), silence(20)},
     fine().counts(oos, 3).counts(naks).counts("responder.drop.sequence", 2)},
    {"each_gap_has_its_nak",
     service::rc,
     {},
     {inject(send(1)), hear(ack(0, 0, sequence)), inject(send(0).lands_at(0)), hear(ack(0, 1)), inject(send(2)),
      hear(ack(1, 1, sequence))},
     fine().receives(good(IBV_WC_RECV, 100)).counts(oos, 2).counts(naks, 2)},
    {"behind_by_half_the_window", service::rc, {}, {inject(send(-0x800000)), hear(ack(-1, 0))}, fine().counts(dup)},
    {"duplicate_send",
     service::rc,
     {},
     {inject(send(0).lands_at(0)), hear(ack(0, 1)), inject(send(0)), hear(ack(0, 1))},
     fine().receives(good(IBV_WC_RECV, 100)).counts(dup)},
    {"duplicate_send_that_asks_for_nothing",
     service::rc,
     {},
     {inject(send(0).lands_at(0)), hear(ack(0, 1)), inject(send(0).silent()), hear(ack(0, 1))},
     fine().receives(good(IBV_WC_RECV, 100)).counts(dup)},
    {"duplicate_write_is_not_executed",
     service::rc,
     {},
     {inject(write(0).lands_at(0)), hear(ack(0, 1)), inject(write(0).at(512)), hear(ack(0, 1))},
     fine().counts(dup)},
    {"duplicate_of_long_ago",
     service::rc,
     {},
     {inject(write(0).lands_at(0)), hear(ack(0, 1)), inject(write(1).at(256).lands_at(256)), hear(ack(1, 2)),
      inject(write(2).at(512).lands_at(512)), hear(ack(2, 3)), inject(write(0).at(1024)), hear(ack(2, 3))},
     fine().counts(dup)},
    {"duplicate_read_from_the_middle",
     service::rc,
     {},
     {inject(read(0, 300)), hear(read_response(op::read_response_first, 0, 256)),
      hear(read_response(op::read_response_last, 1, 44).at(256)), inject(read(1, 44).at(256)),
      hear(read_response(op::read_response_only, 1, 44).at(256))},
     fine().counts(dup)},
    {"duplicate_read_whole",
     service::rc,
     {},
     {inject(read(0, 300)), hear(read_response(op::read_response_first, 0, 256)),
      hear(read_response(op::read_response_last, 1, 44).at(256)), inject(read(0, 300)),
      hear(read_response(op::read_response_first, 0, 256)), hear(read_response(op::read_response_last, 1, 44).at(256))},
     fine().counts(dup)},
    {"duplicate_read_of_more_than_there_was",
     service::rc,
     {},
     {inject(read(0, 300)), hear(read_response(op::read_response_first, 0, 256)),
      hear(read_response(op::read_response_last, 1, 44).at(256)), inject(read(0, 600)), silence(20)},
     fine().counts(dup).counts("responder.drop.duplicate_read")},
    {"duplicate_read_with_a_bad_key",
     service::rc,
     {},
     {inject(read(0, 100)), hear(read_response(op::read_response_only, 0, 100)),
      inject(read(0, 100).with(key::unknown)), silence(20)},
     fine().counts(dup).counts("responder.drop.duplicate_read")},
    {"duplicate_atomic_is_not_executed",
     service::rc,
     {},
     {inject(atomic(0).lands_at(0)), hear(value(0, 1)), inject(atomic(0)), hear(value(0, 1)),
      inject(atomic(1).lands_at(0)), hear(value(1, 2, 1))},
     fine().counts(dup)},
    {"duplicate_atomic_that_is_unknown",
     service::rc,
     {},
     {inject(atomic(-3)), silence(20)},
     fine().counts(dup).counts("responder.drop.duplicate_atomic")},
};

// ---------------------------------------------------------------- receives that are not there

const std::vector<row> resource_rows = {
    {"no_receive_for_a_send",
     service::rc,
     setup().with({}),
     {inject(send(0)), hear(ack(0, 0, 0x21)), post(receive{}), inject(send(0).lands_at(0)), hear(ack(0, 1))},
     fine().receives(good(IBV_WC_RECV, 100)).counts(rnr).counts(naks)},
    {"no_receive_for_a_write_with_immediate",
     service::rc,
     setup().with({}),
     {inject(packet(op::write_only_immediate).bytes(100)), hear(ack(0, 0, 0x21)), post(receive{}),
      inject(packet(op::write_only_immediate).bytes(100).lands_at(0)), hear(ack(0, 1))},
     fine().receives(good(IBV_WC_RECV_RDMA_WITH_IMM, 100)).counts(rnr).counts(naks)},
    {"no_receive_for_the_end_of_a_write",
     service::rc,
     setup().with({}),
     {inject(packet(op::write_first).bytes(256).of(356).silent().lands_at(0)),
      inject(packet(op::write_last_immediate, 1).bytes(100)), hear(ack(1, 0, 0x21)), post(receive{}),
      inject(packet(op::write_last_immediate, 1).bytes(100).lands_at(256)), hear(ack(1, 1))},
     fine().receives(good(IBV_WC_RECV_RDMA_WITH_IMM, 356)).counts(rnr).counts(naks)},
    {"timer_of_rnr",
     service::rc,
     setup().with({}).rnr_code(14),
     {inject(send(0)), hear(ack(0, 0, 0x2e))},
     fine().counts(rnr).counts(naks)},
    {"timer_of_rnr_zero",
     service::rc,
     setup().with({}).rnr_code(0),
     {inject(send(0)), hear(ack(0, 0, 0x20))},
     fine().counts(rnr).counts(naks)},
    {"one_nak_for_what_follows",
     service::rc,
     setup().with({}),
     {inject(send(0)), hear(ack(0, 0, 0x21)), inject(send(1)), silence(20)},
     fine().counts(rnr).counts(naks).counts(oos).counts("responder.drop.sequence")},
    {"more_reads_than_agreed",
     service::rc,
     setup().reads(1),
     {inject(read(0, 512)), inject(read(2, 512)), hear(read_response(op::read_response_first, 0, 256)),
      hear(read_response(op::read_response_last, 1, 256).at(256)), hear(ack(2, 1, invalid))},
     refused()},
    {"more_atomics_than_agreed",
     service::rc,
     setup().reads(1),
     {inject(atomic(0).lands_at(0)), inject(atomic(1)), hear(value(0, 1)), hear(ack(1, 1, invalid))},
     refused()},
};

// ---------------------------------------------------------------- requests that are wrong in themselves

const std::vector<row> request_rows = {
    one("write_not_allowed", setup().allows(IBV_ACCESS_REMOTE_READ), write(0), invalid, refused()),
    one("read_not_allowed", setup().allows(IBV_ACCESS_REMOTE_WRITE), read(0, 8), invalid, refused()),
    one("atomic_not_allowed", setup().allows(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE), atomic(0), invalid,
        refused()),
    one("fetch_add_misaligned", atomic(0).at(4), invalid, refused()),
    one("compare_swap_misaligned", packet(op::compare_swap).at(1), invalid, refused()),
    one("write_of_more_than_announced", write(0).of(60), invalid, refused()),
    one("write_of_less_than_announced", write(0).of(200), invalid, refused()),
    one("write_only_beyond_the_mtu", write(0, 300), invalid, refused()),
    one("write_only_of_more_than_a_packet", write(0, 256).of(300), invalid, refused()),
    one("write_first_that_is_short", packet(op::write_first).bytes(255).of(600), invalid, refused()),
    one("write_first_that_is_all", packet(op::write_first).bytes(256).of(256), invalid, refused()),
    one("write_beyond_2_to_31", packet(op::write_first).bytes(256).of(0x80000001), invalid, refused()),
    one("read_beyond_2_to_31", read(0, 0x80000001), invalid, refused()),
    one("send_only_beyond_the_mtu", send(0, 257), invalid, refused()),
    one("send_first_that_is_short", packet(op::send_first).bytes(255), invalid, refused()),
    one("send_first_that_is_empty", packet(op::send_first), invalid, refused()),
    {"write_last_of_less_than_is_left",
     service::rc,
     {},
     {inject(packet(op::write_first).bytes(256).of(600).lands_at(0)), hear(ack(0, 0)),
      inject(packet(op::write_last, 1).bytes(100)), hear(ack(1, 0, invalid))},
     refused()},
    {"write_last_of_more_than_is_left",
     service::rc,
     {},
     {inject(packet(op::write_first).bytes(256).of(300).lands_at(0)), hear(ack(0, 0)),
      inject(packet(op::write_last, 1).bytes(45)), hear(ack(1, 0, invalid))},
     refused()},
    {"write_middle_where_the_last_should_be",
     service::rc,
     {},
     {inject(packet(op::write_first).bytes(256).of(512).lands_at(0)), hear(ack(0, 0)),
      inject(packet(op::write_middle, 1).bytes(256)), hear(ack(1, 0, invalid))},
     refused()},
    {"send_middle_that_is_short",
     service::rc,
     {},
     {inject(packet(op::send_first).bytes(256).silent().lands_at(0)), inject(packet(op::send_middle, 1).bytes(255)),
      hear(ack(1, 0, invalid))},
     refused_with_receive()},
    {"send_last_that_is_empty",
     service::rc,
     {},
     {inject(packet(op::send_first).bytes(256).silent().lands_at(0)), inject(packet(op::send_last, 1)),
      hear(ack(1, 0, invalid))},
     refused_with_receive()},
    {"send_without_an_end",
     service::rc,
     {},
     {inject(packet(op::send_first).bytes(256).silent().lands_at(0)), inject(write(1)), hear(ack(1, 0, invalid))},
     refused_with_receive()},
    {"nothing_after_an_error",
     service::rc,
     {},
     {inject(packet(op::send_middle).bytes(256)), hear(ack(0, 0, invalid)), inject(send(0)), silence(20)},
     refused().counts("responder.drop.error")},
};

// ---------------------------------------------------------------- keys

const std::vector<row> key_rows = {
    one("write_key_unknown", write(0).with(key::unknown), access, no_access()),
    one("write_key_of_another_time", write(0).with(key::stale), access, no_access()),
    one("write_key_freed", write(0).with(key::freed), access, no_access()),
    one("write_key_without_the_right", write(0).with(key::read_only), access, no_access()),
    one("write_key_for_inside_only", write(0).with(key::local_only), access, no_access()),
    one("write_key_of_another_domain", write(0).with(key::other_domain), access, no_access()),
    one("write_beyond_the_end", write(0).at(memory_end - 99), access, no_access()),
    one("write_before_the_beginning", write(0).at(~std::uint64_t{0}), access, no_access()),
    one("write_of_which_a_later_packet_is_beyond", packet(op::write_first).bytes(256).of(memory_end + 1), access,
        no_access()),
    one("read_key_unknown", read(0, 8).with(key::unknown), access, no_access()),
    one("read_key_freed", read(0, 8).with(key::freed), access, no_access()),
    one("read_key_without_the_right", read(0, 8).with(key::write_only), access, no_access()),
    one("read_key_of_another_domain", read(0, 8).with(key::other_domain), access, no_access()),
    one("read_beyond_the_end", read(0, 8).at(memory_end - 7), access, no_access()),
    one("atomic_key_unknown", atomic(0).with(key::unknown), access, no_access()),
    one("atomic_key_without_the_right", atomic(0).with(key::no_atomic), access, no_access()),
    one("atomic_key_of_another_domain", atomic(0).with(key::other_domain), access, no_access()),
    one("atomic_beyond_the_end", atomic(0).at(memory_end), access, no_access()),
    {"write_with_immediate_takes_a_receive",
     service::rc,
     {},
     {inject(packet(op::write_only_immediate).bytes(100).with(key::read_only)), hear(ack(0, 0, access))},
     outcome().error().receives(bad(IBV_WC_REM_ACCESS_ERR, seen_on_hardware)).counts(naks).counts(rae)},
    {"what_was_good_is_acknowledged",
     service::rc,
     {},
     {inject(write(0).silent().lands_at(0)), inject(write(1).with(key::unknown)), hear(ack(1, 1, access))},
     no_access()},
    {"write_of_nothing_needs_no_key",
     service::rc,
     {},
     {inject(write(0, 0).with(key::unknown)), hear(ack(0, 1))},
     fine()},
    {"read_of_nothing_needs_no_key",
     service::rc,
     {},
     {inject(read(0, 0).with(key::unknown)), hear(read_response(op::read_response_only, 0, 0))},
     fine()},
};

// ---------------------------------------------------------------- what is wrong with a receive

outcome local(ibv_wc_status status, const std::string& counter) {
  return outcome().error().receives(bad(status, seen_on_hardware)).counts(naks).counts(counter);
}
setup into(std::uint32_t bytes, key k = key::good) { return setup().with({{bytes, k}, {}}); }

const std::vector<row> receive_rows = {
    one("send_longer_than_the_receive", into(100), send(0, 101), invalid, local(IBV_WC_LOC_LEN_ERR, lle)),
    {"message_longer_than_the_receive",
     service::rc,
     into(300),
     {inject(packet(op::send_first).bytes(256).silent().lands_at(0)), inject(packet(op::send_last, 1).bytes(45)),
      hear(ack(1, 0, invalid))},
     local(IBV_WC_LOC_LEN_ERR, lle)},
    {"message_that_just_fits",
     service::rc,
     into(300),
     {inject(packet(op::send_first).bytes(256).silent().lands_at(0)),
      inject(packet(op::send_last, 1).bytes(44).lands_at(256)), hear(ack(1, 1))},
     fine().receives(good(IBV_WC_RECV, 300))},
    one("receive_without_memory", into(0), send(0, 1), invalid, local(IBV_WC_LOC_LEN_ERR, lle)),
    one("receive_key_unknown", into(500, key::unknown), send(0), operational, local(IBV_WC_LOC_PROT_ERR, lpe)),
    one("receive_key_of_another_domain", into(500, key::other_domain), send(0), operational,
        local(IBV_WC_LOC_PROT_ERR, lpe)),
    one("receive_key_that_may_not_be_written", into(500, key::not_writable), send(0), operational,
        local(IBV_WC_LOC_PROT_ERR, lpe)),
    one("receive_key_freed", into(500, key::freed), send(0), operational, local(IBV_WC_LOC_PROT_ERR, lpe)),
    {"receive_of_a_send_of_nothing_needs_no_key",
     service::rc,
     into(500, key::unknown),
     {inject(send(0, 0)), hear(ack(0, 1))},
     fine().receives(good(IBV_WC_RECV, 0))},
    {"invalidation_of_a_bad_key",
     service::rc,
     {},
     {inject(packet(op::send_only_invalidate).bytes(100).with(key::unknown).lands_at(0)), silence(20)},
     outcome().error().receives(bad(IBV_WC_REM_INV_REQ_ERR, seen_on_hardware)).counts(rire)},
    {"invalidation_of_a_region",
     service::rc,
     {},
     {inject(packet(op::send_only_invalidate).bytes(100).lands_at(0)), silence(20)},
     outcome().error().receives(bad(IBV_WC_REM_INV_REQ_ERR, seen_on_hardware)).counts(rire)},
};

// ---------------------------------------------------------------- packets that are not for this queue pair

const std::vector<row> dropped_rows = {
    one("bad_icrc", send(0).broken(damage::icrc), -1, dropped("icrc_check.drop.bad_icrc.port1")),
    one("bad_version", send(0).broken(damage::version), -1, dropped("parser1.drop.bad_version")),
    one("bad_pad", send(0, 0).broken(damage::pad_excess), -1, dropped("parser1.drop.bad_pad")),
    one("shorter_than_it_says", send(0).broken(damage::truncated), -1, dropped("parser1.drop.truncated")),
    one("bad_partition", send(0).partition(0x1234), -1, dropped("responder.drop.pkey")),
    one("no_such_queue_pair", send(0).for_whom(target::absent), -1, dropped("responder.drop.no_qp")),
    one("no_such_number", send(0).for_whom(target::nobody_at_all), -1, dropped("responder.drop.no_qp")),
};
const std::vector<row> connected_rows = {
    one("from_a_stranger", send(0).by(source::stranger), -1, dropped("responder.drop.address")),
};

/// The other services' packets.
std::vector<row> foreign_rows() {
  std::vector<row> all;
  const struct {
    service s;
    std::uint8_t bits;
  } classes[] = {{service::rc, 0x00}, {service::uc, 0x20}, {service::ud, 0x60}, {service::xrc, 0xa0}};
  for (const auto& own : classes) {
    for (const auto& other : classes) {
      if (own.s == other.s) continue;
      row r = one("", send(0).raw(static_cast<std::uint8_t>(other.bits | 0x04)), -1, dropped("responder.drop.service"));
      r.name = std::string("packet_of_") + to_string(other.s);
      r.on = own.s;
      all.push_back(r);
    }
    row r = one("packet_of_rd", send(0).raw(0x44), -1, dropped("responder.drop.service"));
    r.on = own.s;
    all.push_back(r);
  }
  return all;
}

// ---------------------------------------------------------------- reliable services of their own

const std::vector<row> shared_rows = {
    {"shared_receive_refused_message",
     service::rc,
     setup().on_srq(),
     {inject(packet(op::send_first).bytes(256).silent().lands_at(0)), inject(write(1)), hear(ack(1, 0, invalid))},
     refused_with_receive().event(IBV_EVENT_QP_LAST_WQE_REACHED)},
    {"shared_receive_too_short",
     service::rc,
     setup().on_srq().with({{100}, {}}),
     {inject(send(0, 101)), hear(ack(0, 0, invalid))},
     local(IBV_WC_LOC_LEN_ERR, lle).event(IBV_EVENT_QP_LAST_WQE_REACHED)},
    {"shared_receive_missing",
     service::rc,
     setup().on_srq().with({}),
     {inject(send(0)), hear(ack(0, 0, 0x21))},
     fine().counts(rnr).counts(naks)},
    {"limited_member_of_the_partition",
     service::rc,
     {},
     {inject(send(0).partition(0x7fff).lands_at(0)), hear(ack(0, 1))},
     fine().receives(good(IBV_WC_RECV, 100))},
    // Two completions fit. The third is lost, and the queue pair with it (class G); what it owed by then is answered.
    {"more_completions_than_the_queue_holds",
     service::rc,
     setup().cq(1).with({{}, {}, {}, {}}),
     {inject(send(0).lands_at(0)), hear(ack(0, 1)), inject(send(1).lands_at(1024)), hear(ack(1, 2)),
      inject(send(2).lands_at(2048)), hear(ack(2, 3)), rest(20), inject(send(3)), silence(20)},
     outcome()
         .in(IBV_QPS_ERR)
         .receives(good(IBV_WC_RECV, 100))
         .receives(good(IBV_WC_RECV, 100))
         .event(IBV_EVENT_CQ_ERR)
         .event(IBV_EVENT_QP_FATAL)
         .counts("responder.drop.error")
         .counts("diag.rq_num_wrfe")},
};
const std::vector<row> xrc_rows = {
    one("receive_queue_of_another_domain", send(0).of_foreign_queue(), invalid, refused()),
    one("write_for_a_queue_of_another_domain", write(0).of_foreign_queue(), invalid, refused()),
};

// ---------------------------------------------------------------- unreliable connection

const std::string unreliable = "responder.drop.unreliable", no_wqe = "responder.drop.no_wqe",
                  out_of_order = "responder.drop.sequence";

const std::vector<row> uc_rows = {
    {"gap_before_a_message", service::rc, {}, {inject(send(5).lands_at(0))}, fine().receives(good(IBV_WC_RECV, 100))},
    {"psn_of_the_past", service::rc, {}, {inject(send(-9).lands_at(0))}, fine().receives(good(IBV_WC_RECV, 100))},
    {"gap_in_a_message",
     service::rc,
     {},
     {inject(packet(op::send_first).bytes(256).lands_at(0)), inject(packet(op::send_last, 2).bytes(10)),
      inject(send(3).lands_at(0))},
     fine().receives(good(IBV_WC_RECV, 100)).counts(out_of_order)},
    {"no_first", service::rc, {}, {inject(packet(op::send_last).bytes(10))}, dropped(out_of_order)},
    {"no_last_gives_the_receive_back",
     service::rc,
     {},
     {inject(packet(op::send_first).bytes(256).lands_at(0)), inject(send(1).lands_at(0))},
     fine().receives(good(IBV_WC_RECV, 100))},
    {"no_last_of_a_shared_receive",
     service::rc,
     setup().on_srq(),
     {inject(packet(op::send_first).bytes(256).lands_at(0)), rest(10), inject(send(1).lands_at(1024))},
     fine().receives(bad(IBV_WC_REM_INV_REQ_ERR, seen_on_hardware)).receives(good(IBV_WC_RECV, 100))},
    {"no_receive", service::rc, setup().with({}), {inject(send(0))}, dropped(no_wqe).counts("diag.rq_num_udsdprd")},
    one("write_not_allowed", setup().allows(0), write(0), -1, dropped(unreliable)),
    one("write_key_unknown", write(0).with(key::unknown), -1, dropped(unreliable)),
    one("write_key_of_another_domain", write(0).with(key::other_domain), -1, dropped(unreliable)),
    one("write_key_without_the_right", write(0).with(key::read_only), -1, dropped(unreliable)),
    one("write_beyond_the_end", write(0).at(memory_end - 99), -1, dropped(unreliable)),
    one("write_of_less_than_announced", write(0).of(200), -1, dropped(unreliable)),
    one("write_first_that_is_short", packet(op::write_first).bytes(255).of(600), -1, dropped(unreliable)),
    one("send_only_beyond_the_mtu", send(0, 257), -1, dropped(unreliable)),
    one("send_first_that_is_short", packet(op::send_first).bytes(255), -1, dropped(unreliable)),
    {"send_longer_than_the_receive",
     service::rc,
     into(100),
     {inject(send(0, 101))},
     outcome().error().receives(bad(IBV_WC_LOC_LEN_ERR, seen_on_hardware)).counts(lle)},
    {"receive_key_unknown",
     service::rc,
     into(500, key::unknown),
     {inject(send(0))},
     outcome().error().receives(bad(IBV_WC_LOC_PROT_ERR, seen_on_hardware)).counts(lpe)},
    one("read_request", packet(op::read_request).raw(0x2c), -1, dropped("parser1.drop.unknown_opcode")),
    one("fetch_add", packet(op::fetch_add).raw(0x34), -1, dropped("parser1.drop.unknown_opcode")),
    one("send_with_invalidate", packet(op::send_only_invalidate).raw(0x37), -1, dropped("parser1.drop.unknown_opcode")),
};

// ---------------------------------------------------------------- datagrams

const std::vector<row> ud_rows = {
    {"received", service::rc, {}, {inject(send(0).lands_at(0))}, fine().receives(good(IBV_WC_RECV, 140))},
    {"any_psn", service::rc, {}, {inject(send(0x1234).lands_at(0))}, fine().receives(good(IBV_WC_RECV, 140))},
    {"from_a_stranger",
     service::rc,
     {},
     {inject(send(0).by(source::stranger).lands_at(0))},
     fine().receives(good(IBV_WC_RECV, 140))},
    one("bad_qkey", send(0).wrong_qkey(), -1, dropped("responder.drop.qkey")),
    {"no_receive", service::rc, setup().with({}), {inject(send(0))}, dropped(no_wqe).counts("diag.rq_num_udsdprd")},
    {"longer_than_the_receive",
     service::rc,
     into(100),
     {inject(send(0, 61))},
     outcome().error().receives(bad(IBV_WC_LOC_LEN_ERR, seen_on_hardware)).counts(lle)},
    {"that_just_fits", {}, into(140), {inject(send(0).lands_at(0))}, fine().receives(good(IBV_WC_RECV, 140))},
    {"receive_key_unknown",
     service::rc,
     into(500, key::unknown),
     {inject(send(0))},
     outcome().error().receives(bad(IBV_WC_LOC_PROT_ERR, seen_on_hardware)).counts(lpe)},
    {"receive_key_of_another_domain",
     service::rc,
     into(500, key::other_domain),
     {inject(send(0))},
     outcome().error().receives(bad(IBV_WC_LOC_PROT_ERR, seen_on_hardware)).counts(lpe)},
    one("first_of_a_send", packet(op::send_first).raw(0x60).bytes(256), -1, dropped("parser1.drop.unknown_opcode")),
    one("write", packet(op::write_only).raw(0x6a), -1, dropped("parser1.drop.unknown_opcode")),
};

// ----------------------------------------------------------------

class responder_errors : public testing::TestWithParam<row> {};
TEST_P(responder_errors, row) { play("responder_errors", GetParam()); }

#define ROWS(name, rows) INSTANTIATE_TEST_SUITE_P(name, responder_errors, testing::ValuesIn(rows), row_name())
constexpr std::initializer_list<service> reliable = {service::rc, service::xrc};
ROWS(sequence, on(reliable, sequence_rows));
ROWS(resource, on(reliable, resource_rows));
ROWS(request, on(reliable, request_rows));
ROWS(key, on(reliable, key_rows));
ROWS(receive, on(reliable, receive_rows));
ROWS(dropped, on({service::rc, service::uc, service::ud, service::xrc}, dropped_rows));
ROWS(connected, on({service::rc, service::uc, service::xrc}, connected_rows));
ROWS(foreign, foreign_rows());
ROWS(own, on({service::rc}, shared_rows));
ROWS(xrc, on({service::xrc}, xrc_rows));
ROWS(uc, on({service::uc}, uc_rows));
ROWS(ud, on({service::ud}, ud_rows));

}  // namespace
}  // namespace rnic::conformance
