// SPDX-License-Identifier: Apache-2.0
// The timers of queue pairs by the data sheet of the model's alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "model/adapter/block_place.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/server.h"
#include "model/transport/requester/timers.h"

namespace rnic::system_test {

/// Ticked in each cycle in which anything runs or waits, with a set ordered by edge and number where the model has a
/// heap.
class own_ack_timers final : public sim::clocked_block {
 public:
  explicit own_ack_timers(adapter::block_place& place)
      : clocked_block(place.name() + ".own", place.clock()),
        entries_(place.parameters().requester.timers.entries),
        interval_(place.parameters().requester.timers.expiry_cycles),
        step_(std::max<sim::cycle_t>(1, place.clock().cycles(place.parameters().requester.timers.granularity_ps))) {
    place.around().statistics.add(place.name() + ".timer_waits", waits_);
    place.around().statistics.add(place.name() + ".expired", expired_);
    place.bind("requester_to_ack_timers_commands", commands_);
    place.bind("ack_timers_to_requester_expirations", expirations_);
  }

 private:
  struct word {
    bool runs = false;      // has an entry
    sim::cycle_t end = 0;   // then
    sim::cycle_t span = 0;  // waits, for so long; 0: does not
    bool in_line = false;
    std::uint8_t tag = 0;
  };
  void tick() override {
    if (!expire()) give();
    if (commands_.can_pop()) {
      take(commands_.pop());
      if (running_.empty() || running_.begin()->first > now()) engine_.idle();  // taken back
    }
    if (!running_.empty() || !line_.empty()) wake_next();
  }
  bool expire() {
    if (running_.empty() || running_.begin()->first > now()) {
      engine_.idle();
      return false;
    }
    if (!expirations_.can_push()) {
      engine_.blocked("expirations");
      return false;
    }
    if (!engine_.is_free()) return false;
    const std::uint32_t q = running_.begin()->second;
    running_.erase(running_.begin());
    word& w = words_[q];
    w.runs = false;
    expirations_.push(transport::timer_expiration{q, w.tag});
    engine_.start(interval_);
    ++expired_;
    return true;
  }
  void give() {
    if (line_.empty() || running_.size() >= entries_) return;
    const std::uint32_t q = line_.front();
    line_.pop_front();
    word& w = words_[q];
    w.in_line = false;
    if (w.span == 0) return;
    run(q, w, now() + w.span);
    w.span = 0;
  }
  void run(std::uint32_t q, word& w, sim::cycle_t at) {
    if (w.runs) running_.erase({w.end, q});
    w.runs = true;
    w.end = (at + step_ - 1) / step_ * step_;
    running_.insert({w.end, q});
  }
  void take(const transport::timer_command& c) {
    word& w = words_[c.qpn];
    if (c.what == transport::timer_command::kind::stop) {
      if (w.runs) running_.erase({w.end, c.qpn});
      w.runs = false;
      w.span = 0;
      return;
    }
    w.tag = c.tag;
    const sim::cycle_t at = std::max(c.at, now() + 1);
    if (w.runs || (line_.empty() && running_.size() < entries_)) return run(c.qpn, w, at);
    if (w.span == 0) ++waits_;
    w.span = at - now();
    if (w.in_line) return;
    w.in_line = true;
    line_.push_back(c.qpn);
  }

  sim::fifo_in<transport::timer_command> commands_{*this};
  sim::fifo_out<transport::timer_expiration> expirations_{*this};
  const unsigned entries_, interval_;
  const sim::cycle_t step_;
  std::map<std::uint32_t, word> words_;
  std::set<std::pair<sim::cycle_t, std::uint32_t>> running_;
  std::deque<std::uint32_t> line_;
  sim::server engine_{*this, "timer_engine"};
  std::uint64_t waits_ = 0, expired_ = 0;
};
}  // namespace rnic::system_test
