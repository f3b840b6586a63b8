// SPDX-License-Identifier: Apache-2.0
// Rows of the conformance tables: what is done to a queue pair, and everything that must come of it.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/wire/packet.h"

namespace rnic::conformance {

using wire::operation;

/// Service of the queue pair under test. `xrc`: its half that the row is about.
enum class service : std::uint8_t { rc, uc, ud, xrc };
const char* to_string(service s);

/// The key that a packet or a work request names. All but the last ones are of the right memory.
enum class key : std::uint8_t {
  good,
  read_only,     ///< nobody may write from outside
  write_only,    ///< nobody may read from outside
  no_atomic,     ///< all rights but that of atomics
  local_only,    ///< no right from outside
  not_writable,  ///< not even from inside
  other_domain,
  freed,    ///< was valid once
  stale,    ///< the tag of another time
  unknown,  ///< of no entry of the table
  window    ///< a window bound to the queue pair: setup::window
};

/// Whom a packet is for, and who says to have sent it.
enum class target : std::uint8_t { own, absent, nobody_at_all };
enum class source : std::uint8_t { peer, stranger };
/// What is wrong with a frame that its headers do not say.
/// `trailer`: nothing but bytes behind the ICRC, which no length counts.
enum class damage : std::uint8_t { none, icrc, version, pad_excess, truncated, trailer };

/// A packet to inject or to hear. Numbers of requests count from the first one that their receiver expects, numbers of
/// responses from the request that they answer, both as in the row's direction.
struct packet {
  packet(operation o, int psn_offset = 0) : op(o), psn(psn_offset) {}
  operation op;
  int psn;
  int raw_opcode = -1;             ///< all eight bits, when not of the row's service
  std::uint32_t length = 0;        ///< payload
  bool carries = false;            ///< payload also where the opcode has none
  bool asks = true;                ///< AckReq
  std::int64_t dma = -1;           ///< RETH length when it is not that of the payload
  std::uint64_t place = 0;         ///< in the memory that it is about
  std::int64_t source_place = -1;  ///< of a payload that is heard, when it is not `place`
  key rkey = key::good;
  std::uint8_t syndrome = 0x1f;
  std::uint32_t msn = 0;
  target to = target::own;
  source from = source::peer;
  damage harm = damage::none;
  std::uint16_t pkey = 0xffff;
  std::uint32_t qkey_offset = 0;  ///< added to the right one
  bool foreign_queue = false;     ///< XRC: names a shared receive queue of another domain
  std::uint64_t adds = 0;         ///< heard answer of an atomic: what others have added before it
  std::int64_t lands = -1;        ///< injected payload must be in memory in the end, from here on

  packet& bytes(std::uint32_t n) { return length = n, *this; }
  packet& loaded(std::uint32_t n) { return length = n, carries = true, *this; }
  packet& silent() { return asks = false, *this; }
  packet& of(std::int64_t total) { return dma = total, *this; }
  packet& at(std::uint64_t offset) { return place = offset, *this; }
  packet& from_memory(std::int64_t offset) { return source_place = offset, *this; }
  packet& with(key k) { return rkey = k, *this; }
  packet& aeth(std::uint8_t s, std::uint32_t m) { return syndrome = s, msn = m, *this; }
  packet& raw(std::uint8_t o) { return raw_opcode = o, *this; }
  packet& for_whom(target t) { return to = t, *this; }
  packet& by(source s) { return from = s, *this; }
  packet& broken(damage d) { return harm = d, *this; }
  packet& partition(std::uint16_t p) { return pkey = p, *this; }
  packet& wrong_qkey() { return qkey_offset = 1, *this; }
  packet& of_foreign_queue() { return foreign_queue = true, *this; }
  packet& after_adding(std::uint64_t n) { return adds = n, *this; }
  packet& lands_at(std::int64_t offset) { return lands = offset, *this; }
};
packet ack(int psn, std::uint32_t msn, std::uint8_t syndrome = 0x1f);
packet read_response(operation which, int psn, std::uint32_t bytes, std::uint32_t msn = 1);

/// A send request.
struct work {
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
  std::uint32_t length = 0;
  key lkey = key::good;
  std::int64_t place = 0;  ///< of the local buffer; the remote one begins at 0
  unsigned flags = IBV_SEND_SIGNALED;
  bool no_vector = false;            ///< UD: address handle with a GID index that the port has not
  std::vector<std::uint32_t> words;  ///< not empty: this WQE, word for word but for the owner bit
  work(ibv_wr_opcode o, std::uint32_t n) : opcode(o), length(n) {}
  explicit work(std::vector<std::uint32_t> raw) : words(std::move(raw)) {}
  work& with(key k) { return lkey = k, *this; }
  work& at(std::int64_t offset) { return place = offset, *this; }
  work& without_vector() { return no_vector = true, *this; }
  work& unsignalled() { return flags &= ~unsigned{IBV_SEND_SIGNALED}, *this; }
};

/// A receive request.
struct receive {
  std::uint32_t length = 1024;
  key lkey = key::good;
  unsigned segments = 1;
  bool malformed = false;  ///< a segment of an impossible length
};

struct step {
  enum class kind : std::uint8_t { inject, hear, post, post_receive, ring, modify, drain, look, rest, silence };
  kind what;
  packet p{operation::acknowledge};
  work w{IBV_WR_SEND, 0};
  receive r;
  ibv_qp_state state = IBV_QPS_RESET;
  unsigned us = 0;
};
step inject(const packet& p);
step hear(const packet& p);
step post(const work& w);
step post(const receive& r);
/// A doorbell without a request.
step ring();
step modify(ibv_qp_state to);
/// To SQD, with an event at its end.
step drain();
/// Software asks for the state, and so knows of it.
step look();
step rest(unsigned microseconds);
/// Nothing may be heard before the next step.
step silence(unsigned microseconds);

/// A completion. Those that are flushed at a row's end are not written down: see outcome::error.
struct completion {
  ibv_wc_status status = IBV_WC_SUCCESS;
  int opcode = -1;  ///< ibv_wc_opcode of successful ones
  std::int64_t bytes = -1;
  int vendor = -1;  ///< -1: 0
};
completion good(ibv_wc_opcode opcode, std::int64_t bytes = -1);
completion bad(ibv_wc_status status, int vendor = -1);

/// The queue pair before the first step.
struct setup {
  unsigned access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  std::vector<receive> receives{{}, {}};
  unsigned rd_atomic = 16;
  unsigned ack_timeout = 0;  ///< code; 0: none
  unsigned retries = 7, rnr_retries = 7;
  unsigned rnr_timer = 1;
  bool shared = false;  ///< receives are of a shared receive queue
  unsigned cq_entries = 64;
  bool sends = false;   ///< XRC: the half that sends; said by the steps
  bool window = false;  ///< key::window is there
  ibv_qp_state state = IBV_QPS_RTS;
  setup& allows(unsigned a) { return access = a, *this; }
  setup& with(std::vector<receive> r) { return receives = std::move(r), *this; }
  setup& reads(unsigned n) { return rd_atomic = n, *this; }
  setup& timer(unsigned code, unsigned tries) { return ack_timeout = code, retries = tries, *this; }
  setup& rnr(unsigned tries) { return rnr_retries = tries, *this; }
  setup& on_srq() { return shared = true, *this; }
  setup& rnr_code(unsigned code) { return rnr_timer = code, *this; }
  setup& in(ibv_qp_state s) { return state = s, *this; }
  setup& cq(unsigned entries) { return cq_entries = entries, *this; }
};

/// What there must be in the end, and nothing else.
struct outcome {
  ibv_qp_state state = IBV_QPS_RTS;
  std::vector<completion> sent, received;
  std::vector<ibv_event_type> events;
  std::map<std::string, std::uint64_t> counters;
  bool flushes = false;  ///< what was posted and has no completion in the lists above is flushed, in order

  bool receives_live = false;  ///< only the send queue is flushed
  outcome& sends(const completion& c) { return sent.push_back(c), *this; }
  outcome& receives(const completion& c) { return received.push_back(c), *this; }
  outcome& event(ibv_event_type e) { return events.push_back(e), *this; }
  outcome& counts(const std::string& name, std::uint64_t n = 1) { return counters[name] += n, *this; }
  /// The queue pair is in the error state, and everything left is flushed and counted as such.
  outcome& error() { return state = IBV_QPS_ERR, flushes = true, *this; }
  outcome& in(ibv_qp_state s) { return state = s, *this; }
};

struct row {
  std::string name;
  service on = service::rc;
  setup before;
  std::vector<step> steps;
  outcome after;
};

/// Plays a row and checks everything: gtest failures say what was otherwise.
void play(const char* area, const row& r);

/// Test parameter: gtest names a case after it.
std::ostream& operator<<(std::ostream& to, const row& r);
struct row_name {
  std::string operator()(const testing::TestParamInfo<row>& info) const {
    return std::string(to_string(info.param.on)) + "_" + info.param.name;
  }
};
/// The same rows for each of these services.
std::vector<row> on(std::initializer_list<service> services, const std::vector<row>& rows);

}  // namespace rnic::conformance
