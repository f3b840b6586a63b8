// SPDX-License-Identifier: Apache-2.0
// Hosts and switches of a topology.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/node.h"
#include "model/fabric/network_switch.h"
#include "model/fabric/topology.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timebase.h"
#include "tlm/capture.h"

namespace rnic::hosts {

class meeting;

struct network_config {
  fabric::topology shape;
  node_config node;              ///< of every host; a port's rate is that of its cable
  fabric::switch_config middle;  ///< of every switch, but for its ports
  /// Ports of switches that look at VLANs.
  struct vlan_setting {
    unsigned of_switch = 0, port = 0;
    fabric::vlan_port vlan;
  };
  std::vector<vlan_setting> vlans;
  std::uint32_t ps_per_metre = fabric::cable::config{}.ps_per_metre;
  std::string capture;      ///< file for the frames on one host's cable, empty: none
  unsigned capture_at = 0;  ///< that host's number, from 0
  tlm::capture_writer::config capture_options;
  sim::timebase::options timing;
};
/// Announces every parameter of the network.
void announce(sim::parameter_set& to, network_config& c);

/// Ways of which each is kept up by the next one, and the last one by the first: no frame of them ever goes on.
struct standstill {
  std::vector<std::string> ways;  ///< "s1 to s2"
  unsigned priority = 0;
  sim::time_ps since = 0;
};

/// Builds the network before the simulation starts, and runs a program on each host. Switches know from the beginning
/// where each address is. One run in a process.
class network {
 public:
  /// Throws sim::config_error for what cannot be built.
  explicit network(const network_config& config);
  ~network();

  /// Runs `program` with the number of its host, from 0, in a process for each host, after its driver has opened the
  /// device. Returns when all have ended, or when one has thrown what comes out here.
  void run(const std::function<void(unsigned)>& program);
  /// For the programs: waits until those of all hosts are here.
  void meet();
  /// For a program: waits until `when`.
  void wait_until(sim::time_ps when);

  const network_config& config() const { return config_; }
  unsigned hosts() const { return static_cast<unsigned>(nodes_.size()); }
  node& host(unsigned i) { return *nodes_[i]; }
  endpoint& end(unsigned i) { return ends_[i]; }
  unsigned switches() const { return static_cast<unsigned>(switches_.size()); }
  fabric::network_switch& middle(unsigned i) { return *switches_[i]; }
  sim::statistics& statistics() { return statistics_; }
  const sim::timebase& base() const { return base_; }
  sim::time_ps now_ps() const { return base_.now_ps(); }
  /// What of the network cannot work as it is meant, a line each: headroom that is too small.
  std::vector<std::string> warnings() const;
  /// Rings of pauses of which no way has sent anything since the last call.
  std::vector<standstill> look_for_standstills();
  /// Head-of-line blocking: the queue because of which frames between two hosts are stopped though they do not go
  /// there, "s1 port 4 to h5"; empty: there is none now, or the way is not the only one.
  std::string blocked_by(unsigned from, unsigned to, unsigned priority) const;

 private:
  struct way {
    unsigned from = 0, out = 0, to = 0, in = 0;  // switches and their ports
    std::array<std::uint64_t, fabric::priorities> sent{};
    std::array<sim::time_ps, fabric::priorities> since{};
  };
  void make_switches();
  void make_cables();
  void route();
  std::vector<std::uint16_t> vlans_of(unsigned of_switch) const;
  bool is_stuck(way& w, unsigned priority);
  bool holds_up(const way& one, const way& next, unsigned priority) const;
  std::string name_of(const way& w) const;

  network_config config_;
  sim::timebase base_;
  sim::span_recorder spans_;
  sim::statistics statistics_;
  payload::frame_pool frames_;
  payload::tlp_pool packets_;
  std::vector<std::unique_ptr<node>> nodes_;
  std::unique_ptr<sim::clock_domain> clock_;
  std::vector<std::unique_ptr<fabric::network_switch>> switches_;
  std::vector<std::unique_ptr<fabric::cable>> cables_;
  std::unique_ptr<tlm::capture_writer> capture_;
  std::unique_ptr<meeting> meeting_;
  std::vector<endpoint> ends_;
  std::vector<way> ways_;  // between switches
  using ports_by_switch = std::vector<std::vector<unsigned>>;
  std::vector<std::array<ports_by_switch, 2>> routes_;  // to a host's port
  std::exception_ptr failure_;
  unsigned running_ = 0;
};

}  // namespace rnic::hosts
