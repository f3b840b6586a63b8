// SPDX-License-Identifier: Apache-2.0
// Rows of a viewer for what overlaps in time.
#pragma once

#include <cstddef>
#include <vector>

#include "model/sim/types.h"

namespace rnic::bench {

/// Slices of one block overlap where it works at several messages, and a viewer nests what is on one row: so they are
/// spread over rows, each slice on the first one that has nothing behind its beginning, or else has a gap for it.
/// Slices may come in any order. A row remembers its last `remembered` slices; before these nothing is put on it any
/// more.
class lanes {
 public:
  static constexpr std::size_t most = 64, remembered = 64;
  /// Row for a slice, or `most`: there is none. `begin` < `end`.
  std::size_t place(sim::time_ps begin, sim::time_ps end);
  std::size_t rows() const { return rows_.size(); }

 private:
  struct slice {
    sim::time_ps begin, end;
  };
  struct row {
    std::vector<slice> taken;  // in order of time; those before `first` are forgotten
    std::size_t first = 0;
    sim::time_ps from = 0;
  };
  static bool put(row& r, sim::time_ps begin, sim::time_ps end);
  std::vector<row> rows_;
  std::vector<sim::time_ps> ends_;  // by row, of its last slice
};

}  // namespace rnic::bench
