// SPDX-License-Identifier: Apache-2.0
#include "model/gid/gid_match.h"

namespace rnic::gid {

gid_match::gid_match(const match_config& cfg, const gid_table& entries)
    : config_(sim::checked(cfg, "adapter.gid")), entries_(entries), under_way_(std::size_t{cfg.compare_cycles} + 2) {}

unsigned gid_match::pass_cycles() const {
  return config_.method == match_method::parallel ? config_.compare_cycles : 1u + config_.probe_cycles;
}

gid_match_if::result gid_match::look_up(const wire::gid& dgid, roce_type type) {
  const auto index = entries_.match(dgid, type);
  if (config_.method == match_method::parallel) return {index, config_.compare_cycles, 1};
  const unsigned reading = entries_.probes(dgid, type, index) * config_.probe_cycles;
  return {index, 1 + reading, reading};
}

match_outputs gid_match::step(const match_inputs& in) {
  match_outputs out;
  out.ready = busy_ == 0;
  if (!under_way_.empty() && under_way_.front().left == 0) {
    const pending p = under_way_.pop();
    out.result_valid = true;
    out.hit = p.index.has_value();
    out.index = static_cast<std::uint8_t>(p.index.value_or(0));
  }
  if (busy_ != 0) --busy_;
  for (std::size_t i = 0; i < under_way_.size(); ++i) --under_way_[i].left;
  if (in.valid && out.ready) {
    const result r = look_up(in.dgid, in.type);
    under_way_.push({r.cycles - 1, r.index});
    busy_ = r.interval - 1;
  }
  return out;
}

void gid_match::reset() {
  under_way_.clear();
  busy_ = 0;
}

}  // namespace rnic::gid
