// SPDX-License-Identifier: Apache-2.0
// What the peer of a connection asked for, and what the held host's answers say of its receives and memory.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "testbenches/replay/contradictions.h"
#include "testbenches/replay/holes.h"
#include "testbenches/replay/packets.h"
#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// A request of a peer for memory of the held host.
struct memory_access {
  enum class kind : std::uint8_t { read, write, atomic, invalidate };  ///< invalidate: ends the key, has no range
  kind what = kind::read;
  std::uint32_t rkey = 0;
  std::uint64_t va = 0;
  std::uint32_t length = 0;  ///< at least 1 for what has a range
  std::size_t frame = 0;     ///< of the request
  bool refused = false;      ///< by NAK of a remote access error
};

/// An atomic of a peer that was answered.
struct answered_atomic {
  std::size_t answer = 0, request = 0;  ///< frames
  std::uint64_t found = 0;              ///< by the answer
};

/// What peers asked of the held host's memory, of all connections.
struct asked_memory {
  std::vector<memory_access> accesses;
  std::vector<answered_atomic> atomics;
  std::vector<memory_change> writes;  ///< by packet
};

/// What an atomic finds is given only where it is not what the one before it left, by whatever connection that came:
/// the adapter counts by itself.
void make_counters(plan& p, const std::vector<answered_atomic>& atomics);

/// Gives the plan the smallest regions that grant what was granted, and lets refuse what was refused.
void make_regions(plan& p, const std::vector<memory_access>& accesses);

/// Reads the requests of one connection's peer and their answers.
class peer_reader {
 public:
  peer_reader(plan& p, connection& c, packet_maker& maker, asked_memory& asked)
      : plan_(p), c_(c), maker_(maker), accesses_(asked.accesses), answered_(asked.atomics), writes_(asked.writes) {}

  /// Frames in the order of the capture.
  void request(std::size_t index);
  void answer(std::size_t index);
  /// After the last one.
  void finish();
  bool has_requests() const { return !line_.frames().empty(); }

 private:
  struct refusal {
    std::size_t frame = no_frame;
    std::int64_t place = 0;
    unsigned code = 0;  ///< of the NAK
  };
  struct message {
    bool open = false, broken = false;                  // broken: a packet of it never came
    wire::operation kind = wire::operation::send_only;  // or write_only
    std::int64_t first_place = 0;
    std::uint64_t bytes = 0, length = 0;  // so far; of a WRITE, as it says
    wire::reth reth;                      // of a WRITE
    std::uint64_t receive = ~std::uint64_t{0};
  };
  std::int64_t packets_in(const wire::packet& p) const {
    return is_read_request(p) ? packets_of(p.reth.length, c_.mtu) : 1;
  }
  void take(std::int64_t place, std::size_t index);
  void take_send(std::int64_t place, const wire::packet& p);
  void take_receive(std::int64_t first, std::int64_t last);
  void apply_refusal(const wire::packet& p);
  std::uint64_t new_receive();
  receive_rule& rule(std::uint64_t number);
  void need(memory_access::kind what, std::int64_t place, std::size_t index);
  void note_change(std::int64_t place, std::size_t index, bool refused);
  void skip_hole(std::int64_t from, std::int64_t to);
  void fill_hole(std::int64_t from, std::int64_t to);
  std::int64_t end_message(std::int64_t from, std::int64_t to, bool goes_on);
  std::int64_t answered_by_memory(std::int64_t from, std::int64_t to);
  bool whole_messages(std::int64_t from, std::int64_t to, std::int64_t messages);
  bool begin_message(std::int64_t from, std::int64_t to, const wire::packet& next);
  std::uint64_t rest_of_message(std::int64_t from) const;
  std::int64_t messages_in(std::int64_t from, std::int64_t to) const;
  bool put(std::int64_t place, packet_maker::recipe r);
  std::size_t place_for(std::int64_t place) const;
  std::uint32_t psn_at(std::int64_t place) const {
    return (wire::psn_t(c_.peer_start_psn) + static_cast<std::uint32_t>((place - start_) & 0xffffff)).value();
  }
  void read_answer(const captured_frame& f, std::size_t index);
  void atomic_answer(const captured_frame& f, std::size_t index);

  plan& plan_;
  connection& c_;
  packet_maker& maker_;
  std::vector<memory_access>& accesses_;
  std::vector<answered_atomic>& answered_;
  std::vector<memory_change>& writes_;
  request_line line_;
  std::int64_t start_ = 0, acknowledged_ = -1;
  bool any_acknowledged_ = false;
  std::map<std::int64_t, std::size_t> acknowledged_by_;  // place -> first positive answer for it
  std::map<std::int64_t, std::uint32_t> msn_;            // as answers up to there say
  std::map<std::int64_t, std::size_t> memory_answers_;   // places of answers of READs and atomics
  std::map<std::int64_t, std::size_t> not_ready_;        // place -> last RNR NAK
  refusal refused_;
  message open_;
  std::uint32_t srqn_ = 0;                        // XRC: of the last request; else 0
  std::vector<std::size_t> reads_;                // READ requests
  std::map<std::uint32_t, std::size_t> atomics_;  // atomics without an answer so far, by PSN
  std::map<std::int64_t, std::size_t> sign_;      // place -> first frame of a request at it or beyond
};

}  // namespace rnic::replay
