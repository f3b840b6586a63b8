// SPDX-License-Identifier: Apache-2.0
// Descriptor fetch: bytes of send queues from host memory into the descriptor memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/icm/translation_if.h"
#include "model/pcie/dma_if.h"
#include "model/sim/arbiter.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/requester/descriptor_memory.h"

namespace rnic::transport {

/// Bytes of a send queue that a processing unit asks for. They may run over the end of the ring, once.
struct descriptor_job {
  std::uint64_t mtt = 0;         ///< of the queue's buffer,
  std::uint64_t offset = 0;      ///< in which the ring begins here
  std::uint64_t at = 0;          ///< first byte, from the ring's beginning
  std::uint32_t bytes = 0;       ///< 1 to descriptor_memory::unit_bytes, no more than the ring has
  std::uint32_t place = 0;       ///< of the first byte in the unit's part of the descriptor memory
  std::uint32_t qpn = 0;         ///< given back
  std::uint32_t generation = 0;  ///< given back; is not looked at
  std::uint16_t function = 0;
  std::uint8_t unit = 0;
  std::uint8_t log_ring = 0;  ///< bytes of the ring
  std::uint8_t log_page = 12;
  sim::span_id span = 0;  ///< of the message that waits for it
};

/// All of a job is in the descriptor memory, or will never be. There is one for each job.
struct descriptor_result {
  std::uint32_t qpn = 0, generation = 0, bytes = 0;
  std::uint8_t unit = 0;
  bool ok = false;  ///< false: memory or translation refused, or another job took its place
};

/// Data sheet.
///
/// Ports, each of one item a cycle: jobs in, results out, address translation, DMA (reads only). The write port of the
/// descriptor memory.
///
/// Stages: accept (cycle 0); ask, the address of a part a cycle, units in turn (0 for a job that finds none in front of
/// it; a second part for a job that runs over the end of the ring); translation; read, one DMA request a cycle (two for
/// a part across a page), of the answer in front, which leaves with its last one; memory; end, in the cycle in which
/// memory has answered the job's last read: one result a cycle, units in turn. In a cycle first memory's answer, then
/// read, end, accept, ask: a job that is accepted in the cycle in which the one before it ends finds none under way.
///
/// Translation is asked for kind buffer, access local_read, va = offset + at (of a second part: offset), buffer_mtt,
/// log_page, length and span; DMA requests have function and destination. What else these have is 0.
///
/// A refused address or read makes the result not ok, and the job's other part is asked for and read all the same. An
/// answer with nothing to read, refused or of a job that was cut before its first read was made, leaves in the cycle in
/// which it stands in front, without room for a request.
///
/// Memories: two jobs a unit, the one under way and the one behind it; the descriptor memory, written by the DMA
/// engine.
///
/// Stalls: accept, while the unit of the job in front has two; ask, when translation takes no request; read, when the
/// DMA engine takes none; end, while the channel of results is full.
///
/// A unit has one job under way. A job that comes meanwhile is for another queue pair or place: it cuts the one under
/// way, whatever their generations and also if all of that was asked for. That asks for no more addresses, reads
/// nothing for those that come, but for the second half of one across a page whose first it has asked for, and ends,
/// not ok, when all it had asked for is answered; the new one begins in that cycle. One that waits for nothing but the
/// channel of results is not cut. So nothing that comes late is written over what the unit asked for last.
///
/// Counters: fetches, jobs that have begun; bytes, of DMA requests when they are made; failed, results of jobs with a
/// refused address or read; cut; translation_misses, answers that said so, of cut jobs as well. Span marks: "address",
/// "read". Reset: none, what the requester has asked for comes back.
class descriptor_fetch : public sim::clocked_block {
 public:
  descriptor_fetch(std::string name, sim::clock_domain& domain, descriptor_memory& memory, sim::span_recorder& spans,
                   sim::statistics& stats);

  sim::fifo_in<descriptor_job> job_in{*this};
  sim::fifo_out<descriptor_result> result_out{*this};
  pcie::dma_port dma{*this};
  icm::translate_port translate{*this};

 private:
  struct reading {
    descriptor_job job, behind;
    std::uint32_t asked = 0;    // bytes
    std::uint32_t pending = 0;  // addresses and reads that are not answered
    bool failed = false, cut = false, missed = false;
  };

  void tick() override;
  void take_memory();
  void take_address();
  void end_one();
  void accept();
  void ask();
  void begin(unsigned unit);
  void ends(unsigned unit);

  descriptor_memory& memory_;
  sim::span_recorder& spans_;
  std::vector<reading> units_;
  std::uint32_t under_way_ = 0, waiting_ = 0;  // masks of units: have a job, and one behind it
  std::uint32_t asking_ = 0, ended_ = 0;       // masks of units: not all asked for; nothing left but the result
  sim::round_robin ask_turn_, end_turn_;
  unsigned parts_ = 0;  // of the address in front that memory has been asked for

  std::uint64_t fetches_ = 0, bytes_ = 0, failed_ = 0, cut_ = 0, translation_misses_ = 0;
};

}  // namespace rnic::transport
