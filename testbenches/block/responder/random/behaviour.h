// SPDX-License-Identifier: Apache-2.0
// When the neighbours of the responder take something, and how long they need for it.
#pragma once

#include <array>
#include <cstdint>

#include "model/sim/types.h"
#include "testbenches/bench/seeded.h"

namespace rnic::transport::random_test {

using bench::dice;
using bench::mixed;
using bench::octets;

/// Where the responder meets its neighbours.
enum class channel : unsigned {
  payload_writes,
  descriptor_reads,
  contexts,
  histories,
  shared_contexts,
  response_reads,
  operands,
  atomic_results,
  payload_translations,
  descriptor_translations,
  response_translations,
  completions,
  events,
  errors,
  answers,
  keys,
  requests,
  plain_frames,
  copies,
  credits,
  all
};

/// Decisions follow from the seed, the channel and the cycle or the number of the item: they are the same however often
/// a neighbour is ticked, and in whatever order.
class behaviour {
 public:
  behaviour(std::uint64_t seed, dice& d, bool reads_may_fail) : seed_(seed) {
    const bool steady = d.below(4) == 0;
    for (manner& m : manners_) {
      m.refused_windows = !steady && d.percent(25) ? d.one_of({10u, 40u, 80u}) : 0;
      m.taken = d.percent(60) ? 100 : d.one_of({10u, 50u, 90u});
      m.longest_delay = d.one_of({0u, 5u, 30u, 200u});
    }
    failed_reads_ = reads_may_fail && d.percent(40) ? d.one_of({5u, 50u}) : 0;
  }

  /// Whether an item is taken from the channel, or put into it, in this cycle.
  bool takes(channel c, sim::cycle_t now) const {
    if (calm_) return true;
    const manner& m = of(c);
    return decision(c, 0, now / window) % 100 >= m.refused_windows && decision(c, 1, now) % 100 < m.taken;
  }
  /// Cycles until item `number` is answered. One of sixteen takes up to twenty times as long as the others.
  sim::cycle_t delay(channel c, std::uint64_t number) const {
    if (calm_) return 1;
    const std::uint64_t drawn = decision(c, 2, number);
    const std::uint64_t longest = of(c).longest_delay * (drawn % 16 == 0 ? 20u : 1u);
    return 1 + drawn / 16 % (longest + 1);
  }
  bool read_fails(channel c, std::uint64_t number) const { return decision(c, 3, number) % 1000 < failed_reads_; }
  /// From here on everything is taken and answered at once: what is left must come to its end.
  void calm_down() { calm_ = true; }
  bool calm() const { return calm_; }
  std::uint64_t seed() const { return seed_; }

 private:
  struct manner {
    unsigned refused_windows = 0;  // per cent of the windows in which nothing is taken
    unsigned taken = 100;          // per cent of the other cycles in which something is
    unsigned longest_delay = 0;
  };
  static constexpr sim::cycle_t window = 256;
  const manner& of(channel c) const { return manners_[static_cast<unsigned>(c)]; }
  std::uint64_t decision(channel c, unsigned about, std::uint64_t number) const {
    return mixed(mixed(mixed(seed_) ^ (static_cast<unsigned>(c) * 4 + about)) ^ number);
  }

  std::uint64_t seed_;
  std::array<manner, static_cast<unsigned>(channel::all)> manners_{};
  unsigned failed_reads_ = 0;  // per mille
  bool calm_ = false;
};

}  // namespace rnic::transport::random_test
