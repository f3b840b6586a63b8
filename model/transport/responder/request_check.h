// SPDX-License-Identifier: Apache-2.0
// The state flow of a request from its headers to a slot.
#pragma once

#include <cstdint>
#include <string>

#include "model/payload/frame.h"
#include "model/sim/statistics.h"
#include "model/transport/path_check.h"
#include "model/transport/port_count.h"
#include "model/transport/responder/flow_table.h"
#include "model/transport/responder/packet_intake.h"
#include "model/transport/responder/place_lookup.h"
#include "model/transport/responder/receive_descriptors.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder: the checks of a packet against its queue pair (adapter data plane A.9, C.7.1, C.7.2): state,
/// service, addresses, keys; then PSN, opcode behind opcode, rights, lengths; what it executes goes into a slot.
///
/// Ports: one packet an initiation interval (its cost is admission's). It reads and writes the packet's context and its
/// flow; has a read port of the ports' GID tables (path_check); asks for one receive descriptor, writes one slot.
/// Stalls: the port of the GID tables is another packet's, or the receive descriptor, the shared queue that an XRC
/// message names, or room for a completion is not there: verdict::wait, nothing of the packet is accepted, and it is
/// checked again when the owner is ticked. (Of UC, a message whose lost end it has shown has ended by then.)
/// Counters: writes, sends, reads, atomics, executed; duplicates; rnr; out_of_sequence; drop.* of what is refused.
class request_check {
 public:
  request_check(sim::clocked_block& owner, const responder_registers& registers, const path_check::gid_tables& gids,
                packet_intake& intake, place_lookup& places, receive_descriptors& receives, drop_counters& drops);
  void announce(sim::statistics& to, const std::string& name) const;

  /// There must be a free slot.
  verdict check(responder_flow& f, payload::frame_ptr& frame);
  /// The packet that was checked last was one for its queue pair.
  bool passed() const { return passed_; }
  const port_count& rnr() const { return count_.rnr; }
  const port_count& out_of_sequence() const { return count_.out_of_sequence; }
  const port_count& duplicates() const { return count_.duplicates; }

 private:
  using supply = receive_descriptors::result;
  bool gate(const responder_flow& f, payload::frame& frame);
  verdict rc(responder_flow& f, payload::frame_ptr& frame);
  verdict uc(responder_flow& f, payload::frame_ptr& frame);
  verdict ud(responder_flow& f, payload::frame_ptr& frame);
  verdict duplicate(responder_flow& f, payload::frame_ptr& frame);
  verdict repeat(responder_flow& f, payload::frame_ptr& frame);
  verdict execute(responder_flow& f, payload::frame_ptr& frame);
  verdict execute_operation(responder_flow& f, payload::frame_ptr& frame);
  verdict execute_write(responder_flow& f, payload::frame_ptr& frame);
  verdict execute_read(responder_flow& f, payload::frame_ptr& frame);
  verdict execute_atomic(responder_flow& f, payload::frame_ptr& frame);
  verdict execute_send(responder_flow& f, payload::frame_ptr& frame);
  verdict no_receive(responder_flow& f, payload::frame_ptr& frame);
  verdict refuse(responder_flow& f, payload::frame_ptr& frame) { return intake_.refuse(f, frame, invalid_request); }
  static verdict drop(std::uint64_t& counter) {
    ++counter;
    return verdict::done;
  }

  const responder_registers& registers_;
  path_check path_;
  packet_intake& intake_;
  place_lookup& places_;
  receive_descriptors& receives_;
  drop_counters& drops_;
  bool passed_ = false;
  struct {
    std::uint64_t writes = 0, sends = 0, reads = 0, atomics = 0;
    port_count duplicates, rnr, out_of_sequence;
  } count_;
};

}  // namespace rnic::transport
