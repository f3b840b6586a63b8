// SPDX-License-Identifier: Apache-2.0
// A link's end in the simulation: a connector whose cable goes out of it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "model/adapter/adapter.h"
#include "testbenches/serve/links/bridge_port.h"
#include "testbenches/serve/links/frame_link.h"
#include "testbenches/serve/links/real_time.h"

namespace rnic::serve {

struct link_port_config {
  std::string name = "bridge";  ///< of the connector, in statistics
  std::string clock = "bridge_clock";
  link_spec link;
  std::uint32_t rate_mbps = 40'000;
  std::function<void(const std::string& what)> event;  ///< called when the link's peer comes or goes; may be empty
  std::function<void()> peer_came;                     ///< there is one, where there was none; may be empty
};

/// What became of the frames at the connector.
struct bridge_counters {
  std::uint64_t drop_queue_full = 0;  ///< from outside, faster than the other end of the cable took them
  std::size_t waiting_frames = 0;     ///< from outside, not yet on the cable
  std::size_t waiting_bytes = 0;      ///< from the cable, not yet at the link's peer
};

class link_port final : private frame_receiver_if, private outside_if {
 public:
  /// Opens the link. Throws as make_link does.
  link_port(const link_port_config& config, const adapter::environment& env, boost::asio::io_context& io,
            real_time& clock);

  payload::frame_port_if& connector() { return bridge_; }
  const frame_link& link() const { return *link_; }
  bridge_counters bridge() const { return {bridge_.dropped(), bridge_.waiting_frames(), link_->queued()}; }
  /// Nothing more comes in; what has come over the cable still leaves.
  void stop_reading() { link_->stop_reading(); }

 private:
  static bridge_port::config bridge_config(std::uint32_t rate_mbps);
  void frame_arrived(const std::uint8_t* frame, std::size_t length) override;
  bool ready() const override { return bridge_.has_room(); }
  void relieved() override { bridge_.relieved(); }
  void link_event(const std::string& what) override;
  void peer_came() override;
  void leave(const std::uint8_t* frame, std::size_t length) override;
  std::size_t queued() const override { return link_ ? link_->queued() : 0; }
  void half_empty() override;

  boost::asio::io_context& io_;
  real_time& time_;
  std::function<void(const std::string& what)> event_;
  std::function<void()> peer_came_;
  sim::clock_domain clock_;
  bridge_port bridge_;
  std::unique_ptr<frame_link> link_;
};

}  // namespace rnic::serve
