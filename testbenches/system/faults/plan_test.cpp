// SPDX-License-Identifier: Apache-2.0
// Every fault plan of plans/ ends as its author says.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "host_driver/hosts/two_nodes.h"
#include "model/fabric/fault_plan.h"
#include "testbenches/bench/soak.h"
#include "testbenches/source_tree.h"

namespace rnic::system_test {
namespace {

std::vector<std::string> plans() {
  std::vector<std::string> all;
  for (const auto& file : std::filesystem::directory_iterator(rnic::in_source_tree("testbenches/system/faults/plans")))
    all.push_back(file.path().stem().string());
  std::sort(all.begin(), all.end());
  return all;
}

class Plan : public ::testing::TestWithParam<std::string> {};

TEST_P(Plan, EndsAsExpected) {
  hosts::two_nodes_config config;
  config.node = hosts::make_node_config("connectx3pro_40g");
  config.faults =
      fabric::load_fault_plan(rnic::in_source_tree("testbenches/system/faults/plans/" + GetParam() + ".toml"));
  hosts::connection_options connection;
  connection.mtu = 1024;
  connection.ack_timeout = 8;  // 1 ms
  connection.retries = 3;
  connection.rnr_retries = 3;
  connection.rnr_timer = 1;
  bench::soak_config load;
  load.messages = 80;
  load.qps = 1;
  load.depth = 8;
  load.largest = 6000;
  load.late_receives = 0;
  hosts::two_nodes system(config);
  bench::soak soak(system, connection, load);
  system.run([&] { soak.program_a(); }, [&] { soak.program_b(); });

  const bench::soak_result& r = soak.result();
  std::string all;
  for (const std::string& f : r.findings) all += f + "\n";
  std::string completion = "success";
  for (std::size_t i = 0; i < config.faults.rules.size(); ++i) {
    const fabric::fault_rule& rule = config.faults.rules[i];
    EXPECT_GT(system.faults()->hits(i), 0U) << rule.name << " has hit nothing";
    if (!rule.completion.empty()) completion = rule.completion;
    if (rule.counter.empty()) continue;
    std::uint64_t counted = 0;
    for (const auto& [name, counter] : system.statistics().all())
      if (name.find(rule.counter) != std::string::npos) counted += *counter;
    EXPECT_GT(counted, 0U) << rule.counter;
  }
  EXPECT_EQ(r.lost + r.duplicated + r.corrupted + r.reordered + r.hung, 0U) << all;
  if (completion == "success") {
    EXPECT_TRUE(r.clean()) << all;
  } else {
    EXPECT_GT(r.errors, 0U);
    EXPECT_NE(all.find("ended with " + completion), std::string::npos) << all;
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, Plan, ::testing::ValuesIn(plans()), [](const auto& plan) { return plan.param; });

}  // namespace
}  // namespace rnic::system_test
