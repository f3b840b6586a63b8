// SPDX-License-Identifier: Apache-2.0
// Memory on chip: where the data of each READ and atomic under way goes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "model/sim/clocked_block.h"
#include "model/sim/types.h"
#include "model/transport/requester/send_wqe.h"
#include "model/transport/requester/tables.h"

namespace rnic::transport {

/// Scatter list of a READ. Approximation: the chip keeps it from the descriptor on instead of reading it again.
struct scatter_list {
  std::array<wqe_segment, send_wqe::max_segments> segments;
  std::uint16_t count = 0;
  std::uint16_t users = 0;                   ///< response packets handed to scatter and not reported back
  sim::cycle_t orphan_since = sim::never;    ///< its message is gone: given back with the last user
  std::uint16_t segment = 0;                 ///< cursor: this segment
  std::uint32_t segment_offset = 0, at = 0;  ///< byte of it, and of the message
};

/// Two ports. The message table owns the memory: it writes a list when its READ begins, counts its users and takes it
/// back. Scatter reads a segment a cycle of a list that it was handed a job of at least a cycle ago, and moves the
/// cursor, which nobody else uses. What one port writes, the other sees a cycle later.
class scatter_lists {
 public:
  explicit scatter_lists(std::uint32_t limit) : lists_(limit) {}

  // ---- the message table's port
  bool available() const { return lists_.available(); }
  std::uint32_t write(const send_wqe& wqe) {
    const std::uint32_t index = lists_.take();
    scatter_list& s = lists_[index];
    s.count = wqe.count;
    s.users = s.segment = 0;
    s.segment_offset = s.at = 0;
    s.orphan_since = sim::never;
    std::copy_n(wqe.segments.begin(), wqe.count, s.segments.begin());
    return index;
  }
  void add_user(std::uint32_t index) { ++lists_[index].users; }
  /// True: the list is free again.
  bool remove_user(std::uint32_t index) {
    scatter_list& s = lists_[index];
    if (--s.users != 0 || s.orphan_since == sim::never) return false;
    lists_.give(index);
    return true;
  }
  /// Its message is gone. True: the list is free again.
  bool release(std::uint32_t index, sim::cycle_t now) {
    if (lists_[index].users == 0) {
      lists_.give(index);
      return true;
    }
    lists_[index].orphan_since = now;
    if (reader_ != nullptr) reader_->wake_at(now + 1);
    return false;
  }

  // ---- scatter's port
  void bind_reader(sim::clocked_block& reader) { reader_ = &reader; }
  scatter_list& read(std::uint32_t index) { return lists_[index]; }

 private:
  index_pool<scatter_list> lists_;
  sim::clocked_block* reader_ = nullptr;
};

}  // namespace rnic::transport
