// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/slot_load.h"

#include <stdexcept>
#include <systemc>
#include <vector>

#include "model/pcie/endpoint.h"

namespace rnic::bench {

namespace {

/// Asks for `count` transfers as fast as the engine takes them, or each when the one before has ended.
class dma_source : public sim::clocked_block {
 public:
  dma_source(sim::clock_domain& domain, pcie::dma_engine::client_port& engine)
      : clocked_block("source", domain),
        port_(*this),
        requests_("source.request", domain, 8),
        responses_("source.response", domain, 4) {
    port_.request.bind(requests_);
    port_.response.bind(responses_);
    engine.request.bind(requests_);
    engine.response.bind(responses_);
  }
  void start(const pcie::dma_request& r, unsigned count, std::uint64_t stride) {
    request_ = r;
    left_ = total_ = count;
    stride_ = stride;
    wake_next();
  }
  bool done() const { return ended_ == total_; }
  sim::time_ps asked_first = 0, asked_last = 0, answered_first = 0, answered_last = 0;
  unsigned skip = 0;  ///< answers before the one from which time counts

 private:
  void tick() override {
    while (port_.response.can_pop()) {
      if (port_.response.pop().status != pcie::dma_status::ok) throw std::runtime_error("a DMA transfer failed");
      if (ended_ == skip) answered_first = now_ps();
      answered_last = now_ps();
      ++ended_;
    }
    if (left_ == 0 || !port_.request.can_push()) return;
    if (left_ == total_) asked_first = now_ps();
    asked_last = now_ps();
    port_.request.push(request_);
    request_.address += stride_;
    if (--left_ != 0) wake_next();
  }
  pcie::dma_port port_;
  sim::fifo<pcie::dma_request> requests_;
  sim::fifo<pcie::dma_response> responses_;
  pcie::dma_request request_;
  unsigned left_ = 0, total_ = 0, ended_ = 0;
  std::uint64_t stride_ = 0;
};

struct nothing_mapped : pcie::register_file_if {
  std::uint32_t read32(std::uint16_t, std::uint64_t) override { return 0; }
};

class command_end : public sim::clocked_block {
 public:
  command_end(const char* name, sim::clock_domain& domain)
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

struct slot {
  explicit slot(const hosts::node_config& c)
      : core("core", base, sim::clock_period::from_khz(c.adapter.clock_khz)),
        uncore("uncore", base, sim::clock_period::from_khz(c.uncore_khz)),
        memory(c.memory),
        root("root", uncore, c.root_complex, memory, packets, spans, statistics),
        endpoint("pcie", core, c.adapter.pcie, 1, bar0, bar2, packets, spans, statistics),
        command("command", core),
        doorbell("doorbell", core),
        interrupts(core),
        setup(root, c.bus_setup),
        source(core, endpoint.dma().client(0)) {
    endpoint.command_out.bind(command.channel);
    endpoint.doorbell_out.bind(doorbell.channel);
    endpoint.dma().msix().bind(interrupts.channel);
    endpoint.connect(root);
    root.connect(endpoint);
    setup.start();
    while (!setup.done()) pass(sim::ps_per_us);
  }
  void pass(sim::time_ps duration) {
    base.run_ahead_until(base.now_ps() + duration);
    sc_core::sc_start(sc_core::sc_time::from_value(duration));
  }
  void finish() {
    while (!source.done()) pass(10 * sim::ps_per_us);
  }

  sim::timebase base;
  sim::clock_domain core, uncore;
  payload::tlp_pool packets;
  sim::span_recorder spans;
  sim::statistics statistics;
  host::host_memory memory;
  nothing_mapped bar0, bar2;
  host::root_complex root;
  pcie::endpoint endpoint;
  command_end command, doorbell;
  no_interrupts interrupts;
  host::bus_setup setup;
  dma_source source;
};

}  // namespace

double dma_write_gbps(const hosts::node_config& config, std::uint32_t bytes, unsigned writes) {
  slot s(config);
  const auto buffer = s.memory.allocate(std::size_t{bytes} * writes);
  const std::vector<std::uint8_t> content(bytes, 0x5a);
  pcie::dma_request r;
  r.op = pcie::dma_request::kind::write;
  r.notify = true;
  r.address = buffer.address;
  r.length = bytes;
  r.source = content.data();
  s.source.skip = writes / 4;  // from here on every buffer on the way is full
  s.source.start(r, writes, bytes);
  s.finish();
  const double counted = static_cast<double>(bytes) * (writes - s.source.skip - 1);
  return counted * 8000.0 / static_cast<double>(s.source.answered_last - s.source.answered_first);
}

sim::time_ps dma_read_ps(const hosts::node_config& config, std::uint32_t bytes) {
  slot s(config);
  const auto buffer = s.memory.allocate(bytes);
  std::vector<std::uint8_t> destination(bytes);
  pcie::dma_request r;
  r.address = buffer.address;
  r.length = bytes;
  r.destination = destination.data();
  s.source.start(r, 1, 0);
  s.finish();
  return s.source.answered_last - s.source.asked_last;
}

}  // namespace rnic::bench
