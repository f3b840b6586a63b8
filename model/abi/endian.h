// SPDX-License-Identifier: Apache-2.0
// Access to the big-endian fields of everything that device and driver share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rnic::abi {

/// Loads and stores of big-endian integers at any alignment.
template <class T>
inline T load(const void* from, std::size_t offset = 0) {
  static_assert(std::is_unsigned_v<T>);
  T raw;
  std::memcpy(&raw, static_cast<const std::uint8_t*>(from) + offset, sizeof raw);
  if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(raw));
  if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(raw));
  if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(raw));
  return raw;
}
template <class T>
inline void store(void* to, std::size_t offset, T value) {
  static_assert(std::is_unsigned_v<T>);
  if constexpr (sizeof(T) == 2) value = static_cast<T>(__builtin_bswap16(value));
  if constexpr (sizeof(T) == 4) value = static_cast<T>(__builtin_bswap32(value));
  if constexpr (sizeof(T) == 8) value = static_cast<T>(__builtin_bswap64(value));
  std::memcpy(static_cast<std::uint8_t*>(to) + offset, &value, sizeof value);
}
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the conversions above assume a little-endian processor");

inline std::uint16_t load16(const void* from, std::size_t offset = 0) { return load<std::uint16_t>(from, offset); }
inline std::uint32_t load32(const void* from, std::size_t offset = 0) { return load<std::uint32_t>(from, offset); }
inline std::uint64_t load64(const void* from, std::size_t offset = 0) { return load<std::uint64_t>(from, offset); }
inline void store16(void* to, std::size_t offset, std::uint16_t value) { store(to, offset, value); }
inline void store32(void* to, std::size_t offset, std::uint32_t value) { store(to, offset, value); }
inline void store64(void* to, std::size_t offset, std::uint64_t value) { store(to, offset, value); }

/// A field of a layout: `width` bits from bit `low` of the big-endian word of type T at byte `offset`.
template <class T>
struct field {
  std::uint16_t offset = 0;
  std::uint8_t low = 0;
  std::uint8_t width = sizeof(T) * 8;
};
constexpr field<std::uint8_t> u8(std::uint16_t offset) { return {offset, 0, 8}; }
constexpr field<std::uint16_t> u16(std::uint16_t offset) { return {offset, 0, 16}; }
constexpr field<std::uint32_t> u32(std::uint16_t offset) { return {offset, 0, 32}; }
constexpr field<std::uint64_t> u64(std::uint16_t offset) { return {offset, 0, 64}; }
/// Bits high..low of the byte or word at `offset`.
constexpr field<std::uint8_t> bits8(std::uint16_t offset, unsigned high, unsigned low) {
  return {offset, static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high - low + 1)};
}
constexpr field<std::uint16_t> bits16(std::uint16_t offset, unsigned high, unsigned low) {
  return {offset, static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high - low + 1)};
}
constexpr field<std::uint32_t> bits32(std::uint16_t offset, unsigned high, unsigned low) {
  return {offset, static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high - low + 1)};
}
constexpr field<std::uint64_t> bits64(std::uint16_t offset, unsigned high, unsigned low) {
  return {offset, static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high - low + 1)};
}

template <class T>
constexpr T mask_of(field<T> f) {
  return static_cast<T>(static_cast<T>(~T{0}) >> (sizeof(T) * 8 - f.width));
}
template <class T>
inline T get(const void* base, field<T> f) {
  return static_cast<T>((load<T>(base, f.offset) >> f.low) & mask_of(f));
}
/// Bits of `value` beyond the field's width are dropped; the word's other bits stay.
template <class T>
inline void set(void* base, field<T> f, std::common_type_t<T> value) {
  const T mask = static_cast<T>(mask_of(f) << f.low);
  const T word = load<T>(base, f.offset);
  store<T>(base, f.offset, static_cast<T>((word & static_cast<T>(~mask)) | (static_cast<T>(value << f.low) & mask)));
}
/// The field moved by `bytes`: for a structure inside another one.
template <class T>
constexpr field<T> at(std::size_t bytes, field<T> f) {
  return {static_cast<std::uint16_t>(f.offset + bytes), f.low, f.width};
}

}  // namespace rnic::abi
