// SPDX-License-Identifier: Apache-2.0
// An input of the fuzzer, read from its front to its end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace rnic::fuzz {

/// Values of a fixed layout, big-endian, so that a script can write inputs. Behind the end there are zeroes.
class input {
 public:
  input(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}

  bool empty() const { return left_ == 0; }
  std::size_t left() const { return left_; }
  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  bool bit() { return (u8() & 1) != 0; }
  /// One byte, less than `limit`, which is at most 256.
  unsigned below(unsigned limit) { return u8() % limit; }
  /// At most so many bytes, fewer at the end.
  std::vector<std::uint8_t> bytes(std::size_t most) {
    const std::size_t n = std::min(most, left_);
    std::vector<std::uint8_t> out(at_, at_ + n);
    skip(n);
    return out;
  }
  std::string text(std::size_t most) {
    const std::vector<std::uint8_t> b = bytes(most);
    return {b.begin(), b.end()};
  }

 private:
  std::uint64_t number(unsigned bytes) {
    std::uint64_t v = 0;
    for (unsigned i = 0; i < bytes; ++i) {
      v = v << 8 | (left_ != 0 ? *at_ : 0);
      if (left_ != 0) skip(1);
    }
    return v;
  }
  void skip(std::size_t n) {
    at_ += n;
    left_ -= n;
  }

  const std::uint8_t* at_;
  std::size_t left_;
};

}  // namespace rnic::fuzz
