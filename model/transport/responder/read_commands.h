// SPDX-License-Identifier: Apache-2.0
// What the responder and the READ generator tell each other.
#pragma once

#include <cstdint>

#include "model/icm/translation_if.h"
#include "model/sim/span.h"
#include "model/transport/responder/answer_port.h"
#include "model/transport/responder/atomics.h"

namespace rnic::transport {

/// Requests of a queue pair are counted, modulo 2^32. Whether the one at `at` comes behind the one at `sequence`,
constexpr bool behind(std::uint32_t at, std::uint32_t sequence) { return static_cast<std::int32_t>(at - sequence) > 0; }
/// and whether an answer that goes behind the first `after` of them is due when so many are through.
constexpr bool is_due(std::uint32_t through, std::uint32_t after) { return !behind(after, through); }

/// From the responder, in order. Of a queue pair, what has to be answered in this order; nothing of its context is
/// read later.
struct read_command {
  enum class kind : std::uint8_t {
    read,
    atomic,
    replay,       ///< an atomic that was executed before: `original` is the answer
    acknowledge,  ///< an ACK that goes behind the READs before it, and answers those before it as well
    refuse,       ///< a NAK in that place
    discard,      ///< what was not sent of the flow is given up; its end is reported
    revoke,       ///< `key` has lost its meaning; reported when nothing translated under it can touch memory
    forget,       ///< `qpn` is gone: its rates,
    forget_all    ///< and those of all queue pairs
  };
  kind what = kind::read;
  bool again = false;         ///< a repeated request: goes before those of later PSNs
  std::uint8_t syndrome = 0;  ///< of its answer
  std::uint16_t flow = 0;     ///< the queue pair's place on chip
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0, msn = 0;
  std::uint32_t key = 0, length = 0, pd = 0;
  std::uint64_t va = 0;
  std::uint64_t writes_before = 0;  ///< payload writes that must be on their way before it is handed over
  icm::translate_response first;    ///< READ: translation of its first packet, atomic: of its operand; if any
  atomic_operation operation;
  std::uint64_t original = 0;
  sim::span_id span = 0;
  answer_address to;
};

/// From the generator, in order.
struct read_report {
  enum class kind : std::uint8_t {
    ended,      ///< a READ or an atomic: answered, given up, or left to one that repeats it. Its place is free
    answered,   ///< `answers` ACKs and NAKs are sent, or others in their place
    fault,      ///< memory cannot be read, or not any more: the flow's requests are given up, until `discard`
    discarded,  ///< nothing of the flow is here
    revoked
  };
  kind what = kind::ended;
  bool again = false;               ///< ended: it was a repeated request
  bool atomic = false;              ///< ended: the flow's ring is not needed for it any more
  bool executed = false;            ///< ended: memory was changed; `original` was there, `psn` asked
  bool dropped = false;             ///< ended: repeated though its answer was still to be sent
  bool replay = false;              ///< ended: of an atomic
  std::uint8_t acks = 0, naks = 0;  ///< answered: of these were sent
  std::uint8_t nak = 0, event = 0;  ///< fault
  std::uint16_t flow = 0;
  std::uint32_t answers = 0;
  std::uint32_t psn = 0, msn = 0;
  std::uint64_t original = 0;
};

}  // namespace rnic::transport
