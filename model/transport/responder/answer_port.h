// SPDX-License-Identifier: Apache-2.0
// How a part of the responder hands its answers to the block that sends them.
#pragma once

#include <array>
#include <cstdint>

#include "model/icm/contexts.h"
#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/transport/transport_if.h"

namespace rnic::transport {

/// Where the answers of a queue pair go.
struct answer_address {
  icm::path path{};
  std::uint32_t remote_qpn = 0;
  std::uint16_t function = 0;  ///< that the queue pair belongs to
  bool xrc = false;            ///< service: XRC, or RC
};
answer_address address_of(const icm::responder_context& ctx);

/// An answer without its headers, and all that they need of the queue pair's context: nothing else of it is read later.
struct answer_job {
  payload::frame_ptr frame;      ///< payload at frame::payload_start
  bool complete = false;         ///< but for the ICRC: a CNP. Then the fields below `priority` are not used
  std::uint8_t port = 0;         ///< 0-based
  std::uint8_t priority = 0;     ///< 0..7
  std::uint8_t opcode = 0;       ///< BTH
  std::uint8_t syndrome = 0;     ///< AETH
  std::uint16_t function = 0;    ///< that the queue pair belongs to
  std::uint32_t psn = 0;         ///< BTH
  std::uint32_t msn = 0;         ///< AETH
  std::uint32_t payload = 0;     ///< bytes, without pad
  std::uint32_t remote_qpn = 0;  ///< BTH
  std::uint64_t original = 0;    ///< AtomicAckETH
  icm::path path{};
};

/// A place for an answer of this port and priority is free again.
struct answer_room {
  std::uint8_t port = 0, priority = 0;
};

/// The end of a user of answer_transmit: READ engine, acknowledgements, notification point. It knows how many more of
/// its answers the block has a place for, by port and priority, so that what it hands over never stands in the channel
/// before one of another priority.
class answer_port {
 public:
  /// `places`: responder_config::answer.waiting.
  answer_port(sim::clocked_block& owner, unsigned places);

  sim::fifo_out<answer_job> job;
  sim::fifo_in<answer_room> room;

  /// Takes the places that were given back. In each tick, before claim().
  void work();
  /// Whether push() is possible in this cycle for an answer of this port and priority. Refused, the owner is ticked
  /// when it may be.
  bool claim(unsigned port, unsigned priority);
  /// There is a place for one of this path's port and priority.
  bool has_place(const icm::path& path) const { return room_[path.port & 1][path.priority & 7] != 0; }
  /// Behind a claim() for its port and priority.
  void push(answer_job&& j);

 private:
  std::array<std::array<std::uint16_t, 8>, 2> room_{};
};

/// Length of the frame that it becomes, in bytes without FCS.
std::uint32_t answer_length(const answer_job& j);

/// An answer of this queue pair, `payload` bytes in `frame`. `original`: of an atomic acknowledgement.
answer_job make_answer(const answer_address& to, payload::frame_ptr frame, wire::operation what, std::uint32_t psn,
                       std::uint8_t syndrome, std::uint32_t msn, std::uint32_t payload = 0, std::uint64_t original = 0);

/// Syndrome of an answer that acknowledges: with the receives that are known of (IBA 9.7.7.2). They are counted after
/// all messages that were accepted, of which the answer's MSN may be an earlier one: never more than there are.
std::uint8_t ack_syndrome(const icm::responder_context& ctx);

/// How a path's packets are encapsulated.
wire::encapsulation encapsulation_of(const icm::path& path);

}  // namespace rnic::transport
