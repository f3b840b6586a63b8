// SPDX-License-Identifier: Apache-2.0
// Workloads on a network from beginning to end.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host_driver/hosts/network.h"
#include "host_driver/workloads/workload_set.h"

namespace rnic::workloads {

/// How long, from when all hosts are ready.
struct run_length {
  sim::time_ps warm_up = 0;   ///< at the beginning, not measured
  sim::time_ps duration = 0;  ///< 0: until all workloads have sent their messages
  sim::time_ps drain = 0;     ///< behind `duration`, for what is under way: what has no completion then is unfinished
};

/// Who is told of a run. Any of them may be empty.
struct run_listeners {
  onlooker_if* onlooker = nullptr;
  /// All hosts are ready, nothing has been sent.
  std::function<void(const workload_times&)> begins;
  /// Now and then in between.
  std::function<void(sim::time_ps since_begin)> goes_on;
  /// Right before run_length::duration is over, and all hosts are at that time: what is under way is not drained yet.
  /// Not without a duration.
  std::function<void()> drains;
  /// All programs have ended, and all hosts are at one time.
  std::function<void()> ends;
};

/// One for a network, which runs once.
class workload_run {
 public:
  /// `common`: of the hosts' addresses. `seed`: of everything that is left to chance: the same one gives the same
  /// results, to the picosecond. Throws sim::config_error for what the workloads cannot be.
  workload_run(hosts::network& system, std::vector<workload_config> workloads, const run_length& length,
               const hosts::connection_options& common, std::uint64_t seed, run_listeners listeners = {});

  /// Opens the devices, connects the queue pairs, sends and returns when all have ended. Workloads whose messages fail
  /// say so in workload::failure(). Throws what a host's program throws. Once.
  void run();

  const workload_set& workloads() const { return workloads_; }
  const workload_times& times() const { return times_; }
  /// When the last host's program had ended.
  sim::time_ps end() const { return end_; }

 private:
  void program(unsigned host);
  void watch();
  void wait_for_drain();

  hosts::network& system_;
  run_length length_;
  run_listeners listeners_;
  workload_set workloads_;
  workload_times times_;
  sim::time_ps end_ = 0;
};

}  // namespace rnic::workloads
