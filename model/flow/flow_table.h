// SPDX-License-Identifier: Apache-2.0
// The table of flow steering rules, and the look-up in it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/flow/flow_cr.h"
#include "model/flow/flow_key.h"
#include "model/sim/clocked_block.h"
#include "model/sim/parameter.h"
#include "model/sim/statistics.h"
#include "model/sim/types.h"

namespace rnic::flow {

struct flow_table_config {
  flow_table_config();

  /// A rule is 73 bytes: value and mask of a key, rank, member.
  sim::parameter<unsigned> rules{2048, {1, 65536, "rules", "design: 150 KB on chip"}};
  sim::parameter<unsigned> compared_per_cycle{
      16, {1, 4096, "rules", "design: comparators, and the rules that a word of the memory has"}};

  void list(sim::fields& are) {
    are("rules", rules);
    are("compared_per_cycle", compared_per_cycle);
  }
};

/// Finds the rules that a packet matches (device-managed flow steering; adapter control plane 4.19). Part of the block
/// that owns it, as its comparators are: the block asks inside its tick, one look-up at a time.
///
/// A rule is a ternary word, a rank and a member. It matches a key when all bits under its mask are equal. Of those
/// that match, the lowest rank decides: its members get the packet, in the order of their places, and those with
/// member_copy whatever the rank. What ranks mean (priorities, queue order, default rules behind all others) is
/// firmware's.
///
/// Data sheet. One memory of `rules` places, `compared_per_cycle` of them in a word, one read port and one write port;
/// as many comparators; a register with the best rank so far; a list of max_members places and one of max_copies, each
/// with as many write ports as there are comparators. A word with a rank better than the register's empties the former.
///
/// A look-up reads a word a cycle, from place 0 to the last valid one, the first one in the cycle of begin() at the
/// earliest, and ends in the cycle of the last one; one in an empty table takes a cycle too. Nothing stalls it. A write
/// to a place that comes during a look-up waits for its end, so that a look-up sees the table as it was when it began:
/// rules come and go as wholes, and in the order in which firmware has changed them.
class flow_table {
 public:
  enum class result : std::uint8_t {
    waiting,  ///< the owner is ticked when there is more to say
    found,    ///< members() are known; the loopback filter may have left none
    absent    ///< no rule matches
  };

  /// `name`: for statistics and errors.
  flow_table(const std::string& name, sim::clocked_block& owner, const flow_table_config& cfg, sim::statistics& stats);

  bool enabled() const { return enabled_; }
  /// Begins a look-up and gives up one that is under way. `own`: this port has sent the packet itself.
  void begin(const flow_key& key, bool own);
  result step();
  /// Queue pair numbers, those with member_copy behind the others; until the next begin().
  const std::vector<std::uint32_t>& members() const { return members_; }

  /// Registers: flow_cr.h.
  std::uint32_t cr_read(std::uint32_t offset) const;
  void cr_write(std::uint32_t offset, std::uint32_t value);
  /// No rules, not enabled, and no look-up is under way.
  void reset();

 private:
  struct rule {
    flow_key value{}, mask{};
    std::uint64_t rank = 0;
    std::uint32_t member = 0;
    bool valid = false;
  };
  static bool matches(const rule& r, const flow_key& key);
  void compare(const flow_key& key, bool own);
  void put();

  sim::clocked_block& owner_;
  const std::string name_;
  const unsigned width_;
  const unsigned capacity_;
  std::vector<rule> rules_;  // up to the last valid one
  rule staged_;
  std::uint32_t place_ = 0;  // of the write that waits
  bool write_waits_ = false, enabled_ = false;
  // The look-up under way
  bool walking_ = false, found_ = false;
  sim::cycle_t ends_ = 0;
  std::vector<std::uint32_t> members_, copies_;
  std::uint64_t look_ups_ = 0, matched_ = 0, missed_ = 0, words_ = 0, writes_ = 0;
};

}  // namespace rnic::flow
