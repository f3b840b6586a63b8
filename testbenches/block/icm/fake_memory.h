// SPDX-License-Identifier: Apache-2.0
// Host memory behind DMA ports, for tests of single blocks: in order per client, fixed read latency.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"

namespace rnic::bench {

class fake_memory : public sim::clocked_block {
 public:
  struct seen {
    pcie::dma_request::kind op;
    std::uint64_t address;
    std::uint32_t length;
    sim::cycle_t at;
  };

  fake_memory(sim::clock_domain& domain, std::size_t bytes, unsigned read_cycles)
      : clocked_block("memory", domain), bytes_(bytes), read_cycles_(read_cycles) {}

  void attach(pcie::dma_port& port) {
    clients_.push_back(std::make_unique<client>(*this));
    client& c = *clients_.back();
    c.requests = std::make_unique<sim::fifo<pcie::dma_request>>("dma", domain(), 4);
    c.responses = std::make_unique<sim::fifo<pcie::dma_response>>("dma", domain(), 4);
    port.request.bind(*c.requests);
    c.in.bind(*c.requests);
    c.out.bind(*c.responses);
    port.response.bind(*c.responses);
  }

  std::uint8_t* at(std::uint64_t address) { return bytes_.data() + address; }
  void be32(std::uint64_t address, std::uint32_t v) {
    for (unsigned i = 0; i < 4; ++i) bytes_[address + i] = static_cast<std::uint8_t>(v >> (24 - 8 * i));
  }
  void be64(std::uint64_t address, std::uint64_t v) {
    be32(address, static_cast<std::uint32_t>(v >> 32));
    be32(address + 4, static_cast<std::uint32_t>(v));
  }
  std::uint32_t get32(std::uint64_t address) const {
    const std::uint8_t* p = bytes_.data() + address;
    return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
  }
  unsigned reads() const {
    unsigned n = 0;
    for (const seen& s : log) n += s.op == pcie::dma_request::kind::read ? 1 : 0;
    return n;
  }
  unsigned writes() const { return static_cast<unsigned>(log.size()) - reads(); }

  std::vector<seen> log;
  unsigned extra_read_cycles = 0;
  /// Takes no requests before this cycle.
  void hold_until(sim::cycle_t cycle) {
    held_until_ = cycle;
    wake_at(cycle);
  }

 private:
  struct pending {
    pcie::dma_request request;
    sim::cycle_t ready;
  };
  struct client {
    explicit client(sim::clocked_block& owner) : in(owner), out(owner) {}
    std::unique_ptr<sim::fifo<pcie::dma_request>> requests;
    std::unique_ptr<sim::fifo<pcie::dma_response>> responses;
    sim::fifo_in<pcie::dma_request> in;
    sim::fifo_out<pcie::dma_response> out;
    std::deque<pending> open;
  };

  void tick() override {
    for (auto& c : clients_) {
      if (now() >= held_until_ && c->in.can_pop()) {
        pcie::dma_request r = c->in.pop();
        log.push_back({r.op, r.address, r.length, now()});
        const unsigned wait = r.op == pcie::dma_request::kind::read ? read_cycles_ + extra_read_cycles : 3;
        c->open.push_back({std::move(r), now() + wait});
      }
      if (c->open.empty()) continue;
      if (c->open.front().ready > now()) {
        wake_at(c->open.front().ready);
        continue;
      }
      if (!c->out.can_push()) continue;
      finish(*c, c->open.front().request);
      c->open.pop_front();
      if (!c->open.empty()) wake_next();
    }
  }
  void finish(client& c, const pcie::dma_request& r) {
    const bool ok = r.address + r.length <= bytes_.size();
    const bool read = r.op == pcie::dma_request::kind::read;
    if (ok && read) std::memcpy(r.destination, at(r.address), r.length);
    if (ok && !read) std::memcpy(at(r.address), r.source != nullptr ? r.source : r.bytes.data(), r.length);
    if (read || r.notify) c.out.push({r.tag, ok ? pcie::dma_status::ok : pcie::dma_status::unsupported_request});
  }

  std::vector<std::uint8_t> bytes_;
  unsigned read_cycles_;
  sim::cycle_t held_until_ = 0;
  std::vector<std::unique_ptr<client>> clients_;
};

}  // namespace rnic::bench
