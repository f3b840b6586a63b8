// SPDX-License-Identifier: Apache-2.0
// What users of the library do in the wrong order is answered by a sentence.
#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <string>

#include "host_driver/hosts/network.h"
#include "host_driver/hosts/two_nodes.h"
#include "model/sim/simulation.h"

namespace rnic::system_test {
namespace {

hosts::two_nodes_config cable_between_two() {
  hosts::two_nodes_config c;
  c.node = hosts::make_node_config("connectx3pro_40g");
  return c;
}

std::string answer_to(const std::function<void()>& what) {
  try {
    what();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

const std::string one_each = "; several systems in a process need a sim::simulation each, one after the other";
const std::string not_open = ": the device is not open, which it is for the programs of a run";

TEST(Misuse, TwoSystemsAtOnceAreRefused) {
  hosts::two_nodes first(cable_between_two());
  EXPECT_EQ(answer_to([] { hosts::two_nodes second(cable_between_two()); }),
            "a second system: this SystemC kernel has one already" + one_each);
  EXPECT_EQ(answer_to([&] { first.run([] {}, [] {}); }), "") << "the first one is as it was";
}

TEST(Misuse, ASystemWithinARunIsRefused) {
  hosts::two_nodes first(cable_between_two());
  std::string answer;
  first.run([&] { answer = answer_to([] { hosts::two_nodes second(cable_between_two()); }); }, [] {});
  EXPECT_EQ(answer, "a second system: this SystemC kernel has one already" + one_each);
}

TEST(Misuse, ASystemAfterARunIsRefused) {
  {
    hosts::two_nodes first(cable_between_two());
    first.run([] {}, [] {});
  }
  EXPECT_EQ(answer_to([] { hosts::two_nodes second(cable_between_two()); }),
            "a second system: this SystemC kernel has simulated one already" + one_each);
}

TEST(Misuse, ProcessesOfASystemThatIsGoneDoNotRun) {
  { const hosts::two_nodes first(cable_between_two()); }
  sc_core::sc_report_handler::set_actions(sc_core::SC_WARNING, sc_core::SC_DO_NOTHING);  // of names that are taken
  hosts::two_nodes second(cable_between_two());
  EXPECT_EQ(answer_to([&] { second.run([] {}, [] {}); }),
            "run: this SystemC kernel has processes of another system, which is gone" + one_each);
}

TEST(Misuse, OneKernelEachIsFine) {
  for (unsigned i = 0; i < 2; ++i) {
    const sim::simulation kernel;
    hosts::two_nodes system(cable_between_two());
    EXPECT_EQ(answer_to([&] { system.run([] {}, [] {}); }), "");
  }
}

TEST(Misuse, ASystemThatWasRefusedLeavesRoom) {
  hosts::two_nodes_config c = cable_between_two();
  c.ports = {3};
  EXPECT_EQ(answer_to([&] { hosts::two_nodes wrong(c); }), "cabled ports: 3: expected 1, 2, 1,2 or 2,1");
  hosts::two_nodes right(cable_between_two());
  EXPECT_EQ(answer_to([&] { right.run([] {}, [] {}); }), "");
}

TEST(Misuse, ASecondRunIsRefused) {
  hosts::two_nodes system(cable_between_two());
  system.run([] {}, [] {});
  EXPECT_EQ(answer_to([&] { system.run([] {}, [] {}); }), "run: a system runs once, and this one has run");
}

TEST(Misuse, AProgramIsNeeded) {
  hosts::two_nodes system(cable_between_two());
  EXPECT_EQ(answer_to([&] { system.run([] {}, {}); }), "run: program_b is not given");
}

TEST(Misuse, VerbsBeforeTheDeviceIsOpenAreRefused) {
  hosts::two_nodes system(cable_between_two());
  hosts::endpoint& e = system.a();
  EXPECT_EQ(answer_to([&] { hosts::set_address(e, {}, 1); }), "set_address" + not_open);
  EXPECT_EQ(answer_to([&] { hosts::make_buffer(e, 4096); }), "make_buffer" + not_open);
  EXPECT_EQ(answer_to([&] { hosts::require_made(*e.device, e.device->create_cq(16), "completion queue"); }),
            "completion queue" + not_open);
  ibv_cq none{};
  EXPECT_EQ(answer_to([&] { hosts::make_qp(e, {}, none, none); }), "create_qp" + not_open);
  EXPECT_EQ(answer_to([&] { system.meet(); }), "meet: only the programs of a run meet");
}

TEST(Misuse, ABufferNeedsAnAddress) {
  hosts::two_nodes system(cable_between_two());
  EXPECT_EQ(answer_to([&] { system.run([&] { hosts::make_buffer(system.a(), 4096); }, [] {}); }),
            "make_buffer: the host has no address yet, set_address comes first");
}

TEST(Misuse, WhoWaitsForNobodyIsTold) {
  hosts::two_nodes system(cable_between_two());
  EXPECT_EQ(answer_to([&] { system.run([&] { system.meet(); }, [] {}); }),
            "the simulation came to rest before all programs had ended");
}

TEST(Misuse, WhatIsNotThereIsNamed) {
  hosts::two_nodes system(cable_between_two());
  EXPECT_EQ(answer_to([&] { system.end(7); }), "end 7: there are 2, numbered from 0");
  EXPECT_EQ(answer_to([&] { system.host(2); }), "host 2: there are 2, numbered from 0");
  EXPECT_EQ(answer_to([&] { system.cable(1); }), "cable 1: there are 1, numbered from 0");
}

TEST(Misuse, HostsAndPortsOfANetworkThatAreNotThereAreNamed) {
  hosts::network_config c;
  c.node = hosts::make_node_config("connectx3pro_40g");
  c.shape = fabric::make_pair(1, {});
  hosts::network system(c);
  EXPECT_EQ(answer_to([&] { system.host(2); }), "host 2: there are 2, numbered from 0");
  EXPECT_EQ(answer_to([&] { system.end(2); }), "end 2: there are 2, numbered from 0");
  EXPECT_EQ(answer_to([&] { system.end(1, 2); }), "end: h2 has no cable at port 2");
}

TEST(Misuse, ABlockWithoutItsFunctionIsRefused) {
  hosts::two_nodes_config c = cable_between_two();
  c.node.blocks["atomic_unit"] = {};
  EXPECT_NE(answer_to([&] { hosts::two_nodes wrong(c); }).find("own block: the function that makes it is not given"),
            std::string::npos);
}

TEST(Misuse, AHostWithoutACableIsNamed) {
  hosts::network_config c;
  c.node = hosts::make_node_config("connectx3pro_40g");
  EXPECT_EQ(answer_to([&] { hosts::network none(c); }), "topology: has no hosts");
  c.shape.add_host("h1");
  EXPECT_EQ(answer_to([&] { hosts::network lonely(c); }), "h1: has no cable");
}

}  // namespace
}  // namespace rnic::system_test
