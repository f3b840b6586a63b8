// SPDX-License-Identifier: Apache-2.0
// Follows the messages of a system from the post to the poll of the completion.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "host_driver/workloads/onlooker.h"
#include "model/sim/followed_requests.h"
#include "testbenches/bench/trace/message_sink.h"
#include "testbenches/bench/trace/watched_system.h"
#include "tlm/frame_notes.h"

namespace rnic::bench {

/// Which messages are followed.
struct message_choice {
  /// Those that are posted (of an open loop: arrive) then, since begin().
  sim::time_ps from = 0, until = ~sim::time_ps{0};
  std::vector<std::string> flows;  ///< names of theirs; empty: all
  std::string others;              ///< flow of queue pairs that nobody has told of; empty: theirs are not followed
  sim::followed_requests::config followed;
};

/// From begin() to finish(). A work request of each host's programs is a message. Frames of one that is followed have
/// comments in a capture: which message, and where the time until the frame has gone, if it is the message's last one
/// or an answer.
class message_follower final : public workloads::onlooker_if, public tlm::frame_notes_if, private sim::request_sink_if {
 public:
  /// Before the system runs. `to`: nullptr: nobody is told of messages.
  message_follower(const watched_system& system, const message_choice& which, message_sink_if* to);
  ~message_follower() override;

  /// All hosts are ready: times count from now.
  void begin(sim::time_ps now);
  /// The programs have ended: all messages that are left are told of.
  void finish();
  std::uint64_t not_followed() const { return followed_.not_followed(); }
  std::uint64_t late_marks() const { return followed_.late_marks(); }

  void sends(unsigned host, std::uint32_t qpn, const std::string& name) override;
  void waited(unsigned host, std::uint32_t qpn, sim::time_ps since) override;
  void describe(const payload::frame& f, sim::time_ps first_bit, sim::time_ps cable, std::string& text) override;

 private:
  class host_watcher;
  struct sender {
    std::uint32_t flow = 0;  // of flows_
    std::deque<sim::time_ps> waits;
  };
  struct flow_at_host {
    std::string name;
    bool followed = false;
    unsigned host = 0;
  };
  void take(const sim::followed_request& r) override;
  std::uint32_t flow_of(unsigned host, const std::string& name);
  sender* sender_of(unsigned host, std::uint32_t qpn);
  void count_under_way(unsigned host, std::uint64_t number, sim::time_ps now);
  bool in_window(sim::time_ps at) const { return at >= from_ && at < until_; }
  std::uint32_t post(unsigned host, unsigned adapter, const ibv_qp& qp,
                     const host_driver::span_source_if::posted& requests);
  void poll(unsigned host, unsigned adapter, const ibv_qp& qp, std::uint32_t first, std::uint32_t last,
            const ibv_wc& wc);

  watched_system system_;
  message_choice which_;
  message_sink_if* to_;
  sim::followed_requests followed_;
  bool active_ = false;
  sim::time_ps from_ = 0, until_ = 0;
  std::vector<std::unique_ptr<host_watcher>> hosts_;
  std::vector<std::string> processors_;  // by host
  std::vector<flow_at_host> flows_;
  std::unordered_map<std::uint64_t, sender> senders_;  // by host and queue pair
  sim::time_ps latest_ = 0;                            // poll
  std::vector<std::uint64_t> under_way_;               // by host
  std::uint64_t taken_ = 0;                            // messages
  sim::time_ps nothing_before_ = 0;
  sim::followed_request described_;
};

}  // namespace rnic::bench
