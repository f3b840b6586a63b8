// SPDX-License-Identifier: Apache-2.0
// Memory and register on chip between the responder and its neighbours.
#pragma once

#include <cstdint>

#include "model/transport/responder/receive_memory.h"
#include "model/transport/responder/types.h"
#include "model/wire/packet.h"

namespace rnic::transport {

/// What the responder has the one side of and neighbours the other: it lies between the blocks, as channels do.
struct responder_memories {
  explicit responder_memories(const responder_config& c) : received(c) {}

  receive_memory received;  ///< receive fetch has the port to write, the responder those to read
  /// UDP destination port of RoCE v2. A register of the responder's (transport_cr.h), written between two edges;
  /// parsers, answer transmit and the receiver of CNMs read it.
  std::uint16_t roce_v2_port = wire::roce_v2_udp_port;
};

}  // namespace rnic::transport
