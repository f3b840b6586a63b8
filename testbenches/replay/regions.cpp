// SPDX-License-Identifier: Apache-2.0
// Memory of the held host, from what its peers were granted and refused.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "testbenches/replay/packets.h"
#include "testbenches/replay/peer_side.h"

namespace rnic::replay {

namespace {

using kind = memory_access::kind;
using accesses_of_key = std::vector<const memory_access*>;

bool& right_of(held_region& r, kind what) {
  return what == kind::read ? r.read : what == kind::write ? r.write : r.atomic;
}

bool is_granted(const memory_access* a) { return !a->refused && a->what != kind::invalidate; }

bool contains(const held_region& r, const memory_access& a) {
  return a.va >= r.begin && a.va <= r.last && a.length - 1 <= r.last - a.va;
}

/// As large as what was granted. A right is there unless it was refused and never granted.
held_region region_for(std::uint32_t rkey, const accesses_of_key& accesses) {
  held_region r;
  r.rkey = rkey;
  r.begin = ~std::uint64_t{0};
  std::map<kind, bool> granted;
  for (const memory_access* a : accesses) {
    r.invalidated = r.invalidated || a->what == kind::invalidate;
    if (!is_granted(a)) continue;
    r.begin = std::min(r.begin, a->va);
    r.last = std::max(r.last, a->va + (a->length - 1));
    granted[a->what] = true;
  }
  for (const memory_access* a : accesses)
    if (a->refused && contains(r, *a) && !granted[a->what]) right_of(r, a->what) = false;
  return r;
}

/// Puts regions into the places of their keys, as the requests that use them come.
class region_maker {
 public:
  region_maker(plan& p, const std::vector<memory_access>& accesses) : plan_(p) {
    accesses_of_key all;
    for (const memory_access& a : accesses) all.push_back(&a);
    std::stable_sort(all.begin(), all.end(), [&](const auto* a, const auto* b) { return comes_before(*a, *b); });
    std::map<std::uint32_t, accesses_of_key> by_key;
    for (const memory_access* a : all) by_key[a->rkey].push_back(a);
    for (const auto& [rkey, of_key] : by_key) split(rkey, of_key);
    std::map<std::uint32_t, accesses_of_key> by_place;
    for (const memory_access* a : all)
      if (region_of_.count(a) != 0) by_place[place_of_key(a->rkey)].push_back(a);
    for (const auto& [place, of_place] : by_place) follow(of_place);
  }

 private:
  static constexpr std::size_t none = ~std::size_t{0};
  static constexpr unsigned frames_looked_at = 4096;
  struct use {
    const memory_access *first, *last;
  };

  /// What is made up comes right before the captured frame of its time.
  bool comes_before(const memory_access& a, const memory_access& b) const {
    const auto when = [&](const memory_access& x) {
      return std::tuple(plan_.frame(x.frame).at, x.frame < plan_.frames.size(), x.frame);
    };
    return when(a) < when(b);
  }

  void note(const memory_access* a, std::size_t region) {
    region_of_[a] = region;
    if (!is_granted(a)) return;
    const auto [user, fresh] = users_[region].try_emplace(plan_.frame(a->frame).connection, use{a, a});
    if (!fresh) user->second.last = a;
  }

  /// A key that a SEND has ended may come back for other memory.
  void split(std::uint32_t rkey, const accesses_of_key& accesses) {
    for (auto from = accesses.begin(); from != accesses.end();) {
      auto to = std::find_if(from, accesses.end(), [](const auto* a) { return a->what == kind::invalidate; });
      if (to != accesses.end()) ++to;
      if (std::any_of(from, to, is_granted)) {
        for (auto a = from; a != to; ++a) note(*a, plan_.regions.size());
        plan_.regions.push_back(region_for(rkey, {from, to}));
      }
      from = to;
    }
  }

  /// A key that others go on using from both sides of the refusal was refused to this connection alone, for a reason
  /// that the capture does not show.
  bool has_ended(const memory_access* refused) const {
    const auto& users = users_.at(region_of_.at(refused));
    return std::none_of(users.begin(), users.end(), [&](const auto& user) {
      return comes_before(*user.second.first, *refused) && comes_before(*refused, *user.second.last);
    });
  }

  /// The requests to the keys of one place, in their order.
  void follow(const accesses_of_key& accesses) {
    std::size_t there = none;
    const memory_access* before = nullptr;
    std::set<std::size_t> seen;
    for (const memory_access* a : accesses) {
      const std::size_t index = region_of_.at(a);
      held_region& r = plan_.regions[index];
      if (a->what == kind::invalidate) {
        there = none;
      } else if (a->refused) {
        if (!contains(r, *a) || !right_of(r, a->what) || !has_ended(a)) continue;
        if (there == index) plan_.revoked[a->frame] = a->rkey;
        there = none;
      } else if (there != index) {
        if (before != nullptr) plan_.installed[a->frame] = {index, before->frame, answer_to(*before)};
        if (before != nullptr && seen.count(index) == 0) r.late = true;
        if (seen.count(index) != 0) r.returns = true;
        seen.insert(index);
        there = index;
      }
      before = a;
    }
  }

  /// The held host's answer to a request, or no_frame.
  std::size_t answer_to(const memory_access& a) const {
    if (a.frame >= plan_.frames.size()) return no_frame;
    const captured_frame& asked = plan_.frames[a.frame];
    const std::uint32_t mtu = plan_.connections[static_cast<std::size_t>(asked.connection)].mtu;
    const wire::psn_t last = asked.packet.bth.psn + (packets_of(a.length, mtu) - 1);
    const std::size_t end = std::min(plan_.frames.size(), a.frame + frames_looked_at);
    for (std::size_t i = a.frame + 1; i < end; ++i) {
      const captured_frame& f = plan_.frames[i];
      if (f.connection == asked.connection && f.from_held && wire::traits(f.packet.bth.opcode).response &&
          !f.packet.bth.psn.before(last))
        return i;
    }
    return no_frame;
  }

  plan& plan_;
  std::map<const memory_access*, std::size_t> region_of_;  // index in the plan; none for keys that nobody has
  std::map<std::size_t, std::map<int, use>> users_;        // by region: connections that were granted it
};

}  // namespace

void make_regions(plan& p, const std::vector<memory_access>& accesses) { region_maker(p, accesses); }

}  // namespace rnic::replay
