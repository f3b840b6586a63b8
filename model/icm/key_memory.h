// SPDX-License-Identifier: Apache-2.0
// What the engine of keys reads and writes: entries of the protection table, and the pieces of a list of pages.
#pragma once

#include <array>
#include <cstdint>

#include "model/icm/key_tables.h"
#include "model/icm/mpt.h"
#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"

namespace rnic::icm {

/// Data sheet. Part of the engine of keys.
///
/// One request to host memory at a time. An entry that is on chip is read there, another from ICM, and then it is put
/// on chip; what is changed goes on chip and to ICM at once, and until that write is done the entry is not read from
/// ICM by anybody (locked). An entry that firmware drops while it is being read is read again.
///
/// Ports: the DMA engine; of the entries on chip a read (an entry a cycle, which stays in a register as long as the
/// cycle lasts) and a write (what was read from ICM, and what is changed).
///
/// Memory: an entry's 64 bytes as they come from ICM, and decoded.
///
/// Stalls: no room for a request in the channel to DMA; the port of the entries on chip is another's. An entry that is
/// to be changed is read in a cycle in which it can be written.
class key_memory {
 public:
  enum class result : std::uint8_t { waits, done, failed };

  key_memory(sim::clocked_block& owner, key_tables_if& tables, pcie::dma_port& dma)
      : owner_(owner), tables_(tables), dma_(dma) {}

  /// An operation begins: nothing is left of the one before.
  void begin() { loaded_here_ = stored_ = false; }
  /// A request is under way: the operation waits for its answer.
  bool in_flight() const { return under_way_ != access::none; }
  bool locked(std::uint64_t slot) const { return under_way_ == access::write_entry && slot == slot_; }
  /// Entries were changed by firmware.
  void dropped(std::uint64_t first, std::uint64_t last);
  /// To be called first in each tick in which the engine works.
  void take_response() {
    if (dma_.response.can_pop()) take();
  }

  /// waits: asked for, or no port. failed: there is no memory for it.
  result load(std::uint32_t slot, mpt_entry& out);
  result load_to_change(std::uint32_t slot, mpt_entry& out);
  /// done: its write is under way, stored() when that is over. failed: there is no memory for it.
  result store(std::uint32_t slot, const mpt_entry& entry);
  /// Once.
  bool stored();

  /// A request of the list of pages. `start` asks has_room first, `answer` says once how it ended.
  bool has_room() { return dma_.request.claim(); }
  void start(pcie::dma_request r);
  result answer();

 private:
  enum class access : std::uint8_t { none, read_entry, write_entry, pages };
  void take();
  bool may_read(std::uint32_t slot);

  sim::clocked_block& owner_;
  key_tables_if& tables_;
  pcie::dma_port& dma_;
  access under_way_ = access::none;
  std::uint32_t slot_ = 0;  // being read or written
  bool stale_ = false;      // what is being read has changed meanwhile
  std::array<std::uint8_t, mpt_bytes> bytes_{};
  mpt_entry loaded_;
  bool loaded_here_ = false;  // `loaded_` is entry `slot_`, and nobody has taken it
  bool stored_ = false;
  result pages_ = result::waits;
  sim::cycle_t read_at_ = sim::never;  // the last read of an entry on chip,
  std::uint32_t read_slot_ = 0;        // this one
};

}  // namespace rnic::icm
