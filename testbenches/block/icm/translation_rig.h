// SPDX-License-Identifier: Apache-2.0
// Translation between clients that ask and a memory that holds dMPT and MTT in the published big-endian layouts.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <systemc>
#include <vector>

#include "model/icm/icm_cr.h"
#include "model/icm/icm_registers.h"
#include "model/icm/translation.h"
#include "model/sim/timebase.h"
#include "testbenches/block/icm/fake_memory.h"

namespace translation_test {
using namespace rnic;
using icm::translate_status;

class client : public sim::clocked_block {
 public:
  client(sim::clock_domain& d, icm::translation& t, unsigned n)
      : clocked_block("client", d), port(*this), requests_("req", d, 4), responses_("rsp", d, 4) {
    port.request.bind(requests_);
    t.request[n].bind(requests_);
    t.response[n].bind(responses_);
    port.response.bind(responses_);
  }
  void ask(const icm::translate_request& r) {
    todo.push_back(r);
    wake_next();
  }
  /// Takes no answers before this cycle, and then one a cycle.
  void take_from(sim::cycle_t cycle) {
    takes_from_ = cycle;
    wake_at(cycle);
  }
  icm::translate_port port;
  std::deque<icm::translate_request> todo;
  std::map<std::uint64_t, icm::translate_response> answers;
  std::map<std::uint64_t, sim::cycle_t> asked, answered;

 private:
  void tick() override {
    if (now() >= takes_from_ && port.response.can_pop()) {
      const auto a = port.response.pop();
      answers[a.tag] = a;
      answered[a.tag] = now();
    }
    if (todo.empty() || !port.request.can_push()) return;
    asked[todo.front().tag] = now();
    port.request.push(todo.front());
    todo.pop_front();
    if (!todo.empty()) wake_next();
  }
  sim::cycle_t takes_from_ = 0;
  sim::fifo<icm::translate_request> requests_;
  sim::fifo<icm::translate_response> responses_;
};

inline constexpr std::uint64_t mpt_icm = 0x10c000000, mtt_icm = 0x10f000000;
inline constexpr std::uint64_t mpt_host = 0x10000, mtt_host = 0x20000;

/// What has been fetched can be used when it is there.
inline icm::translation_config at_once() {
  icm::translation_config c;
  c.miss_cycles = 0;
  return c;
}

struct rig {
  explicit rig(const icm::translation_config& c = at_once(), bool always = false, unsigned clients = 2)
      : base({always, 0}),
        clock("core", base, {1000, 1, 0}),
        memory(clock, 0x40000, 100),
        tpt("tpt", clock, c, map, clients),
        registers(map, tpt) {
    memory.attach(tpt.dma);
    for (unsigned i = 0; i < clients; ++i) users.push_back(std::make_unique<client>(clock, tpt, i));
    set_table(icm::table::dmpt, mpt_icm, 64, 8);
    set_table(icm::table::mtt, mtt_icm, 8, 20);
    map_range(mpt_icm, mpt_host, 4);
    map_range(mtt_icm, mtt_host, 16);
    region(0x123, 0x45, 7, 0x10000, 0x8000, 0x100);
  }
  void cr(std::uint32_t offset, std::uint32_t value) { registers.cr_write(offset, value); }
  void set_table(icm::table t, std::uint64_t where, std::uint32_t bytes, std::uint32_t log) {
    cr(icm::cr::table_select, static_cast<std::uint32_t>(t));
    cr(icm::cr::table_base_hi, static_cast<std::uint32_t>(where >> 32));
    cr(icm::cr::table_base_lo, static_cast<std::uint32_t>(where));
    cr(icm::cr::table_entry_bytes, bytes);
    cr(icm::cr::table_log_entries, log);
  }
  void map_range(std::uint64_t where, std::uint64_t bus, std::uint32_t pages) {
    cr(icm::cr::map_icm_hi, static_cast<std::uint32_t>(where >> 32));
    cr(icm::cr::map_icm_lo, static_cast<std::uint32_t>(where));
    cr(icm::cr::map_bus_hi, static_cast<std::uint32_t>(bus >> 32));
    cr(icm::cr::map_bus_lo, static_cast<std::uint32_t>(bus));
    cr(icm::cr::map_pages, pages);
    cr(icm::cr::map_command, icm::cr::map_command_map);
  }
  /// Memory region: all rights, pages of 4 KiB at 0x5000000 + 0x10000 * n, described by MTTs at mtt_address.
  void region(std::uint32_t index, std::uint32_t tag, std::uint32_t pd, std::uint64_t start, std::uint64_t length,
              std::uint64_t mtt_address) {
    const std::uint64_t e = mpt_host + (index & 0xff) * 64;
    memory.be32(e, 1u << 17 | 0x7c00u | 1u << 8);
    memory.be32(e + 8, tag << 24 | index);
    memory.be32(e + 0xc, 3u << 24 | pd);
    memory.be64(e + 0x10, start);
    memory.be64(e + 0x18, length);
    memory.be64(e + 0x2c, mtt_address);
    memory.be32(e + 0x38, 12);
    const std::uint64_t pages = ((start & 0xfff) + length + 0xfff) >> 12;
    for (std::uint64_t p = 0; p < pages; ++p)
      memory.be64(mtt_host + mtt_address + 8 * p, (0x5000000 + 0x10000 * p) | 1);
  }
  icm::translate_request key(std::uint64_t va, std::uint32_t length, std::uint64_t tag) const {
    icm::translate_request r;
    r.key = 0x123 << 8 | 0x45;
    r.pd = 7;
    r.va = va;
    r.length = length;
    r.tag = tag;
    return r;
  }
  icm::translate_response answer(const icm::translate_request& r) {
    users[0]->answers.erase(r.tag);
    users[0]->ask(r);
    run(400);
    return users[0]->answers.at(r.tag);
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
  icm::icm_registers registers;
  std::vector<std::unique_ptr<client>> users;
};

}  // namespace translation_test
