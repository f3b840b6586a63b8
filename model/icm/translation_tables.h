// SPDX-License-Identifier: Apache-2.0
// What of the protection table and the translations is on chip, and where the rest is.
#pragma once

#include <array>
#include <cstdint>

#include "model/icm/icm_map.h"
#include "model/icm/mpt.h"
#include "model/icm/tag_array.h"
#include "model/icm/translation_config.h"
#include "model/icm/translation_job.h"
#include "model/sim/clocked_block.h"
#include "model/sim/memory_ports.h"
#include "model/sim/statistics.h"

namespace rnic::icm {

/// Data sheet. Part of address translation.
///
/// Memories: decoded MPT entries, with `mpt_read_ports` to read: `look_up`, an entry a cycle, and `keys`, what the key
/// engine looks at, one a cycle; and `mpt_write_ports` to write: `fills`, what was fetched, and `keys`, what the key
/// engine reads and changes. Who is refused waits a cycle and is counted (mpt_reads.<user>.waits,
/// mpt_memory.<user>.waits). MTT lines, with `mtt_read_ports` to read, a line each: `look_up`, which reads a second one
/// where a request goes over the end of a line, in the next cycle where there is one port (mtt_reads.look_up.waits); a
/// line that was fetched for the request is not read. They have one port to write: no two fetches end in one cycle.
/// What firmware or an operation drops is found by a comparator at each entry and loses its valid bit: that takes no
/// port.
class translation_tables {
 public:
  enum writer : unsigned { by_fills, by_keys };          ///< of MPT entries on chip
  enum reader : unsigned { by_look_up, by_key_engine };  ///< of MPT entries; of MTT lines the first
  struct mtt_line {
    std::array<std::uint64_t, 8> entry{};
  };

  translation_tables(sim::clocked_block& owner, const translation_config& config, const icm_map& map);

  /// The tags are compared without a port; who uses what is found takes one.
  const mpt_entry* mpt(std::uint64_t slot) { return mpts_.find(slot); }
  const mtt_line* mtt(std::uint64_t line) { return mtts_.find(line); }
  sim::memory_ports& mpt_reads() { return mpt_reads_; }
  sim::memory_ports& mpt_writes() { return mpt_writes_; }
  sim::memory_ports& mtt_reads() { return mtt_reads_; }
  /// Writes what was fetched.
  void insert(const translation_fetch& f);
  /// Writes an entry, changed or read by the key engine.
  void replace(std::uint32_t slot, const mpt_entry& entry);
  void erase_mpts(std::uint64_t first, std::uint64_t last) { mpts_.erase(first, last); }
  void erase_mtts(std::uint64_t first, std::uint64_t last) { mtts_.erase(first, last); }

  std::uint32_t mpt_mask() const { return (std::uint32_t{1} << map_.layout(table::dmpt).log_entries) - 1; }
  std::uint32_t slot_of(std::uint32_t key) const { return key_to_index(key) & mpt_mask(); }
  unsigned log_line() const { return log_line_; }
  std::uint64_t line_of(std::uint64_t mtt_index) const { return mtt_index >> log_line_; }
  /// Bytes of a fetch, and where it reads. False: not mapped.
  std::uint32_t fetch_bytes(bool mpt) const { return mpt ? mpt_bytes : 8u << log_line_; }
  bool fetch_address(bool mpt, std::uint64_t line, std::uint64_t& bus) const;
  bool mtt_address(std::uint64_t mtt_address, std::uint64_t& bus) const;

  void announce(sim::statistics& to) const;

 private:
  const icm_map& map_;
  tag_array<mpt_entry> mpts_;
  tag_array<mtt_line> mtts_;
  unsigned log_line_ = 0;
  sim::memory_ports mpt_reads_, mpt_writes_, mtt_reads_;
};

}  // namespace rnic::icm
