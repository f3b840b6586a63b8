// SPDX-License-Identifier: Apache-2.0
// Several hosts around a switch: one that is measured, and the others that talk with it.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "host_driver/hosts/hosts_if.h"
#include "host_driver/hosts/node.h"
#include "host_driver/hosts/sole_system.h"
#include "model/fabric/network_switch.h"

namespace rnic::hosts {

class meeting;

struct star_config {
  node_config node;     ///< of every host
  unsigned leaves = 4;  ///< besides the hub
  unsigned cable_metres = 3;
  std::uint32_t hop_ps = 250'000;  ///< of the switch
  sim::timebase::options timing;
};

/// Side 0 is the hub, side 1 are the leaves. One run in a process.
class star final : public hosts_if {
 public:
  explicit star(const star_config& config);
  ~star() override;

  /// Runs `program` for each host, after its driver has opened the device. Returns when all have ended; the first
  /// exception ends the run and comes out here.
  void run(const std::function<void(endpoint&)>& program);

  unsigned hosts(unsigned side) const override { return side == 0 ? 1 : static_cast<unsigned>(ends_.size()) - 1; }
  endpoint& host(unsigned side, unsigned index) override { return ends_[side + index]; }
  void meet() override;
  sim::time_ps now_ps() const override { return base_.now_ps(); }
  fabric::network_switch& middle() { return *switch_; }
  node& hub() { return *nodes_.front(); }

 private:
  sole_system sole_;
  sim::timebase base_;
  sim::span_recorder spans_;
  sim::statistics statistics_;
  payload::frame_pool frames_;
  payload::tlp_pool packets_;
  std::vector<std::unique_ptr<node>> nodes_;
  std::unique_ptr<sim::clock_domain> clock_;
  std::unique_ptr<fabric::network_switch> switch_;
  std::vector<std::unique_ptr<fabric::cable>> cables_;
  std::unique_ptr<meeting> meeting_;
  std::vector<endpoint> ends_;
  std::exception_ptr failure_;
  unsigned running_ = 0;
};

}  // namespace rnic::hosts
