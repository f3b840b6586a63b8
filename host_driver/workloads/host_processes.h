// SPDX-License-Identifier: Apache-2.0
// What several hosts do at the same time, in processes that the program of each host begins and waits for.
#pragma once

#include <algorithm>
#include <exception>
#include <systemc>
#include <vector>

#include "host_driver/hosts/network.h"
#include "model/sim/types.h"

namespace rnic::workloads {

class host_processes {
 public:
  explicit host_processes(hosts::network& system) : system_(system), of_host_(system.hosts()) {}

  /// As many are to be spawned.
  void expect_senders(unsigned more) { sending_ += more; }
  /// As spawn(), of one of those.
  template <class What>
  void spawn_sender(unsigned host, What what) {
    spawn(host, [this, what] {
      what();
      --sending_;
      ended_at_ = std::max(ended_at_, system_.now_ps());
    });
  }
  /// Whether one still sends, or has come to its end at this very instant: who goes on first in it is not to be seen.
  bool is_sending() const { return sending_ != 0 || ended_at_ == system_.now_ps(); }

  /// By the host's program: `what` runs in a process of its own.
  template <class What>
  void spawn(unsigned host, What what) {
    ++of_host_[host].running;
    sc_core::sc_spawn([this, host, what] {
      try {
        what();
      } catch (...) {  // hosts may be ahead of each other
        if (system_.now_ps() < failed_at_) failure_ = std::current_exception();
        failed_at_ = std::min(failed_at_, system_.now_ps());
      }
      if (--of_host_[host].running == 0) of_host_[host].all_ended.ring(system_.base());
    });
  }
  /// By the host's program: returns when those of the host have ended. Throws the first exception of any.
  void join(unsigned host) {
    group& g = of_host_[host];
    while (g.running != 0) system_.wait_until(never, host, hosts::network::turn::rank::own, &g.all_ended);
    if (failure_) std::rethrow_exception(failure_);
  }
  bool failed() const { return failure_ != nullptr; }

 private:
  static constexpr sim::time_ps never = host_driver::program_turns::no_time;
  struct group {
    unsigned running = 0;
    host_driver::program_turns::alarm all_ended;
  };

  hosts::network& system_;
  std::vector<group> of_host_;
  unsigned sending_ = 0;
  sim::time_ps ended_at_ = 0;  // when the last sender did that has
  sim::time_ps failed_at_ = never;
  std::exception_ptr failure_;
};

}  // namespace rnic::workloads
