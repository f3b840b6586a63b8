// SPDX-License-Identifier: Apache-2.0
// Fair choice among requesters.
#pragma once

#include <cstdint>

namespace rnic::sim {

/// Round robin over up to 64 requesters: the next one after the last winner wins.
class round_robin {
 public:
  /// Index of the winner among the set bits of `requests`, or -1 when none is set.
  int pick(std::uint64_t requests) {
    if (requests == 0) return -1;
    const std::uint64_t after = last_ >= 63 ? 0 : requests & (~std::uint64_t{0} << (last_ + 1));
    last_ = static_cast<unsigned>(__builtin_ctzll(after != 0 ? after : requests));
    return static_cast<int>(last_);
  }

 private:
  unsigned last_ = 63;
};

}  // namespace rnic::sim
