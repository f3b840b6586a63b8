// SPDX-License-Identifier: Apache-2.0
// Receive queue entries on chip: doorbell records and prefetched WQEs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/icm/contexts.h"
#include "model/transport/responder/receive_port.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// What became of a question for a receive WQE: it is there; it is being fetched; none is posted; it cannot be read.
enum class receive_result : std::uint8_t { ready, pending, empty, failed };

/// What is at a place of the receive memory.
enum class receive_phase : std::uint8_t {
  idle,   ///< nothing of use
  asked,  ///< receive fetch has been asked for it, and has not told of it
  valid,  ///< what was asked for
  failed  ///< that cannot be read
};

/// One data segment of a receive WQE.
struct receive_segment {
  std::uint64_t address = 0;
  std::uint32_t key = 0, length = 0;
};

/// WQEs of the QP's own queue from `index` on that are known to be posted.
std::uint16_t receives_left(const icm::responder_context& ctx, std::uint16_t index);

/// Part of the responder. Keeps for up to receive_lines QPs what was fetched of their receive queues: two batches of
/// WQEs, so that the next is under way while the first is used. The doorbell record is read when the posted count
/// known from the last reading is used up, and ahead of that in the background (adapter data plane A.2, A.3.3).
///
/// Memory: which line is whose and what its places in the receive memory hold, found by a comparator at each line.
/// Ports: one question and one result a cycle; what a question has to read of host memory is a job of receive fetch.
/// Stalls: all lines have jobs under way.
class receive_wqe_cache {
 public:
  receive_wqe_cache(const responder_config& cfg, receive_port& port);

  using result = receive_result;
  /// Whether WQE ctx.rq_consumed was posted. `empty` only by a reading of the record that began after the first call
  /// that had to ask. Updates ctx.rq_posted.
  result available(icm::responder_context& ctx);
  /// The bytes of posted WQE `index`: valid within the calling tick.
  result get(const icm::responder_context& ctx, std::uint16_t index, const std::uint8_t*& wqe);
  /// A message is done: look ahead.
  void look_ahead(const icm::responder_context& ctx);

  /// Of places of the parts `own` and `own_record`.
  void fetched(const receive_fetch_result& r);

  /// Readings that were begun or taken over so far.
  std::uint64_t steps() const { return steps_; }

  /// Forgets a QP.
  void drop(std::uint32_t qpn);
  void drop_all();
  /// A read of the QP's queue is still under way.
  bool busy(std::uint32_t qpn) const;

 private:
  using phase = receive_phase;
  struct batch {
    phase state = phase::idle;
    std::uint16_t first = 0, count = 0;
    bool holds(std::uint16_t i) const { return static_cast<std::uint16_t>(i - first) < count; }
  };
  struct line {
    std::uint32_t qpn = 0;  // 0: free
    std::uint64_t used_at = 0;
    std::array<batch, 2> batches;
    phase record = phase::idle;
    bool on_demand = false;  // the reading under way was asked for by a packet that waits
    bool doomed = false;     // forget when its reads are done
  };
  line* find(std::uint32_t qpn);
  line* find_or_take(std::uint32_t qpn);
  static bool idle(const line& l);
  void read_record(line& l, const icm::responder_context& ctx, bool on_demand);
  void fetch(line& l, unsigned b, const icm::responder_context& ctx, std::uint16_t index);
  void settle(line& l);
  std::uint32_t index_of(const line& l) const { return static_cast<std::uint32_t>(&l - lines_.data()); }
  receive_place batch_place(const line& l, unsigned b) const {
    return {receive_place::part::own, index_of(l) * 2u + b};
  }
  receive_place record_place(const line& l) const { return {receive_place::part::own_record, index_of(l)}; }

  unsigned prefetch_, line_bytes_;
  receive_port& port_;
  std::vector<line> lines_;
  std::vector<std::uint32_t> keys_;  // QPN of each line, 0: none
  std::uint64_t uses_ = 0, steps_ = 0;
};

/// Reads segment `i` of a WQE of that many bytes. False at its end (size or terminator, A.3.3).
bool read_segment(const std::uint8_t* wqe, std::uint32_t bytes, unsigned i, receive_segment& out);

}  // namespace rnic::transport
