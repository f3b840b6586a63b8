// SPDX-License-Identifier: Apache-2.0
// CRC-32 (IEEE 802.3), as the ICRC and the FCS use it.
#pragma once

#include <isa-l/crc.h>

#include <cstddef>
#include <cstdint>

namespace rnic::wire {

/// Whether the machine has registers of 256 bits, whose upper halves a vectorised CRC may leave in use.
inline const bool wide_registers =
#if defined(__x86_64__)
    __builtin_cpu_supports("avx") != 0;
#else
    false;
#endif

/// CRC-32 of `length` bytes, continued from `seed`: the CRC of what came before, 0 at the beginning.
inline std::uint32_t crc32(std::uint32_t seed, const std::uint8_t* bytes, std::size_t length) {
  const std::uint32_t crc = crc32_gzip_refl(seed, bytes, length);
#if defined(__x86_64__)
  // ISA-L's version for AVX-512 returns without this, and each SSE instruction after it waits for the upper halves.
  if (wide_registers) __asm__ volatile("vzeroupper");
#endif
  return crc;
}

}  // namespace rnic::wire
