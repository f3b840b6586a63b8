// SPDX-License-Identifier: Apache-2.0
// The responder's payload on its way to host memory.
#pragma once

#include <cstdint>

#include "model/pcie/dma_if.h"

namespace rnic::transport {

/// Part of the responder: the port through which payload is written, one write a cycle, and how many of the writes that
/// are answered (`notify`: the last of a message) were asked for and are on their way. Completions and READs wait for
/// those before them by these two counters. A completion in error may come in the middle of a message: it waits for an
/// answer that no payload has asked for (behind_all), and a write without bytes brings it (flush).
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
      open_ = !r.notify;
    });
  }
  /// A write without bytes, whose answer comes when all writes before it are on their way. After claim().
  void flush() {
    push_made([](pcie::dma_request& r) {
      r.renew(pcie::dma_request::kind::write);
      r.notify = true;
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
  /// What done() is, at least, when all writes up to now are on their way; more than asked() until one that is answered
  /// follows them.
  std::uint64_t behind_all() const { return asked_ + (open_ ? 1 : 0); }

 private:
  pcie::dma_port& port_;
  std::uint64_t asked_ = 0, done_ = 0;
  bool open_ = false;  // the last write is not answered
};

}  // namespace rnic::transport
