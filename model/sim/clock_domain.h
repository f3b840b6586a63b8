// SPDX-License-Identifier: Apache-2.0
// A clock: period, phase and the blocks that it ticks.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/hierarchy.h"
#include "model/sim/types.h"

namespace rnic::sim {

class channel;
class clocked_block;
class memory_ports;
class server;
class timebase;

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

/// Ticks blocks only at edges for which they asked; costs nothing while all of them sleep. At most 64 blocks.
class clock_domain : public hierarchy_object {
 public:
  clock_domain(const std::string& name, timebase& base, clock_period period);
  ~clock_domain() override;
  clock_domain(const clock_domain&) = delete;
  clock_domain& operator=(const clock_domain&) = delete;

  timebase& base() const { return base_; }

  cycle_t now() const { return serving_ ? served_ : passed_edge(); }
  time_ps now_ps() const { return serving_ ? served_ps_ : passed_edge_ps(); }
  time_ps edge_time(cycle_t k) const {
    return period_.phase_ps + (k < small_cycle_ ? by_den_(k * period_.num_ps) : scale(k, period_.num_ps, period_.den));
  }
  /// The first edge that is not before `t`.
  cycle_t edge_at_or_after(time_ps t) const { return t <= period_.phase_ps ? 0 : cycles(t - period_.phase_ps); }
  /// Whole cycles that cover `duration`, rounded up.
  cycle_t cycles(time_ps duration) const {
    return duration < small_time_ ? by_num_(duration * period_.den + period_.num_ps - 1)
                                  : scale(duration, period_.den, period_.num_ps, period_.num_ps - 1);
  }

  /// What is at least so far apart in time is not due at the same edge.
  time_ps longest_cycle() const { return (period_.num_ps + period_.den - 1) / period_.den; }

  /// Edges at which at least one block was ticked, and ticks in all.
  std::uint64_t active_edges() const { return active_edges_; }
  std::uint64_t ticks() const { return ticks_; }
  /// The channels of this domain, in order of construction.
  const std::vector<channel*>& channels() const { return channels_; }
  /// The engines of its blocks, in order of construction.
  const std::vector<server*>& servers() const { return servers_; }
  /// The counted ports of its blocks' memories, in order of construction.
  const std::vector<memory_ports*>& memories() const { return memories_; }

 private:
  friend class channel;
  friend class clocked_block;
  friend class memory_ports;
  friend class server;
  friend class timebase;
  static constexpr unsigned max_blocks = 64;
  static constexpr unsigned wheel_size = 512;
  struct far_wake {
    cycle_t when;
    unsigned id;  ///< of the block
  };

  void add(clocked_block& block);
  void remove(clocked_block& block);
  void add(channel& c) { channels_.push_back(&c); }
  void remove(channel& c);
  void add(server& s) { servers_.push_back(&s); }
  void remove(server& s);
  void add(memory_ports& m) { memories_.push_back(&m); }
  void remove(memory_ports& m);
  // Outside of an edge, which is seldom: the way of a tick stays short where these are inlined.
  [[gnu::noinline, gnu::cold]] cycle_t passed_edge() const;  // last edge that is not in the future
  [[gnu::noinline, gnu::cold]] time_ps passed_edge_ps() const { return edge_time(passed_edge()); }
  void wake_at(unsigned id, cycle_t when) {
    if (serving_) {  // serve() looks for the next edge when it is done
      const cycle_t ahead = when - served_ - 1;
      if (ahead == 0) {
        soon_ |= std::uint64_t{1} << id;
        return;
      }
      if (ahead < wheel_size - 1) return mark(id, when);
    }
    wake_slow(id, when);
  }
  [[gnu::noinline]] void wake_slow(unsigned id, cycle_t when);
  void keep_far(unsigned id, cycle_t when);
  std::uint64_t take_far();
  void mark(unsigned id, cycle_t when) {
    const auto slot = static_cast<unsigned>(when % wheel_size);
    wheel_[slot] |= std::uint64_t{1} << id;
    used_[slot / 64] |= std::uint64_t{1} << (slot % 64);
    used_words_ |= std::uint64_t{1} << (slot / 64);
  }
  std::uint64_t take_slot(unsigned slot);  // the blocks of a slot, which is empty then
  template <unsigned Id>
  static void tick_one(clock_domain& d);
  template <std::size_t... Id>
  static constexpr auto ticks_of(std::index_sequence<Id...>);
  void serve(time_ps now);  // called by the timebase at its next edge
  void find_next();
  /// floor((x * by + and_more) / through), where x * by does not fit into 64 bits.
  static std::uint64_t scale(std::uint64_t x, std::uint64_t by, std::uint64_t through, std::uint64_t and_more = 0);
  void set_next(cycle_t edge);

  timebase& base_;
  std::size_t index_ = 0;  // in the timebase
  clock_period period_;
  fast_divider by_num_, by_den_;
  cycle_t small_cycle_ = 0;  // up to here 64 bits are enough for the conversions: hours of simulated time
  time_ps small_time_ = 0;
  cycle_t served_ = never;  // last edge served or passed in sleep; `never` is the edge before edge 0
  time_ps served_ps_ = 0;
  cycle_t next_ = never;
  time_ps* next_edge_ = nullptr;  // time of next_, which the timebase keeps
  bool serving_ = false;
  std::uint64_t active_edges_ = 0;
  std::uint64_t ticks_ = 0;
  std::uint64_t soon_ = 0;  // blocks to tick at the edge after the served one, beside those in the wheel
  cycle_t far_min_ = never;
  std::uint64_t forced_ = 0;                           // always_tick: all blocks, at each edge
  std::uint64_t used_words_ = 0;                       // which words of used_ are not zero, and
  std::array<std::uint64_t, wheel_size / 64> used_{};  // which wheel slots are not empty
  std::array<std::uint64_t, wheel_size> wheel_{};      // blocks to tick, by edge modulo the size
  std::array<clocked_block*, max_blocks> blocks_{};
  std::uint64_t all_ = 0;                     // mask of registered blocks
  std::vector<far_wake> far_;                 // wake-ups beyond the wheel, each once, the earliest first,
  std::size_t far_head_ = 0;                  // which is here: those before it are done
  std::array<cycle_t, max_blocks> last_far_;  // per block the last one that was asked for, while it is there
  std::vector<channel*> channels_;
  std::vector<server*> servers_;
  std::vector<memory_ports*> memories_;
};

}  // namespace rnic::sim
