// SPDX-License-Identifier: Apache-2.0
// The DMA engine's writes: one at a time, packet by packet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/payload/tlp.h"
#include "model/pcie/bus_master.h"
#include "model/pcie/config_space.h"
#include "model/pcie/dma_clients.h"
#include "model/pcie/dma_config.h"
#include "model/pcie/interrupts.h"
#include "model/pcie/transmit_path.h"
#include "model/sim/clocked_block.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"

namespace rnic::pcie {

/// The write under way, of a client or an interrupt, as packets of up to the maximum payload that do not cross 4 KiB.
/// It is answered, if it asks for it, a cycle after its last packet was sent.
///
/// Its further packets, when nothing could come between, are sent with the first one, at the edges at which they go,
/// and need no tick.
///
/// Span marks: "turn" (wait::arbitration) where it had to wait for other requests; "dma", to where the first packet is
/// sent; "packets", to where the last one has left (wait::pcie: the link takes their bytes, one after the other).
/// Either wait::pcie_credit where a packet had to wait for that.
class dma_writes {
 public:
  dma_writes(sim::clocked_block& owner, const dma_config& c, dma_clients& clients, transmit_path& path,
             payload::tlp_pool& pool, const config_space& space, const bus_master& bus, sim::span_recorder& spans);

  /// None may be under way. An interrupt is a write, or a message of a wire without data.
  void start(unsigned client, dma_request& r);  ///< which it takes the frame of
  void start(const interrupts::message& interrupt);
  bool active() const { return active_; }
  /// First edge behind those packets that were sent ahead of their edges: nothing else is sent before it.
  sim::cycle_t sent_until() const { return sent_until_; }

  std::uint32_t packet_bytes() const;  ///< data of the next packet
  /// Sends it; room on the path and credits are the caller's to see. `alone`: no read waits to be sent in between.
  void issue(bool alone);
  /// The packet that waits, waits for credit: part of the message's time.
  void wait_for_credit() { wait_ = sim::wait::pcie_credit; }
  /// Gives it up if its function may not master the bus any more. Returns whether it did.
  bool stop();

  struct counters {
    std::uint64_t requests = 0, bytes = 0, packets = 0;
  };
  const counters& counts() const { return counts_; }

 private:
  static constexpr unsigned no_client = ~0u;
  void begin(unsigned client);
  payload::tlp_ptr next_packet(std::uint32_t n);
  void issue_ahead();
  void end(sim::cycle_t at);

  sim::clocked_block& owner_;
  bool aligned_;
  dma_clients& clients_;
  transmit_path& path_;
  payload::tlp_pool& pool_;
  const config_space& space_;
  const bus_master& bus_;
  sim::span_recorder& spans_;

  dma_request write_;
  std::optional<bool> level_;  // of a wire: it is a message
  bool active_ = false;
  unsigned client_ = 0;
  std::uint32_t written_ = 0;
  sim::cycle_t sent_until_ = 0;
  sim::wait wait_ = sim::wait::none;
  counters counts_;
};

}  // namespace rnic::pcie
