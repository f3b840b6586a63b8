// SPDX-License-Identifier: Apache-2.0
// The commands by name. README.md has them for those who send them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "testbenches/serve/script/fields.h"
#include "testbenches/serve/script/objects.h"

namespace rnic::serve::script {

/// Reads its fields, calls fields::end(), and only then does something. Gives the members of the answer. Throws
/// command_error, and peer_failure when the network does not answer. In an SC_THREAD.
using command = nlohmann::json (*)(session&, fields&);
using command_table = std::map<std::string, command>;

void add_memory_commands(command_table& table);
void add_queue_commands(command_table& table);
void add_queue_pair_commands(command_table& table);
void add_posting_commands(command_table& table);
void add_host_commands(command_table& table);
void add_manager_commands(command_table& table);

// What several of them have.
inline constexpr std::uint64_t longest_wait_ms = 60'000;  ///< of simulated time
/// Field `timeout_ms` in picoseconds.
std::uint64_t timeout_ps(fields& f);
/// Calls `look` with how long it may wait until it says that it has found something, the time is over or the client is
/// gone; waits in pieces, so that the last of these is seen.
template <class Look>
void look_for(session& s, std::uint64_t timeout_ps, Look look);
/// A GID written as IPv6 or IPv4 address.
host_driver::gid_bytes gid_of(fields& f, const char* name);
/// Path to a neighbour (`dgid`, `sgid_index`, `hop_limit`, ...), and its link-layer address: asked of the network
/// unless the field `dmac` has it.
struct neighbour_path {
  ibv_ah_attr attr{};
  host_driver::mac_address mac{};
};
/// Reads without asking the network; `mac` is what `dmac` says, or zero.
neighbour_path read_path(session& s, fields f);
/// Asks the network. Throws command_error when nobody has the address.
void find_neighbour(session& s, neighbour_path& path);

template <class Look>
void look_for(session& s, std::uint64_t timeout_ps, Look look) {
  constexpr std::uint64_t piece_ps = 20'000 * sim::ps_per_us;
  const std::uint64_t end = s.service.now_ps() + timeout_ps;
  for (;;) {
    const std::uint64_t now = s.service.now_ps();
    if (look(now < end ? std::min(piece_ps, end - now) : 0)) return;
    if (s.service.now_ps() >= end || s.gone()) return;
  }
}

}  // namespace rnic::serve::script
