// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/watched_system.h"

namespace rnic::bench {

namespace {

template <class System>
watched_system common_parts(System& of) {
  watched_system w;
  w.base = &of.base();
  w.spans = &of.spans();
  w.statistics = &of.statistics();
  w.capture = of.capture().of_ports();
  w.clock_khz = of.built_from(0).adapter.clock_khz;
  return w;
}

}  // namespace

watched_system watched(hosts::network& n) {
  watched_system w = common_parts(n);
  for (unsigned h = 0; h < n.hosts(); ++h) w.hosts.push_back({n.host(h).name(), n.end(h).device, &n.host(h).rtl()});
  for (unsigned s = 0; s < n.switches(); ++s) w.switches.push_back(n.middle(s).name());
  w.ahead = n.lookahead();
  return w;
}

watched_system watched(hosts::two_nodes& n) {
  watched_system w = common_parts(n);
  for (unsigned side = 0; side < 2; ++side) w.hosts.push_back({n.name(side), n.end(side).device, &n.host(side).rtl()});
  return w;
}

}  // namespace rnic::bench
