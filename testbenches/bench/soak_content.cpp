// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/soak_content.h"

#include <algorithm>
#include <cstring>

namespace rnic::bench {

namespace {

constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;

std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t content_word(std::uint64_t key, std::uint64_t index) {
  const std::uint64_t z = (key + index * golden) * 0xd1342543de82ef95;
  return z ^ (z >> 29);
}

}  // namespace

std::uint64_t soak_random::next() { return mixed(state_ += golden); }

std::uint64_t content_key(std::uint64_t seed, std::uint64_t flow, std::uint64_t message) {
  return mixed(mixed(seed + golden) ^ (flow << 40) ^ message);
}

void fill_content(std::uint8_t* to, std::size_t bytes, std::uint64_t key) {
  std::size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    const std::uint64_t w = content_word(key, i / 8);
    std::memcpy(to + i, &w, 8);
  }
  if (i == bytes) return;
  const std::uint64_t w = content_word(key, i / 8);
  std::memcpy(to + i, &w, bytes - i);
}

std::size_t wrong_content(const std::uint8_t* data, std::size_t bytes, std::uint64_t key) {
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::size_t n = std::min<std::size_t>(8, bytes - i);
    const std::uint64_t w = content_word(key, i / 8);
    if (std::memcmp(data + i, &w, n) == 0) continue;
    std::uint8_t expected[8];
    std::memcpy(expected, &w, 8);
    for (std::size_t k = 0; k < n; ++k)
      if (data[i + k] != expected[k]) return i + k;
  }
  return bytes;
}

void make_fallow(std::uint8_t* to, std::size_t bytes) { std::memset(to, fallow_byte, bytes); }

std::size_t wrong_fallow(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  if (data[0] != fallow_byte) return 0;
  if (std::memcmp(data, data + 1, bytes - 1) == 0) return bytes;  // each byte like the one before
  return static_cast<std::size_t>(std::find_if(data, data + bytes, [](std::uint8_t b) { return b != fallow_byte; }) -
                                  data);
}

std::uint32_t place_ring::take(std::uint32_t bytes) {
  if (taken_ == 0) head_ = tail_ = 0;
  const bool wrapped = taken_ != 0 && head_ <= tail_;  // free: [head, tail), else [head, end) and [0, tail)
  std::uint32_t at = head_;
  if (wrapped) {
    if (tail_ - head_ < bytes) return none;
  } else if (bytes_ - head_ < bytes) {
    if (tail_ < bytes) return none;
    at = 0;
  }
  head_ = at + bytes;
  ++taken_;
  return at;
}

void place_ring::give(std::uint32_t offset, std::uint32_t bytes) {
  tail_ = offset + bytes;
  --taken_;
}

}  // namespace rnic::bench
