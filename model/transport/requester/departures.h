// SPDX-License-Identifier: Apache-2.0
// What gather tells of packets that were started: they have left, will not, or cannot.
#pragma once

#include <cstdint>

#include "model/icm/contexts.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/statistics.h"
#include "model/transport/requester/context_memory.h"
#include "model/transport/requester/egress_credits.h"
#include "model/transport/requester/gather.h"
#include "model/transport/requester/go_back.h"
#include "model/transport/requester/message_table.h"
#include "model/transport/requester/tables.h"

namespace rnic::transport {

/// Data sheet.
///
/// Ports: packets that have left, all that are there in a cycle (a counter of each queue pair, and a bit of the
/// message that needs nothing else); events, one a cycle: a packet that was withdrawn, one that a port has blocked, one
/// whose payload cannot be read, which ends its message and is answered with a verdict.
///
/// Stalls: an event of a failure, while the context is not on chip, its queue pair goes back or the channel of
/// verdicts is full.
///
/// What has left ticks the requester only while somebody waits for it: a message of an unacknowledged service, or an
/// operation on keys.
class departures {
 public:
  using context = icm::requester_context;
  struct port_set {
    sim::fifo_in<gather_left>& left;
    sim::fifo_in<gather_event>& events;
    sim::fifo_out<gather_verdict>& verdicts;
  };
  departures(sim::clocked_block& owner, port_set ports, qp_table& qps, context_memory& contexts,
             message_table& messages, go_back& back, egress_credits& credits)
      : owner_(owner),
        ports_(ports),
        qps_(qps),
        contexts_(contexts),
        messages_(messages),
        go_back_(back),
        credits_(credits) {}
  void announce(sim::statistics& to) const {
    to.add(owner_.name() + ".cancelled_packets", cancelled_);
    to.add(owner_.name() + ".ethernet_blocked", blocked_);
  }

  /// A packet of the queue pair was handed to gather; `last_local`: its leaving completes a message.
  void started(qp_runtime& r, bool last_local);
  /// Somebody waits for a queue pair's packets.
  void await();
  void take_left();
  void take_event();

 private:
  void listen();
  void gone(std::uint32_t qpn, bool last_local);
  void message_left(std::uint32_t index, std::uint32_t generation, std::uint32_t qpn);
  bool failed(const gather_event& e);

  sim::clocked_block& owner_;
  port_set ports_;
  qp_table& qps_;
  context_memory& contexts_;
  message_table& messages_;
  go_back& go_back_;
  egress_credits& credits_;
  std::uint32_t leaving_ = 0;  // packets in gather and the transmit pipeline,
  std::uint32_t local_ = 0;    // those whose leaving completes a message,
  bool awaited_ = false;       // and somebody waits for one
  std::uint64_t cancelled_ = 0, blocked_ = 0;
};

}  // namespace rnic::transport
