// SPDX-License-Identifier: Apache-2.0
// On-chip copies of contexts that live in host memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/icm/context_cache_config.h"
#include "model/icm/context_place.h"
#include "model/icm/context_tags.h"
#include "model/icm/context_transfers.h"
#include "model/icm/contexts.h"
#include "model/icm/icm_map.h"
#include "model/pcie/dma_if.h"
#include "model/sim/channel.h"
#include "model/sim/clocked_block.h"
#include "model/sim/seldom.h"
#include "model/sim/statistics.h"

namespace rnic::icm {

/// Data sheet. Part of the block that owns it.
///
/// Set-associative write-back cache of one kind of context, part of the block that owns it: the block looks up and
/// changes contexts inside its tick. A miss is a DMA read of the context from ICM, a replaced dirty entry a DMA write.
///
/// A context takes an entry. That of an acknowledged queue pair has a second one where its owner asks for it: looked
/// up, filled and replaced by itself, in the set that a hash of its own gives: one comparison of tags in each of two
/// sets. So one of the two may be driven out while the other stays; then the queue pair waits for that one alone, as
/// for any miss, and its owner stands still for one. It has what does not change while the queue pair works, so it is
/// never dirty. Parts: context_tags (who is here, who makes room), context_place (where in ICM), context_transfers
/// (fills and write-backs), and the contexts themselves. Approximation: the first entry's copy has all of the context's
/// bytes; the second one is there for the place and the time that it takes.
///
/// Context is one of the structures of contexts.h; `offset` is where it lies in the table's entry. Entries that are
/// shorter than it are refused, if not `shortest` says how short they may be. Numbers are taken
/// modulo the size of the table (adapter control plane 5.7), so two numbers that share an entry share its copy; the
/// owner compares the number in the context.
template <class Context>
class context_cache {
 public:
  context_cache(std::string name, sim::clocked_block& owner, const context_cache_config& config, const icm_map& map,
                table which, std::uint32_t offset, std::uint32_t shortest = sizeof(Context));

  /// To be bound to the DMA engine by the adapter.
  pcie::dma_port dma;

  /// Takes finished fills and write-backs; the owner calls it first in each tick. The owner is ticked for it.
  void service();

  enum class result : std::uint8_t { hit, pending, refused };
  /// Looks up context `number`. hit: `out` points to it until the next call of lookup or service, or while pinned.
  /// pending: a fill is under way or was started (or waits for a free fill slot); the owner is ticked when it is done
  /// and asks again. refused: the entry's page is not mapped or the read failed; the entry is as if never written.
  result lookup(std::uint32_t number, Context*& out);
  /// The second entry of a context whose first one is a hit. hit: it is there. pending: its fill is under way or was
  /// started; the owner is ticked when it is done. refused: no fill can be started now; the owner is ticked when that
  /// may have changed. Entries are driven out, so who has waited for one may not find it.
  /// Without `fill` one that is not there is left where it is: hit.
  result second(std::uint32_t number, bool fill = true);
  /// lookup() for somebody who may find that he cannot go on and has to ask again: a hit is neither counted nor a use
  /// for the replacement until he goes on, and says use(). A context that is replaced in between is filled again.
  result ask(std::uint32_t number, Context*& out);
  void use(std::uint32_t number);
  /// A number that changes when a lookup() that was pending may end otherwise: until then asking again is idle.
  std::uint64_t progress() const { return progress_; }
  /// The context if it is on chip, without counting as a use: for asking again about something that was a hit before.
  Context* peek(std::uint32_t number);
  /// The context was changed and must reach ICM some day.
  void mark_dirty(std::uint32_t number);
  /// A pinned context is not replaced. Counted: each pin needs its unpin. Both ask for a context that is on chip; an
  /// unpin of one that was dropped in between does nothing.
  void pin(std::uint32_t number);
  void unpin(std::uint32_t number);
  /// With `number` pinned there would be no room left in its set that others have not pinned as well, or are filling:
  /// who could pin it for long lets it be.
  bool crowded(std::uint32_t number) const;

  /// Begins to write a changed context back and keeps it. False: not now. `writing` tells when it is in ICM; what the
  /// owner changes from here on is not.
  bool publish(std::uint32_t number);
  /// A copy of the context is on its way to ICM.
  bool writing(std::uint32_t number) const;
  /// Writes the context back when dirty and forgets it. To be repeated until busy(number) is false. Does nothing while
  /// the context is pinned.
  void flush(std::uint32_t number);
  /// Forgets the context without writing it back, pinned or not.
  void drop(std::uint32_t number);
  void drop_all();
  /// A fill, write-back or pin of the context is still open, or it is on chip and dirty.
  bool busy(std::uint32_t number) const;
  /// The table has no entry of this number alone.
  bool is_beyond_table(std::uint32_t number) const { return place_.key_of(number) != number; }
  /// The context, or a fill of it, occupies a place.
  bool on_chip(std::uint32_t number) const { return tags_.find(place_.key_of(number)) != context_tags::none; }

  struct statistics {
    std::uint64_t hits = 0, misses = 0, replaced_dirty = 0, stalls = 0;
    std::uint64_t failed_fills = 0;  ///< reads answered with an error
    std::uint64_t lost_writes = 0;   ///< dirty contexts whose page is not mapped any more
  };
  const statistics& counters() const { return stats_; }
  /// Each counter as "<name of the cache>.<counter>".
  void announce(sim::statistics& to) const;
  /// Calls f(number, Context&) for every valid entry (timers, debugging; not a hardware path).
  template <class F>
  void for_each(F f);

 private:
  using state = context_tags::state;
  static constexpr std::uint32_t second_key = context_tags::second_key;
  static constexpr unsigned no_slot = context_tags::none;

  result start_fill(std::uint32_t key);
  unsigned make_room(std::uint32_t key);
  bool write_back(unsigned s);
  bool send_back(unsigned s);
  void forget(unsigned s);
  void forget_second(std::uint32_t number);
  void count_use(unsigned s) {
    stats_.hits += tags_.use(s) ? 1 : 0;                 // the first use after a miss is the miss
    if (sim::seldom(!stalled_.empty())) wake_waiting();  // another one may make room now
  }
  void wake_waiting();

  std::string name_;
  sim::clocked_block& owner_;
  icm_map::listener map_changes_;  // a fill or write-back that has waited may be possible, or refused
  context_place place_;
  context_tags tags_;
  context_transfers<Context> transfers_;
  struct alignas(sim::cache_line) place {
    Context context;
  };
  std::vector<place> contexts_;         // by slot
  std::vector<std::uint32_t> stalled_;  // keys whose fill waits for something
  std::uint64_t progress_ = 0;
  statistics stats_;
};

}  // namespace rnic::icm

#include "model/icm/context_cache_impl.h"
