// SPDX-License-Identifier: Apache-2.0
// What several hosts do at the same time, in processes that the program of each host begins and waits for.
#pragma once

#include <exception>
#include <systemc>
#include <vector>

#include "host_driver/hosts/network.h"
#include "model/sim/types.h"

namespace rnic::workloads {

class host_processes {
 public:
  explicit host_processes(const hosts::network& system) : system_(system), of_host_(system.hosts()) {}

  /// As many are to be spawned.
  void expect_senders(unsigned more) { sending_ += more; }
  /// As spawn(), of one of those.
  template <class What>
  void spawn_sender(unsigned host, What what) {
    spawn(host, [this, what] {
      what();
      --sending_;
      ended_at_ = system_.now_ps();
    });
  }
  /// Whether one still sends, or has come to its end at this very instant: who goes on first in it is not to be seen.
  bool is_sending() const { return sending_ != 0 || ended_at_ == system_.now_ps(); }

  /// By the host's program: `what` runs in a process of its own.
  template <class What>
  void spawn(unsigned host, What what) {
    of_host_[host].push_back(sc_core::sc_spawn([this, what] {
      try {
        what();
      } catch (...) {
        if (!failure_) failure_ = std::current_exception();
      }
    }));
  }
  /// By the host's program: returns when those of the host have ended. Throws the first exception of any.
  void join(unsigned host) {
    for (sc_core::sc_process_handle& p : of_host_[host])
      if (!p.terminated()) sc_core::wait(p.terminated_event());
    if (failure_) std::rethrow_exception(failure_);
  }
  bool failed() const { return failure_ != nullptr; }

 private:
  const hosts::network& system_;
  std::vector<std::vector<sc_core::sc_process_handle>> of_host_;
  unsigned sending_ = 0;
  sim::time_ps ended_at_ = ~sim::time_ps{0};  // when the last sender did that has
  std::exception_ptr failure_;
};

}  // namespace rnic::workloads
