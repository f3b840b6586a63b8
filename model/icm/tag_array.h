// SPDX-License-Identifier: Apache-2.0
// Tags and lines of a read-only set-associative cache.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/icm/replacement.h"
#include "model/sim/check.h"

namespace rnic::icm {

/// Holds up to `lines` lines by 64-bit key (any but ~0), in sets of `ways` found by a hash of the key.
template <class Line>
class tag_array {
 public:
  /// lines / ways must be a power of two; `name` is the parameter to blame when it is not.
  tag_array(const std::string& name, unsigned lines, unsigned ways, replacement policy)
      : policy_(policy), ways_(ways), keys_(lines, no_key), used_(lines), lines_(lines) {
    const unsigned sets = ways == 0 ? 0 : lines / ways;
    if (sets == 0 || lines % ways != 0 || (sets & (sets - 1)) != 0)
      throw sim::config_error(name + ": entries / ways must be a power of two");
    mask_ = sets - 1;
    while ((1u << bits_) <= mask_) ++bits_;
  }

  /// The line of `key`, which has been used by this, or nullptr.
  Line* find(std::uint64_t key) {
    const std::size_t first = first_way(key);
    for (std::size_t i = first; i != first + ways_; ++i)
      if (keys_[i] == key) {
        if (policy_ == replacement::lru) used_[i] = ++uses_;
        return &lines_[i];
      }
    return nullptr;
  }
  /// Room for `key`, in place of another line of its set when that is full; the caller fills it.
  Line& insert(std::uint64_t key) {
    const std::size_t first = first_way(key);
    std::size_t best = policy_ == replacement::random ? first + random_.value() % ways_ : first;
    for (std::size_t i = first; i != first + ways_; ++i) {
      if (keys_[i] == key || keys_[i] == no_key) {
        best = i;
        break;
      }
      if (policy_ != replacement::random && used_[i] < used_[best]) best = i;
    }
    random_.step();
    keys_[best] = key;
    used_[best] = ++uses_;
    return lines_[best];
  }
  /// Forgets the keys first..last.
  void erase(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t& key : keys_)
      if (key != no_key && key >= first && key <= last) key = no_key;
  }

 private:
  static constexpr std::uint64_t no_key = ~std::uint64_t{0};
  std::size_t first_way(std::uint64_t key) const {
    const std::uint64_t hash = bits_ == 0 ? 0 : key ^ (key >> bits_) * 0x9e5 ^ (key >> (2 * bits_));
    return static_cast<std::size_t>(hash & mask_) * ways_;
  }
  replacement policy_;
  shift_register random_;
  unsigned ways_;
  unsigned mask_ = 0, bits_ = 0;
  std::uint64_t uses_ = 0;
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint64_t> used_;
  std::vector<Line> lines_;
};

}  // namespace rnic::icm
