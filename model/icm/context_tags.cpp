// SPDX-License-Identifier: Apache-2.0
#include "model/icm/context_tags.h"

#include <utility>

#include "model/sim/check.h"

namespace rnic::icm {

context_tags::context_tags(const std::string& name, const context_cache_config& config)
    : ways_(config.ways), policy_(config.policy), keys_(config.entries, no_key), slots_(config.entries) {
  const unsigned sets = config.entries / config.ways;
  if (config.entries % config.ways != 0 || (sets & (sets - 1)) != 0)
    throw sim::config_error(name + ".entries, .ways: entries / ways must be a power of two");
  set_mask_ = sets - 1;
}

unsigned context_tags::choose(std::uint32_t key) const {
  const unsigned first = first_way(key);
  for (unsigned s = first; s != first + ways_; ++s)
    if (slots_[s].is == state::empty) return s;
  const bool random = policy_ == replacement::random;
  const unsigned offset = random ? random_.value() : 0;
  const auto rank = [&](unsigned s) { return std::make_pair(slots_[s].fresh, random ? 0 : slots_[s].used); };
  unsigned best = none;
  for (unsigned i = 0; i != ways_; ++i) {
    const unsigned s = first + (i + offset) % ways_;
    const slot& c = slots_[s];
    if (c.is == state::failed) return s;
    if (c.is != state::valid || c.pins != 0) continue;
    if (best == none || rank(s) < rank(best)) best = s;
  }
  return best;
}

void context_tags::start_fill(unsigned s, std::uint32_t key, unsigned fill) {
  keys_[s] = key;
  slots_[s] = slot{};
  slots_[s].is = state::filling;
  slots_[s].fill = static_cast<std::uint16_t>(fill);
  random_.step();
}

void context_tags::end_fill(unsigned s, bool failed) {
  slots_[s].is = failed ? state::failed : state::valid;
  slots_[s].fresh = true;
  slots_[s].used = ++uses_;
}

void context_tags::clear(unsigned s) {
  keys_[s] = no_key;
  slots_[s] = slot{};
}

bool context_tags::crowded(std::uint32_t key) const {
  const unsigned first = first_way(key);
  unsigned taken = 2;
  for (unsigned s = first; s != first + ways_; ++s) {
    const slot& c = slots_[s];
    const bool stays = c.is == state::filling || (c.is == state::valid && c.pins != 0);
    if (stays && keys_[s] != key) ++taken;
  }
  return taken > ways_;
}

}  // namespace rnic::icm
