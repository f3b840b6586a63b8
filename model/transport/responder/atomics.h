// SPDX-License-Identifier: Apache-2.0
// Atomic operations: what they do to memory, and what the READ generator and the atomic unit tell each other.
#pragma once

#include <cstdint>

#include "model/sim/parameter.h"
#include "model/sim/span.h"

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
  /// Places beside these, for jobs whose lock is taken or that find all engines busy.
  sim::parameter<unsigned> waiting{
      16,
      {1, 256, "operations", "design: one behind each of 16 engines; the next job of a lock is there when it is free"}};
  /// Locks, a power of two, chosen by the low address bits.
  sim::parameter<unsigned> lock_buckets{1, {1, 4096, "locks", "calibration 5: whole unit; 4096, power of two"}};
  /// From the operand's arrival to its write, 26 in all, in which the lock is held: 370 ns an operation.
  static constexpr const char* source = "calibration C08: 2.7 Mops need 26 cycles, divided by design";
  sim::parameter<unsigned> align_cycles{9, {0, sim::many, "cycles", source}};    ///< operand from its line, host order
  sim::parameter<unsigned> execute_cycles{8, {0, sim::many, "cycles", source}};  ///< compare, add, masks
  sim::parameter<unsigned> store_cycles{9, {0, sim::many, "cycles", source}};    ///< result into its line, to the port

  /// Jobs that the unit takes before it has ended one.
  unsigned places() const { return in_flight + waiting; }

  void list(sim::fields& are) {
    are("in_flight", in_flight);
    are("waiting", waiting);
    are("lock_buckets", lock_buckets);
    are("align_cycles", align_cycles);
    are("execute_cycles", execute_cycles);
    are("store_cycles", store_cycles);
  }
};

/// To the atomic unit, in order. A number is of one job until its outcome has come.
struct atomic_job {
  enum class kind : std::uint8_t { execute, abandon };
  kind what = kind::execute;
  std::uint16_t job = 0;
  std::uint16_t function = 0;
  std::uint64_t address = 0;  ///< bus address of the eight bytes
  atomic_operation operation;
  sim::span_id span = 0;
};

/// From the atomic unit: one for each job that was to be executed, in the order of their ends.
struct atomic_outcome {
  std::uint16_t job = 0;
  bool executed = false;       ///< the result was written; false: memory cannot be read, or the job was abandoned
  std::uint64_t original = 0;  ///< what was in memory
};

}  // namespace rnic::transport
