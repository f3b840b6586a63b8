// SPDX-License-Identifier: Apache-2.0
// The multicast group table's hash: firmware answers MGID_HASH with it, hardware looks groups up by it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rnic::icm {

/// Bucket of a 16-byte group identifier in a table of 2^log_buckets (1..16) buckets. The function is the device's own
/// choice (adapter control plane 4.18): FNV-1a, folded.
inline std::uint32_t mgid_hash(const std::uint8_t* gid, unsigned log_buckets) {
  std::uint32_t h = 0x811c9dc5;
  for (std::size_t i = 0; i < 16; ++i) h = (h ^ gid[i]) * 0x01000193;
  return (h >> 16 ^ h) & ((1u << log_buckets) - 1);
}

}  // namespace rnic::icm
