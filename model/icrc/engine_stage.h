// SPDX-License-Identifier: Apache-2.0
// The ICRC engine of a block and the frames that are in it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "model/icrc/icrc_if.h"
#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"

namespace rnic::icrc {

/// What of a frame goes through the engine.
struct stream {
  wire::encapsulation encap = wire::encapsulation::roce_v1;
  const std::uint8_t* data = nullptr;
  std::size_t length = 0;
  bool wanted = true;           ///< else it takes the same way and time, and nobody looks at its CRC
  std::uint64_t frame = 1;      ///< beats of the whole frame: so long the next one waits
  sim::cycle_t first_beat = 0;  ///< edge from which on its beats are there, one a cycle, if not before
};

/// A part of icrc_insert and icrc_check. A frame starts when the last beat of the one before has entered; its result
/// waits until the block takes it, and what is behind stalls as icrc_if.h says. RTL is clocked beat by beat while a
/// frame is in it, and its clock stands still else; the model's cycles are computed from the same rules:
///
///   i-th frame of b beats, offered from cycle s on, results of the ones before taken in the cycles T(i-1), T(i-2) ...
///   first beat enters   max(s, T(i-3) + 1)            a single beat may wait in front of the CRC register
///   last beat enters n  max(that, T(i-2)) + b - 1     one result waits beside the one in the CRC register
///   result              max(n + 3, T(i-1) + 2)
class engine_stage {
 public:
  struct entry {
    payload::frame_ptr frame;
    std::uint32_t crc = 0;  ///< of result() alone
    bool blocked = false;   ///< it had its result, but there was no room for it
    bool handed = false;    ///< hand_ahead(): it is under way behind the block, and its result waits for nobody
    sim::cycle_t ready_at = sim::never;   ///< its result is there; of RTL when it was seen
    sim::cycle_t last_beat = sim::never;  ///< enters
    // The stage's own:
    stream what;
    std::uint64_t beats = 0;
    sim::cycle_t tail = 0;  // of the frame, behind its last beat
    sim::cycle_t start = 0;

    /// For its block: its result is there at `now`, and there is no room for it.
    void hold(sim::cycle_t now) {
      if (!blocked) ready_at = now;
      blocked = true;
    }
  };

  engine_stage(sim::clocked_block& owner, std::unique_ptr<icrc_engine_if> engine);

  bool empty() const { return frames_.empty(); }
  bool can_start() const { return input_free_at_ <= owner_.edge() && !frames_.full(); }
  /// First edge at which a frame can start; never while that hangs on results being taken.
  sim::cycle_t input_free_at() const { return input_free_at_; }
  /// When to look at what waits behind the frame that has just started: at input_free_at(), or, while that is not
  /// known, in the next cycle, from which on what holds up the results keeps it waiting (blocked()).
  sim::cycle_t look_again_at() const { return input_free_at_ != sim::never ? input_free_at_ : owner_.edge() + 1; }
  /// A frame's first beat is offered in this cycle. Returns its beats.
  std::uint64_t start(payload::frame_ptr frame, const stream& what);
  /// Whether a frame that starts is alone and its CRC and its cycles are known at once: then the block may let it go
  /// into a channel whose slots are the engine's registers as well (fifo::push_after), with pass_alone() in the place
  /// of start().
  bool is_alone() const { return at_once_ && frames_.empty(); }
  /// While is_alone(). Of a stream whose CRC nobody wants it is 0.
  std::uint32_t crc_of(const stream& what) {
    return what.wanted ? engine_->process(what.encap, what.data, what.length).crc : 0;
  }
  /// Of a frame that passed alone.
  struct passage {
    std::uint64_t beats = 0;
    sim::cycle_t last_beat = 0;  ///< enters
    sim::cycle_t ready_at = 0;   ///< its result is there, and is taken
  };
  passage pass_alone(const stream& what);
  /// What has just started in RTL, when nothing in front of it waits for room: then its bytes need not wait for its
  /// CRC, which comes with a result() that is `handed`, and the block may let them go, with hand_ahead(). Else nullptr.
  entry* passing();
  void hand_ahead();
  /// Width of the datapath.
  unsigned width() const { return width_; }
  /// The first frame when it has its result; it stays until take().
  entry* result();
  void take();
  /// The first frame when its result waits for room, else nullptr.
  const entry* held_up() const { return !frames_.empty() && frames_.front().blocked ? &frames_.front() : nullptr; }
  /// A frame waits for the engine, which cannot start it because `by` takes no result (sim::server::blocked).
  void blocked(const char* by) { server_.blocked(by); }
  /// The end of the block's tick: clocks RTL, books the next tick.
  void clock();

 private:
  /// Beats, and of those of the frame how many are behind the last one, when the first can enter at `start`.
  struct extent {
    std::uint64_t beats = 0;
    sim::cycle_t tail = 0;
  };
  extent occupy(const stream& what, sim::cycle_t now, sim::cycle_t start);
  sim::cycle_t last_beat_of(sim::cycle_t start, std::uint64_t beats, std::size_t before) const;
  /// When the first frame of the engine, whose last beat enters at `last_beat`, has its result.
  sim::cycle_t result_of(sim::cycle_t last_beat) const {
    return std::max(last_beat + pipeline_cycles, taken_at_[0] + 2);
  }
  void settle(std::size_t place);
  void taken_in(sim::cycle_t cycle);
  void clock_rtl();

  sim::clocked_block& owner_;
  std::unique_ptr<icrc_engine_if> engine_;
  const bool at_once_;
  const unsigned width_;
  // Result, CRC register, masked beat and the beat offered.
  sim::ring<entry> frames_{pipeline_cycles + 1};
  std::array<sim::cycle_t, 3> taken_at_{};  // results of the last three that are gone, the last one first
  sim::cycle_t input_free_at_ = 0;
  std::size_t offered_ = 0;   // RTL: bytes of the last frame that have entered
  std::size_t handed_ = 0;    // of frames_
  bool take_result_ = false;  // RTL: in this cycle
  sim::server server_;
};

}  // namespace rnic::icrc
