// SPDX-License-Identifier: Apache-2.0
// Frames that come into a switch at one edge, and the order in which they ask for room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/payload/frame.h"
#include "model/sim/types.h"

namespace rnic::fabric {

/// Data sheet. Part of a switch: it has no time of its own.
///
/// Round-robin arbiters, one for each output and one among outputs, which share the buffer: of several that ask at an
/// edge the first one from a pointer on goes first, the others follow it, and the pointer moves behind it. Who asks
/// alone moves no pointer. So inputs whose frames come at the same instants have equal shares of what there is room
/// for, and what goes elsewhere meanwhile takes no turn of theirs.
class edge_arrivals {
 public:
  struct frame_for {
    unsigned in = 0, out = 0;
    payload::frame_ptr frame;
    std::uint16_t vlan = 0;
    unsigned priority = 0;
    sim::time_ps arrival = 0;
  };

  explicit edge_arrivals(std::size_t ports) : outputs_(ports) {}

  /// Of one edge, by input.
  void add(frame_for f) {
    asking_ |= std::uint64_t{1} << f.out;
    outputs_[f.out].frames.push_back(std::move(f));
  }
  bool any() const { return asking_ != 0; }
  /// Gives each away, in turn; nothing is left.
  template <class Admit>
  void admit_all(Admit admit) {
    const std::uint64_t all = std::exchange(asking_, 0), behind = all & (~std::uint64_t{0} << turn_);
    if ((all & (all - 1)) != 0) turn_ = (lowest(behind != 0 ? behind : all) + 1) % 64;
    for (std::uint64_t part : {behind, all & ~behind})
      for (; part != 0; part &= part - 1) admit_of(outputs_[lowest(part)], admit);
  }

 private:
  struct output {
    std::vector<frame_for> frames;
    unsigned turn = 0;  // input that goes first
  };
  static unsigned lowest(std::uint64_t mask) { return static_cast<unsigned>(__builtin_ctzll(mask)); }

  template <class Admit>
  static void admit_of(output& to, Admit& admit) {
    std::vector<frame_for>& all = to.frames;
    if (all.size() > 1) {
      const auto first = std::find_if(all.begin(), all.end(), [&to](const frame_for& f) { return f.in >= to.turn; });
      std::rotate(all.begin(), first, all.end());
      to.turn = all.front().in + 1;
    }
    for (frame_for& f : all) admit(f);
    all.clear();
  }

  std::vector<output> outputs_;
  std::uint64_t asking_ = 0;  // outputs
  unsigned turn_ = 0;         // output that goes first
};

}  // namespace rnic::fabric
