// SPDX-License-Identifier: Apache-2.0
// The named stages of a pipeline that does not stall.
#pragma once

#include <initializer_list>
#include <vector>

#include "model/sim/clocked_block.h"
#include "model/sim/span.h"
#include "model/sim/types.h"

namespace rnic::sim {

/// A pipeline of fixed length, in which something may enter in each cycle: what it holds is in the channel behind it
/// (fifo::push_after), whose slots are its registers. Here are its stages, for who asks where the time of a message
/// went. Law 19: none is longer than 16 cycles in the profiles.
class pipeline {
 public:
  struct stage {
    const char* name;  ///< string literal
    unsigned cycles;   ///< may be 0: the stage is not there
  };
  pipeline(std::initializer_list<stage> stages) : stages_(stages) {
    for (const stage& s : stages_) cycles_ += s.cycles;
  }

  /// From its first register to behind its last.
  unsigned cycles() const { return cycles_; }
  /// What enters at edge `entry` leaves each stage of `block` when its cycles are over.
  void mark(span_recorder& spans, span_id id, const clocked_block& block, cycle_t entry) const {
    if (id == 0) return;
    for (const stage& s : stages_) {
      if (s.cycles == 0) continue;
      entry += s.cycles;
      spans.leave(id, block.name(), s.name, block.domain().edge_time(entry));
    }
  }

 private:
  std::vector<stage> stages_;
  unsigned cycles_ = 0;
};

}  // namespace rnic::sim
