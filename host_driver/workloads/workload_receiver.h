// SPDX-License-Identifier: Apache-2.0
// The receiving end of a workload at one host.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host_driver/workloads/workload.h"
#include "host_driver/workloads/workload_sender.h"

namespace rnic::workloads {

class workload_receiver {
 public:
  workload_receiver(workload& of, unsigned host, std::vector<std::unique_ptr<workload_sender>>& senders);

  void create();
  void connect();
  /// Polls receives and posts new ones, until nobody sends and nothing more is to come.
  void run(const workload_times& t);
  /// In the turn of a visitor of the host; once for each sender of the workload.
  void sender_has_ended();
  unsigned host() const { return host_; }

 private:
  void post_receive(std::uint32_t index);
  bool has_all(sim::time_ps since) const;

  workload& of_;
  unsigned host_;
  std::vector<workload_lane*> lanes_;
  std::size_t sending_;
  sim::time_ps over_at_ = 0;  // since when nobody sends
  std::uint64_t stride_, headroom_;
  hosts::buffer memory_;  // a place for each lane
  host_driver::completion_queue *cq_ = nullptr, *unused_ = nullptr;
};

}  // namespace rnic::workloads
