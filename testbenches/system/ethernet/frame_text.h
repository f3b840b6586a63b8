// SPDX-License-Identifier: Apache-2.0
// What the frames of frames.h are made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rnic::system_test::frames {

using bytes = std::vector<std::uint8_t>;

/// A piece of a payload without a pattern that a wrong offset would hide: make_frames.py, text().
struct text {
  std::uint32_t seed = 0, from = 0, count = 0;
};

inline void append(bytes& to, std::string_view hex) {
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    to.push_back(static_cast<std::uint8_t>(std::stoul(std::string(hex.substr(i, 2)), nullptr, 16)));
}

inline bytes frame(std::string_view head, const text& body = {}, std::string_view tail = {}) {
  bytes out;
  append(out, head);
  std::uint32_t x = body.seed;
  for (std::uint32_t i = 0; i < body.from + body.count; ++i) {
    x = (x * 1103515245u + 12345u) & 0x7fffffffu;
    if (i >= body.from) out.push_back(static_cast<std::uint8_t>(x >> 16));
  }
  append(out, tail);
  return out;
}

}  // namespace rnic::system_test::frames
