// SPDX-License-Identifier: Apache-2.0
// Headers of request packets.
#pragma once

#include <cstdint>

#include "model/gid/gid_table.h"
#include "model/icm/contexts.h"
#include "model/payload/frame.h"
#include "model/transport/requester/send_wqe.h"

namespace rnic::transport {

/// Where in its message a packet stands.
struct packet_place {
  wire::psn_t psn;
  std::uint32_t offset = 0;  ///< of its first byte in the message
  std::uint32_t length = 0;  ///< payload bytes; READ: bytes asked for
  bool first = false, last = false;
  bool ack_request = false;
};

/// What is the same for all packets.
struct packet_settings {
  std::uint16_t udp_port = 0;
  std::uint8_t ect_priorities = 0;  ///< bit n: RoCE v2 packets of priority n say that they are ECN capable
};

/// Writes all headers in front of the payload at frame::payload_start (whose bytes may come later), pad and room for
/// the ICRC behind it, and sets the frame's begin, length, priority, port, loopback, gid_index and packet.
/// Adapter data plane A.10; operation codes by C.3.
void build_request(payload::frame& f, const icm::requester_context& ctx, const send_wqe& wqe, const packet_place& place,
                   const gid::gid_table& gids, const packet_settings& settings);

}  // namespace rnic::transport
