// SPDX-License-Identifier: Apache-2.0
// What every channel between two blocks has, whatever it carries: a name, a width, and counts of its use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/sim/channel_look.h"
#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/hierarchy.h"
#include "model/sim/types.h"

namespace rnic::sim {

/// Bytes of a line of the cache of the machine that simulates: members that are used together lie in one.
constexpr std::size_t cache_line = 64;

/// How wide a channel is (law 16): so many items enter and leave it in a cycle.
struct channel_width {
  unsigned items = 1;
  /// More than that is counted (channel::usage::over) instead of being a broken invariant: for blocks whose circuit is
  /// not counted yet. The list of them in adapter/adapter.cpp only gets shorter.
  bool refuses = true;
};

/// When something that takes several cycles to pass can be taken out of a channel.
enum class forwarding : std::uint8_t {
  store_and_forward,  ///< when all of it is there
  cut_through         ///< when its first beat is; the others follow, one a cycle
};

/// Base of sim::fifo; its domain lists it (clock_domain::channels).
class channel : public hierarchy_object {
 public:
  struct usage {
    std::uint64_t pushes = 0;
    std::uint64_t full_cycles = 0;  ///< in which the producer could not have pushed
    std::size_t max_occupancy = 0;  ///< items, visible or not
    std::uint64_t over_pushes = 0;  ///< items beyond the width that entered in one cycle (width.refuses: none),
    std::uint64_t over_pops = 0;    ///< and that left in one
  };

  std::size_t depth() const { return depth_; }
  channel_width width() const { return width_; }
  virtual const usage& used() const = 0;
  /// What the producer keeps to.
  forwarding forwards() const { return forwards_; }
  void forward_by(forwarding f) { forwards_ = f; }
  std::uint64_t pushes() const { return used().pushes; }
  std::size_t max_occupancy() const { return used().max_occupancy; }
  clock_domain& domain() const { return domain_; }

  /// Tells of both ends, and of the fields of an item.
  virtual void describe(channel_reader_if& to) const = 0;
  /// An onlooker begins to look(). From now on the consumer is ticked for all that comes (fifo::set_quiet), which
  /// changes nothing but when it takes what it has waited for.
  void watch() {
    set_quiet(false);
    watched_ = true;
  }
  /// Behind an edge. The fields of the item in front are read to `front`, unless that is nullptr or there is none.
  virtual channel_state look(channel_reader_if* front) const = 0;
  virtual void set_quiet(bool quiet) { static_cast<void>(quiet); }

 protected:
  /// `name`: full name (see hierarchy_place).
  channel(const std::string& name, clock_domain& domain, std::size_t depth, channel_width width)
      : hierarchy_object(name, "fifo"), domain_(domain), depth_(depth), width_(width) {
    if (depth == 0 || width.items == 0) throw config_error(this->name() + ": depth and width must be at least 1");
    domain_.add(*this);
  }
  ~channel() override { domain_.remove(*this); }

  /// Of a block of this channel's domain.
  std::uint8_t place_of(const clocked_block& block) const {
    RNIC_ASSERT(&block.domain() == &domain_, name() + ": bound to " + block.name() + ", which has another clock");
    return static_cast<std::uint8_t>(block.place());
  }
  /// At such a place; nullptr for one that is not taken.
  const clocked_block* block_at(unsigned place) const { return domain_.block_at(place); }
  /// clocked_block::wake_at() of the block at `place` of `domain`.
  static void wake(clock_domain& domain, unsigned place, cycle_t when) { domain.wake_at(place, when); }
  /// One item more than the width in this cycle.
  void over(std::uint64_t& count, const char* what) {
    RNIC_ASSERT(!width_.refuses,
                this->name() + ": more than " + std::to_string(width_.items) + " " + what + " in a cycle");
    ++count;
  }

  clock_domain& domain_;
  std::size_t depth_;
  channel_width width_;
  forwarding forwards_ = forwarding::store_and_forward;
  bool watched_ = false;
};

}  // namespace rnic::sim
