// SPDX-License-Identifier: Apache-2.0
// The completion block against a memory that holds contexts, MTTs and the queues themselves.
#pragma once

#include <cstring>
#include <deque>
#include <systemc>
#include <utility>
#include <vector>

#include "model/completion/completion.h"
#include "model/icm/translation.h"
#include "model/sim/timebase.h"
#include "testbenches/block/icm/fake_memory.h"

namespace completion_test {
using namespace rnic;
namespace cr = completion::cr;

template <class T>
class source : public sim::clocked_block {
 public:
  source(sim::clock_domain& d, sim::fifo_in<T>& to) : clocked_block("source", d), out_(*this), channel_("c", d, 4) {
    out_.bind(channel_);
    to.bind(channel_);
  }
  void send(const T& t) {
    todo.push_back(t);
    wake_next();
  }
  std::deque<T> todo;
  std::vector<sim::cycle_t> sent;  ///< cycles in which they were pushed

 private:
  void tick() override {
    while (!todo.empty() && out_.claim()) {
      out_.push(todo.front());
      sent.push_back(now());
      todo.pop_front();
    }
  }
  sim::fifo_out<T> out_;
  sim::fifo<T> channel_;
};

class interrupt_pins : public sim::clocked_block {
 public:
  interrupt_pins(sim::clock_domain& d, sim::fifo_out<pcie::msix_request>& from)
      : clocked_block("pins", d), in_(*this), channel_("msix", d, 2) {
    from.bind(channel_);
    in_.bind(channel_);
  }
  std::vector<std::pair<std::uint16_t, sim::cycle_t>> seen;

 private:
  void tick() override {
    while (in_.can_pop()) seen.emplace_back(in_.pop().vector, now());
  }
  sim::fifo_in<pcie::msix_request> in_;
  sim::fifo<pcie::msix_request> channel_;
};

/// The QPs that a completion was lost of.
class lost_pairs : public sim::clocked_block {
 public:
  lost_pairs(sim::clock_domain& d, sim::fifo_out<completion::lost_completion>& from)
      : clocked_block("lost", d), in_(*this), channel_("lost_pairs", d, 2) {
    from.bind(channel_);
    in_.bind(channel_);
  }
  std::vector<std::uint32_t> seen;

 private:
  void tick() override {
    while (in_.can_pop()) seen.push_back(in_.pop().qpn);
  }
  sim::fifo_in<completion::lost_completion> in_;
  sim::fifo<completion::lost_completion> channel_;
};

inline constexpr std::uint64_t cqc = 0x1000, eqc = 0x2000, mtt = 0x3000, record = 0x4000, cq_buffer = 0x10000,
                               eq_buffer = 0x20000;
inline constexpr std::uint32_t cqn = 5, eqn = 3;

struct rig {
  explicit rig(std::uint32_t bytes = 32, bool always = false, unsigned log_cq = 3,
               const completion::completion_config& cfg = {})
      : base({always, 0}),
        clock("core", base, {1000, 1, 0}),
        memory(clock, 0x40000, 100),
        tpt("tpt", clock, {}, map, 1),
        block("completion", clock, cfg, map, 2, 1),
        translate_requests("tq", clock, 4),
        translate_responses("ts", clock, 4),
        cqes(clock, block.cqe[0]),
        other_cqes(clock, block.cqe[1]),
        events(clock, block.event[0]),
        doorbells(clock, block.doorbell),
        pins(clock, block.msix),
        to_requester(clock, block.losses[0]),
        to_responder(clock, block.losses[1]) {
    memory.attach(block.dma);
    memory.attach(block.cqs.dma);
    memory.attach(block.eqs.dma);
    memory.attach(tpt.dma);
    block.pages.port.request.bind(translate_requests);
    tpt.request[0].bind(translate_requests);
    tpt.response[0].bind(translate_responses);
    block.pages.port.response.bind(translate_responses);
    map.layout(icm::table::cqc) = {0x1000000, 64, 6};
    map.layout(icm::table::eqc) = {0x2000000, 64, 6};
    map.layout(icm::table::mtt) = {0x3000000, 8, 10};
    map.map(0x1000000, cqc, 0x1000);
    map.map(0x2000000, eqc, 0x1000);
    map.map(0x3000000, mtt, 0x1000);
    for (unsigned p = 0; p < 4; ++p) {  // pages of the buffers lie in reverse order
      memory.be64(mtt + 8 * p, (cq_buffer + 0x1000 * (3 - p)) | 1);
      memory.be64(mtt + 0x40 + 8 * p, (eq_buffer + 0x1000 * (3 - p)) | 1);
    }
    std::memset(memory.at(cq_buffer), 0xff, 0x8000);
    std::memset(memory.at(eq_buffer), 0xff, 0x8000);
    cq.cqn = cqn;
    cq.valid = 1;
    cq.log_size = static_cast<std::uint8_t>(log_cq);
    cq.log_page = 12;
    cq.eqn = eqn;
    cq.db_record = record;
    store_cq();
    eq.eqn = eqn;
    eq.valid = 1;
    eq.log_size = 3;
    eq.log_page = 12;
    eq.state = 9;
    eq.address = 0x40;
    eq.vector = 11;
    store_eq();
    block.cr_write(cr::cqe_bytes, bytes);
    block.cr_write(cr::eqe_bytes, bytes);
    run(1);
  }
  void store_cq() { std::memcpy(memory.at(cqc + 64 * cqn), &cq, sizeof cq); }
  void store_eq() { std::memcpy(memory.at(eqc + 64 * eqn), &eq, sizeof eq); }
  icm::cq_context stored_cq() {
    icm::cq_context c;
    std::memcpy(&c, memory.at(cqc + 64 * cqn), sizeof c);
    return c;
  }
  void complete(std::uint32_t n, bool solicited = false) {
    completion::cqe_request r;
    r.cqn = cqn;
    r.qpn = 0x48;
    r.byte_count = 0x1000 + n;
    r.wqe_index = static_cast<std::uint16_t>(n);
    r.opcode = 0x50;
    r.solicited = solicited;
    cqes.send(r);
  }
  void arm(std::uint8_t command, std::uint8_t sequence, std::uint32_t ci) {
    completion::queue_doorbell d;
    d.number = cqn;
    d.index = ci;
    d.command = command;
    d.sequence = sequence;
    doorbells.send(d);
    run(400);
  }
  void eq_doorbell(std::uint32_t ci, bool armed) {
    completion::queue_doorbell d;
    d.what = completion::queue_doorbell::kind::eq_update;
    d.number = eqn;
    d.index = ci;
    d.arm = armed;
    doorbells.send(d);
    run(400);
  }
  std::uint64_t cqe_at(unsigned slot, unsigned bytes = 32) const { return entry(cq_buffer, slot * bytes); }
  std::uint64_t eqe_at(unsigned slot, unsigned bytes = 32) const { return entry(eq_buffer, slot * bytes); }
  static std::uint64_t entry(std::uint64_t buffer, std::uint64_t offset) {
    return buffer + 0x1000 * (3 - offset / 0x1000) + offset % 0x1000;
  }
  std::uint32_t count(std::uint32_t offset) { return block.cr_read(offset); }
  void command(std::uint32_t value) {
    block.cr_write(cr::cq_select, cqn);
    block.cr_write(cr::cq_command, value);
  }
  void run(unsigned cycles) {
    if (!started) sc_core::sc_start(500, sc_core::SC_PS);
    started = true;
    sc_core::sc_start(static_cast<double>(cycles), sc_core::SC_NS);
  }
  bool started = false;
  sim::timebase base;
  sim::clock_domain clock;
  icm::icm_map map;
  rnic::bench::fake_memory memory;
  icm::translation tpt;
  completion::completion block;
  sim::fifo<icm::translate_request> translate_requests;
  sim::fifo<icm::translate_response> translate_responses;
  source<completion::cqe_request> cqes, other_cqes;
  source<completion::event_request> events;
  source<completion::queue_doorbell> doorbells;
  interrupt_pins pins;
  lost_pairs to_requester, to_responder;
  icm::cq_context cq{};
  icm::eq_context eq{};
};

}  // namespace completion_test
