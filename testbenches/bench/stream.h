// SPDX-License-Identifier: Apache-2.0
// A flow of equal messages from one host to the other over some queue pairs: the load of bandwidth and speed runs.
#pragma once

#include <cstdint>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/pair_if.h"
#include "host_driver/workloads/link_end.h"
#include "host_driver/workloads/verb.h"

namespace rnic::bench {

struct stream_config {
  const workloads::verb* verb = workloads::find_verb("write");
  unsigned qps = 1;
  unsigned depth = 128;  ///< messages under way per queue pair; receives: connection_options::receive_depth
  unsigned inline_bytes = 0;
  std::uint32_t largest = 65536;  ///< bytes of a message
  unsigned batch = 1;             ///< work requests per post_send call
  /// Messages of a queue pair for which there is one completion, at most `depth`. 0: half of `depth`, at most 100.
  unsigned signal_every = 0;
  /// WRITE and READ: messages that the buffer of either host has room for; the queue pairs go round in it. 0: one place
  /// for each queue pair.
  unsigned places = 0;
};

/// Messages of READ flow the other way, but it is the sender that posts. Atomics count messages in the receiver's
/// memory, one counter a queue pair. What UC and UD lose stays lost.
class stream {
 public:
  stream(hosts::pair_if& system, hosts::endpoint& sender, hosts::endpoint& receiver,
         const hosts::connection_options& connection, const stream_config& config);

  /// To be called by the program of each host with its endpoint; both meet inside.
  void set_up(hosts::endpoint& at);

  struct work {
    stream* sends = nullptr;  ///< the stream whose sender this host is, or nullptr
    stream* receives = nullptr;
    std::uint32_t size = 0;
    std::uint64_t messages = 0;
  };
  /// One host's preparation of a run: receives are posted before the other host may begin.
  static void prepare(const work& w);
  /// One host's part of a run that both have prepared: posts and completes `messages` messages of the stream it sends,
  /// and keeps receives posted for the one it receives. Throws on an error completion.
  static void run_host(hosts::endpoint& e, const work& w);

  /// Before a run: what check_content() compares is not there yet.
  void forget_content(std::uint32_t size);
  /// Compares the destination of every queue pair with its source. Atomics: the counters with what was posted, and the
  /// last results with the counters. To be called by the receiver's program; over UC and UD it waits a while for the
  /// bytes, of which the sender's completions say nothing, and throws message_failed when none have come.
  void check_content(std::uint32_t size) const;
  /// Messages of the last run that were sent and not received; 0 for verbs that no receive belongs to.
  std::uint64_t lost() const { return receives() ? target_ - received_ : 0; }
  /// Processor time since the beginning that the sender's host (0) and the receiver's (1) have spent on polls which
  /// found less than they could have: one with less time left would poll less often, and find more.
  std::uint64_t spare_ps(unsigned end) const { return static_cast<std::uint64_t>(spare_ps_[end]); }

 private:
  struct lane {
    workloads::link_end ends[2];   // sender's, receiver's
    std::uint64_t operations = 0;  ///< atomics since the beginning
    std::uint64_t posted = 0, completed = 0, received = 0, receives_posted = 0, target = 0;
  };
  void check_counters() const;
  void post(lane& l, std::uint32_t index, std::uint32_t size, std::uint64_t count);
  void fill_message(ibv_send_wr& wr, lane& l, std::uint32_t index, std::uint32_t size);
  /// The stream that the host of `w` has receives for, or nullptr.
  static stream* receiving(const work& w);
  bool receives() const { return config_.verb->receives; }
  bool unreliable() const { return connection_.type == IBV_QPT_UC || connection_.type == IBV_QPT_UD; }
  bool has_arrived(std::uint32_t place, std::uint32_t size) const;
  void start(const work& w, bool sends, bool receives);
  /// Whether nothing of it will be received any more: its sender has ended, and it is long since anything came.
  bool ended_without_rest(sim::time_ps now) const;
  /// Whether to wait on is in vain after `silence` in which nothing came.
  bool in_vain(sim::time_ps silence) const;
  std::uint64_t postable(const lane& l) const;
  void start_lanes(bool sends, bool receives);
  void note_room(std::uint32_t index);
  bool fill(std::uint32_t size);
  bool take_completions();
  void post_receives(std::uint32_t size);
  bool take_receives();
  void note_poll(unsigned end, int found);
  /// Offset of a message in the buffers; `nth` counts the messages of its queue pair.
  std::uint64_t slot(std::uint32_t lane_index, std::uint64_t nth = 0) const {
    return headroom_ + (config_.places == 0 ? lane_index : (lane_index + nth) % config_.places) * stride_;
  }
  std::uint32_t places() const { return config_.places == 0 ? config_.qps : config_.places; }

  hosts::pair_if& system_;
  hosts::endpoint& sender_;
  hosts::endpoint& receiver_;
  hosts::connection_options connection_;
  stream_config config_;
  std::uint64_t stride_, headroom_ = 0;
  hosts::buffer source_, destination_;
  host_driver::completion_queue* send_cq_ = nullptr;
  host_driver::completion_queue* receive_cq_ = nullptr;
  host_driver::completion_queue* unused_cq_[2] = {};
  std::vector<lane> lanes_;
  std::vector<host_driver::masked_atomic_wr> masked_;        // requests of a batch, for masked verbs
  std::vector<std::uint64_t> with_room_, without_receives_;  // masks of lanes: only those are looked at
  std::uint64_t completed_ = 0, received_ = 0, target_ = 0;
  sim::time_ps last_receive_ = 0;
  sim::time_ps longest_gap_ = 0;  // between two of this run
  unsigned signal_every_ = 1;
  double spare_ps_[2] = {};
};

}  // namespace rnic::bench
