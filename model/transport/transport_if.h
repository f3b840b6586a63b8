// SPDX-License-Identifier: Apache-2.0
// Between requester, responder and the port.
#pragma once

#include <cstdint>

namespace rnic::transport {

/// Room in a port's egress queue, given back frame by frame. Requester and responder have queues' shares of their own,
/// so neither can starve the other (mac config: egress_frames per priority and source).
enum class egress_source : std::uint8_t { requester = 0, responder = 1 };
struct egress_credit {
  std::uint8_t port = 0;
  std::uint8_t priority = 0;
};

/// One half of a QP tells the other: the QP has moved to the error state.
struct qp_error {
  std::uint32_t qpn = 0;
};

}  // namespace rnic::transport
