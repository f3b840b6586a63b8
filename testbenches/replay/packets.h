// SPDX-License-Identifier: Apache-2.0
// What the readers of a capture ask of packets, and the order of one direction's requests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "model/sim/types.h"
#include "model/wire/packet.h"

namespace rnic::replay {

inline constexpr std::uint32_t gsi_qpn = 1;
inline constexpr std::uint64_t longest_message = 1u << 31;  ///< bytes
inline constexpr sim::time_ps never = ~sim::time_ps{0};

inline bool is_read_request(const wire::packet& p) {
  return wire::operation_of(p.bth.opcode) == wire::operation::read_request;
}
inline bool is_read_response(const wire::packet& p) {
  const wire::operation o = wire::operation_of(p.bth.opcode);
  return o >= wire::operation::read_response_first && o <= wire::operation::read_response_only;
}
inline bool is_atomic(const wire::packet& p) { return wire::traits(p.bth.opcode).atomic_eth; }
inline bool is_write(const wire::packet& p) {
  const wire::operation o = wire::operation_of(p.bth.opcode);
  return o >= wire::operation::write_first && o <= wire::operation::write_only_immediate;
}
inline bool is_send(const wire::packet& p) {
  const wire::operation o = wire::operation_of(p.bth.opcode);
  return o <= wire::operation::send_only_immediate || o >= wire::operation::send_last_invalidate;
}
/// Time that an RNR NAK with this timer asks for (IBA volume 1, table 46).
inline sim::time_ps rnr_wait(std::uint8_t syndrome) {
  constexpr std::uint32_t units[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                       48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                       2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};  // of 10 us
  return units[syndrome & 0x1f] * 10 * sim::ps_per_us;
}
/// Packets of a message; at least one.
inline std::uint32_t packets_of(std::uint64_t bytes, std::uint32_t mtu) {
  return bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes - 1) / mtu + 1);
}

/// The requests of one direction in the order of their PSNs, each by its first appearance.
class request_line {
 public:
  /// Place of a PSN near the last one on a line without wrap.
  std::int64_t near(wire::psn_t psn) const { return known_ ? last_ + (psn - last_psn_) : 0; }
  /// False: the PSN was there before.
  bool add(wire::psn_t psn, std::size_t frame) {
    last_ = near(psn);
    last_psn_ = psn;
    known_ = true;
    return frames_.try_emplace(last_, frame).second;
  }
  const std::map<std::int64_t, std::size_t>& frames() const { return frames_; }

 private:
  bool known_ = false;
  wire::psn_t last_psn_;
  std::int64_t last_ = 0;
  std::map<std::int64_t, std::size_t> frames_;
};

}  // namespace rnic::replay
