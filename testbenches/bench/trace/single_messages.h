// SPDX-License-Identifier: Apache-2.0
// Messages that hosts send one at a time, each followed by a span of its own.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "model/sim/followed_requests.h"
#include "testbenches/bench/trace/message_note.h"
#include "testbenches/bench/trace/message_sink.h"
#include "testbenches/bench/trace/watched_system.h"
#include "tlm/frame_notes.h"

namespace rnic::bench {

/// What a trace and a capture are told of messages whose spans somebody opens (sim::span_recorder::open) and reads: the
/// way of a message ends when who waits for it has it, and what its span or its acknowledgement's leave behind that is
/// beside the way. One message at a time of each host may be under way, but for its acknowledgement.
class single_messages final : public tlm::frame_notes_if {
 public:
  struct config {
    sim::time_ps from = 0, until = ~sim::time_ps{0};  ///< those that are posted then, since begin()
    std::vector<std::string> flows;                   ///< of each host, by their numbers
  };
  /// `to`: nullptr: nobody is told of messages.
  single_messages(const watched_system& system, const config& which, message_sink_if* to);

  void begin(sim::time_ps now);
  /// A host posts a message at `start`, which `span` follows.
  void open(unsigned host, unsigned flow, sim::time_ps start, sim::span_id span);
  /// Its work request.
  void posted(unsigned host, const ibv_qp& qp, const host_driver::span_source_if::posted& requests);
  /// Who waits for the host's message has it.
  void arrived(unsigned host, sim::time_ps at);
  /// All messages that are left are told of.
  void finish();

  void describe(const payload::frame& f, sim::time_ps first_bit, sim::time_ps cable, std::string& text) override;

 private:
  struct message {
    std::uint64_t number = 0;
    unsigned host = 0;
    sim::span_id span = 0;
    sim::time_ps start = 0, end = 0;  // end 0: under way
    message_note note;
    sim::request_key key;
    bool chosen = false;
  };
  void hand_over(const message& m, sim::time_ps nothing_before);
  void fork_of(const message& m);
  static sim::followed_request::way way_of(const sim::span& s);

  watched_system system_;
  config which_;
  message_sink_if* to_;
  std::vector<unsigned> adapters_;  // by host
  bool active_ = false;
  sim::time_ps from_ = 0, until_ = 0;
  std::uint64_t opened_ = 0;
  std::deque<message> messages_;  // the latest ones
  sim::followed_request out_;
};

}  // namespace rnic::bench
