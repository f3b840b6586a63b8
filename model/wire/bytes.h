// SPDX-License-Identifier: Apache-2.0
// Big-endian loads and stores at any alignment.
#pragma once

#include <cstdint>
#include <cstring>

namespace rnic::wire {

inline std::uint16_t load_be16(const std::uint8_t* p) {
  std::uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap16(v);
}
inline std::uint32_t load_be32(const std::uint8_t* p) {
  std::uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap32(v);
}
inline std::uint64_t load_be64(const std::uint8_t* p) {
  std::uint64_t v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap64(v);
}
inline void store_be16(std::uint8_t* p, std::uint16_t v) {
  v = __builtin_bswap16(v);
  std::memcpy(p, &v, sizeof v);
}
inline void store_be32(std::uint8_t* p, std::uint32_t v) {
  v = __builtin_bswap32(v);
  std::memcpy(p, &v, sizeof v);
}
inline void store_be64(std::uint8_t* p, std::uint64_t v) {
  v = __builtin_bswap64(v);
  std::memcpy(p, &v, sizeof v);
}
/// Little-endian words: ICRC and FCS as they stand in the frame, and what the host's processor reads and writes.
inline std::uint32_t load_le32(const std::uint8_t* p) { return __builtin_bswap32(load_be32(p)); }
inline void store_le32(std::uint8_t* p, std::uint32_t v) { store_be32(p, __builtin_bswap32(v)); }
inline std::uint64_t load_le64(const std::uint8_t* p) { return __builtin_bswap64(load_be64(p)); }

}  // namespace rnic::wire
