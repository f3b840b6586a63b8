// SPDX-License-Identifier: Apache-2.0
// A scheduler by somebody who has read the data sheet of the model's, and nothing else of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "model/adapter/block_place.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/scheduler/scheduler.h"

namespace rnic::system_test {

/// Ticked in each cycle in which it has anything to do, and kept in lists and maps where the model has a table and
/// links.
class own_scheduler final : public sim::clocked_block,
                            public register_bus::cr_target_if,
                            public register_bus::reset_target_if {
 public:
  explicit own_scheduler(adapter::block_place& place)
      : clocked_block(place.name() + ".own", place.clock()), config_(place.parameters().scheduler) {
    place.bind("doorbell_to_scheduler_sends", doorbells_);
    place.bind("requester_to_scheduler_reports", reports_);
    place.bind("scheduler_to_requester_grants", grants_);
    const std::pair<const char*, const std::uint64_t*> all[] = {
        {"doorbells", &count_.doorbells}, {"merged", &count_.merged},       {"dropped_descriptors", &count_.dropped},
        {"bad_qpn", &count_.bad_qpn},     {"wrong_uar", &count_.wrong_uar}, {"grants", &count_.grants},
        {"resumes", &count_.resumes},     {"stalls", &count_.stalls}};
    for (const auto& [name, counter] : all) place.around().statistics.add(place.name() + "." + name, *counter);
  }

  void device_reset() override {
    for (auto& q : queues_) {
      forget(q.second);
      q.second.owner = scheduler::no_owner;
    }
    selected_ = 0;
    wake_next();
  }
  std::uint32_t cr_read(std::uint32_t offset) override {
    if (offset == scheduler::cr::qp_select) return selected_;
    if (offset != scheduler::cr::owner) return 0;
    return exists(selected_) ? queues_[selected_].owner : scheduler::no_owner;
  }
  void cr_write(std::uint32_t offset, std::uint32_t value) override {
    if (offset == scheduler::cr::qp_select) {
      selected_ = value;
    } else if (offset == scheduler::cr::owner && exists(selected_)) {
      queue& q = queues_[selected_];
      forget(q);
      q.owner = value;
      wake_next();
    }
  }

 private:
  enum class state { idle, ready, granted, stalled };
  struct queue {
    state at = state::idle;
    unsigned priority = 0;
    std::uint32_t owner = scheduler::no_owner;
    std::deque<scheduler::blueflame_ptr> wqes;
    bool rung = false, more = false, resumed = false;
  };

  void tick() override {
    grant();
    if (reports_.can_pop()) take(reports_.pop());
    if (doorbells_.can_pop() && (held_ < config_.descriptors || !doorbells_.front().descriptor ||
                                 !exists(doorbells_.front().qpn) || is_foreign(doorbells_.front())))
      take(doorbells_.pop());
    bool busy = doorbells_.can_pop();
    for (const auto& line : ready_) busy = busy || !line.empty();
    if (busy) wake_next();
  }

  void grant() {
    if (in_service_ == config_.grants || now() < next_grant_ || !grants_.can_push()) return;
    const auto empty = [](const auto& line) { return line.empty(); };
    if (std::all_of(ready_.begin(), ready_.end(), empty)) return;
    while (ready_[turn_].empty() || had_ >= config_.weights[turn_]) {
      turn_ = (turn_ + 1) % scheduler::priorities;
      had_ = 0;
    }
    const std::uint32_t qpn = ready_[turn_].front();
    ready_[turn_].pop_front();
    ++had_;
    queue& q = queues_[qpn];
    scheduler::grant g;
    g.qpn = qpn;
    g.uar = q.owner;
    g.doorbell = q.rung;
    g.more = std::exchange(q.more, false);
    if (!q.wqes.empty()) {
      g.descriptor = std::move(q.wqes.front());
      q.wqes.pop_front();
      --held_;
    }
    q.rung = !q.wqes.empty();
    q.at = state::granted;
    grants_.push(std::move(g));
    ++count_.grants;
    ++in_service_;
    next_grant_ = now() + config_.grant_cycles;
  }

  void take(const scheduler::report& r) {
    queue& q = queues_[r.qpn];
    const bool resume = r.what == scheduler::report::kind::resume;
    if (resume && q.at == state::ready) return;
    q.priority = r.priority % scheduler::priorities;
    if (resume) {
      ++count_.resumes;
      if (q.at == state::granted)
        q.resumed = true;
      else
        make_ready(r.qpn, q);
      return;
    }
    --in_service_;
    if (r.what == scheduler::report::kind::more || std::exchange(q.resumed, false) ||
        (r.what == scheduler::report::kind::idle && q.rung)) {
      q.resumed = false;
      return make_ready(r.qpn, q);
    }
    q.at = state::idle;
    if (r.what != scheduler::report::kind::stalled) return;
    q.at = state::stalled;
    ++count_.stalls;
    drop(q);
  }

  bool exists(std::uint32_t qpn) const { return qpn >> config_.log_qps == 0; }
  bool is_foreign(const scheduler::send_doorbell& d) {
    const std::uint32_t owner = queues_[d.qpn].owner;
    return owner != scheduler::no_owner && owner != d.uar;
  }

  void take(scheduler::send_doorbell&& d) {
    ++count_.doorbells;
    if (!exists(d.qpn)) {
      ++count_.bad_qpn;
      return;
    }
    if (is_foreign(d)) {
      ++count_.wrong_uar;
      return;
    }
    queue& q = queues_[d.qpn];
    if (q.rung) ++count_.merged;
    q.rung = true;
    if (d.descriptor) {
      q.wqes.push_back(std::move(d.descriptor));
      ++held_;
    } else {
      q.more = true;
    }
    if (q.at == state::stalled) drop(q);
    if (q.at == state::idle) make_ready(d.qpn, q);
  }

  void forget(queue& q) {
    q.rung = q.more = false;
    held_ -= q.wqes.size();
    q.wqes.clear();
  }

  void drop(queue& q) {
    if (q.wqes.empty()) return;
    count_.dropped += q.wqes.size();
    held_ -= q.wqes.size();
    q.wqes.clear();
    q.more = true;
  }

  void make_ready(std::uint32_t qpn, queue& q) {
    q.at = state::ready;
    ready_[q.priority].push_back(qpn);
  }

  const scheduler::config& config_;
  sim::fifo_in<scheduler::send_doorbell> doorbells_{*this};
  sim::fifo_in<scheduler::report> reports_{*this};
  sim::fifo_out<scheduler::grant> grants_{*this};
  std::map<std::uint32_t, queue> queues_;
  std::array<std::deque<std::uint32_t>, scheduler::priorities> ready_;
  unsigned turn_ = 0, had_ = 0, in_service_ = 0;
  std::size_t held_ = 0;
  std::uint32_t selected_ = 0;
  sim::cycle_t next_grant_ = 0;
  struct {
    std::uint64_t doorbells = 0, merged = 0, dropped = 0, bad_qpn = 0, wrong_uar = 0, grants = 0, resumes = 0,
                  stalls = 0;
  } count_;
};

}  // namespace rnic::system_test
