// SPDX-License-Identifier: Apache-2.0
// Congestion marks by the length of a queue.
#pragma once

#include <cstdint>

#include "model/fabric/frame_headers.h"
#include "model/fabric/switch_config.h"
#include "model/payload/frame.h"

namespace rnic::fabric {

/// Sets the ECN field of an IP packet to CE (RFC 3168): IPv4's checksum changes with it (RFC 1624), a right FCS stays
/// right and a wrong one wrong; an ICRC does not cover it (IBA annex A17).
void set_congestion_experienced(payload::frame& f, const ip_place& ip);

/// Data sheet. Part of a switch: one for each output's priority, so that what happens at one does not depend on the
/// order in which outputs are served.
///
/// Up to Kmin none, above Kmax each, in between with a probability that rises to Pmax; the length is that of the queue
/// with the packet in it. Packets that say they cannot be marked pass.
class congestion_marker {
 public:
  congestion_marker(const marking_config& config, std::uint64_t seed) : config_(config), state_(seed) {}

  /// A frame has come into a queue that has `bytes` with it. True: it is marked now.
  bool look_at(payload::frame& f, std::uint32_t bytes);

 private:
  bool chooses(std::uint32_t bytes);

  const marking_config& config_;
  std::uint64_t state_;
};

}  // namespace rnic::fabric
