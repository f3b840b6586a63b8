// SPDX-License-Identifier: Apache-2.0
// What processing units read of send queues: which unit has what on chip, and what it asks for.
#pragma once

#include <cstdint>

#include "model/icm/contexts.h"
#include "model/scheduler/scheduler_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/statistics.h"
#include "model/transport/requester/config.h"
#include "model/transport/requester/descriptor_fetch.h"
#include "model/transport/requester/send_unit.h"
#include "model/transport/requester/tables.h"

namespace rnic::transport {

/// Part of the processing units. Ports: jobs for descriptor fetch, one a cycle; its results, all that are there in a
/// cycle (a bit of the unit, and a counter of the queue pair). What is read ahead ticks the requester only while
/// somebody waits for it, or it is counted.
class queue_reader {
 public:
  using context = icm::requester_context;
  queue_reader(sim::clocked_block& owner, const requester_config& config, qp_table& qps, unit_table& units,
               sim::fifo_out<descriptor_job>& jobs, sim::fifo_in<descriptor_result>& results)
      : owner_(owner), config_(config), qps_(qps), units_(units), jobs_(jobs), results_(results) {}
  void announce(sim::statistics& to) const {
    to.add(owner_.name() + ".late_descriptors", late_);
    to.add(owner_.name() + ".stamped_wqes", stamped_);
    to.add(owner_.name() + ".unit_descriptor_cycles", fetch_cycles_);
    to.add(owner_.name() + ".unit_empty_cycles", empty_cycles_);
  }

  /// Which of the units that are not in `busy` serves a grant.
  unsigned choose_unit(const scheduler::grant& g, std::uint32_t busy);
  /// Reads the queue from the next WQE on, unless that is on its way.
  void start(send_unit& u);
  /// The unit executes a WQE, and those that it holds go on at `next`: reads what is behind them, if they go on there.
  void read_ahead(send_unit& u, std::uint32_t next);
  /// Hands what the unit wants to descriptor fetch.
  void ask(send_unit& u);
  /// What the unit waited for is here, or will never be.
  void finish(send_unit& u);
  /// What the unit holds or has asked for is nobody's any more.
  void forget(send_unit& u);
  void forget_all();
  /// Units that wait for descriptors.
  std::uint32_t fetching() const { return fetching_; }
  void take_results();
  /// At the end of each tick; `counted`: somebody waits until all that was asked for has come.
  void listen(bool counted) { results_.set_quiet(fetching_ == 0 && unclaimed_ == 0 && !counted); }

 private:
  void cannot_execute(send_unit& u) const;
  bool found_nothing_to_do(const send_unit& u) const;

  sim::clocked_block& owner_;
  const requester_config& config_;
  qp_table& qps_;
  unit_table& units_;
  sim::fifo_out<descriptor_job>& jobs_;
  sim::fifo_in<descriptor_result>& results_;
  std::uint32_t fetching_ = 0;   // mask: waits for descriptors that were asked for
  std::uint32_t unclaimed_ = 0;  // reads of queues whose result no unit wants any more
  std::uint64_t late_ = 0, stamped_ = 0;
  std::uint64_t fetch_cycles_ = 0;  // in which a unit waited, summed over the units
  std::uint64_t empty_cycles_ = 0;  // of these, for the first of a queue that had been empty, and for its end
};

}  // namespace rnic::transport
