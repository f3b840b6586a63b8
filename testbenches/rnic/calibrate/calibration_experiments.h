// SPDX-License-Identifier: Apache-2.0
// The experiments behind published figures of this adapter family. One call in a process: each builds its own system.
#pragma once

#include <cstdint>

#include "testbenches/bench/swarm.h"
#include "testbenches/rnic/options.h"

namespace rnic::program {

/// Gb/s of DMA writes of `bytes` that begin `offset` behind a line of host memory, and nanoseconds of one DMA read,
/// both of the card that the published hosts were measured with: its interface and engine, not this adapter's.
double dma_write(const common_options& common, std::uint32_t bytes, std::uint32_t offset = 0);
double dma_read(const common_options& common, std::uint32_t bytes);
/// Nanoseconds that a write and a read behind it take longer at random places of `window` bytes of memory that no cache
/// holds than in 4 KiB of it. Same card.
double write_and_read(const common_options& common, std::uint32_t bytes, std::uint64_t window);

/// The network between two machines.
enum class network : std::uint8_t {
  direct_40g,    ///< a cable, 40GbE
  switched_qdr,  ///< a switch, 32 Gb/s: InfiniBand QDR after coding
  switched_fdr,  ///< a switch, 56GbE: nearest to InfiniBand FDR
  direct_edr,    ///< a metre of cable, 97 Gb/s without FEC: InfiniBand EDR after coding
};

/// Typical latency of a WRITE (half of the round trip) or READ (all of it) in microseconds.
double typical_latency(const common_options& common, const char* verb, std::uint32_t bytes, network over);
/// Gb/s of payload of 64 KiB WRITEs over one queue pair and a cable.
double write_goodput(const common_options& common, std::uint32_t rate_mbps, unsigned mtu = 2048);
/// Messages per microsecond of one queue pair, 64 B, over network::switched_qdr.
double one_queue_pair(const common_options& common, const char* verb);

/// Which end of a measurement are several machines behind a switch, so that it is never what limits.
enum class crowd : std::uint8_t { nobody, sender, receiver };

struct rate_test {
  bench::swarm_config load;
  ibv_qp_type type = IBV_QPT_RC;
  unsigned inline_bytes = 0;
  std::uint32_t rate_mbps = 56'000;
  crowd many = crowd::nobody;
  unsigned machines = 4;  ///< of the crowd
  bool both = false;      ///< both hosts post
  std::uint64_t warm_up = 10'000, messages = 30'000;
};

/// Messages per microsecond that the first host completes; with `both`, the mean of the two.
double message_rate(const common_options& common, const rate_test& t);

/// What many clients ask of one adapter: UC WRITEs, or READs.
rate_test inbound(ibv_wr_opcode opcode, std::uint32_t bytes);
/// What one adapter asks of many servers.
rate_test outbound_read(std::uint32_t bytes);
rate_test outbound_write(std::uint32_t bytes, bool is_inline);
/// As outbound_write(), inline, over that many queue pairs, any of them for the next message.
rate_test outbound_spread(unsigned qps);
/// READs of two hosts from each other over any of `qps` queue pairs.
rate_test symmetric_read(unsigned qps, std::uint32_t bytes = 32);
rate_test atomics();
/// As atomics(), on any of `counters` of eight bytes each, from enough queue pairs that their number is not what
/// limits.
rate_test spread_atomics(unsigned counters);
/// WRITEs from and to random places of regions of `megabytes`.
rate_test registered(std::uint32_t bytes, std::uint64_t megabytes);

}  // namespace rnic::program
