// SPDX-License-Identifier: Apache-2.0
// What users of the library do in the wrong order is answered by a sentence.
#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <string>

#include "host_driver/hosts/network.h"
#include "host_driver/hosts/two_nodes.h"
#include "host_driver/workloads/latency_record.h"
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
  EXPECT_EQ(answer_to([&] { system.faults(5); }), "faults 5: there are 1, numbered from 0");
  EXPECT_EQ(answer_to([&] { system.a().of->device(5); }),
            "function 5: there are 0 virtual ones, numbered from 1; 0 is the physical one");
}

TEST(Misuse, NumbersThatNobodyHasAreRefused) {
  hosts::two_nodes system(cable_between_two());
  hosts::connection_options o;
  o.mtu = 1500;
  EXPECT_EQ(answer_to([&] { system.run([&] { hosts::set_address(system.a(), o, 1); }, [] {}); }),
            "mtu: 1500: expected 256, 512, 1024, 2048 or 4096");
}

TEST(Misuse, IpHasTwoVersions) {
  hosts::two_nodes system(cable_between_two());
  hosts::connection_options o;
  o.ip = 5;
  EXPECT_EQ(answer_to([&] { system.run([&] { hosts::set_address(system.a(), o, 1); }, [] {}); }),
            "ip: 5: expected 4 or 6");
}

TEST(Misuse, ParametersOfSoftwareAndCablesHaveTheirRanges) {
  const auto with = [](const std::function<void(hosts::two_nodes_config&)>& change) {
    hosts::two_nodes_config c = cable_between_two();
    change(c);
    return answer_to([&] { hosts::two_nodes wrong(c); });
  };
  EXPECT_EQ(with([](auto& c) { c.cable_metres = 100'001; }),
            "cable.metres: '100001' is not legal, expected 0 to 100000 m");
  EXPECT_EQ(with([](auto& c) { c.node.driver.log_num_qp = 0; }).rfind("driver.log_num_qp: '0' is not legal", 0), 0u);
  EXPECT_EQ(with([](auto& c) { c.node.driver.mtu = 9601; }).rfind("driver.mtu: '9601' is not legal", 0), 0u);
  EXPECT_EQ(with([](auto& c) { c.node.uncore_khz = 10'000'001; }).rfind("host.uncore_khz: '10000001'", 0), 0u);
  EXPECT_EQ(with([](auto&) {}), "");
}

TEST(Misuse, TopologiesThatCannotBeBuiltAreRefused) {
  fabric::topology t;
  const unsigned host = t.add_host("h1"), middle = t.add_switch("s1");
  EXPECT_EQ(answer_to([&] { t.add_host("h1"); }), "topology: there are two h1");
  EXPECT_EQ(answer_to([&] { t.add_switch("h1"); }), "topology: there are two h1");
  EXPECT_EQ(answer_to([&] { t.join_host(5, 1, middle, {}); }), "topology: host 5: there are 1, numbered from 0");
  EXPECT_EQ(answer_to([&] { t.join_host(host, 1, 7, {}); }), "topology: switch 7: there are 1, numbered from 0");
  EXPECT_EQ(answer_to([&] { t.join_host(host, 3, middle, {}); }), "topology: h1: port 3: expected 1 or 2");
  EXPECT_EQ(answer_to([&] { t.join_hosts(host, host, 1, {}); }), "topology: h1: a cable has two ends");
  EXPECT_EQ(answer_to([&] { t.join_switches(0, 1, {}); }), "topology: switch 1: there are 1, numbered from 0");
  t.join_host(host, 1, middle, {});
  EXPECT_EQ(answer_to([&] { t.join_host(host, 1, middle, {}); }), "topology: h1: port 1 has a cable already");
  EXPECT_EQ(t.links().size(), 1u) << "what was refused left nothing";
}

TEST(Misuse, SettingsAreOfHostsThatThereAre) {
  hosts::network_config c;
  c.node = hosts::make_node_config("connectx3pro_40g");
  c.shape = fabric::make_pair(1, {});
  c.settings.push_back({2, "driver.poll_ns", "40", "test"});
  EXPECT_EQ(answer_to([&] { hosts::network wrong(c); }),
            "settings: driver.poll_ns of host 2: there are 2, numbered from 0");
}

TEST(Misuse, NoSampleHasNoQuantile) {
  EXPECT_EQ(answer_to([] { workloads::latency_record().quantile(0.5); }), "latency_record: a quantile of no sample");
}

TEST(Misuse, HostsAndPortsOfANetworkThatAreNotThereAreNamed) {
  hosts::network_config c;
  c.node = hosts::make_node_config("connectx3pro_40g");
  c.shape = fabric::make_pair(1, {});
  hosts::network system(c);
  EXPECT_EQ(answer_to([&] { system.host(2); }), "host 2: there are 2, numbered from 0");
  EXPECT_EQ(answer_to([&] { system.end(2); }), "end 2: there are 2, numbered from 0");
  EXPECT_EQ(answer_to([&] { system.end(1, 2); }), "end: h2 has no cable at port 2");
  EXPECT_EQ(answer_to([&] { system.middle(0); }), "middle 0: there are 0, numbered from 0");
  EXPECT_EQ(answer_to([&] { system.run({}); }), "run: program is not given");
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
