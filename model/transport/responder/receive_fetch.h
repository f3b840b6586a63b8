// SPDX-License-Identifier: Apache-2.0
// Receive fetch: receive descriptors and doorbell records from host memory into the receive memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/icm/translation_if.h"
#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/ring.h"
#include "model/sim/statistics.h"
#include "model/transport/responder/receive_jobs.h"
#include "model/transport/responder/receive_memory.h"

namespace rnic::transport {

/// Data sheet.
///
/// Ports, each of one item a cycle: jobs in, results out, address translation, DMA (reads only). The write port of the
/// receive memory.
///
/// Stages: accept (cycle 0); ask, the address of descriptors, in the order in which they came (0 for a job that finds
/// none in front of it); translation; read, one DMA request a cycle, two for descriptors across a page, in the cycle in
/// which translation has answered; a doorbell record, whose address is a bus address, in that in which it came. Where
/// descriptors and records wait for the read, they take turns. Memory; end, in the cycle in which memory has answered
/// the job's last read, or translation has refused it: one result a cycle, in that order. In a cycle first memory's
/// answer, then accept, a refusal or a read, end, ask: a place is free from the cycle behind its result on, and of two
/// jobs that come to their end in a cycle the one that memory has answered is the first.
///
/// A turn is a DMA request: behind one for descriptors a record is next, and the other way round, whether the other
/// kind waited or not, so one may go between the two for descriptors across a page. Where there is nothing of the kind
/// whose turn it is, the other goes. Answers of translation are used in their order and leave with their last read; a
/// refused one leaves in the cycle in which it stands in front, in which a record may be read: it needs no turn and no
/// room. Where the first of two reads fails the second is made all the same; ok is false where any has failed.
///
/// Translation is asked for kind buffer, access local_read, va = at, buffer_mtt, log_page and length; DMA requests have
/// function and destination, of a second part behind the bytes of the first. Their tag is the job's place, which is
/// used again in the order in which places come free, from 0 on. What else they have is 0.
///
/// Memories: jobs under way, adapter.responder.receive_fetches of them, found by the tag of an answer, with a port each
/// for accept, ask, memory's answer, translation's, and end; lines of those that wait for an address, for the read of a
/// record, and for their result (two of these may come in a cycle); the receive memory, written by the DMA engine, a
/// beat of the datapath a cycle.
///
/// Stalls: accept, while as many jobs are under way as there are places for; ask, when translation takes no request;
/// read, when the DMA engine takes none; end, while the channel of results is full.
///
/// Counters: fetches and records, jobs of descriptors and of records, when accepted; bytes, of descriptors, when asked
/// for; failed, jobs of either kind, with their result; translation_misses, answers that said so, when they leave.
/// Reset: none; jobs under way fail, as DMA is refused, and each has its result.
class receive_fetch : public sim::clocked_block {
 public:
  receive_fetch(std::string name, sim::clock_domain& domain, unsigned fetches, receive_memory& memory,
                sim::statistics& stats);

  sim::fifo_in<receive_job> job_in{*this};
  sim::fifo_out<receive_fetch_result> result_out{*this};
  pcie::dma_port dma{*this};
  icm::translate_port translate{*this};

 private:
  struct fetch {
    receive_job job;
    std::uint32_t pending = 0;  // address and reads that are not answered
    bool failed = false;
  };

  void tick() override;
  void take_memory();
  void accept();
  void read();
  void read_record();
  void read_part();
  void end_one();
  void ask();
  void request(std::uint32_t of, std::uint64_t address, std::uint32_t offset, std::uint32_t length);
  void answered(std::uint32_t of);

  receive_memory& memory_;
  std::vector<fetch> fetches_;
  sim::ring<std::uint32_t> free_, asking_, records_, ended_;  // numbers of fetches
  unsigned parts_ = 0;                                        // of the address in front that memory has been asked for
  bool record_next_ = false;                                  // whose turn it is to read

  std::uint64_t descriptor_fetches_ = 0, bytes_ = 0, record_fetches_ = 0, failed_ = 0, translation_misses_ = 0;
};

}  // namespace rnic::transport
