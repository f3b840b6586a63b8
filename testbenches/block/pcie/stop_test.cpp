// SPDX-License-Identifier: Apache-2.0
// A reset between two edges, when nothing was ticked for long: what the DMA engine refuses is answered as in a tick of
// the last edge, whether blocks sleep or not.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <systemc>
#include <utility>

#include "model/pcie/endpoint.h"
#include "model/sim/clock_domain.h"
#include "model/sim/simulation.h"
#include "model/sim/timebase.h"

namespace rnic::pcie {
namespace {

using sim::cycle_t;

/// Asks at its times, and takes answers from one on.
struct client : sim::clocked_block {
  client(const std::string& name, sim::clock_domain& d) : clocked_block(name, d) {}
  dma_port port{*this};
  cycle_t takes_from = 0;
  std::deque<std::pair<cycle_t, dma_request>> todo;
  std::string seen;

  void ask(cycle_t at, const dma_request& r) {
    todo.emplace_back(at, r);
    wake_at(at);
  }

 private:
  void tick() override {
    if (!todo.empty() && todo.front().first <= now() && port.request.claim()) {
      port.request.push(todo.front().second);
      todo.pop_front();
    }
    if (now() < takes_from || !port.response.can_pop()) return;
    const dma_response a = port.response.pop();
    seen += name() + " " + std::to_string(a.tag) + (a.status == dma_status::ok ? " ok" : " refused") + " at " +
            std::to_string(now()) + ", ";
  }
};

struct no_registers : register_file_if {
  std::uint32_t read32(std::uint16_t, std::uint64_t) override { return 0; }
};

/// Answers reads at 900 ns.
struct root : tlp_link_if {
  endpoint* to = nullptr;
  payload::tlp_pool pool;
  void deliver(payload::tlp_ptr p, sim::time_ps) override {
    if (p->type != payload::tlp_type::mem_read) return;
    payload::tlp_ptr t = pool.get();
    t->type = payload::tlp_type::completion;
    t->tag = p->tag;
    t->length = t->byte_count = p->length;
    to->deliver(std::move(t), 900'000);
  }
  void credit(const credit_amount&, sim::time_ps) override {}
};

enum class scene {
  write_without_credit,  ///< that is to be answered; reset long after the last tick
  read_filled_in,        ///< up to the edge in front of the reset; another client's waits for a credit
  read_of_the_same       ///< the same, of one client with room for one answer
};

/// What was answered when, and for how long channels and clients were full.
std::string reset_in(scene what, bool always) {
  const sim::simulation kernel;
  sim::timebase base{sim::timebase::options(always)};
  sim::clock_domain core{"core", base, {1000, 1, 0}};
  sim::statistics stats;
  sim::span_recorder spans;
  root host;
  no_registers none;
  endpoint_config c;
  c.core.interface_bytes = 16;
  c.dma.reads_per_client = what == scene::write_without_credit ? 1 : 4;
  c.dma.fill_bytes_per_cycle = 4;
  endpoint dut("pcie", core, c, 2, none, none, host.pool, spans, stats);
  host.to = &dut;
  dut.connect(host);
  client a("a", core), b("b", core);
  sim::fifo<dma_request> asks_a{"asks_a", core, 2}, asks_b{"asks_b", core, 2};
  sim::fifo<dma_response> answers_a{"answers_a", core, 1}, answers_b{"answers_b", core, 1};
  sim::fifo<mmio_write> commands{"commands", core, 2}, doorbells{"doorbells", core, 2};
  a.port.request.bind(asks_a);
  a.port.response.bind(answers_a);
  b.port.request.bind(asks_b);
  b.port.response.bind(answers_b);
  dut.dma().client(0).request.bind(asks_a);
  dut.dma().client(0).response.bind(answers_a);
  dut.dma().client(1).request.bind(asks_b);
  dut.dma().client(1).response.bind(answers_b);
  dut.command_out.bind(commands);
  dut.doorbell_out.bind(doorbells);
  dut.credit({credit_class::non_posted, 1, 10}, 0);  // one read, and no write
  dut.credit({credit_class::completion, infinite_credits, infinite_credits}, 0);
  payload::tlp_ptr master = host.pool.get();
  master->type = payload::tlp_type::cfg_write;
  master->address = 4;
  master->length = 2;
  master->data[0] = 4;
  master->data[1] = 0;
  master->enable_bytes();
  dut.deliver(std::move(master), 5'000);
  std::array<std::uint8_t, 512> memory{};
  const auto run_to = [](std::uint64_t ps) {
    sc_core::sc_start(sc_core::sc_time::from_value(ps) - sc_core::sc_time_stamp());
  };
  dma_request r;
  r.tag = 1;
  if (what == scene::write_without_credit) {
    r.op = dma_request::kind::write;
    r.notify = true;
    r.length = 8;
    a.ask(50, r);
    a.takes_from = 110;
    a.wake_at(110);
    run_to(80'500);
  } else {
    r.length = 256;
    r.destination = memory.data();
    a.ask(50, r);
    r.length = 8;
    r.tag = 2;
    r.destination = memory.data() + 256;
    (what == scene::read_filled_in ? b : a).ask(60, r);
    run_to(964'500);  // 64 cycles behind 900 ns
  }
  dut.device_reset();
  run_to(2'000'500);
  return a.seen + b.seen + std::to_string(dut.dma().clients().full_cycles(0)) + " " +
         std::to_string(answers_a.used().full_cycles);
}

TEST(pcie_stop, a_write_without_credit) {
  EXPECT_EQ(reset_in(scene::write_without_credit, true), "a 1 refused at 110, 29 30");
  EXPECT_EQ(reset_in(scene::write_without_credit, false), reset_in(scene::write_without_credit, true));
}
TEST(pcie_stop, a_read_of_another_client_while_one_is_filled_in) {
  EXPECT_NE(reset_in(scene::read_filled_in, true).find("b 2 refused at 966"), std::string::npos);
  EXPECT_EQ(reset_in(scene::read_filled_in, false), reset_in(scene::read_filled_in, true));
}
TEST(pcie_stop, a_second_read_of_a_client_with_room_for_one_answer) {
  EXPECT_NE(reset_in(scene::read_of_the_same, true).find("at 967"), std::string::npos);
  EXPECT_EQ(reset_in(scene::read_of_the_same, false), reset_in(scene::read_of_the_same, true));
}

}  // namespace
}  // namespace rnic::pcie
