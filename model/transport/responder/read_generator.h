// SPDX-License-Identifier: Apache-2.0
// READ generator: READ responses from host memory, atomic operations, and the order of a queue pair's answers.
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
#include "model/transport/congestion/rate_limiter.h"
#include "model/transport/responder/answer_lines.h"
#include "model/transport/responder/answer_port.h"
#include "model/transport/responder/atomic_unit.h"
#include "model/transport/responder/read_commands.h"
#include "model/transport/responder/read_gathers.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Data sheet.
///
/// Ports, each of one item a cycle: commands in, reports out; answers to answer_transmit (answer_port); address
/// translation; DMA reads (READ payload, operands of atomics) and DMA writes (results of atomics).
///
/// Stages: accept a command (cycle 0); ask, one response packet or one atomic in a cycle, in turn of the queue pairs (0
/// for one that finds nobody in front of it); translation, of packets that the command brings none for; read, one DMA
/// request a cycle; memory; leave, one answer a cycle, in the cycle in which the last byte of it is there. Interval of
/// `ask`: read_packet_cycles, or the beats of the packet and beat_overhead_cycles, as of any packet in the datapath.
///
/// Order: the answers of a queue pair leave in the order in which they were commanded, whose requests' PSNs they have
/// (adapter data plane C.7.3). A request is begun when all before it of its queue pair are asked for or have changed
/// memory. A repeated one says that the requester has gone back: what is behind it is answered once more from the
/// beginning without being asked for, so that no later answer passes what was begun and not ended. What memory still
/// owes for what was sent back comes to gathers of nobody. Among queue pairs there is no order.
///
/// Memories: `read_queue` requests, `read_gathers` packets (one read and one write port each; comparators for keys),
/// `flows` queue pairs (list of their requests, one pending ACK, one pending NAK, address of the peer), links of
/// answer_lines; limits of rate by queue pair.
///
/// Stalls: ask, while no gather is free, the engine or translation is busy, or read_translations of the packets of its
/// queue pair wait for translation; an atomic, while the unit or its lock is taken; read, when the DMA engine takes
/// none; leave, by answer_transmit, for its port and priority only; one that is ahead of its rate leaves its line until
/// it is due. One that is given up leaves its line, and one whose path changes goes to the end of the new one. A
/// command that has to look at the requests of its queue pair (repeated, discard) looks at one a cycle, and the
/// commands behind it wait so long. Reports wait in a queue that has a place for each that can be due. Commands never
/// wait for answers to leave: the responder knows of a place for each request.
class read_generator : public sim::clocked_block {
 public:
  read_generator(std::string name, sim::clock_domain& domain, const responder_config& cfg, payload::frame_pool& frames,
                 sim::span_recorder& spans, sim::statistics& stats);

  sim::fifo_in<read_command> command_in{*this};
  sim::fifo_out<read_report> report_out{*this};
  answer_port answers;
  icm::translate_port translate{*this};
  pcie::dma_port dma_read{*this};
  pcie::dma_port dma_write{*this};

 private:
  using kind = read_command::kind;
  struct job {
    read_command r;
    std::uint32_t sequence = 0;                    // among those of its queue pair
    std::uint32_t gathered = 0;                    // bytes asked for
    std::uint16_t head = no_link, tail = no_link;  // gathers in order
    std::uint16_t next = no_link;                  // of its queue pair
    bool used = false, given_up = false, all_asked = false;
    bool executing = false, executed = false;  // the atomic unit has it, has ended it
    bool refused = false;                      // its key was withdrawn before it began
    std::uint8_t nak = 0, event = 0;           // of an atomic
  };
  struct answer {
    bool pending = false;
    std::uint8_t syndrome = 0;
    std::uint32_t psn = 0, msn = 0, after = 0;  // after: so many requests go first
    sim::span_id span = 0;
  };
  /// A queue pair.
  struct stream {
    std::uint32_t qpn = 0;
    answer_address to;
    std::uint32_t mtu = 0;
    std::uint16_t first = no_link;                        // its requests, in order
    std::uint16_t turn = no_link;                         // the one to be asked for
    std::uint32_t accepted = 0, gathered = 0, ended = 0;  // requests
    std::uint32_t abandoned = 0;                          // gathers that memory still writes to
    std::uint32_t answers = 0;                            // ACKs and NAKs that were not reported
    answer ack, nak;
    std::uint8_t translating = 0;             // packets
    bool failed = false, discarding = false;  // until that is told, or was
    bool asks = false, swaps = false;  // in the queue for a packet, in that for the atomic unit: one may be left over
    bool stands = false, parked = false, faulty = false;  // in one of the others
  };

  void tick() override;
  // read_generator.cpp
  void ask();
  void ask_packet(std::uint16_t j);
  void start_atomic();
  void executed(const atomic_unit::outcome& o);
  void advance(stream& s);
  void may_ask(std::uint16_t f);
  void settle(std::uint16_t g);
  void leave();
  void leave_answer(stream& s);
  void leave_response(std::uint16_t f);
  void leave_atomic(stream& s);
  void may_leave(std::uint16_t f);
  void leave_line(stream& s);
  static bool ack_first(const stream& s);
  static bool answer_ready(const stream& s);
  bool in_time(std::uint16_t f);
  void unpark();
  void report();
  // read_order.cpp
  void accept();
  void take(const read_command& r);
  void take_answer(const read_command& r);
  void address(stream& s, const read_command& r);
  bool will_send(const stream& s, const read_command& r) const;
  std::uint32_t go_back(stream& s, const read_command& r);
  void yield(stream& s, const read_command& r, wire::psn_t end);
  void begin_again(job& x);
  void insert(stream& s, std::uint16_t j);
  void fail(std::uint16_t f);
  void give_up(stream& s);
  void reap(std::uint16_t j);
  void end(std::uint16_t j);
  void end_answers(stream& s, unsigned acks, unsigned naks);
  void end_discard(stream& s);
  void refuse_key(std::uint32_t key);
  void end_revocation();
  wire::psn_t end_psn(const stream& s, const read_command& r) const;
  std::uint16_t number(const stream& s) const { return static_cast<std::uint16_t>(&s - streams_.data()); }

  const responder_config config_;
  sim::span_recorder& spans_;
  rate_limiter limiter_;
  read_gathers gathers_;
  atomic_unit atomics_;
  std::vector<job> jobs_;
  std::vector<stream> streams_;
  std::vector<std::uint16_t> free_jobs_;
  sim::ring<std::uint16_t> asking_, swapping_, faults_;  // streams: for a packet, for the atomic unit; that failed
  struct parking {
    std::uint16_t stream;
    sim::cycle_t due;
  };
  std::vector<parking> parked_;
  answer_lines lines_;
  sim::ring<read_report> reports_;
  sim::server engine_{*this, "ask"}, order_{*this, "order"};
  bool walking_ = false, revoking_ = false;
  std::uint32_t revoked_key_ = 0;
  std::size_t tries_ = 0;  // of those in swapping_ that may find a lock free
  std::uint64_t writes_asked_ = 0, writes_done_ = 0;
  struct {
    std::uint64_t requests = 0, packets = 0, bytes = 0, atomics = 0, answers = 0, repeated = 0, given_up = 0,
                  faults = 0;
  } count_;
};

}  // namespace rnic::transport
