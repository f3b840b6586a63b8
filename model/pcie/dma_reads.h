// SPDX-License-Identifier: Apache-2.0
// The DMA engine's reads: request packets out, completions put together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/payload/tlp.h"
#include "model/pcie/bus_master.h"
#include "model/pcie/config_space.h"
#include "model/pcie/dma_clients.h"
#include "model/pcie/dma_config.h"
#include "model/pcie/transmit_path.h"
#include "model/sim/arbiter.h"
#include "model/sim/clocked_block.h"
#include "model/sim/ring.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"

namespace rnic::pcie {

/// A read becomes packets of up to the maximum read request that do not cross 4 KiB, each with a tag; clients take
/// turns, a client's reads go one after the other. Completions of one packet come in the order of its bytes (Base
/// Specification 3.0, 2.3.1.1), those of different packets in any. The read is answered when its last byte is there
/// and has gone on over the adapter's datapath, one read at a time (fill_bytes_per_cycle, fill_limit_bytes). What
/// fails is answered with why, after the packets in flight have come or their time is over; no further ones are sent.
class dma_reads {
 public:
  dma_reads(sim::clocked_block& owner, const dma_config& c, unsigned clients, dma_clients& answers, transmit_path& path,
            payload::tlp_pool& pool, config_space& space, const bus_master& bus);

  void start(unsigned client, const dma_request& r);
  /// Whether one has packets to send, and
  bool waiting() const { return waiting_ != 0; }
  /// there is a tag for the next one: then issue() sends it. Room on the path and credits are the caller's to see.
  bool can_issue() const { return waiting_ != 0 && !free_tags_.empty(); }
  void issue();

  /// dma_engine::complete() and complete_ahead().
  void complete(const payload::tlp& t);
  bool complete_ahead(const payload::tlp& t, bool alone, sim::time_ps arrival);
  /// Packets whose time is over. The owner's tick calls this.
  void check_timeouts();
  /// Gives up those whose function may not master the bus any more, but for packets in flight. Returns how many.
  unsigned stop();

  unsigned tags_in_use() const { return static_cast<unsigned>(tags_.size() - free_tags_.size()); }
  struct counters {
    std::uint64_t requests = 0, bytes = 0, packets = 0, unexpected = 0, timeouts = 0, failed = 0, tags_used_up = 0;
  };
  const counters& counts() const { return counts_; }

 private:
  struct read_state {
    std::uint64_t tag = 0;
    std::uint64_t address = 0;  // of the next packet
    std::uint8_t* destination = nullptr;
    std::uint32_t length = 0;
    std::uint32_t issued = 0;
    unsigned packets = 0;  // in flight
    std::uint16_t client = 0;
    std::uint16_t function = 0;
    dma_status status = dma_status::ok;
    sim::span_id span = 0;
  };
  struct tag_state {
    bool active = false;
    std::uint32_t read = 0;
    std::uint32_t offset = 0;     // in the request's data
    std::uint32_t remaining = 0;  // bytes not arrived
    sim::cycle_t deadline = 0;
    std::uint32_t coming = 0;  // completions that complete_ahead() left to complete()
  };

  void put_away(tag_state& tag, const payload::tlp& t);
  void unexpected();
  void free_tag(unsigned tag);
  void fail(std::uint32_t index, dma_status status);
  void finish_if_done(std::uint32_t index);

  sim::clocked_block& owner_;
  const dma_config config_;
  dma_clients& clients_;
  transmit_path& path_;
  payload::tlp_pool& pool_;
  config_space& space_;
  const bus_master& bus_;
  sim::cycle_t timeout_cycles_;

  std::vector<read_state> reads_;
  std::vector<std::uint32_t> free_reads_;
  std::vector<tag_state> tags_;
  std::vector<std::uint16_t> free_tags_;
  std::vector<sim::ring<std::uint32_t>> queues_;  // by client: reads with packets to send
  std::uint64_t waiting_ = 0;                     // clients with such reads
  sim::round_robin order_;
  sim::cycle_t fill_free_ = 0;
  sim::cycle_t check_at_ = sim::never;
  counters counts_;
};

}  // namespace rnic::pcie
