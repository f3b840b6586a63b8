// SPDX-License-Identifier: Apache-2.0
// Shared receive queues on chip: doorbell records, the linked list of WQEs.
#pragma once

#include <cstdint>
#include <vector>

#include "model/icm/contexts.h"
#include "model/sim/clocked_block.h"
#include "model/transport/responder/receive_port.h"
#include "model/transport/responder/receive_wqe.h"
#include "model/transport/responder/shared_contexts.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder. WQEs are taken from the head of a list in host memory (adapter data plane A.3.4): entry k
/// names its successor, and as many as the doorbell record says may be taken. Entries are read ahead in the order in
/// which they lie in memory, and used as far as the links keep to that order. What has been taken and is not complete
/// is kept, or read again by its index.
///
/// Memories: `shared_lines` queues and `shared_kept` entries, found by a comparator at each, with places in the receive
/// memory; entries that are kept, one written a cycle, by the check that takes it; contexts are those of
/// shared_contexts. Ports: one question a cycle by the check; one queue a cycle is looked at for its limit; one result
/// a cycle; what has to be read of host memory is a job of receive fetch. An access to the context is made when an
/// entry is taken, a reading is taken over or a read begins; while that is under way the line says so. Stalls: all
/// lines, or all kept entries, have jobs under way, a port of the contexts is taken.
class shared_receive {
 public:
  using result = receive_result;
  /// A receive WQE without its link.
  struct entry_view {
    const std::uint8_t* segments = nullptr;
    std::uint32_t bytes = 0;
    std::uint32_t pd = 0;  ///< keys of the entry belong to the queue's domain, not to that of the queue pair
    std::uint16_t index = 0;
  };

  shared_receive(sim::clocked_block& owner, const responder_config& cfg, shared_contexts& contexts, receive_port& port);

  /// The entry at the head. `empty` only by a reading of the doorbell record that began after the first call that had
  /// to ask. The view is valid within the calling tick. `failed`: no such queue, or it is in error.
  result head(std::uint32_t srqn, entry_view& out);
  /// Takes the entry that head() gave in this tick; `keep`: it will be asked for again.
  void take(std::uint32_t srqn, const entry_view& entry, bool keep);
  /// An entry that was taken before.
  result taken(std::uint32_t srqn, std::uint16_t index, entry_view& out);
  /// Looks whether a limit was passed. In each tick.
  void work();
  /// Of places of the parts `shared`, `taken` and `shared_record`.
  void fetched(const receive_fetch_result& r);

  /// Forgets what is here of a queue. False: a read of it is under way.
  bool forget(std::uint32_t srqn);
  void drop_all();

 private:
  using phase = receive_phase;
  struct line {
    std::uint32_t srqn = no_queue;
    std::uint64_t used_at = 0;
    phase ahead = phase::idle;           ///< entries
    std::uint16_t first = 0, count = 0;  ///< which
    std::uint16_t usable = 0;            ///< of them that were posted when they were read, less those taken
    phase record = phase::idle;
    bool on_demand = false;       ///< the reading under way was asked for by a packet that waits
    bool watch = false;           ///< the limit may have been passed: decided by the next reading
    std::uint16_t record_at = 0;  ///< `consumed` when the reading began
  };
  struct kept_entry {
    std::uint32_t srqn = no_queue;
    std::uint16_t index = 0;
    std::uint64_t used_at = 0;
    phase state = phase::idle;
    bool copied = false;              ///< when it was taken; false: read by its index, into the receive memory
    std::vector<std::uint8_t> bytes;  ///< copied
  };
  static constexpr std::uint32_t no_queue = ~std::uint32_t{0};

  result next(line& l, icm::srq_context& c, entry_view& out);
  static bool waits(const line& l, const icm::srq_context& c);
  line* find(std::uint32_t srqn);
  line* find_or_take(std::uint32_t srqn);
  kept_entry* find_kept(std::uint32_t srqn, std::uint16_t index);
  kept_entry* take_kept();
  bool settle_record(line& l, icm::srq_context& c);
  void read_record(line& l, const icm::srq_context& c, bool on_demand);
  void read_entries(const receive_place& place, const icm::srq_context& c, std::uint16_t index, unsigned count);
  [[gnu::noinline]] void check_limits();
  static bool idle(const line& l) { return l.ahead != phase::asked && l.record != phase::asked; }
  receive_place place_of(const line& l, receive_place::part in) const {
    return {in, static_cast<std::uint32_t>(&l - lines_.data())};
  }
  receive_place place_of(const kept_entry& k) const {
    return {receive_place::part::taken, static_cast<std::uint32_t>(&k - kept_.data())};
  }

  sim::clocked_block& owner_;
  unsigned prefetch_, line_bytes_;
  shared_contexts& contexts_;
  receive_port& port_;
  std::vector<line> lines_;
  std::vector<kept_entry> kept_;
  std::uint64_t uses_ = 0;
  unsigned watching_ = 0;  // lines with `watch`
};

}  // namespace rnic::transport
