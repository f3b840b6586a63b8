// SPDX-License-Identifier: Apache-2.0
// UDP source port of RoCE v2.
#pragma once

#include <cstdint>

#include "model/icm/contexts.h"

namespace rnic::transport {

/// That of a queue pair's path, or 0xc000 while software has not set one (adapter data plane A.10.4: before RTR2RTS).
inline std::uint16_t udp_source_of(const icm::path& path) { return path.udp_source != 0 ? path.udp_source : 0xc000; }

}  // namespace rnic::transport
