// SPDX-License-Identifier: Apache-2.0
// Work queue entries of special queue pairs: management datagrams whose headers software has written itself.
#pragma once

#include <cstdint>

#include "model/gid/gid_source_if.h"
#include "model/icm/contexts.h"
#include "model/payload/frame.h"
#include "model/transport/requester/send_wqe.h"

namespace rnic::transport {

/// Queue pairs of service MLX that send management datagrams, not plain Ethernet frames: the block of eight numbers
/// that CONF_SPECIAL_QP named (adapter control plane 4.17), and the queue pair with an ordinary number that software
/// has beside QP1 for RoCE v2 (adapter data plane A.9.3), which its mode tells from a raw one.
bool is_special(const icm::requester_context& ctx, std::uint32_t special_base);
/// Of these, QP0 of a port: subnet management has no place on Ethernet.
bool is_subnet_management(const icm::requester_context& ctx, std::uint32_t special_base);

/// Longest frame of a special queue pair: all headers in front of a datagram of the largest MTU, and its ICRC.
inline constexpr std::uint32_t longest_special_frame = 14 + 4 + 40 + 8 + 12 + 8 + 4 + 4096 + 4;

/// Takes such a WQE apart (adapter data plane A.4.5): the message is the whole frame from DMAC to ICRC. `length` 0 and
/// `error` as with parse_send_wqe(). The priority of the frame is in `address.priority`, and `address.loopback` is the
/// force-loopback bit.
void parse_mlx_wqe(const std::uint8_t* wqe, send_wqe& out);

/// Reads the headers of a frame of which the WQE's inline bytes are at frame::payload_start already: sets the frame's
/// place, loopback, and what the icrc block needs to write the ICRC. False: the inline bytes are not the headers of a
/// RoCE packet of this length and of the queue pair's version, and the frame cannot be sent.
bool open_special_frame(payload::frame& f, const icm::requester_context& ctx, const send_wqe& wqe,
                        std::uint16_t udp_port);

/// What such a frame needs of the tables of its port: whether it comes back.
gid::source_request source_of_special(const payload::frame& f);

}  // namespace rnic::transport
