// SPDX-License-Identifier: Apache-2.0
// Strict, round robin and ETS choice among the egress queues.
#include "model/mac/egress.h"

#include <algorithm>
#include <utility>

#include "model/sim/seldom.h"

namespace rnic::mac {

egress::egress(std::size_t frames_per_priority) : queues_(8, sim::ring<entry>(frames_per_priority)) {}

void egress::push(payload::frame_ptr frame, sim::time_ps now) {
  const unsigned priority = frame->priority & 7u;
  queues_[priority].push({std::move(frame), now});
  waiting_ = static_cast<std::uint8_t>(waiting_ | 1u << priority);
}

egress::entry egress::pop(unsigned priority) {
  entry e = queues_[priority].pop();
  if (queues_[priority].empty()) waiting_ = static_cast<std::uint8_t>(waiting_ & ~(1u << priority));
  return e;
}

unsigned egress::pick(std::uint8_t ready) {
  switch (mode) {
    case arbitration::strict:
      return 31u - static_cast<unsigned>(__builtin_clz(ready));
    case arbitration::round_robin:
      break;
    case arbitration::ets:
      return pick_ets(ready);
  }
  return static_cast<unsigned>(turn_.pick(ready));
}

/// Start-time fair queueing: of the first group's classes the one whose virtual time is least; a class that comes back
/// from idleness starts at the group's present virtual time, so it cannot claim the past.
unsigned egress::pick_ets(std::uint8_t ready) {
  std::uint16_t group = 0xffff;
  for (unsigned p = 0; p < 8; ++p)
    if ((ready >> p) & 1) group = std::min(group, classes[traffic_class(p)].group);
  std::uint64_t& clock = clock_[group % 8];
  std::uint64_t least = ~std::uint64_t{0};
  unsigned best = 0;
  for (unsigned p = 0; p < 8; ++p) {
    const unsigned tc = traffic_class(p);
    if (((ready >> p) & 1) == 0 || classes[tc].group != group) continue;
    const std::uint64_t start = std::max(finish_[tc], clock);
    if (start < least) least = start, best = tc;
  }
  std::uint8_t members = 0;
  for (unsigned p = 0; p < 8; ++p)
    if (((ready >> p) & 1) != 0 && traffic_class(p) == best) members = static_cast<std::uint8_t>(members | 1u << p);
  const auto priority = static_cast<unsigned>(turns_of_class_[best].pick(members));
  const std::uint64_t weight = std::max<std::uint16_t>(classes[best].bandwidth, 1);
  clock = least;
  finish_[best] = least + static_cast<std::uint64_t>(head(priority).frame->length) * 1024 / weight;
  return priority;
}

void egress::set_share(unsigned tc, std::uint16_t group, std::uint16_t bandwidth) {
  classes[tc].group = group;
  classes[tc].bandwidth = bandwidth;
  finish_.fill(0);  // virtual times of one group mean nothing in another
  clock_.fill(0);
}

void egress::limit(unsigned tc, std::uint32_t mbps) {
  classes[tc].max_mbps = mbps;
  next_[tc] = 0;
  limited_ = std::any_of(classes.begin(), classes.end(), [](const share& s) { return s.max_mbps != 0; });
}

std::uint8_t egress::held(sim::time_ps now) const {
  if (sim::mostly(!limited_)) return 0;
  unsigned mask = 0;
  for (unsigned p = 0; p < 8; ++p)
    if (next_[traffic_class(p)] > now) mask |= 1u << p;
  return static_cast<std::uint8_t>(mask);
}

sim::time_ps egress::first_held_until(sim::time_ps now) const {
  sim::time_ps first = ~sim::time_ps{0};
  for (unsigned left = waiting_ & held(now); left != 0; left &= left - 1)
    first = std::min(first, next_[traffic_class(static_cast<unsigned>(__builtin_ctz(left)))]);
  return first;
}

void egress::started(unsigned priority, std::uint64_t line_bytes, sim::time_ps start, sim::time_ps excused) {
  constexpr std::uint64_t mbps_ps_per_byte = 8 * sim::ps_per_us;
  const unsigned tc = traffic_class(priority);
  if (sim::mostly(!limited_) || classes[tc].max_mbps == 0) return;
  const sim::time_ps from = start <= next_[tc] + excused ? next_[tc] : start;
  next_[tc] = from + line_bytes * mbps_ps_per_byte / classes[tc].max_mbps;
}

}  // namespace rnic::mac
