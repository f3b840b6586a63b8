// SPDX-License-Identifier: Apache-2.0
// READs and atomics that were accepted without a place on chip, and their way back to it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/sim/clocked_block.h"
#include "model/sim/span.h"
#include "model/transport/responder/acknowledgement.h"
#include "model/transport/responder/flow_table.h"
#include "model/transport/responder/payload_writes.h"
#include "model/transport/responder/read_backlog.h"
#include "model/transport/responder/read_port.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder: puts READs and atomics that find no place in the READ generator into host memory
/// (read_backlog.h), and fetches one of each queue pair in turn when there is a place.
///
/// A queue pair that has a place on chip until its requests have come back, because an answer waits behind them, passes
/// the list when its first one cannot begin: else as many as there are places would stop all the others. Of several the
/// lowest place goes first (a priority encoder over `flows` bits).
///
/// Ports: from the commit one request a cycle; one queue pair a cycle begins to be fetched, `read_fetches` of the list
/// at once and one that passes it; one request a cycle goes on to the generator.
/// Stalls: the queue pair's ring, its context or its place on chip is not there, or a port of these is taken; the way
/// to the generator is full.
class held_reads {
 public:
  held_reads(sim::clocked_block& owner, const responder_config& cfg, flow_table& flows, flow_table::contexts& contexts,
             read_backlog& backlog, const history_memory& rings, read_port& reads, acknowledgement& answers,
             const payload_writes& writes, sim::span_recorder& spans);

  /// There is a place for a new READ of this queue pair, which `has_some` there.
  bool has_place(std::uint32_t qpn, bool has_some) const;
  /// The same for one that the peer repeats.
  bool has_place_for_repeated(const responder_flow& f) const;
  /// The same for a new atomic, whose ring stays on chip until its answer has left: that leaves room to another's.
  bool has_place_for_atomic(const responder_flow& f) const;
  /// A request that has no place goes to host memory. False: not yet, or there is no memory for it and it waits for a
  /// place where it is.
  bool put_aside(responder_flow& f, const read_command& r);
  /// In each tick.
  void work();
  /// Behind all that takes places and contexts in a tick: one that is being fetched may have lost its place, and gives
  /// up in the next cycle.
  void watch();
  /// The queue pair is halted.
  void stop(responder_flow& f);

 private:
  enum class fetched : std::uint8_t { no, request, nothing };
  void begin();
  bool begin_first();
  bool begin_passing();
  bool may_pass(const responder_flow& f) const;
  bool has_place_for_oldest(std::uint32_t qpn, bool has_some) const;
  bool leaves_room(std::uint32_t qpn, bool has_some) const;
  bool may_pin(std::uint32_t qpn) const { return reads_.idle() || !rings_.crowded(qpn); }
  fetched fetch(responder_flow& f);

  sim::clocked_block& owner_;
  flow_table& flows_;
  flow_table::contexts& contexts_;
  read_backlog& backlog_;
  const history_memory& rings_;
  read_port& reads_;
  acknowledgement& answers_;
  const payload_writes& writes_;
  sim::span_recorder& spans_;
  const unsigned at_once_;
  std::vector<std::uint16_t> fetching_;  // flows with requests in host memory, one of each is being fetched
  std::uint16_t passing_ = no_link;      // that of them which was not the first of the list
};

}  // namespace rnic::transport
