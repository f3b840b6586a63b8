// SPDX-License-Identifier: Apache-2.0
// Parameters of address translation.
#pragma once

#include "model/icm/key_engine.h"
#include "model/icm/replacement.h"
#include "model/sim/parameter.h"

namespace rnic::icm {

struct translation_config {
  /// Cycles from a request to its answer on a hit.
  sim::parameter<unsigned> translate_cycles{4, {1, sim::many, "cycles", "design: two table reads"}};
  /// Decoded MPT entries on chip.
  sim::parameter<unsigned> mpt_entries{128, {1, sim::many, "entries", "calibration 7.4: knee at 100 regions"}};
  sim::parameter<unsigned> mpt_ways{4, {1, 64, "ways", "design"}};  ///< associativity
  /// Of them so many are read in a cycle: one by the look-up, one by an operation on keys.
  sim::parameter<unsigned> mpt_read_ports{2, {1, 8, "entries", "design: read a cycle, by look-up and key engine"}};
  /// Of them so many are written in a cycle: fetched ones, and those that an operation on keys changes.
  sim::parameter<unsigned> mpt_write_ports{1, {1, 8, "entries", "design: written a cycle"}};
  /// Page translations on chip.
  sim::parameter<unsigned> mtt_entries{2816, {1, sim::many, "entries", "calibration 7.4: 2000 to 2800"}};
  sim::parameter<unsigned> mtt_ways{11, {1, 64, "ways", "calibration 7.4"}};  ///< associativity: 32 sets of lines
  /// Of their lines so many are read in a cycle: one, or the two of a request that goes over the end of a line.
  sim::parameter<unsigned> mtt_read_ports{2, {1, 8, "lines", "design: read a cycle, lines of even and of odd number"}};
  /// Entries fetched by one miss: 1, 2, 4 or 8.
  sim::parameter<unsigned> mtt_line_entries{8, {1, 8, "entries", "design: 64-byte line of the host"}};
  sim::parameter<unsigned> fills{16, {1, 64, "misses", "calibration 7.4"}};  ///< misses under way at once
  sim::parameter<unsigned> waiting{64, {1, 64, "requests", "design"}};       ///< requests inside the block
  /// Cycles from the arrival of fetched data to its use.
  sim::parameter<unsigned> miss_cycles{60, {0, sim::many, "cycles", "calibration 5: 475 ns, of which a DMA read 330"}};
  sim::parameter<replacement> policy{replacement::lru, {replacement_names, "design"}};  ///< of both caches
  key_engine_config keys;                                                               ///< operations on keys

  void list(sim::fields& are) {
    are("translate_cycles", translate_cycles);
    are("mpt_entries", mpt_entries);
    are("mpt_ways", mpt_ways);
    are("mpt_read_ports", mpt_read_ports);
    are("mpt_write_ports", mpt_write_ports);
    are("mtt_entries", mtt_entries);
    are("mtt_ways", mtt_ways);
    are("mtt_read_ports", mtt_read_ports);
    are("mtt_line_entries", mtt_line_entries);
    are("fills", fills);
    are("waiting", waiting);
    are("miss_cycles", miss_cycles);
    are("replacement", policy);
    are("keys", keys);
  }
};

}  // namespace rnic::icm
