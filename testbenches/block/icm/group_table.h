// SPDX-License-Identifier: Apache-2.0
// A multicast group table in a memory behind DMA, for tests of the blocks that search it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "model/icm/icm_map.h"
#include "model/icm/mgid_hash.h"
#include "testbenches/block/icm/fake_memory.h"

namespace rnic::bench {

using group_id = std::array<std::uint8_t, 16>;

/// 64 entries of 1024 bytes, or of `bytes`, from bus address 0 on, of which the first 16 are buckets. An entry is as
/// the driver writes it: next in 31:6 of word 0, protocol and number of members in word 1, identifier at 0x10, members
/// from 0x20 on.
class group_table {
 public:
  static constexpr std::uint32_t entry_bytes = 1024;
  static constexpr unsigned log_entries = 6, hash_bits = 4;
  static constexpr std::uint64_t icm_base = 0x1'1400'0000;
  static constexpr std::uint32_t ethernet = 1;

  group_table(icm::icm_map& map, fake_memory& memory, std::uint32_t bytes = entry_bytes)
      : memory_(memory), bytes_(bytes) {
    map.layout(icm::table::mcg) = {icm_base, bytes, log_entries};
    map.map(icm_base, 0, std::uint64_t{bytes} << log_entries);
  }
  static std::uint32_t bucket(const group_id& id) { return rnic::icm::mgid_hash(id.data(), hash_bits); }
  void put(std::uint32_t index, const group_id& id, std::uint32_t next, const std::vector<std::uint32_t>& members,
           std::uint32_t protocol = 0) {
    const std::uint64_t at = std::uint64_t{index} * bytes_;
    memory_.be32(at, next << 6);
    memory_.be32(at + 4, protocol << 30 | static_cast<std::uint32_t>(members.size()));
    std::copy(id.begin(), id.end(), memory_.at(at + 0x10));
    for (std::uint32_t i = 0; i < members.size(); ++i) memory_.be32(at + 0x20 + 4 * i, members[i]);
  }
  /// A chain of entries that begins in the bucket of `id` and has its group as the last of `length`; the entries
  /// between are from `spare` on. The indices, in order.
  std::vector<std::uint32_t> chain(const group_id& id, unsigned length, const std::vector<std::uint32_t>& members,
                                   std::uint32_t spare = 20, std::uint32_t protocol = 0) {
    std::vector<std::uint32_t> all{bucket(id)};
    for (unsigned i = 1; i < length; ++i) all.push_back(spare + i - 1);
    for (unsigned i = 0; i < length; ++i) {
      group_id other = id;
      other[8] = static_cast<std::uint8_t>(0x80 + i);
      const bool last = i + 1 == length;
      put(all[i], last ? id : other, last ? 0 : all[i + 1], last ? members : std::vector<std::uint32_t>{0x777},
          protocol);
    }
    return all;
  }

 private:
  fake_memory& memory_;
  const std::uint32_t bytes_;
};

}  // namespace rnic::bench
