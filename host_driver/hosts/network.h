// SPDX-License-Identifier: Apache-2.0
// Hosts and switches of a topology.
#pragma once

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/fault_cable.h"
#include "host_driver/hosts/node.h"
#include "host_driver/hosts/pair_if.h"
#include "host_driver/hosts/sole_system.h"
#include "host_driver/hosts/system_capture.h"
#include "model/fabric/network_switch.h"
#include "model/fabric/topology.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timebase.h"

namespace rnic::hosts {

class meeting;

struct network_config {
  fabric::topology shape;
  node_config node;  ///< of every host; a port's rate is that of its cable
  /// Parameters in which a host differs from the others: as `node` has them, set in this order.
  struct host_setting {
    unsigned host = 0;
    std::string path, value;
    std::string where;  ///< what an error begins with
  };
  std::vector<host_setting> settings;
  fabric::switch_config middle;  ///< of every switch, but for its ports
  /// Ports of switches that look at VLANs.
  struct vlan_setting {
    unsigned of_switch = 0, port = 0;
    fabric::vlan_port vlan;
  };
  std::vector<vlan_setting> vlans;
  std::uint32_t ps_per_metre = fabric::cable::config{}.ps_per_metre;
  std::string capture;       ///< file for the frames on one host's cable, or of all ports (system_capture); empty: none
  unsigned capture_at = 0;   ///< that host's number, from 0
  bool capture_one = false;  ///< a file that would have all ports has those at both ends of that host's cables
  tlm::capture_writer::config capture_options;
  /// Two hosts that are measured: parameters of one side are theirs, spans of messages tell of switches and cables, and
  /// the first one's cables are a fault_cable each.
  std::optional<std::array<unsigned, 2>> sides;
  fabric::fault_plan faults;
  std::uint64_t fault_seed = 1;  ///< for plans without a seed of their own
  sim::timebase::options timing;
  /// That may serve hosts at once, with the same results; 0: as many as there are processors, for enough hosts.
  unsigned threads = 1;
};
/// Announces every parameter of the network.
void announce(sim::parameter_set& to, network_config& c);
/// A host as the network builds it: with its settings, its ports have the rates of their cables, a measured one the
/// parameters of its side. Throws sim::config_error for one without a cable.
node_config of_host(const network_config& c, unsigned host);
/// One of its switches. `floods`: frames to addresses that it has not learnt; not where there are loops.
std::unique_ptr<fabric::network_switch> make_switch(const network_config& c, unsigned number, bool floods,
                                                    sim::clock_domain& clock, payload::frame_pool& frames,
                                                    sim::statistics& statistics);
/// Resolution of the clock of switches.
inline constexpr sim::clock_period fabric_clock{1000, 1, 0};

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
  /// For a process of no host, or of one that is done with what it does there: waits in the kernel until `when`.
  void wait_until(sim::time_ps when);
  using turn = host_driver::program_turns::turn;
  /// For a program: waits until `when`, or until the alarm rings where there is one, in its turn among those of `host`,
  /// on which it is about to act: its own, or as a visitor another one.
  void wait_until(sim::time_ps when, unsigned host, turn::rank rank = turn::rank::own,
                  host_driver::program_turns::alarm* or_until = nullptr);

  const network_config& config() const { return config_; }
  unsigned hosts() const { return static_cast<unsigned>(nodes_.size()); }
  /// Of these: sim::config_error for a host or a port that is not there.
  node& host(unsigned i) { return *nodes_[one_of("host", i, hosts())]; }
  /// At the host's first port with a cable; the other one's is its `other`.
  endpoint& end(unsigned i) { return ends_[one_of("end", i, hosts())].front(); }
  /// At a port that has a cable.
  endpoint& end(unsigned i, unsigned port);
  const std::string& name_of(const fabric::plug_place& e) const {
    return (e.is_switch ? config_.shape.switches() : config_.shape.hosts())[e.number];
  }
  unsigned switches() const { return static_cast<unsigned>(switches_.size()); }
  fabric::network_switch& middle(unsigned i) { return *switches_[one_of("middle", i, switches())]; }
  /// As the host was built.
  const node_config& built_from(unsigned i) const { return built_from_[one_of("built_from", i, hosts())]; }
  sim::statistics& statistics() { return statistics_; }
  const sim::statistics& statistics() const { return statistics_; }
  sim::span_recorder& spans() { return spans_; }
  /// Spans tell of switches and cables too from now on; those of `sides` do anyway.
  void follow();
  sim::timebase& base() { return base_; }
  system_capture& capture() { return capture_; }
  /// A frame or a packet of PCI Express is somewhere between the memories of two hosts.
  bool under_way() const { return frames_.in_use() != 0 || packets_.in_use() != 0; }
  /// Of network_config::sides the first one's cables, by port; at most two.
  const std::vector<std::unique_ptr<fault_cable>>& fault_cables() const { return fault_cables_; }
  using ports_by_switch = std::vector<std::vector<unsigned>>;
  /// By switch, the ports on the ways to a port of a host; none where no way leads there.
  const ports_by_switch& ways_to(unsigned host, unsigned port) const { return routes_[host][port - 1]; }
  sim::time_ps now_ps() const { return base_.now_ps(); }
  /// After this time at the earliest a host notices what another one does now: their cables and the stages of their
  /// ports. Before a program acts on another host's program, which is no matter of hardware, it waits so long.
  sim::time_ps lookahead() const;
  /// From now on hosts may be simulated ahead of each other (sim::partitions), for programs that act on their own host
  /// only, or after such a wait. With network_config::threads, where nothing forbids it: RTL, TLM sockets, spans.
  void run_apart();
  /// What of the network cannot work as it is meant, a line each: headroom that is too small, pauses that end early,
  /// ports whose frames access ports do not get.
  std::vector<std::string> warnings() const;
  /// Rings of pauses of which no way has sent anything since the last call, ten microseconds ago at least.
  std::vector<standstill> look_for_standstills();
  /// All that these calls have found, each once.
  const std::vector<standstill>& standstills() const { return standstills_; }
  /// By a program of a run that has no end in time: run() ends with message_failed when a ring of pauses stands still
  /// and none of these hosts (empty: of all) has got a RoCE packet for stuck_for. Only an outage could end the ring
  /// otherwise.
  void end_when_stuck(const std::vector<unsigned>& hosts = {});
  static constexpr sim::time_ps stuck_for = 100'000 * sim::ps_per_us;
  /// Head-of-line blocking: the queue because of which frames between two hosts are stopped though they do not go
  /// there, "s1 port 4 to h5"; empty: there is none now, or the way is not the only one.
  std::string blocked_by(unsigned from, unsigned to, unsigned priority) const;

 private:
  struct way {
    unsigned from = 0, out = 0, to = 0, in = 0;  // switches and their ports
    std::array<std::uint64_t, fabric::priorities> sent{};
    std::array<sim::time_ps, fabric::priorities> since{};
  };
  unsigned threads_to_use() const;
  void make_switches();
  void warn_of_short_pauses(std::vector<std::string>& all) const;
  void warn_of_one_way_ports(std::vector<std::string>& all) const;
  void make_cables();
  void make_cable(const fabric::network_link& w);
  bool is_measured(const fabric::plug_place& e) const {
    return config_.sides && !e.is_switch && e.number == (*config_.sides)[0];
  }
  void route();
  std::vector<std::uint16_t> vlans_of(unsigned of_switch) const;
  bool is_stuck(way& w, unsigned priority);
  void watch_for_standstills(const std::vector<const std::uint64_t*>& received);
  bool holds_up(const way& one, const way& next, unsigned priority) const;
  std::string name_of(const way& w) const;
  /// "h1.port1", "s1.port3".
  std::string port_name(const fabric::plug_place& e) const { return name_of(e) + ".port" + std::to_string(e.port); }

  network_config config_;
  sole_system sole_;
  sim::timebase base_;
  sim::span_recorder spans_;
  sim::statistics statistics_;
  payload::frame_pool frames_;
  payload::tlp_pool packets_;
  std::vector<node_config> built_from_;  // by host
  std::vector<std::unique_ptr<node>> nodes_;
  std::unique_ptr<sim::clock_domain> clock_;
  std::vector<std::unique_ptr<fabric::network_switch>> switches_;
  std::vector<std::unique_ptr<fabric::cable>> cables_;
  std::vector<std::array<fabric::plug_place, 2>> cable_ends_;
  std::vector<std::unique_ptr<fault_cable>> fault_cables_;
  system_capture capture_;
  std::unique_ptr<meeting> meeting_;
  std::vector<std::vector<endpoint>> ends_;  // by host
  std::vector<way> ways_;                    // between switches
  std::vector<standstill> standstills_;
  std::vector<std::array<ports_by_switch, 2>> routes_;  // to a host's port
  std::exception_ptr failure_;
  unsigned running_ = 0;
};

/// Time for which the cable between these places was in use by what went from the first one to the other. Both are of
/// the network.
std::uint64_t line_busy_ps(network& n, const fabric::plug_place& from, const fabric::plug_place& to);

}  // namespace rnic::hosts
