// SPDX-License-Identifier: Apache-2.0
// An endpoint in a slot, with a client of the DMA engine, a driver of the bus and sinks that tests steer.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "model/host/bus_setup.h"
#include "model/host/host_memory.h"
#include "model/host/root_complex.h"
#include "model/host/root_complex_socket.h"
#include "model/pcie/endpoint.h"
#include "model/pcie/endpoint_socket.h"
#include "model/pcie/pcie_core.h"
#include "model/sim/clock_domain.h"
#include "model/sim/timebase.h"

namespace rnic::test {

/// Drives one client port: sends what the test queued, as fast as the channel takes it, and keeps the answers.
class dma_client : public sim::clocked_block {
 public:
  struct answer {
    pcie::dma_response response;
    sim::time_ps at;
  };
  dma_client(const std::string& name, sim::clock_domain& domain)
      : clocked_block(name, domain),
        port(*this),
        requests(name + ".request", domain, 8),
        responses(name + ".response", domain, 4) {
    port.request.bind(requests);
    port.response.bind(responses);
  }
  void attach(pcie::dma_engine::client_port& engine) {
    engine.request.bind(requests);
    engine.response.bind(responses);
  }
  void queue(const pcie::dma_request& r) {
    queue_.push_back({r, now() + 1});  // not at an edge of this very instant: ticking always must change nothing
    wake_next();
  }
  pcie::dma_port port;
  sim::fifo<pcie::dma_request> requests;
  sim::fifo<pcie::dma_response> responses;
  std::vector<answer> answers;
  std::vector<sim::time_ps> sent;
  bool take_answers = true;
  void resume() {
    take_answers = true;
    wake_next();
  }

 private:
  void tick() override {
    if (take_answers && port.response.can_pop()) {
      const auto r = port.response.pop();
      answers.push_back({r, now_ps()});
    }
    if (next_ < queue_.size() && queue_[next_].second <= now() && port.request.can_push()) {
      port.request.push(queue_[next_++].first);
      sent.push_back(now_ps());
      if (next_ < queue_.size()) wake_next();
    }
  }
  std::vector<std::pair<pcie::dma_request, sim::cycle_t>> queue_;
  std::size_t next_ = 0;
};

/// Takes BAR writes, and can stop to; sends interrupt requests.
class mmio_sink : public sim::clocked_block {
 public:
  mmio_sink(const std::string& name, sim::clock_domain& domain)
      : clocked_block(name, domain), in(*this), channel(name + ".channel", domain, 4) {
    in.bind(channel);
  }
  sim::fifo_in<pcie::mmio_write> in;
  sim::fifo<pcie::mmio_write> channel;
  std::vector<pcie::mmio_write> got;
  std::vector<sim::time_ps> at;
  bool open = true;
  void reopen() {
    open = true;
    wake_next();
  }

 private:
  void tick() override {
    if (!open || !in.can_pop()) return;
    got.push_back(in.pop());
    at.push_back(now_ps());
  }
};

class interrupt_source : public sim::clocked_block {
 public:
  interrupt_source(const std::string& name, sim::clock_domain& domain)
      : clocked_block(name, domain), out(*this), channel(name + ".channel", domain, 8) {
    out.bind(channel);
  }
  sim::fifo_out<pcie::msix_request> out;
  sim::fifo<pcie::msix_request> channel;
  void raise(std::uint16_t vector, std::uint16_t function = 0) {
    todo_.push_back({{function, vector}, now() + 1});
    wake_next();
  }

 private:
  void tick() override {
    if (todo_.empty() || todo_.front().second > now() || !out.can_push()) return;
    out.push(todo_.front().first);
    todo_.erase(todo_.begin());
    if (!todo_.empty()) wake_next();
  }
  std::vector<std::pair<pcie::msix_request, sim::cycle_t>> todo_;
};

struct registers : pcie::register_file_if {
  std::vector<std::uint64_t> asked;
  std::uint32_t read32(std::uint16_t, std::uint64_t offset) override {
    asked.push_back(offset);
    return static_cast<std::uint32_t>(0xa0b0c000u + offset);
  }
};

struct interrupt_log : host::interrupt_controller_if {
  struct entry {
    std::uint16_t function;
    std::uint64_t address;
    std::uint32_t data;
    sim::time_ps at;
  };
  std::vector<entry> got;
  std::vector<std::pair<bool, sim::time_ps>> wire;  ///< levels of INTA
  void line(bool asserted, sim::time_ps at) override { wire.emplace_back(asserted, at); }
  void interrupt(std::uint16_t function, std::uint64_t address, std::uint32_t data, sim::time_ps at) override {
    got.push_back({function, address, data, at});
  }
};

struct read_log : host::processor_port::reader {
  struct entry {
    payload::tlp_status status;
    std::vector<std::uint8_t> data;
    sim::time_ps at;
  };
  std::map<std::uint64_t, entry> done;
  void read_completed(std::uint64_t token, payload::tlp_status status, const std::uint8_t* data,
                      std::uint32_t bytes) override {
    done[token] = {status, {data, data + bytes}, sc_core::sc_time_stamp().value()};
  }
};

/// Sees every packet that passes.
class tap : public pcie::tlp_link_if {
 public:
  struct seen {
    payload::tlp_ptr packet;
    sim::time_ps arrival;
  };
  explicit tap(pcie::tlp_link_if& to) : to_(to) {}
  std::vector<seen> packets;
  bool record = false;
  bool swallow_reads = false;
  void deliver(payload::tlp_ptr packet, sim::time_ps arrival) override {
    if (record) packets.push_back({packet, arrival});
    if (swallow_reads && packet->type == payload::tlp_type::mem_read) return;
    to_.deliver(std::move(packet), arrival);
  }
  void credit(const pcie::credit_amount& amount, sim::time_ps arrival) override { to_.credit(amount, arrival); }

 private:
  pcie::tlp_link_if& to_;
};

struct options {
  options() { endpoint.core.interface_bytes = 16; }
  pcie::endpoint_config endpoint;
  host::root_complex_config root;
  unsigned clients = 2;
  bool sockets = false;
  bool set_up = true;
  bool always_tick = false;
  std::uint64_t shuffle = 0;
};

struct bench {
  explicit bench(const options& o = {})
      : base(sim::timebase::options{o.always_tick, o.shuffle}),
        core("core", base, sim::clock_period::from_khz(427'000)),
        uncore("uncore", base, sim::clock_period::from_khz(1'000'000)),
        memory(host::host_memory::config{0x1'0000'0000, 4ull << 30}),
        root("root", uncore, o.root, memory, pool, spans, stats),
        endpoint("pcie", core, o.endpoint, o.clients, bar0, bar2, pool, spans, stats),
        core_side(pcie::core_domain::of(endpoint, spans)),
        command("command", core),
        doorbell("doorbell", core),
        interrupts("interrupts", core),
        up(root),
        down(endpoint),
        setup(root) {
    for (unsigned i = 0; i < o.clients; ++i) {
      clients.push_back(std::make_unique<dma_client>("client" + std::to_string(i), core));
      clients.back()->attach(endpoint.dma().client(i));
    }
    endpoint.command_out.bind(command.channel);
    endpoint.doorbell_out.bind(doorbell.channel);
    endpoint.dma().msix().bind(interrupts.channel);
    root.set_interrupt_controller(log);
    if (o.sockets) {
      endpoint_shell = std::make_unique<pcie::pcie_endpoint_socket>("endpoint_shell", endpoint);
      root_shell = std::make_unique<host::root_complex_socket>("root_shell", root);
      root_shell->socket.bind(endpoint_shell->socket);
      sc_core::sc_start(sc_core::SC_ZERO_TIME);
    } else {
      endpoint.connect(up);
      root.connect(down);
    }
    if (o.set_up) bring_up();
  }
  void bring_up() {
    setup.start();
    run_ns(50'000);
    ASSERT_TRUE(setup.done());
    bar0_at = setup.found().bar_address[0];
    bar2_at = setup.found().bar_address[2];
  }
  static void run_ns(std::uint64_t ns) { sc_core::sc_start(sc_core::sc_time::from_value(ns * 1000)); }
  sim::time_ps time() const { return base.now_ps(); }

  std::uint32_t config_read(std::uint16_t offset, std::uint32_t bytes = 4, unsigned function = 0) {
    EXPECT_TRUE(root.start_config_read(static_cast<std::uint16_t>(function), offset, bytes, reads, ++token));
    run_ns(2000);
    std::uint32_t v = 0;
    EXPECT_EQ(reads.done.count(token), 1u);
    std::memcpy(&v, reads.done[token].data.data(), reads.done[token].data.size());
    return v;
  }
  void config_write(std::uint16_t offset, std::uint32_t value, std::uint32_t bytes = 4, unsigned function = 0) {
    EXPECT_TRUE(root.start_config_write(static_cast<std::uint16_t>(function), offset, &value, bytes, reads, ++token));
    run_ns(2000);
    EXPECT_EQ(reads.done.count(token), 1u);
  }
  const read_log::entry& mmio_read(std::uint64_t address, std::uint32_t bytes) {
    EXPECT_TRUE(root.start_mmio_read(address, bytes, reads, ++token));
    run_ns(2000);
    EXPECT_EQ(reads.done.count(token), 1u);
    return reads.done[token];
  }
  void store32(std::uint64_t address, std::uint32_t little_endian) {
    EXPECT_TRUE(root.mmio_store(address, &little_endian, 4, 0));
    run_ns(500);
  }
  /// Vector n -> address 0xfee00000, data 0x40 + n, not masked.
  void program_vector(unsigned n, bool masked = false) {
    const std::uint64_t entry = bar0_at + 0x7c000 + 16 * n;
    store32(entry, 0xfee0'0000);
    store32(entry + 4, 0);
    store32(entry + 8, 0x40 + n);
    store32(entry + 12, masked ? 1 : 0);
  }
  std::uint64_t stat(const std::string& name) const { return stats.value(name); }

  sim::timebase base;
  sim::clock_domain core;
  sim::clock_domain uncore;
  payload::tlp_pool pool;
  sim::span_recorder spans;
  sim::statistics stats;
  host::host_memory memory;
  registers bar0, bar2;
  host::root_complex root;
  pcie::endpoint endpoint;
  std::unique_ptr<pcie::core_domain> core_side;
  mmio_sink command, doorbell;
  interrupt_source interrupts;
  interrupt_log log;
  read_log reads;
  tap up, down;
  host::bus_setup setup;
  std::vector<std::unique_ptr<dma_client>> clients;
  std::unique_ptr<pcie::pcie_endpoint_socket> endpoint_shell;
  std::unique_ptr<host::root_complex_socket> root_shell;
  std::uint64_t bar0_at = 0, bar2_at = 0;
  std::uint64_t token = 100;
};

inline pcie::dma_request read_request(std::uint64_t address, std::uint32_t length, std::uint8_t* to,
                                      std::uint64_t tag = 0) {
  pcie::dma_request r;
  r.op = pcie::dma_request::kind::read;
  r.address = address;
  r.length = length;
  r.destination = to;
  r.tag = tag;
  return r;
}
inline pcie::dma_request write_request(std::uint64_t address, std::uint32_t length, const std::uint8_t* from,
                                       std::uint64_t tag = 0, bool notify = false) {
  pcie::dma_request r;
  r.op = pcie::dma_request::kind::write;
  r.address = address;
  r.length = length;
  r.source = from;
  r.tag = tag;
  r.notify = notify;
  return r;
}

}  // namespace rnic::test
