// SPDX-License-Identifier: Apache-2.0
#include "host_driver/workloads/workload_run.h"

#include <algorithm>
#include <array>
#include <systemc>
#include <utility>

#include "host_driver/workloads/limits.h"

namespace rnic::workloads {

namespace {

constexpr sim::time_ps listening_interval = 20 * sim::ps_per_us;
constexpr sim::time_ps never_ends = ~sim::time_ps{0};

std::vector<workload_config> checked(std::vector<workload_config> all, const hosts::network& system,
                                     const run_length& length) {
  for (const workload_config& w : all) check(w, system.config().shape, length.duration == 0);
  return all;
}

}  // namespace

workload_run::workload_run(hosts::network& system, std::vector<workload_config> workloads, const run_length& length,
                           const hosts::connection_options& common, std::uint64_t seed, run_listeners listeners)
    : system_(system),
      length_(length),
      listeners_(std::move(listeners)),
      workloads_(system, checked(std::move(workloads), system, length), common, seed, listeners_.onlooker) {}

void workload_run::run() {
  system_.run([this](unsigned host) { program(host); });
}

void workload_run::program(unsigned host) {
  workloads_.set_up(host);
  if (host == 0) {
    times_.begin = system_.now_ps();
    times_.measure_from = times_.begin + length_.warm_up;
    times_.end = length_.duration != 0 ? times_.begin + length_.duration : never_ends;
    times_.give_up = length_.duration != 0 ? times_.end + length_.drain : never_ends;
    if (listeners_.begins) listeners_.begins(times_);
  }
  system_.meet();
  // A file of frames, and faults that a run's programs look at, have all hosts at one time.
  if (host == 0 && system_.config().capture.empty() && !system_.config().sides) system_.run_apart();
  workloads_.start(host, times_);
  std::array<sc_core::sc_process_handle, 2> beside;
  if (host == 0 && listeners_.goes_on) beside[0] = sc_core::sc_spawn([this] { watch(); });
  if (host == 0 && listeners_.drains && length_.duration != 0)
    beside[1] = sc_core::sc_spawn([this] { wait_for_drain(); });
  workloads_.join(host);
  end_ = std::max(end_, system_.now_ps());
  system_.wait_until(system_.now_ps());
  system_.wait_until(system_.now_ps() + system_.lookahead());  // then all hosts are at that time
  system_.meet();
  if (host == 0 && listeners_.ends) listeners_.ends();
  for (sc_core::sc_process_handle& process : beside)
    if (process.valid() && !process.terminated()) sc_core::wait(process.terminated_event());
  system_.meet();
}

/// Not at its end: which program has seen that by then would be a matter of who is the first to run.
void workload_run::wait_for_drain() {
  system_.wait_until(times_.end - 1);
  listeners_.drains();
}

void workload_run::watch() {
  while (workloads_.is_sending() && !workloads_.failed()) {
    system_.wait_until(system_.now_ps() + listening_interval);
    listeners_.goes_on(system_.now_ps() - times_.begin);
  }
}

}  // namespace rnic::workloads
