// SPDX-License-Identifier: Apache-2.0
// A workload that cannot be is refused by one line, before anything is built for it.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "host_driver/workloads/limits.h"
#include "model/sim/check.h"

namespace rnic::workloads {
namespace {

workload_config legal() {
  workload_config w;
  w.name = "w";
  w.from = {0};
  w.to = {1};
  w.sizes = message_sizes(4096);
  w.memory.bytes = 4096;
  w.messages = 10;
  return w;
}

std::string refusal(const std::function<void(workload_config&)>& change, bool endless = true) {
  workload_config w = legal();
  change(w);
  try {
    check(w, fabric::make_star(3, {}), endless);
  } catch (const sim::config_error& e) {
    return e.what();
  }
  return "";
}

TEST(WorkloadLimits, WhatIsLegalPasses) {
  EXPECT_EQ(refusal([](workload_config&) {}), "");
  EXPECT_EQ(refusal([](workload_config& w) { w.messages = 0; }, false), "");
  EXPECT_EQ(refusal([](workload_config& w) { w.depth = 4096, w.signal_every = 4065, w.batch = 32; }), "");
  EXPECT_EQ(refusal([](workload_config& w) { w.from = {0, 1, 2}, w.to = {0, 1, 2}; }), "");
}

TEST(WorkloadLimits, HostsAreThoseOfTheNetwork) {
  EXPECT_EQ(refusal([](workload_config& w) { w.from = {}; }), "workload w: from: is missing, expected a host at least");
  EXPECT_EQ(refusal([](workload_config& w) { w.to = {3}; }), "workload w: to: 3 is not legal, expected 0 to 2");
  EXPECT_EQ(refusal([](workload_config& w) { w.to = {2, 1, 2}; }), "workload w: to: a host is there twice");
  EXPECT_EQ(refusal([](workload_config& w) { w.to = {0}; }),
            "workload w: to: h1 is where it comes from, expected another host");
  EXPECT_EQ(refusal([](workload_config& w) { w.ports = {2}; }), "workload w: ports: port 2 of h1 has no cable");
  EXPECT_EQ(refusal([](workload_config& w) { w.ports = {3}; }), "workload w: ports: 3 is not legal, expected 1 to 2");
}

TEST(WorkloadLimits, VerbsAndSizesAreThoseOfTheTransport) {
  EXPECT_EQ(refusal([](workload_config& w) { w.verbs.clear(); }), "workload w: verbs: is empty, expected one at least");
  EXPECT_EQ(refusal([](workload_config& w) {
              w.verbs = {{find_verb("no such"), 1}};
            }),
            "workload w: verbs: none is not legal in this transport");
  EXPECT_EQ(refusal([](workload_config& w) {
              w.verbs = {{find_verb("read"), 1}};
              w.connection.type = IBV_QPT_UC;
            }),
            "workload w: verbs: read is not legal in this transport");
  EXPECT_EQ(refusal([](workload_config& w) {
              w.verbs = {{find_verb("write"), 0}};
            }),
            "workload w: verbs: weight: 0 is not legal, expected 1 to 1000000");
  EXPECT_EQ(refusal([](workload_config& w) {
              w.verbs = {{find_verb("send"), 1}};
              w.connection.type = IBV_QPT_UD;
              w.connection.mtu = 1024;
            }),
            "workload w: sizes: 4096 is not legal, expected 0 to 1024");
  EXPECT_EQ(refusal([](workload_config& w) { w.memory.bytes = 4095; }),
            "workload w: memory.bytes: 4095 is not legal, expected 4096 to 17179869184");
  EXPECT_EQ(refusal([](workload_config& w) { w.connection.inline_bytes = 913; }),
            "workload w: connection.inline_bytes: 913 is not legal, expected 0 to 912");
}

TEST(WorkloadLimits, LoopsHaveRoomAndAnEnd) {
  EXPECT_EQ(refusal([](workload_config& w) { w.threads = 65; }),
            "workload w: threads: 65 is not legal, expected 1 to 64");
  EXPECT_EQ(refusal([](workload_config& w) { w.qps = 0; }), "workload w: qps: 0 is not legal, expected 1 to 4096");
  EXPECT_EQ(refusal([](workload_config& w) { w.signal_every = 16, w.batch = 2; }),
            "workload w: depth: 16 is not legal, expected 17 to 4096");
  EXPECT_EQ(refusal([](workload_config& w) { w.open = arrival_config{}; }),
            "workload w: open.gap_ps: expected above 0");
  EXPECT_EQ(refusal([](workload_config& w) { w.start = w.end = 5; }), "workload w: end: is not behind start");
  EXPECT_EQ(refusal([](workload_config& w) { w.messages = 0; }),
            "workload w: messages: is missing, and so are its end and the duration of the run: one of them ends the "
            "workload");
}

TEST(WorkloadLimits, AnsweredMessagesAreOneAtATime) {
  const auto answered = [](const std::function<void(workload_config&)>& change) {
    return refusal([&change](workload_config& w) {
      w.ping_pong = true;
      w.depth = 1;
      change(w);
    });
  };
  EXPECT_EQ(answered([](workload_config& w) { w.threads = 4, w.qps = 9; }), "");
  EXPECT_EQ(answered([](workload_config& w) { w.depth = 2; }), "workload w: depth: 2 is not legal, expected 1 to 1");
  EXPECT_EQ(answered([](workload_config& w) {
              w.open = arrival_config{arrival_config::process::poisson, 1e6, 0, 0};
            }),
            "workload w: open: an answered message is posted behind the answer before it, expected a closed loop");
  EXPECT_EQ(answered([](workload_config& w) {
              w.verbs.push_back({find_verb("send"), 1});
            }),
            "workload w: verbs: expected one of messages that are answered");
  EXPECT_EQ(answered([](workload_config& w) {
              w.verbs = {{find_verb("fadd"), 1}};
            }),
            "workload w: verbs: fadd has its answer, expected one that sends or writes");
  EXPECT_EQ(answered([](workload_config& w) {
              w.sizes = message_sizes::list({{64, 1}, {4096, 1}});
            }),
            "workload w: sizes: expected one of messages that are answered");
  EXPECT_EQ(answered([](workload_config& w) { w.sizes = message_sizes(0); }),
            "workload w: sizes: 0 is not legal, expected 1 to 1073741824");
  EXPECT_EQ(answered([](workload_config& w) {
              w.sizes = message_sizes(0);
              w.verbs = {{find_verb("send"), 1}};
            }),
            "");
}

}  // namespace
}  // namespace rnic::workloads
