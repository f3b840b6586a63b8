// SPDX-License-Identifier: Apache-2.0
// Two hosts whose adapters have virtual functions, for tests that drive several of them from one program.
#pragma once

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {

inline hosts::two_nodes_config shared_cards(unsigned functions) {
  hosts::two_nodes_config c = default_system();
  c.node.functions = functions;
  return c;
}

/// The end of a function at port 1 of a host.
inline hosts::endpoint end_of(hosts::node& n, unsigned function) {
  hosts::endpoint e;
  e.device = &n.device(function);
  e.bus = &n.bus(function);
  return e;
}

/// A connection between functions; `host`: numbers of their addresses, this one and the next.
inline link connect(hosts::node& a, unsigned function_a, hosts::node& b, unsigned function_b, unsigned host,
                    hosts::connection_options options = {}) {
  options.ack_timeout = 8;
  hosts::endpoint ends[] = {end_of(a, function_a), end_of(b, function_b)};
  link l = make_link(ends[0], ends[1], options, host);
  return l;
}

/// What host b's adapter has counted.
inline std::uint64_t at_b(hosts::two_nodes& system, const std::string& counter) {
  return system.statistics().value("b.adapter." + counter);
}

}  // namespace rnic::system_test
