// SPDX-License-Identifier: Apache-2.0
// Which function has which object, and how many it may have.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "host_driver/resources.h"
#include "model/abi/contexts.h"

namespace rnic::host_driver {

/// Kinds beside those that are allocated by number.
inline constexpr unsigned resource_kinds = 12;
inline constexpr auto resource_eq = static_cast<resource>(8), resource_flow = static_cast<resource>(10),
                      resource_member = static_cast<resource>(11);

/// The entry in which a buffer's translations begin.
constexpr std::uint32_t mtt_entry_of(std::uint64_t mtt_address) {
  return static_cast<std::uint32_t>(mtt_address / abi::mtt::bytes);
}

/// What the physical function's driver knows of the virtual ones' objects (net/resource_tracker.c). An object is
/// reserved (software's) or with hardware. Event queues, MAC addresses and VLANs have the function in their number;
/// memberships of groups have numbers of this class's own.
///
/// What an object needs with hardware (a queue pair its completion queues, everything its translations) it holds: that
/// is not given back before, so that no number of it becomes another function's while hardware has it
/// (resource_tracker.c: ref_count).
class resource_tracker {
 public:
  /// GID of a group, or what stands for a group address in such tables.
  using group_name = std::array<std::uint8_t, 16>;
  struct object {
    std::uint16_t function = 0;
    bool with_hardware = false;
    bool counted = true;         ///< in what the function has; false: its from the beginning
    unsigned order = 0;          ///< mtt: 2^order entries from its number on
    unsigned users = 0;          ///< mac, vlan: registrations of the function
    std::uint32_t qpn = 0;       ///< flow steering rule, membership: where it leads; queue pair: as hardware knows it
    std::uint8_t port = 0;       ///< qp: of its path, from 1; 0: it has none yet
    unsigned service = 0;        ///< qp: of its first command, which is hardware's from then on
    group_name group{};          ///< membership: of this group
    std::uint32_t protocol = 0;  ///< the same: of this kind
    unsigned holders = 0;        ///< objects that need it
    std::vector<std::pair<resource, std::uint32_t>> holds;
    /// Flow steering rule, where ports may be mirrored: its mailbox, for the other port, and the twin's number there.
    std::vector<std::uint8_t> mailbox;
    std::uint32_t mirror = 0;
  };
  using quotas = std::array<std::uint32_t, resource_kinds>;

  /// Of each of functions 1 to `functions`.
  void start(unsigned functions, const quotas& most);
  /// Of one of them alone.
  void limit(unsigned function, const quotas& most) { most_[function] = most; }
  const quotas& most(unsigned function) const { return most_[function]; }
  /// mtt: in entries, else in objects.
  std::uint32_t used(unsigned function, resource what) const { return used_[function][index(what)]; }
  bool has_room(unsigned function, resource what, std::uint32_t more) const {
    return used_[function][index(what)] + more <= most_[function][index(what)];
  }

  object& add(unsigned function, resource what, std::uint32_t number, unsigned order = 0);
  /// One that is not counted (a proxy).
  object& add_special(unsigned function, resource what, std::uint32_t number);
  /// The function's object of this number; nullptr: it has none.
  object* find(unsigned function, resource what, std::uint32_t number);
  bool has(unsigned function, resource what, std::uint32_t number) const;
  /// The lowest number from `first` on that no function has, or `end`.
  std::uint32_t first_free(resource what, std::uint32_t first, std::uint32_t end) const;
  void remove(resource what, std::uint32_t number);
  /// Numbers of the function's objects.
  std::vector<std::uint32_t> of(unsigned function, resource what) const;
  /// Of a flow steering rule that somebody has.
  std::uint32_t qpn_of(std::uint32_t flow) const { return objects_[index(resource_flow)].at(flow).qpn; }
  /// A membership of a group, or the number of one that there is; 0: none.
  object& add_member(unsigned function, std::uint32_t qpn, const group_name& group);
  std::uint32_t member(unsigned function, std::uint32_t qpn, const group_name& group) const;

  /// `by` needs the function's object of that number from now on; mtt: that in which the entry lies.
  void hold(object& by, resource what, std::uint32_t number);
  /// It needs nothing more, or nothing of this kind. What is removed neither.
  void release(object& by);
  void release(object& by, resource what);

  /// The mtt object of the function in which [first, first + count) lies whole.
  bool has_mtts(unsigned function, std::uint64_t first, std::uint64_t count) const;

 private:
  static constexpr unsigned index(resource what) { return static_cast<unsigned>(what); }

  std::vector<quotas> most_;                                     // by function
  std::vector<std::array<std::uint32_t, resource_kinds>> used_;  // by function
  std::array<std::map<std::uint32_t, object>, resource_kinds> objects_;
  std::uint32_t last_member_ = 0;
};

}  // namespace rnic::host_driver
