// SPDX-License-Identifier: Apache-2.0
// The scheduler between a doorbell and a requester that do at each cycle what the test wrote down for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "model/scheduler/scheduler.h"
#include "model/sim/server.h"
#include "model/sim/timebase.h"

namespace rnic::scheduler::test {

/// Both neighbours. What is written down for a cycle is pushed in it; a grant is popped one a cycle from `takes_from`
/// on, and answered by what `serve` says, if anything, `service_cycles` after it was popped.
class neighbours : public sim::clocked_block {
 public:
  struct note {
    sim::cycle_t at = 0;
    grant what;
  };
  explicit neighbours(sim::clock_domain& domain) : clocked_block("neighbours", domain) {}
  sim::fifo_out<send_doorbell> doorbells{*this};
  sim::fifo_out<report> reports{*this};
  sim::fifo_in<grant> grants{*this};

  void ring_at(sim::cycle_t when, send_doorbell d) {
    to_ring_[when].push_back(std::move(d));
    wake_at(when);
  }
  void report_at(sim::cycle_t when, const report& r) {
    to_report_[when].push_back(r);
    wake_at(when);
  }
  /// Takes nothing before this cycle.
  void take_from(sim::cycle_t cycle) {
    takes_from_ = cycle;
    wake_at(cycle);
  }
  std::function<report(const grant&)> serve;
  sim::cycle_t service_cycles = 1;
  std::vector<note> seen;  ///< grants in the cycles in which they were popped
  /// Doorbells that found their channel full in the cycle meant for them, and waited.
  unsigned refused = 0;

 private:
  void tick() override {
    if (now() >= takes_from_ && grants.can_pop()) {
      seen.push_back({now(), grants.pop()});
      if (serve) report_at(now() + service_cycles, serve(seen.back().what));
    }
    for (auto& [cycle, list] : to_ring_) {
      if (cycle > now()) break;
      while (!list.empty() && doorbells.claim()) {
        doorbells.push(std::move(list.front()));
        list.erase(list.begin());
      }
      if (!list.empty()) {
        ++refused;
        break;
      }
    }
    while (!to_ring_.empty() && to_ring_.begin()->second.empty()) to_ring_.erase(to_ring_.begin());
    if (const auto due = to_report_.find(now()); due != to_report_.end()) {
      std::vector<report> rest = std::move(due->second);
      to_report_.erase(due);
      reports.push(rest.front());
      rest.erase(rest.begin());
      for (const report& r : rest) report_at(now() + 1, r);  // one a cycle
    }
  }
  std::map<sim::cycle_t, std::vector<send_doorbell>> to_ring_;
  std::map<sim::cycle_t, std::vector<report>> to_report_;
  sim::cycle_t takes_from_ = 0;
};

/// 1 GHz: a cycle is 1 ns.
struct bench {
  explicit bench(const config& cfg = {}, bool always = false, std::size_t grant_depth = 4)
      : base({always, 0}),
        clock("core", base, {1000, 1, 0}),
        dut("scheduler", clock, cfg, spans, stats),
        sides(clock),
        doorbell_channel("doorbells", clock, 4),
        report_channel("reports", clock, 8),
        grant_channel("grants", clock, grant_depth) {
    sides.doorbells.bind(doorbell_channel);
    dut.doorbell_in.bind(doorbell_channel);
    sides.reports.bind(report_channel);
    dut.report_in.bind(report_channel);
    dut.grant_out.bind(grant_channel);
    sides.grants.bind(grant_channel);
  }
  void ring(sim::cycle_t when, std::uint32_t qpn, std::uint32_t uar = 1) {
    send_doorbell d;
    d.qpn = qpn;
    d.uar = uar;
    sides.ring_at(when, std::move(d));
  }
  void ring_blueflame(sim::cycle_t when, std::uint32_t qpn, std::uint16_t index, std::uint32_t uar = 1) {
    send_doorbell d;
    d.qpn = qpn;
    d.uar = uar;
    d.descriptor = wqes.get();
    d.descriptor->index = index;
    d.descriptor->length = 64;
    sides.ring_at(when, std::move(d));
  }
  void set_owner(std::uint32_t qpn, std::uint32_t uar) {
    dut.cr_write(cr::qp_select, qpn);
    dut.cr_write(cr::owner, uar);
  }
  void report_of(sim::cycle_t when, std::uint32_t qpn, report::kind what, std::uint8_t priority = 0) {
    sides.report_at(when, {qpn, what, priority});
  }
  /// Every queue pair of `priority_of` always has more to send. They come in at cycle 10 one after the other.
  void saturate(const std::map<std::uint32_t, std::uint8_t>& priority_of) {
    sides.serve = [priority_of](const grant& g) { return report{g.qpn, report::kind::more, priority_of.at(g.qpn)}; };
    sim::cycle_t at = 10;
    for (const auto& [qpn, priority] : priority_of) ring(at++, qpn);
  }
  void run(unsigned cycles) { sc_core::sc_start(static_cast<double>(cycles), sc_core::SC_NS); }
  std::uint64_t count(const std::string& name) const { return stats.value("scheduler." + name); }
  /// When grants were seen,
  std::vector<sim::cycle_t> times() const {
    std::vector<sim::cycle_t> t;
    for (const auto& n : sides.seen) t.push_back(n.at);
    return t;
  }
  /// and for whom, from the n-th on.
  std::vector<std::uint32_t> order(std::size_t from = 0, std::size_t many = ~std::size_t{0}) const {
    std::vector<std::uint32_t> o;
    for (std::size_t i = from; i < sides.seen.size() && o.size() < many; ++i) o.push_back(sides.seen[i].what.qpn);
    return o;
  }
  /// By whom the arbiter was blocked, and for how many cycles.
  std::map<std::string, std::uint64_t> blocked() const {
    std::map<std::string, std::uint64_t> all;
    for (const sim::server::hold_up& h : clock.servers().front()->blocked_cycles()) all[h.by] = h.cycles;
    return all;
  }
  const grant& granted(std::size_t i) const { return sides.seen.at(i).what; }

  payload::pool<blueflame_wqe> wqes;
  sim::timebase base;
  sim::clock_domain clock;
  sim::span_recorder spans;
  sim::statistics stats;
  scheduler dut;
  neighbours sides;
  sim::fifo<send_doorbell> doorbell_channel;
  sim::fifo<report> report_channel;
  sim::fifo<grant> grant_channel;
};

using cycles = std::vector<sim::cycle_t>;
using numbers = std::vector<std::uint32_t>;

}  // namespace rnic::scheduler::test
