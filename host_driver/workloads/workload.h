// SPDX-License-Identifier: Apache-2.0
// Messages of some hosts of a network to some others, as a program with many queue pairs sends them: in a closed loop
// (the next one when there is room) or an open one (when it arrives, whatever has become of those before).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/network.h"
#include "host_driver/workloads/arrivals.h"
#include "host_driver/workloads/latency_record.h"
#include "host_driver/workloads/message_sizes.h"
#include "host_driver/workloads/onlooker.h"
#include "host_driver/workloads/regions.h"
#include "host_driver/workloads/verb.h"

namespace rnic::workloads {

struct workload_config {
  std::string name;
  std::vector<unsigned> from, to;  ///< hosts, from 0; each of the first to each of the others but itself
  struct verb_part {
    const verb* what = nullptr;
    unsigned weight = 1;
  };
  std::vector<verb_part> verbs{{find_verb("write"), 1}};  ///< of each message by chance
  message_sizes sizes;                                    ///< but of atomics, which have 8 bytes
  std::optional<arrival_config> open;                     ///< of each sending host; without: a closed loop
  /// The other host answers each message by one like it, and a latency is half of the round trip
  /// (workloads::ping_pong). One message of a thread is under way: `depth`, `batch` and `signal_every` are 1. One verb,
  /// one size.
  bool ping_pong = false;
  unsigned threads = 1;  ///< on each sending host, each with queue pairs of its own
  unsigned qps = 1;      ///< of a thread, to each receiver
  unsigned depth = 16;   ///< messages under way on a queue pair, at most
  unsigned batch = 1;    ///< work requests of a doorbell, at most `depth`
  /// Every so many messages of a queue pair have a completion, at most `depth`; in an open loop each has.
  unsigned signal_every = 1;
  bool random_queue_pairs = false;  ///< messages choose one by chance, else they take turns; receivers with them
  /// Of both hosts, on which the queue pairs are in turn; empty: of each the first one that has a cable.
  std::vector<unsigned> ports;
  /// At both hosts, where messages lie. `bytes` at least the longest message.
  region_config memory;
  std::uint64_t messages = 0;       ///< of each sending host; 0: until `end`
  sim::time_ps start = 0, end = 0;  ///< since all hosts are ready; end 0: that of the run
  bool background = false;          ///< not part of the sums over all workloads
  hosts::connection_options connection;
  std::uint64_t seed = 1;
};

/// Messages from one host to another.
struct workload_result {
  unsigned from = 0, to = 0;
  std::uint64_t offered = 0;     ///< posted; of an open loop those that have arrived
  std::uint64_t unfinished = 0;  ///< of these: without a completion at the end of the run
  /// Of verbs that take receives: those that have come. What UC and UD lose has a completion all the same.
  std::uint64_t received = 0;
  sim::time_ps first_post = ~sim::time_ps{0}, last_completion = 0;

  std::uint64_t completed = 0;  ///< of those that are measured
  /// By whenever they were posted or arrived, what has completed, or come, in the time that is measured: a rate is of
  /// this, as no line carries more than it can.
  std::uint64_t completed_in_time = 0, completed_bytes = 0;
  std::uint64_t received_in_time = 0, received_bytes = 0;
  /// From the post, or in an open loop the arrival, to the completion that is polled; of messages that have one. Of
  /// those that are answered half of the time from the post to the answer.
  latency_record latencies;
};

/// When a workload runs.
struct workload_times {
  sim::time_ps begin = 0;    ///< all hosts are ready: what `start` and `end` count from
  sim::time_ps end = 0;      ///< of the run: nothing is posted in a closed loop and nothing arrives in an open one
  sim::time_ps give_up = 0;  ///< what is still under way is unfinished
  /// From then on, up to `end`, messages are measured: closed loops by their completions, open ones by their arrivals.
  sim::time_ps measure_from = 0;

  /// Up to where messages of a workload that ends `after` (0: with the run) are measured.
  sim::time_ps measured_end(sim::time_ps after) const { return after != 0 ? std::min(begin + after, end) : end; }
  /// What happens `at` counts, of such a workload.
  bool is_measured(sim::time_ps at, sim::time_ps after) const { return measure_from <= at && at < measured_end(after); }
};

class ping_pong;
class workload_sender;
class workload_receiver;

/// All senders and receivers of a workload.
class workload {
 public:
  /// `onlooker`: nobody is told when nullptr.
  workload(hosts::network& system, const workload_config& config, onlooker_if* onlooker = nullptr);
  ~workload();

  // By the program of each host, one after the other; hosts meet between the two.
  void create(unsigned host);
  void connect(unsigned host);

  /// Threads of a host that send, each of which runs send() in a process of its own.
  unsigned senders_of(unsigned host) const;
  void send(unsigned host, unsigned thread, const workload_times& t);
  /// Processes of the host that run receive().
  unsigned receivers_of(unsigned host) const;
  /// The `nth` of them. Returns when all who send to it have ended and nothing more is to come.
  void receive(unsigned host, unsigned nth, const workload_times& t);

  const workload_config& config() const { return config_; }
  /// Completions only say that messages were sent.
  bool unreliable() const { return config_.connection.type == IBV_QPT_UC || config_.connection.type == IBV_QPT_UD; }
  /// A verb of it takes receives.
  bool takes_receives() const;
  /// For each pair of hosts, when the programs have ended.
  const std::vector<workload_result>& results() const { return results_; }
  /// How its first thread that failed ended, "h1 to h2: retry_exceeded"; empty: none did. The others go on.
  const std::string& failure() const { return failure_; }
  /// Most messages of one thread that had arrived and waited for room on their queue pair.
  std::uint64_t most_waiting() const;
  /// So far, for progress.
  std::uint64_t completed() const { return completed_; }

 private:
  friend ping_pong;
  friend workload_sender;
  friend workload_receiver;
  /// ~0: any number.
  std::uint64_t share_of_messages(unsigned thread) const;
  void ping(unsigned host, unsigned thread, const workload_times& t);
  void failed(unsigned from, unsigned to, const std::string& why);
  std::size_t pair_of(unsigned from, unsigned to) const;
  hosts::endpoint& at(unsigned host, std::size_t nth);

  hosts::network& system_;
  workload_config config_;
  onlooker_if* onlooker_;
  std::vector<workload_result> results_;
  std::vector<std::unique_ptr<host_regions>> memory_;          // by host; nullptr where it has no part
  std::vector<std::unique_ptr<workload_sender>> senders_;      // by host of `from`, then thread
  std::vector<std::unique_ptr<workload_receiver>> receivers_;  // by host of `to`
  std::vector<std::unique_ptr<ping_pong>> ping_pongs_;         // of config_.ping_pong, instead of both
  std::uint64_t completed_ = 0;
  std::string failure_;
};

}  // namespace rnic::workloads
