// SPDX-License-Identifier: Apache-2.0
// What the requester tells the responder of congestion.
#pragma once

#include <cstdint>

#include "model/payload/frame.h"

namespace rnic::transport {

/// With a frame: the CNP that answers a marked packet for this queue pair, to be sent when its interval is over.
/// Without: a CNP has arrived for it, which its READ responses obey as well. Approximation: the requests and the READ
/// responses of a queue pair have a reaction point and a pace each; a real adapter has one for both.
struct congestion_notice {
  std::uint32_t qpn = 0;
  payload::frame_ptr cnp;
};

}  // namespace rnic::transport
