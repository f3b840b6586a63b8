// SPDX-License-Identifier: Apache-2.0
// What a queue pair does with requests, by the rules of the standard (IBA volume 1, chapter 9; annexes A14, A16) and
// the adapter's contract, one packet after another.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/wire/packet.h"
#include "testbenches/block/responder/random/setup.h"

namespace rnic::transport::random_test {

/// A packet of a peer.
struct request {
  std::uint32_t destination = 0;
  wire::transport transport = wire::transport::rc;
  wire::operation operation = wire::operation::send_only;
  wire::psn_t psn;
  bool wants_acknowledgement = false;
  octets payload;
  wire::reth reth;
  wire::atomic_eth atomic;
  std::uint32_t immediate = 0, invalidated = 0, shared_queue = 0;
  std::uint32_t qkey = random_test::qkey;
  std::uint16_t pkey = random_test::pkey;
  bool from_stranger = false;  ///< the queue pair's peer has another GID

  const wire::opcode_traits& traits() const { return wire::traits(wire::make_opcode(transport, operation)); }
  bool is_read() const { return operation == wire::operation::read_request; }
  bool is_atomic() const {
    return operation == wire::operation::compare_swap || operation == wire::operation::fetch_add;
  }
  bool is_write() const {
    return operation >= wire::operation::write_first && operation <= wire::operation::write_only_immediate;
  }
  bool is_send() const { return !is_write() && !is_read() && !is_atomic(); }
};

/// All that must be seen of a queue pair.
struct expectation {
  struct completion {
    std::uint8_t opcode = 0, syndrome = 0;
    std::optional<std::uint16_t> index;  ///< of an own receive; of a shared queue any that was not completed yet
    std::uint32_t bytes = 0, immediate = 0;
    std::optional<octets> payload;  ///< what a receive of a shared queue holds
  };
  struct nak {
    std::uint8_t syndrome = 0;
    wire::psn_t psn;
    std::uint32_t msn = 0;
    bool fatal = false;
  };
  struct read {
    std::uint64_t bus = 0;
    std::uint32_t length = 0, packets = 1;
    wire::psn_t psn;
  };
  struct atomic {
    wire::psn_t psn;
    std::uint64_t original = 0;
  };
  std::vector<completion> completions;  ///< in order
  std::vector<nak> naks;                ///< of these it may send some more than once, or none but the last
  std::optional<nak> last_nak;          ///< nothing that was accepted has followed it: it is sent
  std::vector<read> reads;
  std::vector<atomic> atomics;
  std::vector<std::uint8_t> events;
  std::map<std::uint32_t, std::uint32_t> msn_of;  ///< of the last accepted PSN: what an ACK of it says
  std::optional<wire::psn_t> acknowledged;        ///< the last that asked for an ACK
  std::uint32_t msn = 0;
  unsigned errors = 0;   ///< told to the requester's half
  bool repeats = false;  ///< an answer of a repeated request may have a later MSN
  /// The queue pair has ended where a packet was executed, not where it was checked: more behind it may have been
  /// checked meanwhile, which shows in counters, and in receives of a shared queue that are flushed.
  bool ended_behind_check = false;
};

/// Every packet goes to take() in the order of its queue pair; between queue pairs nothing is shared that shows.
class reference {
 public:
  reference(const setup& with, octets memory);

  /// What a queue pair has come to.
  struct state {
    enum class message : std::uint8_t { none, send, write };
    wire::psn_t expected;
    message under_way = message::none;
    bool ended = false;        ///< in error
    bool nak_sent = false;     ///< nothing was accepted since
    bool established = false;  ///< communication
    bool refused = false;      ///< UC: the WRITE under way goes nowhere
    std::uint16_t consumed = 0, posted = 0;
    std::uint32_t srqn = 0;
    std::uint32_t remaining = 0, received = 0, write_key = 0;  ///< of the message
    std::uint64_t write_va = 0;
    octets bytes;
    expectation must;
  };

  void take(const queue_pair& q, const request& r);
  void take_plain(const queue_pair& q, const octets& frame);

  const state& of(const queue_pair& q) const { return states_[q.index]; }
  const octets& memory() const { return memory_; }
  /// Bytes of memory that are not told: the place for a GRH.
  bool is_open(std::uint64_t bus) const { return open_.count(bus) != 0; }
  bool may_invalidate(std::uint32_t key) const { return invalidable_.count(key) != 0; }
  std::uint64_t word_at(std::uint64_t bus) const;
  /// Values of the responder's counters of these names, exact unless somebody ended behind the check.
  const std::map<std::string, std::uint64_t>& counters() const { return counters_; }
  bool counts_exactly() const { return counts_exactly_; }

 private:
  void count(const char* counter) { ++counters_.at(counter); }
  bool in_order_reliable(const queue_pair& q, state& s, const request& r);
  bool in_order_unreliable(const queue_pair& q, state& s, const request& r);
  void send(const queue_pair& q, state& s, const request& r);
  bool receive_part(const queue_pair& q, state& s, const request& r, bool into_entry);
  void end_send(const queue_pair& q, state& s, const request& r, bool into_entry);
  void write(const queue_pair& q, state& s, const request& r);
  void refuse_write(const queue_pair& q, state& s, const request& r, std::uint16_t index);
  void read(const queue_pair& q, state& s, const request& r);
  void atomic(const queue_pair& q, state& s, const request& r);
  void datagram(const queue_pair& q, state& s, const request& r);

  void accepted(const queue_pair& q, state& s, const request& r, std::uint32_t packets);
  void first_packet(const queue_pair& q, state& s);
  void invalid(const queue_pair& q, state& s, const request& r);
  void no_access(const queue_pair& q, state& s, const request& r);
  void no_receive(const queue_pair& q, state& s, const request& r);
  void give_back(const queue_pair& q, state& s);
  void end(const queue_pair& q, state& s, std::uint8_t nak, wire::psn_t psn, bool behind_check);
  void fail_receive(const queue_pair& q, state& s, std::uint8_t syndrome, std::uint16_t index);
  void scatter(const receive& to, std::uint32_t offset, const octets& bytes);
  void put(std::uint64_t bus, const octets& bytes);
  bool opens(const queue_pair& q, std::uint32_t key, icm::access a, std::uint64_t va, std::uint64_t bytes) const;

  const setup& with_;
  const region_table regions_;
  octets memory_;
  std::vector<state> states_;
  std::set<std::uint64_t> open_;
  std::set<std::uint32_t> invalidable_;
  std::map<std::string, std::uint64_t> counters_;
  bool counts_exactly_ = true;
};

}  // namespace rnic::transport::random_test
