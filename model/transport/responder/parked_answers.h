// SPDX-License-Identifier: Apache-2.0
// Answers that make room on chip while their port is paused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/sim/clocked_block.h"
#include "model/sim/seldom.h"
#include "model/sim/statistics.h"
#include "model/transport/responder/acknowledgement.h"
#include "model/transport/responder/answer_lines.h"
#include "model/transport/responder/answer_port.h"
#include "model/transport/responder/flow_table.h"

namespace rnic::transport {

/// Part of the responder. What is received must not wait for what is sent: of two adapters whose ports are paused by
/// each other none would ever go on. A queue pair that has nothing on chip but an answer for a line (port and priority)
/// without a place leaves with its context when a place on chip is asked for in vain (owed_answer.h); its number waits
/// here, in a line of the same port and priority. When that has a place again, the queue pair comes back for its
/// answer, before new ones.
///
/// Ports: one queue pair leaves in a cycle, one comes back at a time, with an access to its context, and one answer
/// that has come back goes on in a cycle. Memory: `parked_answers` numbers, found with a comparator at each. Where they
/// are all taken, the answer goes with the next packet of its queue pair. Counter: parked_answers.
class parked_answers {
 public:
  parked_answers(sim::clocked_block& owner, const responder_config& cfg, flow_table& flows, acknowledgement& answers,
                 answer_port& out);
  void announce(sim::statistics& to, const std::string& name) const;

  /// In each tick: one that leaves, in front of flow_table::leave(),
  void park();
  /// and one that comes back, behind it.
  void bring_back();
  /// and behind all that writes to queue pairs.
  void watch() {
    if (sim::seldom(flows_.news().short_of_places && !flows_.news().touched.empty())) owner_.wake_next();
  }
  /// Firmware has stopped the queue pair: its answer is not awaited.
  void forget(std::uint32_t qpn);
  void clear();

 private:
  void add(const responder_flow& f);
  void begin();

  sim::clocked_block& owner_;
  flow_table& flows_;
  acknowledgement& answers_;
  answer_port& out_;
  std::vector<std::uint32_t> numbers_;  // by entry; no_number: free
  answer_lines lines_;                  // of entries
  std::uint16_t back_ = no_link;        // the place of the one that comes back
  std::uint64_t parked_ = 0;
};

}  // namespace rnic::transport
