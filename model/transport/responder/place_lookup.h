// SPDX-License-Identifier: Apache-2.0
// Where the payload of checked packets goes: their translations.
#pragma once

#include <cstdint>

#include "model/icm/translation_if.h"
#include "model/sim/clocked_block.h"
#include "model/transport/responder/flow_table.h"
#include "model/transport/responder/slot_table.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder: asks address translation for the pieces of the packets between check and commit, and writes
/// the answers into their slots.
///
/// Ports: one request, one answer a cycle. The request of a packet that finds nobody before it goes in the cycle of its
/// check; others follow in the order of acceptance. Of READs and atomics responder_config::read_translations at once.
/// Stalls: translation's channel is full.
class place_lookup {
 public:
  place_lookup(sim::clocked_block& owner, const responder_config& cfg, const responder_registers& registers,
               icm::translate_port& port, const flow_table& flows, slot_table& slots);

  /// A piece of the packet: up to 4096 bytes, of whose message `check_length` bytes must be accessible (0: only its
  /// own).
  void add(responder_slot& s, std::uint64_t va, std::uint32_t key, std::uint32_t length, std::uint64_t check_length,
           icm::access access);
  /// The check is over: its pieces may be asked for.
  void issue(responder_slot& s);
  /// Nothing more of it is asked for.
  void cancel(responder_slot& s);
  /// Goes on with those that had to wait. In each tick.
  void work();
  void translated(const icm::translate_response& r);
  /// No READ or atomic may be added now; the owner is ticked when one may.
  bool full_of_reads() const { return reads_ >= most_reads_; }

 private:
  void ask(responder_slot& s);
  void advance();

  sim::clocked_block& owner_;
  const responder_registers& registers_;
  icm::translate_port& port_;
  const flow_table& flows_;
  slot_table& slots_;
  const unsigned most_reads_;
  std::uint16_t next_ = no_link;  // oldest packet with pieces that were not asked for
  unsigned reads_ = 0;            // first addresses of READs and atomics that translation owes
};

}  // namespace rnic::transport
