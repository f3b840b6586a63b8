// SPDX-License-Identifier: Apache-2.0
// Receives of one queue of the held host.
#pragma once

#include <cstdint>
#include <vector>

#include "host_driver/device.h"
#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Posts receives in the order of the messages that take them, as the capture shows that they were there: those that
/// came late, when the frame that said so has been sent, and those that did not suffice as they were.
class receiver {
 public:
  struct config {
    host_driver::queue_pair* qp = nullptr;             ///< or
    host_driver::shared_receive_queue* srq = nullptr;  ///< of XRC
    ibv_sge memory{};                                  ///< for each receive
    std::uint64_t wr_id = 0;                           ///< for each receive
    std::uint64_t receives = 0;                        ///< that are taken in all
    std::vector<receive_rule> rules;                   ///< by number
  };
  receiver() = default;
  receiver(host_driver::device& device, config c);

  /// The held host has sent this frame: receives that came after it are there.
  void sent(std::size_t frame);
  /// As many as there may be and the queue has room for.
  void post();

 private:
  bool post_one();
  void find_limit(std::size_t from);

  host_driver::device* device_ = nullptr;
  config config_;
  std::uint64_t posted_ = 0, allowed_ = 0;
  std::size_t rule_ = 0, late_ = 0;  // the next rule, and the one that is waited for
};

}  // namespace rnic::replay
