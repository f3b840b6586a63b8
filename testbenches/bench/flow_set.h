// SPDX-License-Identifier: Apache-2.0
// All flows of a network, run by the programs of its hosts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host_driver/hosts/network.h"
#include "host_driver/workloads/host_processes.h"
#include "testbenches/bench/flow.h"

namespace rnic::bench {

class flow_set {
 public:
  /// `common`: of the hosts' addresses. `seed`: of beginnings and sizes that are left to chance.
  flow_set(hosts::network& system, std::vector<flow_config> flows, const hosts::connection_options& common,
           std::uint64_t seed, workloads::onlooker_if* onlooker = nullptr);

  // By the program of each host, in this order:
  /// Addresses, queue pairs and connections. All hosts meet inside.
  void set_up(unsigned host);
  /// Begins what the host has to do, in processes of their own. `begin`: what the flows' `start` counts from.
  void start(unsigned host, sim::time_ps begin, sim::time_ps deadline);
  /// Returns when that is over. Throws the first exception of any.
  void join(unsigned host);

  /// From any process: no flow goes on.
  void stop();
  /// As host_processes::is_sending().
  bool is_sending() const { return processes_.is_sending(); }
  bool failed() const { return processes_.failed(); }

  std::size_t size() const { return flows_.size(); }
  const flow& operator[](std::size_t i) const { return *flows_[i]; }

 private:
  hosts::network& system_;
  hosts::connection_options common_;
  std::vector<std::unique_ptr<flow>> flows_;
  workloads::host_processes processes_;
};

}  // namespace rnic::bench
