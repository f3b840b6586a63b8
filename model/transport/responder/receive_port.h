// SPDX-License-Identifier: Apache-2.0
// The responder's end of receive fetch.
#pragma once

#include <cstdint>

#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/ring.h"
#include "model/sim/seldom.h"
#include "model/transport/responder/receive_jobs.h"
#include "model/wire/bytes.h"

namespace rnic::transport {

/// Part of the responder: jobs on their way to receive fetch, in the order in which its parts ask, and what was read.
///
/// Memory: a line of jobs with a place for each place of the receive memory, which has one job at a time: who asks
/// never waits. Ports: one job and one result a cycle; the read ports of the receive memory. Stalls: receive fetch
/// takes no job.
class receive_port {
 public:
  receive_port(sim::clocked_block& owner, const responder_config& cfg, const receive_memory& memory)
      : job(owner), result(owner), memory_(memory), waiting_(receive_memory::places(cfg)) {}

  sim::fifo_out<receive_job> job;
  sim::fifo_in<receive_fetch_result> result;

  void ask(const receive_job& j) {
    waiting_.push(j);
    work();
  }
  /// The same for a doorbell record, at a bus address.
  void ask_record(const receive_place& place, std::uint64_t address, std::uint16_t function) {
    receive_job j;
    j.place = place;
    j.at = address;
    j.bytes = receive_memory::record_bytes;
    j.function = function;
    ask(j);
  }
  /// One goes on in a cycle. In each tick, in front of who asks.
  void work() {
    while (sim::seldom(!waiting_.empty()) && job.claim()) job.push(waiting_.pop());
  }
  /// What a result has told of.
  const std::uint8_t* read(const receive_place& p) const { return memory_.read(p); }
  /// Descriptors posted so far, by a doorbell record that a result has told of (adapter data plane A.2).
  std::uint16_t posted(const receive_place& record) const {
    return static_cast<std::uint16_t>(wire::load_be32(read(record)));
  }

 private:
  const receive_memory& memory_;
  sim::ring<receive_job> waiting_;
};

}  // namespace rnic::transport
