// SPDX-License-Identifier: Apache-2.0
// The unit that executes atomic operations on host memory, one after the other where they share a lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/pipeline.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/responder/atomics.h"

namespace rnic::transport {

/// Data sheet.
///
/// Ports, each of one item a cycle: jobs in, from the READ generator; outcomes out; DMA reads (operands) and DMA writes
/// (results), which ask for notice.
///
/// Stages of a job: taken (cycle 0); start, one a cycle: the oldest whose lock is free, with no older one of the same
/// lock in front of it, asks for its operand (0 for one that finds nobody in front of it); memory; align, execute and
/// store (align_cycles, execute_cycles, store_cycles) from the operand's arrival to its write, one write a cycle;
/// notice; outcome, one a cycle, in the cycle in which the notice is there. Then lock and engine are free, and the next
/// one starts in that cycle. Operands have the byte order of the host, little-endian (adapter data plane C.6).
///
/// In a cycle: notice, operand, a job, outcome, writes, start; of several the oldest first. Requests are of eight
/// bytes, for the function of the job. A job's outcome that is not executed has what was read, or 0.
///
/// Order: jobs of a lock are executed in the order in which they were handed over. The lock, chosen by the low bits of
/// the address (modulo lock_buckets), is held until the write is on its way, so that no other job of that lock reads
/// what was there before. Among locks there is no order.
///
/// An abandoned job is not executed, unless its write was asked for: one that waits ends at once, one whose operand is
/// under way when that has come. Each job has an outcome. Word that comes for one which has ended is nobody's.
///
/// Memories: a place for each job, in_flight of them with an engine, in the order of hand-over, with operand; each
/// knows how many older ones of its lock are here (comparators of all places when it comes, and when one ends), and
/// comparators for its number.
///
/// Stalls: jobs wait for lock and engine, for the DMA engine to take a read; executed ones for it to take a write;
/// ended ones for room among the outcomes, and keep lock and engine until then. Jobs are always taken: the READ
/// generator hands over no more than there are places. An engine that is free and has nothing to start is blocked by
/// "lock", or by "memory", which takes no read. Counters: executed; abandoned; failed, memory could not be read;
/// lock_waits, jobs that found an older one of their lock, abandoned later or not. An abandoned job whose operand could
/// not be read counts as abandoned. Whether memory has taken a write is not looked at.
class atomic_unit : public sim::clocked_block {
 public:
  atomic_unit(const std::string& name, sim::clock_domain& domain, const atomic_unit_config& config,
              sim::span_recorder& spans, sim::statistics& stats);

  sim::fifo_in<atomic_job> job_in{*this};
  sim::fifo_out<atomic_outcome> outcome_out{*this};
  pcie::dma_port dma_read{*this};
  pcie::dma_port dma_write{*this};

 private:
  enum class phase : std::uint8_t { waiting, reading, computing, writing, ended };
  struct place {
    atomic_job job;
    phase at = phase::waiting;
    bool failed = false, abandoned = false, executed = false;
    std::uint16_t older = 0;  // jobs of its lock in front of it
    sim::server* engine = nullptr;
    std::array<std::uint8_t, 8> operand{};
    std::uint64_t original = 0;
    sim::cycle_t ready = 0;  // computing: end of it
  };
  void tick() override;
  void take_notice();
  void take_operand();
  void take_job();
  void abandon(std::uint16_t job);
  void end();
  void write();
  void start();
  void read(std::uint16_t at);
  void free(std::size_t position);
  sim::server* free_engine();
  void hold_up(sim::server* engine, const char* by);
  std::uint64_t lock_of(const place& p) const { return p.job.address & (config_.lock_buckets - 1); }

  const atomic_unit_config config_;
  sim::span_recorder& spans_;
  sim::pipeline pipeline_;  // from operand to write
  std::vector<place> places_;
  std::vector<std::uint16_t> order_, free_;  // places of jobs, in the order of hand-over; the others
  std::vector<std::unique_ptr<sim::server>> engines_;
  sim::server* held_up_ = nullptr;  // engine that something keeps from starting
  unsigned waiting_ = 0, computing_ = 0, ended_ = 0;
  struct {
    std::uint64_t executed = 0, abandoned = 0, failed = 0, lock_waits = 0;
  } count_;
};

}  // namespace rnic::transport
