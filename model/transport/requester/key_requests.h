// SPDX-License-Identifier: Apache-2.0
// Operations on memory keys that send queues ask for: local invalidation, fast registration, binding of windows.
#pragma once

#include <cstdint>

#include "model/icm/key_operation_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/statistics.h"
#include "model/transport/requester/departures.h"
#include "model/transport/requester/send_unit.h"
#include "model/transport/requester/tables.h"

namespace rnic::transport {

/// Part of the processing units. Ports: requests to the key engine and its answers, one a cycle each. A unit has one
/// operation under way, for which it waits.
class key_requests {
 public:
  key_requests(sim::clocked_block& owner, icm::key_port& keys, qp_table& qps, unit_table& units, departures& leaving)
      : owner_(owner), keys_(keys), qps_(qps), units_(units), leaving_(leaving) {}
  void announce(sim::statistics& to) const { to.add(owner_.name() + ".key_operations", operations_); }

  /// The operation of the unit's WQE. False: not now. A refusal is in u.wqe.error.
  bool run(send_unit& u);
  void take_answer();
  /// Units that wait for an answer.
  std::uint32_t operating() const { return operating_; }

 private:
  bool may_begin(send_unit& u);

  sim::clocked_block& owner_;
  icm::key_port& keys_;
  qp_table& qps_;
  unit_table& units_;
  departures& leaving_;
  std::uint32_t operating_ = 0;  // mask of units
  std::uint64_t operations_ = 0;
};

}  // namespace rnic::transport
