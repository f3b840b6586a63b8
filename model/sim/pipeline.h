// SPDX-License-Identifier: Apache-2.0
// The named stages of a pipeline that does not stall.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "model/sim/clocked_block.h"
#include "model/sim/hierarchy.h"
#include "model/sim/span.h"
#include "model/sim/types.h"

namespace rnic::sim {

/// Stages of fixed length, one behind the other, for who asks where the time of a message went. Law 19: none is longer
/// than 16 cycles in the profiles.
class pipeline_stages {
 public:
  struct stage {
    const char* name;  ///< string literal
    unsigned cycles;   ///< may be 0: the stage is not there
  };
  pipeline_stages(std::initializer_list<stage> stages) : stages_(stages) {
    for (const stage& s : stages_) cycles_ += s.cycles;
  }

  /// From the first register to behind the last.
  unsigned cycles() const { return cycles_; }
  const std::vector<stage>& all() const { return stages_; }
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

/// A pipeline of fixed length of a block, in which something may enter in each cycle. What it holds is in the channel
/// behind it (fifo::push_after), whose slots are its registers, or in a memory of the block; here are its stages, and
/// how many things have entered.
class pipeline : public hierarchy_object {
 public:
  /// `leaf`: what passes it ("packets"); its name is that of the block, a dot, and this.
  pipeline(const clocked_block& owner, const std::string& leaf, std::initializer_list<pipeline_stages::stage> stages)
      : hierarchy_object(owner.name() + "." + leaf, "pipeline"), owner_(owner), stages_(stages) {}

  /// Something enters in this tick of the owner. Returns the cycles after which it has left the last stage.
  unsigned enter() {
    ++entered_;
    return stages_.cycles();
  }
  std::uint64_t entered() const { return entered_; }
  unsigned cycles() const { return stages_.cycles(); }
  const pipeline_stages& stages() const { return stages_; }
  const clocked_block& owner() const { return owner_; }
  /// Of what entered at edge `entry`.
  void mark(span_recorder& spans, span_id id, cycle_t entry) const { stages_.mark(spans, id, owner_, entry); }

 private:
  const clocked_block& owner_;
  pipeline_stages stages_;
  std::uint64_t entered_ = 0;
};

}  // namespace rnic::sim
