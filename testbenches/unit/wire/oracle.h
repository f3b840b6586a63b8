// SPDX-License-Identifier: Apache-2.0
// What the wire tests are checked with: zlib's CRC-32 over bytes masked here, and bytes written out in the reference.
#pragma once

#include <zlib.h>

#include <cctype>
#include <cstdint>
#include <string>
#include <vector>

#include "model/wire/packet.h"

namespace rnic::wire::test {

using bytes = std::vector<std::uint8_t>;

/// Bytes of hexadecimal text; anything else is skipped.
inline bytes from_hex(const std::string& text) {
  std::string digits;
  for (const char c : text)
    if (std::isxdigit(static_cast<unsigned char>(c))) digits += c;
  bytes out;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    out.push_back(static_cast<std::uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  return out;
}

/// ICRC by zlib over a copy with the variant fields set to ones (adapter data plane C.4), found from the bytes alone.
/// `end`: offset of the ICRC.
inline std::uint32_t zlib_icrc(const bytes& frame, std::size_t end) {
  std::size_t l3 = 14;
  if (frame[12] == 0x81 && frame[13] == 0x00) l3 = 18;
  bytes b(8, 0xff);
  b.insert(b.end(), frame.begin() + static_cast<long>(l3), frame.begin() + static_cast<long>(end));
  std::uint8_t* h = b.data() + 8;
  const unsigned type = frame[l3 - 2] * 256u + frame[l3 - 1];
  std::size_t bth = 0;
  if (type == 0x0800) {
    h[1] = h[8] = h[10] = h[11] = 0xff;
    h[26] = h[27] = 0xff;
    bth = 28;
  } else {
    h[0] |= 0x0f;
    h[1] = h[2] = h[3] = h[7] = 0xff;
    bth = 40;
    if (type == 0x86dd) {
      h[46] = h[47] = 0xff;
      bth = 48;
    }
  }
  h[bth + 4] = 0xff;
  return static_cast<std::uint32_t>(crc32(0, b.data(), static_cast<uInt>(b.size())));
}

/// Builds the frame of `p` around a copy of the payload that `from` has; the ICRC stays 0.
inline bytes rebuild(packet p, const bytes& from) {
  bytes room(256 + p.payload_length + 16, 0xee);
  std::uint8_t* payload = room.data() + 256;
  for (std::uint32_t i = 0; i < p.payload_length; ++i) payload[i] = from[p.payload_offset + i];
  const std::uint8_t* first = build(p, payload);
  return bytes(first, first + p.icrc_offset + 4);
}

}  // namespace rnic::wire::test
