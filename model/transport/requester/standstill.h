// SPDX-License-Identifier: Apache-2.0
// For how long queue pairs stood still, and what they waited for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "model/sim/check.h"
#include "model/sim/statistics.h"
#include "model/sim/types.h"

namespace rnic::transport {

/// Why a queue pair has given up its unit.
enum class standstill : std::uint8_t {
  none,
  receives,  ///< no receive of the peer's is known (end-to-end credits)
  reads,     ///< as many READs and atomics are under way as it may have, or a fence waits for them
  packets,   ///< as many packets are unacknowledged as can be told apart (requester_config::max_unacked_packets)
  messages,  ///< no room for its message, or for the scatter list of its READ
  egress,    ///< no room behind gather: the peer pauses the priority, or what is in front waits for its payload
  rate,      ///< its rate
  count
};

/// Cycles in which at least one queue pair stands still for one reason. Hardware has a counter of the queue pairs and
/// one of the cycles in which that is not 0.
class standstill_clock {
 public:
  void begin(sim::cycle_t now) {
    if (pairs_++ == 0) since_ = now;
  }
  void end(sim::cycle_t now) {
    RNIC_ASSERT(pairs_ != 0, "nobody stands still");
    if (--pairs_ == 0) cycles_ += now - std::min(now, since_);
  }
  /// As of the last end, or settle().
  const std::uint64_t& cycles() const { return cycles_; }
  /// What lasts counts up to `now`, which may lie before what has been counted already.
  void settle(sim::cycle_t now) {
    if (pairs_ == 0 || now <= since_) return;
    cycles_ += now - since_;
    since_ = now;
  }

 private:
  std::uint32_t pairs_ = 0;
  sim::cycle_t since_ = 0;
  std::uint64_t cycles_ = 0;
};

/// The same of waits of which one knows only at their end that they were in vain: time-outs. Ends do not go back. A
/// wait counts from its beginning, but for what one of the last `kept` spans has counted; what is older is not
/// compared.
class vain_waits {
 public:
  void ended(sim::cycle_t began, sim::cycle_t now) {
    while (!spans_.empty() && spans_.back().end >= began) {
      began = std::min(began, spans_.back().begin);
      cycles_ -= spans_.back().end - spans_.back().begin;
      spans_.pop_back();
    }
    cycles_ += now - began;
    if (spans_.size() == kept) spans_.erase(spans_.begin());
    spans_.push_back({began, now});
  }
  const std::uint64_t& cycles() const { return cycles_; }

 private:
  static constexpr std::size_t kept = 64;
  struct span {
    sim::cycle_t begin, end;
  };
  std::vector<span> spans_;  // apart from one another, the last one behind the others
  std::uint64_t cycles_ = 0;
};

/// Those of queue pairs that have given up their unit, from then to their next turn.
class standstills {
 public:
  void begin(standstill& of_pair, standstill why, sim::cycle_t now) {
    end(of_pair, now);
    of_pair = why;
    clock(why).begin(now);
  }
  void end(standstill& of_pair, sim::cycle_t now) {
    if (of_pair == standstill::none) return;
    clock(of_pair).end(now);
    of_pair = standstill::none;
  }
  void announce(sim::statistics& to, const std::string& block, const std::function<sim::cycle_t()>& now) {
    constexpr const char* names[] = {"", "receives", "reads", "packets", "messages", "egress", "rate"};
    static_assert(std::size(names) == static_cast<std::size_t>(standstill::count));
    for (std::size_t i = 1; i < std::size(names); ++i)
      to.add(block + ".standstill." + names[i] + "_cycles", clocks_[i].cycles());
    to.settle_by([this, now] {
      for (standstill_clock& c : clocks_) c.settle(now());
    });
  }

 private:
  standstill_clock& clock(standstill why) { return clocks_[static_cast<std::size_t>(why)]; }
  std::array<standstill_clock, static_cast<std::size_t>(standstill::count)> clocks_{};
};

}  // namespace rnic::transport
