// SPDX-License-Identifier: Apache-2.0
// Which contexts are on chip, and which of them makes room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/icm/context_cache_config.h"
#include "model/icm/replacement.h"

namespace rnic::icm {

/// Data sheet. Part of a context cache: keys and states of its slots.
///
/// A key's set is that of a hash; a look-up compares the keys of one set (`ways` comparators). A slot that is asked for
/// has its place from the start of its fill on. Of a full set the slot is given away whose fill has failed, else the
/// one that the policy names, but one that was filled and not asked for yet only when there is no other; one that is
/// pinned or being filled is not.
class context_tags {
 public:
  enum class state : std::uint8_t { empty, filling, failed, valid };
  struct slot {
    state is = state::empty;
    bool dirty = false;
    bool fresh = false;      ///< filled, but not looked up since: what asked for it comes back soon
    bool asked = false;      ///< somebody has seen it and not used it since, and waits for something else
    std::uint16_t pins = 0;  ///< not given away while not 0
    std::uint16_t fill = 0;  ///< filling: where its data come in
    std::uint64_t used = 0;  ///< number of its last use
  };
  static constexpr std::uint32_t no_key = 0xffffffff;  // never a masked number: tables have less than 2^31 entries
  static constexpr std::uint32_t second_key = 0x80000000;
  static constexpr unsigned none = 0xffffffff;

  /// Throws config_error where entries / ways is no power of two.
  context_tags(const std::string& name, const context_cache_config& config);

  unsigned size() const { return static_cast<unsigned>(slots_.size()); }
  /// The slot that has the key, or none.
  unsigned find(std::uint32_t key) const {
    if (keys_[last_found_] == key) return last_found_;
    return search(key);
  }
  /// The same where its context is there.
  unsigned find_valid(std::uint32_t key) const {
    const unsigned s = find(key);
    return s != none && slots_[s].is == state::valid ? s : none;
  }
  slot& operator[](unsigned s) { return slots_[s]; }
  const slot& operator[](unsigned s) const { return slots_[s]; }
  std::uint32_t key(unsigned s) const { return keys_[s]; }

  /// A slot of the key's set for another context: an empty one, or which must go. None: not now.
  unsigned choose(std::uint32_t key) const;
  void start_fill(unsigned s, std::uint32_t key, unsigned fill);
  void end_fill(unsigned s, bool failed);
  void clear(unsigned s);
  /// Its context was used; true unless it is the first time since it was filled.
  bool use(unsigned s) {
    slot& c = slots_[s];
    const bool again = !c.fresh;
    c.fresh = c.asked = false;
    if (policy_ == replacement::lru) c.used = ++uses_;
    return again;
  }
  /// With the key pinned there would be no slot left in its set that others have not pinned as well, or are filling.
  bool crowded(std::uint32_t key) const;

 private:
  unsigned search(std::uint32_t key) const {
    const unsigned first = first_way(key);
    for (unsigned s = first; s != first + ways_; ++s)
      if (keys_[s] == key) return last_found_ = s;
    return none;
  }
  unsigned first_way(std::uint32_t key) const {
    // As good as random, as the published fits assume (calibration 7.4): of the orders of these multipliers the one
    // whose conflicts, for 16 to 792 numbers in a row, are nearest to those expected. A second entry has the hash of
    // the number's complement.
    const std::uint32_t number = key & ~second_key;
    std::uint32_t hash = (number == key ? number : ~number) * 0x27d4'eb2fu;
    hash = (hash ^ hash >> 15) * 0x1656'67b1u;
    hash = (hash ^ hash >> 13) * 0x85eb'ca77u;
    hash ^= hash >> 16;
    return (hash & set_mask_) * ways_;
  }

  unsigned ways_, set_mask_ = 0;
  replacement policy_;
  std::vector<std::uint32_t> keys_;  // apart from the rest so that a set is one line of the host
  std::vector<slot> slots_;
  mutable unsigned last_found_ = 0;  // whoever asks for a context asks for it some times in a row
  std::uint64_t uses_ = 0;
  shift_register random_;
};

}  // namespace rnic::icm
