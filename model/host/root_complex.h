// SPDX-License-Identifier: Apache-2.0
// The slot: root port, memory controller as the device sees it, and the way of processor accesses to the device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "model/host/device_credits.h"
#include "model/host/device_reads.h"
#include "model/host/device_traffic_if.h"
#include "model/host/device_writes.h"
#include "model/host/host_memory.h"
#include "model/host/iommu.h"
#include "model/host/memory_timing.h"
#include "model/host/processor_accesses.h"
#include "model/host/processor_port.h"
#include "model/host/root_complex_config.h"
#include "model/payload/tlp.h"
#include "model/pcie/link.h"
#include "model/pcie/tlp_link_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"

namespace rnic::host {

/// Clocked in the host's domain (1 GHz uncore by default). Its parts are device_writes (one becomes visible in a
/// cycle), device_reads and processor_accesses; here is the arbiter of what goes to the device: sends_per_cycle packets
/// a cycle into the transmit buffer, completions and the processor's operations turn and turn about. While a read is
/// being answered and no operation can be at the link, its next completions are sent ahead of their edges, without
/// ticks. With host.iommu.enable all that the device sends goes by the IOMMU first, a block beside this one (iommu.h).
class root_complex : public sim::clocked_block,
                     public pcie::tlp_link_if,
                     public processor_port,
                     private translated_traffic_if {
 public:
  /// The pool must outlive everything that is bound to the link.
  root_complex(std::string name, sim::clock_domain& domain, const root_complex_config& c, host_memory& memory,
               payload::tlp_pool& pool, sim::span_recorder& spans, sim::statistics& stats);

  /// Link-up, once, before time starts.
  void connect(pcie::tlp_link_if& peer);
  void set_interrupt_controller(interrupt_controller_if& target) { writes_.set_interrupt_controller(target); }
  host_memory& memory() { return memory_; }

  /// Before time starts: memory is not host_memory, but where `to` takes the requests. Throws sim::config_error with
  /// host.iommu.enable: that memory has the platform's IOMMU.
  void forward(device_traffic_if& to);
  /// The data of a forwarded read, in `request` itself, or a status other than success. Completions leave from now on.
  void answer(payload::tlp_ptr request, payload::tlp_status status) { reads_.answer(std::move(request), status); }
  /// A forwarded write has been done, or thrown away: its room is the device's again.
  void done_with(const payload::tlp& write) { credits_.give(write, link_.now_ps()); }

  void deliver(payload::tlp_ptr packet, sim::time_ps arrival) override;
  void credit(const pcie::credit_amount& amount, sim::time_ps arrival) override { link_.credit(amount, arrival); }

  bool start_config_read(std::uint16_t function, std::uint16_t offset, std::uint32_t bytes, reader& to,
                         std::uint64_t token) override;
  bool start_config_write(std::uint16_t function, std::uint16_t offset, const void* data, std::uint32_t bytes,
                          reader& to, std::uint64_t token) override;
  bool start_mmio_read(std::uint64_t address, std::uint32_t bytes, reader& to, std::uint64_t token) override;
  bool mmio_store(std::uint64_t address, const void* data, std::uint32_t bytes, sim::span_id span) override;
  void wait_for_space(space_waiter& waiter) override { processor_.wait_for_space(waiter); }

 private:
  void tick() override;
  void translated(payload::tlp_ptr packet, const passage& p) override;
  void announce(sim::statistics& stats);
  void send();
  bool send_completion(sim::time_ps now);
  bool send_operation(sim::time_ps now);

  root_complex_config config_;
  host_memory& memory_;
  sim::span_recorder& spans_;
  memory_timing timing_;
  pcie::link_transmitter link_;
  device_credits credits_;
  device_writes writes_;
  device_reads reads_;
  processor_accesses processor_;
  device_traffic_if* requests_to_ = nullptr;  // the IOMMU, or who is in the place of memory
  std::unique_ptr<iommu> iommu_;
  bool operation_next_ = false;
};

}  // namespace rnic::host
