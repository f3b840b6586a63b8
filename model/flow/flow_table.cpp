// SPDX-License-Identifier: Apache-2.0
#include "model/flow/flow_table.h"

#include <algorithm>
#include <utility>

#include "model/sim/check.h"

namespace rnic::flow {

flow_table_config::flow_table_config() = default;

flow_table::flow_table(const std::string& name, sim::clocked_block& owner, const flow_table_config& cfg,
                       sim::statistics& stats)
    : owner_(owner), name_(name), width_(sim::checked(cfg, name).compared_per_cycle), capacity_(cfg.rules) {
  members_.reserve(cr::max_members + cr::max_copies);
  copies_.reserve(cr::max_copies);
  const std::pair<const char*, const std::uint64_t*> named[] = {
      {"look_ups", &look_ups_}, {"matched", &matched_}, {"missed", &missed_}, {"words", &words_}, {"writes", &writes_}};
  for (const auto& [n, c] : named) stats.add(name_ + "." + n, *c);
}

void flow_table::begin(const flow_key& key, bool own) {
  if (std::exchange(write_waits_, false)) put();
  const auto used = static_cast<std::uint32_t>(rules_.size());
  const std::uint32_t words = std::max(1u, (used + width_ - 1) / width_);
  walking_ = true;
  ends_ = owner_.now() + words - 1;
  ++look_ups_;
  words_ += words;
  compare(key, own);  // writes wait, so it does not matter in which cycle a word is read
}

flow_table::result flow_table::step() {
  RNIC_ASSERT(walking_, name_ + ": no look-up is under way");
  if (owner_.now() < ends_) {
    owner_.wake_at(ends_);
    return result::waiting;
  }
  walking_ = false;
  if (std::exchange(write_waits_, false)) put();
  ++(found_ ? matched_ : missed_);
  return found_ ? result::found : result::absent;
}

bool flow_table::matches(const rule& r, const flow_key& key) {
  std::uint32_t differs = 0;
  for (unsigned w = 0; w < cr::key_words; ++w) differs |= (key[w] ^ r.value[w]) & r.mask[w];
  return r.valid && differs == 0;
}

void flow_table::compare(const flow_key& key, bool own) {
  std::uint64_t best = ~std::uint64_t{0};
  found_ = false;
  members_.clear();
  copies_.clear();
  for (const rule& r : rules_) {
    if (!matches(r, key)) continue;
    found_ = true;
    const bool copy = (r.member & cr::member_copy) != 0;
    if (!copy && r.rank > best) continue;
    if (!copy && r.rank < best) {
      best = r.rank;
      members_.clear();
    }
    if (own && (r.member & cr::member_no_loopback) != 0) continue;
    std::vector<std::uint32_t>& list = copy ? copies_ : members_;
    if (list.size() < (copy ? cr::max_copies : cr::max_members)) list.push_back(r.member & cr::member_qpn);
  }
  members_.insert(members_.end(), copies_.begin(), copies_.end());
}

void flow_table::put() {
  ++writes_;
  if (place_ >= rules_.size()) rules_.resize(place_ + 1);
  rules_[place_] = staged_;
  while (!rules_.empty() && !rules_.back().valid) rules_.pop_back();
}

std::uint32_t flow_table::cr_read(std::uint32_t offset) const {
  switch (offset) {
    case cr::rule_busy:
      return write_waits_ ? 1 : 0;
    case cr::capacity:
      return capacity_;
    case cr::enable:
      return enabled_ ? 1 : 0;
    default:
      return 0;
  }
}

void flow_table::cr_write(std::uint32_t offset, std::uint32_t value) {
  if (write_waits_) return;
  const std::uint32_t word = offset / 4;
  if (offset < cr::rule_mask) {
    staged_.value[word] = value;
    return;
  }
  if (offset < cr::rule_rank_high) {
    staged_.mask[word - cr::key_words] = value;
    return;
  }
  constexpr std::uint64_t low_half = 0xffff'ffff;
  switch (offset) {
    case cr::rule_rank_high:
      staged_.rank = (staged_.rank & low_half) | std::uint64_t{value} << 32;
      break;
    case cr::rule_rank_low:
      staged_.rank = (staged_.rank & ~low_half) | value;
      break;
    case cr::rule_member:
      staged_.member = value;
      break;
    case cr::rule_write:
      place_ = value & ~cr::rule_valid;
      if (place_ >= capacity_) break;
      staged_.valid = (value & cr::rule_valid) != 0;
      if (walking_)
        write_waits_ = true;
      else
        put();
      break;
    case cr::enable:
      if (enabled_ != (value != 0)) walking_ = false;
      enabled_ = value != 0;
      break;
    default:
      break;
  }
}

void flow_table::reset() {
  rules_.clear();
  staged_ = rule{};
  write_waits_ = walking_ = enabled_ = false;
  members_.clear();
}

}  // namespace rnic::flow
