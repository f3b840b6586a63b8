// SPDX-License-Identifier: Apache-2.0
// Configuration of the responder, and what it keeps on chip of a QP and of a packet under way.
#pragma once

#include <array>
#include <cstdint>

#include "model/abi/queues.h"
#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"
#include "model/icm/translation_if.h"
#include "model/payload/frame.h"
#include "model/sim/types.h"
#include "model/transport/congestion/config.h"
#include "model/transport/responder/atomic_unit.h"
#include "model/wire/packet.h"

namespace rnic::transport {

struct responder_config {
  /// From a packet's check to its first payload write: 60 cycles with parser and ICRC check in front of it (calibration
  /// 5). Only the sum was fitted; how it divides is design.
  struct receive_stages {
    unsigned sequence = 12;  ///< PSN, opcode behind opcode
    unsigned rights = 10;    ///< access that the queue pair and the message have
    unsigned place = 14;     ///< address and length of what it brings; translation has it beside
    unsigned order = 10;     ///< behind the packets of its queue pair
    unsigned cycles() const { return sequence + rights + place + order; }
  } receive;
  unsigned write_cycles = 12;     ///< engine initiation interval, RDMA WRITE (calibration 5)
  unsigned read_miss_cycles = 0;  ///< READ engine stands still for a missing context (calibration 5: misses overlap)
  unsigned read_cycles = 17;      ///< READ request: 16.4 (calibration 5)
  unsigned receive_cycles = 20;   ///< packet into a receive WQE with payload: 19.6 (calibration 5)
  unsigned receive_header_cycles = 13;  ///< the same without payload: 12.6 (calibration 5)
  unsigned beat_overhead_cycles = 5;    ///< interval is at least this + payload / bytes_per_cycle (calibration 5)
  unsigned bytes_per_cycle = 16;        ///< datapath of 128 bit (calibration 5)
  unsigned context_wait_frames = 16;    ///< frames that wait for a context or a receive WQE (calibration 5: >= 16)
  unsigned flows = 64;                  ///< QPs with a packet on chip at once, 2..1024 (design)
  unsigned slots = 64;                  ///< packets between check and commit (design)
  unsigned context_ports = 2;           ///< accesses to the contexts on chip in a cycle (design: a dual-ported memory)
  unsigned cqe_queue = 32;              ///< completions that wait for their payload's write (design)
  unsigned ack_cycles = 12;             ///< interval between two ACKs: keeps up with write_cycles (design)
  unsigned ack_coalesce = 64;           ///< requests that one ACK may answer when it had to wait; 1: one ACK each
  /// From the decision to send an answer to the ICRC block: with that 45 cycles (calibration 5), divided by design; one
  /// of them is the channel to answer_transmit.
  struct answer_stages {
    unsigned path = 8;       ///< address path of the context, source GID
    unsigned headers = 12;   ///< Ethernet to AETH, lengths, IPv4 checksum
    unsigned hand_over = 9;  ///< payload behind them, beats to the ICRC engine
    unsigned waiting = 2;    ///< places for answers without a credit, by input, port and priority (design)
    unsigned cycles() const { return path + headers + hand_over; }
  } answer;
  unsigned read_queue = 64;          ///< READ and atomic requests on chip, of them an eighth not for new READs (design)
  unsigned read_fetches = 16;        ///< QPs whose READs are fetched from host memory at once (design)
  unsigned read_hand_over = 8;       ///< commands to the READ generator that wait for payload before them (design)
  unsigned read_gathers = 32;        ///< READ response packets being gathered, all QPs (calibration 5: PCIe tags)
  unsigned read_packet_cycles = 12;  ///< smallest interval between two response packets (design, as write_cycles)
  /// READs and atomics whose first address is looked up at once, and addresses of one READ behind that: with 1 a miss
  /// stands in the way of the next (calibration 5: 475 ns for a missing context or translation).
  unsigned read_translations = 1;
  unsigned receive_lines = 64;         ///< QPs whose receive WQEs are kept on chip (design)
  unsigned receive_prefetch = 8;       ///< receive WQEs fetched by one read (design)
  unsigned receive_line_bytes = 1024;  ///< largest receive WQE and bound of one fetch
  unsigned shared_lines = 16;          ///< shared receive queues whose entries are kept on chip (design)
  unsigned shared_kept = 64;           ///< entries of these that messages under way have taken (design)
  icm::context_cache_config srqs{64, 4, 4,
                                 0,  4, icm::replacement::lru};  ///< contexts of shared receive queues (design)
  unsigned flush_poll_cycles = 4000;  ///< between two looks at the doorbell records of QPs in the error state (design)
  unsigned egress_frames = 16;        ///< credits per port and priority (mac config of the same name)
  congestion_config congestion;       ///< the same as the requester's
  atomic_unit_config atomics;         ///< atomic operations on host memory
  icm::context_cache_config histories{64, 4, 4,
                                      0,  4, icm::replacement::lru};  ///< rings of READs and atomics, by QP (design)
  icm::context_cache_config contexts{256, 8, 16, 60};  ///< of 128 RC or 256 UC and UD QPs, non-blocking (calibration 5)
};

inline constexpr std::uint16_t no_link = 0xffff;

/// Path MTU in bytes; contexts come from host memory, so codes beyond 4096 count as 4096.
constexpr std::uint32_t path_mtu(const icm::responder_context& ctx) {
  return icm::mtu_bytes(ctx.dest.mtu_code > 5 ? 5 : ctx.dest.mtu_code);
}

/// AETH syndromes (adapter data plane, C.5).
inline constexpr std::uint8_t syndrome_ack = 0x1f, syndrome_rnr = 0x20, syndrome_sequence = 0x60,
                              syndrome_invalid = 0x61, syndrome_access = 0x62, syndrome_operational = 0x63;
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
  std::uint16_t roce_v2_port = wire::roce_v2_udp_port;
  bool sums_packets = false;  ///< rx_checksum_mode
  std::uint32_t reserved_lkey = 0, special_qp_base = 0, num_qps_log = 24;
};

/// Packets that were dropped, by reason. Several parts find the reasons; the counters are one each.
struct drop_counters {
  std::uint64_t no_qp = 0, state = 0, service = 0, address = 0, pkey = 0, qkey = 0, mad_length = 0, halted = 0,
                error = 0, sequence = 0, duplicate_read = 0, duplicate_atomic = 0, no_wqe = 0, unreliable = 0,
                ethernet_no_wqe = 0, ethernet_vlan = 0, ethernet_function = 0;
};

/// A QP with something on chip. Its context is pinned from the moment it is there.
struct responder_flow {
  std::uint32_t qpn = 0;
  std::uint16_t number = 0;  ///< its place
  bool used = false;
  bool touched = false;                   ///< may have become idle
  sim::cycle_t accessed_at = sim::never;  ///< its context, by
  std::uint8_t accessed_by = 0;           ///< a context_user
  bool dirty = false;
  bool stop = false;                         ///< halted: take nothing new, finish what was accepted
  bool in_answers = false, in_hand = false;  ///< stands in the line of answers, or of those for the READ generator
  bool in_waiting = false;
  bool awaits_grant = false;  ///< its oldest frame that waits has waited for the READ engine
  bool counted = false;       ///< the use of its context, for which it was opened
  icm::responder_context* ctx = nullptr;
  std::uint16_t wait_head = no_link, wait_tail = no_link;  ///< frames that wait, oldest first
  std::uint16_t slots = 0;                                 ///< packets checked and not committed
  std::uint32_t reads_accepted = 0;                        ///< READ and atomic requests: committed,
  std::uint32_t reads_finished = 0;                        ///< last response sent (or given up), as far as reported
  std::uint32_t reads_new = 0, reads_again = 0;            ///< under way: first requests, repeated ones; both limited
  std::uint32_t reads_held = 0;                            ///< accepted and in host memory, the youngest (read_backlog)
  std::uint32_t held_psn = 0;                              ///< of the oldest of these
  bool fetching = false;                                   ///< kept on chip until one of these was fetched
  bool discarding = false;                                 ///< the READ generator gives up what it has of it
  std::uint32_t answers_handed = 0;                        ///< ACKs and NAKs that are there
  bool ack_pending = false, nak_pending = false;           ///< here
  std::uint8_t nak_syndrome = 0;
  std::uint32_t ack_psn = 0, ack_msn = 0, ack_after = 0;  ///< after: so many READs are handed over first
  std::uint32_t nak_psn = 0, nak_msn = 0, nak_after = 0;
  sim::span_id ack_span = 0;       ///< way of the packet that asked for the pending ACK
  unsigned ack_requests = 0;       ///< answered by the pending ACK
  std::uint8_t todo = 0;           ///< flow_todo_*
  std::uint16_t posted = 0;        ///< todo flush: doorbell record
  std::uint64_t blocked_pass = 0;  ///< commit pass in which a packet of it could not go on
  bool waited_context = false;

  std::uint32_t reads() const { return reads_accepted - reads_finished; }
  std::uint32_t reads_on_chip() const { return reads() - reads_held; }
  /// The READ generator has something of it: what is answered now goes behind that.
  bool in_generator() const { return reads_on_chip() != 0 || answers_handed != 0 || discarding; }
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
  bool last = false;       ///< of its message
  bool answered = false;   ///< wants an answer (AckReq, or action::answer)
  bool has_wqe = false;    ///< its message has a receive WQE
  bool completes = false;  ///< a CQE ends it
  bool comm_est = false;
  bool to_receive_queue = false;  ///< pieces are of a receive WQE
  bool in_wqe = false;            ///< the payload goes into the receive WQE itself
  bool missed = false;
  bool unreliable = false;  ///< UC, UD: no answers
  bool duplicate = false;
  bool invalidates = false;  ///< SEND with invalidate: a key is withdrawn before the completion
  enum class keys_state : std::uint8_t { none, asked, done, refused };
  keys_state keys = keys_state::none;
  std::uint8_t pieces = 0, issued = 0, translated = 0;
  icm::translate_status status = icm::translate_status::ok;
  std::uint8_t nak = 0;  ///< failure: AETH syndrome, 0 none; answer: syndrome
  std::uint8_t cqe_syndrome = 0;
  std::uint8_t event = 0;
  std::uint8_t cqe_opcode = 0;
  std::uint32_t psn = 0;  ///< of the answer
  std::uint32_t msn = 0;  ///< after it
  std::uint32_t msn_before = 0;
  std::uint32_t byte_count = 0;
  std::uint32_t receive_pd = 0;  ///< to_receive_queue: domain of its keys
  std::uint32_t cqn = 0;         ///< where its completion goes
  std::uint32_t pd = 0;          ///< domain of the keys that it names
  std::uint32_t srqn = 0;        ///< XRC: shared receive queue that it names in its completion
  std::uint16_t function = 0;    ///< that its queue pair belongs to
  std::uint16_t wqe_index = 0;
  std::uint16_t rq_before = 0;  ///< first receive WQE without completion when this packet is given up,
  std::uint16_t rq_after = 0;   ///< and when it ends the QP with a completion of its own
  std::uint32_t read_length = 0;
  std::uint32_t source = 0;  ///< offset in the frame's buffer of the first byte to write
  sim::cycle_t ready = 0;    ///< end of the pipeline
  unsigned next_segment = 0;
  struct piece {
    std::uint64_t va;
    std::uint32_t key, length;
    std::uint64_t check_length;
    icm::access access;
  };
  bool fetches() const { return what == action::read || what == action::atomic; }
  std::array<piece, max_pieces> piece_list;
  std::array<icm::translate_response::segment, 2 * max_pieces> segments;  ///< two a piece, length 0: none
  /// Plain frame: what its completion says of it (adapter data plane A.5.2).
  struct ethernet_result {
    std::uint32_t qpn_flags = 0;
    std::uint16_t tci = 0, status = 0, checksum = 0;
    std::uint8_t extensions = 0, encoding = 0;
  };
  ethernet_result ethernet;
};

}  // namespace rnic::transport
