// SPDX-License-Identifier: Apache-2.0
// The PCI Express interface of an adapter alone in a slot, with a block that does nothing but DMA: what pcie-bench does
// to real hosts and adapters.
#pragma once

#include <cstdint>

#include "host_driver/hosts/node.h"
#include "testbenches/bench/measuring_card.h"

namespace rnic::bench {

/// DMA writes one behind the other, each `offset` bytes behind a 64-byte line of host memory.
struct write_load {
  std::uint32_t bytes = 64;
  std::uint32_t offset = 0;
  unsigned writes = 1000;
  card_fetch fetch;
};

/// Gb/s of payload. One call in a process.
double dma_write_gbps(const hosts::node_config& config, const write_load& load);
/// From the request to the last byte on chip, of one read at a time, in picoseconds. One call in a process.
sim::time_ps dma_read_ps(const hosts::node_config& config, std::uint32_t bytes);
/// A write of `bytes` to a random line of `window` bytes of memory and a read of it at once: how much longer they take
/// than in a window of 4 KiB, in nanoseconds. One call in a process.
double dma_write_read_extra_ns(const hosts::node_config& config, std::uint32_t bytes, std::uint64_t window,
                               host::memory_class where);

}  // namespace rnic::bench
