// SPDX-License-Identifier: Apache-2.0
#include "model/transport/congestion/qcn_reaction_point.h"

#include <algorithm>
#include <limits>

namespace rnic::transport {

namespace {

constexpr std::uint32_t most_stages = std::numeric_limits<std::uint32_t>::max();
// 32.14: a target that is more than ten times the rate at the end of the first stage is too far away.
constexpr std::uint32_t far = 10, far_divisor = 8;

void step(std::uint32_t& stage) {
  if (stage != most_stages) ++stage;
}

}  // namespace

void qcn_reaction_point::begin(const qcn_group& g, std::uint32_t line_kbps, sim::time_ps now) {
  *this = {};
  ended_ = false;
  max_ = g.max_rate_mbps != 0
             ? static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{g.max_rate_mbps} * 1000, line_kbps))
             : line_kbps;
  current_ = target_ = max_;
  bytes_left_ = stage_bytes(g);
  next_increase_ = g.time_reset_us != 0 ? now + period(g) : never;
}

void qcn_reaction_point::notified(const qcn_group& g, std::uint8_t feedback, sim::time_ps now) {
  advance(g, now);
  ended_ = false;
  const bool by_bytes = byte_stage_ != 0;
  byte_stage_ = time_stage_ = 0;
  if (by_bytes) {
    target_ = current_;
    bytes_left_ = stage_bytes(g);
  }
  const std::uint64_t cut = g.gd < 32 ? std::uint64_t{current_} * feedback >> g.gd : 0;
  const std::uint64_t left = cut < current_ ? current_ - cut : 0;
  const std::uint64_t least = std::uint64_t{current_} * g.min_dec_percent / 100;
  const std::uint64_t floor = std::min<std::uint64_t>(std::uint64_t{g.min_rate_mbps} * 1000, current_);
  current_ = static_cast<std::uint32_t>(std::max({left, least, floor, std::uint64_t{1}}));
  next_increase_ = g.time_reset_us != 0 ? now + period(g) : never;
}

void qcn_reaction_point::sent(const qcn_group& g, std::uint32_t bytes, sim::time_ps now) {
  advance(g, now);
  if (g.byte_reset == 0) return;
  while (bytes >= bytes_left_ && !ended_) {
    bytes -= static_cast<std::uint32_t>(bytes_left_);
    step(byte_stage_);
    bytes_left_ = stage_bytes(g);
    increase(g, now);
  }
  bytes_left_ -= std::min<std::uint64_t>(bytes, bytes_left_);
}

void qcn_reaction_point::advance(const qcn_group& g, sim::time_ps now) {
  while (next_increase_ <= now && !ended_) {
    const sim::time_ps at = next_increase_;
    step(time_stage_);
    next_increase_ = at + period(g);
    increase(g, at);
  }
}

void qcn_reaction_point::increase(const qcn_group& g, sim::time_ps at) {
  const std::uint32_t later = std::max(byte_stage_, time_stage_), earlier = std::min(byte_stage_, time_stage_);
  const std::uint64_t more_mbps = earlier >= g.threshold ? std::uint64_t{g.hai_rate_mbps} * (earlier - g.threshold + 1)
                                  : later >= g.threshold ? g.ai_rate_mbps
                                                         : 0;
  const bool first_stage = byte_stage_ == 1 || time_stage_ == 1;
  if (first_stage && target_ / far > current_)
    target_ /= far_divisor;
  else
    target_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(target_ + more_mbps * 1000, max_));
  current_ = static_cast<std::uint32_t>((std::uint64_t{target_} + current_ + 1) / 2);
  if (current_ < max_) return;
  current_ = target_ = max_;
  ended_ = true;
  ended_at_ = at;
}

sim::time_ps qcn_reaction_point::period(const qcn_group& g) const {
  return g.time_reset_us * sim::ps_per_us / (time_stage_ < g.threshold ? 1 : 2);
}

std::uint64_t qcn_reaction_point::stage_bytes(const qcn_group& g) const {
  return std::max<std::uint64_t>(1, g.byte_reset / (byte_stage_ < g.threshold ? 1 : 2));
}

}  // namespace rnic::transport
