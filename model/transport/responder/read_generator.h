// SPDX-License-Identifier: Apache-2.0
// READ generator: READ responses from host memory, and the order of a queue pair's answers, those of atomics too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/icm/translation_if.h"
#include "model/payload/frame.h"
#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/congestion/notice.h"
#include "model/transport/read_engine/read_engine_port.h"
#include "model/transport/responder/answer_lines.h"
#include "model/transport/responder/answer_port.h"
#include "model/transport/responder/atomics.h"
#include "model/transport/responder/read_commands.h"
#include "model/transport/responder/read_gathers.h"
#include "model/transport/responder/read_requests.h"
#include "model/transport/responder/response_pacing.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Data sheet.
///
/// Ports, each of one item a cycle: commands in, reports out; answers to answer_transmit (answer_port); address
/// translation; DMA reads (READ payload); jobs to the atomic unit, outcomes from it; the READ engine; CNPs and CNMs
/// that have come for queue pairs, which move their rates in the cycle in which they are seen; the internal register
/// bus.
///
/// Stages: accept a command (cycle 0); ask, one response packet a cycle, in turn of the queue pairs (0 for one that
/// finds nobody in front of it); translation, of packets and atomics that the command brings none for; read, one DMA
/// request a cycle; memory; leave, one answer a cycle, in the cycle in which the last byte of it is there. Interval of
/// `ask`: read_packet_cycles, or the beats of the packet and beat_overhead_cycles, as of any packet in the datapath. An
/// atomic is handed to the atomic unit in turn of the queue pairs, one a cycle (0 for one that finds nobody in front of
/// it), as long as that has a place for it: each job has one until its outcome has come. Word of a job that is given up
/// goes before new jobs. The outcome is taken in the cycle in which it is there, and the answer leaves in that cycle.
/// In a cycle: places of answers, CNP, CNM, memory's answer, address, outcome, a command, leave, hand-over to the
/// atomic unit, ask, read, end of a revocation, report. A gather that is given up in the queue of reads, and an answer
/// behind it, are free behind read, for the next cycle. Of queue pairs that fail one a cycle is reported. READ engine:
/// a packet takes it once (read_engine_config::sent), but the first of a READ that is of one piece: the request has had
/// that turn. One that does asks when it is the next in turn, while `ask` is busy too, and is asked for in the cycle in
/// which it has the grant: two cycles later where the engine is free.
///
/// Order: the answers of a queue pair leave in the order in which they were commanded, whose requests' PSNs they have
/// (adapter data plane C.7.3). A request is begun when all before it of its queue pair are asked for or have changed
/// memory. A repeated one says that the requester has gone back: what is behind it is answered once more from the
/// beginning without being asked for, so that no later answer passes what was begun and not ended. What memory still
/// owes for what was sent back comes to gathers of nobody. Among queue pairs there is no order.
///
/// Memories: `read_queue` requests, `read_gathers` packets, of which an atomic has one while its address is looked up
/// (one read and one write port each; comparators for keys), `flows` queue pairs (list of their requests, one pending
/// ACK, one pending NAK, address of the peer), links of answer_lines; limits of rate by queue pair; numbers of jobs
/// that the atomic unit has and that were given up.
///
/// Stalls: ask, while no gather is free, the engine or translation is busy, it has no grant of the READ engine, or
/// read_translations of the packets of its queue pair wait for translation; an atomic, while the unit has no place;
/// read, when the DMA engine takes none; leave, by answer_transmit, for its port and priority only; one that is ahead
/// of its rate leaves its line until it is due. One that is given up leaves its line, and one whose path changes goes
/// to the end of the new one. A command that has to look at the requests of its queue pair (repeated, discard) looks at
/// one a cycle, and the commands behind it wait so long. Reports wait in a queue that has a place for each that can be
/// due. Commands never wait for answers to leave: the responder knows of a place for each request. A key is let go when
/// nothing of it is under way, jobs that wait in the atomic unit too. Engine `ask` is blocked by "gathers" or "read
/// engine".
///
/// Reset: none; discards of the queue pairs empty it.
class read_generator : public sim::clocked_block, public register_bus::cr_parts {
 public:
  read_generator(std::string name, sim::clock_domain& domain, const responder_config& cfg, payload::frame_pool& frames,
                 sim::span_recorder& spans, sim::statistics& stats);

  sim::fifo_in<read_command> command_in{*this};
  sim::fifo_out<read_report> report_out{*this};
  answer_port answers;
  icm::translate_port translate{*this};
  pcie::dma_port dma_read{*this};
  sim::fifo_out<atomic_job> atomic_out{*this};
  sim::fifo_in<atomic_outcome> outcome_in{*this};
  read_engine_port read_engine{*this};         ///< of the responses that it makes
  sim::fifo_in<rate_notice> notice_in{*this};  ///< from the requester. May stay unbound

 private:
  const responder_config config_;

 public:
  response_pacing pacing;  ///< which has the port for CNMs, and registers: registers()[0]

 private:
  using kind = read_command::kind;
  using job = read_request;
  using stream = read_stream;

  void tick() override;
  // read_generator.cpp
  void ask();
  unsigned engine_cycles(const job& x) const;
  bool has_engine(const job& x);
  void ask_packet(std::uint16_t j);
  bool may_hand() const;
  void hand_atomic();
  void ended(const atomic_outcome& o);
  void may_ask(std::uint16_t f);
  void settle(std::uint16_t g);
  void leave();
  void leave_answer(stream& s);
  void leave_response(std::uint16_t f);
  void leave_atomic(stream& s);
  void may_leave(std::uint16_t f);
  void leave_line(stream& s);
  void report();
  // read_order.cpp
  void accept();
  void take(const read_command& r);
  void take_answer(const read_command& r);
  void address(stream& s, const read_command& r);
  void fail(std::uint16_t f);
  void give_up(stream& s);
  void reap(std::uint16_t j);
  void end(std::uint16_t j);
  void report_end(const job& x);
  void end_answers(stream& s, unsigned acks, unsigned naks);
  void end_discard(stream& s);
  void refuse_key(std::uint32_t key);
  void end_revocation();

  sim::span_recorder& spans_;
  read_gathers gathers_;
  read_requests requests_;
  sim::ring<std::uint16_t> asking_, swapping_, faults_;  // streams: for a packet, for the atomic unit; that failed
  struct {
    sim::ring<std::uint16_t> abandoned;  // jobs given up that the unit has not been told of
    unsigned handed = 0;                 // jobs that it has
  } atomics_;
  answer_lines lines_;
  sim::ring<read_report> reports_;
  sim::server engine_{*this, "ask"}, order_{*this, "order"};
  struct {
    bool under_way = false;
    std::uint32_t key = 0;
  } revocation_;
  struct {
    bool waits_for_engine = false;  // the packet that is next in turn waits for a grant of the READ engine
    bool walks = false;             // the command in front looks at one request after the other
  } front_;
  struct {
    std::uint64_t requests = 0, packets = 0, bytes = 0, atomics = 0, answers = 0, repeated = 0, given_up = 0,
                  faults = 0;
  } count_;
};

}  // namespace rnic::transport
