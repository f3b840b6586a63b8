// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/carrier_schedule.h"

#include <algorithm>

namespace rnic::fabric {

namespace {

/// The times at which it is dead, in order and apart from each other.
std::vector<std::pair<sim::time_ps, sim::time_ps>> dead_times(const std::vector<outage>& outages, unsigned port) {
  std::vector<std::pair<sim::time_ps, sim::time_ps>> all, joined;
  for (const outage& o : outages)
    for (std::uint64_t i = 0; (o.port == 0 || o.port == port) && i < o.times; ++i) {
      const sim::time_ps from = o.down_ps + i * o.every_ps;
      all.emplace_back(from, o.lasts_ps == outage::for_good ? ~sim::time_ps{0} : from + o.lasts_ps);
    }
  std::sort(all.begin(), all.end());
  for (const auto& [from, until] : all) {
    if (!joined.empty() && from <= joined.back().second)
      joined.back().second = std::max(joined.back().second, until);
    else
      joined.emplace_back(from, until);
  }
  return joined;
}

}  // namespace

carrier_schedule::carrier_schedule(const std::string& name, sim::clock_domain& domain, cable& on,
                                   const std::vector<outage>& outages, unsigned port)
    : clocked_block(name, domain), cable_(on) {
  for (const auto& [from, until] : dead_times(outages, port)) {
    changes_.push_back({from, false});
    if (until != ~sim::time_ps{0}) changes_.push_back({until, true});
  }
  if (!changes_.empty()) wake_at(domain.edge_at_or_after(changes_.front().at));
}

/// The cable takes what is in the future: the change is there an edge later than it was asked for at the soonest.
void carrier_schedule::tick() {
  for (; next_ != changes_.size() && changes_[next_].at <= now_ps(); ++next_)
    cable_.set_live(changes_[next_].live, domain().edge_time(now() + 1));
  if (next_ != changes_.size()) wake_at(domain().edge_at_or_after(changes_[next_].at));
}

}  // namespace rnic::fabric
