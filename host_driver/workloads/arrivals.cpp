// SPDX-License-Identifier: Apache-2.0
#include "host_driver/workloads/arrivals.h"

#include <cmath>

#include "host_driver/workloads/message_sizes.h"

namespace rnic::workloads {

arrivals::arrivals(const arrival_config& config, sim::time_ps begin, std::uint64_t seed)
    : config_(config), random_(seed), at_(static_cast<double>(begin)) {
  if (config_.kind == arrival_config::process::on_off) burst_end_ = at_ + exponential(config_.on_ps);
  pop();
}

double arrivals::exponential(double mean) { return -std::log(1 - uniform(random_)) * mean; }

void arrivals::pop() {
  switch (config_.kind) {
    case arrival_config::process::poisson:
      at_ += exponential(config_.gap_ps);
      break;
    case arrival_config::process::deterministic:
      at_ += config_.gap_ps;
      break;
    case arrival_config::process::on_off: {
      double rest = config_.gap_ps * config_.on_ps / (config_.on_ps + config_.off_ps);  // of the gap in bursts
      while (at_ + rest > burst_end_) {
        rest -= burst_end_ - at_;
        at_ = burst_end_ + exponential(config_.off_ps);
        burst_end_ = at_ + exponential(config_.on_ps);
      }
      at_ += rest;
      break;
    }
  }
  next_ = static_cast<sim::time_ps>(at_);
}

}  // namespace rnic::workloads
