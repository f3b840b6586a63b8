// SPDX-License-Identifier: Apache-2.0
// SEND with invalidate, and keys that lose their meaning, at the responder.
#pragma once

#include <cstdint>
#include <string>

#include "model/icm/key_operation_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/statistics.h"
#include "model/transport/responder/completion_port.h"
#include "model/transport/responder/payload_writes.h"
#include "model/transport/responder/read_port.h"
#include "model/transport/responder/slot_table.h"

namespace rnic::transport {

/// Part of the responder (IBA 9.4.1.1, 10.6.7): asks for the withdrawal of the key that a SEND names, and answers for
/// what the responder has under a key that is withdrawn, by whomever.
///
/// Ports: one operation, one answer a cycle; one revocation at a time, in three steps. A walk over the packets between
/// check and commit, one a cycle: one that was checked under the key and has not begun to write is refused, as if it
/// had come later; one that has begun is waited for until all its payload has been asked for. What is checked behind
/// the walk finds the key withdrawn in translation. Then the READ generator is told, behind what it was handed
/// meanwhile; last an empty write, behind all payload, leaves.
///
/// Writes: an answer that of the operation into the packet's place (`keys`), the walk the refusal into the place at
/// which it stands (`status`): fields of their own, each with one write a cycle. The entry of the key is the key
/// engine's, who writes it through a counted port (icm/translation.h). Counter: invalidations.
class key_withdrawal {
 public:
  key_withdrawal(sim::clocked_block& owner, icm::key_port& keys, slot_table& slots, payload_writes& writes,
                 read_port& reads, completion_port& completions);
  void announce(sim::statistics& to, const std::string& name) const;

  /// The packet's payload is on its way. False: the key that it names is not withdrawn yet.
  bool invalidate(responder_slot& s, const responder_flow& f);
  /// The key could not be withdrawn, class J of the standard's responder errors: the receive ends in error and so does
  /// the queue pair; there is no NAK (C.7.2). `port`: of its path.
  void fail(responder_slot& s, unsigned port);
  void take_answer();
  /// The READ generator does not need the key any more.
  void reads_revoked() { reads_revoked_ = true; }
  /// Goes on with a revocation.
  void work();

 private:
  enum class phase : std::uint8_t { idle, walking, telling, told, flushing };
  bool pass(responder_slot& s) const;
  void walk();

  sim::clocked_block& owner_;
  icm::key_port& keys_;
  slot_table& slots_;
  payload_writes& writes_;
  read_port& reads_;
  completion_port& completions_;
  phase at_ = phase::idle;
  std::size_t place_ = 0;  // walking: the next one
  bool reads_revoked_ = false;
  std::uint64_t flush_end_ = 0;  // flushing is done when as many writes are
  std::uint32_t key_ = 0;
  std::uint64_t invalidations_ = 0;
};

}  // namespace rnic::transport
