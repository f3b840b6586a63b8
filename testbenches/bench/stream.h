// SPDX-License-Identifier: Apache-2.0
// A flow of equal messages from one host to the other over some queue pairs: the load of bandwidth and speed runs.
#pragma once

#include <cstdint>
#include <vector>

#include "testbenches/bench/connection.h"
#include "testbenches/bench/two_nodes.h"

namespace rnic::bench {

enum class stream_verb : std::uint8_t { write, send, read, compare_swap, fetch_add };

struct stream_config {
  stream_verb verb = stream_verb::write;
  unsigned qps = 1;
  unsigned depth = 128;
  unsigned inline_bytes = 0;
  std::uint32_t largest = 65536;  ///< bytes of a message
  unsigned batch = 1;             ///< work requests per post_send call
  /// WRITE and READ: messages that the buffer of either host has room for; the queue pairs go round in it. 0: one place
  /// for each queue pair.
  unsigned places = 0;
};

/// Messages of READ flow the other way, but it is the sender that posts. Atomics count messages in the receiver's
/// memory, one counter a queue pair.
class stream {
 public:
  stream(two_nodes& system, endpoint& sender, endpoint& receiver, const connection_options& connection,
         const stream_config& config);

  /// To be called by the program of each host with its endpoint; both meet inside.
  void set_up(endpoint& at);

  struct work {
    stream* sends = nullptr;  ///< the stream whose sender this host is, or nullptr
    stream* receives = nullptr;
    std::uint32_t size = 0;
    std::uint64_t messages = 0;
  };
  /// One host's part of a run: posts and completes `messages` messages of the stream it sends, and keeps receives
  /// posted for the one it receives. Throws on an error completion.
  static void run_host(endpoint& e, const work& w);

  /// Compares the destination of every queue pair with its source. Atomics: the counters with what was posted, and the
  /// last results with the counters.
  void check_content(std::uint32_t size) const;

 private:
  struct lane {
    host_driver::queue_pair* qp[2] = {};  // sender's, receiver's
    std::uint64_t operations = 0;         ///< atomics since the beginning
    std::uint64_t posted = 0, completed = 0, received = 0, receives_posted = 0, target = 0;
  };
  void check_counters() const;
  void post(lane& l, std::uint32_t index, std::uint32_t size, std::uint64_t count);
  bool atomic() const { return config_.verb == stream_verb::compare_swap || config_.verb == stream_verb::fetch_add; }
  std::uint64_t postable(const lane& l) const;
  void start_lanes(bool sends, bool receives);
  void note_room(std::uint32_t index);
  bool fill(std::uint32_t size);
  bool take_completions();
  void post_receives(std::uint32_t size);
  bool take_receives();
  /// Offset of a message in the buffers; `nth` counts the messages of its queue pair.
  std::uint64_t slot(std::uint32_t lane_index, std::uint64_t nth = 0) const {
    return (config_.places == 0 ? lane_index : (lane_index + nth) % config_.places) * stride_;
  }
  std::uint32_t places() const { return config_.places == 0 ? config_.qps : config_.places; }

  two_nodes& system_;
  endpoint& sender_;
  endpoint& receiver_;
  connection_options connection_;
  stream_config config_;
  std::uint64_t stride_;
  buffer source_, destination_;
  host_driver::completion_queue* send_cq_ = nullptr;
  host_driver::completion_queue* receive_cq_ = nullptr;
  host_driver::completion_queue* unused_cq_[2] = {};
  std::vector<lane> lanes_;
  std::vector<std::uint64_t> with_room_, without_receives_;  // masks of lanes: only those are looked at
  std::uint64_t completed_ = 0, received_ = 0, target_ = 0;
  unsigned signal_every_ = 1;
};

}  // namespace rnic::bench
