// SPDX-License-Identifier: Apache-2.0
// The responder's end of the READ generator.
#pragma once

#include <cstdint>

#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/ring.h"
#include "model/transport/responder/read_commands.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder: commands on their way to the READ generator, in order, and how many more requests it has a
/// place for. A READ waits here until the payload of what was accepted before it is on its way to memory, and so does
/// what is behind it: `read_hand_over` places.
class read_port {
 public:
  read_port(sim::clocked_block& owner, const responder_config& cfg);

  sim::fifo_out<read_command> command;
  sim::fifo_in<read_report> report;

  /// Whether `commands` more may be pushed. Refused, the owner is ticked when one has gone.
  bool room(std::size_t commands) const { return waiting_.size() + commands <= waiting_.capacity(); }
  void push(const read_command& r);
  /// One goes on in a cycle. Last of what pushes, in each tick.
  void work(std::uint64_t writes_done);
  /// A request was answered or given up; `last` of its queue pair.
  void ended(bool last);

  /// A place for a repeated request, and one for a new one, of a queue pair that `has_some` there. New ones leave an
  /// eighth of the places to the others, and half of `flows` to queue pairs that have nothing there; repeated ones
  /// leave a quarter of `flows`, one at least: what those bring may be what the peer must have before it takes an
  /// answer.
  bool can_take(bool has_some) const { return places_ != 0 && (has_some || reading_ < most_repeating_); }
  bool can_take_new(bool has_some) const { return places_ > all_places_ / 8 && (has_some || reading_ < most_reading_); }
  /// No queue pair has a request there.
  bool idle() const { return reading_ == 0; }
  /// A request takes its place; `first` of its queue pair.
  void take_place(bool first);

 private:
  sim::clocked_block& owner_;
  sim::ring<read_command> waiting_;
  unsigned places_;
  const unsigned all_places_;
  unsigned reading_ = 0;  // queue pairs that have requests there
  const unsigned most_reading_, most_repeating_;
};

}  // namespace rnic::transport
