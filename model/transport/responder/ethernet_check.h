// SPDX-License-Identifier: Apache-2.0
// Plain frames for the receive queues of Ethernet queue pairs.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/gid/gid_table.h"
#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/memory_ports.h"
#include "model/sim/statistics.h"
#include "model/transport/responder/flow_table.h"
#include "model/transport/responder/packet_intake.h"
#include "model/transport/responder/receive_descriptors.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder: the check of a plain frame (adapter data plane A.8.2 - A.8.4), in the place of request_check.
/// Ports: one frame an initiation interval; its context, one receive descriptor, one slot; a read port of the ports'
/// VLAN tables, of its own (memory `vlan_table`: read with the verdict, of queue pairs that take one VLAN only).
/// Stalls: the context of a spreading queue pair, or the descriptor, is not there. Counters: ethernet; drop.ethernet_*.
class ethernet_check {
 public:
  using gid_tables = std::array<const gid::gid_table*, 2>;
  ethernet_check(sim::clocked_block& owner, const responder_registers& registers, const gid_tables& gids,
                 flow_table::contexts& contexts, flow_table& flows, packet_intake& intake,
                 receive_descriptors& receives, drop_counters& drops);
  void announce(sim::statistics& to, const std::string& name) const;

  /// A frame for a spreading queue pair goes to one of its targets. False: not now; the owner is ticked.
  bool spread(payload::frame& frame);
  /// There must be a free slot.
  verdict check(responder_flow& f, payload::frame_ptr& frame);
  /// The frame that was checked last was taken.
  bool passed() const { return passed_; }

 private:
  static verdict drop(std::uint64_t& counter) {
    ++counter;
    return verdict::done;
  }

  const responder_registers& registers_;
  const gid_tables gids_;
  flow_table::contexts& contexts_;
  flow_table& flows_;
  packet_intake& intake_;
  receive_descriptors& receives_;
  drop_counters& drops_;
  sim::memory_ports vlan_table_;
  bool passed_ = false;
  std::uint64_t received_ = 0;
};

}  // namespace rnic::transport
