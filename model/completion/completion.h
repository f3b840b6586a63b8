// SPDX-License-Identifier: Apache-2.0
// Completion queues, event queues and interrupts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/completion/buffer_pages.h"
#include "model/completion/completion_config.h"
#include "model/completion/completion_cr.h"
#include "model/completion/completion_if.h"
#include "model/completion/cq_arming.h"
#include "model/completion/cq_engine.h"
#include "model/completion/dma_queue.h"
#include "model/completion/eq_engine.h"
#include "model/completion/halted_queues.h"
#include "model/completion/interrupts.h"
#include "model/completion/moderation.h"
#include "model/completion/settings.h"
#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"
#include "model/pcie/dma_if.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"

namespace rnic::completion {

/// Writes CQEs (adapter data plane A.5) and EQEs (A.6) to host memory and raises MSI-X interrupts. Entries of one CQ
/// are written in the order of their requests within a source; an event's EQE is written after the CQE that caused
/// it, and the interrupt is sent after the EQE has entered the posted queue. A request that waits (context, page,
/// consumer index) holds up its own source only.
///
/// Data sheet. Parts, each with its own, in the order in which they work in a cycle:
///
/// | part | what it does |
/// |---|---|
/// | `cqs`, `eqs`, `pages` | contexts on chip, translated pages of queues |
/// | `dma_queue` | what was decided on its way to the DMA engine |
/// | `halted_queues` (two) | queues that firmware works on |
/// | `moderation` | periods of CQs and EQs |
/// | `eq_engine` | an event to an EQE; doorbells of EQs |
/// | `cq_arming` | doorbells of CQs, and from CQE to event |
/// | `cq_engine`, with `consumer_reads` | a request to a CQE |
/// | `interrupts` | from EQE to MSI-X |
///
/// Memories: contexts of CQs and of EQs on chip, each with a port for the engine that writes entries, one for the
/// doorbell engine and one for the end of a period: an access of each in a cycle at most (memories `cq_memory`,
/// `eq_memory`). Who looks for a context compares tags, which costs no port; what the head of a source has to know of
/// one while it waits for something else it has in registers, which are written as the memory is.
///
/// The block itself has the doorbell engine, between eq_engine and cq_arming in a cycle, which takes a doorbell in
/// `doorbell_cycles` for CQs and EQs in their order (stalls: events, interrupts, contexts; the last one also while the
/// queue is halted), the queues of events raised inside (`event_depth`) and by firmware (4), and the registers
/// (registers.cpp). Room that a later part makes in a cycle is seen by an earlier one in the next. Numbers beyond a
/// table have no queue.
///
/// Reset, by the register or the device: counters, what is on its way to the DMA engine, interrupts that were decided,
/// intervals and turns of the engines, event_data and the heads of the channels stay; answers on their way are ignored.
class completion : public sim::clocked_block, public register_bus::cr_target_if, public register_bus::reset_target_if {
 public:
  completion(std::string name, sim::clock_domain& domain, const completion_config& config, const icm::icm_map& map,
             unsigned cqe_sources, unsigned event_sources, sim::span_recorder* spans = nullptr);

  /// Ports, to be bound by the adapter.
  std::vector<sim::fifo_in<cqe_request>> cqe;
  std::vector<sim::fifo_in<event_request>> event;
  sim::fifo_in<queue_doorbell> doorbell;
  pcie::dma_port dma;
  sim::fifo_out<pcie::msix_request> msix;
  /// QPs that a completion was lost of, because their CQ is full or broken: to requester and responder. May stay
  /// unbound.
  std::array<sim::fifo_out<lost_completion>, 2> losses{sim::fifo_out<lost_completion>(*this),
                                                       sim::fifo_out<lost_completion>(*this)};
  buffer_pages pages;                       ///< pages.port: to the translation
  icm::context_cache<icm::cq_context> cqs;  ///< cqs.dma, eqs.dma: to the DMA engine
  icm::context_cache<icm::eq_context> eqs;

  /// Register side: model/completion/completion_cr.h.
  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t offset, std::uint32_t value) override;
  void device_reset() override { reset(); }

  using statistics = completion_statistics;
  const statistics& counters() const { return stats_; }
  /// Under the block's name and a dot.
  void announce(sim::statistics& to) const;

 private:
  static constexpr unsigned firmware_event_depth = 4;

  void tick() override;
  void take_dma();
  void serve_halts();
  void serve_doorbell();

  // Registers and control (registers.cpp)
  void command_cq(std::uint32_t number, std::uint32_t value);
  void command_eq(std::uint32_t number, std::uint32_t value);
  void command(halted_queues& halts, std::uint32_t number, std::uint32_t value);
  bool cq_busy(std::uint32_t number) const;
  bool eq_busy(std::uint32_t number) const;
  void push_firmware_event();
  void reset();

  unsigned doorbell_cycles_;
  settings set_;
  statistics stats_;
  sim::ring<event_request> events_;           // raised inside the block
  sim::ring<event_request> firmware_events_;  // raised through the registers
  dma_queue dma_queue_;
  halted_queues cq_halts_{0}, eq_halts_{halted_queues::places};
  moderation moderation_;
  interrupts interrupts_;
  cq_arming cq_arming_;
  cq_engine cq_engine_;
  eq_engine eq_engine_;
  sim::server doorbell_engine_{*this, "doorbell_engine"};

  struct {
    std::uint32_t cq = 0, eq = 0;
  } select_;  // the queues that commands of firmware are for
  struct {
    std::array<std::uint8_t, 24> data{};
    std::uint32_t kind = 0, eqn = cr::event_eqn_mapped, function = 0;
  } firmware_event_;  // the one being put together
};

}  // namespace rnic::completion
