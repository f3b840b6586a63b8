// SPDX-License-Identifier: Apache-2.0
// Which multicast groups a network interface is a member of, and how the network is told.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "host_driver/groups/messages.h"
#include "host_driver/neighbours.h"

namespace rnic::host_driver::groups {

/// Version of IGMP: as the querier's, or always this one (sysctl net.ipv4.conf.*.force_igmp_version 0, 2, 3).
enum class igmp_version : std::uint8_t { by_querier, v2, v3 };

/// A host's side of IGMP and MLD on one interface, as Linux has it (net/ipv4/igmp.c, net/ipv6/mcast.c): a join is
/// reported at once and once more within a second (IGMPv2 and MLDv1: ten), a leave likewise; queries are answered
/// within the time that they give, at a random moment. A querier of the older version is obeyed for 260 s after its
/// last query; a report of another host then stands for ours.
///
/// Software without time of its own: its owner says what time it is, and calls tick() when something is due. All groups
/// take what any source sends.
class memberships {
 public:
  /// net.ipv4.igmp_max_memberships.
  static constexpr std::size_t most_groups = 20;

  memberships(const interface_addresses& own, frame_output_if& out, igmp_version version = igmp_version::by_querier,
              std::uint64_t seed = 1);

  /// One more user of a group. 0; -EINVAL for what is none, -ENOBUFS when there are too many, beside those of the
  /// interface's own addresses (solicited-node). The groups of all hosts (224.0.0.1, ff02::1) and IPv6 groups of this
  /// interface only are not reported.
  int join(const gid_bytes& group, std::uint64_t now_ps);
  /// -EADDRNOTAVAIL: it is no member.
  int leave(const gid_bytes& group, std::uint64_t now_ps);
  /// The interface goes: it leaves all groups, in one report of each protocol. Who does not tick() afterwards says it
  /// once.
  void leave_all(std::uint64_t now_ps);
  /// The cable has another end: every group is reported as if it were joined now (net/ipv6/mcast.c:ipv6_mc_up).
  void report_again(std::uint64_t now_ps);
  bool is_member(const gid_bytes& group) const { return members_.count(group) != 0; }
  /// A frame that came to the interface. False: it is none of these protocols.
  bool receive(const std::uint8_t* frame, std::size_t length, std::uint64_t now_ps);
  /// Sends what is due.
  void tick(std::uint64_t now_ps);
  /// The next moment at which tick() has something to do; ~0: none.
  std::uint64_t deadline_ps() const;

  struct counters {
    std::uint64_t queries = 0, reports = 0, leaves = 0, suppressed = 0;
  };
  const counters& count() const { return count_; }

 private:
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  struct member {
    unsigned users = 0;
    unsigned changes_left = 0;      // reports of its joining, new versions
    unsigned unsolicited_left = 0;  // the same, old versions
    bool reporter = false;          // our report was the last one, old versions
    std::uint64_t timer_ps = never;
  };
  /// Of each of the two protocols.
  struct protocol {
    unsigned robustness = 2;
    std::uint64_t query_interval_ps, old_until_ps = 0;
    std::uint64_t change_ps = never, general_ps = never;  // timers of what is about several groups
    unsigned changes_left = 0;
    std::map<gid_bytes, unsigned> left;  // groups, and how often this is still to be said
  };

  protocol& of(const gid_bytes& group) { return is_ipv4(group) ? igmp_ : mld_; }
  bool is_old(const protocol& p, std::uint64_t now_ps) const;
  static bool is_reported(const gid_bytes& group);
  bool has_room_for(const gid_bytes& group) const;
  std::uint64_t within(std::uint64_t ps);
  void announce(const gid_bytes& group, member& m, std::uint64_t now_ps);
  void renounce(const gid_bytes& group, bool reporter, std::uint64_t now_ps);
  void announce_changes(protocol& p, std::uint64_t now_ps);
  void send_changes(protocol& p);
  void send_current(protocol& p);
  void send_records(const std::vector<record>& records);
  void send_old(old_message what, const gid_bytes& group);
  void expire(const gid_bytes& group, member& m, std::uint64_t now_ps);
  void hear_query(const heard& q, std::uint64_t now_ps);
  static void start(std::uint64_t& timer, std::uint64_t at_ps) { timer = std::min(timer, at_ps); }

  interface_addresses own_;
  frame_output_if& out_;
  igmp_version version_;
  std::mt19937_64 random_;
  protocol igmp_, mld_;
  std::map<gid_bytes, member> members_;
  counters count_;
};

}  // namespace rnic::host_driver::groups
