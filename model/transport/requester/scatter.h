// SPDX-License-Identifier: Apache-2.0
// Scatter: READ and atomic responses' payload on its way to host memory.
#pragma once

#include <cstdint>
#include <string>

#include "model/icm/key_operation_if.h"
#include "model/icm/translation_if.h"
#include "model/payload/frame.h"
#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/requester/scatter_lists.h"

namespace rnic::transport {

/// A response packet that the completer has accepted.
struct scatter_job {
  payload::frame_ptr frame;
  std::uint32_t qpn = 0, pd = 0, message = 0, generation = 0;  ///< message and generation: given back
  std::uint32_t list = 0;                                      ///< in the memory of scatter lists
  std::uint32_t offset = 0;                                    ///< of the payload's first byte in the message
  std::uint32_t reserved_lkey = 0;
  std::uint16_t function = 0;
  bool reserved_key = false;  ///< the QP may use the reserved key
};

/// The payload of a job is in memory, or will never be.
struct scatter_done {
  std::uint32_t qpn = 0, message = 0, generation = 0, list = 0;
  bool failed = false;  ///< a key did not allow it, or memory refused
};

/// Data sheet.
///
/// Ports, each of one item a cycle: jobs in, reports out (in the order of the jobs), address translation, DMA (writes
/// only), revocation of keys. One port of the memory of scatter lists: a read and a write of the cursor a cycle.
///
/// Stages: accept, into the queue of jobs (cycle 0); ask, one address a cycle (0 for the first piece; a segment of the
/// list that ends or is passed over costs a cycle of its own); translation; write, one DMA request a cycle in the order
/// of the pieces; report, in the cycle in which memory has answered the packet's last write. A piece is what a segment
/// of the list takes of a packet: at most two DMA requests. A job that was given up is reported a cycle after ask has
/// passed over it, one of which nothing is written a cycle after its last piece. A packet has a byte at least, and its
/// offset is not before the list's cursor. In a cycle: memory's answer, report, translation's answer, write, accept,
/// ask, revocation, whose flush gives way to a write.
///
/// Memories: queue of jobs (`scatter_jobs` entries), queue of pieces (64 entries, read at the head, written at the tail
/// and, by translation's answer, anywhere).
///
/// Stalls: accept, when the queue of jobs is full; ask, when translation takes no request or all pieces are in use;
/// write, until translation has answered the oldest piece and while the DMA engine takes no request; report, while
/// its channel is full. A job whose message was given up before its first piece was asked for writes nothing.
///
/// Two engines of a cycle each say by whom they are blocked: ask by "translation" or "dma", for which the pieces wait,
/// write by "translation", when the oldest piece has no address, or "dma".
///
/// Revocation of a key is answered when all jobs that were begun by then are written, and what was written of failed
/// ones has left the adapter too.
class scatter : public sim::clocked_block {
 public:
  scatter(std::string name, sim::clock_domain& domain, unsigned jobs, scatter_lists& lists, sim::span_recorder& spans,
          sim::statistics& stats);

  sim::fifo_in<scatter_job> job_in{*this};
  sim::fifo_out<scatter_done> done_out{*this};
  pcie::dma_port dma{*this};
  icm::translate_port translate{*this};
  icm::revocation_port keys{*this};  ///< may stay unbound

 private:
  struct work {
    scatter_job job;
    std::uint32_t asked = 0;  // bytes
    bool failed = false, notified = false, finished = false;
  };
  struct piece {
    std::uint32_t job = 0;
    std::uint32_t place = 0;  // in the payload
    unsigned sent = 0;        // DMA requests
    bool answered = false, last = false;
    icm::translate_response answer;
  };
  enum class revocation : std::uint8_t { none, draining, flushing, done };
  static constexpr unsigned piece_depth = 64;
  static constexpr std::uint64_t flush_tag = std::uint64_t{1} << 32;  // others: number of a job

  void tick() override;
  void take_memory();
  void report();
  void take_translation();
  void write();
  void accept();
  void ask();
  void ask_piece(scatter_list& list);
  void revoke();
  void finish(work& w);
  const char* ask_held_up_by() const;
  const char* write_held_up_by() const;
  work& job(std::uint32_t number) { return jobs_[number - first_job_]; }
  const work& job(std::uint32_t number) const { return jobs_[number - first_job_]; }

  scatter_lists& lists_;
  sim::span_recorder& spans_;
  sim::ring<work> jobs_;
  std::uint32_t first_job_ = 0;  // number of the oldest
  std::uint32_t asking_ = 0;     // number of the first that is not asked for to its end
  sim::ring<piece> pieces_{piece_depth};
  std::uint32_t first_piece_ = 0;
  revocation revocation_ = revocation::none;
  std::uint32_t revoked_key_ = 0, drain_to_ = 0;  // all jobs before this number
  sim::server ask_{*this, "ask"}, write_{*this, "write"};

  std::uint64_t packets_ = 0, bytes_ = 0, writes_ = 0, failed_ = 0, given_up_ = 0, translation_misses_ = 0;
};

}  // namespace rnic::transport
