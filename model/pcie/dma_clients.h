// SPDX-License-Identifier: Apache-2.0
// The DMA engine's face to the adapter's blocks: requests in, answers out.
#pragma once

#include <cstdint>
#include <vector>

#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/ring.h"

namespace rnic::pcie {

/// A read, and a write that asks for it.
inline bool answered(const dma_request& r) { return r.op == dma_request::kind::read || r.notify; }

/// Per client: a channel of requests, whose first one may be looked at, and a queue of as many answers as it may have
/// requests under way. Answers of one client leave in the order in which they are given, one a cycle, at the earliest
/// at the cycle that was said; those of different clients do not wait for one another.
class dma_clients {
 public:
  /// One client's ports, to be bound to the channels of a dma_port.
  struct port {
    explicit port(sim::clocked_block& owner) : request(owner), response(owner) {}
    sim::fifo_in<dma_request> request;
    sim::fifo_out<dma_response> response;
  };

  /// `count`: 1 to 63; `requests`: of one client that are not answered.
  dma_clients(sim::clocked_block& owner, unsigned count, unsigned requests);

  port& at(unsigned client) { return clients_[client].port; }
  /// Whether some request channel is not empty, visible or not.
  bool asking() const { return asking_ != 0; }
  /// Cycles in which a client had as many requests under way as it may have, up to the last of them whose answer was
  /// put on its way: of a read before its data has been filled in, of a write sent ahead with its first packet.
  const std::uint64_t& full_cycles(unsigned client) const { return clients_[client].full_cycles; }
  /// A bit for each client with a request to be taken.
  std::uint64_t waiting() const;
  /// Those of `waiting` whose first request may be started: answers to it have room.
  std::uint64_t startable(std::uint64_t waiting) const;

  /// A request that will be answered is started.
  void open(unsigned client) {
    state& c = clients_[client];
    if (++c.in_flight != requests_) return;
    full_ |= std::uint64_t{1} << client;
    c.full_since = owner_.edge();
  }
  /// Its answer, which may leave at cycle `ready`.
  void give(unsigned client, std::uint64_t tag, dma_status status, sim::cycle_t ready);
  /// The one request that is open, if the next answer is its and has room.
  bool has_only_one(unsigned client) const {
    const state& c = clients_[client];
    return c.in_flight == 1 && c.port.response.can_push();
  }
  /// Hands out what is due. The owner's tick calls this.
  void work();

 private:
  struct answer {
    dma_response response;
    sim::cycle_t ready = 0;
  };
  struct state {
    state(sim::clocked_block& owner, unsigned requests) : port(owner), answers(requests) {}
    dma_clients::port port;
    sim::ring<answer> answers;
    unsigned in_flight = 0;       // requests that will be answered
    sim::cycle_t full_since = 0;  // as many as it may have, when full_ says so
    std::uint64_t full_cycles = 0;
  };
  void close(unsigned client) {
    state& c = clients_[client];
    if (c.in_flight-- != requests_) return;
    full_ &= ~(std::uint64_t{1} << client);
    c.full_cycles += owner_.edge() - c.full_since;
  }

  sim::clocked_block& owner_;
  unsigned requests_;
  std::vector<state> clients_;
  std::uint64_t asking_ = 0;   // clients with something in their request channel
  std::uint64_t full_ = 0;     // clients with as many requests under way as they may have
  std::uint64_t answers_ = 0;  // clients with answers to give
};

}  // namespace rnic::pcie
