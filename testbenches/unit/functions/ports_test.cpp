// SPDX-License-Identifier: Apache-2.0
// Which function has which port, by which number, and which rows of its GID table: against sets and against dealing
// rows out one by one, and the hardware's owners against the driver's.
#include "host_driver/functions/ports.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "model/gid/gid_cr.h"
#include "model/gid/gid_table.h"

namespace rnic::host_driver {
namespace {

/// What num_vfs=port1,port2,port1+2 says, written down function by function.
struct plain {
  explicit plain(const functions_by_port& n) : ports{{1, 2}} {
    for (unsigned i = 0; i < n.port_1; ++i) ports.push_back({1});
    for (unsigned i = 0; i < n.port_2; ++i) ports.push_back({2});
    for (unsigned i = 0; i < n.both; ++i) ports.push_back({1, 2});
  }
  unsigned last() const { return static_cast<unsigned>(ports.size() - 1); }
  std::vector<unsigned> on(unsigned port) const {
    std::vector<unsigned> all;
    for (unsigned f = 1; f <= last(); ++f)
      if (ports[f].count(port) != 0) all.push_back(f);
    return all;
  }
  /// 16 rows of the physical function, the others dealt out, each function's together.
  std::vector<unsigned> owners(unsigned port) const {
    std::vector<unsigned> rows(16, 0);
    const std::vector<unsigned> all = on(port);
    std::vector<unsigned> dealt(all.size(), 0);
    for (unsigned row = 16; row < 128 && !all.empty(); ++row) ++dealt[(row - 16) % all.size()];
    for (std::size_t i = 0; i < all.size(); ++i) rows.insert(rows.end(), dealt[i], all[i]);
    return rows;
  }
  std::vector<std::set<unsigned>> ports;  // by function
};

functions_by_port any(std::mt19937& random) {
  functions_by_port n;
  const auto below = [&random](unsigned end) { return static_cast<unsigned>(random() % end); };
  const unsigned all = below(4) == 0 ? 126 : 1 + below(126);
  n.port_1 = below(all + 1);
  n.port_2 = below(all - n.port_1 + 1);
  n.both = below(3) == 0 ? 0 : all - n.port_1 - n.port_2;
  return n;
}

TEST(FunctionPorts, NumbersOfPortsAreThoseOfTheSets) {
  std::mt19937 random(1);
  for (unsigned round = 0; round < 300; ++round) {
    const functions_by_port n = any(random);
    const function_ports ports(n, 2);
    const plain reference(n);
    EXPECT_EQ(ports.any_dual(), n.both != 0);
    for (unsigned f = 0; f <= reference.last(); ++f) {
      const std::set<unsigned>& has = reference.ports[f];
      ASSERT_EQ(ports.count(f), has.size());
      unsigned own = 0;
      for (const unsigned port : has) {
        ++own;
        ASSERT_EQ(ports.physical_of(f, own), port) << f;
        ASSERT_EQ(ports.own_of(f, port), own) << f;
      }
      for (const unsigned port : {0u, 1u, 2u, 3u, 255u})
        if (has.count(port) == 0) {
          ASSERT_EQ(ports.own_of(f, port), 0u) << f;
          ASSERT_FALSE(ports.has(f, port));
        }
      for (const unsigned wrong : {0u, own + 1, 255u, ~0u}) ASSERT_EQ(ports.physical_of(f, wrong), 0u) << f;
    }
    for (const unsigned nobody : {reference.last() + 1, 127u, ~0u}) {
      ASSERT_EQ(ports.count(nobody), 0u);
      ASSERT_EQ(ports.physical_of(nobody, 1), 0u);
      ASSERT_EQ(ports.own_of(nobody, 1), 0u);
    }
    for (const unsigned port : {1u, 2u}) ASSERT_EQ(ports.functions_on(port), reference.on(port).size());
    EXPECT_EQ(ports.functions_on(0) + ports.functions_on(3), 0u);
  }
}

/// The rows of a port are divided among its own functions, in the driver as in hardware.
TEST(FunctionPorts, WindowsOfAPortAreItsFunctions) {
  std::mt19937 random(2);
  for (unsigned round = 0; round < 200; ++round) {
    const functions_by_port n = any(random);
    const function_ports ports(n, 2);
    const plain reference(n);
    for (const unsigned port : {1u, 2u}) {
      const std::vector<unsigned> owners = reference.owners(port);
      std::vector<unsigned> of(owners.size(), ~0u);
      for (unsigned f = 0; f <= reference.last(); ++f) {
        const function_ports::window w = ports.gids_of(f, port);
        if (reference.ports[f].count(port) == 0) {
          ASSERT_EQ(w.count, 0u);
        }
        for (unsigned row = w.first; row < w.first + w.count; ++row) of.at(row) = f;
      }
      ASSERT_EQ(of, owners) << n.port_1 << "," << n.port_2 << "," << n.both << " port " << port;
      // As firmware writes it.
      gid::gid_table table;
      namespace cr = gid::cr;
      const unsigned alone = port == 1 ? n.port_1 : n.port_2, first = port == 1 ? 1 : 1 + n.port_1;
      table.cr_write(cr::vf_numbers, alone << cr::vf_alone_shift | first << cr::vf_first_alone_shift |
                                         (1 + n.port_1 + n.port_2) << cr::vf_first_shift);
      table.cr_write(cr::num_vfs, static_cast<std::uint32_t>(reference.on(port).size()));
      for (unsigned row = 0; row < owners.size(); ++row) ASSERT_EQ(table[row].function, owners[row]) << row;
      table.device_reset();
      EXPECT_EQ(table.cr_read(cr::vf_numbers), cr::vf_numbers_reset);
    }
  }
}

TEST(FunctionPorts, ExamplesByHand) {
  const function_ports ports({2, 1, 3}, 2);  // 1 and 2 on port 1, 3 on port 2, 4 to 6 on both
  EXPECT_EQ(ports.physical_of(2, 1), 1u);
  EXPECT_EQ(ports.physical_of(3, 1), 2u);
  EXPECT_EQ(ports.physical_of(3, 2), 0u);
  EXPECT_EQ(ports.physical_of(4, 2), 2u);
  EXPECT_EQ(ports.own_of(3, 2), 1u);
  EXPECT_EQ(ports.own_of(3, 1), 0u);
  EXPECT_EQ(ports.gids_of(4, 1).first, 16u + 23 + 23);  // 112 = 5 * 22 + 2
  EXPECT_EQ(ports.gids_of(4, 2).first, 16u + 28);       // of 3, 4, 5, 6
  EXPECT_EQ(ports.gids_of(3, 2).first, 16u);
  EXPECT_EQ(ports.gids_of(6, 2).count, 28u);
  const function_ports dual({0, 0, 126}, 2);
  EXPECT_EQ(dual.gids_of(126, 2).count, 0u);
  EXPECT_EQ(dual.gids_of(112, 1).count, 1u);
}

TEST(FunctionPorts, OnADeviceOfOnePortAllHaveIt) {
  const function_ports ports({1, 0, 2}, 1);
  for (unsigned f = 0; f <= 3; ++f) {
    EXPECT_EQ(ports.count(f), 1u);
    EXPECT_EQ(ports.physical_of(f, 1), 1u);
    EXPECT_EQ(ports.physical_of(f, 2), 0u);
  }
  EXPECT_FALSE(ports.any_dual());
  EXPECT_EQ(ports.functions_on(1), 3u);
  EXPECT_EQ(ports.functions_on(2), 0u);
}

}  // namespace
}  // namespace rnic::host_driver
