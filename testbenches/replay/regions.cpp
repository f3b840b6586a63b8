// SPDX-License-Identifier: Apache-2.0
// Memory of the held host, from what its peers were granted and refused.
#include <algorithm>
#include <map>

#include "testbenches/replay/peer_side.h"

namespace rnic::replay {

namespace {

using kind = memory_access::kind;

bool& right_of(held_region& r, kind what) {
  return what == kind::read ? r.read : what == kind::write ? r.write : r.atomic;
}

bool contains(const held_region& r, const memory_access& a) {
  return a.va >= r.begin && a.va <= r.last && a.length - 1 <= r.last - a.va;
}

/// As large as what was granted. A right is there unless it was refused and never granted.
held_region region_for(std::uint32_t rkey, const std::vector<const memory_access*>& accesses) {
  held_region r;
  r.rkey = rkey;
  r.begin = ~std::uint64_t{0};
  std::map<kind, bool> granted;
  for (const memory_access* a : accesses) {
    if (a->refused) continue;
    r.begin = std::min(r.begin, a->va);
    r.last = std::max(r.last, a->va + (a->length - 1));
    granted[a->what] = true;
  }
  for (const memory_access* a : accesses)
    if (a->refused && contains(r, *a) && !granted[a->what]) right_of(r, a->what) = false;
  return r;
}

}  // namespace

void make_regions(plan& p, const std::vector<memory_access>& accesses) {
  std::map<std::uint32_t, std::vector<const memory_access*>> by_key;
  for (const memory_access& a : accesses) by_key[a.rkey].push_back(&a);
  for (const auto& [rkey, all] : by_key) {
    const bool any = std::any_of(all.begin(), all.end(), [](const memory_access* a) { return !a->refused; });
    if (!any) continue;  // nobody has this key
    held_region r = region_for(rkey, all);
    p.regions.push_back(r);
    // What is refused although it lies inside and others were granted the same: the key had ended, if it did not serve
    // later.
    for (const memory_access* a : all) {
      if (!a->refused || !contains(r, *a) || !right_of(r, a->what)) continue;
      const bool later = std::any_of(all.begin(), all.end(),
                                     [&](const memory_access* x) { return !x->refused && x->frame > a->frame; });
      if (!later) p.revoked[a->frame] = rkey;
    }
  }
}

}  // namespace rnic::replay
