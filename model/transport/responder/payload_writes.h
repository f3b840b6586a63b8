// SPDX-License-Identifier: Apache-2.0
// The responder's payload on its way to host memory.
#pragma once

#include <cstdint>

#include "model/pcie/dma_if.h"

namespace rnic::transport {

/// Part of the responder: the port through which payload is written, one write a cycle, and how many of the writes that
/// are answered (`notify`: the last of a packet) were asked for and are on their way. Completions and READs wait for
/// those before them by these two counters.
class payload_writes {
 public:
  explicit payload_writes(pcie::dma_port& port) : port_(port) {}

  /// Whether push_made() is possible in this cycle. Refused, the owner is ticked when it may be.
  bool claim() { return port_.request.claim(); }
  /// Of what make(pcie::dma_request&) writes over a request of before, see sim::fifo::push_made.
  template <class F>
  void push_made(F make) {
    port_.request.push_made([&](pcie::dma_request& r) {
      make(r);
      if (r.notify) ++asked_;
    });
  }
  /// Takes an answer; in each tick.
  void work() {
    if (!port_.response.can_pop()) return;
    port_.response.pop();
    ++done_;
  }
  std::uint64_t asked() const { return asked_; }
  std::uint64_t done() const { return done_; }

 private:
  pcie::dma_port& port_;
  std::uint64_t asked_ = 0, done_ = 0;
};

}  // namespace rnic::transport
