// SPDX-License-Identifier: Apache-2.0
// What the messages of a soak contain, and the rings of host memory in which they lie.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rnic::bench {

/// splitmix64 (Steele, Lea, Flood).
class soak_random {
 public:
  explicit soak_random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }

 private:
  std::uint64_t state_;
};

/// The bytes of one message follow from this.
std::uint64_t content_key(std::uint64_t seed, std::uint64_t flow, std::uint64_t message);
void fill_content(std::uint8_t* to, std::size_t bytes, std::uint64_t key);
/// Offset of the first wrong byte, or `bytes`.
std::size_t wrong_content(const std::uint8_t* data, std::size_t bytes, std::uint64_t key);

/// Memory in which no message lies holds this byte.
inline constexpr std::uint8_t fallow_byte = 0xa5;
void make_fallow(std::uint8_t* to, std::size_t bytes);
/// Offset of the first byte that somebody has written, or `bytes`.
std::size_t wrong_fallow(const std::uint8_t* data, std::size_t bytes);

/// Places in a ring of memory, given back in the order in which they were taken. A place never wraps.
class place_ring {
 public:
  explicit place_ring(std::uint32_t bytes) : bytes_(bytes) {}
  /// Offset of a place of `bytes`, which is less than the ring, or `none`.
  std::uint32_t take(std::uint32_t bytes);
  /// The oldest place, which began at `offset` and had `bytes`, is free again.
  void give(std::uint32_t offset, std::uint32_t bytes);
  static constexpr std::uint32_t none = ~0u;

 private:
  std::uint32_t bytes_;
  std::uint32_t head_ = 0, tail_ = 0;  // next place; oldest place
  unsigned taken_ = 0;
};

}  // namespace rnic::bench
