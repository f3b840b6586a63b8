// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/links/link_port.h"

#include <boost/asio/post.hpp>

namespace rnic::serve {

namespace {

constexpr std::uint32_t bridge_khz = 1'000'000;  // resolution of the far end: 1 ns
// Without taking a frame. A peer that is a process of this machine may not be run for a while.
constexpr sim::time_ps dead_after_ps = 2 * sim::ps_per_s;
// On the way between two adapters as little as keeps it busy: what waits in queues grows old, and is sent again.
constexpr std::size_t read_ahead = 128;           // frames for the adapter
constexpr std::size_t most_waiting = 128 * 1024;  // bytes for the link's peer, before the adapter is held

}  // namespace

bridge_port::config link_port::bridge_config(std::uint32_t rate_mbps) {
  bridge_port::config c;
  c.rate_mbps = rate_mbps;
  c.longest_hold_ps = dead_after_ps;
  c.queue_frames = read_ahead;
  c.hold_above_bytes = most_waiting;
  c.resume_below_bytes = most_waiting / 4;
  return c;
}

link_port::link_port(const link_port_config& config, const adapter::environment& env, boost::asio::io_context& io,
                     real_time& clock)
    : io_(io),
      time_(clock),
      event_(config.event),
      peer_came_(config.peer_came),
      clock_(config.clock, env.base, sim::clock_period::from_khz(bridge_khz)),
      bridge_(config.name, clock_, bridge_config(config.rate_mbps), env.frames, *this, env.statistics),
      link_(make_link(io, config.link, *this)) {}

void link_port::frame_arrived(const std::uint8_t* frame, std::size_t length) {
  bridge_.inject(frame, length, time_.present());
}

void link_port::leave(const std::uint8_t* frame, std::size_t length) { link_->send(frame, length); }

void link_port::half_empty() {
  if (!link_->stalled()) return;
  boost::asio::post(io_, [this] { link_->resume(); });  // not inside the tick: it may have frames at once
}

void link_port::link_event(const std::string& what) {
  if (event_) event_(what);
}

void link_port::peer_came() {
  if (!peer_came_) return;
  boost::asio::post(io_, [this] {  // it may be the tick of a clock that has found out
    time_.catch_up();
    peer_came_();
  });
}

}  // namespace rnic::serve
