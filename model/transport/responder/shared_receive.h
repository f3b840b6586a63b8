// SPDX-License-Identifier: Apache-2.0
// Shared receive queues on chip: doorbell records, the linked list of WQEs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/icm/contexts.h"
#include "model/icm/translation_if.h"
#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/ring.h"
#include "model/transport/responder/receive_wqe.h"
#include "model/transport/responder/shared_contexts.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder. WQEs are taken from the head of a list in host memory (adapter data plane A.3.4): entry k
/// names its successor, and as many as the doorbell record says may be taken. Entries are read ahead in the order in
/// which they lie in memory, and used as far as the links keep to that order. What has been taken and is not complete
/// is kept, or read again by its index.
///
/// Memories: `shared_lines` queues and `shared_kept` entries, found by a comparator at each; contexts are those of
/// shared_contexts. Ports: one question a cycle by the check; one queue a cycle is looked at for its limit; one
/// translation, one read a cycle. An access to the context is made when an entry is taken, a reading is taken over or
/// a read begins; while that is under way the line says so. Stalls: translation and the DMA engine take nothing, a port
/// of the contexts is taken.
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

  shared_receive(sim::clocked_block& owner, const responder_config& cfg, shared_contexts& contexts,
                 icm::translate_port& translate, pcie::dma_port& dma, std::uint64_t translate_tag,
                 std::uint64_t dma_tag);

  /// The entry at the head. `empty` only by a reading of the doorbell record that began after the first call that had
  /// to ask. The view is valid within the calling tick. `failed`: no such queue, or it is in error.
  result head(std::uint32_t srqn, entry_view& out);
  /// Takes the entry that head() gave in this tick; `keep`: it will be asked for again.
  void take(std::uint32_t srqn, const entry_view& entry, bool keep);
  /// An entry that was taken before.
  result taken(std::uint32_t srqn, std::uint16_t index, entry_view& out);
  /// Sends what could not be sent when it came up, and looks whether a limit was passed. In each tick.
  void work();
  void translated(std::uint32_t tag, const icm::translate_response& r);
  void read_done(std::uint32_t tag, pcie::dma_status status);

  /// Forgets what is here of a queue. False: a read of it is under way.
  bool forget(std::uint32_t srqn);
  void drop_all();

 private:
  enum class phase : std::uint8_t { idle, to_translate, translating, to_read, reading, valid, failed };
  /// One read of entries.
  struct fetch {
    phase state = phase::idle;
    std::uint16_t first = 0, count = 0;
    std::uint8_t open = 0;
    unsigned next_segment = 0;
    std::uint16_t function = 0;
    icm::translate_request request;
    icm::translate_response answer;
    std::vector<std::uint8_t> bytes;
    bool rests() const { return state == phase::idle || state == phase::valid || state == phase::failed; }
  };
  struct line {
    std::uint32_t srqn = no_queue;
    std::uint64_t used_at = 0;
    fetch ahead;
    std::uint16_t usable = 0;  ///< entries of `ahead` that were posted when it was read, less those taken
    phase record = phase::idle;
    bool on_demand = false;       ///< the reading under way was asked for by a packet that waits
    bool watch = false;           ///< the limit may have been passed: decided by the next reading
    std::uint16_t record_at = 0;  ///< `consumed` when the reading began
    std::uint64_t record_address = 0;
    std::array<std::uint8_t, 4> record_bytes{};
  };
  struct kept_entry {
    std::uint32_t srqn = no_queue;
    std::uint16_t index = 0;
    std::uint64_t used_at = 0;
    fetch data;
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
  void start(fetch& f, const icm::srq_context& c, std::uint16_t index, unsigned count, std::uint32_t tag);
  bool send_translation(std::uint32_t tag);
  bool send_read(std::uint32_t tag);
  void send();
  void check_limits();
  fetch& fetch_of(std::uint32_t tag) {
    return tag < lines_.size() ? lines_[tag].ahead : kept_[tag - lines_.size()].data;
  }
  static bool idle(const line& l) {
    return l.ahead.rests() && (l.record == phase::idle || l.record == phase::valid || l.record == phase::failed);
  }

  sim::clocked_block& owner_;
  unsigned prefetch_, line_bytes_;
  icm::translate_port& translate_;
  pcie::dma_port& dma_;
  std::uint64_t translate_tag_, dma_tag_;
  shared_contexts& contexts_;
  std::vector<line> lines_;
  std::vector<kept_entry> kept_;
  std::uint64_t uses_ = 0;
  sim::ring<std::uint32_t> to_translate_, to_read_;  // tags of fetches and records in these phases
  unsigned watching_ = 0;                            // lines with `watch`
};

}  // namespace rnic::transport
