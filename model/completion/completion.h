// SPDX-License-Identifier: Apache-2.0
// Completion queues, event queues and interrupts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/completion/buffer_pages.h"
#include "model/completion/completion_cr.h"
#include "model/completion/completion_if.h"
#include "model/completion/moderation.h"
#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"
#include "model/pcie/dma_if.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/parameter.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/transport_if.h"

namespace rnic::completion {

struct completion_config {
  /// From one CQE to the next.
  sim::parameter<unsigned> cqe_cycles{4, {1, sim::many, "cycles", "design: not below the message rate's limit"}};
  /// From a request to its write being handed to DMA, on a hit.
  sim::parameter<unsigned> cqe_latency_cycles{8, {1, sim::many, "cycles", "design"}};
  sim::parameter<unsigned> event_cycles{4, {1, sim::many, "cycles", "design"}};  ///< from one EQE to the next
  /// From an event to its write being handed to DMA, on a hit.
  sim::parameter<unsigned> event_latency_cycles{8, {1, sim::many, "cycles", "design"}};
  /// From one CQ or EQ doorbell to the next.
  sim::parameter<unsigned> doorbell_cycles{2, {1, sim::many, "cycles", "design"}};
  /// Events raised inside the block that wait for their EQ.
  sim::parameter<unsigned> event_depth{64, {1, 4096, "events", "design"}};
  sim::parameter<unsigned> write_depth{32, {1, 4096, "writes", "design"}};  ///< writes decided but not handed to DMA
  /// CQs and EQs with a moderated event under way; one more fires at once.
  sim::parameter<unsigned> moderated_depth{64, {1, 4096, "CQs", "design"}};
  /// Buffer pages remembered, one a queue; a power of two.
  sim::parameter<unsigned> page_entries{256, {1, sim::many, "pages", "design: one a queue"}};
  icm::context_cache_config cq_cache{256, 4, 16, 0, 8, "design: as the QP contexts'"};
  icm::context_cache_config eq_cache{32, 4, 4, 0, 4, "design"};

  void list(sim::fields& are) {
    are("cqe_cycles", cqe_cycles);
    are("cqe_latency_cycles", cqe_latency_cycles);
    are("event_cycles", event_cycles);
    are("event_latency_cycles", event_latency_cycles);
    are("doorbell_cycles", doorbell_cycles);
    are("event_depth", event_depth);
    are("write_depth", write_depth);
    are("moderated_depth", moderated_depth);
    are("page_entries", page_entries);
    are("cq_cache", cq_cache);
    are("eq_cache", eq_cache);
  }
};

/// Writes CQEs (adapter data plane A.5) and EQEs (A.6) to host memory and raises MSI-X interrupts. Entries of one CQ
/// are written in the order of their requests within a source; an event's EQE is written after the CQE that caused
/// it, and the interrupt is sent after the EQE has entered the posted queue. A request that waits (context, page,
/// consumer index) holds up its own source only.
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
  std::array<sim::fifo_out<transport::qp_error>, 2> qp_errors{sim::fifo_out<transport::qp_error>(*this),
                                                              sim::fifo_out<transport::qp_error>(*this)};
  buffer_pages pages;                       ///< pages.port: to the translation
  icm::context_cache<icm::cq_context> cqs;  ///< cqs.dma, eqs.dma: to the DMA engine
  icm::context_cache<icm::eq_context> eqs;

  /// Register side: model/completion/completion_cr.h.
  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t offset, std::uint32_t value) override;
  void device_reset() override { reset(); }

  /// In the order of the counter registers.
  struct statistics {
    std::uint64_t cqe = 0, cqe_invalid = 0, cq_overflow = 0, eqe = 0, eqe_invalid = 0, eq_overflow = 0;
    std::uint64_t event_unmapped = 0, event_lost = 0, interrupts = 0, stale_arm = 0, bad_doorbell = 0, discarded = 0;
  };
  const statistics& counters() const { return stats_; }
  /// Under the block's name and a dot.
  void announce(sim::statistics& to) const;

 private:
  static constexpr std::uint32_t index_mask = 0xffffff;  // running indices have 24 bits
  static constexpr unsigned max_halted = 8;
  static constexpr unsigned ci_reads = 8;
  static constexpr unsigned firmware_events = 4;
  enum class tag_kind : std::uint64_t { eqe_written, consumer_read, fence };
  enum class fence : std::uint8_t { wanted, under_way, done };

  struct halt_entry {
    bool active = false;
    bool discard = false;
    bool forgotten = false;
    fence state = fence::wanted;
    std::uint32_t number = 0;
  };
  using halt_table = std::array<halt_entry, max_halted>;
  struct consumer_fetch {
    bool active = false, arrived = false, failed = false, stale = false;
    std::uint32_t cqn = 0;
    std::array<std::uint8_t, 4> data{};
  };
  struct pending_write {
    pcie::dma_request request;
    sim::cycle_t ready = 0;
  };
  struct interrupt {
    pcie::msix_request request;
    std::uint64_t after = 0;  // number of EQEs that must have been written
  };

  void tick() override;
  void take_dma();
  void send_interrupts();
  void hand_over_writes();
  pcie::dma_request& queue_write(unsigned latency);

  // Completion queues (completion.cpp)
  void serve_cqes();
  bool try_cqe(unsigned source);
  icm::cq_context* find_cq(std::uint32_t cqn, bool& seen, bool& wait);
  bool has_room(icm::cq_context& cq, bool& wait);
  void start_consumer_fetch(const icm::cq_context& cq);
  void fail_cq(icm::cq_context& cq, std::uint8_t status, std::uint8_t syndrome);
  bool can_lose();
  void lose(const cqe_request& r);
  void write_cqe(icm::cq_context& cq, const cqe_request& r, std::uint64_t address);
  void encode(const cqe_request& r, std::uint8_t owner, std::uint8_t* to) const;

  // Arming and events of completion queues (notify.cpp)
  void serve_doorbell();
  bool arm_cq(const queue_doorbell& d);
  bool update_eq(const queue_doorbell& d);
  void condition_met(icm::cq_context& cq);
  void fire(icm::cq_context& cq);
  bool end_period(const moderation::period& p);
  void interrupt_due(icm::eq_context& eq);

  // Event queues (notify.cpp)
  void serve_events();
  bool try_event(event_request& e, bool& seen);
  icm::eq_context* find_eq(std::uint32_t eqn, bool& seen, bool& wait);
  void write_eqe(icm::eq_context& eq, const event_request& e, std::uint64_t address);
  void interrupt_for(icm::eq_context& eq);

  // Registers and control (registers.cpp)
  void command(halt_table& table, bool is_cq, std::uint32_t number, std::uint32_t value);
  void serve_halts();
  void serve_halt(halt_entry& h, bool is_cq);
  bool queue_busy(const halt_table& table, bool is_cq, std::uint32_t number) const;
  static const halt_entry* find_halt(const halt_table& table, std::uint32_t number);
  void push_firmware_event();
  void reset();

  completion_config config_;
  sim::span_recorder* spans_;
  sim::server cqe_engine_{*this, "cqe_engine"}, event_engine_{*this, "event_engine"},
      doorbell_engine_{*this, "doorbell_engine"};
  unsigned last_cqe_source_ = 0, last_event_source_ = 0;
  std::vector<std::uint8_t> cqe_seen_;    // by source: the head's context was found before
  std::vector<std::uint8_t> event_seen_;  // by source, internal and firmware's first
  std::array<consumer_fetch, ci_reads> consumer_fetches_{};
  sim::ring<event_request> events_;           // raised inside the block
  sim::ring<event_request> firmware_events_;  // raised through the registers
  sim::ring<pending_write> writes_;
  sim::ring<interrupt> interrupts_;
  moderation moderation_;
  std::uint64_t eqes_decided_ = 0, eqes_written_ = 0;
  std::uint64_t last_address_ = 0;  // of the last entry written: where a fence reads
  std::uint16_t last_function_ = 0;

  std::uint32_t cqe_bytes_ = 32, eqe_bytes_ = 32;
  std::uint32_t cq_select_ = 0, eq_select_ = 0;
  std::array<std::uint8_t, 24> event_data_{};
  std::uint32_t event_kind_ = 0, event_eqn_ = cr::event_eqn_mapped;
  std::array<std::uint16_t, cr::event_types> event_map_;
  halt_table cq_halts_{}, eq_halts_{};
  unsigned halts_ = 0;
  std::array<std::uint8_t, 4> fence_data_{};
  const char* waits_for_ = nullptr;  // why try_cqe() said no
  statistics stats_;
};

}  // namespace rnic::completion
