// SPDX-License-Identifier: Apache-2.0
// Plain frames of a served host's software, through a raw packet queue pair.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <systemc>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "host_driver/neighbours.h"

namespace rnic::serve {

/// What a network driver has for one port: a queue pair with rings of sends and receives, and rules by which frames for
/// the host come to it. Two processes serve it, one for each direction.
class ethernet_ring : public host_driver::frame_output_if {
 public:
  /// Called in a process, for each frame of somebody else (from the DMAC, without FCS).
  using receiver = std::function<void(const std::uint8_t* frame, std::size_t length)>;

  /// Makes queue pair and rings, and begins. In an SC_THREAD. Throws std::runtime_error.
  ethernet_ring(const hosts::endpoint& at, receiver take);

  /// Frames to this address come to the host from now on.
  void listen(const host_driver::mac_address& mac);
  /// The group at which neighbours look for an address (RFC 4291 2.7.1); nothing for IPv4.
  void listen_for(const host_driver::gid_bytes& address);

  /// Sends a frame when its turn comes. Dropped and counted when too many wait, as by a full socket.
  void transmit(const std::uint8_t* frame, std::size_t length) override;
  /// All that was to be sent is on the cable.
  bool has_sent() const { return waiting_.empty() && !sending_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  static constexpr unsigned receives = 64, frame_bytes = 10'240;
  static constexpr std::size_t most_waiting = 256;
  void post_receive(unsigned slot);
  void receive();
  void send();

  hosts::endpoint at_;
  receiver take_;
  host_driver::mac_address own_;
  host_driver::completion_queue *send_cq_ = nullptr, *receive_cq_ = nullptr;
  host_driver::queue_pair* qp_ = nullptr;
  hosts::buffer sends_, receives_;
  std::vector<host_driver::mac_address> heard_;
  std::deque<std::vector<std::uint8_t>> waiting_;
  sc_core::sc_event something_to_send_;
  bool sending_ = false;
  std::uint64_t dropped_ = 0;
};

}  // namespace rnic::serve
