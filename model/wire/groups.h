// SPDX-License-Identifier: Apache-2.0
// Which packets are for a multicast group.
#pragma once

#include <cstdint>

#include "model/wire/packet.h"

namespace rnic::wire {

/// Queue pair number of all groups (adapter data plane B.6).
inline constexpr std::uint32_t group_qpn = 0xffffff;

/// A datagram that each queue pair of a group gets, the group of its destination GID. Other services know no groups.
inline bool is_for_group(const packet& p) {
  return p.bth.dest_qp == group_qpn && transport_of(p.bth.opcode) == transport::ud;
}

}  // namespace rnic::wire
