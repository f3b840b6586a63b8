// SPDX-License-Identifier: Apache-2.0
// Blocks of a user's own in the places of the adapter's: those written from the data sheets of the model's are the
// model's to the cycle, and what cannot be put in is refused by a sentence.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "host_driver/hosts/network.h"
#include "host_driver/hosts/two_nodes.h"
#include "host_driver/workloads/workload_run.h"
#include "model/fabric/fault_plan.h"
#include "model/sim/simulation.h"
#include "testbenches/bench/soak.h"
#include "testbenches/system/ethernet/station.h"
#include "testbenches/system/own_blocks/own_ack_timers.h"
#include "testbenches/system/own_blocks/own_answers.h"
#include "testbenches/system/own_blocks/own_atomic_unit.h"
#include "testbenches/system/own_blocks/own_descriptor_fetch.h"
#include "testbenches/system/own_blocks/own_doorbell.h"
#include "testbenches/system/own_blocks/own_parser.h"
#include "testbenches/system/own_blocks/own_port.h"
#include "testbenches/system/own_blocks/own_read_engine.h"
#include "testbenches/system/own_blocks/own_receive_fetch.h"
#include "testbenches/system/own_blocks/own_scheduler.h"
#include "testbenches/system/own_blocks/second_instances.h"

namespace rnic::system_test {
namespace {

template <class Block>
std::unique_ptr<sim::clocked_block> make(adapter::block_place& place) {
  return std::make_unique<Block>(place);
}

struct outcome {
  std::map<std::string, std::uint64_t> counters;
  sim::time_ps elapsed = 0;
  bool clean = false;
};

/// Mask of soak_config::verbs.
std::uint32_t reads_and_writes() {
  std::uint32_t mask = 0;
  const auto& all = bench::soak_verbs();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].opcode == IBV_WR_RDMA_READ || all[i].opcode == IBV_WR_RDMA_WRITE) mask |= 1u << i;
  return mask;
}

/// Verbs and sizes of all kinds, over cables of both ports that lose and repeat, of three priorities; narrow: many
/// queue pairs and few places for everything; answers: READs and WRITEs, of which more come than the datapath takes;
/// fetches: many queue pairs that take turns, and few places for what their descriptors are fetched with, nothing lost;
/// by_sockets: the wide one, with the slot and the ports as TLM sockets.
enum class load { wide, narrow, answers, fetches, by_sockets };
outcome soak(const adapter::own_blocks& blocks, load what) {
  const bool narrow = what == load::narrow;
  const sim::simulation kernel;
  hosts::two_nodes_config config;
  config.node = hosts::make_node_config("connectx3pro_40g");
  config.node.blocks = blocks;
  config.node.tlm_sockets = what == load::by_sockets;
  config.ports = {1, 2};
  if (what == load::answers) {
    config.node.adapter.datapath_bytes = 4;  // less than the ports could send
    config.node.adapter.channel_depth = 2;
  } else if (what == load::fetches) {
    config.node.adapter.descriptor_depth = 1;
    config.node.adapter.requester.turn_wqes = 1;
    config.node.adapter.requester.timers.entries = 2;
    config.node.adapter.responder.receive_fetches = 2;
    config.node.adapter.doorbell.bf_gathers = 1;
    config.node.driver.blue_flame = host_driver::config::blue_flame_rule::all;
  } else {
    config.faults.rules.push_back(fabric::rate_rule(fabric::fault_action::drop, 2));
    config.faults.rules.push_back(fabric::rate_rule(fabric::fault_action::duplicate, 1));
  }
  if (narrow) {
    config.node.adapter.responder.answer.waiting = 1;
    config.node.adapter.responder.atomics.waiting = 2;
    config.node.adapter.responder.atomics.in_flight = 3;
    config.node.adapter.responder.atomics.lock_buckets = 16;
    config.node.adapter.scheduler.grants = config.node.adapter.requester.processing_units = 2;
    config.node.adapter.scheduler.descriptors = 2;
    config.node.adapter.port.egress_frames = 1;
    config.node.adapter.gid_source.source_ports = 1;
  }
  hosts::connection_options connection;
  connection.ack_timeout = 6;
  connection.rnr_timer = 1;
  bench::soak_config messages;
  messages.messages = 1500;
  messages.qps = narrow || what == load::fetches ? 24 : 7;
  messages.largest = 6000;
  messages.priorities = 3;
  if (what == load::answers) {
    messages.verbs = reads_and_writes();
    messages.largest = 200'000;
    messages.depth = 4;
  }
  hosts::two_nodes system(config);
  bench::soak run(system, connection, messages);
  system.run([&] { run.program_a(); }, [&] { run.program_b(); });
  outcome o;
  for (const auto& [name, counter] : system.statistics().all()) o.counters[name] = *counter;
  o.elapsed = run.result().elapsed;
  o.clean = run.result().clean();
  return o;
}

/// Four hosts at a switch, which are served apart: what one does reaches another as early as it can, and no earlier.
outcome two_pairs(const adapter::own_blocks& blocks) {
  const sim::simulation kernel;
  hosts::network_config config;
  config.node = hosts::make_node_config("connectx3pro_40g");
  config.node.blocks = blocks;
  config.shape = fabric::make_star(4, {});
  hosts::network system(config);
  workloads::workload_config w;
  w.name = "writes";
  w.from = {0};
  w.to = {2};
  w.sizes = workloads::message_sizes(3000);
  w.memory.bytes = 1 << 16;
  w.messages = 300;
  workloads::workload_config reads = w;
  reads.name = "reads";
  reads.from = {1};
  reads.to = {3};
  reads.verbs = {{workloads::find_verb("read"), 1}};
  workloads::workload_run run(system, {w, reads}, {}, {}, 1);
  run.run();
  outcome o;
  for (const auto& [name, counter] : system.statistics().all()) o.counters[name] = *counter;
  o.elapsed = run.end();
  o.clean = run.workloads()[0].failure().empty() && run.workloads()[1].failure().empty();
  return o;
}

/// Plain frames, one at a time and then for many and for nobody. Times of arrival are beside the counters.
outcome exchange_frames(const adapter::own_blocks& blocks) {
  const sim::simulation kernel;
  hosts::two_nodes_config config = station_system();
  config.node.blocks = blocks;
  hosts::two_nodes system(config);
  outcome o;
  run_stations(system, [&] {
    station a(system.a()), b(system.b()), c(system.b());
    b.steer(frames_destination);
    b.steer(broadcast);
    c.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    b.dev().filter_vlans(1, {100});
    for (station* s : {&b, &c}) s->post_receives(16);
    for (const bytes& f : {frames::udp4, frames::udp4_ctag, frames::arp, frames::tcp6, frames::snap}) {
      a.send(f);
      b.receive();
      b.post_receives(1);
      o.counters["arrival " + std::to_string(o.counters.size())] = system.now_ps();
      a.wait_sent();
    }
    for (const bytes& f :
         {frames::udp4, frames::udp4_ctag, frames::arp, frames::udp4_ctag200, frames::tcp6, frames::snap,
          frames::fragment1, with_destination(frames::udp6, {2, 0, 0, 0, 0x0b, 9}), frames::icmp6})
      a.send(f);
    o.clean = true;
    for (unsigned n = 0; n < 9; ++n) a.wait_sent();
    a.at().bus->spend_ps(20 * station_us);
    for (station* s : {&b, &c})
      for (arrival got = s->poll(); !got.frame.empty(); got = s->poll()) ++o.counters["arrivals"];
    o.elapsed = system.now_ps();
  });
  for (const auto& [name, counter] : system.statistics().all()) o.counters[name] = *counter;
  return o;
}

/// What a second instance counts has the other one's name with ".own" in it.
outcome without_own(outcome o) {
  std::map<std::string, std::uint64_t> named;
  for (const auto& [name, value] : o.counters) {
    std::string plain = name;
    for (const std::string part : {".own.", ".own"}) {
      const std::size_t at = plain.find(part);
      if (at != std::string::npos) plain.erase(at, 4);
    }
    named[plain] = value;
  }
  o.counters = std::move(named);
  return o;
}

void expect_same(const outcome& model, const outcome& own) {
  EXPECT_TRUE(model.clean && own.clean);
  EXPECT_EQ(model.elapsed, own.elapsed);
  EXPECT_EQ(model.counters.size(), own.counters.size());
  for (const auto& [name, value] : model.counters) {
    const auto at = own.counters.find(name);
    if (at == own.counters.end())
      ADD_FAILURE() << name << " is not counted";
    else
      EXPECT_EQ(at->second, value) << name;
  }
}

/// A block of one's own need not count all that the model's does.
void expect_the_same_of_what_is_counted(const outcome& model, const outcome& own) {
  EXPECT_TRUE(model.clean && own.clean);
  EXPECT_EQ(model.elapsed, own.elapsed);
  for (const auto& [name, value] : own.counters) EXPECT_EQ(model.counters.at(name), value) << name;
}

void expect_the_models(const adapter::own_blocks& blocks, const std::string& counter, std::uint64_t least = 100) {
  for (const load what : {load::wide, load::narrow, load::answers, load::fetches}) {
    const outcome model = soak({}, what), own = soak(blocks, what);
    expect_the_same_of_what_is_counted(model, own);
    if (what != load::answers && what != load::fetches) {
      EXPECT_GT(own.counters.at("a.adapter." + counter), least);
      EXPECT_GT(own.counters.at("b.adapter." + counter), least);
    }
  }
}

TEST(OwnBlocks, Scheduler) { expect_the_models({{"scheduler", make<own_scheduler>}}, "scheduler.grants"); }
TEST(OwnBlocks, AtomicUnit) { expect_the_models({{"atomic_unit", make<own_atomic_unit>}}, "atomic_unit.executed"); }
TEST(OwnBlocks, AnswerTransmit) {
  expect_the_models({{"answer_transmit", make<own_answers>}}, "answer_transmit.acknowledgements");
}
TEST(OwnBlocks, Doorbell) { expect_the_models({{"doorbell", make<own_doorbell>}}, "doorbell.sends"); }
TEST(OwnBlocks, AckTimers) { expect_the_models({{"ack_timers", make<own_ack_timers>}}, "ack_timers.expired", 5); }
TEST(OwnBlocks, ReadEngine) {
  expect_the_models({{"read_engine", make<own_read_engine>}}, "read_engine.requester.grants");
}
TEST(OwnBlocks, ReceiveFetch) {
  expect_the_models({{"receive_fetch", make<own_receive_fetch>}}, "receive_fetch.fetches", 50);
}
TEST(OwnBlocks, DescriptorFetch) {
  expect_the_models({{"descriptor_fetch", make<own_descriptor_fetch>}}, "descriptor_fetch.fetches");
}
const adapter::own_blocks own_parsers{{"parser1", make<own_parser>}, {"parser2", make<own_parser>}};
TEST(OwnBlocks, Parser) { expect_the_models(own_parsers, "parser1.roce_frames"); }
const adapter::own_blocks own_ports{{"port1", make<own_port>}, {"port2", make<own_port>}};
TEST(OwnBlocks, Port) { expect_the_models(own_ports, "port1.rx_frames"); }
TEST(OwnBlocks, PortsOfHostsThatAreServedApart) {
  const outcome model = two_pairs({}), own = two_pairs(own_ports);
  expect_the_same_of_what_is_counted(model, own);
  EXPECT_GT(own.counters.at("h3.adapter.port1.rx_frames"), 300U);
}
TEST(OwnBlocks, RimBehindSockets) {
  adapter::own_blocks rim = own_ports;
  rim["pcie"] = make<second_endpoint>;
  const outcome model = soak({}, load::by_sockets), own = without_own(soak(rim, load::by_sockets));
  expect_the_same_of_what_is_counted(model, own);
  EXPECT_GT(own.counters.at("b.adapter.port2.rx_frames"), 100U);
}
TEST(OwnBlocks, ParserOfPlainFrames) {
  const outcome model = exchange_frames({}), own = exchange_frames(own_parsers);
  EXPECT_GT(model.counters.at("b.adapter.parser1.ethernet_frames"), 8U);
  EXPECT_GT(model.counters.at("arrivals"), 5U);
  EXPECT_EQ(model.counters.count("arrival 4"), 1U);
  expect_same(model, own);
}

/// A place has all that its block needs: the model's block made once more runs as the first one does.
TEST(OwnBlocks, SecondInstances) {
  const adapter::own_blocks all{{"command", make<second_command>},
                                {"parser1", make<second_parser>},
                                {"parser2", make<second_parser>},
                                {"pcie", make<second_endpoint>},
                                {"port1", make<second_port>},
                                {"port2", make<second_port>},
                                {"read_generator", make<second_read_generator>},
                                {"requester", make<second_requester>},
                                {"responder", make<second_responder>},
                                {"steering", make<second_steering>},
                                {"translation", make<second_translation>}};
  for (const load what : {load::wide, load::narrow, load::answers})
    expect_same(soak({}, what), without_own(soak(all, what)));
  expect_same(exchange_frames({}), without_own(exchange_frames(all)));
}

TEST(OwnBlocks, AllOfThem) {
  expect_the_models({{"scheduler", make<own_scheduler>},
                     {"doorbell", make<own_doorbell>},
                     {"ack_timers", make<own_ack_timers>},
                     {"read_engine", make<own_read_engine>},
                     {"receive_fetch", make<own_receive_fetch>},
                     {"descriptor_fetch", make<own_descriptor_fetch>},
                     {"atomic_unit", make<own_atomic_unit>},
                     {"answer_transmit", make<own_answers>},
                     {"parser1", make<own_parser>},
                     {"parser2", make<own_parser>},
                     {"port1", make<own_port>},
                     {"port2", make<own_port>}},
                    "scheduler.grants");
}

/// What the adapter says when it is built with these blocks.
std::string refusal_of(const adapter::own_blocks& blocks) {
  const sim::simulation kernel;
  hosts::two_nodes_config config;
  config.node = hosts::make_node_config("connectx3pro_40g");
  config.node.blocks = blocks;
  try {
    const hosts::two_nodes system(config);
  } catch (const sim::config_error& e) {
    return e.what();
  }
  return "";
}

struct faulty : sim::clocked_block {
  explicit faulty(adapter::block_place& place) : clocked_block(place.name() + ".own", place.clock()) {}
  void tick() override {}
  sim::fifo_in<scheduler::send_doorbell> doorbells{*this};
  sim::fifo_in<scheduler::report> reports{*this};
  sim::fifo_out<scheduler::grant> grants{*this};
};
struct faulty_with_registers final : faulty, register_bus::cr_target_if {
  using faulty::faulty;
  std::uint32_t cr_read(std::uint32_t) override { return 0; }
  void cr_write(std::uint32_t, std::uint32_t) override {}
};

TEST(OwnBlocks, WhatCannotBePutIn) {
  const auto with = [](auto bind) {
    return refusal_of({{"scheduler", [bind](adapter::block_place& place) {
                          auto block = std::make_unique<faulty>(place);
                          bind(place, *block);
                          return block;
                        }}});
  };
  const auto bind_all = [](adapter::block_place& p, faulty& b) {
    p.bind("doorbell_to_scheduler_sends", b.doorbells);
    p.bind("requester_to_scheduler_reports", b.reports);
    p.bind("scheduler_to_requester_grants", b.grants);
  };
  EXPECT_EQ(with(bind_all), "a.adapter.scheduler: own block: has no registers (cr_target_if)");
  EXPECT_EQ(refusal_of({{"scheduler",
                         [&](adapter::block_place& place) {
                           auto block = std::make_unique<faulty_with_registers>(place);
                           bind_all(place, *block);
                           return block;
                         }}}),
            "a.adapter.scheduler: own block: cannot be reset (reset_target_if)");
  EXPECT_EQ(with([](adapter::block_place&, faulty&) {}),
            "a.adapter.scheduler: own block: a.adapter.doorbell_to_scheduler_sends is not bound");
  EXPECT_EQ(with([](adapter::block_place& p, faulty& b) { p.bind("doorbell_to_scheduler_sends", b.reports); }),
            "a.adapter.scheduler: own block: a.adapter.doorbell_to_scheduler_sends carries other items than this port");
  EXPECT_EQ(with([](adapter::block_place& p, faulty& b) { p.bind("doorbell_to_completion_arms", b.doorbells); }),
            "a.adapter.scheduler: own block: no channel doorbell_to_completion_arms comes in here, but "
            "doorbell_to_scheduler_sends, requester_to_scheduler_reports");
  EXPECT_EQ(with([](adapter::block_place& p, faulty& b) {
              p.bind("doorbell_to_scheduler_sends", b.doorbells);
              p.bind("doorbell_to_scheduler_sends", b.doorbells);
            }),
            "a.adapter.scheduler: own block: a.adapter.doorbell_to_scheduler_sends is bound twice");
  EXPECT_EQ(refusal_of({{"scheduler", [](adapter::block_place&) { return nullptr; }}}),
            "a.adapter.scheduler: own block: there is none");
  EXPECT_NE(refusal_of({{"shaper", make<own_scheduler>}}).find("a.adapter: no place for a block shaper"),
            std::string::npos);
}

}  // namespace
}  // namespace rnic::system_test
