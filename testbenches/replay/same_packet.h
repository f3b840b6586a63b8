// SPDX-License-Identifier: Apache-2.0
// Whether two frames show the same packet, wherever on its way it was seen.
#pragma once

#include <cstdint>

#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// GIDs, encapsulation, IPv4 identification, UDP source port, and everything from BTH to ICRC. Both are RoCE.
bool same_packet(const captured_frame& a, const captured_frame& b);
/// Equal for the same packets, and as good as never for others: it has the ICRC in it.
std::uint64_t packet_hash(const captured_frame& f);

}  // namespace rnic::replay
