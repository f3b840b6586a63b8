// SPDX-License-Identifier: Apache-2.0
// What halves of the transport tell of congestion.
#pragma once

#include <cstdint>

#include "model/payload/frame.h"
#include "model/wire/packet.h"

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

/// To the half of the transport that has sent a frame: a congestion point (802.1Qau) has sampled it. Names the flow by
/// where the frame went.
struct cnm_notice {
  std::uint8_t port = 0, priority = 0;  ///< by which the CNM came; of the sampled frame
  std::uint8_t feedback = 0;            ///< quantised, 1 to 63
  wire::mac_address dmac{};
  std::uint32_t dest_qp = 0;
};

}  // namespace rnic::transport
