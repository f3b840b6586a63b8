// SPDX-License-Identifier: Apache-2.0
// Blocks of a user's own in the places of the adapter's: those written from the data sheets of the model's are the
// model's to the cycle, and what cannot be put in is refused by a sentence.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "host_driver/hosts/two_nodes.h"
#include "model/fabric/fault_plan.h"
#include "model/sim/simulation.h"
#include "testbenches/bench/soak.h"
#include "testbenches/system/own_blocks/own_answers.h"
#include "testbenches/system/own_blocks/own_atomic_unit.h"
#include "testbenches/system/own_blocks/own_scheduler.h"

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

/// Verbs and sizes of all kinds, over a cable that loses and repeats, many queue pairs and few places for everything.
outcome soak(const adapter::own_blocks& blocks, bool narrow) {
  const sim::simulation kernel;
  hosts::two_nodes_config config;
  config.node = hosts::make_node_config("connectx3pro_40g");
  config.node.blocks = blocks;
  config.faults.rules.push_back(fabric::rate_rule(fabric::fault_action::drop, 2));
  config.faults.rules.push_back(fabric::rate_rule(fabric::fault_action::duplicate, 1));
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
  bench::soak_config load;
  load.messages = 1500;
  load.qps = narrow ? 24 : 7;
  load.largest = 6000;
  hosts::two_nodes system(config);
  bench::soak run(system, connection, load);
  system.run([&] { run.program_a(); }, [&] { run.program_b(); });
  outcome o;
  for (const auto& [name, counter] : system.statistics().all()) o.counters[name] = *counter;
  o.elapsed = run.result().elapsed;
  o.clean = run.result().clean();
  return o;
}

void expect_the_models(const adapter::own_blocks& blocks, const std::string& counter) {
  for (const bool narrow : {false, true}) {
    const outcome model = soak({}, narrow), own = soak(blocks, narrow);
    EXPECT_TRUE(model.clean && own.clean);
    EXPECT_EQ(model.elapsed, own.elapsed);
    EXPECT_GT(own.counters.at("a.adapter." + counter), 100U);
    EXPECT_GT(own.counters.at("b.adapter." + counter), 100U);
    for (const auto& [name, value] : own.counters) EXPECT_EQ(model.counters.at(name), value) << name;
  }
}

TEST(OwnBlocks, Scheduler) { expect_the_models({{"scheduler", make<own_scheduler>}}, "scheduler.grants"); }
TEST(OwnBlocks, AtomicUnit) { expect_the_models({{"atomic_unit", make<own_atomic_unit>}}, "atomic_unit.executed"); }
TEST(OwnBlocks, AnswerTransmit) {
  expect_the_models({{"answer_transmit", make<own_answers>}}, "answer_transmit.acknowledgements");
}
TEST(OwnBlocks, AllOfThem) {
  expect_the_models({{"scheduler", make<own_scheduler>},
                     {"atomic_unit", make<own_atomic_unit>},
                     {"answer_transmit", make<own_answers>}},
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

struct faulty final : sim::clocked_block {
  explicit faulty(adapter::block_place& place) : clocked_block(place.name() + ".own", place.clock()) {}
  void tick() override {}
  sim::fifo_in<scheduler::send_doorbell> doorbells{*this};
  sim::fifo_in<scheduler::report> reports{*this};
  sim::fifo_out<scheduler::grant> grants{*this};
};

TEST(OwnBlocks, WhatCannotBePutIn) {
  const auto with = [](auto bind) {
    return refusal_of({{"scheduler", [bind](adapter::block_place& place) {
                          auto block = std::make_unique<faulty>(place);
                          bind(place, *block);
                          return block;
                        }}});
  };
  const std::string all = with([](adapter::block_place& p, faulty& b) {
    p.bind("doorbell_to_scheduler_sends", b.doorbells);
    p.bind("requester_to_scheduler_reports", b.reports);
    p.bind("scheduler_to_requester_grants", b.grants);
  });
  EXPECT_EQ(all, "a.adapter.scheduler: own block: cannot be reset (reset_target_if)");
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
