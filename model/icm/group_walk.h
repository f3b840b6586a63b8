// SPDX-License-Identifier: Apache-2.0
// The walk along a chain of the multicast group table.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"
#include "model/icm/icm_map.h"
#include "model/sim/clocked_block.h"
#include "model/sim/statistics.h"
#include "model/sim/types.h"

namespace rnic::icm {

/// Finds a group in the multicast group table (adapter control plane 4.18; data plane B.6): of RoCE, by its GID, or of
/// Ethernet, by an identifier made of an address. Part of the block that owns it, as its cache is: the block asks
/// inside its tick, one search at a time.
///
/// Data sheet. One read port of the table: an entry a cycle is read and compared, the first one in the cycle of begin()
/// at the earliest. A chain ends at the group, at an entry without a successor, at one that firmware has not written,
/// at one that cannot be read, or after `longest_chain` entries: a chain in host memory may be a ring.
///
/// Memories: group table in ICM behind a cache; a bit an entry on chip, whether firmware has written it since the
/// reset (one that it has not is empty, whatever is in host memory); the entry found. Stalled by: the fetch of an entry
/// that is not on chip.
class group_walk {
 public:
  static constexpr unsigned longest_chain = 64;
  enum class protocol : std::uint8_t { roce = 0, ethernet = 1 };
  enum class result : std::uint8_t {
    next,     ///< not this entry; the owner is ticked at the next edge for the one behind it
    waiting,  ///< for the entry; the owner is ticked when it is on chip
    found,    ///< members() are known
    absent,   ///< no such group, or it has no members
    endless   ///< the chain is too long
  };

  /// `name`: of the walk and its cache, for statistics and errors.
  group_walk(const std::string& name, sim::clocked_block& owner, const context_cache_config& cache, const icm_map& map,
             sim::statistics& stats);

  /// Its DMA port is to be bound.
  context_cache<multicast_group>& groups() { return groups_; }
  /// The owner calls it first in each tick.
  void service() { groups_.service(); }

  /// Begins a search and gives up one that is under way. `id`: 16 bytes.
  void begin(const std::uint8_t* id, protocol p);
  /// Goes on to the next entry, once a cycle, until the search has ended.
  result step();
  /// Of the group found, until the next begin(): words of its entry, queue pair number and flags.
  const std::vector<std::uint32_t>& members() const { return members_; }

  /// Firmware has written this entry: it is read again from ICM. Numbers beyond the table are ignored.
  void written(std::uint32_t index);
  /// log2 of the table's buckets; 1..16 are used.
  void set_hash_bits(unsigned bits) { hash_bits_ = bits; }
  unsigned hash_bits() const { return hash_bits_; }
  /// No entry is written any more, and no search is under way.
  void reset();

 private:
  bool is_match(const multicast_group& g) const;
  void take_members(const multicast_group& g);
  result end(result r);

  sim::clocked_block& owner_;
  const std::string name_;
  const icm_map& map_;
  context_cache<multicast_group> groups_;
  std::vector<bool> written_;
  unsigned hash_bits_ = 0;

  bool walking_ = false;
  std::array<std::uint8_t, 16> id_{};
  protocol protocol_ = protocol::roce;
  std::uint32_t index_ = 0;  // of the entry to be read
  unsigned steps_ = 0;
  sim::cycle_t read_at_ = sim::never;
  std::vector<std::uint32_t> members_;
  std::uint64_t searches_ = 0, entries_ = 0, found_ = 0, endless_ = 0;
};

/// Of a member's word: its queue pair number, and whether it does not want what its own port has sent.
inline constexpr std::uint32_t group_member_qpn = 0xffffff, group_member_no_loopback = 1u << 30;

}  // namespace rnic::icm
