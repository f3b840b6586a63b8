// SPDX-License-Identifier: Apache-2.0
// A short soak of each RoCE version, and soaks in which something is wrong: they must say what.
#include "testbenches/bench/soak.h"

#include <gtest/gtest.h>

#include "host_driver/hosts/two_nodes.h"
#include "model/fabric/fault_plan.h"

namespace rnic::system_test {
namespace {

using fabric::fault_action;
using fabric::rate_rule;

struct experiment {
  experiment() {
    config.node = hosts::make_node_config("connectx3pro_40g");
    connection.ack_timeout = 12;
    connection.rnr_timer = 1;
    load.messages = 4000;
    load.qps = 16;
  }
  void plan(const std::string& text) { config.faults = fabric::parse_fault_plan(text, "plan"); }
  const bench::soak_result& run() {
    system = std::make_unique<hosts::two_nodes>(config);
    soak = std::make_unique<bench::soak>(*system, connection, load);
    system->run([this] { soak->program_a(); }, [this] { soak->program_b(); });
    for (const std::string& f : soak->result().findings) findings += f + "\n";
    return soak->result();
  }
  hosts::two_nodes_config config;
  hosts::connection_options connection;
  bench::soak_config load;
  std::unique_ptr<hosts::two_nodes> system;
  std::unique_ptr<bench::soak> soak;
  std::string findings;
};

void soak_under_rates(host_driver::roce_types roce) {
  experiment e;
  e.connection.roce = roce;
  for (const auto& [action, percent] : {std::pair{fault_action::drop, 1.0}, std::pair{fault_action::duplicate, 1.0},
                                        std::pair{fault_action::reorder, 1.0}, std::pair{fault_action::corrupt, 0.1}})
    e.config.faults.rules.push_back(rate_rule(action, percent));
  const bench::soak_result& r = e.run();
  EXPECT_TRUE(r.clean()) << e.findings;
  EXPECT_EQ(r.completed, 4000U);
  for (const std::uint64_t n : r.by_verb) EXPECT_GT(n, 400U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_GT(e.system->faults()->hits(i), 0U) << i;
}

/// Two timers for all queue pairs of an adapter: what is lost is noticed late, and noticed all the same.
TEST(Soak, FewTimers) {
  experiment e;
  e.config.node.adapter.requester.timers.entries = 2;
  e.config.faults.rules.push_back(rate_rule(fault_action::drop, 3));
  const bench::soak_result& r = e.run();
  EXPECT_TRUE(r.clean()) << e.findings;
  EXPECT_EQ(r.completed, 4000U);
}

TEST(Soak, RoceV1) { soak_under_rates(host_driver::roce_types::v1); }
TEST(Soak, RoceV2) { soak_under_rates(host_driver::roce_types::v2); }

/// READs only, as many as may be under way: what is asked for again meets what is being answered (responder_read
/// tests).
TEST(Soak, ReadsOnly) {
  experiment e;
  e.load.qps = 4;
  e.load.verbs = 1U << 4;
  e.config.faults.rules.push_back(rate_rule(fault_action::drop, 3));
  e.config.faults.rules.push_back(rate_rule(fault_action::reorder, 3));
  const bench::soak_result& r = e.run();
  EXPECT_TRUE(r.clean()) << e.findings;
}

TEST(Soak, TenPercentLost) {
  experiment e;
  e.config.node.adapter.requester.extra_retries = 57;
  e.config.faults.rules.push_back(rate_rule(fault_action::drop, 10));
  const bench::soak_result& r = e.run();
  EXPECT_TRUE(r.clean()) << e.findings;
}

TEST(Soak, AllLostEndsInErrors) {
  experiment e;
  e.connection.retries = 2;
  e.config.faults.rules.push_back(rate_rule(fault_action::drop, 100));
  const bench::soak_result& r = e.run();
  EXPECT_EQ(r.completed, 0U);
  EXPECT_EQ(r.errors, 32U) << "one message of each flow";
  EXPECT_EQ(r.errors + r.flushed, r.posted);
  EXPECT_EQ(r.hung + r.lost, 0U);
  EXPECT_NE(e.findings.find("ended with retry_exceeded, vendor error 129"), std::string::npos) << e.findings;
}

TEST(Soak, ReceiverNeverReadyEndsInErrors) {
  experiment e;
  e.connection.rnr_retries = 2;
  e.plan(R"(
[[event]]
type = "corrupt"
opcode = "acknowledge"
field = "aeth_syndrome"
value = 0x21
made_right = "icrc"
)");
  const bench::soak_result& r = e.run();
  EXPECT_GT(r.errors, 0U);
  EXPECT_EQ(r.hung + r.lost + r.corrupted, 0U) << e.findings;
  EXPECT_NE(e.findings.find("ended with rnr_retry_exceeded, vendor error 135"), std::string::npos) << e.findings;
}

TEST(Soak, FindsWrongBytes) {
  experiment e;
  e.load.largest = 4096;
  e.load.late_receives = 0;  // nothing is sent twice
  e.plan(R"(
[[event]]
type = "corrupt"
opcode = ["send", "rdma_write", "rdma_read_response"]
direction = "b_to_a"
part = "payload"
made_right = "icrc"
nth = 3
times = 5
)");
  const bench::soak_result& r = e.run();
  EXPECT_EQ(r.corrupted, e.system->faults()->hits(0)) << e.findings;
  EXPECT_EQ(r.corrupted, 5U);
  EXPECT_FALSE(r.clean());
}

/// A WRITE goes to a place that is not its own: it is missing there, and what is here is in nobody's place.
TEST(Soak, FindsBytesInTheWrongPlace) {
  experiment e;
  e.load.qps = 1;
  e.plan(R"(
[[event]]
type = "corrupt"
opcode = "rdma_write_only"
direction = "a_to_b"
field = "reth_va"
bit = 4
offset = 7
made_right = "icrc"
nth = 30
)");
  const bench::soak_result& r = e.run();
  EXPECT_GE(r.corrupted, 1U) << e.findings;
  EXPECT_FALSE(r.clean());
}

constexpr std::uint32_t swaps = 1U << 5, additions = 1U << 6;

/// Answers and requests are lost and come twice; what was executed is not executed again.
TEST(Soak, AtomicsAreExecutedOnce) {
  experiment e;
  e.load.qps = 4;
  e.load.verbs = swaps | additions;
  for (const fault_action a : {fault_action::drop, fault_action::duplicate, fault_action::reorder})
    e.config.faults.rules.push_back(rate_rule(a, 5));
  const bench::soak_result& r = e.run();
  EXPECT_TRUE(r.clean()) << e.findings;
  EXPECT_EQ(r.by_verb[5] + r.by_verb[6], 4000U);
}

/// The lowest byte of the original value in an answer of RoCE v2 over IPv4.
TEST(Soak, FindsAWrongOriginalValue) {
  experiment e;
  e.load.verbs = swaps;
  e.plan(R"(
[[event]]
type = "corrupt"
opcode = "atomic_acknowledge"
direction = "b_to_a"
part = "header"
offset = 65
bit = 3
made_right = "icrc"
flow = 2
first = 10
times = 4
)");
  const bench::soak_result& r = e.run();
  EXPECT_EQ(r.corrupted, 4U) << e.findings;
  EXPECT_NE(e.findings.find("cas, 8 bytes) returned"), std::string::npos) << e.findings;
}

/// A request adds another number than was asked for: the word ends with it, and later originals tell.
TEST(Soak, FindsAWrongAddition) {
  experiment e;
  e.load.qps = 2;
  e.load.verbs = additions;
  e.load.messages = 400;
  e.plan(R"(
[[event]]
type = "corrupt"
opcode = 0x14
direction = "a_to_b"
part = "header"
offset = 73
bit = 7
made_right = "icrc"
nth = 20
)");
  const bench::soak_result& r = e.run();
  EXPECT_GT(r.corrupted + r.duplicated, 1U) << e.findings;
  EXPECT_NE(e.findings.find("word"), std::string::npos) << e.findings;
}

/// Without a timer a lost packet is never sent again.
TEST(Soak, FindsHangsAndSaysWhere) {
  experiment e;
  e.connection.ack_timeout = 0;
  e.load.qps = 2;
  e.load.verbs = 4;  // WRITE
  e.load.messages = 40;
  e.load.depth = 1;
  e.plan(R"(
[[event]]
type = "drop"
direction = "a_to_b"
opcode = "rdma_write"
flow = 2
first = 5
)");
  const bench::soak_result& r = e.run();
  EXPECT_EQ(r.hung, 1U) << e.findings;
  EXPECT_EQ(r.errors, 0U);
  EXPECT_NE(e.findings.find("neither completed nor failed"), std::string::npos) << e.findings;
  EXPECT_NE(e.findings.find("is in RTS, next PSN to send"), std::string::npos) << e.findings;
}

}  // namespace
}  // namespace rnic::system_test
