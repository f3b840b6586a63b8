// SPDX-License-Identifier: Apache-2.0
// The root complex's answers to the device's reads.
#pragma once

#include <cstdint>
#include <string>

#include "model/host/device_credits.h"
#include "model/host/host_memory.h"
#include "model/host/memory_timing.h"
#include "model/host/root_complex_config.h"
#include "model/payload/tlp.h"
#include "model/pcie/link.h"
#include "model/sim/clocked_block.h"
#include "model/sim/ring.h"
#include "model/sim/statistics.h"

namespace rnic::host {

/// Reads leave in the order in which memory has their data ready (memory_timing.h), one after the other, as completions
/// that end at multiples of completion_bytes. A read finds what is in memory when its first completion is sent, or up
/// to store_to_link_ps before the later ones are; what host_memory does not have is an unsupported request.
/// Approximation: reads of different latency classes do not queue for memory; the device's header credits bound them.
class device_reads {
 public:
  device_reads(sim::clocked_block& owner, const root_complex_config& c, const host_memory& memory,
               memory_timing& timing, pcie::link_transmitter& link, device_credits& credits, payload::tlp_pool& pool);

  /// A request has arrived.
  void take(payload::tlp_ptr request, sim::time_ps arrival);
  /// One that may not go there: refused from `at` on, in its turn.
  void take_refused(payload::tlp_ptr request, sim::time_ps at);
  /// root_complex::answer(): data, or a status, is in the request.
  void answer(payload::tlp_ptr request, payload::tlp_status status);
  bool empty() const { return reads_.empty(); }

  /// Sends one completion of the first read that is due, if one is and the link takes it.
  bool send(sim::time_ps now);
  /// Sends the next completions of the read that is being answered, each at the edge at which the transmit buffer has
  /// room for it, as far as those are before `until`. Returns whether it sent any. Those of the next read are not: it
  /// finds what is in memory when its first one is sent.
  bool send_ahead(sim::time_ps until);
  bool under_way() const { return done_ != 0; }

  struct counters {
    std::uint64_t requests = 0, bytes = 0, unsupported = 0;
  };
  const counters& counts() const { return counts_; }

 private:
  struct device_read {
    payload::tlp_ptr request;
    sim::time_ps ready = 0;
    bool answered = false;  // the data is in the request
  };

  void insert(device_read read);
  const std::uint8_t* data_of(const device_read& read) const;
  void put(sim::time_ps at);
  void refuse(const payload::tlp& request, payload::tlp_status status, sim::time_ps at);

  sim::clocked_block& owner_;
  std::uint32_t completion_bytes_;
  const host_memory& memory_;
  memory_timing& timing_;
  pcie::link_transmitter& link_;
  device_credits& credits_;
  payload::tlp_pool& pool_;
  sim::ring<device_read> reads_;  // in the order of `ready`
  std::uint32_t done_ = 0;        // bytes of the first read that are answered
  counters counts_;
};

}  // namespace rnic::host
