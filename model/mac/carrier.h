// SPDX-License-Identifier: Apache-2.0
// Whether there is a cable in working order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/register_bus/interrupt_lines.h"
#include "model/register_bus/notice.h"
#include "model/sim/clocked_block.h"
#include "model/sim/timed_inbox.h"

namespace rnic::mac {

/// Data sheet. Part of a port.
///
/// Changes of the carrier come from the cable with their time; one is taken a cycle, and firmware is told through its
/// interrupt line. A frame any part of which was on the line while there was no carrier is lost.
///
/// Memory: changes under way (4); when the carrier went and came back, the last four times.
class carrier_sense {
 public:
  explicit carrier_sense(sim::clocked_block& owner) : owner_(owner), changes_(owner.name() + ".carrier", owner, 4) {}

  /// From the cable, at time `at`.
  void changes(bool up, sim::time_ps at) { changes_.push(up, at); }
  void bind_firmware(register_bus::interrupt_lines& lines, sim::time_ps delay_ps) {
    firmware_ = &lines;
    notice_ps_ = delay_ps;
  }

  bool there() const { return there_; }
  /// Whether a frame with these first and last bits was cut.
  bool cut(sim::time_ps first_bit, sim::time_ps last_bit) const {
    for (const gap& g : gaps_)
      if (first_bit < g.back_at && g.lost_at < last_bit) return true;
    return false;
  }

  /// To be called first in each tick: what `lost()` does follows a loss, then firmware is told.
  template <class Lost>
  void work(Lost lost) {
    if (changes_.empty() || !changes_.can_pop()) return;
    const sim::time_ps at = changes_.front_arrival();
    const bool up = changes_.pop();
    if (up == there_) return;
    there_ = up;
    if (up) {
      gaps_[last_].back_at = at;
    } else {
      last_ = (last_ + 1) % gaps_.size();
      gaps_[last_] = {at, ~sim::time_ps{0}};
      lost();
    }
    if (firmware_ != nullptr) firmware_->pulse(register_bus::notice::link, owner_.now_ps() + notice_ps_);
  }

 private:
  sim::clocked_block& owner_;
  sim::timed_inbox<bool> changes_;
  register_bus::interrupt_lines* firmware_ = nullptr;
  sim::time_ps notice_ps_ = 1;
  bool there_ = true;
  struct gap {
    sim::time_ps lost_at = 0, back_at = 0;  // back at ~0: it lasts
  };
  std::array<gap, 4> gaps_{};  // the last times without carrier: frames of before one may still be on their way
  std::size_t last_ = 0;
};

}  // namespace rnic::mac
