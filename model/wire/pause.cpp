// SPDX-License-Identifier: Apache-2.0
// PAUSE and PFC frames, bytes to values and back.
#include "model/wire/pause.h"

#include <cstring>

#include "model/wire/bytes.h"

namespace rnic::wire {

namespace {
constexpr std::uint16_t opcode_pause = 0x0001;
constexpr std::uint16_t opcode_pfc = 0x0101;
constexpr std::size_t opcode_offset = 14;
constexpr std::size_t parameters = 16;
}  // namespace

pause_kind decode_pause(const std::uint8_t* frame, std::size_t length, pause_frame& out) {
  if (length < opcode_offset || load_be16(frame + 12) != static_cast<std::uint16_t>(ether_type::mac_control))
    return pause_kind::none;
  if (length < parameters + 2) return pause_kind::unsupported;
  const std::uint16_t opcode = load_be16(frame + opcode_offset);
  out = pause_frame{};
  if (opcode == opcode_pause) {
    out.quanta[0] = load_be16(frame + parameters);
    return pause_kind::pause;
  }
  if (opcode != opcode_pfc || length < parameters + 18) return pause_kind::unsupported;
  out.per_priority = true;
  out.enabled = frame[parameters + 1];
  for (std::size_t i = 0; i < out.quanta.size(); ++i) out.quanta[i] = load_be16(frame + parameters + 2 + 2 * i);
  return pause_kind::pause;
}

void encode_pause(const pause_frame& p, const mac_address& smac, std::uint8_t* to) {
  std::memset(to, 0, pause_frame_length);
  std::memcpy(to, mac_control_address.data(), 6);
  std::memcpy(to + 6, smac.data(), 6);
  store_be16(to + 12, static_cast<std::uint16_t>(ether_type::mac_control));
  store_be16(to + opcode_offset, p.per_priority ? opcode_pfc : opcode_pause);
  if (!p.per_priority) {
    store_be16(to + parameters, p.quanta[0]);
    return;
  }
  store_be16(to + parameters, p.enabled);
  for (std::size_t i = 0; i < p.quanta.size(); ++i) store_be16(to + parameters + 2 + 2 * i, p.quanta[i]);
}

}  // namespace rnic::wire
