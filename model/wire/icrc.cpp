// SPDX-License-Identifier: Apache-2.0
// CRC-32 over what may not change on the way.
#include "model/wire/icrc.h"

#include <cstring>

#include "model/wire/crc32.h"

namespace rnic::wire {

namespace {

/// CRC-32 of the eight bytes of ones that stand for the local route header (adapter data plane C.4).
constexpr std::uint32_t crc_of_dummy_lrh = 0x2144df1c;
constexpr std::size_t grh_length = 40;
constexpr std::size_t ipv4_length = 20;
constexpr std::size_t udp_length = 8;
constexpr std::size_t bth_length = 12;
constexpr std::size_t longest_prefix = grh_length + udp_length + bth_length;
/// What is not longer is copied as a whole: one more call costs more than so many bytes.
constexpr std::size_t short_packet = 160;
static_assert(short_packet >= longest_prefix);

}  // namespace

std::uint32_t icrc(encapsulation encap, const std::uint8_t* l3, std::size_t length) {
  std::uint8_t masked[short_packet];
  const bool ipv4 = encap == encapsulation::roce_v2_ipv4;
  const std::size_t ip = ipv4 ? ipv4_length : grh_length;
  const std::size_t bth = ip + (encap == encapsulation::roce_v1 ? 0 : udp_length);
  const std::size_t prefix = length <= short_packet ? length : bth + bth_length;
  std::memcpy(masked, l3, prefix);
  if (ipv4) {
    masked[1] = masked[8] = masked[10] = masked[11] = 0xff;
  } else {
    masked[0] |= 0x0f;
    masked[1] = masked[2] = masked[3] = masked[7] = 0xff;
  }
  if (encap != encapsulation::roce_v1) masked[ip + 6] = masked[ip + 7] = 0xff;
  masked[bth + 4] = 0xff;
  const std::uint32_t crc = crc32(crc_of_dummy_lrh, masked, prefix);
  return prefix == length ? crc : crc32(crc, l3 + prefix, length - prefix);
}

std::uint32_t icrc(const std::uint8_t* frame, const packet& p) {
  return icrc(p.encap, frame + p.l3_offset, p.icrc_offset - p.l3_offset);
}

std::uint32_t ethernet_fcs(const std::uint8_t* frame, std::size_t length) { return crc32(0, frame, length); }

}  // namespace rnic::wire
