// SPDX-License-Identifier: Apache-2.0
// What a management datagram of a function, or for one, has to be.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "host_driver/gid_rules.h"

namespace rnic::host_driver::mad_rules {

/// Why a datagram goes no further.
enum class fault : std::uint8_t {
  none,
  length,         ///< not one datagram with what belongs in front of it
  source,         ///< from another queue pair than the proxy of this tunnel
  inactive,       ///< the function's driver has no QP1
  version,        ///< base or class version
  management,     ///< class: on Ethernet there is the communication manager's alone
  method,         ///< none of the class
  attribute,      ///< none of the class
  header,         ///< of the tunnel: another port, or another queue pair or Q_Key than those of QP1
  gid,            ///< the function has no such GID, or the message names a path from another one
  vlan,           ///< not the function's
  connection_id,  ///< of no connection of the function's, or it has too many
  destination,    ///< of no function
  room,           ///< too many are under way
  count
};
inline constexpr std::size_t faults = static_cast<std::size_t>(fault::count);
const char* to_string(fault f);

/// Whether 256 bytes are a message of the communication manager (IBA volume 1, 13.4.3 and 16.7.2).
fault fault_of(const std::uint8_t* message);
/// GIDs that a message names as its sender's paths: REQ primary and alternate, LAP alternate. Those that are not there
/// are zero.
std::array<gid_bytes, 2> own_paths(const std::uint8_t* message);

/// Ends of a received datagram, from the 40 bytes in front of it (adapter data plane A.9.2).
struct network_ends {
  gid_bytes source{}, destination{};
  bool roce_v2 = true;
};
network_ends ends_of(const std::uint8_t* area);

}  // namespace rnic::host_driver::mad_rules
