// SPDX-License-Identifier: Apache-2.0
// Decoder of everything that software writes to BAR2: doorbells and BlueFlame buffers.
#pragma once

#include <cstdint>
#include <string>

#include "model/completion/completion_if.h"
#include "model/doorbell/blueflame.h"
#include "model/doorbell/queue_doorbells.h"
#include "model/doorbell/uar_pages.h"
#include "model/pcie/dma_if.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/scheduler/scheduler_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/parameter.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"

namespace rnic::doorbell {

struct config {
  sim::parameter<unsigned> decode_cycles{1, {1, sim::many, "cycles", "design"}};  ///< per doorbell register write
  /// Of a BlueFlame store, for each 64 bytes of its length that are begun, wherever it begins in a line.
  sim::parameter<unsigned> bf_line_cycles{8, {1, sim::many, "cycles", "calibration 5: BF ingest"}};
  unsigned bf_gathers = 16;      ///< BlueFlame buffers that are being filled at once (design)
  unsigned log_bf_reg_size = 9;  ///< bytes of a BlueFlame register: two buffers of 256 (QUERY_DEV_CAP)

  void list(sim::fields& are) {
    are("decode_cycles", decode_cycles);
    are("bf_line_cycles", bf_line_cycles);
  }
};

/// Data sheet.
///
/// Ports: writes to BAR2 in; doorbells of send queues to the scheduler, of completion and event queues to completion.
///
/// Addresses: the UAR pages are the first 2^(log_num_uars + page_shift) bytes (registers: doorbell_cr.h), the BlueFlame
/// region is as many behind them. In a page: 0x14 rings for a send queue, 4 bytes, big endian, QPN in bits 31:8; 0x20
/// and 0x24 arm a CQ, and 0x800, 0x808, 0x810, 0x818 are EQs (queue_doorbells), all in any page but EQs, which are in
/// the first 128. All else, and all beyond the region, is bad_offset; so is the region to functions other than 0, which
/// have no BlueFlame, before blueflame_enable is looked at. A right place with a wrong length is bad_length.
///
/// One write at a time (server `decoder`). It is decoded in one cycle, in which the doorbell that comes of it goes out.
/// The next write is decoded `decode_cycles` later at the earliest, behind one whose first byte is in the UAR pages, or
/// `bf_line_cycles` for each 64 bytes begun of one beyond them. Writes that are no doorbell change nothing but a
/// counter, and hold the decoder as long.
///
/// Parts, each with a data sheet of its own: `blueflame_buffers`, `queue_doorbells`.
///
/// Stalls: "scheduler" or "completion" takes no doorbell.
///
/// Reset: registers are as after power up, buffers and first halves are forgotten without a doorbell, and until
/// log_num_uars is written all writes are bad_offset. The interval of the decoder goes on. The write in front stays.
///
/// Counters: sends, by 0x14; bad_offset, bad_length, blueflame_disabled; and those of the parts.
class doorbell : public sim::clocked_block, public register_bus::cr_target_if, public register_bus::reset_target_if {
 public:
  doorbell(std::string name, sim::clock_domain& domain, const config& cfg, sim::span_recorder& spans,
           sim::statistics& stats);

  sim::fifo_in<pcie::mmio_write> in{*this};
  sim::fifo_out<scheduler::send_doorbell> send_out{*this};
  sim::fifo_out<completion::queue_doorbell> queue_out{*this};

  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t offset, std::uint32_t value) override;
  void device_reset() override;

 private:
  void tick() override;
  bool decode(const pcie::mmio_write& w);
  bool decode_register(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset);
  bool ring_send(const pcie::mmio_write& w, std::uint64_t page);
  bool blueflame(const pcie::mmio_write& w, std::uint64_t offset);
  bool blocked(const char* by) {
    decoder_.blocked(by);
    return false;
  }

  config config_;
  sim::span_recorder& spans_;
  uar_pages pages_;
  doorbell_counters counters_;
  blueflame_buffers buffers_;
  queue_doorbells queues_;
  sim::server decoder_{*this, "decoder"};
};

}  // namespace rnic::doorbell
