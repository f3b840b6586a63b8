// SPDX-License-Identifier: Apache-2.0
// Firmware's DMA channel, on the core clock.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/timed_inbox.h"

namespace rnic::command {

/// One DMA of firmware; the data are in the channel's buffer, which belongs to the channel from the job to its answer.
struct dma_job {
  pcie::dma_request::kind op = pcie::dma_request::kind::read;
  std::uint16_t function = 0;
  std::uint32_t length = 0;  ///< 1..firmware_dma::buffer_bytes
  std::uint64_t address = 0;
};
struct dma_done {
  bool ok = false;
};

/// Data sheet.
///
/// Carries firmware's DMA between its clock and the core's: one job at a time. A write is done when it has entered the
/// posted queue, so whatever firmware does next comes after it.
///
/// Ports: jobs from firmware's clock and answers to it, each across one edge; one DMA request and response a cycle.
/// Memory: one buffer of 4096 bytes, of the job under way. Stalls: a job, while the DMA channel takes none.
class firmware_dma : public sim::clocked_block {
 public:
  static constexpr std::uint32_t buffer_bytes = 4096;

  firmware_dma(std::string name, sim::clock_domain& core);

  pcie::dma_port dma;
  /// From firmware_port, and back to it (firmware_port::dma_answers). To be bound by the adapter.
  sim::timed_inbox<dma_job> jobs;
  void bind_answers(sim::timed_inbox<dma_done>& inbox) { answers_ = &inbox; }

  std::uint8_t* buffer() { return buffer_.data(); }

 private:
  void tick() override;

  static constexpr sim::time_ps crossing_ps = 1;  // the other clock's next edge after this one
  sim::timed_inbox<dma_done>* answers_ = nullptr;
  alignas(64) std::array<std::uint8_t, buffer_bytes> buffer_{};
  bool busy_ = false;
  std::uint64_t tag_ = 0;
};

}  // namespace rnic::command
