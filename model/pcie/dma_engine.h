// SPDX-License-Identifier: Apache-2.0
// The DMA engine: requests of the adapter's blocks to memory packets and back. A part of the endpoint block.
#pragma once

#include <cstdint>
#include <string>

#include "model/payload/tlp.h"
#include "model/pcie/bus_master.h"
#include "model/pcie/dma_clients.h"
#include "model/pcie/dma_config.h"
#include "model/pcie/dma_if.h"
#include "model/pcie/dma_reads.h"
#include "model/pcie/dma_writes.h"
#include "model/pcie/functions.h"
#include "model/pcie/interrupts.h"
#include "model/pcie/transmit_path.h"
#include "model/sim/arbiter.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"

namespace rnic::pcie {

/// Two arbiters over the parts that hold the state: dma_clients (requests and answers), dma_reads, dma_writes and
/// interrupts.
///
/// Start: fair among clients and interrupts, one request a cycle, none while a write is under way: no read overtakes a
/// write that was started before it. A function that may not master the bus is refused. Issue: one packet a cycle,
/// reads and the write in turn; reads are fair among clients. Packets of one write are not mixed with those of another.
/// What waits is said of the interface (transmit_path): "tags", "credits" or "link". A request of no bytes is answered
/// two cycles after its start, behind all writes that were started before it, and writes nothing.
///
/// A write's further packets, and completions that are not the last of their request, hang on nothing that could come
/// between: they are reckoned with the first one, at the edges at which they go and come, and need no tick. So those of
/// a write that has begun are sent even when the function loses the bus meanwhile.
class dma_engine {
 public:
  using client_port = dma_clients::port;

  dma_engine(sim::clocked_block& owner, const dma_config& c, unsigned clients, transmit_path& path,
             payload::tlp_pool& pool, functions& all, sim::span_recorder& spans);

  client_port& client(unsigned i) { return clients_.at(i); }
  const dma_clients& clients() const { return clients_; }
  sim::fifo_in<msix_request>& msix() { return interrupts_.port(); }
  /// Routing ID of the physical function.
  void set_requester(std::uint16_t id) { bus_.set_requester(id); }

  /// A completion has arrived.
  void complete(const payload::tlp& t) { reads_.complete(t); }
  /// A completion is on its way that comes at the first edge not before `arrival`; where it may come later, `alone` is
  /// false. True: it is not the last one of its request and as it should be; its data has been put away, and it need
  /// not come. Of others complete() must follow.
  bool complete_ahead(const payload::tlp& t, bool alone, sim::time_ps arrival) {
    return reads_.complete_ahead(t, alone, arrival);
  }
  /// Answers to clients, and time-outs. The owner's tick calls this, may send something itself, and calls start();
  void give_answers();
  /// the start of one request; then issue() unless it used the transmitter itself.
  void start();
  /// Sends at most one packet.
  void issue();
  /// Whether requests may go out at all (beside bus mastering, which software controls).
  void enable(bool on);
  bool enabled() const { return bus_.enabled(); }
  /// Bus mastering or enable() was taken away: what was started and not sent is given up.
  void stop_started();
  /// Masks, enables or pending bits have changed.
  void msix_changed() { interrupts_.changed(); }
  /// So may have what decides the level of the wire (line_interrupt.h), behind the back of the bus.
  void line_changed();
  /// While true nothing may be sent that must not pass posted writes.
  bool write_under_way() const { return writes_.active() || owner_.now() < writes_.sent_until(); }
  /// First edge at which none is under way; never while that is not known.
  sim::cycle_t clear_at() const { return writes_.active() ? sim::never : writes_.sent_until(); }
  void announce(const std::string& prefix, sim::statistics& stats);
  unsigned tags_in_use() const { return reads_.tags_in_use(); }

 private:
  std::uint64_t waiting() const { return clients_.waiting() | (interrupts_.waiting() ? interrupts_bit_ : 0); }
  bool may_begin(const dma_request& r) const;
  void start_request(unsigned client);
  void refuse(unsigned client, dma_request& r);
  bool issue_one(bool reads);

  sim::clocked_block& owner_;
  transmit_path& path_;
  functions& functions_;
  bus_master bus_;
  dma_clients clients_;
  dma_reads reads_;
  dma_writes writes_;
  interrupts interrupts_;
  std::uint64_t interrupts_bit_;  // of waiting(): behind those of the clients
  sim::round_robin start_order_;
  bool prefer_write_ = false;
  std::uint64_t refused_ = 0;
};

}  // namespace rnic::pcie
