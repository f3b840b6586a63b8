// SPDX-License-Identifier: Apache-2.0
// How frames enter and leave whatever has an Ethernet connector: adapter port, cable, switch, bridge, replay.
#pragma once

#include "model/payload/frame.h"
#include "model/sim/types.h"

namespace rnic::payload {

/// Takes frames off the line.
class frame_sink_if {
 public:
  virtual ~frame_sink_if() = default;
  /// The last bit of the FCS is at this connector at time `arrival` (in the future, not decreasing from call to call).
  /// On a transmit side `frame->stamp` is the time of the first bit of the preamble. The caller gives the frame away:
  /// it keeps no handle through which it would still change it.
  virtual void deliver(frame_ptr frame, sim::time_ps arrival) = 0;
};

/// A connector: a cable is plugged into it once, at construction of the system.
class frame_port_if {
 public:
  virtual ~frame_port_if() = default;
  virtual frame_sink_if& receiver() = 0;
  virtual void attach(frame_sink_if& line) = 0;
  /// From time `at` (in the future, not decreasing) on the connector sees a live cable, or none: it was pulled, or cut.
  /// A cable is live when it is attached. What has no notion of a link does not look.
  virtual void carrier(bool up, sim::time_ps at) {
    static_cast<void>(up);
    static_cast<void>(at);
  }
};

/// Looks at frames on a cable. `from` is 0 for the first connector's frames, 1 for the second's. Times are those at the
/// sending connector: first bit of the preamble and last bit of the FCS. Calls come in the order in which frames begin
/// on each side, but the two sides are not ordered with respect to each other.
class frame_observer_if {
 public:
  virtual ~frame_observer_if() = default;
  virtual void observe(unsigned from, const frame& f, sim::time_ps first_bit, sim::time_ps last_bit) = 0;
};

}  // namespace rnic::payload
