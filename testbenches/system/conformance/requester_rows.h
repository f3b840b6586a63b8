// SPDX-License-Identifier: Apache-2.0
// What the tables of the requester are written with.
#pragma once

#include <string>
#include <vector>

#include "testbenches/system/conformance/scenario.h"

namespace rnic::conformance::requester_rows {

using op = operation;
inline constexpr std::uint8_t sequence = 0x60, invalid = 0x61, access = 0x62, operational = 0x63;
inline constexpr std::uint8_t rnr_10us = 0x21, rnr_80us = 0x26, rnr_320us = 0x2a;
inline constexpr int vendor_access = 0x88, vendor_retry = 0x81, vendor_rnr = 0x87;  // adapter data plane C.8.2
inline const std::string naks = "requester.naks", rnr_naks = "requester.rnr_naks", again = "requester.retransmissions",
                         stray = "requester.stray_responses", ghost = "requester.ghost_responses",
                         old = "requester.duplicate_responses", not_ours = "requester.foreign_responses",
                         oos = "diag.sq_num_oos", rnr = "diag.sq_num_rnr", timeouts = "diag.sq_num_to",
                         tree = "diag.sq_num_tree", rree = "diag.sq_num_rree", rire = "diag.sq_num_rire",
                         rae = "diag.sq_num_rae", roe = "diag.sq_num_roe", bre = "diag.sq_num_bre",
                         lle = "diag.sq_num_lle", lpe = "diag.sq_num_lpe", lqpoe = "diag.sq_num_lqpoe",
                         mwbe = "diag.sq_num_mwbe";

// What is posted,
inline work write(std::uint32_t bytes = 100) { return work(IBV_WR_RDMA_WRITE, bytes); }
inline work read(std::uint32_t bytes) { return work(IBV_WR_RDMA_READ, bytes); }
inline work atomic() { return work(IBV_WR_ATOMIC_FETCH_AND_ADD, 8); }
// what the peer sees of it,
inline packet written(int psn, std::uint32_t bytes = 100) { return packet(op::write_only, psn).bytes(bytes); }
inline packet asked(int psn, std::int64_t bytes, std::uint64_t at = 0) {
  return packet(op::read_request, psn).of(bytes).at(at);
}
inline packet added(int psn) { return packet(op::fetch_add, psn); }
// and what it answers.
inline packet nak(std::uint8_t code, int psn = 0) { return ack(psn, 0, code); }
inline packet part(op which, int psn, std::uint32_t bytes) { return read_response(which, psn, bytes); }
inline packet value(int psn) { return packet(op::atomic_acknowledge, psn).aeth(0x1f, 1); }

inline const completion done = good(IBV_WC_RDMA_WRITE);
inline outcome fine() { return {}; }
inline outcome wrote(unsigned n = 1) {
  outcome o;
  while (n-- != 0) o.sends(done);
  return o;
}
inline outcome fails(ibv_wc_status status, const std::string& counter, int vendor = -1) {
  return outcome().error().sends(bad(status, vendor)).counts(counter);
}
inline outcome bad_response() { return fails(IBV_WC_BAD_RESP_ERR, bre); }

/// A WRITE, another behind it, and an answer to the first that ends both.
inline row answered(const char* name, const packet& answer, const outcome& o) {
  return {name, service::rc, {}, {post(write()), post(write()), hear(written(0)), hear(written(1)), inject(answer)}, o};
}
inline step refused(op which, int psn, std::uint32_t bytes) { return inject(part(which, psn, bytes)); }

}  // namespace rnic::conformance::requester_rows
