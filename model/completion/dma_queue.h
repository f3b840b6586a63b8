// SPDX-License-Identifier: Apache-2.0
// What the completion block writes and reads in host memory, between the decision and the DMA engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/ring.h"
#include "model/sim/span.h"

namespace rnic::completion {

/// Data sheet. Part of the completion block.
///
/// A queue of `depth` requests, which go to the DMA engine in the order in which they were decided, one a cycle: an
/// entry of a queue when the latency of the pipeline that made it is over, a read a cycle after it was asked for.
///
/// Memory: the queue; one request out a cycle. What may come in a cycle, in this order: of queue control a fence for
/// each halted queue that has not asked yet, 8 CQs and 8 EQs at most; of the EQ engine a write; of the CQ engine a
/// request of each source up to the first that makes a write: that write, and before it a read of a consumer index for
/// each source whose CQ looks full (of two sources two reads, or a read and a write).
///
/// Stalls: the channel to the DMA engine is full. While `has_room` is false neither engine looks at a request and no
/// fence is asked for: each asks in front of every request, so one place of the queue is never used.
///
/// Span mark: "completion", when the write of a CQE leaves; what cq_engine notes.
class dma_queue {
 public:
  /// What an answer is for; it comes back with an index of whoever asked.
  enum class answer : std::uint64_t { eqe_written, consumer_read, fence };
  static answer kind_of(const pcie::dma_response& r) { return static_cast<answer>(r.tag >> 32); }
  static std::uint32_t index_of(const pcie::dma_response& r) { return static_cast<std::uint32_t>(r.tag); }

  dma_queue(sim::clocked_block& owner, pcie::dma_port& port, std::size_t depth, sim::span_recorder* spans)
      : owner_(owner), port_(port), spans_(spans), requests_(depth) {}

  bool has_room() const { return requests_.size() + 1 < requests_.capacity(); }
  /// The write of an entry of a queue, to be completed by the caller; `latency` from now on it leaves.
  pcie::dma_request& write_entry(std::uint64_t address, std::uint16_t function, std::uint32_t bytes, unsigned latency);
  /// Asks for an answer of that kind when the write has entered the posted queue.
  static void notify(pcie::dma_request& write, answer what);
  /// A read of four bytes.
  void read(std::uint64_t address, std::uint16_t function, std::uint8_t* to, answer what, std::uint32_t index);
  bool anything_written() const { return last_address_ != 0; }
  /// A read of the last entry written: its answer comes when all entries are in memory, because reads of a client do
  /// not overtake its writes.
  void fence(std::uint32_t index) { read(last_address_, last_function_, fence_data_.data(), answer::fence, index); }

  /// The message of `span` leaves a stage of the owner in this cycle.
  void note(sim::span_id span, const char* stage, sim::wait why) const;
  /// To be called in each tick of the owner.
  void hand_over() {
    if (!requests_.empty()) hand_over_front();
  }

 private:
  struct pending {
    pcie::dma_request request;
    sim::cycle_t ready = 0;
  };
  pcie::dma_request& add(unsigned latency);
  void hand_over_front();

  sim::clocked_block& owner_;
  pcie::dma_port& port_;
  sim::span_recorder* spans_;
  sim::ring<pending> requests_;
  std::uint64_t last_address_ = 0;  // of the last entry written
  std::uint16_t last_function_ = 0;
  std::array<std::uint8_t, 4> fence_data_{};
};

}  // namespace rnic::completion
