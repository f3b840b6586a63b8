// SPDX-License-Identifier: Apache-2.0
// Doorbells of completion and event queues.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/completion/completion_if.h"
#include "model/doorbell/uar_pages.h"
#include "model/pcie/dma_if.h"
#include "model/sim/fifo.h"

namespace rnic::doorbell {

/// Data sheet. Part of the doorbell decoder, in whose turn it works.
///
/// The arming of a CQ is a store of 8 bytes, or two of 4, of which the first half waits for the second; that of an EQ a
/// store of 4 bytes, whose place in the page names the EQ, by the numbers of the function whose page it is.
///
/// Memory: 64 first halves, by page.
///
/// Stalls: no room in the channel to completion; then the same store is decoded again.
///
/// Counters: cq_arms, eq_updates, bad_length.
class queue_doorbells {
 public:
  static constexpr std::uint64_t arm_offset = 0x20, eq_offset = 0x800, eq_pages = 128, eqs_per_page = 4;

  queue_doorbells(const sim::fifo_out<completion::queue_doorbell>& out, const uar_pages& pages,
                  doorbell_counters& counters)
      : out_(out), pages_(pages), counters_(counters) {}

  /// False: no room.
  bool arm_cq(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset);
  bool update_eq(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset);
  void reset() { halves_.fill({}); }

 private:
  struct arm_half {
    bool valid = false;
    std::uint16_t function = 0;
    std::uint64_t page = 0;
    std::uint32_t word = 0;
  };
  void push_arm(const pcie::mmio_write& w, std::uint64_t page, std::uint32_t first, std::uint32_t second);
  std::optional<std::uint32_t> eq_of(std::uint16_t function, std::uint64_t number) const;

  const sim::fifo_out<completion::queue_doorbell>& out_;
  const uar_pages& pages_;
  doorbell_counters& counters_;
  std::array<arm_half, 64> halves_{};
};

}  // namespace rnic::doorbell
