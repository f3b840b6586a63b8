// SPDX-License-Identifier: Apache-2.0
// What the tables of the responder are written with.
#pragma once

#include <string>
#include <vector>

#include "testbenches/system/conformance/scenario.h"

namespace rnic::conformance::responder_rows {

using op = operation;
inline constexpr std::uint8_t sequence = 0x60, invalid = 0x61, access = 0x62, operational = 0x63;
inline constexpr std::uint64_t memory_end = 8192;
inline constexpr int seen_on_hardware = 0x88;  // vendor error of a responder (adapter data plane A.5.3)
inline const std::string naks = "responder.naks", oos = "diag.rq_num_oos", dup = "diag.rq_num_dup",
                         rnr = "diag.rq_num_rnr", rire = "diag.rq_num_rire", rae = "diag.rq_num_rae",
                         lle = "diag.rq_num_lle", lpe = "diag.rq_num_lpe";

inline packet send(int psn, std::uint32_t bytes = 100) { return packet(op::send_only, psn).bytes(bytes); }
inline packet write(int psn, std::uint32_t bytes = 100) { return packet(op::write_only, psn).bytes(bytes); }
inline packet read(int psn, std::int64_t bytes) { return packet(op::read_request, psn).of(bytes); }
inline packet atomic(int psn) { return packet(op::fetch_add, psn); }
inline packet value(int psn, std::uint32_t msn, std::uint64_t adds = 0) {
  return packet(op::atomic_acknowledge, psn).aeth(0x1f, msn).after_adding(adds);
}

inline outcome fine() { return {}; }
/// Class C without a receive: NAK, event, error state.
inline outcome refused() { return outcome().error().event(IBV_EVENT_QP_REQ_ERR).counts(naks).counts(rire); }
/// The same in a message that has taken a receive.
inline outcome refused_with_receive() {
  return outcome().error().receives(bad(IBV_WC_REM_INV_REQ_ERR, seen_on_hardware)).counts(naks).counts(rire);
}
inline outcome no_access() { return outcome().error().event(IBV_EVENT_QP_ACCESS_ERR).counts(naks).counts(rae); }
inline outcome dropped(const std::string& where) { return outcome().counts(where); }

/// One packet, and what comes of it.
inline row one(const char* name, const packet& p, int nak, const outcome& o) {
  row r{name, service::rc, {}, {inject(p)}, o};
  if (nak >= 0) r.steps.push_back(hear(ack(0, 0, static_cast<std::uint8_t>(nak))));
  return r;
}
inline row one(const char* name, const setup& s, const packet& p, int nak, const outcome& o) {
  row r = one(name, p, nak, o);
  r.before = s;
  return r;
}

inline outcome local(ibv_wc_status status, const std::string& counter) {
  return outcome().error().receives(bad(status, seen_on_hardware)).counts(naks).counts(counter);
}
inline setup into(std::uint32_t bytes, key k = key::good) { return setup().with({{bytes, k}, {}}); }

}  // namespace rnic::conformance::responder_rows
