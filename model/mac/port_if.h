// SPDX-License-Identifier: Apache-2.0
// What the outside of an adapter calls of a port.
#pragma once

#include "model/payload/frame_port.h"

namespace rnic::mac {

/// The connector of a port. A line is plugged in once, before time starts, or never: then there is no link.
///
/// The first bit of a frame is on the line transmit_ps() (port_config.h) behind the edge at which the port decides to
/// send it, or later, and nobody behind the port can tell that a frame has come before receive_path::mac has passed
/// since its last bit: hosts of a network run that far ahead of one another (network::run_apart).
class port_if : public payload::frame_port_if {
 public:
  /// Whether a line is plugged in.
  virtual bool attached() const = 0;
};

}  // namespace rnic::mac
