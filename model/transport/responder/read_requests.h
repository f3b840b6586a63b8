// SPDX-License-Identifier: Apache-2.0
// Requests in the READ generator, and the order in which those of a queue pair are answered.
#pragma once

#include <cstdint>
#include <vector>

#include "model/sim/span.h"
#include "model/transport/responder/answer_port.h"
#include "model/transport/responder/read_commands.h"
#include "model/transport/responder/read_gathers.h"
#include "model/transport/responder/types.h"
#include "model/wire/psn.h"

namespace rnic::transport {

/// A READ or an atomic.
struct read_request {
  read_command r;
  std::uint32_t sequence = 0;                    // among those of its queue pair
  std::uint32_t gathered = 0;                    // bytes asked for
  std::uint16_t head = no_link, tail = no_link;  // gathers in order
  std::uint16_t next = no_link;                  // of its queue pair
  bool used = false, given_up = false, all_asked = false;
  bool executing = false, executed = false;  // the atomic unit has it; has changed memory
  bool refused = false;                      // its key was withdrawn before it began
  std::uint8_t nak = 0, event = 0;           // of an atomic

  /// An atomic that has waited in host memory: it came without its address, for which nobody has asked.
  bool needs_address() const {
    return r.what == read_command::kind::atomic && !all_asked && !refused && r.first.count == 0 && head == no_link;
  }
  /// An atomic that knows its address and has not begun.
  bool may_execute() const {
    return r.what == read_command::kind::atomic && !executing && !all_asked && !refused && r.first.count != 0;
  }
};

/// An ACK or a NAK behind READs.
struct pending_answer {
  bool pending = false;
  std::uint8_t syndrome = 0;
  std::uint32_t psn = 0, msn = 0, after = 0;  // after: so many requests go first
  sim::span_id span = 0;
};

/// A queue pair.
struct read_stream {
  std::uint32_t qpn = 0;
  answer_address to;
  std::uint32_t mtu = 0;
  std::uint16_t first = no_link;                        // its requests, in order
  std::uint16_t turn = no_link;                         // the one to be asked for
  std::uint32_t accepted = 0, gathered = 0, ended = 0;  // requests
  std::uint32_t abandoned = 0;                          // gathers that memory still writes to
  std::uint32_t answers = 0;                            // ACKs and NAKs that were not reported
  pending_answer ack, nak;
  bool failed = false, discarding = false;  // until that is told, or was
  bool asks = false, swaps = false;  // in the queue for a packet, in that for the atomic unit: one may be left over
  bool stands = false, parked = false, faulty = false;  // in one of the others

  /// Of an ACK and a NAK the one that fewer requests go before: the requester's going back may have put the NAK behind
  /// some that wait for the ACK.
  bool ack_first() const { return ack.pending && (!nak.pending || behind(nak.after, ack.after)); }
  /// It leaves before any response.
  bool answer_ready() const {
    if (!ack.pending && !nak.pending) return false;
    return is_due(ended, (ack_first() ? ack : nak).after);
  }
};

/// Part of the READ generator: `read_queue` requests, a list of them for each of `flows` queue pairs.
///
/// Requests are answered in the order of their PSNs. A repeated one goes before those of later PSNs, and says that its
/// requester has gone back: what is behind it begins again. Ports: one read and one write a cycle; what looks at the
/// requests of a queue pair (go_back, will_send) takes a cycle for each (engine `order` of the generator).
class read_requests {
 public:
  read_requests(const responder_config& cfg, read_gathers& gathers);

  read_request& operator[](std::uint16_t j) { return requests_[j]; }
  std::vector<read_request>& all() { return requests_; }
  read_stream& of(std::uint16_t flow) { return streams_[flow]; }
  const read_stream& of(std::uint16_t flow) const { return streams_[flow]; }
  std::uint16_t flow_of(const read_stream& s) const { return static_cast<std::uint16_t>(&s - streams_.data()); }
  unsigned count(const read_stream& s) const;

  /// A place for the request of a command. The responder knows of one.
  std::uint16_t open(const read_command& r);
  /// Puts it behind those of its queue pair with a smaller sequence. In turn is the first that is not asked for.
  void insert(read_stream& s, std::uint16_t j, std::uint32_t sequence);
  /// All packets of the request in turn are asked for, or memory was changed by it.
  void advance(read_stream& s);
  /// Asks for the address of an atomic: a place among the gathers and a request for translation must be possible.
  void ask_address(std::uint16_t j);
  /// It has come, or its key does not allow it. One that was refused meanwhile stays so.
  void found_address(std::uint16_t g);
  /// It has ended, and its place is free; what it was can be read until open().
  void close(std::uint16_t j);

  /// The answer of that PSN is among those that will be sent.
  bool will_send(const read_stream& s, const read_command& r) const;
  /// Makes room for a repeated request, and gives its sequence. What is all its own by then has ended: they are
  /// left_over(), until the next call.
  std::uint32_t go_back(read_stream& s, const read_command& r);
  const std::vector<std::uint16_t>& left_over() const { return left_over_; }

 private:
  wire::psn_t end_psn(const read_stream& s, const read_command& r) const;
  void yield(read_stream& s, const read_command& r, wire::psn_t end);
  void begin_again(read_request& x);

  read_gathers& gathers_;
  std::vector<read_request> requests_;
  std::vector<read_stream> streams_;
  std::vector<std::uint16_t> free_, left_over_;
};

}  // namespace rnic::transport
