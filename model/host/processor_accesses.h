// SPDX-License-Identifier: Apache-2.0
// The root complex's way of processor accesses to the device.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/host/processor_port.h"
#include "model/host/root_complex_config.h"
#include "model/payload/tlp.h"
#include "model/pcie/link.h"
#include "model/sim/clocked_block.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timed_inbox.h"

namespace rnic::host {

/// A store buffer of store_buffer operations, in order: each is at the link store_to_link_ps after it was posted; a
/// store then waits for credit, a load (and each configuration access) for credit and one of processor_tags. The
/// processor takes one completion in a cycle, link_to_processor_ps after it came, and not before it sees the writes
/// that came before (PCI Express Base Specification 3.0, 2.4.1: a completion does not pass them). A load that is not
/// answered within completion_timeout_ps is answered with all bits set, as an unsupported request is.
class processor_accesses {
 public:
  using reader = processor_port::reader;
  using space_waiter = processor_port::space_waiter;

  processor_accesses(sim::clocked_block& owner, const root_complex_config& c, payload::tlp_pool& pool,
                     pcie::link_transmitter& link, sim::span_recorder& spans);

  /// processor_port's calls; `to`: nullptr for a store. False: the store buffer is full.
  bool start(payload::tlp_type type, std::uint16_t function, std::uint64_t address, const void* data,
             std::uint32_t bytes, reader* to, std::uint64_t token, sim::span_id span);
  void wait_for_space(space_waiter& waiter) { waiters_.push_back(&waiter); }
  /// A completion of the device, which is at this end of the link at `arrival`, behind writes that are `visible` then.
  void take(payload::tlp_ptr completion, sim::time_ps arrival, sim::time_ps visible) {
    completions_.push(std::move(completion), std::max(arrival + config_.link_to_processor_ps, visible));
  }

  /// One completion, and time-outs. The owner's tick calls this, and tell_of_room() behind send().
  void work();
  bool waiting() const { return !operations_.empty(); }
  /// Sends the first operation if it is at the link and that takes it.
  bool send(sim::time_ps now);
  /// No operation can be at the link before.
  sim::time_ps next_at_link(sim::time_ps now) const {
    return operations_.empty() ? now + config_.store_to_link_ps : operations_.front_arrival();
  }
  void tell_of_room() {
    if (!waiters_.empty()) wake_waiters();
  }

  struct counters {
    std::uint64_t stores = 0, loads = 0, refused = 0, unexpected = 0, timeouts = 0;
  };
  const counters& counts() const { return counts_; }

 private:
  struct operation {
    payload::tlp_ptr packet;
    reader* to = nullptr;
    std::uint64_t token = 0;
  };
  struct pending_read {
    reader* to = nullptr;
    std::uint64_t token = 0;
    std::uint32_t bytes = 0;
    std::uint32_t received = 0;
    sim::time_ps deadline = 0;
    std::array<std::uint8_t, 64> data{};
  };

  void take_completion();
  void complete_read(std::uint16_t tag, payload::tlp_status status);
  void give_tag(operation& o, sim::time_ps now);
  void check_timeouts();
  void wake_waiters();

  sim::clocked_block& owner_;
  const root_complex_config& config_;
  payload::tlp_pool& pool_;
  pcie::link_transmitter& link_;
  sim::span_recorder& spans_;
  sim::timed_inbox<payload::tlp_ptr> completions_;  // at the time at which the processor has them
  sim::timed_inbox<operation> operations_;          // at the time at which they reach the link
  unsigned held_ = 0;                               // of them
  std::vector<pending_read> pending_;
  std::vector<std::uint16_t> free_tags_;
  sim::time_ps check_at_ = ~sim::time_ps{0};
  std::vector<space_waiter*> waiters_;
  std::vector<space_waiter*> called_;
  counters counts_;
};

}  // namespace rnic::host
