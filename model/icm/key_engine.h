// SPDX-License-Identifier: Apache-2.0
// Executes operations on memory keys: reads, checks and changes entries of the protection table.
#pragma once

#include <array>
#include <cstdint>

#include "model/icm/key_memory.h"
#include "model/icm/key_operation_if.h"
#include "model/icm/key_revocations.h"
#include "model/icm/key_tables.h"
#include "model/icm/mpt.h"
#include "model/icm/page_list.h"
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
///
/// Parts, each with a data sheet of its own: `key_memory`, entries and requests to host memory; `page_list`, the list
/// of a registration; `key_revocations`, who holds translations. The engine has the operation, and the order of its
/// steps.
class key_engine {
 public:
  static constexpr unsigned clients = 2;                         ///< who asks, and holds translations
  static constexpr unsigned holders = key_revocations::holders;  ///< of translations: the clients first

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
  bool locked(std::uint64_t slot) const { return memory_.locked(slot); }

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
  using result = key_memory::result;
  enum class phase : std::uint8_t { begin, target, region, pages, copy, old_region, store, revoke, wait, answer };
  static constexpr unsigned from_register = clients;

  bool asked() const { return request[0].can_pop() || request[1].can_pop() || told_.waits; }
  void tell(key_operation::kind what, std::uint32_t key);
  void run();
  bool take();
  bool step();
  const char* held_up_by() const;
  bool check_entry();
  bool bind_region();
  bool read_pages();
  bool write_pages();
  bool leave_region();
  bool store_target();
  bool store(std::uint32_t slot, const mpt_entry& entry);
  bool send_revocations();
  bool give_answer();
  bool fail(key_status status);

  sim::clocked_block& owner_;
  key_engine_config config_;
  key_tables_if& tables_;
  sim::round_robin arbiter_;
  struct {
    bool waits = false;
    key_operation::kind what = key_operation::kind::release;
    std::uint32_t key = 0;
  } told_;  // by firmware
  bool active_ = false, waited_for_ = false;
  unsigned client_ = 0;
  phase at_ = phase::begin;
  key_operation operation_;
  key_answer answer_;
  mpt_entry target_;
  std::uint32_t old_key_ = 0;  // of the target, before it is changed
  bool revokes_ = false;       // that key
  sim::server engine_;
  key_memory memory_;
  page_list list_;
  key_revocations revocations_;
  statistics stats_;
};

}  // namespace rnic::icm
