// SPDX-License-Identifier: Apache-2.0
// Rings of READs and atomics on chip, and the ports through which the parts of the responder get at them.
#pragma once

#include <cstdint>

#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"
#include "model/sim/clocked_block.h"
#include "model/sim/memory_ports.h"

namespace rnic::transport {

/// Who reads and writes rings.
enum class history_user : std::uint8_t {
  reports,  ///< the answer of an atomic that was executed: read_returns
  commit,   ///< a request that is put aside, an atomic that looks for its answer or pins the place of one
  reads,    ///< a request on its way back to the generator: held_reads
  opening   ///< a queue pair with requests put aside gets a place on chip: flow_table
};

/// Part of the responder: the entries of queue pairs in the RDMA resource table (icm::rdma_resources), 16 of 64 bytes
/// each, behind the cache adapter.responder.histories.
///
/// Ports: `history_ports` accesses a cycle, each to the whole ring of a queue pair, which may be written back (the
/// memory is as wide as a ring: its entries are searched by a comparator each); users have names (history_user), and
/// who is refused has a port of the next cycle first. Who looks for a ring compares tags, which costs no port; nor does
/// what is written in the tags alone (pins, flush, drop). Fills and write-backs have a port of their own.
/// Stalls: a ring that is being fetched, a port that is taken; the owner is ticked. Counters:
/// history_memory.<user>.waits.
class history_memory {
 public:
  using rings = icm::context_cache<icm::rdma_resources>;
  enum class found : std::uint8_t {
    known,    ///< and a port is free
    pending,  ///< the ring is being fetched
    no_port,  ///< not in this cycle
    none      ///< software gave the queue pair no entries, or not enough
  };

  history_memory(sim::clocked_block& owner, unsigned ports, rings& cache)
      : rings_(cache), ports_(owner, "history_memory", ports, {"reports", "commit", "reads", "opening"}) {}

  /// Whether the user may access the ring in this cycle; to be asked when all else that it needs is there.
  found find(std::uint32_t qpn, history_user user, icm::rdma_resources*& out) {
    switch (rings_.ask(qpn, out)) {
      case rings::result::pending:
        return found::pending;
      case rings::result::refused:
        return found::none;
      case rings::result::hit:
        break;
    }
    return ports_.claim(static_cast<unsigned>(user)) ? found::known : found::no_port;
  }
  /// Accesses the ring, for which find() has said `known` in this tick; `changed`: it is written back.
  void access(std::uint32_t qpn, history_user user, bool changed) {
    ports_.access(static_cast<unsigned>(user));
    if (user != history_user::reports) rings_.use(qpn);  // its use was that of the commit, which has pinned it
    if (changed) rings_.mark_dirty(qpn);
  }
  /// The ring has its place on chip until the answer of an atomic is in it.
  void pin(std::uint32_t qpn) { rings_.pin(qpn); }
  void unpin(std::uint32_t qpn) { rings_.unpin(qpn); }
  /// With this ring pinned there would be no place in its set for another one that somebody looks for.
  bool crowded(std::uint32_t qpn) const { return rings_.crowded(qpn); }
  /// It is on chip: nobody has dropped it since it was pinned.
  bool on_chip(std::uint32_t qpn) { return rings_.peek(qpn) != nullptr; }

  const sim::memory_ports& ports() const { return ports_; }

 private:
  rings& rings_;
  sim::memory_ports ports_;
};

}  // namespace rnic::transport
