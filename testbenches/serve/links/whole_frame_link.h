// SPDX-License-Identifier: Apache-2.0
// What links have in common that give the kernel each frame whole: datagram sockets and TAP devices.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "testbenches/serve/links/frame_link.h"

namespace rnic::serve {

/// Keeps what the kernel does not take at once, and tries again when it may, or from time to time where nobody says
/// when that is.
class whole_frame_link : public frame_link {
 public:
  whole_frame_link(boost::asio::io_context& io, frame_receiver_if& receiver) : frame_link(receiver), again_(io) {}
  void send(const std::uint8_t* frame, std::size_t length) final;
  std::size_t queued() const final { return queued_; }

 protected:
  enum class outcome : std::uint8_t { sent, no_room, no_peer };
  virtual outcome attempt(const std::uint8_t* frame, std::size_t length) = 0;
  /// Arranges that try_again() is called when there may be room. False when there is no way to know.
  virtual bool watch() = 0;
  void try_again();
  /// What poll() says of a descriptor.
  static bool writable(int descriptor);

 private:
  // Between two tries where nobody says when: twice as long after each that was in vain.
  static constexpr std::chrono::milliseconds shortest_pause{1}, longest_pause{100};
  bool leave(const std::uint8_t* frame, std::size_t length);
  bool work_off();
  void wait(bool may_watch);

  boost::asio::steady_timer again_;
  std::chrono::milliseconds pause_ = shortest_pause;
  std::deque<std::vector<std::uint8_t>> waiting_;
  std::size_t queued_ = 0;  // bytes of waiting_
};

}  // namespace rnic::serve
