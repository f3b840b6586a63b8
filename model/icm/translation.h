// SPDX-License-Identifier: Apache-2.0
// Memory protection and address translation: MPT and MTT caches in front of ICM.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/icm/icm_map.h"
#include "model/icm/key_engine.h"
#include "model/icm/mpt.h"
#include "model/icm/tag_array.h"
#include "model/icm/translation_if.h"
#include "model/pcie/dma_if.h"
#include "model/sim/arbiter.h"
#include "model/sim/clocked_block.h"
#include "model/sim/memory.h"
#include "model/sim/parameter.h"
#include "model/sim/server.h"
#include "model/sim/statistics.h"

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

/// Answers translate_requests of up to 64 clients, one look-up a cycle, round robin; requests that wait for a fetch do
/// not hold up others. Entries are read from the dMPT and MTT tables in ICM in the published layouts (adapter data
/// plane A.11). Misses of one line are merged. Only operations on keys change entries, on chip and in ICM at once.
///
/// Memories: decoded MPT entries, with `mpt_read_ports` to read: `look_up`, an entry a cycle, and `keys`, what the key
/// engine looks at, one a cycle; and `mpt_write_ports` to write: `fills`, what was fetched, and `keys`, what the key
/// engine reads and changes. Who is refused waits a cycle and is counted (mpt_reads.<user>.waits,
/// mpt_memory.<user>.waits). The region below a window is looked up in the cycle behind that of the window. MTT lines,
/// with `mtt_read_ports` to read, a line each: `look_up`, which reads a second one where a request goes over the end of
/// a line, in the next cycle where there is one port (mtt_reads.look_up.waits); a line that was fetched for the request
/// is not read. They have one port to write: no two fetches end in one cycle. What firmware or an operation drops is
/// found by a comparator at each entry and loses its valid bit: that takes no port.
///
/// The look-up is blocked by "memory", when all fetches or all places are waiting for it, by "dma", which takes no
/// fetch, and by "clients", who take no answers and have all places.
class translation : public sim::clocked_block, private key_tables_if {
 public:
  translation(std::string name, sim::clock_domain& domain, const translation_config& config, const icm_map& map,
              unsigned clients);

  /// Ports, to be bound by the adapter: client n asks on request[n] and is answered on response[n].
  std::vector<sim::fifo_in<translate_request>> request;
  std::vector<sim::fifo_out<translate_response>> response;
  pcie::dma_port dma;
  /// Operations on keys (key_operation_if.h) have ports of their own.
  key_engine& keys() { return keys_; }

  /// Register side (between two edges): forget an MPT (index modulo the table), a range of MTT entries, everything.
  /// Fetches under way are not kept and not used: who waits for one fetches again.
  void drop_mpt(std::uint32_t index);
  void drop_mtt(std::uint64_t mtt_address, std::uint64_t entries);
  void drop_all();
  /// Takes a window off its region: firmware has taken back the window's entry.
  void release_window(std::uint32_t index) { keys_.release_window(index); }
  void revoke_key(std::uint32_t key) { keys_.revoke_key(key); }
  /// A request taken before the last drop has not been answered, or an operation on a key not ended.
  bool busy() const;

  struct statistics {
    std::uint64_t requests = 0, mpt_hits = 0, mpt_misses = 0, mtt_hits = 0, mtt_misses = 0;
    std::uint64_t merged = 0;   ///< requests that joined a fetch under way
    std::uint64_t refused = 0;  ///< answers with another status than ok
    std::uint64_t stale = 0;    ///< fetches not used because of a drop
  };
  const statistics& counters() const { return stats_; }
  /// Its own counters and those of the key engine.
  void announce(sim::statistics& to) const;

 private:
  struct mtt_line {
    std::array<std::uint64_t, 8> entry{};
  };
  struct page_part {
    std::uint64_t index = 0;  // of the MTT entry, from the table's start
    std::uint64_t entry = 0;
    std::uint64_t offset = 0;  // in the page
    bool resolved = false;
  };
  struct job {
    translate_request request;
    translate_response answer;
    unsigned client = 0;
    std::uint64_t sequence = 0;
    sim::cycle_t ready = 0;
    std::uint32_t key = 0;  // being looked up: the request's, or that of the region below a window
    bool through_window = false;
    bool have_mpt = false;  // `mpt` came with a fetch for this job
    bool pages_known = false;
    mpt_entry mpt;
    std::uint8_t log_page = 12;
    std::array<page_part, 2> pages;
    unsigned fetches = 0;  // this job waits for
  };
  struct fill {
    std::array<std::uint8_t, 64> data;
    bool active = false, mpt = false, stale = false, arrived = false, failed = false;
    std::uint64_t line = 0;     // MPT index or MTT line number
    std::uint64_t waiters = 0;  // mask of jobs
    sim::cycle_t usable = 0;
  };
  enum class step : std::uint8_t { done, waits, blocked, again };
  enum writer : unsigned { by_fills, by_keys };          // of MPT entries on chip
  enum reader : unsigned { by_look_up, by_key_engine };  // of MPT entries; of MTT lines the first

  void tick() override;
  void take_fills();
  bool may_finish(const fill& f);
  void finish(fill& f);
  void give(job& j, const fill& f);
  void deliver();
  void look_up();
  void accept();
  const char* held_up_by() const;
  int oldest(std::uint64_t jobs) const;
  void run(unsigned index);
  step advance(job& j, unsigned index);
  step check_key(job& j, unsigned index);
  step resolve_pages(job& j, unsigned index);
  void split(job& j, std::uint64_t mtt_address, std::uint64_t offset);
  void answer_contiguous(job& j);
  void answer_pages(job& j);
  step fetch(bool mpt, std::uint64_t line, unsigned index);
  bool fetch_address(bool mpt, std::uint64_t line, std::uint64_t& bus) const;
  void complete(unsigned index);
  void stale_fills(bool mpt, std::uint64_t first, std::uint64_t last);
  // key_tables_if
  std::uint32_t slot_of(std::uint32_t key) const override;
  const mpt_entry* cached(std::uint32_t slot) override { return mpts_.find(slot); }
  bool may_read() override { return mpt_reads_.try_access(by_key_engine); }
  bool may_replace() override { return mpt_writes_.claim(by_keys); }
  void replace(std::uint32_t slot, const mpt_entry& entry, bool changed) override;
  void forget_mtts(std::uint64_t mtt_address, std::uint64_t entries) override;
  bool mpt_address(std::uint32_t slot, std::uint64_t& bus) const override { return fetch_address(true, slot, bus); }
  bool mtt_address(std::uint64_t mtt_address, std::uint64_t& bus) const override;

  translation_config config_;
  const icm_map& map_;
  sim::round_robin arbiter_;
  tag_array<mpt_entry> mpts_;
  tag_array<mtt_line> mtts_;
  unsigned log_line_ = 0;
  std::vector<fill> fills_;
  unsigned fills_active_ = 0, fills_arrived_ = 0;
  std::vector<job> jobs_;
  std::uint64_t asking_ = 0;   // clients with something in their request channel
  std::uint64_t free_ = 0;     // masks of jobs: unused,
  std::uint64_t retry_ = 0;    // with data fetched for them,
  std::uint64_t blocked_ = 0;  // waiting for a fill buffer or the DMA channel
  struct answer_queue {
    std::array<std::uint8_t, 64> jobs;
    unsigned head = 0, count = 0;
  };
  std::vector<answer_queue> answers_;  // finished jobs by client
  std::uint64_t answering_ = 0;        // mask of clients with finished jobs
  std::uint64_t sequence_ = 0;
  sim::cycle_t answered_at_ = 0;  // edge at which the last answer is there
  std::uint64_t dropped_at_ = 0;  // sequence_ at the last drop
  statistics stats_;
  sim::server look_up_{*this, "look_up"};
  sim::memory_ports mpt_reads_, mpt_writes_, mtt_reads_;
  key_engine keys_;
};

}  // namespace rnic::icm
