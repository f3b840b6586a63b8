// SPDX-License-Identifier: Apache-2.0
// A thread of a workload that sends.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "host_driver/workloads/link_end.h"
#include "host_driver/workloads/workload.h"

namespace rnic::workloads {

/// A queue pair of a workload, both ends.
struct workload_lane {
  unsigned to = 0;        // host
  std::size_t pair = 0;   // of the results
  std::uint32_t nth = 0;  // of the workload
  link_end ends[2];
  struct message {
    sim::time_ps since = 0;  // its latency counts from
    std::uint32_t bytes = 0;
    const verb* what = nullptr;
    bool signaled = false;
  };
  std::vector<message> window;  // of those under way: by the number of the message
  std::deque<message> waiting;  // have arrived, and are not posted
  std::uint64_t posted = 0, completed = 0;
  std::uint64_t operations = 0;  // atomics
};

class workload_sender {
 public:
  /// `first_lane`: number of its first queue pair within the workload.
  workload_sender(workload& of, unsigned host, unsigned thread, std::uint32_t first_lane);

  void create();
  void connect();
  void run(const workload_times& t);

  std::vector<workload_lane>& lanes() { return lanes_; }
  unsigned host() const { return host_; }
  std::uint64_t most_waiting() const { return most_waiting_; }
  /// To the results: what is under way.
  void settle();

 private:
  const workload_config& config() const { return of_.config_; }
  workload_lane::message draw(sim::time_ps since);
  std::uint32_t choose(bool with_room);
  void take_arrivals(sim::time_ps until, sim::time_ps end);
  std::uint64_t postable(const workload_lane& l) const;
  void note_room(std::uint32_t index);
  void post_all(sim::time_ps end);
  void post_to(std::uint32_t index);
  void post(std::uint32_t index, std::uint64_t count);
  bool take_completions(sim::time_ps timeout);
  void complete(workload_lane& l);
  bool is_done(sim::time_ps now, sim::time_ps end) const;

  workload& of_;
  unsigned host_;
  std::uint64_t to_send_;  // ~0: until the end
  std::uint64_t begun_ = 0, under_way_ = 0, waiting_ = 0, most_waiting_ = 0;
  std::vector<workload_lane> lanes_;
  std::vector<std::uint64_t> ready_;  // mask of lanes that may post
  std::uint32_t turn_ = 0;
  std::uint64_t place_turn_[2] = {0, 0};  // in the memory of both ends
  std::vector<unsigned> weights_;         // cumulative
  std::mt19937_64 random_;
  std::optional<arrivals> arrivals_;
  workload_times times_;
  host_driver::completion_queue *cq_ = nullptr, *unused_ = nullptr;
};

}  // namespace rnic::workloads
