// SPDX-License-Identifier: Apache-2.0
// Hosts of two sides that talk with each other, for loads that do not care how they are joined.
#pragma once

#include "host_driver/hosts/two_nodes.h"

namespace rnic::hosts {

class hosts_if {
 public:
  virtual ~hosts_if() = default;
  /// Of side 0 or 1, at least one each.
  virtual unsigned hosts(unsigned side) const = 0;
  virtual endpoint& host(unsigned side, unsigned index) = 0;
  /// For the programs: waits until those of all hosts are here.
  virtual void meet() = 0;
  virtual sim::time_ps now_ps() const = 0;
};

/// 1, 2, ...: a number for the host's address.
inline unsigned number_of(hosts_if& system, const endpoint& e) {
  unsigned n = 1;
  for (unsigned side = 0; side < 2; ++side)
    for (unsigned i = 0; i < system.hosts(side); ++i, ++n)
      if (&system.host(side, i) == &e) return n;
  return 0;
}

/// The two of a cable.
class pair_of_hosts final : public hosts_if {
 public:
  explicit pair_of_hosts(two_nodes& system) : system_(system) {}
  unsigned hosts(unsigned) const override { return 1; }
  endpoint& host(unsigned side, unsigned) override { return side == 0 ? system_.a() : system_.b(); }
  void meet() override { system_.meet(); }
  sim::time_ps now_ps() const override { return system_.now_ps(); }

 private:
  two_nodes& system_;
};

}  // namespace rnic::hosts
