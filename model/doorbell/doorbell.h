// SPDX-License-Identifier: Apache-2.0
// Decoder of everything that software writes to BAR2: doorbells and BlueFlame buffers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/completion/completion_if.h"
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
  /// Per started 64-byte line of a BlueFlame store.
  sim::parameter<unsigned> bf_line_cycles{8, {1, sim::many, "cycles", "calibration 5: BF ingest"}};
  unsigned bf_gathers = 16;      ///< BlueFlame buffers that are being filled at once (design)
  unsigned log_bf_reg_size = 9;  ///< bytes of a BlueFlame register: two buffers of 256 (QUERY_DEV_CAP)

  void list(sim::fields& are) {
    are("decode_cycles", decode_cycles);
    are("bf_line_cycles", bf_line_cycles);
  }
};

/// Writes that are no doorbell change nothing but a counter. A BlueFlame buffer becomes a send doorbell with its
/// descriptor when all 64-byte lines of the descriptor are in; when a buffer is written again before that, or its
/// place is needed, it becomes a plain doorbell (the same descriptor is in host memory, adapter data plane A.1.2).
/// What comes of a descriptor after it has lost its place is dropped: the next one in that buffer begins without it.
class doorbell : public sim::clocked_block, public register_bus::cr_target_if, public register_bus::reset_target_if {
 public:
  doorbell(std::string name, sim::clock_domain& domain, const config& cfg, sim::span_recorder& spans,
           sim::statistics& stats);

  sim::fifo_in<pcie::mmio_write> in{*this};
  sim::fifo_out<scheduler::send_doorbell> send_out{*this};
  sim::fifo_out<completion::queue_doorbell> queue_out{*this};

  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t offset, std::uint32_t value) override;
  /// Until firmware opens UAR pages again all writes are counted as writes beyond them.
  void device_reset() override;

 private:
  static constexpr unsigned bf_buffer_bytes = 256;
  static constexpr unsigned arm_halves = 64;
  struct gather {
    bool busy = false;
    std::uint16_t function = 0;
    std::uint64_t buffer = 0;   // index of the 256-byte buffer in the BlueFlame region
    std::uint32_t arrived = 0;  // 8-byte words
    std::uint64_t order = 0;
    scheduler::blueflame_ptr wqe;
    sim::span_id span = 0;
  };
  struct remainder {  // of a descriptor that has lost its place
    std::uint16_t function = 0;
    std::uint64_t buffer = 0;
    std::uint32_t words = 0;  // not arrived; 0: unused
  };
  struct arm_half {
    bool valid = false;
    std::uint16_t function = 0;
    std::uint64_t page = 0;
    std::uint32_t word = 0;
  };

  void tick() override;
  bool decode(const pcie::mmio_write& w);
  bool decode_register(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset);
  bool ring_send(const pcie::mmio_write& w, std::uint64_t page);
  bool arm_cq(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset);
  void push_arm(const pcie::mmio_write& w, std::uint32_t first, std::uint32_t second);
  bool update_eq(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset);
  bool blueflame(const pcie::mmio_write& w, std::uint64_t offset);
  template <class Port>
  bool has_room(const Port& out, const char* of) {
    if (out.claim()) return true;
    decoder_.blocked(of);
    return false;
  }
  bool again();
  gather* open_gather(std::uint16_t function, std::uint64_t buffer);
  void evict(gather& g);
  bool drop_remainder(std::uint16_t function, std::uint64_t buffer, std::uint32_t words);
  void close_gather(gather& g, bool with_descriptor);
  void finish_if_complete(gather& g);

  config config_;
  sim::span_recorder& spans_;
  payload::pool<scheduler::blueflame_wqe> pool_;
  std::vector<gather> gathers_;
  std::vector<remainder> remainders_;  // as many as gathers; the next one takes the place of the oldest
  std::size_t next_remainder_ = 0;
  bool remainders_wanted_ = false;
  std::array<arm_half, arm_halves> halves_{};
  std::uint64_t order_ = 0;
  sim::server decoder_{*this, "decoder"};
  std::uint32_t page_shift_ = 12;
  std::uint32_t log_uars_ = 0;
  bool blueflame_on_ = false;
  bool closed_ = true;  // no pages were given out since the reset

  std::uint64_t sends_ = 0, blueflames_ = 0, arms_ = 0, eq_updates_ = 0, bad_offset_ = 0, bad_length_ = 0;
  std::uint64_t bf_partial_ = 0, bf_disabled_ = 0, bf_bad_ = 0;
};

}  // namespace rnic::doorbell
