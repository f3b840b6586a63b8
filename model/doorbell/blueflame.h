// SPDX-License-Identifier: Apache-2.0
// BlueFlame buffers: descriptors that processors store into BAR2 line by line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/doorbell/uar_pages.h"
#include "model/pcie/dma_if.h"
#include "model/scheduler/scheduler_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/span.h"

namespace rnic::doorbell {

/// Data sheet. Part of the doorbell decoder, in whose turn it works.
///
/// A buffer becomes a send doorbell with its descriptor when all 64-byte lines of the descriptor are in, in the cycle
/// of the last one. When a buffer is written again before that, its place is needed, or its length is none that fits,
/// it becomes a plain doorbell (the same descriptor is in host memory, adapter data plane A.1.2) if its first 8 bytes
/// are in, which name the queue pair; without them the doorbell is lost. What comes of a descriptor whose first 8 bytes
/// were in after it has lost its place is dropped: the next one in that buffer begins without it.
///
/// Memories: `depth` buffers of 256 bytes, compared as a whole by each store; as many remainders, the next one takes
/// the place of the oldest.
///
/// Stalls: a store whose place another buffer has to give up first, or that begins the buffer anew, goes on a cycle
/// later, behind the plain doorbell of what was there.
///
/// Span mark: "doorbell".
///
/// Counters: blueflames, blueflame_partial, blueflame_bad.
class blueflame_buffers {
 public:
  static constexpr unsigned bytes = 256;  ///< of a buffer

  blueflame_buffers(sim::clocked_block& owner, unsigned depth, const sim::fifo_out<scheduler::send_doorbell>& out,
                    const uar_pages& pages, sim::span_recorder& spans, doorbell_counters& counters)
      : owner_(owner),
        out_(out),
        pages_(pages),
        spans_(spans),
        counters_(counters),
        gathers_(depth),
        remainders_(depth) {}

  /// A store at `offset` of the BlueFlame region, whole words of 8 bytes within a buffer. There must be room for a
  /// doorbell. False: the same store again in the next cycle.
  bool store(const pcie::mmio_write& w, std::uint64_t offset);
  void reset();

 private:
  struct gather {
    bool busy = false;
    std::uint16_t function = 0;
    std::uint64_t buffer = 0;   // index of the 256-byte buffer in the BlueFlame region
    std::uint32_t arrived = 0;  // 8-byte words
    std::uint64_t order = 0;
    scheduler::blueflame_ptr wqe;
    sim::span_id span = 0;
  };
  struct remainder {  // of a descriptor that has lost its place
    std::uint16_t function = 0;
    std::uint64_t buffer = 0;
    std::uint32_t words = 0;  // not arrived; 0: unused
  };
  gather* open(std::uint16_t function, std::uint64_t buffer);
  void evict(gather& g);
  bool drop_remainder(std::uint16_t function, std::uint64_t buffer, std::uint32_t words);
  void close(gather& g, bool with_descriptor);
  void finish_if_complete(gather& g);

  sim::clocked_block& owner_;
  const sim::fifo_out<scheduler::send_doorbell>& out_;
  const uar_pages& pages_;
  sim::span_recorder& spans_;
  doorbell_counters& counters_;
  payload::pool<scheduler::blueflame_wqe> pool_;
  std::vector<gather> gathers_;
  std::vector<remainder> remainders_;
  std::size_t next_remainder_ = 0;
  bool remainders_wanted_ = false;
  std::uint64_t order_ = 0;
};

}  // namespace rnic::doorbell
