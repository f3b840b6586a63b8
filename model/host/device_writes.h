// SPDX-License-Identifier: Apache-2.0
// The root complex's way of the device's writes into memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "model/host/device_credits.h"
#include "model/host/host_memory.h"
#include "model/host/memory_timing.h"
#include "model/host/processor_port.h"
#include "model/host/root_complex_config.h"
#include "model/payload/tlp.h"
#include "model/sim/clocked_block.h"
#include "model/sim/ring.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timebase.h"

namespace rnic::host {

/// Posted writes, in their order. Each becomes visible at an edge of its own (memory_timing.h), and its room is the
/// device's again then. A write to the interrupt range is a message to the interrupt controller; poisoned ones, those
/// that cross a page, and those to what host_memory does not have are counted and thrown away. Messages of the wire
/// INTA go the same way, in the same order.
///
/// Nothing is ticked for a write that nobody can see becoming visible: the bytes are there before anything looks at
/// them (sim::deferred_work), and the credit goes back with the time at which it does.
class device_writes : private sim::deferred_work, private watch_listener {
 public:
  device_writes(sim::clocked_block& owner, const root_complex_config& c, host_memory& memory, memory_timing& timing,
                device_credits& credits, sim::span_recorder& spans);
  ~device_writes() override;
  device_writes(const device_writes&) = delete;
  device_writes& operator=(const device_writes&) = delete;

  void set_interrupt_controller(interrupt_controller_if& target) { interrupts_ = &target; }
  /// A memory write or a message has arrived.
  void take(payload::tlp_ptr packet, sim::time_ps arrival) {
    spans_.leave(packet->span, owner_.name(), "link", arrival, sim::wait::pcie);
    accept(std::move(packet), arrival);
  }
  /// The same of one that comes from the IOMMU, later than it arrived. One with a status other than success, which
  /// must be poisoned too, may not go where it wants: it is thrown away as an unsupported one.
  void accept(payload::tlp_ptr packet, sim::time_ps at);
  /// Those whose edge has come. The owner's tick calls this.
  void work();

  struct counters {
    std::uint64_t writes = 0, bytes = 0, unsupported = 0, poisoned = 0, messages = 0;
  };
  const counters& counts() const { return counts_; }

 private:
  struct posted_write {
    payload::tlp_ptr packet;
    sim::cycle_t edge = 0;     // at which it becomes visible
    sim::time_ps visible = 0;  // time of that edge
    bool seen = false;         // the owner is ticked then
  };

  void catch_up(sim::time_ps before) override;
  void watch_added() override;
  void write_unseen(sim::time_ps before);
  bool is_seen(const payload::tlp& t) const;
  void write(const payload::tlp& t, sim::time_ps at);
  void interrupt(const payload::tlp& t, sim::time_ps at);
  void move_line(payload::message_code code, sim::time_ps at);

  sim::clocked_block& owner_;
  host_memory& memory_;
  memory_timing& timing_;
  device_credits& credits_;
  sim::span_recorder& spans_;
  interrupt_controller_if* interrupts_ = nullptr;
  sim::ring<posted_write> posted_;  // in their order
  counters counts_;
};

}  // namespace rnic::host
