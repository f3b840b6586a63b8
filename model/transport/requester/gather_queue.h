// SPDX-License-Identifier: Apache-2.0
// The packets that gather has, in the order in which they leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "model/sim/clocked_block.h"
#include "model/sim/ring.h"
#include "model/transport/requester/gather_job.h"
#include "model/transport/requester/withdrawals.h"

namespace rnic::transport {

/// A packet in gather.
struct gather_slot {
  gather_job job;
  std::uint16_t asked = 0, pending = 0;  ///< pieces, and what of them is with translation or memory
  std::uint8_t syndrome = 0;
  bool dropped = false;  ///< withdrawn, or judged
  bool blocked = false;  ///< a frame that its queue pair may not send
  sim::cycle_t asked_at = 0;
  sim::cycle_t failed_at = 0;  ///< from here on it is known that it has no source
};

struct gather_counters {
  std::uint64_t packets = 0, pieces = 0, bytes = 0, failed = 0, withdrawn = 0, translation_misses = 0,
                ethernet_frames = 0;
};

/// Data sheet. Part of gather.
///
/// A queue of `gather_depth` packets, by number: accept writes one at its end, ask works on the first whose pieces are
/// not all asked for (`asking`), answers of translation and memory find theirs, and the oldest leaves. What
/// asks, what has an address and what leaves look each at one entry of the memory of withdrawals, by a read port each.
class gather_queue {
 public:
  gather_queue(sim::clocked_block& owner, std::size_t depth, withdrawals& withdrawn)
      : owner_(owner), withdrawn_(withdrawn), slots_(depth) {
    withdrawn_.bind_reader(owner);
  }

  bool full() const { return slots_.full(); }
  void push(gather_job&& job) {
    gather_slot& s = slots_.extend();
    s.job = std::move(job);
    s.asked = s.pending = 0;
    s.syndrome = s.job.syndrome;
    s.dropped = s.blocked = false;
    s.asked_at = s.failed_at = 0;
  }

  gather_slot& at(std::uint32_t number) { return slots_[number - first_]; }
  const gather_slot& at(std::uint32_t number) const { return slots_[number - first_]; }
  /// Number of the oldest.
  std::uint32_t first() const { return first_; }

  /// Number of the first whose pieces are not all asked for.
  std::uint32_t asking() const { return asking_; }
  bool all_asked() const { return asking_ - first_ == slots_.size(); }
  void asked() { ++asking_; }

  /// There is an oldest, and all of it was asked for.
  bool may_leave() const { return asking_ != first_; }
  gather_slot& oldest() { return slots_.front(); }
  const gather_slot& oldest() const { return slots_.front(); }
  void drop_oldest() {
    slots_.front().job.frame.reset();
    slots_.drop();
    ++first_;
  }

  bool withdrawn(gather_slot& s) {
    if (!s.dropped) s.dropped = withdrawn_.read(s.job.qpn, s.job.number, owner_.now());
    return s.dropped;
  }

 private:
  sim::clocked_block& owner_;
  withdrawals& withdrawn_;
  sim::ring<gather_slot> slots_;
  std::uint32_t first_ = 0, asking_ = 0;
};

}  // namespace rnic::transport
