// SPDX-License-Identifier: Apache-2.0
// Misses of address translation: what is being fetched from ICM.
#pragma once

#include <cstdint>
#include <vector>

#include "model/icm/translation_config.h"
#include "model/icm/translation_control.h"
#include "model/icm/translation_job.h"
#include "model/icm/translation_tables.h"
#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/seldom.h"

namespace rnic::icm {

/// Data sheet. Part of address translation.
///
/// `fills` fetches at once, each a read of an MPT entry or of a line of MTT entries; who misses what is being fetched
/// already waits for the same one. `miss_cycles` after its arrival a fetch is written into the tables and given to who
/// waits. One that is dropped in between is used by nobody: who waits asks again.
///
/// Memory: `fills` buffers of 64 bytes, compared as a whole by each miss; the DMA engine writes them.
///
/// Stalls: all buffers are in use; no room in the channel to DMA; an entry that came waits for the port to write it; an
/// entry that is being written to ICM (locked) is not fetched.
///
/// Counters: mpt_misses, mtt_misses, merged, stale.
class translation_fetches {
 public:
  translation_fetches(sim::clocked_block& owner, const translation_config& config, pcie::dma_port& dma,
                      translation_tables& tables, translation_statistics& stats)
      : owner_(owner),
        dma_(dma),
        tables_(tables),
        stats_(stats),
        miss_cycles_(config.miss_cycles),
        fetches_(config.fills) {}

  bool none() const { return active_ == 0; }
  bool full() const { return active_ == fetches_.size(); }
  /// Job `j` in place `index` waits for the line from now on. done: there is nothing to fetch from.
  translation_step fetch(bool mpt, std::uint64_t line, translation_job& j, unsigned index, bool locked);
  /// What is being fetched of these is not used.
  void drop(bool mpt, std::uint64_t first, std::uint64_t last);

  /// To be called in each tick, before the look-up: `give(f, index)` to each job that waits for what has come.
  template <class Give>
  void take(Give give) {
    if (dma_.response.can_pop()) take_response();
    if (sim::mostly(arrived_ == 0)) return;
    for (translation_fetch& f : fetches_) {
      if (!f.active || !f.arrived || f.usable > owner_.now() || !may_finish(f)) continue;
      finish(f);
      for (std::uint64_t waiters = f.waiters; waiters != 0; waiters &= waiters - 1)
        give(f, static_cast<unsigned>(__builtin_ctzll(waiters)));
    }
  }

 private:
  void take_response();
  bool may_finish(const translation_fetch& f);
  void finish(translation_fetch& f);

  sim::clocked_block& owner_;
  pcie::dma_port& dma_;
  translation_tables& tables_;
  translation_statistics& stats_;
  const unsigned miss_cycles_;
  std::vector<translation_fetch> fetches_;
  unsigned active_ = 0, arrived_ = 0;
};

}  // namespace rnic::icm
