// SPDX-License-Identifier: Apache-2.0
// Two hosts whose drivers agree on shares and pauses.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "host_driver/dcb/service.h"
#include "model/mac/mac_cr.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {

inline constexpr std::uint64_t second = 1000 * ms;

namespace dcb = host_driver::dcb;

/// Classes 1 and 2 share as `first` and the rest, of priorities 3 and 5; all others are in class 0, which goes before.
inline dcb::settings shared(std::uint8_t first, bool willing) {
  dcb::settings s;
  s.enabled = true;
  s.ets_willing = s.pfc_willing = willing;
  s.class_of = {0, 0, 0, 1, 0, 2, 0, 0};
  s.classes[1] = {dcb::settings::algorithm::ets, first};
  s.classes[2] = {dcb::settings::algorithm::ets, static_cast<std::uint8_t>(100 - first)};
  return s;
}

struct side_settings {
  dcb::settings dcb;
  std::uint8_t pfc_mask = 0;
};

inline hosts::two_nodes_config bridged(hosts::two_nodes_config c, const side_settings& a, const side_settings& b) {
  c.node_b = c.node;
  c.node.driver.dcb = a.dcb;
  c.node.driver.pfc_mask = a.pfc_mask;
  c.node_b->driver.dcb = b.dcb;
  c.node_b->driver.pfc_mask = b.pfc_mask;
  return c;
}

inline std::uint32_t register_of(hosts::node& n, std::uint32_t offset) { return n.nic().port(0).cr_read(offset); }

/// Lets time pass until `done`, at most `most_s` seconds. False: it was not.
inline bool within(hosts::two_nodes& system, unsigned most_s, const std::function<bool()>& done) {
  for (unsigned i = 0; i < 100 * most_s && !done(); ++i) system.a().bus->spend_ps(second / 100);
  return done();
}

/// Both know each other, and nothing of it is under way any more.
inline void expect_acquainted(hosts::two_nodes& system) {
  ASSERT_TRUE(within(system, 40, [&system] {
    return system.node_a().dcb()->current().peer && system.node_b().dcb()->current().peer;
  }));
  system.a().bus->spend_ps(5 * second);
}

}  // namespace rnic::system_test
