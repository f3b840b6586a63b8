// SPDX-License-Identifier: Apache-2.0
// Headers of request packets.
#pragma once

#include <cstdint>

#include "model/gid/gid_source_if.h"
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

/// What the packet's headers need of the tables of its port.
gid::source_request source_of(const icm::requester_context& ctx, const send_wqe& wqe);

/// What context and WQE say of the packet: the frame's packet, priority, port, loopback, gid_index, and its length as
/// rate limits count it. That of a datagram is RoCE v2's: its version is known with its source. Adapter data plane
/// A.10; operation codes by C.3. Datagrams of a queue pair whose path forces loopback (special ones of functions) stay
/// in the port and are for its own address, whatever theirs.
void begin_request(payload::frame& f, const icm::requester_context& ctx, const send_wqe& wqe, const packet_place& place,
                   std::uint16_t udp_port);

/// Writes all headers in front of the payload at frame::payload_start, pad and room for the ICRC behind it, when the
/// source that was asked for is there; begin and length of the frame. A datagram that stays in the port and has no
/// destination is for its source. `ect_priorities`, bit n: RoCE v2 packets of priority n say that they are ECN capable.
void finish_request(payload::frame& f, const gid::source_request& asked, const gid::source& found,
                    std::uint8_t ect_priorities);

}  // namespace rnic::transport
