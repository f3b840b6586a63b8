// SPDX-License-Identifier: Apache-2.0
// Memory protection and address translation: MPT and MTT caches in front of ICM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/icm/icm_map.h"
#include "model/icm/key_access.h"
#include "model/icm/key_engine.h"
#include "model/icm/translation_answers.h"
#include "model/icm/translation_config.h"
#include "model/icm/translation_control.h"
#include "model/icm/translation_fetches.h"
#include "model/icm/translation_if.h"
#include "model/icm/translation_job.h"
#include "model/icm/translation_tables.h"
#include "model/pcie/dma_if.h"
#include "model/sim/arbiter.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/server.h"
#include "model/sim/statistics.h"

namespace rnic::icm {

/// Data sheet.
///
/// Answers translate_requests of up to 64 clients, one look-up a cycle, round robin; requests that wait for a fetch do
/// not hold up others, but one for an entry that is on its way to ICM, which is looked up again, before all others, in
/// each cycle in which a fetch could begin, until the write is done. Entries are read from the dMPT and MTT tables in
/// ICM in the published layouts (adapter data plane A.11). Misses of one line are merged. Only operations on keys
/// change entries, on chip and in ICM at once.
///
/// Parts, each with a data sheet of its own: `translation_tables` (entries and lines on chip, their ports),
/// `translation_fetches` (misses), `translation_answers`, `key_engine` with its parts. The block has the requests
/// inside (`waiting` places) and the look-up, one a cycle; the region below a window is looked up in the cycle behind
/// that of the window.
///
/// In a cycle: answers that have waited, fetches (what has come, in the order of buffers), the look-up (what has waited
/// before new requests, the oldest first), the key engine. A request is answered when no fetch that knows its place is
/// open. release_window and revoke_key share a register: a second one before the first is taken takes its place.
///
/// The look-up is blocked by "memory", when all fetches or all places are waiting for it, by "dma", which takes no
/// fetch, and by "clients", who take no answers and have all places.
class translation : public sim::clocked_block, public translation_control_if {
 public:
  translation(std::string name, sim::clock_domain& domain, const translation_config& config, const icm_map& map,
              unsigned clients);

  /// Ports, to be bound by the adapter: client n asks on request[n] and is answered on response[n].
  std::vector<sim::fifo_in<translate_request>> request;
  std::vector<sim::fifo_out<translate_response>> response;
  pcie::dma_port dma;
  /// Operations on keys (key_operation_if.h) have ports of their own.
  key_engine& keys() { return keys_; }

  void drop_mpt(std::uint32_t index) override;
  void drop_mtt(std::uint64_t mtt_address, std::uint64_t entries) override;
  void drop_all() override;
  void release_window(std::uint32_t index) override { keys_.release_window(index); }
  void revoke_key(std::uint32_t key) override { keys_.revoke_key(key); }
  bool busy() const override;

  using statistics = translation_statistics;
  const statistics& counters() const override { return stats_; }
  /// Its own counters and those of the key engine.
  void announce(sim::statistics& to) const;

 private:
  using job = translation_job;
  using step = translation_step;

  void tick() override;
  void take_fetches();
  void look_up();
  void accept();
  const char* held_up_by() const;
  int oldest(std::uint64_t jobs) const;
  void run(unsigned index);
  step advance(job& j, unsigned index);
  step check_key(job& j, unsigned index);
  step resolve_pages(job& j, unsigned index);

  translation_config config_;
  sim::round_robin arbiter_;
  statistics stats_;
  translation_tables tables_;
  translation_fetches fetches_;
  translation_answers answers_;
  std::vector<job> jobs_;
  std::uint64_t asking_ = 0;      // clients with something in their request channel
  std::uint64_t free_ = 0;        // masks of jobs: unused,
  std::uint64_t retry_ = 0;       // with data fetched for them,
  std::uint64_t blocked_ = 0;     // waiting for a fetch buffer or the DMA channel
  std::uint64_t sequence_ = 0;    // of the last request taken
  std::uint64_t dropped_at_ = 0;  // sequence_ at the last drop
  sim::server look_up_{*this, "look_up"};
  key_access key_access_;
  key_engine keys_;
};

}  // namespace rnic::icm
