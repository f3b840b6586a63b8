// SPDX-License-Identifier: Apache-2.0
// The PCIe core of an adapter, where it has a clock of its own.
#pragma once

#include <memory>

#include "model/pcie/core_interface.h"
#include "model/pcie/endpoint.h"
#include "model/sim/async_fifo.h"
#include "model/sim/clocked_block.h"
#include "model/sim/span.h"
#include "model/sim/timed_inbox.h"

namespace rnic::pcie {

/// Data sheet.
///
/// Ports: packets of the endpoint in, packets for it out, by an asynchronous FIFO each (`crossing_packets` slots,
/// `synchroniser_stages` flip-flops a pointer: Cummings, Simulation and Synthesis Techniques for Asynchronous FIFO
/// Design, SNUG 2002); the link.
///
/// Transmit: a packet starts when the one before has passed the interface and the link's transmit buffer has room, a
/// request's first one `request_setup_cycles` later; it takes ceil(bytes / interface_bytes) cycles, at least one, and
/// its first byte is on the link with its first beat. Order is kept: the endpoint sends a packet when it has its
/// credits, so nothing waits here that others may pass (PCI Express Base Specification 3.0, 2.4.1).
///
/// Receive: from the first edge behind its last byte a packet takes ceil(bytes / interface_bytes) cycles, at least one,
/// and is written into the crossing with its last beat.
///
/// Stalls: transmit, while the link has no room; receive, while the endpoint leaves its FIFO full. Credits cross by
/// synchronisers of their own, from the core's next edge.
class pcie_core final : public sim::clocked_block {
 public:
  pcie_core(const std::string& name, sim::clock_domain& clock, const core_config& c, sim::clocked_block& endpoint,
            link_wire& wire, sim::span_recorder& spans);

  sim::async_fifo<outgoing>& from_endpoint() { return out_; }
  sim::async_fifo<payload::tlp_ptr>& to_endpoint() { return in_; }
  /// From the link.
  void deliver(payload::tlp_ptr packet, sim::time_ps arrival) { arrived_.push(std::move(packet), arrival); }
  /// When the endpoint sees credits that are here at `arrival`, and the core those that the endpoint gives back now.
  sim::time_ps seen_by_endpoint(sim::time_ps arrival) const;
  sim::time_ps seen_here(sim::time_ps given) const { return inwards_.time(given); }

 private:
  void tick() override;
  void transmit();
  void receive();

  sim::clocked_block& endpoint_;
  link_wire& wire_;
  sim::span_recorder& spans_;
  core_interface interface_;
  sim::server receive_{*this, "receive"};
  sim::async_fifo<outgoing> out_;
  sim::async_fifo<payload::tlp_ptr> in_;
  sim::timed_inbox<payload::tlp_ptr> arrived_;
  sim::synchroniser inwards_, outwards_;
};

/// The core with its clock, "<endpoint>_core" and "<endpoint>_clock".
class core_domain {
 public:
  /// Puts it between `endpoint` and its link, before it is connected; nullptr where it has the endpoint's clock.
  static std::unique_ptr<core_domain> of(endpoint& e, sim::span_recorder& spans);
  core_domain(endpoint& e, sim::span_recorder& spans);
  sim::clock_domain& clock() { return clock_; }
  pcie_core& core() { return core_; }

 private:
  sim::clock_domain clock_;
  pcie_core core_;
};

}  // namespace rnic::pcie
