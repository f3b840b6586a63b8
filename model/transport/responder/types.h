// SPDX-License-Identifier: Apache-2.0
// Configuration of the responder, and what it keeps on chip of a QP and of a packet under way.
#pragma once

#include <array>
#include <cstdint>

#include "model/abi/queue_entries.h"
#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"
#include "model/icm/translation_if.h"
#include "model/payload/frame.h"
#include "model/sim/parameter.h"
#include "model/sim/types.h"
#include "model/transport/congestion/config.h"
#include "model/transport/port_map.h"
#include "model/transport/read_engine/config.h"
#include "model/transport/responder/atomics.h"
#include "model/wire/packet.h"

namespace rnic::transport {

struct responder_config {
  /// From a packet's check to its first payload write: 60 cycles with parser and ICRC check in front of it (calibration
  /// 5). Only the sum was fitted; how it divides is design.
  struct receive_stages {
    /// PSN, opcode behind opcode.
    sim::parameter<unsigned> sequence{12, {1, sim::many, "cycles", "calibration 5: of 46, divided by design"}};
    /// Access that the queue pair and the message have.
    sim::parameter<unsigned> rights{10, {0, sim::many, "cycles", "calibration 5: of 46, divided by design"}};
    /// Address and length of what it brings; translation has it beside.
    sim::parameter<unsigned> place{14, {0, sim::many, "cycles", "calibration 5: of 46, divided by design"}};
    /// Behind the packets of its queue pair.
    sim::parameter<unsigned> order{10, {0, sim::many, "cycles", "calibration 5: of 46, divided by design"}};
    unsigned cycles() const { return sequence + rights + place + order; }

    void list(sim::fields& are) {
      are("sequence_cycles", sequence);
      are("rights_cycles", rights);
      are("place_cycles", place);
      are("order_cycles", order);
    }
  } receive;
  /// Engine initiation interval, RDMA WRITE.
  sim::parameter<unsigned> write_cycles{12, {1, sim::many, "cycles", "calibration 5"}};
  /// READ engine stands still for a missing context.
  sim::parameter<unsigned> read_miss_cycles{
      0, {0, sim::many, "cycles", "calibration 7.4: 475 ns, a missing context stops the READ engine"}};
  sim::parameter<unsigned> read_cycles{17, {1, sim::many, "cycles", "calibration 5: 16.4"}};  ///< READ request
  /// Packet into a receive WQE with payload.
  sim::parameter<unsigned> receive_cycles{20, {1, sim::many, "cycles", "calibration 5: 19.6"}};
  /// The same without payload.
  sim::parameter<unsigned> receive_header_cycles{13, {1, sim::many, "cycles", "calibration 5: 12.6"}};
  /// Interval is at least this + payload / bytes_per_cycle.
  sim::parameter<unsigned> beat_overhead_cycles{5, {0, sim::many, "cycles", "calibration 5: 5 + L/16"}};
  unsigned bytes_per_cycle = 16;  ///< datapath of 128 bit (calibration 5)
  /// Frames that wait for a context or a receive WQE.
  sim::parameter<unsigned> context_wait_frames{16, {1, 1024, "frames", "calibration 5: at least 16"}};
  /// QPs with a packet on chip at once.
  sim::parameter<unsigned> flows{
      64, {2, 1024, "queue pairs", "design: at least one beside those whose READs are answered"}};
  /// QPs that have left the chip with an answer whose port was paused.
  sim::parameter<unsigned> parked_answers{256, {1, 65535, "queue pairs", "design: beside flows"}};
  sim::parameter<unsigned> slots{64, {1, 1024, "packets", "design"}};  ///< packets between check and commit
  /// To the contexts on chip in a cycle: a dual-ported memory.
  sim::parameter<unsigned> context_ports{2, {1, 8, "accesses", "design: a cycle, of the contexts on chip"}};
  /// To the rings of READs and atomics on chip: an atomic and an answer, or a READ that is put aside, every few cycles.
  sim::parameter<unsigned> history_ports{1, {1, 8, "accesses", "design: a cycle, of the rings on chip"}};
  /// To the contexts of shared receive queues on chip: a packet every few cycles, and limits.
  sim::parameter<unsigned> srq_ports{1,
                                     {1, 8, "accesses", "design: a cycle, of the contexts of shared queues on chip"}};
  /// Completions that wait for their payload's write.
  sim::parameter<unsigned> cqe_queue{32, {1, 1024, "completions", "design"}};
  /// Interval between two ACKs: keeps up with write_cycles.
  sim::parameter<unsigned> ack_cycles{12, {1, sim::many, "cycles", "design"}};
  /// Requests that one ACK may answer when it had to wait; 1: one ACK each.
  sim::parameter<unsigned> ack_coalesce{64, {1, sim::many, "requests", "design"}};
  /// From the decision to send an answer to the ICRC block: with that 45 cycles (calibration 5), divided by design; one
  /// of them is the channel to answer_transmit, and gid::source_config::source_cycles the look-up of the source GID.
  struct answer_stages {
    /// Address path of the context.
    sim::parameter<unsigned> path{
        6, {1, sim::many, "cycles", "calibration 5: of 30 with the channel in front, divided by design"}};
    /// Ethernet to AETH, lengths, IPv4 checksum.
    sim::parameter<unsigned> headers{
        12, {0, sim::many, "cycles", "calibration 5: of 30 with the channel in front, divided by design"}};
    /// Payload behind them, beats to the ICRC engine.
    sim::parameter<unsigned> hand_over{
        9, {0, sim::many, "cycles", "calibration 5: of 30 with the channel in front, divided by design"}};
    /// Places for answers without a credit, by input, port and priority.
    sim::parameter<unsigned> waiting{
        2, {1, 64, "answers", "design: by user, port and priority; 2 cover the way back of a free place"}};
    unsigned cycles() const { return path + headers + hand_over; }

    void list(sim::fields& are) {
      are("path_cycles", path);
      are("header_cycles", headers);
      are("hand_over_cycles", hand_over);
      are("waiting", waiting);
    }
  } answer;
  /// READ and atomic requests on chip, of them an eighth not for new READs.
  sim::parameter<unsigned> read_queue{64, {1, 1024, "requests", "design"}};
  /// QPs whose READs are fetched from host memory at once.
  sim::parameter<unsigned> read_fetches{16, {1, 64, "QPs", "design"}};
  /// Commands to the READ generator that wait for payload before them.
  sim::parameter<unsigned> read_hand_over{8, {3, 256, "commands", "design"}};
  /// READ response packets being gathered, all QPs.
  sim::parameter<unsigned> read_gathers{32, {1, 256, "packets", "calibration 5: PCIe tags"}};
  /// Smallest interval between two response packets.
  sim::parameter<unsigned> read_packet_cycles{12, {1, sim::many, "cycles", "design: as write_cycles"}};
  /// READs and atomics whose first address is looked up at once, and addresses of one READ behind that: with 1 a miss
  /// stands in the way of the next.
  sim::parameter<unsigned> read_translations{
      1,
      {1, 64, "translations",
       "calibration 5: 475 ns for a missing context or translation, one at a time as its context"}};
  /// QPs whose receive WQEs are kept on chip.
  sim::parameter<unsigned> receive_lines{64, {1, 4096, "queue pairs", "design"}};
  sim::parameter<unsigned> receive_prefetch{8, {1, 64, "WQEs", "design"}};  ///< receive WQEs fetched by one read
  /// Of descriptors and doorbell records, by receive fetch.
  sim::parameter<unsigned> receive_fetches{64, {1, 1024, "fetches", "design: under way at once; one a line"}};
  unsigned receive_line_bytes = 1024;  ///< largest receive WQE and bound of one fetch
  unsigned shared_lines = 16;          ///< shared receive queues whose entries are kept on chip (design)
  unsigned shared_kept = 64;           ///< entries of these that messages under way have taken (design)
  icm::context_cache_config srqs{64, 4, 4, 0, 4, "design: contexts of shared receive queues"};
  /// Between two looks at the doorbell records of QPs in the error state.
  sim::parameter<unsigned> flush_poll_cycles{4000, {1, sim::many, "cycles", "design"}};
  unsigned egress_frames = 16;     ///< credits per port and priority (mac config of the same name)
  congestion_config congestion;    ///< the same as the requester's
  read_engine_config read_engine;  ///< the same as the requester's
  atomic_unit_config atomics;      ///< atomic operations on host memory
  /// One of a set is for requests that are put aside, whatever atomics have pinned the others.
  icm::context_cache_config histories{
      128, 8, 4, 0, 4, "design: rings of READs and atomics, of as many RC queue pairs as there are contexts", 2};
  /// Of 128 RC or 256 UC and UD QPs. One of a set is for requests, whatever READs have pinned the others.
  icm::context_cache_config contexts{256, 8, 16, 60, 8, "calibration 5, 7.4: QPC cache, misses overlap", 2};

  void list(sim::fields& are) {
    are("receive", receive);
    are("write_cycles", write_cycles);
    are("read_miss_cycles", read_miss_cycles);
    are("read_cycles", read_cycles);
    are("receive_cycles", receive_cycles);
    are("receive_header_cycles", receive_header_cycles);
    are("beat_overhead_cycles", beat_overhead_cycles);
    are("context_wait_frames", context_wait_frames);
    are("flows", flows);
    are("parked_answers", parked_answers);
    are("slots", slots);
    are("context_ports", context_ports);
    are("history_ports", history_ports);
    are("srq_ports", srq_ports);
    are("cqe_queue", cqe_queue);
    are("ack_cycles", ack_cycles);
    are("ack_coalesce", ack_coalesce);
    are("answer", answer);
    are("read_queue", read_queue);
    are("read_fetches", read_fetches);
    are("read_hand_over", read_hand_over);
    are("read_gathers", read_gathers);
    are("read_packet_cycles", read_packet_cycles);
    are("read_translations", read_translations);
    are("receive_lines", receive_lines);
    are("receive_prefetch", receive_prefetch);
    are("receive_fetches", receive_fetches);
    are("flush_poll_cycles", flush_poll_cycles);
    are("srqs", srqs);
    are("histories", histories);
    are("contexts", contexts);
    are("atomics", atomics);
  }
};

inline constexpr std::uint16_t no_link = 0xffff;

/// Path MTU in bytes; contexts come from host memory, so codes beyond 4096 count as 4096.
constexpr std::uint32_t path_mtu(const icm::responder_context& ctx) {
  return icm::mtu_bytes(ctx.dest.mtu_code > 5 ? 5 : ctx.dest.mtu_code);
}

/// AETH syndromes (adapter data plane, C.5).
inline constexpr std::uint8_t syndrome_ack = 0x1f, syndrome_rnr = 0x20, syndrome_sequence = 0x60,
                              syndrome_invalid = 0x61, syndrome_access = 0x62, syndrome_operational = 0x63;
/// RNR NAK, with the queue pair's timer.
constexpr std::uint8_t rnr_syndrome(const icm::responder_context& ctx) {
  return static_cast<std::uint8_t>(syndrome_rnr | (ctx.rnr_timer & 0x1f));
}
/// A code as it stands in a CQE or an EQE.
template <class Code>
constexpr std::uint8_t code(Code c) {
  return static_cast<std::uint8_t>(c);
}
/// CQE syndromes (A.5.3).
inline constexpr auto cqe_local_length = code(abi::cqe::error::local_length),
                      cqe_local_operation = code(abi::cqe::error::local_qp_operation),
                      cqe_local_protection = code(abi::cqe::error::local_protection),
                      cqe_flushed = code(abi::cqe::error::flushed),
                      cqe_remote_invalid = code(abi::cqe::error::remote_invalid_request),
                      cqe_remote_access = code(abi::cqe::error::remote_access);
/// Event types (A.6).
inline constexpr auto event_comm_est = code(abi::eqe::event::comm_established),
                      event_qp_fatal = code(abi::eqe::event::wq_catastrophic),
                      event_qp_request = code(abi::eqe::event::wq_invalid_request),
                      event_qp_access = code(abi::eqe::event::wq_access),
                      event_last_wqe = code(abi::eqe::event::srq_last_wqe);

/// What a fault of a request comes to (IBA 9.9.3, table 58; adapter data plane C.7.2), before the QP goes into error:
/// what the peer is told, how a receive that the message has taken completes, and what is raised when it has taken
/// none. Nothing: 0.
struct responder_error {
  std::uint8_t nak, completion, event;
};
/// Class C: opcode out of sequence or not allowed, too many READs, misaligned atomic, wrong length.
inline constexpr responder_error invalid_request{syndrome_invalid, cqe_remote_invalid, event_qp_request};
/// Class C: key, rights, domain or range.
inline constexpr responder_error access_violation{syndrome_access, cqe_remote_access, event_qp_access};
/// Class C: a SEND that is longer than its receive.
inline constexpr responder_error receive_too_short{syndrome_invalid, cqe_local_length, 0};
/// Class A: a receive that is malformed, whose keys do not fit, or that cannot be read.
inline constexpr responder_error receive_malformed{syndrome_operational, cqe_local_operation, 0};
inline constexpr responder_error receive_protection{syndrome_operational, cqe_local_protection, 0};
inline constexpr responder_error memory_unreachable{syndrome_operational, 0, event_qp_fatal};
/// Class J: a key that may not be invalidated. The SEND itself is acknowledged by nobody.
inline constexpr responder_error invalidation_refused{0, cqe_remote_invalid, 0};

/// What firmware sets for the whole adapter.
struct responder_registers {
  bool sums_packets = false;  ///< rx_checksum_mode
  std::uint32_t reserved_lkey = 0, special_qp_base = 0, num_qps_log = 24;
  port_map ports;
};

/// Packets that were dropped, by reason. Several parts find the reasons; the counters are one each.
struct drop_counters {
  std::uint64_t no_qp = 0, state = 0, service = 0, address = 0, pkey = 0, qkey = 0, mad_length = 0, length = 0,
                halted = 0, error = 0, sequence = 0, duplicate_read = 0, duplicate_atomic = 0, no_wqe = 0,
                unreliable = 0, ethernet_no_wqe = 0, ethernet_vlan = 0, ethernet_function = 0, function = 0, vlan = 0;
};

/// A QP with something on chip, in groups by what they are of. Its context is pinned from the moment it is there.
struct responder_flow {
  std::uint32_t qpn = 0;
  std::uint16_t number = 0;  ///< its place
  bool used = false;
  bool touched = false;  ///< may have become idle
  bool dirty = false;
  bool stop = false;     ///< halted: take nothing new, finish what was accepted
  bool counted = false;  ///< the use of its context, for which it was opened
  bool pinned = false;   ///< its context, from the cycle in which that is on chip
  icm::responder_context* ctx = nullptr;
  std::uint16_t slots = 0;         ///< packets checked and not committed
  std::uint8_t todo = 0;           ///< flow_todo_*
  std::uint16_t posted = 0;        ///< todo flush: doorbell record
  std::uint64_t blocked_pass = 0;  ///< commit pass in which a packet of it could not go on
  /// Of its context.
  struct {
    sim::cycle_t at = sim::never;
    std::uint8_t by = 0;  ///< a context_user
  } access;
  /// Its frames that wait.
  struct {
    std::uint16_t head = no_link, tail = no_link;  ///< oldest first
    bool listed = false;                           ///< it stands in admission's line
    bool grant = false;                            ///< the oldest has waited for the READ engine,
    bool context = false;                          ///< for the context,
    bool receive = false;                          ///< for a receive descriptor
  } waits;
  /// READs and atomics.
  struct {
    std::uint32_t accepted = 0;          ///< committed,
    std::uint32_t finished = 0;          ///< last response sent (or given up), as far as reported
    std::uint32_t fresh = 0, again = 0;  ///< under way: first requests, repeated ones; both limited
    std::uint32_t held = 0;              ///< accepted and in host memory, the youngest (read_backlog)
    std::uint32_t held_psn = 0;          ///< of the oldest of these
    bool fetching = false;               ///< kept on chip until one of these was fetched
    bool discarding = false;             ///< the READ generator gives up what it has of it
  } requests;
  /// The one ACK and the one NAK that have not left the responder.
  struct {
    bool pending = false;
    std::uint32_t psn = 0, msn = 0, after = 0;  ///< after: so many READs are handed over first
    sim::span_id span = 0;                      ///< way of the packet that asked for it
    unsigned requests = 0;                      ///< that it answers
  } ack;
  struct {
    bool pending = false;
    std::uint8_t syndrome = 0;
    std::uint32_t psn = 0, msn = 0, after = 0;
  } nak;
  struct {
    bool listed = false;       ///< it stands in the line of those that leave,
    bool in_hand = false;      ///< or of those for the READ generator
    std::uint32_t handed = 0;  ///< ACKs and NAKs that are there
    bool parks = false;        ///< it leaves with the context (parked_answers),
    bool returns = false;      ///< or the context comes for it
  } answers;

  std::uint32_t reads() const { return requests.accepted - requests.finished; }
  std::uint32_t reads_on_chip() const { return reads() - requests.held; }
  /// The READ generator has something of it: what is answered now goes behind that.
  bool in_generator() const { return reads_on_chip() != 0 || answers.handed != 0 || requests.discarding; }
};
inline constexpr std::uint8_t flow_todo_check = 1, flow_todo_error = 2, flow_todo_flush = 4;

/// A checked packet that waits for its pipeline time, its translations and the packets of its QP before it.
struct responder_slot {
  enum class action : std::uint8_t { write, read, atomic, answer, failure };
  static constexpr unsigned max_pieces = 66;

  payload::frame_ptr frame;
  std::uint16_t flow = no_link;
  std::uint16_t next = no_link, previous = no_link;  ///< order of acceptance
  action what = action::write;
  bool cancelled = false;
  bool last = false;        ///< of its message
  bool unreliable = false;  ///< UC, UD: no answers
  bool duplicate = false;
  bool invalidates = false;  ///< SEND with invalidate: a key is withdrawn before the completion
  enum class keys_state : std::uint8_t { none, asked, done, refused };
  keys_state keys = keys_state::none;
  std::uint32_t pd = 0;        ///< domain of the keys that it names
  std::uint16_t function = 0;  ///< that its queue pair belongs to
  std::uint32_t read_length = 0;
  sim::cycle_t ready = 0;  ///< end of the pipeline

  // The answer.
  bool answered = false;  ///< wants one (AckReq, or action::answer)
  std::uint8_t nak = 0;   ///< failure: AETH syndrome, 0 none; answer: syndrome
  std::uint32_t psn = 0;
  std::uint32_t msn = 0;  ///< after it
  std::uint32_t msn_before = 0;

  struct piece {
    std::uint64_t va;
    std::uint32_t key, length;
    std::uint64_t check_length;
    icm::access access;
  };
  bool fetches() const { return what == action::read || what == action::atomic; }
  /// Where its payload goes.
  struct {
    bool of_receive = false;  ///< pieces are of a receive WQE
    bool in_wqe = false;      ///< into the receive WQE itself
    bool missed = false;
    std::uint8_t pieces = 0, issued = 0, translated = 0;
    icm::translate_status status = icm::translate_status::ok;
    std::uint32_t receive_pd = 0;  ///< of_receive: domain of its keys
    std::uint32_t source = 0;      ///< offset in the frame's buffer of the first byte to write
    unsigned next_segment = 0;
    std::array<piece, max_pieces> list;
    std::array<icm::translate_response::segment, 2 * max_pieces> segments;  ///< two a piece, length 0: none
  } place;
  /// What it tells software.
  struct {
    bool has_wqe = false;                   ///< its message has a receive WQE
    bool due = false;                       ///< a CQE ends it
    bool comm_est = false;                  ///< an event: the first packet of an RTR queue pair
    std::uint8_t syndrome = 0, opcode = 0;  ///< of the CQE
    std::uint8_t event = 0;
    std::uint32_t byte_count = 0;
    std::uint32_t cqn = 0;   ///< where its completion goes
    std::uint32_t srqn = 0;  ///< XRC: shared receive queue that it names in its completion
    std::uint16_t wqe_index = 0;
    std::uint16_t rq_before = 0;  ///< first receive WQE without completion when this packet is given up,
    std::uint16_t rq_after = 0;   ///< and when it ends the QP with a completion of its own
  } completion;
  /// Plain frame: what its completion says of it (adapter data plane A.5.2).
  struct ethernet_result {
    std::uint32_t qpn_flags = 0;
    std::uint16_t tci = 0, status = 0, checksum = 0;
    std::uint8_t extensions = 0, encoding = 0;
  };
  ethernet_result ethernet;
};

}  // namespace rnic::transport
