// SPDX-License-Identifier: Apache-2.0
// The adapter as a module of sockets: what must be bound, and several systems one after the other.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <systemc>

#include "firmware/bus/network_card.h"
#include "host_driver/hosts/two_nodes.h"
#include "model/host/root_complex_socket.h"
#include "model/sim/simulation.h"
#include "testbenches/bench/child.h"
#include "testbenches/bench/stream.h"

namespace rnic::system_test {
namespace {

struct common {
  sim::timebase base;
  sim::span_recorder spans;
  sim::statistics statistics;
  payload::frame_pool frames;
  payload::tlp_pool packets;
  adapter::environment env{base, spans, statistics, frames, packets};
};

/// An adapter in a slot.
struct host_of : common {
  explicit host_of(const std::string& name)
      : clock(name + "_clock", base, {1000, 1, 0}),
        root(name + "_root", clock, {}, memory, packets, spans, statistics),
        slot((name + "_slot").c_str(), root),
        card((name + "_card").c_str(), env, adapter::profile("connectx3pro_40g"), 1) {}
  sim::clock_domain clock;
  host::host_memory memory;
  host::root_complex root;
  host::root_complex_socket slot;
  firmware::network_card card;
};

std::string error_of_elaboration() {
  try {
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  } catch (const sim::config_error& e) {
    return e.what();
  }
  return "";
}

TEST(Elaboration, AnUnboundSlotIsNamed) {
  common c;
  firmware::network_card a("a", c.env, adapter::profile("connectx3pro_40g"), 1);
  firmware::network_card b("b", c.env, adapter::profile("connectx3pro_40g"), 2);
  a.port_socket(0).bind(b.port_socket(0));
  EXPECT_EQ(error_of_elaboration(), "a.adapter.pcie_socket: not bound");
}

TEST(Elaboration, AnAdapterWithoutACableIsNamed) {
  host_of h("h");
  h.slot.socket.bind(h.card.pcie_socket());
  EXPECT_EQ(error_of_elaboration(), "h_card.adapter.port1_socket_transmit: not bound, no port has a cable");
}

TEST(Elaboration, TheFirstPortNeedsNoCable) {
  host_of h("h"), other("o");
  for (host_of* const x : {&h, &other}) x->slot.socket.bind(x->card.pcie_socket());
  h.card.port_socket(1).bind(other.card.port_socket(1));
  EXPECT_EQ(error_of_elaboration(), "");
}

TEST(Elaboration, HalfACableIsNamed) {
  host_of h("h");
  h.slot.socket.bind(h.card.pcie_socket());
  h.card.port_socket(0).bind(h.card.port_socket(1));  // a loop
  host_of other("o");
  other.slot.socket.bind(other.card.pcie_socket());
  other.card.port_socket(0).transmit.bind(other.card.port_socket(1).receive);
  EXPECT_EQ(error_of_elaboration(), "o_card.adapter.port1_socket_receive: not bound, but port1_socket_transmit is");
}

TEST(Elaboration, ASecondPortNeedsNoCable) {
  host_of h("h"), other("o");
  for (host_of* const x : {&h, &other}) x->slot.socket.bind(x->card.pcie_socket());
  h.card.port_socket(0).bind(other.card.port_socket(0));
  EXPECT_EQ(error_of_elaboration(), "");
}

// ---------------------------------------------------------------- one system after the other

struct outcome {
  std::uint64_t end_ps = 0, packets = 0, completions = 0, ticks = 0;
  bool operator==(const outcome& o) const {
    return end_ps == o.end_ps && packets == o.packets && completions == o.completions && ticks == o.ticks;
  }
};

outcome run_system(unsigned which) {
  hosts::two_nodes_config c;
  c.node = hosts::make_node_config(which == 1 ? "connectx5_100g" : "connectx3pro_40g");
  c.node.tlm_sockets = which == 2;
  hosts::two_nodes system(c);
  bench::stream_config config;
  config.largest = 4096 << which;
  bench::stream flow(system, system.a(), system.b(), {}, config);
  const auto host = [&](hosts::endpoint& e, unsigned number) {
    hosts::set_address(e, {}, number);
    system.meet();
    flow.set_up(e);
    const bench::stream::work work{number == 1 ? &flow : nullptr, number == 1 ? nullptr : &flow, config.largest, 50};
    bench::stream::prepare(work);
    system.meet();
    bench::stream::run_host(e, work);
    system.meet();
  };
  system.run([&] { host(system.a(), 1); }, [&] { host(system.b(), 2); });
  flow.check_content(config.largest);
  return {system.now_ps(), system.statistics().value("a.adapter.requester.packets"),
          system.statistics().value("a.adapter.requester.completions"), system.node_b().nic().clock().ticks()};
}

TEST(Simulations, OneAfterTheOtherAreAsEachInItsProcess) {
  outcome alone[3], in_sequence[3];
  for (unsigned i = 0; i < 3; ++i) alone[i] = bench::in_child([i] { return run_system(i); });
  for (unsigned i = 0; i < 3; ++i) {
    const sim::simulation kernel;
    EXPECT_EQ(sc_core::sc_time_stamp(), sc_core::SC_ZERO_TIME);
    EXPECT_TRUE(sc_core::sc_get_top_level_objects().empty());
    in_sequence[i] = run_system(i);
  }
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_GT(alone[i].packets, 50U);
    EXPECT_TRUE(alone[i] == in_sequence[i])
        << i << ": " << alone[i].end_ps << " ps alone, " << in_sequence[i].end_ps << " ps in sequence";
  }
  EXPECT_FALSE(alone[0] == alone[1]);
  EXPECT_EQ(sc_core::sc_report_handler::get_count(sc_core::SC_WARNING), 0);
}

TEST(Simulations, ASecondAtATimeIsRefused) {
  const sim::simulation kernel;
  EXPECT_THROW(sim::simulation(), sim::config_error);
}

TEST(Simulations, AFailedElaborationDoesNotSpoilTheNext) {
  {
    const sim::simulation kernel;
    host_of h("h");
    h.slot.socket.bind(h.card.pcie_socket());
    EXPECT_NE(error_of_elaboration(), "");
  }
  const sim::simulation kernel;
  EXPECT_GT(run_system(0).packets, 50U);
}

}  // namespace
}  // namespace rnic::system_test
