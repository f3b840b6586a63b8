// SPDX-License-Identifier: Apache-2.0
// From the pieces of a packet to their bytes.
#pragma once

#include "model/icm/translation_if.h"
#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/server.h"
#include "model/transport/requester/gather_job.h"
#include "model/transport/requester/gather_queue.h"

namespace rnic::transport {

/// Data sheet. Part of gather.
///
/// Stages: ask, one address a cycle, packet by packet; translation; read, one DMA request a cycle (two for a piece
/// across a page); memory. A piece of a packet that is withdrawn is passed over, in a cycle.
///
/// Engines: ask, blocked by "translation" (or "requester", who takes no word of a withdrawn packet's address); read,
/// blocked by "requester" while the channel for that word is full, else by "dma".
///
/// Counters: pieces, bytes, translation_misses.
class gather_fetch {
 public:
  /// Ports of the block.
  struct ports {
    sim::fifo_in<gather_piece>& pieces;
    sim::fifo_out<gather_address>& addresses;
    icm::translate_port& translate;
    pcie::dma_port& dma;
  };

  /// `tells_addresses`: the transmit engine waits for them.
  gather_fetch(sim::clocked_block& owner, const ports& to, gather_queue& queue, bool tells_addresses,
               gather_counters& counters)
      : owner_(owner), to_(to), queue_(queue), tells_addresses_(tells_addresses), counters_(counters) {}

  // To be called in each tick, in this order.
  void take_memory();
  void take_address();
  void ask();
  void note_hold_ups() {
    ask_.waits_for(ask_held_up_by());
    read_.waits_for(read_held_up_by());
  }

 private:
  const char* ask_held_up_by() const;
  const char* read_held_up_by() const;

  sim::clocked_block& owner_;
  const ports to_;
  gather_queue& queue_;
  const bool tells_addresses_;
  gather_counters& counters_;
  unsigned parts_ = 0;  // of the address in front that memory has been asked for
  sim::server ask_{owner_, "ask"}, read_{owner_, "read"};
};

}  // namespace rnic::transport
