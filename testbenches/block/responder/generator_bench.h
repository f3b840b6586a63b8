// SPDX-License-Identifier: Apache-2.0
// The READ generator and the atomic unit with the responder, answer_transmit, translation and host memory around them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"
#include "model/transport/read_engine/read_engine.h"
#include "model/transport/responder/atomic_unit.h"
#include "model/transport/responder/read_generator.h"

namespace rnic::transport::test::generator {

using cycle = sim::cycle_t;
using operation = wire::operation;
using kind = read_command::kind;

/// From the command to the request of memory, as both are seen by who gets them: accept, ask and read in one cycle.
inline constexpr cycle to_memory = 2;

inline constexpr std::uint32_t rkey = 0x2200;

/// All neighbours in one block. Virtual addresses are those of memory.
struct world : sim::clocked_block {
  world(sim::clock_domain& d, unsigned answer_places) : clocked_block("world", d) {
    for (auto& port : room_left) port.fill(answer_places);
  }

  sim::fifo_out<read_command> command{*this};
  sim::fifo_in<read_report> report{*this};
  sim::fifo_in<answer_job> job{*this};
  sim::fifo_out<answer_room> room{*this};
  sim::fifo_in<icm::translate_request> translate{*this};
  sim::fifo_out<icm::translate_response> translated{*this};
  sim::fifo_in<pcie::dma_request> read{*this}, operand{*this}, write{*this};
  sim::fifo_out<pcie::dma_response> read_done{*this}, operand_done{*this}, written{*this};

  struct start {
    unsigned idle;  ///< cycles in front of it
    read_command r;
  };
  std::deque<start> starts;
  std::array<std::array<unsigned, 8>, 2> room_left{};
  unsigned translate_cycles = 6, read_cycles = 100, write_cycles = 20;
  unsigned read_every = 1;  ///< memory takes a request in one of so many cycles
  bool takes_reads = true, takes_translations = true, takes_reports = true;
  std::array<std::array<bool, 8>, 2> gives_room{};  ///< back to the generator at once
  std::deque<answer_room> to_give;
  bool refuses = false;  ///< translation
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(1 << 20);

  struct sent {
    cycle at;
    answer_job job;
  };
  std::vector<cycle> commanded, asked;  ///< commands; translations
  struct reader {
    std::vector<std::pair<cycle, pcie::dma_request>> reads;
    std::vector<cycle> answers;
    std::deque<std::pair<cycle, pcie::dma_response>> under_way;
  };
  reader payload, operands;  ///< of the generator, of the atomic unit
  std::vector<sent> answers;
  std::vector<std::pair<cycle, read_report>> reports;

 private:
  template <class T>
  struct due {
    cycle at;
    T what;
  };
  std::deque<due<icm::translate_response>> addresses_;
  std::deque<due<pcie::dma_response>> writes_;

  void tick() override {
    wake_next();
    begin();
    if (takes_reports && report.can_pop()) reports.emplace_back(now(), report.pop());
    if (job.can_pop()) {
      answers.push_back({now(), job.pop()});
      const answer_job& j = answers.back().job;
      if (gives_room[j.port][j.priority]) to_give.push_back({j.port, j.priority});
    }
    if (!to_give.empty() && room.claim()) {
      room.push(to_give.front());
      to_give.pop_front();
    }
    serve_translation();
    serve_memory(payload, read, read_done);
    serve_memory(operands, operand, operand_done);
    serve_writes();
  }
  void begin() {
    if (starts.empty()) return;
    start& s = starts.front();
    if (s.idle != 0) {
      --s.idle;
      return;
    }
    if (!command.claim()) return;
    commanded.push_back(now());
    command.push(std::move(s.r));
    starts.pop_front();
  }
  void serve_translation() {
    if (takes_translations && translate.can_pop()) {
      const icm::translate_request q = translate.pop();
      asked.push_back(now());
      icm::translate_response r;
      r.tag = q.tag;
      r.status = refuses ? icm::translate_status::bad_key : icm::translate_status::ok;
      r.segments[0] = {q.va, q.length};
      r.count = refuses ? 0 : 1;
      addresses_.push_back({now() + translate_cycles, r});
    }
    if (!addresses_.empty() && addresses_.front().at <= now() && translated.claim()) {
      translated.push(addresses_.front().what);
      addresses_.pop_front();
    }
  }
  void serve_memory(reader& of, sim::fifo_in<pcie::dma_request>& in, sim::fifo_out<pcie::dma_response>& out) {
    if (takes_reads && now() % read_every == 0 && in.can_pop()) {
      of.reads.emplace_back(now(), in.pop());
      const pcie::dma_request& r = of.reads.back().second;
      const bool inside = r.address + r.length <= memory.size();
      if (inside) std::memcpy(r.destination, memory.data() + r.address, r.length);
      const pcie::dma_status status = inside ? pcie::dma_status::ok : pcie::dma_status::unsupported_request;
      of.under_way.push_back({now() + read_cycles, {r.tag, status}});
    }
    if (!of.under_way.empty() && of.under_way.front().first <= now() && out.claim()) {
      of.answers.push_back(now());
      out.push(of.under_way.front().second);
      of.under_way.pop_front();
    }
  }
  void serve_writes() {
    if (write.can_pop()) {
      const pcie::dma_request r = write.pop();
      std::memcpy(memory.data() + r.address, r.bytes.data(), r.length);
      writes_.push_back({now() + write_cycles, {r.tag, pcie::dma_status::ok}});
    }
    if (!writes_.empty() && writes_.front().at <= now() && written.claim()) {
      written.push(writes_.front().what);
      writes_.pop_front();
    }
  }
};

struct rig {
  explicit rig(responder_config c = {}, const sim::timebase::options& opts = {}) : base(opts), cfg(std::move(c)) {
    for (auto& port : w.gives_room) port.fill(true);
    for (std::size_t i = 0; i < w.memory.size(); ++i) w.memory[i] = static_cast<std::uint8_t>(i * 7 + i / 256 * 13);
    connect(w.command, commands, dut.command_in);
    connect(dut.report_out, reports, w.report);
    connect(dut.answers.job, jobs, w.job);
    connect(w.room, rooms, dut.answers.room);
    connect(dut.translate.request, translate, w.translate);
    connect(w.translated, translated, dut.translate.response);
    connect(dut.dma_read.request, reads, w.read);
    connect(w.read_done, reads_done, dut.dma_read.response);
    connect(dut.atomic_out, atomic_jobs, atomics.job_in);
    connect(atomics.outcome_out, atomic_outcomes, dut.outcome_in);
    connect(atomics.dma_read.request, operands, w.operand);
    connect(w.operand_done, operands_done, atomics.dma_read.response);
    connect(atomics.dma_write.request, writes, w.write);
    connect(w.written, writes_done, atomics.dma_write.response);
    connect(dut.read_engine.request, piece_requests, engine.request[read_engine::generator]);
    connect(engine.grant[read_engine::generator], piece_grants, dut.read_engine.grant);
    w.wake_at(1);
  }
  template <class T>
  static void connect(sim::fifo_out<T>& from, sim::fifo<T>& by, sim::fifo_in<T>& to) {
    from.bind(by);
    to.bind(by);
  }
  void run(unsigned cycles) { sc_core::sc_start(2.0 * cycles, sc_core::SC_NS); }

  static answer_address peer(std::uint16_t flow, std::uint8_t priority) {
    answer_address to;
    to.path.mtu_code = 3;  // 1024
    to.path.priority = priority;
    to.path.flags = icm::path_flag_roce_v2;
    to.remote_qpn = 0x1000u + flow;
    to.function = 5;
    return to;
  }
  /// A READ of flow 0 and up with its first translation, as the responder makes it.
  read_command request(std::uint16_t flow, std::uint32_t psn, std::uint64_t va, std::uint32_t length,
                       std::uint8_t priority = 3) {
    read_command r;
    r.flow = flow;
    r.qpn = 0x48u + flow;
    r.psn = psn;
    r.msn = psn;
    r.key = rkey;
    r.pd = 7;
    r.va = va;
    r.length = length;
    r.syndrome = syndrome_ack;
    r.first.segments[0] = {va, std::min(length, 1024u)};
    r.first.count = length == 0 ? 0 : 1;
    r.to = peer(flow, priority);
    return r;
  }
  read_command other(kind what, std::uint16_t flow, std::uint32_t psn, std::uint8_t priority = 3) {
    read_command r = request(flow, psn, 0, 0, priority);
    r.what = what;
    return r;
  }
  read_command add(std::uint16_t flow, std::uint32_t psn, std::uint64_t va, std::uint64_t value) {
    read_command r = request(flow, psn, va, 8);
    r.what = kind::atomic;
    r.operation.swap_add = value;
    return r;
  }
  void start(read_command r, unsigned idle = 0) { w.starts.push_back({idle, std::move(r)}); }
  std::vector<std::uint32_t> psns() const {
    std::vector<std::uint32_t> all;
    for (const auto& a : w.answers) all.push_back(a.job.psn);
    return all;
  }
  unsigned told(read_report::kind what) const {
    unsigned n = 0;
    for (const auto& [at, r] : w.reports) n += r.what == what ? 1 : 0;
    return n;
  }
  std::uint64_t count(const char* counter) { return stats.value(std::string("read_generator.") + counter); }

  sim::timebase base;
  sim::clock_domain core{"core", base, sim::clock_period::from_khz(500'000)};
  sim::span_recorder spans;
  sim::statistics stats;
  payload::frame_pool frames;
  responder_config cfg;
  read_generator dut{"read_generator", core, cfg, frames, spans, stats};
  atomic_unit atomics{"atomic_unit", core, cfg.atomics, spans, stats};
  read_engine engine{"read_engine", core, stats};
  world w{core, cfg.answer.waiting};
  sim::fifo<read_command> commands{"commands", core, 2};
  sim::fifo<read_report> reports{"reports", core, 2};
  sim::fifo<read_engine_request> piece_requests{"piece_requests", core, 2};
  sim::fifo<read_engine_grant> piece_grants{"piece_grants", core, 2};
  sim::fifo<answer_job> jobs{"jobs", core, 2};
  sim::fifo<answer_room> rooms{"rooms", core, 32};
  sim::fifo<icm::translate_request> translate{"translate", core, 2};
  sim::fifo<icm::translate_response> translated{"translated", core, 8};
  sim::fifo<atomic_job> atomic_jobs{"atomic_jobs", core, 2};
  sim::fifo<atomic_outcome> atomic_outcomes{"atomic_outcomes", core, 2};
  sim::fifo<pcie::dma_request> reads{"reads", core, 2}, operands{"operands", core, 2}, writes{"writes", core, 2};
  sim::fifo<pcie::dma_response> reads_done{"reads_done", core, 8}, operands_done{"operands_done", core, 8},
      writes_done{"writes_done", core, 8};
};

}  // namespace rnic::transport::test::generator
