// SPDX-License-Identifier: Apache-2.0
// The benchmarks of pcie-bench (bibliography, calibration 2.4) on an adapter's PCI Express interface alone in a slot.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "host_driver/hosts/node.h"
#include "host_driver/workloads/latency_record.h"
#include "testbenches/bench/measuring_card.h"

namespace rnic::bench {

/// By pcie-bench's names LAT_RD, LAT_WRRD, BW_RD, BW_WR and BW_RDWR: one read at a time; a write and a read of the same
/// place behind it; as many reads, writes, or both in turn, as the DMA engine takes.
enum class dma_test : std::uint8_t { lat_rd, lat_wrrd, bw_rd, bw_wr, bw_rdwr };
/// "lat_rd" and so on, in the order of dma_test.
const std::vector<std::string>& dma_test_names();

/// What is in the cache before the first transfer: nothing of the window; what the host has touched; what the device
/// has written.
enum class cache_state : std::uint8_t { cold, host_warm, device_warm };

struct dma_load {
  dma_test test = dma_test::lat_rd;
  std::uint32_t bytes = 64;
  std::uint32_t offset = 0;     ///< of each place from a 64-byte line
  std::uint64_t window = 8192;  ///< bytes of the host's buffer, which holds at least one place
  bool sequential = false;      ///< places one behind the other, round and round; else by chance
  cache_state cache = cache_state::host_warm;
  bool remote = false;                  ///< the buffer is in the other socket's memory
  std::uint64_t llc_bytes = 15u << 20;  ///< of a window that the host has touched, what is still cached
  unsigned count = 2000;  ///< transfers that count (pairs, of lat_wrrd), behind a fourth of as many that do not
  std::uint64_t seed = 1;
  card_fetch fetch{0, 0, 0};  ///< of what is written, unit_bytes 0: it is there
};

struct dma_outcome {
  workloads::latency_record latencies;  ///< of lat_rd and lat_wrrd
  double gbps = 0;                      ///< of payload; bw_rdwr: of each way
  double mtps = 0;                      ///< transfers, in millions a second; bw_rdwr: of each way
  std::uint64_t failed = 0;             ///< transfers that were not answered with success
  std::vector<std::pair<std::string, std::uint64_t>> counters;  ///< of root complex, IOMMU and link, by their names
};

/// Places of a window: each begins `offset` bytes behind a line and takes whole lines.
std::uint64_t dma_places(const dma_load& load);

/// One call in a process. `at`, where given, is told how many transfers are done now and then. Throws sim::config_error
/// for what `config` cannot be.
dma_outcome run_dma(const hosts::node_config& config, const dma_load& load,
                    const std::function<void(std::uint64_t)>& at = {});

}  // namespace rnic::bench
