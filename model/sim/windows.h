// SPDX-License-Identifier: Apache-2.0
// Partitions of a timebase, served apart.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "model/sim/types.h"

namespace rnic::sim {

class timebase;

/// The programs of a partition that leave their waiting to the windows.
class program_list {
 public:
  virtual ~program_list() = default;
  /// The kernel is at `now`, and the partition's edges up to and with those of that instant have been served: programs
  /// that are due go on behind the calling method. Returns when the next one is due (~0: none).
  virtual time_ps go_on(time_ps now) = 0;
};

/// Serves the edges of a timebase a partition at a time (sim::partitions), each up to the end of the window or to what
/// its own programs do. Whatever else is due in the kernel ends the window for all, since it may act on any partition:
/// they are all where it is when it goes on.
class windows {
 public:
  explicit windows(timebase& base) : base_(base) {}
  windows(const windows&) = delete;
  windows& operator=(const windows&) = delete;

  /// Returns the partition under construction, whose programs these are.
  std::size_t add(program_list& programs);
  void remove(program_list& programs);
  /// A program does not wait in the kernel now, but is in its partition's list, due() at a time.
  bool keep_programs() const;
  /// By the program before it waits, and by a tick or another program of its partition: it is due at `when`, which is
  /// not in the past.
  void due(std::size_t partition, time_ps when);

 private:
  friend class timebase;
  void serve();
  void serve_hub();
  void serve_spokes();
  template <class Limit>
  void serve_one(std::size_t p, Limit limit);
  bool has_more();
  time_ps next() const;
  void run_due_programs();
  void catch_up(time_ps look);

  timebase& base_;
  std::vector<std::pair<program_list*, std::size_t>> programs_;  // and the partition of each
  std::vector<time_ps> dues_{~time_ps{0}};                       // by partition: when one of its programs goes on
  time_ps due_ = ~time_ps{0};                                    // the earliest
};

}  // namespace rnic::sim
