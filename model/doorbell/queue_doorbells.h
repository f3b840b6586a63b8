// SPDX-License-Identifier: Apache-2.0
// Doorbells of completion and event queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/completion/completion_if.h"
#include "model/doorbell/uar_pages.h"
#include "model/pcie/dma_if.h"
#include "model/sim/fifo.h"

namespace rnic::doorbell {

/// Data sheet. Part of the doorbell decoder, in whose turn it works.
///
/// The arming of a CQ is a store of 8 bytes at 0x20, or of 4 there and 4 at 0x24, of which the first half waits for the
/// second. CQ number in bits 23:0 of the first word, command in 26:24, sequence in 29:28; consumer index in the second.
/// `uar` is the number of the page, without the function, which is beside it.
///
/// That of an EQ is a store of 4 bytes at 0x800 + 8 * i of page p: number 4 * p + i of the function whose page it is.
/// The length is looked at first, then the number: one that the function has not (doorbell_cr.h) is bad_offset.
///
/// Memory: `halves` first halves a function, page p at p modulo `halves`, with the page. A first half takes the place
/// of what is there. A second one without the first one of its page is bad_length; else it takes it, when it goes out.
/// A store of 8 bytes leaves the place as it is.
///
/// Stalls: no room in the channel to completion for what goes out; then the same store is decoded again.
///
/// Counters: cq_arms, eq_updates, bad_length.
class queue_doorbells {
 public:
  static constexpr std::uint64_t arm_offset = 0x20, eq_offset = 0x800, eq_pages = 128, eqs_per_page = 4;
  static constexpr std::size_t halves = 64;

  queue_doorbells(const sim::fifo_out<completion::queue_doorbell>& out, const uar_pages& pages,
                  doorbell_counters& counters)
      : out_(out), pages_(pages), counters_(counters) {}

  /// False: no room.
  bool arm_cq(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset);
  bool update_eq(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset);
  void reset() { halves_.clear(); }

 private:
  struct arm_half {
    bool valid = false;
    std::uint64_t page = 0;
    std::uint32_t word = 0;
  };
  arm_half& half_of(std::uint16_t function, std::uint64_t page);
  void push_arm(const pcie::mmio_write& w, std::uint64_t page, std::uint32_t first, std::uint32_t second);
  std::optional<std::uint32_t> eq_of(std::uint16_t function, std::uint64_t number) const;

  const sim::fifo_out<completion::queue_doorbell>& out_;
  const uar_pages& pages_;
  doorbell_counters& counters_;
  std::vector<arm_half> halves_;  // of the functions that have armed
};

}  // namespace rnic::doorbell
