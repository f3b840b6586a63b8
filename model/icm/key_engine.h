// SPDX-License-Identifier: Apache-2.0
// Executes operations on memory keys: reads, checks and changes entries of the protection table.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/icm/key_operation_if.h"
#include "model/icm/mpt.h"
#include "model/pcie/dma_if.h"
#include "model/sim/arbiter.h"
#include "model/sim/clocked_block.h"
#include "model/sim/parameter.h"
#include "model/sim/server.h"

namespace rnic::icm {

struct key_engine_config {
  /// From taking an operation to the check of its entry: as a WQE's parsing.
  sim::parameter<unsigned> operation_cycles{40, {0, sim::many, "cycles", "design: invalidate, register, bind"}};
  /// For each page of a list that is copied.
  sim::parameter<unsigned> page_cycles{1, {0, sim::many, "cycles", "design: page of a list copied, 8 bytes a cycle"}};
  /// Pages read by one request, which is one of 512 bytes.
  sim::parameter<unsigned> page_list_entries{64, {1, 512, "entries", "design: page list read at once"}};

  void list(sim::fields& are) {
    are("operation_cycles", operation_cycles);
    are("page_cycles", page_cycles);
    are("page_list_entries", page_list_entries);
  }
};

/// The tables, as their owner shows them to the engine.
class key_tables_if {
 public:
  virtual ~key_tables_if() = default;
  virtual std::uint32_t slot_of(std::uint32_t key) const = 0;
  virtual const mpt_entry* cached(std::uint32_t slot) = 0;
  /// Whether an entry on chip is read in this cycle: it takes a read port. Refused, the owner is ticked in the next.
  virtual bool may_read() = 0;
  /// Whether replace() is possible in this cycle: it takes a write port. Refused, the owner is ticked in the next.
  virtual bool may_replace() = 0;
  /// `entry` is what the table holds from now on; fetches of it under way are not used. `changed` is false when it was
  /// only read.
  virtual void replace(std::uint32_t slot, const mpt_entry& entry, bool changed) = 0;
  virtual void forget_mtts(std::uint64_t mtt_address, std::uint64_t entries) = 0;
  /// False: not mapped.
  virtual bool mpt_address(std::uint32_t slot, std::uint64_t& bus) const = 0;
  virtual bool mtt_address(std::uint64_t mtt_address, std::uint64_t& bus) const = 0;
};

/// Part of address translation. One operation at a time, in turn of the clients. An entry is changed on chip and
/// written through to ICM; while that write is on its way, the entry is not read from there (locked). The engine is
/// busy for the cycles of its parameters; between them it is blocked by "memory" (a read or a write that is under way),
/// "entries", whose port another entry takes, "dma", "holders" of translations that have not answered a
/// revocation, or the client that takes no answer.
///
/// Ports: what it changes (invalidation, registration, binding, a window taken back) and what it had to read goes into
/// the entries on chip, each by one write (translation: `mpt_write_ports`). So one that was not there is changed a
/// cycle behind its arrival at the earliest. Entries on chip it reads one a cycle (`mpt_read_ports`): a binding looks
/// at window and region in two. The lists of pages are written to ICM; of the translations on chip it only clears valid
/// bits.
class key_engine {
 public:
  static constexpr unsigned clients = 2;  ///< who asks, and holds translations
  static constexpr unsigned holders = 4;  ///< of translations: the clients first

  key_engine(sim::clocked_block& owner, const key_engine_config& config, key_tables_if& tables);

  /// Ports, to be bound by the adapter; they may all stay unbound.
  std::array<sim::fifo_in<key_operation>, clients> request;
  std::array<sim::fifo_out<key_answer>, clients> response;
  std::array<sim::fifo_out<key_revocation>, holders> revoke;
  std::array<sim::fifo_in<key_revocation>, holders> revoked;
  pcie::dma_port dma;

  /// To be called in each tick of the owner.
  void work() {
    if (active_ || asked()) run();
  }
  bool locked(std::uint64_t slot) const { return storing_ && slot == slot_; }

  /// Register side (between two edges). An entry was changed behind the engine's back.
  void dropped(std::uint64_t first, std::uint64_t last);
  void release_window(std::uint32_t index);
  void revoke_key(std::uint32_t key);
  /// An operation begun before the last drop or release is still under way.
  bool busy() const { return waited_for_; }

  struct statistics {
    std::uint64_t invalidations = 0, registrations = 0, bindings = 0, refused = 0, revocations = 0;
  };
  const statistics& counters() const { return stats_; }

 private:
  enum class phase : std::uint8_t { begin, target, region, pages, copy, old_region, store, revoke, wait, answer };
  static constexpr unsigned from_register = clients;

  bool asked() const { return request[0].can_pop() || request[1].can_pop() || told_; }
  void tell(key_operation::kind what, std::uint32_t key);
  void run();
  bool take();
  bool step();
  const char* held_up_by() const;
  bool begin_operation();
  bool check_entry();
  bool bind_region();
  bool read_pages();
  bool write_pages();
  bool leave_region();
  bool store_target();
  bool send_revocations();
  bool await_holders();
  bool give_answer();
  bool load(std::uint32_t slot, mpt_entry& out);
  bool may_read(std::uint32_t slot);
  bool may_change(std::uint32_t slot);
  bool store(std::uint32_t slot, const mpt_entry& entry);
  bool fail(key_status status);
  void take_response();

  sim::clocked_block& owner_;
  key_engine_config config_;
  key_tables_if& tables_;
  sim::round_robin arbiter_;
  bool active_ = false, told_ = false, waited_for_ = false;
  unsigned client_ = 0;
  phase at_ = phase::begin;
  key_operation operation_;
  key_answer answer_;
  sim::server engine_;
  mpt_entry target_;
  std::uint32_t revoked_key_ = 0;  // 0: none
  bool revokes_ = false;
  unsigned revoking_ = 0, sent_ = 0;  // masks of holders
  std::uint64_t pages_done_ = 0, pages_total_ = 0, pages_here_ = 0;
  bool reading_ = false, storing_ = false, stored_ = false, have_ = false, failed_ = false, in_flight_ = false;
  bool stale_ = false;                                            // what is being read has changed meanwhile
  std::uint32_t slot_ = 0;                                        // being read or written
  key_operation::kind told_what_ = key_operation::kind::release;  // by firmware
  std::uint32_t told_key_ = 0;
  std::array<std::uint8_t, mpt_bytes> bytes_{};
  mpt_entry loaded_;
  sim::cycle_t read_at_ = sim::never;  // the last read of an entry on chip,
  std::uint32_t read_slot_ = 0;        // this one
  std::vector<std::uint8_t> pages_;
  statistics stats_;
};

}  // namespace rnic::icm
