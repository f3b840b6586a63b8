// SPDX-License-Identifier: Apache-2.0
// What a response costs the READ engine, at either end.
#pragma once

#include "model/sim/beats.h"
#include "model/sim/parameter.h"

namespace rnic::transport {

/// The requester's host takes a response in pieces of the largest payload of a PCIe packet, each of which costs. The
/// responder's request has the first piece of its response with it; what is more of its packet, and each further
/// packet, takes the engine once more. Times are in cycles of the core clock.
struct read_engine_config {
  /// Of each piece at the requester, and of each further turn at the responder. Fitted to what a READ of 264 B takes
  /// longer than one of 232 B, which has one of each less. That both are the same is design (calibration 7.4).
  sim::parameter<unsigned> piece_cycles{
      8, {0, sim::many, "cycles", "calibration 7.4: fitted to FaSST's READs of 232 and 264 B, half at each end"}};
  sim::parameter<unsigned> piece_bytes{
      256, {64, 4096, "bytes", "calibration 5: MPS 256; calibration 7.4: the step behind 232 B"}};
  /// Of a response that the requester receives: addresses of two beats of the datapath at once.
  sim::parameter<unsigned> bytes_per_cycle{
      32, {1, 4096, "bytes", "calibration 7.4: 8 of the 16 cycles that 256 B took before pieces were counted"}};

  unsigned pieces(unsigned bytes) const { return static_cast<unsigned>(sim::beats_of(bytes, piece_bytes)); }
  /// At the requester, of a packet.
  unsigned received(unsigned bytes) const {
    return pieces(bytes) * piece_cycles + static_cast<unsigned>(sim::beats_of(bytes, bytes_per_cycle));
  }
  /// At the responder, of the packet that begins so far from the beginning.
  unsigned sent(unsigned offset, unsigned bytes) const { return offset != 0 || pieces(bytes) > 1 ? piece_cycles : 0; }

  void list(sim::fields& are) {
    are("piece_cycles", piece_cycles);
    are("piece_bytes", piece_bytes);
    are("bytes_per_cycle", bytes_per_cycle);
  }
};

}  // namespace rnic::transport
