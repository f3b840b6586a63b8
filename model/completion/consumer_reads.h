// SPDX-License-Identifier: Apache-2.0
// Reads of the doorbell records of CQs that look full.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/completion/dma_queue.h"
#include "model/icm/contexts.h"

namespace rnic::completion {

/// Data sheet. Part of the completion block.
///
/// A CQ that is full by the consumer index in its context may have room by the doorbell record in host memory. 8
/// records are read at once, one a queue; another CQ waits for a free place. An answer is kept until the CQ's next
/// request takes it, and dropped where the CQ has room without it. What is read of a CQ that was halted or reset, or
/// has had room, meanwhile is not used.
///
/// Memory: 8 entries of a CQN and 4 bytes, compared as a whole by the CQ engine once a request.
class consumer_reads {
 public:
  struct record {
    bool failed;          ///< cannot be read
    std::uint32_t index;  ///< as it is in memory, 32 bits
  };

  explicit consumer_reads(dma_queue& dma) : dma_(dma) {}

  /// The CQ's record, once. Nothing: it is being read, or will be when asked again.
  std::optional<record> take(const icm::cq_context& cq);
  void answered(std::uint32_t place, bool ok);
  /// Whether any place is taken.
  bool any() const { return taken_ != 0; }
  /// True: a place is free by that.
  bool forget(std::uint32_t cqn);
  void forget_all();

 private:
  struct fetch {
    bool active = false, arrived = false, failed = false, stale = false;
    std::uint32_t cqn = 0;
    std::array<std::uint8_t, 4> data{};
  };
  void start(const icm::cq_context& cq);
  void free(fetch& f) {
    f.active = false;
    --taken_;
  }

  dma_queue& dma_;
  std::array<fetch, 8> fetches_{};
  unsigned taken_ = 0;
};

}  // namespace rnic::completion
