// SPDX-License-Identifier: Apache-2.0
// An Ethernet frame on its way: its bytes live once, blocks pass the handle.
#pragma once

#include <array>
#include <cstdint>

#include "model/payload/pool.h"
#include "model/sim/span.h"
#include "model/sim/types.h"
#include "model/wire/packet.h"

namespace rnic::payload {

/// A frame from DMAC to the last byte before the FCS (the FCS itself is `fcs`, so that a fault can be put into it).
/// The sender gathers payload at `payload_start` and builds the headers backwards in front of it, so nothing is moved.
struct frame {
  static constexpr std::uint32_t capacity = 10240;
  static constexpr std::uint32_t payload_start = 128;

  std::uint32_t begin = 0;   ///< offset of the DMAC
  std::uint32_t length = 0;  ///< bytes from DMAC to before the FCS
  std::uint32_t fcs = 0;     ///< as on the wire when read little-endian; set by the sending port

  std::uint8_t priority = 0;  ///< egress queue / ingress priority, 0..7
  std::uint8_t port = 0;      ///< 0-based port of the adapter that holds it
  static constexpr std::uint8_t loopback_none = 0, loopback_only = 1, loopback_too = 2;
  std::uint8_t loopback = loopback_none;  ///< only: never leaves the adapter; too: a copy comes back
  std::uint8_t source = 0;                ///< transmit: who gets the egress credit back (transport::egress_source)
  bool control = false;                   ///< MAC control (pause): not subject to pause, not delivered
  bool insert_icrc = false;               ///< transmit: the icrc block writes the last 4 bytes
  bool fcs_ok = true;                     ///< receive
  bool icrc_ok = true;                    ///< receive, RoCE
  bool inside = false;                    ///< transmit, loopback: hardware made it of a function's special queue pair
  bool plain = false;  ///< receive: for an Ethernet QP, which is packet.bth.dest_qp; packet.immediate is the RSS hash
  std::uint16_t gid_index = 0;  ///< index in the port's GID table: transmit source, receive match
  static constexpr std::uint16_t any_function = 0xffff;
  std::uint16_t function = any_function;  ///< receive: whose entry it is, where entries have owners
  sim::span_id span = 0;                  ///< of its message, of whose packets it is the last
  sim::span_id part_of = 0;  ///< the same where it is another one: for captures, stages are of the last one
  bool open = false;         ///< transmit: its ICRC is written when its last byte is there, not before
  /// Edge at which its first byte is there for who takes it, the others beat by beat behind it (frame_stream.h).
  /// 0: the whole of it is there.
  sim::cycle_t first_byte = 0;
  sim::time_ps stamp = 0;  ///< transmit: first bit leaves; receive: last bit arrived
  wire::packet packet;     ///< headers as parsed (receive) or as built (transmit)
  std::array<std::uint8_t, capacity> buffer;

  std::uint8_t* data() { return buffer.data() + begin; }
  const std::uint8_t* data() const { return buffer.data() + begin; }
  void recycle() {
    begin = length = fcs = 0;
    priority = port = loopback = source = 0;
    control = insert_icrc = inside = plain = open = false;
    fcs_ok = icrc_ok = true;
    gid_index = 0;
    function = any_function;
    span = part_of = 0;
    first_byte = 0;
    stamp = 0;
  }
};

using frame_ptr = handle<frame>;
using frame_pool = pool<frame>;

}  // namespace rnic::payload
