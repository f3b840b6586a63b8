// SPDX-License-Identifier: Apache-2.0
// Messages from one host of a network to another: as many as it is told, or for a time; one behind another, or at a
// rate.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <systemc>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/network.h"
#include "host_driver/workloads/link_end.h"
#include "host_driver/workloads/onlooker.h"
#include "host_driver/workloads/verb.h"

namespace rnic::bench {

struct flow_config {
  std::string name;
  unsigned from = 0, to = 1;  ///< hosts, from 0
  const workloads::verb* what = workloads::find_verb("write");
  std::uint32_t size = 65'536;       ///< bytes of a message, the longest of `sizes`
  std::vector<std::uint32_t> sizes;  ///< each message has one of them, by chance; empty: `size`
  unsigned qps = 1;
  unsigned depth = 16;          ///< messages under way on a queue pair
  std::uint64_t messages = 0;   ///< over all queue pairs; 0: until the end of the run
  std::uint64_t rate_kbps = 0;  ///< of payload: a message each so and so long; 0: as soon as there is room
  sim::time_ps start = 0;       ///< since all hosts are ready
  sim::time_ps spread = 0;      ///< by chance so much later at most
  std::uint64_t seed = 1;       ///< of the sizes
  /// Of both hosts, on which the queue pairs are in turn; empty: of each the first one that has a cable.
  std::vector<unsigned> ports;
  hosts::connection_options connection;
};

/// What a flow has done by the end of the run.
struct flow_result {
  std::uint64_t posted = 0, completed = 0;
  std::uint64_t bytes = 0;                       ///< of the completed ones
  std::uint64_t arrived = 0, arrived_bytes = 0;  ///< of verbs that take receives
  sim::time_ps last_arrival = 0;
  sim::time_ps begin = 0, end = 0;  ///< first post, last completion
  std::vector<sim::time_ps> times;  ///< of each completed message, from its post to its completion
  std::string failure;              ///< how it ended before its time: "retry_exceeded"; empty: it did not
};

/// Both ends of a flow. READs and atomics are posted by the host `from` as well. What UC and UD lose is not missed, but
/// counted where receives tell what has arrived; what is still under way at the end is waited for until nothing has
/// come for a millisecond.
class flow {
 public:
  /// `onlooker`: nobody is told when nullptr.
  flow(hosts::network& system, const flow_config& config, workloads::onlooker_if* onlooker = nullptr);

  /// By the program of each host that the flow has, one after the other; hosts meet between the two.
  void create(unsigned host);
  void connect(unsigned host);
  /// In a process of its own for each end: returns when the flow is over, or at `deadline`. `begin`: what `start`
  /// counts from.
  void send(sim::time_ps begin, sim::time_ps deadline);
  /// Only for verbs that take receives.
  void receive(sim::time_ps deadline);
  /// From any process: send() returns soon, whatever is still to do.
  void stop();

  const flow_config& config() const { return config_; }
  const flow_result& result() const { return result_; }
  bool receives() const { return config_.what->receives; }
  /// Completions say that messages were sent, not that they have arrived.
  bool unreliable() const { return config_.connection.type == IBV_QPT_UC || config_.connection.type == IBV_QPT_UD; }

 private:
  struct lane {
    workloads::link_end ends[2];
    std::uint64_t posted = 0, completed = 0;
    std::uint64_t operations = 0;  // atomics
  };
  bool may_post() const;
  void post(std::uint32_t index);
  void post_in_turn(sim::time_ps deadline);
  void post_receive(std::uint32_t index);
  bool take_completions(sim::time_ps timeout);
  bool has_all(sim::time_ps since) const;
  sim::time_ps due() const;
  /// Of the host `end`, that of a queue pair.
  hosts::endpoint& at(unsigned end, std::size_t index);
  hosts::buffer& memory(unsigned end) { return memory_[end]; }
  std::uint64_t place(std::uint32_t index) const { return headroom_ + index * stride_; }

  hosts::network& system_;
  flow_config config_;
  workloads::onlooker_if* onlooker_;
  hosts::endpoint* at_[2];
  std::uint64_t stride_, headroom_;
  hosts::buffer memory_[2];
  host_driver::completion_queue *send_cq_ = nullptr, *receive_cq_ = nullptr, *unused_[2] = {};
  std::vector<lane> lanes_;
  struct message {
    sim::time_ps at = 0;  // when it was posted
    std::uint32_t bytes = 0;
  };
  std::vector<message> under_way_;  // by queue pair and place in its window
  std::uint64_t bytes_posted_ = 0;
  std::mt19937_64 random_;
  flow_result result_;
  std::uint32_t turn_ = 0;
  bool over_ = false, stopped_ = false;
  sim::time_ps over_at_ = 0;
  host_driver::program_turns::alarm stop_;
};

}  // namespace rnic::bench
