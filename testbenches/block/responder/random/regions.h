// SPDX-License-Identifier: Apache-2.0
// Memory regions, and when their keys lose their meaning.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "model/icm/translation_if.h"
#include "model/sim/types.h"

namespace rnic::transport::random_test {

constexpr unsigned right(icm::access a) { return 1u << static_cast<unsigned>(a); }

struct region {
  std::uint64_t va, bus, length;
  std::uint32_t pd;
  unsigned rights;
  sim::cycle_t closed = sim::never;   ///< translations from here on are refused
  sim::cycle_t revoked = sim::never;  ///< nothing is written under its key behind this cycle

  bool holds(std::uint64_t at, std::uint64_t bytes) const {
    return at >= va && at - va <= length && bytes <= length - (at - va);
  }
};

/// Written by the key engine alone, in cycles: who looks in the same cycle sees the same before it and behind it.
class region_table {
 public:
  void add(std::uint32_t key, const region& r) { all_.emplace(key, r); }
  /// None: null.
  region* find(std::uint32_t key) {
    const auto it = all_.find(key);
    return it == all_.end() ? nullptr : &it->second;
  }
  icm::translate_status look_at(std::uint32_t key, std::uint32_t pd, icm::access access, std::uint64_t va,
                                std::uint64_t bytes, sim::cycle_t now = 0) const {
    using status = icm::translate_status;
    const auto it = all_.find(key);
    if (it == all_.end() || it->second.closed <= now) return status::bad_key;
    const region& r = it->second;
    if (!r.holds(va, bytes)) return status::out_of_range;
    if ((r.rights & right(access)) == 0) return status::no_rights;
    return r.pd == pd ? status::ok : status::wrong_pd;
  }
  /// Bytes of a region whose key was withdrawn before this cycle.
  bool is_withdrawn(std::uint64_t bus, std::uint64_t bytes, sim::cycle_t now) const {
    return std::any_of(all_.begin(), all_.end(), [&](const auto& entry) {
      const region& r = entry.second;
      return r.revoked < now && bus < r.bus + r.length && r.bus < bus + bytes;
    });
  }

 private:
  std::map<std::uint32_t, region> all_;
};

}  // namespace rnic::transport::random_test
