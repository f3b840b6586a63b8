// SPDX-License-Identifier: Apache-2.0
// The responder's error classes of unreliable services (IBA volume 1, 9.9.3 and table 58; adapter data plane C.7.2),
// and packets that no service takes (9.6.1; A.9.1), one row each.
#include <vector>

#include "testbenches/system/conformance/responder_rows.h"

namespace rnic::conformance {
namespace {

using namespace responder_rows;

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

class unreliable_responder_errors : public testing::TestWithParam<row> {};
TEST_P(unreliable_responder_errors, row) { play("responder_errors", GetParam()); }

#define ROWS(name, rows) \
  INSTANTIATE_TEST_SUITE_P(name, unreliable_responder_errors, testing::ValuesIn(rows), row_name())
ROWS(dropped, on({service::rc, service::uc, service::ud, service::xrc}, dropped_rows));
ROWS(connected, on({service::rc, service::uc, service::xrc}, connected_rows));
ROWS(foreign, foreign_rows());
ROWS(uc, on({service::uc}, uc_rows));
ROWS(ud, on({service::ud}, ud_rows));

}  // namespace
}  // namespace rnic::conformance
