// SPDX-License-Identifier: Apache-2.0
// The doorbell block between a processor that writes and blocks that take what it makes of it.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "model/doorbell/doorbell.h"
#include "model/doorbell/doorbell_cr.h"
#include "model/sim/clock_domain.h"
#include "model/sim/timebase.h"

namespace rnic::doorbell::test {

struct software : sim::clocked_block {
  using clocked_block::clocked_block;
  sim::fifo_out<pcie::mmio_write> out{*this};
  sim::fifo_in<scheduler::send_doorbell> send{*this};
  sim::fifo_in<completion::queue_doorbell> queue{*this};
  std::vector<pcie::mmio_write> todo;
  std::vector<std::pair<sim::cycle_t, scheduler::send_doorbell>> sends;
  std::vector<completion::queue_doorbell> queues;
  std::vector<sim::cycle_t> queues_at;
  void write(std::uint64_t offset, std::initializer_list<int> bytes) {
    pcie::mmio_write w;
    w.offset = offset;
    for (const int b : bytes) w.data[w.length++] = static_cast<std::uint8_t>(b);
    todo.push_back(w);
    wake_next();
  }
  void line(std::uint64_t offset, const std::vector<std::uint8_t>& bytes) {
    pcie::mmio_write w;
    w.offset = offset;
    for (const std::uint8_t b : bytes) w.data[w.length++] = b;
    todo.push_back(w);
    wake_next();
  }
  /// Takes no send doorbells before this cycle, and then one a cycle.
  void take_sends_from(sim::cycle_t cycle) {
    sends_from = cycle;
    wake_at(cycle);
  }
  sim::cycle_t sends_from = 0;
  std::vector<sim::cycle_t> written;  ///< cycles in which writes were pushed

 private:
  void tick() override {
    if (sends_from == 0) {
      while (send.can_pop()) sends.emplace_back(now(), send.pop());
    } else if (now() >= sends_from && send.can_pop()) {
      sends.emplace_back(now(), send.pop());
    }
    while (queue.can_pop()) {
      queues.push_back(queue.pop());
      queues_at.push_back(now());
    }
    std::size_t n = 0;
    while (n < todo.size() && out.claim()) {
      out.push(todo[n++]);
      written.push_back(now());
    }
    todo.erase(todo.begin(), todo.begin() + static_cast<std::ptrdiff_t>(n));
  }
};

struct bench {
  sim::timebase base;
  sim::clock_domain core{"core", base, {1000, 1, 0}};
  sim::span_recorder spans;
  sim::statistics stats;
  doorbell dut;
  software sw{"software", core};
  sim::fifo<pcie::mmio_write> in{"in", core, 16};
  sim::fifo<scheduler::send_doorbell> send;
  sim::fifo<completion::queue_doorbell> queue{"queue", core, 8};
  explicit bench(const config& cfg = {}, std::size_t send_depth = 8)
      : dut("doorbell", core, cfg, spans, stats), send("send", core, send_depth) {
    sw.out.bind(in);
    dut.in.bind(in);
    dut.send_out.bind(send);
    sw.send.bind(send);
    dut.queue_out.bind(queue);
    sw.queue.bind(queue);
    dut.cr_write(cr::log_num_uars, 10);
    dut.cr_write(cr::blueflame_enable, 1);
  }
  void run(int ns) { sc_core::sc_start(ns, sc_core::SC_NS); }
};

inline constexpr std::uint64_t page = 4096, bf_base = 1024 * page;

/// First line of the descriptor of a READ of `ds` times 16 bytes.
inline std::vector<std::uint8_t> blueflame_read(unsigned ds) {
  std::vector<std::uint8_t> bytes(64, 0xab);
  const std::uint8_t head[8] = {0, 0, 0x05, 0x10, 0, 0, 0x48, static_cast<std::uint8_t>(ds)};  // 00000510 000048ds
  std::copy_n(head, 8, bytes.begin());
  return bytes;
}

}  // namespace rnic::doorbell::test
