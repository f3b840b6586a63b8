// SPDX-License-Identifier: Apache-2.0
// The ports of a memory of a block: how many accesses a cycle it takes, and who has to wait.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/hierarchy.h"
#include "model/sim/seldom.h"
#include "model/sim/statistics.h"

namespace rnic::sim {

/// Tag of a memory with a port for each user.
struct port_each {};

/// What a user does with what it accesses.
enum class access_kind : std::uint8_t {
  read,
  write,
  update  ///< reads it, and may write it back in the same cycle
};

struct memory_user {
  // A list of names is a list of users.
  memory_user(std::string called, access_kind does = access_kind::update)  // NOLINT(google-explicit-constructor)
      : name(std::move(called)), kind(does) {}
  memory_user(const char* called, access_kind does = access_kind::update)  // NOLINT(google-explicit-constructor)
      : name(called), kind(does) {}
  std::string name;
  access_kind kind;
};

/// What an access uses of the ports of a memory: the first base, in front of what the hierarchy needs (see
/// clock_state).
class memory_state {
 public:
  struct counted {
    std::uint64_t accesses = 0;
    std::uint64_t waits = 0;  ///< cycles in which it was refused
    cycle_t at = never;       ///< by a port of its own: the last access
    access_kind kind = access_kind::update;
    std::string name;
  };

 protected:
  memory_state(clocked_block& owner, unsigned ports) : clock_(owner.domain()), owner_(owner), ports_(ports) {}
  virtual ~memory_state() = default;

  clock_domain& clock_;
  clocked_block& owner_;
  cycle_t at_ = never;  // what follows is of this cycle
  unsigned taken_ = 0;
  unsigned ports_;
  std::uint64_t kept_ = 0;     // masks of users: refused a cycle ago, and not served in this one yet;
  std::uint64_t waiting_ = 0;  // refused in this one
  unsigned last_ = 63;         // user of the last access
  bool each_ = false;          // a port for each user
  std::vector<counted> users_;
};

/// A memory takes `ports` accesses a cycle (law 16), each a read, a write, or a read that is written back, as its user
/// says. Users have names. Priority is the order in which their block asks in its tick, but who was refused has a port
/// of the next cycle before all others, in turn: so nobody starves. What lies in the memory is its owner's matter.
///
/// Its domain lists it (clock_domain::memories), so that what limits a run can be read from the accesses: it is in use
/// for as many cycles as all ports take to make them, and a user is kept waiting in the cycles of its refusals.
///
/// Where each user has a port of its own (port_each, access_own), it makes one access a cycle at most, and nobody
/// waits.
///
/// An access is asked for when everything else that it needs is there: a user that may still have to wait for
/// something else would take a port for nothing, and as often as its block is ticked (law 3).
class memory_ports : private memory_state, public hierarchy_object {
 public:
  /// `leaf`: what the memory is ("context_memory"); its name is that of the block, a dot, and this. Users are numbered
  /// from 0 on, in the order of their names; at most 64.
  memory_ports(clocked_block& owner, const std::string& leaf, unsigned ports, std::vector<memory_user> users)
      : memory_state(owner, ports), hierarchy_object(owner.name() + "." + leaf, "memory") {
    if (ports == 0) throw config_error(name() + ": ports must be at least 1");
    RNIC_ASSERT(users.size() <= most_users, name() + ": more than 64 users");
    for (memory_user& u : users) users_.push_back({0, 0, never, u.kind, std::move(u.name)});
    owner.domain().add(*this);
  }
  memory_ports(clocked_block& owner, const std::string& leaf, port_each, std::vector<memory_user> users)
      : memory_ports(owner, leaf, 1, std::move(users)) {
    ports_ = static_cast<unsigned>(users_.size());
    each_ = true;
  }
  ~memory_ports() override { owner_.domain().remove(*this); }

  /// The user would get a port in this cycle. Changes nothing.
  bool can_access(unsigned user) const {
    if (at_ == clock_.edge()) return has_port(bit(user));
    const std::uint64_t kept = waiting_of_last_cycle();
    return (kept & bit(user)) != 0 || count(kept) < ports_;
  }
  /// Takes a port. can_access() has said that there is one.
  void access(unsigned user) {
    RNIC_ASSERT(user < users_.size(), name() + ": access of nobody");
    begin();
    RNIC_ASSERT(has_port(bit(user)), name() + ": more accesses in a cycle than ports, by " + users_[user].name);
    take(user);
  }
  /// Of a memory with a port for each user: this one's.
  void access_own(unsigned user) {
    counted& u = users_[user];
    const cycle_t now = clock_.edge();
    RNIC_ASSERT(u.at != now && each_, name() + ": more accesses in a cycle than ports, by " + u.name);
    u.at = now;
    ++u.accesses;
  }
  /// Whether the user will get a port in this cycle; where not, it waits: it is counted, and its block is ticked at the
  /// next edge.
  [[gnu::always_inline]] bool claim(unsigned user) {
    begin();
    if (!seldom(!has_port(bit(user)))) return true;
    wait(user);
    return false;
  }
  /// claim() and access().
  bool try_access(unsigned user) {
    if (!claim(user)) return false;
    take(user);
    return true;
  }

  using memory_state::counted;
  const std::vector<counted>& users() const { return users_; }
  const clocked_block& owner() const { return owner_; }
  /// Accesses a cycle.
  unsigned ports() const { return ports_; }
  /// Each user has a port of its own.
  bool has_own_ports() const { return each_; }
  std::uint64_t accesses(unsigned user) const { return users_[user].accesses; }
  /// Cycles in which the user had to wait.
  std::uint64_t waits(unsigned user) const { return users_[user].waits; }
  /// Cycles in which all ports would have made what accesses there were; of ports of their own, the busiest one's.
  std::uint64_t busy_cycles() const {
    std::uint64_t all = 0, most = 0;
    for (const counted& u : users_) {
      all += u.accesses;
      most = std::max(most, u.accesses);
    }
    return each_ ? most : all / ports_;
  }
  /// The waits of each user, as "<name>.<user>.waits".
  void announce(statistics& to) const {
    for (const counted& u : users_) to.add(name() + "." + u.name + ".waits", u.waits);
  }

 private:
  static constexpr unsigned most_users = 64;
  static std::uint64_t bit(unsigned user) { return std::uint64_t{1} << user; }
  // Of those that were refused a cycle ago, as many as there are ports, in turn from the last one that was served on.
  [[gnu::noinline]] std::uint64_t waiting_of_last_cycle() const {
    if (at_ == never || at_ + 1 != clock_.edge()) return 0;
    std::uint64_t first = 0, rest = waiting_;
    const std::uint64_t behind = last_ + 1 >= most_users ? 0 : ~std::uint64_t{0} << (last_ + 1);
    for (unsigned n = 0; n < ports_ && rest != 0; ++n) {
      const std::uint64_t of = (rest & behind) != 0 ? rest & behind : rest;
      const std::uint64_t next = of & ~(of - 1);
      first |= next;
      rest &= ~next;
    }
    return first;
  }
  static unsigned count(std::uint64_t mask) {
    return mask == 0 ? 0 : static_cast<unsigned>(__builtin_popcountll(mask));
  }
  // One that is kept for the user, or one that nobody has and that is kept for nobody.
  bool has_port(std::uint64_t user) const { return seldom(kept_ != 0) ? has_port_beside_kept(user) : taken_ < ports_; }
  [[gnu::noinline]] bool has_port_beside_kept(std::uint64_t user) const {
    return (kept_ & user) != 0 || taken_ + count(kept_) < ports_;
  }
  [[gnu::noinline]] void wait(unsigned user) {
    if ((waiting_ & bit(user)) == 0) ++users_[user].waits;
    waiting_ |= bit(user);
    owner_.wake_next();
  }
  void take(unsigned user) {
    kept_ &= ~bit(user);
    ++taken_;
    last_ = user;
    ++users_[user].accesses;
  }
  // The first thing that happens in a cycle.
  void begin() {
    const cycle_t now = clock_.edge();
    if (at_ == now) return;
    kept_ = seldom(waiting_ != 0) ? waiting_of_last_cycle() : 0;
    at_ = now;
    taken_ = 0;
    waiting_ = 0;
  }
};

}  // namespace rnic::sim
