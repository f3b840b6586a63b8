// SPDX-License-Identifier: Apache-2.0
#include "host_driver/groups/memberships.h"

#include <algorithm>
#include <cerrno>

namespace rnic::host_driver::groups {

namespace {

constexpr std::uint64_t second = 1'000'000'000'000;
constexpr std::uint64_t usual_interval = 125 * second, usual_response = 10 * second;  // RFC 3376, 8.2, 8.3
constexpr std::uint64_t unsolicited = second, unsolicited_old = 10 * second;
constexpr unsigned usual_robustness = 2;

}  // namespace

memberships::memberships(const interface_addresses& own, frame_output_if& out, igmp_version version, std::uint64_t seed)
    : own_(own), out_(out), version_(version), random_(seed) {
  igmp_.query_interval_ps = mld_.query_interval_ps = usual_interval;
}

bool memberships::is_old(const protocol& p, std::uint64_t now_ps) const {
  if (&p == &igmp_ && version_ != igmp_version::by_querier) return version_ == igmp_version::v2;
  return now_ps < p.old_until_ps;
}

bool memberships::is_reported(const gid_bytes& group) {
  if (is_ipv4(group)) return group != ipv4_gid(0xe0000001);
  constexpr gid_bytes all_nodes{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return (group[1] & 0xf) >= 2 && group != all_nodes;
}

/// A random time up to this one.
std::uint64_t memberships::within(std::uint64_t ps) { return ps == 0 ? 0 : random_() % ps; }

/// The limit is one of what programs join; an address brings its group with it.
bool memberships::has_room_for(const gid_bytes& group) const {
  const auto of_an_address = [](const gid_bytes& g) {
    constexpr gid_bytes prefix{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
    return std::equal(prefix.begin(), prefix.begin() + 13, g.begin());
  };
  const auto counted =
      std::count_if(members_.begin(), members_.end(), [&](const auto& m) { return !of_an_address(m.first); });
  return of_an_address(group) || is_member(group) || static_cast<std::size_t>(counted) < most_groups;
}

int memberships::join(const gid_bytes& group, std::uint64_t now_ps) {
  if (!is_multicast(group)) return -EINVAL;
  if (!has_room_for(group)) return -ENOBUFS;
  member& m = members_[group];
  if (m.users++ != 0 || !is_reported(group)) return 0;
  announce(group, m, now_ps);
  tick(now_ps);
  return 0;
}

void memberships::announce(const gid_bytes& group, member& m, std::uint64_t now_ps) {
  protocol& p = of(group);
  p.left.erase(group);
  if (is_old(p, now_ps)) {
    m.unsolicited_left = usual_robustness;
    m.timer_ps = now_ps;
  } else {
    m.changes_left = p.robustness;
    announce_changes(p, now_ps);
  }
}

void memberships::report_again(std::uint64_t now_ps) {
  for (auto& [group, m] : members_)
    if (is_reported(group)) announce(group, m, now_ps);
  tick(now_ps);
}

int memberships::leave(const gid_bytes& group, std::uint64_t now_ps) {
  const auto at = members_.find(group);
  if (at == members_.end()) return -EADDRNOTAVAIL;
  if (--at->second.users != 0) return 0;
  const bool reporter = at->second.reporter;
  members_.erase(at);
  renounce(group, reporter, now_ps);
  tick(now_ps);
  return 0;
}

void memberships::leave_all(std::uint64_t now_ps) {
  std::map<gid_bytes, member> gone;
  gone.swap(members_);
  for (const auto& [group, m] : gone) renounce(group, m.reporter, now_ps);
  tick(now_ps);
}

/// `reporter`: of older versions only the last one to report says that it leaves (RFC 2236, 3).
void memberships::renounce(const gid_bytes& group, bool reporter, std::uint64_t now_ps) {
  if (!is_reported(group)) return;
  protocol& p = of(group);
  if (is_old(p, now_ps)) {
    if (reporter) send_old(old_message::leave, group);
    return;
  }
  p.left[group] = p.robustness;
  announce_changes(p, now_ps);
}

void memberships::announce_changes(protocol& p, std::uint64_t now_ps) {
  p.changes_left = p.robustness;
  start(p.change_ps, now_ps);
}

void memberships::send_records(const std::vector<record>& records) {
  if (records.empty()) return;
  for (const auto& frame : build_report(own_, records)) out_.transmit(frame.data(), frame.size());
  ++count_.reports;
}

void memberships::send_old(old_message what, const gid_bytes& group) {
  const auto frame = build_old(own_, what, group);
  out_.transmit(frame.data(), frame.size());
  ++(what == old_message::leave ? count_.leaves : count_.reports);
}

void memberships::send_changes(protocol& p) {
  std::vector<record> records;
  for (auto at = p.left.begin(); at != p.left.end();) {
    records.push_back({record_kind::to_include, at->first});
    at = --at->second == 0 ? p.left.erase(at) : std::next(at);
  }
  for (auto& [group, m] : members_) {
    if (&of(group) != &p || m.changes_left == 0) continue;
    records.push_back({record_kind::to_exclude, group});
    --m.changes_left;
  }
  send_records(records);
}

void memberships::send_current(protocol& p) {
  std::vector<record> records;
  for (const auto& [group, m] : members_)
    if (&of(group) == &p && is_reported(group)) records.push_back({record_kind::is_exclude, group});
  send_records(records);
}

/// The timer of one group.
void memberships::expire(const gid_bytes& group, member& m, std::uint64_t now_ps) {
  m.timer_ps = never;
  protocol& p = of(group);
  if (!is_old(p, now_ps)) return send_records({{record_kind::is_exclude, group}});
  if (m.unsolicited_left != 0 && --m.unsolicited_left != 0) m.timer_ps = now_ps + within(unsolicited_old);
  m.reporter = true;
  send_old(old_message::report, group);
}

void memberships::tick(std::uint64_t now_ps) {
  for (protocol* p : {&igmp_, &mld_}) {
    if (p->change_ps <= now_ps) {
      p->change_ps = never;
      send_changes(*p);
      if (p->changes_left != 0 && --p->changes_left != 0) p->change_ps = now_ps + within(unsolicited);
    }
    if (p->general_ps <= now_ps) {
      p->general_ps = never;
      send_current(*p);
    }
  }
  for (auto& [group, m] : members_)
    if (m.timer_ps <= now_ps) expire(group, m, now_ps);
}

std::uint64_t memberships::deadline_ps() const {
  std::uint64_t first = never;
  for (const protocol* p : {&igmp_, &mld_}) first = std::min({first, p->change_ps, p->general_ps});
  for (const auto& [group, m] : members_) first = std::min(first, m.timer_ps);
  return first;
}

void memberships::hear_query(const heard& q, std::uint64_t now_ps) {
  protocol& p = q.mld ? mld_ : igmp_;
  ++count_.queries;
  if (q.old && (q.mld || version_ == igmp_version::by_querier)) {
    p.old_until_ps = now_ps + p.robustness * p.query_interval_ps + usual_response;
    p.change_ps = p.general_ps = never;
    p.changes_left = 0;
    p.left.clear();
  }
  const bool old = is_old(p, now_ps);
  if (!q.old && !old) {
    p.robustness = std::max(q.robustness, usual_robustness);
    p.query_interval_ps = q.query_interval_ps != 0 ? q.query_interval_ps : usual_interval;
    if (!q.group) return start(p.general_ps, now_ps + within(q.max_response_ps));
  }
  for (auto& [group, m] : members_) {
    if (&of(group) != &p || (q.group && *q.group != group) || !is_reported(group)) continue;
    m.unsolicited_left = 0;
    start(m.timer_ps, now_ps + within(q.max_response_ps));
  }
}

bool memberships::receive(const std::uint8_t* frame, std::size_t length, std::uint64_t now_ps) {
  const auto what = parse(frame, length);
  if (!what) return false;
  if (what->vlan != own_.vlan) return true;
  if (!what->report) {
    hear_query(*what, now_ps);
    tick(now_ps);
    return true;
  }
  const auto at = members_.find(*what->group);
  if (at == members_.end() || !is_old(of(at->first), now_ps)) return true;
  ++count_.suppressed;
  at->second.timer_ps = never;
  at->second.unsolicited_left = 0;
  at->second.reporter = false;
  return true;
}

}  // namespace rnic::host_driver::groups
