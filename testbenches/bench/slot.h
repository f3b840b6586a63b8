// SPDX-License-Identifier: Apache-2.0
// The PCI Express interface of an adapter alone in a slot: no adapter behind it, and nobody asks it for anything.
#pragma once

#include <memory>
#include <string>
#include <systemc>

#include "host_driver/hosts/node.h"
#include "model/host/bus_setup.h"
#include "model/host/host_memory.h"
#include "model/host/root_complex.h"
#include "model/pcie/endpoint.h"
#include "model/pcie/pcie_core.h"
#include "model/sim/clock_domain.h"
#include "model/sim/timebase.h"

namespace rnic::bench {

struct no_registers : pcie::register_file_if {
  std::uint32_t read32(std::uint16_t, std::uint64_t) override { return 0; }
};

class mmio_end : public sim::clocked_block {
 public:
  mmio_end(const char* name, sim::clock_domain& domain)
      : clocked_block(name, domain), in(*this), channel(std::string(name) + ".channel", domain, 4) {
    in.bind(channel);
  }
  sim::fifo_in<pcie::mmio_write> in;
  sim::fifo<pcie::mmio_write> channel;

 private:
  void tick() override {
    if (in.can_pop()) in.pop();
  }
};

class no_interrupts : public sim::clocked_block {
 public:
  explicit no_interrupts(sim::clock_domain& domain)
      : clocked_block("interrupts", domain), out(*this), channel("interrupts.channel", domain, 4) {
    out.bind(channel);
  }
  sim::fifo_out<pcie::msix_request> out;
  sim::fifo<pcie::msix_request> channel;

 private:
  void tick() override {}
};

/// One link: what its parameters say holds for both of its ends.
inline host::root_complex_config slot_root_config(const hosts::node_config& c) {
  host::root_complex_config root = c.root_complex;
  root.link = c.adapter.pcie.link;
  return root;
}

/// Two clients of its DMA engine are free.
struct slot {
  explicit slot(const hosts::node_config& c)
      : core("core", base, sim::clock_period::from_khz(c.adapter.clock_khz)),
        uncore("uncore", base, sim::clock_period::from_khz(c.uncore_khz)),
        memory(c.memory),
        root("root", uncore, slot_root_config(c), memory, packets, spans, statistics),
        endpoint("pcie", core, c.adapter.pcie, 2, bar0, bar2, packets, spans, statistics),
        core_side(pcie::core_domain::of(endpoint, spans)),
        command("command", core),
        doorbell("doorbell", core),
        interrupts(core),
        setup(root, c.bus_setup) {
    endpoint.command_out.bind(command.channel);
    endpoint.doorbell_out.bind(doorbell.channel);
    endpoint.dma().msix().bind(interrupts.channel);
    endpoint.connect(root);
    root.connect(endpoint);
  }
  /// Sets it up as a PC's firmware does, when all of the blocks are there.
  void bring_up() {
    setup.start();
    while (!setup.done()) pass(sim::ps_per_us);
  }
  void pass(sim::time_ps duration) {
    base.run_ahead_until(base.now_ps() + duration);
    sc_core::sc_start(sc_core::sc_time::from_value(duration));
  }
  template <class Source>
  void finish(const Source& s) {
    while (!s.done()) pass(10 * sim::ps_per_us);
  }

  sim::timebase base;
  sim::clock_domain core, uncore;
  payload::tlp_pool packets;
  sim::span_recorder spans;
  sim::statistics statistics;
  host::host_memory memory;
  no_registers bar0, bar2;
  host::root_complex root;
  pcie::endpoint endpoint;
  std::unique_ptr<pcie::core_domain> core_side;
  mmio_end command, doorbell;
  no_interrupts interrupts;
  host::bus_setup setup;
};

}  // namespace rnic::bench
