// SPDX-License-Identifier: Apache-2.0
// What follows from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace rnic::bench {

using octets = std::vector<std::uint8_t>;

/// The last step of splitmix64 (Steele, Lea, Flood).
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e37'79b9'7f4a'7c15u;
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9u;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11ebu;
  return x ^ (x >> 31);
}

/// Decisions that are taken one after another.
class dice {
 public:
  explicit dice(std::uint64_t seed) : engine_(mixed(seed)) {}
  std::uint64_t word() { return engine_(); }
  std::uint32_t below(std::uint32_t limit) {
    return limit == 0 ? 0 : static_cast<std::uint32_t>((engine_() >> 20) % limit);
  }
  bool percent(unsigned probability) { return below(100) < probability; }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + below(static_cast<std::uint32_t>(list.size())));
  }
  octets bytes(std::size_t n) {
    octets all(n);
    const std::uint64_t first = word();
    for (std::size_t i = 0; i < n; ++i) all[i] = static_cast<std::uint8_t>(mixed(first + i / 8) >> (i % 8 * 8));
    return all;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace rnic::bench
