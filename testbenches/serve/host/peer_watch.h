// SPDX-License-Identifier: Apache-2.0
// Whether the peer of a test is still at work, where nothing of it comes to the software of this host.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "host_driver/device.h"
#include "model/sim/types.h"

namespace rnic::serve {

/// A process that was killed closes what it talked over, one that was stopped does nothing at all. In an SC_THREAD.
class peer_watch {
 public:
  /// Between two looks of who waits.
  static constexpr sim::time_ps look_every_ps = sim::ps_per_us * 10'000;
  /// The peer may be through while its last acknowledgements are still on their way: nothing has to come for so long.
  static constexpr sim::time_ps after_closing_ps = sim::ps_per_us * 300'000;

  /// `has_closed`: whether the peer has ended the conversation; once it said yes it is not asked again. `patience_ps`:
  /// without anything of the peer's.
  peer_watch(host_driver::device& device, std::function<bool()> has_closed, sim::time_ps patience_ps);

  /// What comes to this queue pair is the peer's work, also where the adapter alone takes it.
  void add(host_driver::queue_pair* qp);
  /// Something of the peer's has come.
  void progress();
  /// To be called at least every look_every_ps while nothing comes. peer_failure when the peer has left or has done
  /// nothing for too long; std::runtime_error when the device does not tell of a queue pair.
  void look();

 private:
  struct queue {
    host_driver::queue_pair* qp;
    std::uint32_t psn;  // that its responder expects
  };
  bool packets_came();

  host_driver::device& device_;
  std::function<bool()> has_closed_;
  sim::time_ps patience_ps_, progress_ps_, looked_ps_, closed_ps_ = 0;
  bool closed_ = false;
  std::vector<queue> queues_;
};

}  // namespace rnic::serve
