// SPDX-License-Identifier: Apache-2.0
// What the readers of a capture ask of packets, and the order of one direction's requests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "model/sim/types.h"
#include "model/transport/rnr_timer.h"
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
/// What an AETH says (IBA volume 1, table 43).
enum class aeth_kind : std::uint8_t { ack = 0, rnr = 1, reserved = 2, nak = 3 };
constexpr aeth_kind syndrome_kind(std::uint8_t syndrome) { return static_cast<aeth_kind>(syndrome >> 5 & 3); }
inline constexpr std::uint8_t sequence_error = 0x60;  ///< syndrome of the NAK of a PSN sequence error
inline bool is_rnr(const wire::packet& p) {
  return wire::traits(p.bth.opcode).aeth && syndrome_kind(p.aeth.syndrome) == aeth_kind::rnr;
}
inline bool is_sequence_nak(const wire::packet& p) {
  return wire::traits(p.bth.opcode).aeth && p.aeth.syndrome == sequence_error;
}
/// Time that an RNR NAK with this syndrome asks for.
inline sim::time_ps rnr_wait(std::uint8_t syndrome) {
  return transport::rnr_timer_10us[syndrome & 0x1f] * 10 * sim::ps_per_us;
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
