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
/// A buffer is 256 bytes of the region, of a function. A store is of whole words of 8 bytes within one, else it is
/// bad_length; any other waits for room for a doorbell, whether it makes one or not.
///
/// A buffer becomes a send doorbell with its descriptor when all 64-byte lines of the descriptor are in, in the cycle
/// of the last one. Its length is that of the control segment in the first 64 bytes (units of 16), up to whole lines.
/// When a buffer is written again before that, its place is needed, or its length is 0 or beyond 256, which is seen
/// when the first word is in, it becomes a plain doorbell (the same descriptor is in host memory, adapter data plane
/// A.1.2) if its first word is in, which names the queue pair; without it the doorbell is lost. One that is not
/// complete keeps its place until then, however long that is. The doorbell's page is that of the region's offset by the
/// page_shift of that time, its span that of the last store that had one.
///
/// The place that is needed is that of the buffer that was begun first; one that is begun anew counts as begun then.
/// What is still to come of a descriptor that has given up its place to another buffer, and whose first word was in, is
/// its remainder. Each store is compared with all remainders before it is with the buffers: if all its words are in the
/// remainder of its buffer it is dropped. Its words leave the remainder, and one with the first word, of the next
/// descriptor, ends it. There is none of a buffer that was begun anew or had a wrong length, nor when as many others
/// have lost their places since: late lines of these would be taken for the next descriptor's, as nothing in a line but
/// the first says which one it is of.
///
/// Memories: `depth` buffers of 256 bytes, compared as a whole by each store, of which one is written, 64 bytes a
/// cycle, and one read as a whole; as many remainders in a ring. The channel to the scheduler has up to 256 bytes an
/// item: they are there, not in a buffer, from the doorbell on.
///
/// Stalls: a store whose place another buffer has to give up first, or that begins the buffer anew, goes on a cycle
/// later, behind the plain doorbell of what was there, or nothing if that is lost. That cycle is no time of `decoder`.
///
/// Span mark: "doorbell".
///
/// Counters: blueflames, with their descriptors; blueflame_partial, all that end without it; blueflame_bad, of these
/// those of a wrong length.
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
