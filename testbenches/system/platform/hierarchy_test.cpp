// SPDX-License-Identifier: Apache-2.0
// The adapter in SystemC's hierarchy: everything has its place and its name, and is found by it.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <systemc>
#include <vector>

#include "host_driver/hosts/two_nodes.h"
#include "testbenches/bench/stream.h"

namespace rnic::system_test {
namespace {

hosts::two_nodes_config default_system() {
  hosts::two_nodes_config c;
  c.node = hosts::make_node_config("connectx3pro_40g");
  return c;
}

/// All that is below an object, itself first.
void walk(sc_core::sc_object& from, std::vector<sc_core::sc_object*>& to) {
  to.push_back(&from);
  for (sc_core::sc_object* const child : from.get_child_objects()) walk(*child, to);
}
std::vector<sc_core::sc_object*> everything() {
  std::vector<sc_core::sc_object*> all;
  for (sc_core::sc_object* const top : sc_core::sc_get_top_level_objects()) walk(*top, all);
  return all;
}

std::map<std::string, unsigned> kinds_below(const char* name) {
  std::map<std::string, unsigned> kinds;
  sc_core::sc_object* const from = sc_core::sc_find_object(name);
  if (from == nullptr) return kinds;
  std::vector<sc_core::sc_object*> all;
  walk(*from, all);
  for (const sc_core::sc_object* const o : all) ++kinds[o->kind()];
  return kinds;
}

/// The warnings of the kernel: a name that is taken or not allowed.
unsigned warnings() { return static_cast<unsigned>(sc_core::sc_report_handler::get_count(sc_core::SC_WARNING)); }

TEST(Hierarchy, BlocksAreFoundByTheNamesOfTheirStatistics) {
  const hosts::two_nodes system(default_system());
  for (const char* const host : {"a.adapter", "b.adapter"}) {
    auto* const adapter = dynamic_cast<adapter::adapter*>(sc_core::sc_find_object(host));
    ASSERT_NE(adapter, nullptr) << host;
    for (const char* const block :
         {"atomic_unit", "command",         "firmware_dma",   "firmware_port",    "pcie",          "translation",
          "doorbell",    "scheduler",       "requester",      "gather",           "scatter",       "responder",
          "multicast",   "answer_transmit", "read_generator", "descriptor_fetch", "receive_fetch", "steering",
          "completion",  "icrc_insert",     "icrc_check",     "parser1",          "parser2",       "port1",
          "port2",       "cnp_sender",      "ack_timers"}) {
      const std::string name = std::string(host) + "." + block;
      sc_core::sc_object* const found = sc_core::sc_find_object(name.c_str());
      auto* const as_block = dynamic_cast<sim::clocked_block*>(found);
      ASSERT_NE(as_block, nullptr) << name;
      EXPECT_EQ(as_block->name(), name);
      EXPECT_EQ(found->get_parent_object(), adapter) << name;
    }
    EXPECT_EQ(sc_core::sc_find_object((std::string(host) + ".requester").c_str()), &adapter->requester());
  }
  EXPECT_EQ(sc_core::sc_find_object("a.adapter.egress"), nullptr);
}

TEST(Hierarchy, EveryObjectHasANameOfItsOwnBelowItsParent) {
  const unsigned before = warnings();
  hosts::two_nodes_config config = default_system();
  config.faults = fabric::parse_fault_plan(
      "[[event]]\nframes_of = \"roce\"\npart = \"fcs\"\nevery = 13\ntype = \"corrupt\"\n", "plan");
  const hosts::two_nodes system(config);
  EXPECT_EQ(warnings(), before);
  std::set<std::string> names;
  for (const sc_core::sc_object* const o : everything()) {
    EXPECT_TRUE(names.insert(o->name()).second) << o->name();
    const sc_core::sc_object* const parent = o->get_parent_object();
    const std::string expected = parent == nullptr ? o->basename() : std::string(parent->name()) + "." + o->basename();
    EXPECT_EQ(o->name(), expected);
    EXPECT_EQ(sc_core::sc_find_object(o->name()), o);
  }
  EXPECT_TRUE(names.count("cable.faults") == 1);
}

TEST(Hierarchy, BlocksChannelsAndClocksAreAllThere) {
  const hosts::two_nodes system(default_system());
  const std::map<std::string, unsigned> kinds = kinds_below("a.adapter");
  EXPECT_EQ(kinds.at("clocked_block"), 29U);
  EXPECT_EQ(kinds.at("clock_domain"), 2U);
  // READ engine, congestion, losses, interrupts, scatter, gather, answers, descriptor fetch, READs, receive fetch,
  // atomics, CNPs, timers, CNMs with their notices
  const unsigned descriptors = 12 + 8 + 1 + 2 + 1 + 2 + 6 + 6 + 2 + 2 + 2 + 2 + 2 + 2 + 2 * 2;
  const unsigned frames = (2 + 2 * 3) + (2 * 2 + 2) + (1 + 2) + 2 + 2 * 3;  // and multicast, and what has left a port
  const unsigned memory = 7 * 2 + 20 * 2 + 2 * 2 + 3 * 2;  // translations, DMA, keys, who holds translations
  EXPECT_EQ(kinds.at("fifo"), descriptors + frames + memory);
  EXPECT_EQ(kinds.at("timed_inbox"), 2 * 3U + 1 + 1 + 1);  // ports, PCIe, firmware's port, firmware's DMA
  EXPECT_EQ(kinds.at("interrupt_lines"), 1U);
  for (const char* const name :
       {"a.adapter.clock", "a.adapter.firmware_clock", "a.uncore", "a.root_complex.completions",
        "a.adapter.port1.from_line", "a.adapter.doorbell_to_scheduler_sends",
        "a.adapter.requester_contexts_to_pcie_dma_requests", "a.adapter.port2_to_parser2_frames",
        "a.adapter.responder_to_read_generator_commands", "b.adapter.answer_transmit_to_icrc_insert_frames",
        "a.adapter.read_engine.turns"})
    EXPECT_NE(sc_core::sc_find_object(name), nullptr) << name;
}

TEST(Hierarchy, AReadEngineOfEachHalfWhereTheyShareNone) {
  hosts::two_nodes_config config = default_system();
  config.node.adapter.shared_read_engine = false;
  const hosts::two_nodes system(config);
  EXPECT_EQ(kinds_below("a.adapter").at("clocked_block"), 30U);
  EXPECT_EQ(sc_core::sc_find_object("a.adapter.read_engine"), nullptr);
  for (const char* const name :
       {"a.adapter.requester_read_engine.turns", "b.adapter.responder_read_engine.turns",
        "a.adapter.requester_to_requester_read_engine_requests", "b.adapter.responder_read_engine_to_responder_grants"})
    EXPECT_NE(sc_core::sc_find_object(name), nullptr) << name;
}

TEST(Hierarchy, ANameLeadsToStatisticsAndParameters) {
  hosts::two_nodes_config config = default_system();
  sim::parameter_set parameters;
  hosts::announce(parameters, config.node);
  const hosts::two_nodes system(config);
  hosts::two_nodes& running = const_cast<hosts::two_nodes&>(system);
  const auto counters = running.statistics().of("a.adapter.requester");
  ASSERT_FALSE(counters.empty());
  EXPECT_EQ(counters.front().first, "a.adapter.requester.packets");
  for (const auto& [name, counter] : counters) EXPECT_EQ(name.compare(0, 20, "a.adapter.requester."), 0) << name;
  EXPECT_TRUE(running.statistics().of("a.adapter.request").empty());

  unsigned with_parameters = 0;
  for (const sc_core::sc_object* const o : everything()) {
    const auto* const path = dynamic_cast<const sc_core::sc_attribute<std::string>*>(o->get_attribute("parameters"));
    if (path == nullptr) continue;
    ++with_parameters;
    EXPECT_FALSE(parameters.of(path->value).empty()) << o->name();
  }
  EXPECT_EQ(with_parameters, 2 * (1 + 28U));  // all blocks but firmware's DMA have some, and the adapter itself
  const sc_core::sc_object* const requester = sc_core::sc_find_object("b.adapter.requester");
  const auto& path = dynamic_cast<const sc_core::sc_attribute<std::string>&>(*requester->get_attribute("parameters"));
  EXPECT_EQ(parameters.of(path.value).front()->path, "adapter.requester.context_ports");
}

TEST(Hierarchy, ABlockHasNoProcess) {
  const hosts::two_nodes system(default_system());
  for (const char* const adapter : {"a.adapter", "b.adapter"})
    for (const char* const process : {"sc_method_process", "sc_thread_process"})
      EXPECT_EQ(kinds_below(adapter).count(process), 0U);
}

/// A platform of the user's own, in which the adapters are somewhere below.
struct chassis : sc_core::sc_module {
  chassis(const sc_core::sc_module_name& name, const adapter::environment& env, const hosts::node_config& config)
      : sc_core::sc_module(name), left("left", env, config, 1), right("right", env, config, 2) {}
  hosts::node left, right;
};

TEST(Hierarchy, AnAdapterMayBeAnywhereBelow) {
  sim::timebase base;
  sim::span_recorder spans;
  sim::statistics statistics;
  payload::frame_pool frames;
  payload::tlp_pool packets;
  const unsigned before = warnings();
  chassis rack("rack", {base, spans, statistics, frames, packets}, hosts::make_node_config("connectx5_100g"));
  EXPECT_EQ(warnings(), before);
  EXPECT_EQ(sc_core::sc_find_object("rack.right.adapter.port1"), &rack.right.nic().port(0));
  EXPECT_FALSE(statistics.of("rack.left.adapter.requester").empty());
}

}  // namespace
}  // namespace rnic::system_test
