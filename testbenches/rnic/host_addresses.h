// SPDX-License-Identifier: Apache-2.0
// Addresses that users give to hosts.
#pragma once

#include <algorithm>

#include "model/wire/ethernet.h"

namespace rnic::program {

/// Whether a network interface can have it: not the unspecified address, a group or reserved (IPv4 from 224 on), or one
/// that never leaves a host (RFC 6890, 2.2.2 and 2.2.3).
inline bool may_be_hosts(const wire::gid& address) {
  if (wire::is_multicast(address)) return false;
  if (const auto four = wire::ipv4_of(address)) return *four != 0 && *four >> 24 < 224 && *four >> 24 != 127;
  const bool all_zero = std::all_of(address.begin(), address.end() - 1, [](std::uint8_t b) { return b == 0; });
  return !all_zero || address[15] > 1;
}

}  // namespace rnic::program
