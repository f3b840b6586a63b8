// SPDX-License-Identifier: Apache-2.0
// Two hosts that are measured, whatever lies between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/node.h"
#include "model/sim/check.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timebase.h"

namespace rnic::hosts {

/// `number`, where so many there are, from 0. Throws sim::config_error for another one, `what` first: "end 7: there are
/// 2".
inline unsigned one_of(const char* what, std::size_t number, std::size_t there_are) {
  if (number >= there_are)
    throw sim::config_error(std::string(what) + " " + std::to_string(number) + ": there are " +
                            std::to_string(there_are) + ", numbered from 0");
  return static_cast<unsigned>(number);
}

class pair_if {
 public:
  /// A direction of a cable on a way between the two hosts.
  struct line {
    std::string name;           ///< "wire, a to b"
    std::uint64_t busy_ps = 0;  ///< since the beginning: frames with preamble and gap
  };
  virtual ~pair_if() = default;

  /// Side 0 is a, side 1 is b, and there is no other (sim::config_error); their counters begin with the host's name().
  virtual node& host(unsigned side) = 0;
  virtual endpoint& end(unsigned side) = 0;
  /// What the host was built from.
  virtual const node_config& built_from(unsigned side) const = 0;
  /// 1, 2, ...: of the host's address.
  virtual unsigned number(unsigned side) const = 0;
  /// Who can stop a host: "host b", "switch s1".
  virtual std::string neighbour(unsigned side) const = 0;
  /// The same lines in the same order whenever it is asked.
  virtual std::vector<line> lines() const = 0;
  /// For the programs of the two: waits until the other one is here too.
  virtual void meet() = 0;
  virtual sim::timebase& base() = 0;
  virtual sim::span_recorder& spans() = 0;
  virtual sim::statistics& statistics() = 0;
  /// A frame or a packet of PCI Express is somewhere between the memories of the hosts.
  virtual bool under_way() const = 0;

  endpoint& a() { return end(0); }
  endpoint& b() { return end(1); }
  node& node_a() { return host(0); }
  node& node_b() { return host(1); }
  /// "a" or the host's name in its network.
  std::string name(unsigned side) { return host(side).name(); }
  sim::time_ps now_ps() { return base().now_ps(); }
};

/// The ends of a host at these ports, each the other one's `other` where there are two. A bond is one end.
std::vector<endpoint> make_ends(node& n, const std::vector<unsigned>& ports);
/// Time that a line of this rate was in use by so many frames and their bytes, FCS included, and by pause frames.
std::uint64_t line_busy_ps(std::uint64_t frames, std::uint64_t bytes, std::uint64_t pauses, std::uint32_t rate_mbps);
/// The same of what a port of this host has sent, or has received: a fault plan may send frames twice.
enum class line_end : std::uint8_t { sent, received };
std::uint64_t line_busy_ps(const sim::statistics& counted, const std::string& host, unsigned port, line_end end,
                           std::uint32_t rate_mbps);

}  // namespace rnic::hosts
