// SPDX-License-Identifier: Apache-2.0
// The unit that executes atomic operations on host memory, one after the other where they share a lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/parameter.h"
#include "model/sim/server.h"

namespace rnic::transport {

/// What an atomic operation does to the eight bytes in memory (IBA 9.4.5; masked: adapter data plane A.4.4).
struct atomic_operation {
  enum class kind : std::uint8_t { compare_swap, fetch_add };
  kind what = kind::fetch_add;
  std::uint64_t swap_add = 0, compare = 0;
  std::uint64_t swap_mask = ~std::uint64_t{0};     ///< compare and swap: bits that are replaced
  std::uint64_t compare_mask = ~std::uint64_t{0};  ///< and bits that are compared
  std::uint64_t boundaries = 0;                    ///< fetch and add: bits behind which no carry goes

  /// Content of the memory afterwards.
  std::uint64_t apply(std::uint64_t memory) const;
};

struct atomic_unit_config {
  /// Operations at once.
  sim::parameter<unsigned> in_flight{1, {1, 64, "operations", "calibration 5: one unit; connectx5_100g 16"}};
  /// Locks, a power of two, chosen by the low address bits.
  sim::parameter<unsigned> lock_buckets{1, {1, 4096, "locks", "calibration 5: whole unit; 4096, power of two"}};
  /// From the operand's arrival to its write; 370 ns an operation in all.
  sim::parameter<unsigned> lock_cycles{26, {0, sim::many, "cycles", "calibration C08: 2.7 Mops"}};

  void list(sim::fields& are) {
    are("in_flight", in_flight);
    are("lock_buckets", lock_buckets);
    are("lock_cycles", lock_cycles);
  }
};

/// Part of the responder: reads the operand, changes it, writes it back. Its lock is held until the write is on its
/// way, so that no other operation under the same lock reads what was there before. Operands have the byte order of
/// the host, little-endian (adapter data plane C.6).
class atomic_unit {
 public:
  atomic_unit(sim::clocked_block& owner, const atomic_unit_config& config, pcie::dma_port& read, pcie::dma_port& write,
              std::uint64_t dma_tag);

  /// No place for an operation until one ends.
  bool full() const { return used_ == entries_.size(); }
  /// Takes an operation for `job`; false: no place, its lock is held, or no room towards memory. The owner is ticked
  /// when one of these may have changed.
  bool start(std::uint16_t job, std::uint16_t function, std::uint64_t address, const atomic_operation& what);
  struct outcome {
    std::uint16_t job = 0;
    bool ok = false;
    std::uint64_t original = 0;  ///< what was in memory
  };
  /// Goes on. Writes are counted in `writes_asked`, as all notified writes of the owner's port; `writes_done` of them
  /// are on their way. True with an operation that has ended.
  bool work(std::uint64_t& writes_asked, std::uint64_t writes_done, outcome& out);
  /// The operation of `job` will not be executed, unless its write was issued. It still ends with an outcome.
  void abandon(std::uint16_t job);
  void read_done(std::uint32_t tag, pcie::dma_status status);

 private:
  enum class phase : std::uint8_t { idle, reading, computing, writing };
  struct entry {
    phase at = phase::idle;
    bool ok = true, abandoned = false;
    std::uint16_t job = 0, function = 0;
    std::uint64_t address = 0;
    atomic_operation what;
    std::array<std::uint8_t, 8> operand{};
    std::uint64_t original = 0;
    sim::cycle_t ready = 0;   // computing: end of it
    std::uint64_t write = 0;  // writing: number of its write
  };
  std::uint64_t lock_of(std::uint64_t address) const { return address & (config_.lock_buckets - 1); }
  bool write_back(entry& e, std::uint64_t& writes_asked);

  sim::clocked_block& owner_;
  atomic_unit_config config_;
  pcie::dma_port& read_;
  pcie::dma_port& write_;
  std::uint64_t tag_;
  std::vector<entry> entries_;
  std::vector<std::unique_ptr<sim::server>> engines_;  // one an entry
  unsigned used_ = 0;
};

}  // namespace rnic::transport
