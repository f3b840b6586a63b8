// SPDX-License-Identifier: Apache-2.0
// What halves of the transport tell of congestion.
#pragma once

#include <cstdint>

#include "model/payload/frame.h"

namespace rnic::transport {

/// To the sender of CNPs: the CNP that answers a marked packet for this queue pair, to be sent when its interval is
/// over.
struct congestion_notice {
  std::uint32_t qpn = 0;
  payload::frame_ptr cnp;
};

/// To the READ generator: a CNP has arrived for this queue pair, which its READ responses obey as well.
/// Approximation: the requests and the READ responses of a queue pair have a reaction point and a pace each; a real
/// adapter has one for both.
struct rate_notice {
  std::uint32_t qpn = 0;
  std::uint8_t port = 0;
};

}  // namespace rnic::transport
