// SPDX-License-Identifier: Apache-2.0
// Link types of captures, and how a packet of each becomes an Ethernet frame.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tlm/capture_source.h"

namespace rnic::tlm {

struct captured_frame;

/// Ethernet, Linux cooked (SLL, SLL2) and raw IP.
bool is_read(int link_type);
/// E.g. "LINUX_SLL", or the number.
std::string link_type_name(int link_type);

/// Fills data and lengths, link and direction of `out` from a packet of a link type that is_read. What has no Ethernet
/// header gets one in `room`, which has to live as long as the frame, with zeros for the addresses that are not known;
/// a packet that is cut within its link header becomes an empty one.
void to_ethernet(const stored_packet& p, std::vector<std::uint8_t>& room, captured_frame& out);

}  // namespace rnic::tlm
