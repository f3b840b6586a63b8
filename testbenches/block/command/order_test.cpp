// SPDX-License-Identifier: Apache-2.0
// The command block beside others that act at the same edge: the order of ticks is nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <systemc>
#include <vector>

#include "model/abi/bar_layout.h"
#include "model/command/command_block.h"
#include "model/command/firmware_port.h"
#include "model/sim/simulation.h"
#include "model/sim/timebase.h"

namespace rnic::command {
namespace {

/// As the endpoint: a store at edge 10, which the command block takes at edge 11; at that edge, where it is asked for,
/// a function-level reset; a read at edge 30.
class host final : public sim::clocked_block {
 public:
  explicit host(sim::clock_domain& core) : clocked_block("host", core), mmio(*this) {
    for (const sim::cycle_t at : {10u, 11u, 30u}) wake_at(at);
  }
  sim::fifo_out<pcie::mmio_write> mmio;
  command_block* registers = nullptr;
  pcie::mmio_write store;
  bool resets_function = false;
  std::uint32_t seen = 0;

 private:
  void tick() override {
    if (now() == 10) mmio.push(store);
    if (now() == 11 && resets_function) registers->function_level_reset(1);
    if (now() == 30) seen = registers->read32(1, 0);
  }
};

/// As a port whose carrier goes at edge 11.
class other final : public sim::clocked_block {
 public:
  other(sim::clock_domain& core, firmware_port& port) : clocked_block("other", core), port_(port) { wake_at(11); }

 private:
  void tick() override {
    if (now() == 11) port_.notices.pulse(register_bus::notice::link, now_ps() + 1);
  }
  firmware_port& port_;
};

class processor final : public firmware_processor_if {
 public:
  explicit processor(sim::clock_domain& clock) : clock_(clock) {}
  void request_done(bool, std::uint32_t) override {}
  void interrupt() override {}
  void reset() override { resets.push_back(clock_.now()); }
  std::vector<sim::cycle_t> resets;

 private:
  sim::clock_domain& clock_;
};

struct outcome {
  std::uint32_t seen = 0;
  std::vector<sim::cycle_t> resets;
};

/// `first`: the blocks beside are ticked before the command block.
outcome run(bool first, std::uint16_t function, std::uint64_t offset, std::uint32_t value, bool flr, bool link) {
  const sim::simulation kernel;
  sim::timebase base;
  sim::clock_domain core("core", base, {2000, 1, 0}), firmware_clock("firmware", base, {2000, 1, 1000});
  register_bus::cr_bus bus;
  firmware_dma channel("firmware_dma", core);
  firmware_port port("firmware_port", firmware_clock, {}, bus, channel);
  processor cpu(firmware_clock);
  port.bind_processor(cpu);
  std::unique_ptr<host> h;
  std::unique_ptr<other> o;
  const auto beside = [&] {
    h = std::make_unique<host>(core);
    if (link) o = std::make_unique<other>(core, port);
  };
  if (first) beside();
  command_block front("command", core, {});
  if (!first) beside();
  sim::fifo<pcie::mmio_write> writes("writes", core, 2);
  h->mmio.bind(writes);
  front.mmio.bind(writes);
  front.bind_firmware(port.notices);
  h->registers = &front;
  h->resets_function = flr;
  h->store.function = function;
  h->store.offset = offset;
  h->store.length = 4;
  abi::store32(h->store.data.data(), 0, value);
  sc_core::sc_start(sc_core::sc_time(100, sc_core::SC_NS));
  return {h->seen, cpu.resets};
}

/// What the function has written before its reset is gone with it.
TEST(CommandLaws, FunctionLevelResetBesideAStoreOfTheFunction) {
  for (const bool first : {false, true})
    EXPECT_EQ(run(first, 1, abi::comm::slave_write, 0x12345, true, false).seen, 0u);
}

TEST(CommandLaws, ResetBesideANoticeOfAnotherBlock) {
  const outcome one = run(false, 0, abi::bar0::reset, 1, false, true),
                two = run(true, 0, abi::bar0::reset, 1, false, true);
  ASSERT_EQ(one.resets.size(), 1u);
  EXPECT_EQ(one.resets, two.resets);
}

}  // namespace
}  // namespace rnic::command
