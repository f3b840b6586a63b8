// SPDX-License-Identifier: Apache-2.0
// What several hosts do at the same time, in processes that the program of each host begins and waits for.
#pragma once

#include <exception>
#include <systemc>
#include <vector>

namespace rnic::workloads {

class host_processes {
 public:
  explicit host_processes(unsigned hosts) : of_host_(hosts) {}

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
  std::vector<std::vector<sc_core::sc_process_handle>> of_host_;
  std::exception_ptr failure_;
};

}  // namespace rnic::workloads
