// SPDX-License-Identifier: Apache-2.0
// Parameters of the DMA engine.
#pragma once

#include <cstdint>

#include "model/sim/parameter.h"

namespace rnic::pcie {

struct dma_config {
  sim::parameter<unsigned> tags{32, {1, 256, "reads", "calibration 5: tags"}};  ///< read packets in flight
  /// Requests of one client that are not answered yet.
  sim::parameter<unsigned> reads_per_client{16, {1, 64, "requests", "design"}};
  /// A write's packets end at multiples of the maximum payload, so that one that begins elsewhere has a packet more.
  sim::parameter<bool> aligned_packets{false, "design: not known of this adapter; measuring cards have them"};
  /// Read data goes on from the reassembly buffer over the adapter's datapath when it is complete (calibration 5:
  /// gather is store-and-forward; with the link it makes the 0.29 ns a byte of C02).
  std::uint32_t fill_bytes_per_cycle = 16;
  /// Of a longer read, what comes before has gone on while the rest arrived.
  sim::parameter<std::uint32_t> fill_limit_bytes{4096, {64, 1u << 20, "bytes", "design"}};
  /// From a read request to the end of its data.
  sim::parameter<std::uint64_t> completion_timeout_ps{
      10'000'000'000, {sim::many, 64'000'000'000'000ull, "ps", "PCI Express Base 2.8: 50 us to 64 s"}};

  void list(sim::fields& are) {
    are("tags", tags);
    are("reads_per_client", reads_per_client);
    are("aligned_packets", aligned_packets);
    are("fill_limit_bytes", fill_limit_bytes);
    are("completion_timeout_ps", completion_timeout_ps);
  }
};

}  // namespace rnic::pcie
