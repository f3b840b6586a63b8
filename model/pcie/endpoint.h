// SPDX-License-Identifier: Apache-2.0
// The adapter's end of the PCIe link: configuration space, BARs, MSI-X, DMA engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/payload/tlp.h"
#include "model/pcie/bar_target.h"
#include "model/pcie/core_interface.h"
#include "model/pcie/dma_engine.h"
#include "model/pcie/dma_if.h"
#include "model/pcie/endpoint_if.h"
#include "model/pcie/function_listener_if.h"
#include "model/pcie/functions.h"
#include "model/pcie/link.h"
#include "model/pcie/reply_queue.h"
#include "model/pcie/tlp_link_if.h"
#include "model/pcie/transmit_path.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/gauge.h"
#include "model/sim/parameter.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timed_inbox.h"

namespace rnic::pcie {

class pcie_core;

struct endpoint_config {
  link_config link;
  dma_config dma;
  core_config core;
  config_space::config space;
  // Buffers advertised to the root complex: headers, and data.
  sim::parameter<std::uint32_t> posted_headers{64, {1, 127, "packets", "design: credits given to the host"}};
  sim::parameter<std::uint32_t> posted_data{512, {16, 2047, "units of 16 bytes", "design: credits given to the host"}};
  sim::parameter<std::uint32_t> non_posted_headers{16, {1, 127, "packets", "design: credits given to the host"}};
  std::uint32_t non_posted_data = 16;
  /// Register bus round trip of a BAR read.
  sim::parameter<unsigned> mmio_read_cycles{20, {1, sim::many, "cycles", "design"}};
  sim::parameter<unsigned> config_cycles{20, {1, sim::many, "cycles", "design"}};  ///< configuration access
  std::uint32_t max_read_bytes = 64;  ///< longer reads of a BAR are unsupported requests (design)

  void list(sim::fields& are) {
    are("", link);
    are("", dma);
    are("", core);
    are("", space);
    are("posted_headers", posted_headers);
    are("posted_data", posted_data);
    are("non_posted_headers", non_posted_headers);
    are("mmio_read_cycles", mmio_read_cycles);
    are("config_cycles", config_cycles);
  }
};

/// Data sheet. Parts, each with its own: `dma_engine`, `transmit_path` and `link_transmitter`, `bar_target`,
/// `reply_queue`, `functions`, `pcie_core` where the core has a clock of its own.
///
/// Ports: dma().client(i) request/response, dma().msix(), command_out (BAR0 writes), doorbell_out (BAR2 writes). What
/// BARs do is in bar_target.h.
///
/// Where the PCIe core has a clock of its own (core_config::khz), packets of both directions and credits cross to it
/// (pcie_core.h); where it has the adapter's, its interface and the link are here. What waits in front of the crossing,
/// for room, credits or tags, is not counted as blocked: the interface, which counts that, is behind it.
///
/// Requests are served in their order, one a cycle (a write of several lines, a line a cycle); completions for the DMA
/// engine do not wait behind them. What holds a request up is "doorbell" or "command", whose channel is full, or
/// "replies", of which as many wait for the link as the host has credits for reads.
///
/// In a cycle: a packet from the link, which is taken at the edge of its arrival or in the cycle behind the packet
/// before it; a request, or a line of it; answers to clients; a completion; the start of a request, and one packet,
/// unless a completion was sent. What a reset or hold_function refuses, between two edges, is answered as in a tick of
/// the last edge.
///
/// Stages: a packet from the link (crossing), request, BAR read (mmio_read_cycles) or configuration (config_cycles),
/// reply. Memories: `posted_headers`, `posted_data` and `non_posted_headers` of buffers, which are the credits that the
/// host has; a packet without credit is a receiver overflow, counted and dropped. Counters: bar_writes, bar_reads,
/// config_reads, config_writes, unsupported_reads, unsupported_writes, poisoned, held_writes, receiver_overflows,
/// function_resets; link.packets, .busy_ps, .credit_stalls.
/// Approximation: a completion may pass a BAR write that waits for room in command_out or doorbell_out, which strict
/// PCIe order forbids; no deadlock can come from a full doorbell channel that way, and no software can tell.
class endpoint : public sim::clocked_block,
                 public endpoint_if,
                 public register_bus::cr_target_if,
                 public register_bus::reset_target_if {
 public:
  /// The pool must outlive everything that is bound to the link.
  endpoint(std::string name, sim::clock_domain& domain, const endpoint_config& c, unsigned dma_clients,
           register_file_if& bar0, register_file_if& bar2, payload::tlp_pool& pool, sim::span_recorder& spans,
           sim::statistics& stats);

  sim::fifo_out<mmio_write> command_out{*this};
  sim::fifo_out<mmio_write> doorbell_out{*this};
  dma_engine& dma() { return dma_; }
  const dma_engine& dma() const { return dma_; }

  void connect(tlp_link_if& peer) override;
  bool connected() const override { return peer_ != nullptr; }
  /// Before connect(), where the PCIe core has a clock of its own (core_domain::of).
  void cross_by(pcie_core& core);
  /// Configuration space and the MSI-X table can be read so.
  std::uint32_t look(payload::tlp& request) const override;
  void on_function_change(function_listener_if& listener) { function_listener_ = &listener; }
  const config_space& configuration() const { return functions_.physical(); }
  link_transmitter& transmitter() { return link_; }
  const core_config& core_parameters() const { return config_.core; }

  void deliver(payload::tlp_ptr packet, sim::time_ps arrival) override;
  void credit(const credit_amount& amount, sim::time_ps arrival) override;

  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t offset, std::uint32_t value) override;
  /// Stops DMA at once, until firmware enables it (pcie_cr.h). Configuration space stays.
  void device_reset() override { dma_.enable(false); }

 private:
  void tick() override;
  void work();
  void tell_gauges();
  void receive();
  void serve_request();
  void serve_read(const payload::tlp& t);
  void serve_config(const payload::tlp& t);
  void reset_function(std::uint16_t function);
  /// Number of the function that a configuration request is for; one that does not exist: nothing.
  std::optional<std::uint16_t> function_of(const payload::tlp& t) const;
  payload::tlp_ptr answer(const payload::tlp& request, payload::tlp_status status, unsigned cycles);
  bool send_reply();
  bool arrived() const;
  void return_credit(const payload::tlp& t);
  void announce(sim::statistics& stats);

  endpoint_config config_;
  functions functions_;
  link_transmitter link_;
  transmit_path path_;
  pcie_core* core_ = nullptr;  // behind a crossing
  sim::span_recorder& spans_;
  function_listener_if* function_listener_ = nullptr;
  tlp_link_if* peer_ = nullptr;
  dma_engine dma_;
  sim::timed_inbox<payload::tlp_ptr> inbox_;
  sim::time_ps cycle_ps_;
  sim::time_ps last_arrival_ = 0;  // of a packet: behind a backlog the edge at which it is taken
  sim::server serving_{*this, "requests"};
  sim::ring<payload::tlp_ptr> requests_;  // as long as the advertised headers
  bar_target bars_;
  reply_queue replies_;
  std::uint16_t own_id_ = 0;  // routing ID of the physical function

  struct {
    sim::gauge tags, posted_headers, posted_data, non_posted_headers;
  } gauges_;
  std::uint64_t config_reads_ = 0, config_writes_ = 0, overflows_ = 0, resets_ = 0;
};

}  // namespace rnic::pcie
