// SPDX-License-Identifier: Apache-2.0
// What the requester tells the responder of congestion.
#pragma once

#include <cstdint>

#include "tlm/frame.h"

namespace rnic::transport {

/// With a frame: the CNP that answers a marked packet for this queue pair, to be sent when its interval is over.
/// Without: a CNP has arrived for it, which its READ responses obey as well.
struct congestion_notice {
  std::uint32_t qpn = 0;
  tlm::frame_ptr cnp;
};

}  // namespace rnic::transport
