// SPDX-License-Identifier: Apache-2.0
// The ICRC engine cycle by cycle: one interface, implemented by the model (icrc_model.h) and by RTL (rtl/icrc).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "model/sim/beats.h"
#include "model/wire/packet.h"

namespace rnic::icrc {

/// Beats of engines that are clocked; the datapath of one that is not may be wider.
inline constexpr std::size_t widest_beat = 64;
/// From the cycle in which a packet's last beat is taken to the cycle in which its result is valid: mask, CRC, result.
inline constexpr unsigned pipeline_cycles = 3;

/// Cycles from the first beat of a stream of `length` bytes (at least 1) offered to the result, on a datapath of
/// `width` bytes, when nothing stalls.
constexpr std::uint64_t cycles_of(std::size_t length, std::size_t width) {
  return sim::beats_of(length, width) - 1 + pipeline_cycles;
}

/// One beat at the engine's input in one cycle. A packet starts at its L3 header (GRH, IPv4 or IPv6) and ends before
/// its ICRC. While valid is set and the engine is not ready the same beat must be offered again.
struct icrc_beat {
  bool valid = false;
  std::array<std::uint8_t, widest_beat> data{};
  std::uint8_t keep = 0;  ///< valid bytes: the datapath's, on the last beat 1 to so many
  bool first = false;
  bool last = false;
  wire::encapsulation encap = wire::encapsulation::roce_v2_ipv4;  ///< on every beat of the packet
};

/// The beat of a packet of `length` bytes that begins at byte `offset`, on a datapath of `width` bytes (at most
/// widest_beat).
inline icrc_beat beat_at(wire::encapsulation encap, const std::uint8_t* l3, std::size_t length, std::size_t offset,
                         std::size_t width) {
  const std::size_t left = length - offset;
  icrc_beat b;
  b.valid = true;
  b.first = offset == 0;
  b.last = left <= width;
  b.keep = static_cast<std::uint8_t>(b.last ? left : width);
  b.encap = encap;
  std::copy_n(l3 + offset, b.keep, b.data.begin());
  return b;
}

/// The engine's outputs in one cycle; all of them come from registers, so they do not depend on that cycle's inputs.
struct icrc_outputs {
  bool in_ready = false;
  bool result_valid = false;
  std::uint32_t crc = 0;  ///< while result_valid: the word to be stored little-endian
};

/// Masks the fields that change on the way (adapter data plane C.4) and divides, a beat a cycle. One result can wait
/// beside the one in the CRC register: while a result is not taken, the following packet enters up to and including
/// its last beat, then the input stalls.
class icrc_engine_if {
 public:
  struct result {
    std::uint64_t cycles = 0;  ///< from the first beat offered to the result
    std::uint32_t crc = 0;
  };

  virtual ~icrc_engine_if() = default;

  /// Width of its datapath.
  virtual unsigned beat_bytes() const = 0;
  /// Whether process() may be asked in the place of step(), by a caller who keeps to the cycles above: true for the
  /// model, which then costs nothing by the beat; RTL is clocked.
  virtual bool at_once() const { return false; }
  /// The outputs in the next cycle.
  virtual icrc_outputs outputs() const = 0;
  /// One clock cycle: the outputs during it. A beat is taken when valid and in_ready, a result when result_valid and
  /// result_ready.
  virtual icrc_outputs step(const icrc_beat& in, bool result_ready) = 0;
  /// One clock cycle in reset: everything under way is forgotten, nothing is transferred.
  virtual void reset() = 0;
  /// A whole packet of `length` bytes (at least the headers up to the BTH) through the engine, which must be idle
  /// (every result of step() taken), without a stall.
  virtual result process(wire::encapsulation encap, const std::uint8_t* l3, std::size_t length) = 0;
};

}  // namespace rnic::icrc
