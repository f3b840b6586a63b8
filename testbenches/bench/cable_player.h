// SPDX-License-Identifier: Apache-2.0
// An other end of the cable that follows a script: puts given frames on the line and takes what the adapter sends.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "model/payload/frame_port.h"
#include "model/sim/clocked_block.h"
#include "model/sim/span.h"
#include "model/sim/timed_inbox.h"
#include "model/wire/pause.h"

namespace rnic::bench {

/// Told about frames at both ends of the player. Called inside the player's tick.
class player_listener_if {
 public:
  virtual ~player_listener_if() = default;
  /// Frame `number` of the capture begins on the line now.
  virtual void injected(std::size_t number, sim::span_id span, sim::time_ps first_bit) = 0;
  /// The last bit of a frame of the adapter has arrived.
  virtual void received(const payload::frame& f, sim::time_ps arrival) = 0;
};

/// An Ethernet connector without anything behind it. Frames go out one after the other at the line rate, with preamble
/// and the smallest gap between them. As any link partner it obeys PAUSE and PFC of the adapter.
class cable_player : public sim::clocked_block, public payload::frame_port_if, public payload::frame_sink_if {
 public:
  cable_player(std::string name, sim::clock_domain& domain, payload::frame_pool& frames, sim::span_recorder& spans,
               std::uint32_t rate_mbps);

  void set_listener(player_listener_if* listener) { listener_ = listener; }
  /// Sends a frame (from DMAC, without FCS, at most payload::frame::capacity bytes) as soon as the line is free.
  /// `followed`: a span begins with its first bit.
  void send(std::size_t number, const std::vector<std::uint8_t>& bytes, bool followed);

  /// PAUSE and PFC frames of the adapter; the listener does not get them.
  std::uint64_t pauses() const { return pauses_; }

  payload::frame_sink_if& receiver() override { return *this; }
  void attach(payload::frame_sink_if& line) override { line_ = &line; }
  void deliver(payload::frame_ptr frame, sim::time_ps arrival) override;

 private:
  struct waiting {
    std::size_t number;
    payload::frame_ptr frame;
    bool followed;
  };
  void tick() override;
  void obey(const wire::pause_frame& p);
  void transmit();
  sim::time_ps duration(std::uint32_t bytes) const;

  payload::frame_pool& frames_;
  sim::span_recorder& spans_;
  std::uint32_t rate_mbps_;
  player_listener_if* listener_ = nullptr;
  payload::frame_sink_if* line_ = nullptr;
  std::deque<waiting> to_send_;
  sim::time_ps line_free_ = 0;
  std::array<sim::time_ps, 8> paused_until_{};  // by priority
  std::uint64_t pauses_ = 0;
  sim::timed_inbox<payload::frame_ptr> from_line_;
};

}  // namespace rnic::bench
