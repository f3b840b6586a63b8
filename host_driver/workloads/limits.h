// SPDX-License-Identifier: Apache-2.0
// What workloads may be.
#pragma once

#include <cstdint>
#include <string>

#include "host_driver/workloads/workload.h"

namespace rnic::workloads {

inline constexpr unsigned most_threads = 64, most_qps = 4096, most_depth = 4096, most_batch = 32, most_regions = 65'536;
inline constexpr std::uint32_t longest_message = 1u << 30;  ///< bytes; more than the 2 GiB of IBA need not be
inline constexpr std::uint64_t longest_region = std::uint64_t{1} << 34;
/// Bytes of a request in its descriptor: of datagrams, whose address takes room, and others; of a receive.
inline constexpr unsigned most_inline_of_datagrams = 884, most_inline = 912, most_inline_receive = 512;

/// Of a closed loop: depth that leaves room for a batch beside the messages without a completion.
inline unsigned least_depth(const workload_config& w) { return w.signal_every + w.batch - 1; }

/// Why this machine cannot hold send queues of so many queue pairs with so many messages each, which are at least a
/// descriptor of 64 bytes each: a sentence; empty: it can.
std::string lacks_memory(std::uint64_t queue_pairs, std::uint64_t depth);
/// The same of a workload's.
std::string lacks_memory(const workload_config& w);

/// Refuses what cannot run on this network, or would never end: `endless` says that the run has no end of its own.
/// Throws sim::config_error: one line with workload, field and what is legal.
void check(const workload_config& w, const fabric::topology& shape, bool endless);

}  // namespace rnic::workloads
