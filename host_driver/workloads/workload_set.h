// SPDX-License-Identifier: Apache-2.0
// All workloads of a network, run by the programs of its hosts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host_driver/hosts/network.h"
#include "host_driver/workloads/host_processes.h"
#include "host_driver/workloads/workload.h"

namespace rnic::workloads {

class workload_set {
 public:
  /// `common`: of the hosts' addresses. `seed`: of everything that is left to chance.
  workload_set(hosts::network& system, std::vector<workload_config> workloads, const hosts::connection_options& common,
               std::uint64_t seed, onlooker_if* onlooker = nullptr);

  // By the program of each host, in this order:
  /// Addresses, memory, queue pairs and connections. All hosts meet inside.
  void set_up(unsigned host);
  /// Begins what the host has to do, in processes of their own.
  void start(unsigned host, const workload_times& t);
  /// Returns when that is over. Throws the first exception of any.
  void join(unsigned host) { processes_.join(host); }

  /// As host_processes::is_sending().
  bool is_sending() const { return processes_.is_sending(); }
  bool failed() const { return processes_.failed(); }
  std::size_t size() const { return all_.size(); }
  const workload& operator[](std::size_t i) const { return *all_[i]; }

 private:
  hosts::network& system_;
  hosts::connection_options common_;
  std::vector<std::unique_ptr<workload>> all_;
  host_processes processes_;
};

}  // namespace rnic::workloads
