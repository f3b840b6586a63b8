// SPDX-License-Identifier: Apache-2.0
// DCQCN's reaction point: the rate of one flow after CNPs.
#include "model/transport/congestion/reaction_point.h"

#include <algorithm>
#include <limits>

namespace rnic::transport {

namespace {

constexpr unsigned alpha_bits = 30, unit_bits = 10;  // alpha_one = 2^30; parameters are in 1/1024
constexpr std::uint16_t last_stage = std::numeric_limits<std::uint16_t>::max();

void step(std::uint16_t& stage) {
  if (stage != last_stage) ++stage;
}

}  // namespace

void reaction_point::notified(const reaction_config& c, std::uint32_t line_kbps, sim::time_ps now) {
  if (!active_) return begin(c, line_kbps, now);
  advance(c, now);
  if (reduce_at_ != none) return;  // already waits for the end of the period
  const sim::time_ps allowed = reduced_ + c.reduce_period_us * sim::ps_per_us;
  if (now < allowed)
    reduce_at_ = allowed;
  else
    reduce(c, now);
}

void reaction_point::begin(const reaction_config& c, std::uint32_t line_kbps, sim::time_ps now) {
  active_ = true;
  max_ = c.max_rate_mbps != 0 ? c.max_rate_mbps * 1000 : line_kbps;
  current_ = target_ = max_;
  alpha_ = std::uint32_t{c.initial_alpha} << (alpha_bits - unit_bits);
  next_decay_ = now + 1;
  if (c.first_cnp_percent == 0) return reduce(c, now);
  current_ = static_cast<std::uint32_t>(std::uint64_t{max_} * c.first_cnp_percent / 100);
  restart(c, now);
}

// A CNP has its effect: rate down, alpha up, all recovery starts again.
void reaction_point::reduce(const reaction_config& c, sim::time_ps at) {
  decay(c, at);
  if (c.clamp_target || by_bytes_ || (by_timer_ && c.clamp_target_after_timer)) target_ = current_;
  const unsigned shift = alpha_bits - unit_bits + c.decrease_shift;
  const std::uint64_t cut = std::uint64_t{current_} * alpha_ >> shift;
  const std::uint64_t left = cut < current_ ? current_ - cut : 0;
  const std::uint64_t least = std::uint64_t{current_} * c.min_decrease_percent / 100;
  const std::uint64_t floor = std::min<std::uint64_t>(std::uint64_t{c.min_rate_mbps} * 1000, current_);
  current_ = static_cast<std::uint32_t>(std::max({left, least, floor}));
  alpha_ += static_cast<std::uint32_t>(std::uint64_t{alpha_one - alpha_} * c.gain_per_1024 >> unit_bits);
  restart(c, at);
}

void reaction_point::restart(const reaction_config& c, sim::time_ps at) {
  reduced_ = at;
  reduce_at_ = none;
  next_decay_ = at + c.alpha_timer_us * sim::ps_per_us;
  next_increase_ = at + c.increase_timer_us * sim::ps_per_us;
  bytes_left_ = c.byte_counter;
  time_stage_ = byte_stage_ = 0;
  by_bytes_ = by_timer_ = false;
}

void reaction_point::decay(const reaction_config& c, sim::time_ps now) {
  const sim::time_ps period = c.alpha_timer_us * sim::ps_per_us;
  for (; next_decay_ <= now && alpha_ != 0; next_decay_ += period)
    alpha_ = static_cast<std::uint32_t>(std::uint64_t{alpha_} * ((1u << unit_bits) - c.gain_per_1024) >> unit_bits);
}

void reaction_point::sent(const reaction_config& c, std::uint32_t bytes, sim::time_ps now) {
  if (!active_) return;
  advance(c, now);
  while (bytes >= bytes_left_) {
    bytes -= static_cast<std::uint32_t>(bytes_left_);
    bytes_left_ = c.byte_counter;
    step(byte_stage_);
    by_bytes_ = true;
    increase(c);
  }
  bytes_left_ -= bytes;
}

// Fast recovery, additive increase, hyper increase: by the stages that time and volume have reached (SIGCOMM'15,
// section 3, figure 7).
void reaction_point::increase(const reaction_config& c) {
  const std::uint64_t more = std::min(time_stage_, byte_stage_) > c.threshold   ? c.hyper_mbps
                             : std::max(time_stage_, byte_stage_) > c.threshold ? c.additive_mbps
                                                                                : 0;
  target_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(target_ + more * 1000, max_));
  current_ = static_cast<std::uint32_t>((std::uint64_t{target_} + current_ + 1) / 2);
}

// Timers that ran out up to `now`, in their order.
void reaction_point::advance(const reaction_config& c, sim::time_ps now) {
  if (!active_) return;
  for (;;) {
    const sim::time_ps end = std::min(now, reduce_at_);
    while (next_increase_ <= end) {
      if (current_ == max_ && target_ == max_) {
        rest_until(c, end);
        break;
      }
      next_increase_ += c.increase_timer_us * sim::ps_per_us;
      step(time_stage_);
      by_timer_ = true;
      increase(c);
    }
    if (reduce_at_ > now) return;
    reduce(c, reduce_at_);
  }
}

// At full rate the timer changes only its stage.
void reaction_point::rest_until(const reaction_config& c, sim::time_ps end) {
  const sim::time_ps period = c.increase_timer_us * sim::ps_per_us;
  const std::uint64_t rounds = (end - next_increase_) / period + 1;
  next_increase_ += rounds * period;
  time_stage_ = static_cast<std::uint16_t>(std::min<std::uint64_t>(time_stage_ + rounds, last_stage));
  by_timer_ = true;
}

}  // namespace rnic::transport
