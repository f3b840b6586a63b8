// SPDX-License-Identifier: Apache-2.0
// Frames of protocols between a host and the other end of its cable (LLDP, LACP), through queue pairs of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "host_driver/device.h"

namespace rnic::host_driver {

/// A raw packet queue pair on each port, which stays on its port below a bond, with a rule for the protocol's group
/// address. Frames are from the DMAC to before the FCS. One process uses it, but for end_wait().
class control_frames {
 public:
  /// `ports`: 1 or 2, or both.
  control_frames(device& dev, bus_if& bus, const mac_address& group, std::vector<unsigned> ports)
      : dev_(dev), bus_(bus), group_(group), ports_(std::move(ports)) {}

  /// Makes the queue pairs. The device is open. 0 or a negative errno.
  int open();
  /// Destroys what open() has made. No process waits or drains here.
  int close();
  /// To be sent by post_waiting(). With `sends` frames waiting, the oldest goes: what is new says more.
  void queue(unsigned port, const std::uint8_t* frame, std::size_t length);
  /// What the send queues have room for. Of a port without a link the adapter drops it.
  void post_waiting();
  using receiver = std::function<void(unsigned port, const std::uint8_t* frame, std::size_t length)>;
  /// What has come in; `processing_ps` go by for each frame.
  void take_received(std::uint64_t processing_ps, const receiver& take);
  /// Until a frame comes in, end_wait(), or so long.
  void wait(std::uint64_t timeout_ps);
  /// Until all that was posted has left, for so long at most.
  void drain(std::uint64_t timeout_ps);
  /// From any process; the wait may still be about to begin.
  void end_wait();

 private:
  static constexpr unsigned sends = 16, receives = 16, frame_bytes = 2048;
  struct waiting_frame {
    unsigned port;
    std::vector<std::uint8_t> bytes;
  };
  int make_queue_pair(unsigned port, std::uint8_t priority);
  int post_receive(unsigned slot);

  device& dev_;
  bus_if& bus_;
  const mac_address group_;
  const std::vector<unsigned> ports_;
  protection_domain* pd_ = nullptr;
  completion_queue *send_cq_ = nullptr, *receive_cq_ = nullptr;  // of all queue pairs
  std::vector<queue_pair*> qps_;                                 // by ports_
  std::vector<steering_flow*> flows_;
  bus_if::dma_memory memory_{};
  memory_region* region_ = nullptr;
  unsigned next_send_ = 0, under_way_ = 0;
  std::deque<waiting_frame> waiting_;
};

}  // namespace rnic::host_driver
