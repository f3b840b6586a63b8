// SPDX-License-Identifier: Apache-2.0
// The end of the cable at which the simulation meets the world outside.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/payload/frame_port.h"
#include "model/sim/clocked_block.h"
#include "model/sim/statistics.h"
#include "model/sim/timed_inbox.h"
#include "model/wire/pause.h"

namespace rnic::serve {

/// Gets the frames of the adapter when their last bit has left it. Called inside a tick.
class outside_if {
 public:
  virtual ~outside_if() = default;
  virtual void leave(const std::uint8_t* frame, std::size_t length) = 0;
  /// Bytes that have left and still wait for whoever takes them.
  virtual std::size_t queued() const { return 0; }
  /// Of the frames that waited for the line, half are gone. Called inside a tick.
  virtual void half_empty() {}
};

/// An Ethernet connector. Frames from outside go to the adapter at the line rate, with preamble, gap, padding and a
/// good FCS, as from a cable. As any link partner it obeys PAUSE and PFC of the adapter and keeps them to itself, and
/// as a lossless switch it holds the adapter with PAUSE when the world outside does not keep up.
class bridge_port : public sim::clocked_block, public payload::frame_port_if, public payload::frame_sink_if {
 public:
  struct config {
    std::uint32_t rate_mbps = 40'000;
    std::size_t queue_frames = 1024;  ///< from outside, waiting for the line; more are dropped
    // Holding the adapter: less than the links queue, which leaves room for what comes before the PAUSE is obeyed.
    std::size_t hold_above_bytes = 512 * 1024;
    std::size_t resume_below_bytes = 128 * 1024;
    sim::time_ps longest_hold_ps = 200'000 * sim::ps_per_us;  ///< of a peer that takes nothing; then frames are lost
  };
  bridge_port(const std::string& name, sim::clock_domain& domain, const config& cfg, payload::frame_pool& frames,
              outside_if& outside, sim::statistics& stats);

  /// A frame from outside (14 bytes to a frame's capacity) that came at simulated time `at` or later. Lost and counted
  /// when there is no room. Not to be called inside a tick.
  void inject(const std::uint8_t* frame, std::size_t length, sim::time_ps at);
  bool has_room() const { return count_ != queue_.size(); }
  /// Frames that wait for the line.
  std::size_t waiting_frames() const { return count_; }
  std::uint64_t dropped() const { return drop_queue_full_; }
  /// outside_if::queued() has become less. Not to be called inside a tick.
  void relieved();

  payload::frame_sink_if& receiver() override { return *this; }
  void attach(payload::frame_sink_if& line) override { line_ = &line; }
  void deliver(payload::frame_ptr frame, sim::time_ps arrival) override { from_line_.push(std::move(frame), arrival); }

 private:
  struct waiting {
    payload::frame_ptr frame;
    sim::time_ps at = 0;
  };
  void tick() override;
  void transmit();
  void obey(const wire::pause_frame& p);
  void hold_or_resume();
  void send(payload::frame_ptr frame);
  payload::frame_ptr pause_frame(std::uint16_t quanta);
  sim::time_ps head_may_start() const;
  sim::time_ps duration(std::uint32_t bytes) const;

  config config_;
  payload::frame_pool& frames_;
  outside_if& outside_;
  payload::frame_sink_if* line_ = nullptr;
  std::vector<waiting> queue_;  // ring
  std::size_t head_ = 0, count_ = 0;
  sim::time_ps line_free_ = 0;
  std::array<sim::time_ps, 8> paused_until_{};  // by priority
  sim::timed_inbox<payload::frame_ptr> from_line_;
  enum class hold : std::uint8_t { none, held, given_up };
  hold hold_ = hold::none;
  sim::time_ps held_since_ = 0, say_again_at_ = 0;
  std::optional<std::uint16_t> pause_to_say_;  // quanta
  std::uint64_t to_adapter_ = 0, from_adapter_ = 0, drop_queue_full_ = 0, pauses_ = 0, pauses_said_ = 0;
};

}  // namespace rnic::serve
