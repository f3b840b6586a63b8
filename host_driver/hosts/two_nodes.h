// SPDX-License-Identifier: Apache-2.0
// Two hosts with an adapter each, joined by a cable or two: what most experiments need.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host_driver/config.h"
#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/fault_cable.h"
#include "host_driver/hosts/node.h"
#include "host_driver/hosts/pair_if.h"
#include "host_driver/hosts/sole_system.h"
#include "host_driver/hosts/system_capture.h"
#include "model/adapter/adapter.h"
#include "model/fabric/fault_injector.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timebase.h"

namespace rnic::hosts {

class meeting;

struct two_nodes_config {
  /// Ports that have a cable to the same port of the other host: one of 1 and 2, or both. a() and b() are at the first.
  std::vector<unsigned> ports{1};
  node_config node;
  std::optional<node_config> node_b;  ///< when the second host is not like the first
  sim::parameter<unsigned> cable_metres{3, {0, 100'000, "m", "design: --cable"}};
  sim::parameter<std::uint32_t> hop_ps{
      0,
      {0, 1'000'000'000, "ps",
       "calibration 5: 250 ns of a cut-through switch on the way, without other traffic; 0: none"}};
  std::string capture;  ///< file for the frames on the cable, or of all ports (system_capture); empty: none
  tlm::capture_writer::config capture_options;
  fabric::fault_plan faults;     ///< what happens to frames on the cable
  std::uint64_t fault_seed = 1;  ///< for plans without a seed of their own
  sim::timebase::options timing;

  /// The cable's; announce() has the other prefixes.
  void list(sim::fields& are) {
    are("metres", cable_metres);
    are("hop_ps", hop_ps);
  }
};
/// Announces every parameter of the system, in which one node_config is for both hosts.
void announce(sim::parameter_set& to, two_nodes_config& c);

/// Builds the system before the simulation starts, and runs one program on each host.
class two_nodes final : public pair_if {
 public:
  explicit two_nodes(const two_nodes_config& config);
  ~two_nodes() override;

  /// Runs both programs, each in a process of its own, after its driver has opened the device. Returns when both have
  /// ended; an exception of either ends the run and comes out here. Once per object.
  void run(const std::function<void()>& program_a, const std::function<void()>& program_b);
  /// Lets simulated time pass (idle experiments).
  void pass(sim::time_ps duration);

  node& host(unsigned side) override { return one_of("host", side, 2) == 0 ? *node_a_ : *node_b_; }
  endpoint& end(unsigned side) override { return ends_[one_of("end", side, 2)].front(); }
  const node_config& built_from(unsigned side) const override {
    return side == 1 && config_.node_b ? *config_.node_b : config_.node;
  }
  unsigned number(unsigned side) const override { return side + 1; }
  std::string neighbour(unsigned side) const override { return side == 0 ? "host b" : "host a"; }
  std::vector<line> lines() const override;
  void meet() override;

  const two_nodes_config& config() const { return config_; }
  /// Of two_nodes_config::ports the `nth`.
  fabric::cable& cable(std::size_t nth = 0) { return links_[one_of("cable", nth, cables())]->cable(); }
  std::size_t cables() const { return links_.size(); }
  /// What the plan did on the `nth` cable; nullptr when it is empty.
  const fabric::fault_injector* faults(std::size_t nth = 0) const {
    return links_[one_of("faults", nth, cables())]->faults();
  }
  system_capture& capture() { return capture_; }
  sim::timebase& base() override { return base_; }
  sim::span_recorder& spans() override { return spans_; }
  sim::statistics& statistics() override { return statistics_; }
  const sim::statistics& statistics() const { return statistics_; }
  bool under_way() const override { return frames_.in_use() != 0 || packets_.in_use() != 0; }

 private:
  two_nodes_config config_;
  sole_system sole_;
  sim::timebase base_;
  sim::span_recorder spans_;
  sim::statistics statistics_;
  payload::frame_pool frames_;
  payload::tlp_pool packets_;
  void make_link(unsigned port, const adapter::environment& env);

  std::unique_ptr<node> node_a_, node_b_;
  std::vector<std::unique_ptr<fault_cable>> links_;  // by two_nodes_config::ports
  system_capture capture_;
  std::unique_ptr<meeting> meeting_;
  std::array<std::vector<endpoint>, 2> ends_;  // by side, and by two_nodes_config::ports
  std::exception_ptr failure_;
  unsigned running_ = 0;
};

}  // namespace rnic::hosts
