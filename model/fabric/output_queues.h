// SPDX-License-Identifier: Apache-2.0
// The queues of a switch's output, one for each priority, and the choice among them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/fabric/switch_config.h"
#include "model/payload/frame.h"
#include "model/sim/types.h"

namespace rnic::fabric {

/// Data sheet. Part of a switch: it has no time of its own. The shared buffer bounds what is in the queues.
class output_queues {
 public:
  struct entry {
    payload::frame_ptr frame;
    unsigned in = 0;          ///< input
    std::uint32_t bytes = 0;  ///< that it has of the buffer
    sim::time_ps begins = 0;  ///< first bit on the line not before
  };

  output_queues(switch_scheduling how, const weights_config& weights) : how_(how) {
    for (unsigned p = 0; p < priorities; ++p) quanta_[p] = weights.quantum_bytes * weights.of[p];
  }

  void push(unsigned priority, entry e);
  /// Priorities that have a frame.
  std::uint8_t waiting() const { return waiting_; }
  /// When the first frame of a priority, which has one, can be on the line.
  sim::time_ps begins(unsigned priority) const { return queues_[priority].front().begins; }
  /// The priority to serve among `ready` (not 0), which must be waiting. Its state moves on: take the frame.
  unsigned pick(std::uint8_t ready);
  entry pop(unsigned priority);

 private:
  /// A ring that grows to the most it ever holds.
  class queue {
   public:
    bool empty() const { return count_ == 0; }
    const entry& front() const { return slots_[head_]; }
    void push(entry e);
    entry pop();

   private:
    std::vector<entry> slots_;  // a power of two
    std::size_t head_ = 0, count_ = 0;
  };

  void end_turn();

  switch_scheduling how_;
  std::array<std::uint32_t, priorities> quanta_{};  // bytes a turn
  std::array<queue, priorities> queues_;
  std::array<std::uint32_t, priorities> deficits_{};
  std::uint8_t waiting_ = 0;
  unsigned turn_ = 0;
  bool began_ = false;  // the queue whose turn it is has had its quantum
};

}  // namespace rnic::fabric
