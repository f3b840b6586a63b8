// SPDX-License-Identifier: Apache-2.0
// The PCI Express interface of an adapter alone in a slot, with a block that does nothing but DMA: what pcie-bench does
// to real hosts and adapters.
#pragma once

#include <cstdint>

#include "host_driver/hosts/node.h"

namespace rnic::bench {

/// Gb/s of payload of DMA writes of `bytes` each, one behind the other. One call in a process.
double dma_write_gbps(const hosts::node_config& config, std::uint32_t bytes, unsigned writes);
/// From the request to the last byte on chip, of one read at a time, in picoseconds. One call in a process.
sim::time_ps dma_read_ps(const hosts::node_config& config, std::uint32_t bytes);

}  // namespace rnic::bench
