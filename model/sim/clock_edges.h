// SPDX-License-Identifier: Apache-2.0
// Edges of a clock in time.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>

#include "model/sim/check.h"
#include "model/sim/seldom.h"
#include "model/sim/types.h"

namespace rnic::sim {

/// Exact division by a number that is known once and used often: a multiplication and a shift instead of a division in
/// every conversion between edges and time.
class fast_divider {
 public:
  /// Dividends are below this.
  static constexpr std::uint64_t limit = std::uint64_t{1} << 63;
  /// `divisor`: 1 to limit. With 2^shift the power of two that is not less, the factor 2^(63 + shift) / divisor,
  /// rounded up, fits into 64 bits, and is less than 2^shift / divisor too large: for no x below 2^63 that makes the
  /// quotient reach the next number.
  explicit fast_divider(std::uint64_t divisor = 1) {
    while ((std::uint64_t{1} << shift_) < divisor) ++shift_;
    factor_ = static_cast<std::uint64_t>(((wide{1} << (63 + shift_)) + divisor - 1) / divisor);
  }
  /// floor(x / divisor)
  std::uint64_t operator()(std::uint64_t x) const {
    return static_cast<std::uint64_t>((wide{2 * x} * factor_) >> 64) >> shift_;
  }

 private:
  __extension__ using wide = unsigned __int128;
  std::uint64_t factor_;
  unsigned shift_ = 0;
};

/// Period of a clock as a fraction of picoseconds: edge k is at phase_ps + floor(k * num_ps / den).
struct clock_period {
  std::uint64_t num_ps = 1000;
  std::uint64_t den = 1;
  std::uint64_t phase_ps = 0;
  static clock_period from_khz(std::uint64_t khz) { return {1'000'000'000, khz, 0}; }
};

/// Converts between edges and time, exactly.
class clock_edges {
 public:
  /// `name`: of the clock, for the error that its period is below 1 ps.
  clock_edges(const std::string& name, clock_period period) : period_(period) {
    if (period_.num_ps == 0 || period_.den == 0 || period_.num_ps / period_.den == 0)
      throw config_error(name + ": clock period must be at least 1 ps");
    // In lowest terms, so that edge * num_ps and time * den stay within 64 bits for long.
    const std::uint64_t common = std::gcd(period_.num_ps, period_.den);
    period_.num_ps /= common;
    period_.den /= common;
    by_num_ = fast_divider(period_.num_ps);
    by_den_ = fast_divider(period_.den);
    small_cycle_ = fast_divider::limit / period_.num_ps;
    small_time_ = (fast_divider::limit - period_.num_ps) / period_.den;
  }

  [[gnu::always_inline]] time_ps time(cycle_t k) const {
    return period_.phase_ps +
           (seldom(k >= small_cycle_) ? scale(k, period_.num_ps, period_.den) : by_den_(k * period_.num_ps));
  }
  /// The first edge that is not before `t`.
  cycle_t at_or_after(time_ps t) const { return t <= period_.phase_ps ? 0 : cycles(t - period_.phase_ps); }
  /// The last edge that is not after `t`; one less than edge 0 where there is none.
  cycle_t at_or_before(time_ps t) const {
    const cycle_t k = at_or_after(t);
    return k == 0 || time(k) == t ? k : k - 1;
  }
  /// Whole cycles that cover `duration`, rounded up.
  [[gnu::always_inline]] cycle_t cycles(time_ps duration) const {
    return seldom(duration >= small_time_) ? scale(duration, period_.den, period_.num_ps, period_.num_ps - 1)
                                           : by_num_(duration * period_.den + period_.num_ps - 1);
  }
  time_ps longest_cycle() const { return (period_.num_ps + period_.den - 1) / period_.den; }

 private:
  /// floor((x * by + and_more) / through), where x * by does not fit into 64 bits.
  [[gnu::noinline, gnu::cold]] static std::uint64_t scale(std::uint64_t x, std::uint64_t by, std::uint64_t through,
                                                          std::uint64_t and_more = 0) {
    __extension__ using wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<wide>(x) * by + and_more) / through);
  }

  clock_period period_;
  fast_divider by_num_, by_den_;
  cycle_t small_cycle_ = 0;  // up to here 64 bits are enough for the conversions: hours of simulated time
  time_ps small_time_ = 0;
};

}  // namespace rnic::sim
