// SPDX-License-Identifier: Apache-2.0
// The ports of a memory of a block: how many accesses a cycle it takes, and who has to wait.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "model/sim/check.h"
#include "model/sim/clocked_block.h"
#include "model/sim/hierarchy.h"
#include "model/sim/statistics.h"

namespace rnic::sim {

/// A memory takes `ports` accesses a cycle (law 16), each a read, a write, or a read that is written back. Its users
/// have names. Priority is the order in which their block asks in its tick, but who was refused has a port of the next
/// cycle before all others, in turn: so nobody starves. What lies in the memory is its owner's matter.
///
/// An access is asked for when everything else that it needs is there: a user that may still have to wait for
/// something else would take a port for nothing, and as often as its block is ticked (law 3).
class memory_ports : public hierarchy_object {
 public:
  /// `leaf`: what the memory is ("context_memory"); its name is that of the block, a dot, and this. Users are numbered
  /// from 0 on, in the order of their names; at most 32.
  memory_ports(clocked_block& owner, const std::string& leaf, unsigned ports, std::initializer_list<const char*> users)
      : hierarchy_object(owner.name() + "." + leaf, "memory"), owner_(owner), ports_(ports) {
    if (ports == 0) throw config_error(name() + ": ports must be at least 1");
    RNIC_ASSERT(users.size() <= 32, name() + ": more than 32 users");
    for (const char* u : users) users_.push_back({u});
  }

  /// The user would get a port in this cycle. Changes nothing.
  bool can_access(unsigned user) const {
    const bool now = at_ == owner_.now();
    const unsigned taken = now ? taken_ : 0;
    const std::uint32_t kept = now ? kept_ : waiting_of_last_cycle();
    const std::uint32_t of_others = kept & ~bit(user);
    if ((kept & bit(user)) != 0) return true;  // it was kept for the user, who has not come for it yet
    return taken + static_cast<unsigned>(__builtin_popcount(of_others)) < ports_;
  }
  /// Takes a port. can_access() has said that there is one.
  void access(unsigned user) {
    RNIC_ASSERT(user < users_.size(), name() + ": access of nobody");
    RNIC_ASSERT(can_access(user), name() + ": more accesses in a cycle than ports, by " + users_[user].name);
    begin();
    kept_ &= ~bit(user);
    ++taken_;
    last_ = user;
    ++users_[user].accesses;
  }
  /// Whether the user will get a port in this cycle; where not, it waits: it is counted, and its block is ticked at the
  /// next edge.
  bool claim(unsigned user) {
    if (can_access(user)) return true;
    RNIC_ASSERT(user < users_.size(), name() + ": access of nobody");
    begin();
    if ((waiting_ & bit(user)) == 0) ++users_[user].waits;
    waiting_ |= bit(user);
    owner_.wake_next();
    return false;
  }
  /// claim() and access().
  bool try_access(unsigned user) {
    if (!claim(user)) return false;
    access(user);
    return true;
  }

  std::uint64_t accesses(unsigned user) const { return users_[user].accesses; }
  /// Cycles in which the user had to wait.
  std::uint64_t waits(unsigned user) const { return users_[user].waits; }
  /// The waits of each user, as "<name>.<user>.waits".
  void announce(statistics& to) const {
    for (const counted& u : users_) to.add(name() + "." + u.name + ".waits", u.waits);
  }

 private:
  struct counted {
    const char* name;
    std::uint64_t accesses = 0, waits = 0;
  };
  static std::uint32_t bit(unsigned user) { return std::uint32_t{1} << user; }
  // Of those that were refused a cycle ago, as many as there are ports, in turn from the last one that was served on.
  std::uint32_t waiting_of_last_cycle() const {
    if (at_ == never || at_ + 1 != owner_.now()) return 0;
    std::uint32_t first = 0, rest = waiting_;
    const std::uint32_t behind = last_ >= 31 ? 0 : ~std::uint32_t{0} << (last_ + 1);
    for (unsigned n = 0; n < ports_ && rest != 0; ++n) {
      const std::uint32_t of = (rest & behind) != 0 ? rest & behind : rest;
      const std::uint32_t next = of & ~(of - 1);
      first |= next;
      rest &= ~next;
    }
    return first;
  }
  // The first thing that happens in a cycle.
  void begin() {
    if (at_ == owner_.now()) return;
    kept_ = waiting_of_last_cycle();
    at_ = owner_.now();
    taken_ = 0;
    waiting_ = 0;
  }

  clocked_block& owner_;
  unsigned ports_;
  cycle_t at_ = never;  // what follows is of this cycle
  unsigned taken_ = 0;
  unsigned last_ = 31;         // user of the last access
  std::uint32_t kept_ = 0;     // masks of users: refused a cycle ago, and not served in this one yet;
  std::uint32_t waiting_ = 0;  // refused in this one
  std::vector<counted> users_;
};

}  // namespace rnic::sim
