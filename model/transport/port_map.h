// SPDX-License-Identifier: Apache-2.0
// Through which port queue pairs send, and by which they may be reached: link aggregation.
#pragma once

#include <array>
#include <cstdint>

#include "model/icm/contexts.h"
#include "model/transport/transport_cr.h"

namespace rnic::transport {

/// Register port_map of a half of the transport (adapter control plane 9). The port of a path is a virtual one; the map
/// says which port of the adapter it stands for. A path with path_flag_physical_port goes by its own port, as the rings
/// of a network interface do below a bond, whose driver chooses among them.
///
/// A change counts for every packet that is started in the cycles behind the write; packets that wait for a place in
/// the queue of their port are looked at again, those that stand in it stay there.
class port_map {
 public:
  /// 0-based.
  unsigned port_of(const icm::path& path) const {
    return (path.flags & icm::path_flag_physical_port) != 0 ? path.port & 1u : port_of(path.port);
  }
  unsigned port_of(unsigned virtual_port) const { return value_ >> (virtual_port & 1u) & 1u; }
  /// Each virtual port is the port of its number.
  bool is_identity() const { return (value_ & cr::port_map_ports) == cr::port_map_identity; }
  /// Packets of a queue pair must come in by the port of its path (CONFIG_DEV: rx port check).
  bool checks_arrival() const { return (value_ & cr::port_map_any_arrival) == 0; }
  bool may_arrive(unsigned port, const icm::path& path) const { return port == path.port || !checks_arrival(); }

  /// The tables of the ports differ: a packet's addresses are those of the port of its path, whichever it leaves or
  /// comes by. Else they are those of the port that it leaves by, which has the same GIDs.
  bool own_tables() const { return (value_ & cr::port_map_own_tables) != 0; }
  unsigned tables_of(unsigned virtual_port) const { return own_tables() ? virtual_port & 1u : port_of(virtual_port); }
  unsigned tables_of(const icm::path& path) const { return own_tables() ? path.port & 1u : port_of(path); }

  std::uint32_t value() const { return value_; }
  /// True: the ports have changed.
  bool write(std::uint32_t value) {
    const std::uint32_t before = value_ & cr::port_map_ports;
    value_ = value & (cr::port_map_ports | cr::port_map_any_arrival | cr::port_map_own_tables);
    return before != (value_ & cr::port_map_ports);
  }

 private:
  std::uint32_t value_ = cr::port_map_identity;
};

}  // namespace rnic::transport
