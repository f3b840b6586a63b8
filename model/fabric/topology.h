// SPDX-License-Identifier: Apache-2.0
// Which hosts and switches there are, which cables join them, and which ways lead to a host.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace rnic::fabric {

/// One end of a cable.
struct plug_place {
  bool is_switch = false;
  unsigned number = 0;  ///< of the host or switch, from 0
  unsigned port = 0;    ///< host: 1 or 2; switch: from 0
};

struct network_link {
  std::array<plug_place, 2> ends;
  unsigned metres = 3;
  std::uint32_t rate_mbps = 40'000;
};

struct cable_kind {
  unsigned metres = 3;
  std::uint32_t rate_mbps = 40'000;
};

/// What cannot be built is sim::config_error: a name that is there already, numbers of none, a port with a cable.
class topology {
 public:
  /// Number of the new one.
  unsigned add_host(const std::string& name);
  unsigned add_switch(const std::string& name);
  /// Takes the next free port of a switch, and `port` (1, 2) of a host.
  void join_host(unsigned host, unsigned port, unsigned to_switch, const cable_kind& cable);
  /// Two hosts with nothing between them, at the same port (1, 2) of both.
  void join_hosts(unsigned a, unsigned b, unsigned port, const cable_kind& cable);
  void join_switches(unsigned a, unsigned b, const cable_kind& cable);

  const std::vector<std::string>& hosts() const { return hosts_; }
  const std::vector<std::string>& switches() const { return switches_; }
  const std::vector<network_link>& links() const { return links_; }
  unsigned ports_of(unsigned of_switch) const { return ports_[of_switch]; }
  /// Mask of the host's ports with a cable: bit 0 is port 1.
  unsigned cabled(unsigned host) const;

  /// Frames go round the switches in the order of their numbers, even where the other way is shorter (a ring).
  void go_clockwise() { clockwise_ = true; }
  /// By switch, its ports on the shortest ways to this port of the host, in order; none where no way leads there.
  std::vector<std::vector<unsigned>> ways_to(unsigned host, unsigned port) const;
  /// There is one way at most from any switch to any other.
  bool is_tree() const;
  /// What is at the other end of a switch's port.
  plug_place beyond(unsigned of_switch, unsigned port) const;
  /// The same of a host's port, which must have a cable.
  plug_place beyond_host(unsigned host, unsigned port) const;

 private:
  void expect_new(const std::string& name) const;
  void expect_free(unsigned host, unsigned port) const;
  void expect_switch(unsigned number) const;
  plug_place other_end(bool of_switch, unsigned number, unsigned port) const;
  std::vector<std::vector<unsigned>> clockwise_to(unsigned last_switch, unsigned last_port) const;

  std::vector<std::string> hosts_, switches_;
  std::vector<unsigned> ports_;  // by switch
  std::vector<network_link> links_;
  bool clockwise_ = false;
};

/// Hosts h1 and h2, joined by a cable at port 1 of both, or by one at each port.
topology make_pair(unsigned ports, const cable_kind& edge);
/// Hosts h1, h2, ... around a switch s1.
topology make_star(unsigned hosts, const cable_kind& edge);
/// Switches left and right with a trunk between them; h1 ... at the left, the others at the right.
topology make_dumbbell(unsigned left, unsigned right, const cable_kind& edge, const cable_kind& trunk);
/// Each of leaf1, leaf2, ... has its hosts and a trunk to each of spine1, spine2, ... With two `ports`, port 2 of a
/// leaf's hosts is on the next leaf, and that of the last one's on the first.
topology make_leaf_spine(unsigned leaves, unsigned spines, unsigned hosts_of_leaf, const cable_kind& edge,
                         const cable_kind& trunk, unsigned ports = 1);
/// s1, s2, ... in a ring, each with its hosts.
topology make_ring(unsigned switches, unsigned hosts_of_switch, const cable_kind& edge, const cable_kind& trunk);

}  // namespace rnic::fabric
