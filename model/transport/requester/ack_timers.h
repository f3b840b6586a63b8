// SPDX-License-Identifier: Apache-2.0
// The timers of queue pairs: for acknowledgements, and for receivers that are not ready.
#pragma once

#include <string>

#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/server.h"
#include "model/sim/statistics.h"
#include "model/transport/requester/timer_entries.h"
#include "model/transport/requester/timers.h"

namespace rnic::transport {

/// Data sheet.
///
/// A queue pair has one timer. For what it runs the requester knows (timer_port.h); here it is an edge and a tag.
///
/// Ports, each of one item a cycle: commands in; expirations out, one in `expiry_cycles` at most.
///
/// Commands, each in the cycle in which it is seen, whatever else the block does. Start: the timer ends at the first
/// multiple of the granularity (adapter.requester.timers.granularity_ps, in whole cycles) that is neither before `at`
/// nor before the next edge; multiples count from edge 0, and a granularity is rounded up to cycles, 1 at least. One
/// that has an entry keeps it and ends at the new time alone, sooner or later than at the old one. A start that finds
/// no entry, or a line in front of it, goes to its end. It waits with the time from the command to `at`, or to the next
/// edge where that is later, which is not rounded: when it has got its entry the timer ends at the first multiple that
/// is not before so much later. Started again there, it keeps its place and runs by the last command. Stop: the entry
/// is free; the place in the line is no more than passed over. Without an entry and a place a stop changes nothing.
/// Numbers are below 2^log_qps.
///
/// Stages, in one cycle in this order, from the state of the registers: expire, the timer that ends first, of those
/// that end together that of the lowest number of a queue pair, at its edge or as soon as engine and channel take it:
/// the expiration is pushed, the entry is free. Give, in a cycle in which nothing expires and an entry is free: it goes
/// to the first of the line, or one who was stopped there is passed over. So what comes free in a cycle is given in the
/// next one. Then the command: one that is seen at the edge at which its timer expires is too late, a stop finds
/// nothing, and a start is that of a timer without an entry.
///
/// Engine `timer_engine`: an expiration takes it for `expiry_cycles`, which is what the completer needs.
///
/// Memories, each with ports for the command and for what expires or is given an entry, so that both may change it in a
/// cycle:
///   directory, a word for each number of a queue pair (2^log_qps): its entry, or that it waits, for how many cycles,
///   and who is behind it; tag. A write port more for who is behind the last of the line
///   entries: edge, number of the queue pair, place in the heap
///   heap of numbers of entries, a memory a level: the least is in a register; a change begins at the top, or at the
///   entry's place where a timer is stopped or starts anew, and goes a level a cycle, in which it reads two children,
///   or the parent, and writes a word and the place of the entry that moves
/// Registers: entries in use; first and last of the line.
///
/// Stalls: expire, while the channel of expirations is full (the engine is blocked by "expirations", but for a cycle in
/// which a command takes back the only one that stood there). Commands never wait, so the requester may always send
/// one; a stop or start of a timer that stands there for the channel takes it back.
///
/// Counters: timer_waits, starts by which a timer began to wait, whether an entry was free behind others in the line or
/// not, and not those of one that waited; expired. Reset: the block has none, the requester stops what runs.
class ack_timers : public sim::clocked_block {
 public:
  ack_timers(std::string name, sim::clock_domain& domain, const timer_config& config, unsigned log_qps,
             sim::statistics& stats);

  sim::fifo_in<timer_command> commands{*this};
  sim::fifo_out<timer_expiration> expirations{*this};

  /// Entries in use.
  unsigned running() const { return entries_.running(); }

 private:
  void tick() override;
  bool expire();
  void take(const timer_command& c);
  void plan();

  const unsigned expiry_cycles_;
  timer_entries entries_;
  sim::server engine_{*this, "timer_engine"};
  sim::cycle_t asked_ = sim::never;  // the last tick that was asked for
  std::uint64_t expired_ = 0;
};

}  // namespace rnic::transport
