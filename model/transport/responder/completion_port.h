// SPDX-License-Identifier: Apache-2.0
// How the parts of the responder complete receives and raise events.
#pragma once

#include <cstdint>
#include <string>

#include "model/completion/completion_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/ring.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/port_count.h"
#include "model/transport/responder/payload_writes.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder: completions in order, each behind the payload writes that were asked for before it; events.
///
/// Stages: push (cycle 0), hand-over to the completion block when the writes before it are on their way, one a cycle
/// (in cycle 0 where nothing is to be waited for). A completion in error, of which a part of its message may have been
/// written, is in front of the ring when it asks for the answer that it waits for (payload_writes::flush), if nothing
/// else has. Memory: a ring of responder_config::cqe_queue completions, one write
/// and one read port. Stalls: a full ring holds up who completes; the owner is ticked when it has room again.
/// Span mark: "payload write" (wait::pcie) where a completion had to wait for it.
/// Counters: error.*, receives and messages that ended in error.
class completion_port {
 public:
  /// A receive that ends in error: of whom it is, and where its completion goes.
  struct receive {
    std::uint32_t qpn = 0, cqn = 0, srqn = 0;  ///< srqn: 0 without
    std::uint16_t index = 0, function = 0;
    std::uint8_t port = 0;  ///< of the queue pair's path, from 0
  };

  completion_port(sim::clocked_block& owner, const responder_config& cfg, sim::fifo_out<completion::cqe_request>& cqe,
                  sim::fifo_out<completion::event_request>& event, payload_writes& writes, sim::span_recorder& spans);
  void announce(sim::statistics& to, const std::string& name) const;

  bool room() const { return !waiting_.full(); }
  /// `behind_others`: behind payload of other messages, too, which may be of one that was broken off in the same
  /// receive; else behind its own, and in error behind all.
  void push(const completion::cqe_request& cqe, bool behind_others = false);
  /// push() of a receive that ends in error.
  void fail(const receive& r, std::uint8_t syndrome);
  /// Hands on; in each tick, behind what pushes.
  void work();
  /// A completion of the queue pair is still here.
  bool holds(std::uint32_t qpn) const;
  /// The same; the owner is ticked when one has gone.
  bool awaits(std::uint32_t qpn) {
    const bool here = holds(qpn);
    awaited_ = awaited_ || here;
    return here;
  }
  /// Whether raise() is possible in this cycle. Refused, the owner is ticked when it may be.
  bool may_raise() { return !event_.bound() || event_.claim(); }
  /// `function`: whose the queue `number` is. False: not in this cycle.
  bool raise(std::uint8_t event, std::uint32_t number, std::uint16_t function);

  struct error_counters {
    port_count local_length, local_operation, local_protection, flushed, remote_invalid, remote_access;
  };
  error_counters errors;

 private:
  struct entry {
    completion::cqe_request cqe;
    std::uint64_t after = 0;  // payload writes that must be on their way
    sim::cycle_t since = 0;
    bool marked = false;  // where it waited for them
  };

  /// The one in front can be handed on, or nothing has asked for the answer that it waits for.
  bool front_moves() const {
    const std::uint64_t after = waiting_.front().after;
    return after <= writes_.done() || after > writes_.asked();
  }

  sim::clocked_block& owner_;
  sim::fifo_out<completion::cqe_request>& cqe_;
  sim::fifo_out<completion::event_request>& event_;
  payload_writes& writes_;
  sim::span_recorder& spans_;
  sim::ring<entry> waiting_;
  bool awaited_ = false;  // somebody waits until one has gone
};

}  // namespace rnic::transport
