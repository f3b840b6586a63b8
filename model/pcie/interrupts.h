// SPDX-License-Identifier: Apache-2.0
// Interrupts: which message may go out, and which waits as a pending bit.
#pragma once

#include <cstdint>
#include <optional>

#include "model/pcie/bus_master.h"
#include "model/pcie/dma_if.h"
#include "model/pcie/functions.h"
#include "model/pcie/msix_table.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"

namespace rnic::pcie {

/// One request, or one pending bit that may go out now, at a time. A vector that is masked, a function that is, and a
/// function that does not master the bus keep it pending (PCI Local Bus Specification 3.0, 6.8.2.2 and 6.8.3.4); what
/// names no function or vector, or comes while MSI-X or DMA is off, is dropped and counted. Of pending ones that may go
/// out, the lowest function's lowest vector goes first. The physical function's move its wire while MSI-X is off
/// (line_interrupt.h); a move goes out when nothing else does.
class interrupts {
 public:
  interrupts(sim::clocked_block& owner, functions& all, const bus_master& bus)
      : functions_(all), bus_(bus), requests_(owner) {
    requests_.show_in(asking_, 0);
  }

  sim::fifo_in<msix_request>& port() { return requests_; }
  /// Masks, enables or pending bits have changed: they are looked at once more.
  void changed() { recheck_ = true; }
  bool rechecks() const { return recheck_; }
  bool asking() const { return asking_ != 0 || recheck_; }  ///< there is something in the channel, visible or not
  bool waiting() const { return recheck_ || (asking_ != 0 && requests_.can_pop()); }
  struct message {
    std::uint16_t function = 0;
    msix_table::message content;
    std::optional<bool> level;  ///< of the wire, in the place of a write
  };
  /// Takes a request, or looks at the pending bits; the message that goes out, if one does.
  std::optional<message> take();

  struct counters {
    std::uint64_t sent = 0, pended = 0, dropped = 0;
  };
  const counters& counts() const { return counts_; }

 private:
  std::optional<msix_request> take_request();
  std::optional<msix_request> take_pending();
  bool may_send(std::uint16_t function) const {
    return functions_.masters_bus(function) && !functions_.interrupts_masked(function);
  }

  functions& functions_;
  const bus_master& bus_;
  sim::fifo_in<msix_request> requests_;
  std::uint64_t asking_ = 0;  // bit 0: something in the channel
  bool recheck_ = false;
  counters counts_;
};

}  // namespace rnic::pcie
