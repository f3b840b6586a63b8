// SPDX-License-Identifier: Apache-2.0
// Firmware's interrupt lines.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "model/register_bus/notice.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/hierarchy.h"
#include "model/sim/types.h"

namespace rnic::register_bus {

/// Data sheet. A line for each notice, and a bit behind it that stays set from the line's pulse until it is taken. All
/// lines may have a pulse in a cycle, each of any number of blocks, which are ORed; all bits are taken at once. Pulses
/// of a line that come before it is taken are one.
class interrupt_lines : public sim::hierarchy_object {
 public:
  /// `consumer` is ticked at its first edge that is not before a pulse.
  interrupt_lines(const std::string& name, sim::clocked_block& consumer)
      : hierarchy_object(name, "interrupt_lines"), consumer_(consumer) {
    pulses_.fill({sim::never, sim::never});
  }
  interrupt_lines(const interrupt_lines&) = delete;
  interrupt_lines& operator=(const interrupt_lines&) = delete;

  /// A pulse at `at`, in the future; in any order, by any block.
  void pulse(notice line, sim::time_ps at) {
    const sim::cycle_t edge = consumer_.domain().edge_at_or_after(at);
    edges& of = pulses_[static_cast<std::size_t>(line)];
    of.last = of.first == sim::never ? edge : std::max(of.last, edge);
    of.first = std::min(of.first, edge);
    consumer_.wake_at(of.first);
  }
  /// In a tick of the consumer: the bits that are set, by 1 << notice; they are cleared.
  unsigned take() {
    const sim::cycle_t now = consumer_.domain().edge();
    unsigned set = 0;
    for (std::size_t line = 0; line != pulses_.size(); ++line) {
      edges& of = pulses_[line];
      if (of.first == sim::never || of.first > now) continue;
      set |= 1U << line;
      of.first = of.last > now ? of.last : sim::never;  // a pulse of this very instant is for the next edge
      if (of.first != sim::never) consumer_.wake_at(of.first);
    }
    return set;
  }
  static bool has(unsigned bits, notice line) { return (bits >> static_cast<unsigned>(line) & 1U) != 0; }

 private:
  struct edges {
    sim::cycle_t first, last;  // at which it is seen; never: no pulse
  };
  sim::clocked_block& consumer_;
  std::array<edges, notices> pulses_{};
};

}  // namespace rnic::register_bus
