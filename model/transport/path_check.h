// SPDX-License-Identifier: Apache-2.0
// Whether a packet came the way of its connection.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "model/gid/gid_table.h"
#include "model/icm/contexts.h"
#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/memory_ports.h"
#include "model/sim/seldom.h"
#include "model/transport/port_map.h"
#include "model/wire/ethernet.h"

namespace rnic::transport {

/// Data sheet. Part of each half of the transport: a packet's port, addresses and version of RoCE are those of its
/// connection's path (IBA volume 1, 9.6.1; adapter data plane A.9.1, steps 8 and 9). Either port will do where firmware
/// has said so (port_map): the tables of the ports are then the same, or each path has those of its own port.
///
/// The parser has looked up the packet's destination (gid::gid_match), and the entry that it found goes with the frame:
/// where that is the path's own, nothing is read. A table may hold a GID and version twice, as that of a host and that
/// of a VLAN of it, and the look-up finds the lower entry; and what goes to a group was not looked up. Then the path's
/// entry is read and compared.
///
/// Ports: one packet a cycle. Memories: a read port of the ports' GID tables, of its own, for one entry a cycle. What
/// was read and found right goes on with the frame, so a packet that waits and is looked at again reads nothing; a
/// second one in a cycle that has to read waits for the next (may_check). Stages: none of its own, it is the context's
/// stage of the pipeline that it is a part of.
class path_check {
 public:
  using gid_tables = std::array<const gid::gid_table*, 2>;
  path_check(sim::clocked_block& owner, const gid_tables& gids, const port_map& ports)
      : gids_(gids), ports_(ports), port_(owner, "path_gid", 1, {{"check", sim::access_kind::read}}) {}

  /// False: its path's entry has to be read, and the port is taken. The owner is ticked at the next edge.
  bool may_check(const icm::path& path, const payload::frame& f) { return is_found(path, f) || port_.claim(0); }
  /// To be asked when may_check() has said so in this tick, or by who looks at one packet a cycle.
  bool of_peer(const icm::path& path, payload::frame& f) {
    const wire::packet& p = f.packet;
    const bool v2 = (path.flags & icm::path_flag_roce_v2) != 0;
    if (!ports_.may_arrive(f.port, path) || v2 != (p.encap != wire::encapsulation::roce_v1) ||
        std::memcmp(p.sgid.data(), path.remote_gid, p.sgid.size()) != 0)
      return false;
    if (is_found(path, f)) return true;
    const gid::entry* const own = entry_of(path, p.dgid, v2);
    if (own == nullptr) return false;
    f.gid_index = path.gid_index;
    if (gids_[path.port % gids_.size()]->num_vfs() != 0) f.function = own->function;
    return true;
  }
  /// The packet is for an address of the function: the entry's owner, which goes with the frame, decides (adapter
  /// control plane 8.6). What goes to a group is for whom the host's driver has put into it.
  static bool of_function(std::uint16_t function, const payload::frame& f) {
    return f.function == function || f.function == payload::frame::any_function;
  }
  /// A frame of the VLAN that the path has, where it asks for that: an entry of the port's VLAN table is read.
  bool in_vlan(const icm::path& path, const payload::frame& f) const {
    if (sim::mostly((path.flags & icm::path_flag_own_vlan) == 0)) return true;
    const unsigned vid = f.packet.vlan_present ? f.packet.vlan_tci & 0xfffu : 0;
    return vid == gids_[path.port % gids_.size()]->vlan(path.vlan_index).value_or(0);
  }
  /// Entries that were read.
  std::uint64_t reads() const { return port_.accesses(0); }

 private:
  bool is_found(const icm::path& path, const payload::frame& f) const {
    return f.gid_index == path.gid_index && (f.port == path.port || !ports_.own_tables()) &&
           !wire::is_multicast(f.packet.dgid);
  }
  /// The path's, if the packet is for it.
  const gid::entry* entry_of(const icm::path& path, const wire::gid& dgid, bool v2) {
    port_.access(0);
    const gid::entry& own = (*gids_[path.port % gids_.size()])[path.gid_index];
    const bool fits = own.valid && v2 == (own.type == gid::roce_type::v2) && dgid == own.id;
    return fits ? &own : nullptr;
  }

  const gid_tables gids_;
  const port_map& ports_;
  sim::memory_ports port_;
};

}  // namespace rnic::transport
