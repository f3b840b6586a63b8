// SPDX-License-Identifier: Apache-2.0
// Partitions of a timebase, served apart.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "model/sim/crossing.h"
#include "model/sim/thread_team.h"
#include "model/sim/types.h"

namespace rnic::sim {

class timebase;

/// The programs of a partition that leave their waiting to the windows.
class program_list {
 public:
  virtual ~program_list() = default;
  /// The partition's edges up to and with those at `now` have been served: the first of the programs that are due goes
  /// on behind the calling method, at once. Returns when the next one is due (~0: none), which may be `now`.
  virtual time_ps go_on(time_ps now) = 0;
};

/// Serves the edges of a timebase a partition at a time (sim::partitions), each up to the end of the window or to what
/// its own programs do. These go on together, each at the time of its partition, while the kernel stays where it is.
/// Whatever else is due in the kernel ends the window for all, since it may act on any partition: they are all where it
/// is when it goes on.
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
  /// By a program that goes on, before anything else: it is at the time at which it was due.
  void resumed(std::size_t partition);
  /// By the program before it waits, and by a tick or another program of its partition: it is due at `when`, which is
  /// not in the past.
  void due(std::size_t partition, time_ps when);
  /// From now on so many threads serve what partitions do in a window, with the same results. For ticks that call
  /// nothing of other partitions but by a crossing, nothing of the kernel but by timebase::notify(), and no code of
  /// others (timebase::left_model()); nothing looks at several of them, such as a trace. 1, as built: the calling one.
  void serve_with(unsigned threads);

 private:
  friend class timebase;
  void serve();
  void serve_hub();
  void serve_spokes();
  void serve_spokes_at_once();
  void serve_turn(partition_turn& turn);
  void end_turn(partition_turn& turn);
  void cross(partition_turn& turn);
  time_ps limit_of(time_ps due, time_ps horizon) const;
  template <class Limit>
  void serve_one(std::size_t p, Limit limit);
  bool has_more();
  time_ps next() const;
  bool run_due_programs();
  void catch_up(time_ps look);

  timebase& base_;
  std::vector<std::pair<program_list*, std::size_t>> programs_;  // and the partition of each
  std::vector<time_ps> dues_{~time_ps{0}};                       // by partition: when one of its programs goes on
  std::vector<time_ps> times_{0};                                // and that which goes on now
  time_ps due_ = ~time_ps{0};                                    // the earliest
  std::vector<partition_turn> turns_;                            // by partition, with threads
  std::unique_ptr<thread_team> team_;
};

}  // namespace rnic::sim
