// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/steps.h"

#include <set>

namespace rnic::replay {

std::vector<step> steps_of(const plan& p, std::size_t index) {
  const connection& c = p.connections[index];
  std::vector<step> steps;
  std::size_t message = 0;
  std::set<std::size_t> awaited;  // frames behind which receives are posted
  for (const receive_rule& r : c.receives.rules)
    if (r.after != no_frame) awaited.insert(r.after);
  for (const std::size_t i : c.order) {
    const captured_frame& f = p.frame(i);
    if (!f.from_held) {
      const auto ends = p.revoked.find(i);
      if (ends != p.revoked.end()) steps.push_back({step::kind::revoke, i, ends->second});
      const auto begins = p.installed.find(i);
      if (begins != p.installed.end()) steps.push_back({step::kind::install, i, begins->second.region});
      steps.push_back({step::kind::inject, i, 0});
      continue;
    }
    while (message < c.messages.size() && c.messages[message].first_frame <= i)
      steps.push_back({step::kind::post, i, message++});
    steps.push_back({step::kind::expect, i, 0});
    if (awaited.count(i) != 0) steps.push_back({step::kind::allow, i, 0});
  }
  return steps;
}

}  // namespace rnic::replay
