// SPDX-License-Identifier: Apache-2.0
// The command front end with real firmware behind it: registers, polled and event commands, reset, semaphores.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <systemc>
#include <vector>

#include "firmware/bus/firmware_runner.h"
#include "model/abi/bar_layout.h"
#include "model/abi/command_set.h"
#include "model/abi/device.h"
#include "model/command/command_block.h"
#include "model/command/command_cr.h"
#include "model/command/firmware_port.h"
#include "model/completion/completion_cr.h"
#include "model/mac/mac_cr.h"
#include "model/sim/clock_domain.h"
#include "model/sim/timebase.h"

namespace rnic {
namespace {

constexpr std::uint64_t memory_base = 0x1000'0000;
constexpr unsigned dma_cycles = 50;

/// Host memory behind a DMA engine that takes a fixed time.
class dma_engine : public sim::clocked_block {
 public:
  explicit dma_engine(sim::clock_domain& core)
      : clocked_block("dma", core), request(*this), response(*this), memory(1 << 20) {}
  sim::fifo_in<pcie::dma_request> request;
  sim::fifo_out<pcie::dma_response> response;
  std::vector<std::uint8_t> memory;
  unsigned reads = 0, writes = 0;
  unsigned cycles = dma_cycles;

  std::uint8_t* at(std::uint64_t address) { return memory.data() + (address - memory_base); }

 private:
  void tick() override {
    if (!waiting_.empty() && waiting_.front().due <= now() && response.can_push()) {
      const job j = std::move(waiting_.front());
      waiting_.pop_front();
      response.push({j.request.tag, serve(j.request)});
    }
    if (request.can_pop()) {
      waiting_.push_back({now() + cycles, request.pop()});
    }
    if (!waiting_.empty()) wake_at(std::max(waiting_.front().due, now() + 1));
  }
  pcie::dma_status serve(const pcie::dma_request& r) {
    if (r.address < memory_base || r.address + r.length > memory_base + memory.size())
      return pcie::dma_status::unsupported_request;
    if (r.op == pcie::dma_request::kind::read) {
      ++reads;
      std::memcpy(r.destination, at(r.address), r.length);
    } else {
      ++writes;
      std::memcpy(at(r.address), r.source != nullptr ? r.source : r.bytes.data(), r.length);
    }
    return pcie::dma_status::ok;
  }
  struct job {
    sim::cycle_t due;
    pcie::dma_request request;
  };
  std::deque<job> waiting_;
};

/// Registers that keep what is written, for blocks that are not here; logs writes of one offset.
class plain_registers : public register_bus::cr_target_if {
 public:
  std::uint32_t cr_read(std::uint32_t offset) override { return values[offset]; }
  void cr_write(std::uint32_t offset, std::uint32_t value) override {
    if (offset == completion::cr::event_push) {
      std::array<std::uint32_t, 8> e{};
      for (std::uint32_t i = 0; i < 6; ++i) e[i] = values[completion::cr::event_data + 4 * i];
      e[6] = values[completion::cr::event_kind];
      events.push_back(e);
      return;
    }
    values[offset] = value;
  }
  std::map<std::uint32_t, std::uint32_t> values;
  std::vector<std::array<std::uint32_t, 8>> events;
};

class counting_target : public register_bus::reset_target_if {
 public:
  void device_reset() override { ++resets; }
  unsigned resets = 0;
};

/// What the endpoint does with the registers, at the edges of the core clock.
class host_port : public sim::clocked_block {
 public:
  explicit host_port(sim::clock_domain& core) : clocked_block("host", core), mmio(*this) {}
  sim::fifo_out<pcie::mmio_write> mmio;
  command::command_block* registers = nullptr;
  std::deque<pcie::mmio_write> to_write;
  std::vector<std::pair<sim::cycle_t, std::uint64_t>> to_read;
  std::vector<std::uint32_t> seen;
  void start() { wake_next(); }

 private:
  void tick() override {
    for (const auto& [when, offset] : to_read)
      if (when == now()) seen.push_back(registers->read32(0, offset));
    for (const auto& [when, offset] : to_read)
      if (when > now()) wake_at(when);
    if (!to_write.empty() && mmio.can_push()) {
      mmio.push(to_write.front());
      to_write.pop_front();
      if (!to_write.empty()) wake_next();
    }
  }
};

pcie::mmio_write store(std::uint64_t offset, std::uint32_t value) {
  pcie::mmio_write w;
  w.offset = offset;
  w.length = 4;
  abi::store32(w.data.data(), 0, value);
  return w;
}

struct bench {
  explicit bench(const sim::timebase::options& o = {}) : base(o) {
    writes.emplace("mmio", core, 8);
    requests.emplace("dma_request", core, 2);
    responses.emplace("dma_response", core, 2);
    host.mmio.bind(*writes);
    front.mmio.bind(*writes);
    host.registers = &front;
    channel.dma.request.bind(*requests);
    engine.request.bind(*requests);
    engine.response.bind(*responses);
    channel.dma.response.bind(*responses);
    bus.map(register_bus::cr_base::command, front);
    bus.map(register_bus::cr_base::completion, completion_registers);
    front.bind_firmware(port.notices);
    channel.bind_answers(port.dma_answers);
    port.add_reset_target(target);
    port.add_reset_target(front);
  }
  void write(std::uint64_t offset, std::uint32_t value) {
    host.to_write.push_back(store(offset, value));
    host.start();
  }
  void command(abi::opcode op, std::uint32_t extra, std::uint64_t in, std::uint64_t out, std::uint32_t modifier = 0,
               std::uint16_t token = 0xffff) {
    namespace h = abi::hcr;
    const std::uint64_t b = abi::bar0::hcr;
    write(b + h::in_param_high, static_cast<std::uint32_t>(in >> 32));
    write(b + h::in_param_low, static_cast<std::uint32_t>(in));
    write(b + h::in_modifier, modifier);
    write(b + h::out_param_high, static_cast<std::uint32_t>(out >> 32));
    write(b + h::out_param_low, static_cast<std::uint32_t>(out));
    write(b + h::token, std::uint32_t{token} << 16);
    write(b + h::control, h::go | extra | static_cast<std::uint32_t>(op));
  }
  std::uint32_t control() { return front.read32(0, abi::bar0::hcr + abi::hcr::control); }
  void run_ns(unsigned ns) { sc_core::sc_start(sc_core::sc_time::from_value(std::uint64_t{ns} * 1000)); }

  sim::timebase base;
  sim::clock_domain core{"core", base, sim::clock_period{2000, 1, 0}};
  sim::clock_domain firmware_clock{"firmware", base, sim::clock_period{2000, 1, 1000}};
  std::optional<sim::fifo<pcie::mmio_write>> writes;
  std::optional<sim::fifo<pcie::dma_request>> requests;
  std::optional<sim::fifo<pcie::dma_response>> responses;
  host_port host{core};
  dma_engine engine{core};
  command::command_block front{"command", core, {}};
  register_bus::cr_bus bus;
  command::firmware_dma channel{"firmware_dma", core};
  command::firmware_port port{"firmware_port", firmware_clock, {}, bus, channel};
  plain_registers completion_registers;
  counting_target target;
  firmware::firmware_runner runner{"firmware", port, {}};
};

}  // namespace

TEST(Command, PolledCommandKeepsToggleAndClearsGo) {
  bench b;
  b.command(abi::opcode::query_fw, abi::hcr::toggle, 0, memory_base);
  b.run_ns(60);
  EXPECT_NE(b.control() & abi::hcr::go, 0u) << "still working";
  b.run_ns(20000);
  EXPECT_EQ(b.control(), abi::hcr::toggle | 0x004u);
  EXPECT_EQ(abi::get(b.engine.at(memory_base), abi::query_fw::command_interface), 3);
  EXPECT_EQ(abi::get(b.engine.at(memory_base), abi::query_fw::catas_offset), abi::bar0::catas);
  EXPECT_EQ(b.engine.writes, 1u);

  b.command(abi::opcode::query_dev_cap, 0, 0, memory_base);  // before RUN_FW
  b.run_ns(20000);
  EXPECT_EQ(b.control(), 0x04000003u) << "BAD_SYS_STATE, toggle as written";
}

TEST(Command, ImmediateResultIsInTheRegister) {
  bench b;
  abi::store64(b.engine.at(memory_base), 8, memory_base + 0x10000 + 4);  // 16 pages
  b.command(abi::opcode::map_fa, 0, memory_base, 0, 1);
  b.run_ns(20000);
  EXPECT_EQ(b.control() >> 24, 0u);
  b.command(abi::opcode::run_fw, 0, 0, 0);
  b.run_ns(20000);
  EXPECT_EQ(b.control() >> 24, 0u);
  b.command(abi::opcode::set_icm_size, abi::hcr::toggle, 0x100000000, 0);
  b.run_ns(20000);
  EXPECT_EQ(b.control(), abi::hcr::toggle | 0xffdu);
  EXPECT_EQ(b.front.read32(0, abi::bar0::hcr + abi::hcr::out_param_high), 0u);
  EXPECT_EQ(b.front.read32(0, abi::bar0::hcr + abi::hcr::out_param_low), firmware::firmware_config{}.aux_pages);
}

TEST(Command, MailboxThatCannotBeReachedIsAnInternalError) {
  bench b;
  b.command(abi::opcode::query_fw, 0, 0, 0xdead0000);
  b.run_ns(20000);
  EXPECT_EQ(b.control(), 0x01000004u);
}

TEST(Command, EventCommandsFreeTheRegisterAndCompleteByEvent) {
  bench b;
  for (std::uint16_t i = 0; i < 10; ++i)
    b.command(abi::opcode::nop, abi::hcr::event, 0, 0, 0x1f, static_cast<std::uint16_t>(0x100 + i));
  b.run_ns(400);
  EXPECT_EQ(b.control() & abi::hcr::go, 0u);
  EXPECT_EQ(b.front.stats().commands, 10u);
  EXPECT_LT(b.completion_registers.events.size(), 10u) << "accepted long before they are done";
  b.run_ns(100000);
  ASSERT_EQ(b.completion_registers.events.size(), 10u);
  for (std::uint32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(b.completion_registers.events[i][0], 0x100 + i) << "token";
    EXPECT_EQ(b.completion_registers.events[i][2], 0u) << "status";
    EXPECT_EQ(b.completion_registers.events[i][6], 0x0a00u) << "type";
  }
  EXPECT_EQ(b.front.stats().overrun, 0u);
}

TEST(Command, WithAFullQueueTheNextCommandWaitsInTheRegister) {
  bench b;
  b.command(abi::opcode::query_fw, abi::hcr::event, 0, memory_base, 0, 0xff);  // keeps firmware busy
  for (std::uint16_t i = 0; i < 17; ++i) b.command(abi::opcode::nop, abi::hcr::event, 0, 0, 0, i);
  b.run_ns(300);  // firmware has taken one, 16 wait, one stays
  EXPECT_NE(b.control() & abi::hcr::go, 0u);
  EXPECT_EQ(b.front.stats().commands, 17u);
  EXPECT_EQ(b.front.cr_read(command::cr::status) >> 8, 16u);
  b.run_ns(200000);
  EXPECT_EQ(b.control() & abi::hcr::go, 0u);
  EXPECT_EQ(b.front.stats().commands, 18u);
  EXPECT_EQ(b.completion_registers.events.size(), 18u);
  EXPECT_EQ(b.front.stats().overrun, 0u);
}

TEST(Command, WritesWhileGoIsSetAreDroppedAndCounted) {
  bench b;
  b.command(abi::opcode::query_fw, 0, 0, memory_base);
  b.command(abi::opcode::nop, 0, 0, 0);
  b.run_ns(20000);
  EXPECT_EQ(b.control(), 0x00000004u);
  EXPECT_EQ(b.front.stats().overrun, 7u);
  EXPECT_EQ(b.front.stats().commands, 1u);
}

TEST(Command, UnknownOpcodeIsBadOp) {
  bench b;
  b.command(static_cast<abi::opcode>(0xf05), 0, 0, 0);
  b.run_ns(20000);
  EXPECT_EQ(b.control(), 0x02000f05u);
}

TEST(Command, ResetDropsTheCommandUnderWayAndFirmwareStartsAgain) {
  bench b;
  b.command(abi::opcode::query_fw, abi::hcr::toggle, 0, memory_base);
  b.run_ns(1000);  // firmware is at work
  b.write(abi::bar0::reset, 1);
  b.run_ns(20);
  EXPECT_EQ(b.control(), 0u) << "GO and T are 0 after reset";
  b.run_ns(20000);
  EXPECT_EQ(b.target.resets, 1u);
  EXPECT_EQ(b.control(), 0u) << "nothing completes late";
  b.command(abi::opcode::query_fw, abi::hcr::toggle, 0, memory_base + 4096);
  b.run_ns(20000);
  EXPECT_EQ(b.control(), abi::hcr::toggle | 0x004u);
  EXPECT_EQ(abi::get(b.engine.at(memory_base + 4096), abi::query_fw::major), 2);
}

TEST(Command, ResetDuringDmaIsSurvived) {
  for (const unsigned after : {900u, 940u, 980u, 1020u, 1060u, 1100u}) {
    // One kernel runs one bench: the DMA of the mailbox is hit by one of the resets in a row.
    static std::unique_ptr<bench> b;
    if (!b) b = std::make_unique<bench>();
    b->command(abi::opcode::query_fw, 0, 0, memory_base);
    b->run_ns(after);
    b->write(abi::bar0::reset, 1);
    b->run_ns(10000);
    b->command(abi::opcode::query_fw, abi::hcr::toggle, 0, memory_base);
    b->run_ns(20000);
    EXPECT_EQ(b->control(), abi::hcr::toggle | 0x004u) << after;
    b->write(abi::bar0::reset, 1);
    b->run_ns(10000);
  }
}

/// A mailbox that cannot be reached is refused after 10 us, and a reset comes 5 us before that. The refusal is not that
/// of the first thing that firmware does when it starts again, which waits for it: the ports are switched off.
TEST(Command, AnswerToDmaOfBeforeAResetIsNobodys) {
  bench b;
  plain_registers ports;
  b.bus.map(register_bus::cr_base::mac, ports);
  b.engine.cycles = 5000;
  b.command(abi::opcode::query_fw, 0, 0, 0xdead0000);
  b.run_ns(5000);
  ports.values[mac::cr::port_control] = 1;
  b.write(abi::bar0::reset, 1);
  b.run_ns(4000);
  EXPECT_EQ(ports.values[mac::cr::port_control], 1u) << "memory has not answered";
  b.run_ns(20000);
  EXPECT_EQ(ports.values[mac::cr::port_control], 0u);
}

TEST(Registers, OwnershipIsClaimedByReading) {
  bench b;
  b.host.to_read = {{10, abi::bar0::ownership}, {11, abi::bar0::ownership}, {40, abi::bar0::ownership}};
  b.host.start();
  b.run_ns(30);
  b.write(abi::bar0::reset, 1);  // does not free it
  b.run_ns(30);
  b.run_ns(60);
  ASSERT_EQ(b.host.seen.size(), 3u);
  EXPECT_EQ(b.host.seen, (std::vector<std::uint32_t>{0, 1, 1}));
  b.write(abi::bar0::ownership, 0);
  b.run_ns(20);
  EXPECT_EQ(b.front.read32(0, abi::bar0::ownership), 0u);
  b.run_ns(20);
  EXPECT_EQ(b.front.read32(0, abi::bar0::ownership), 1u);
  const std::uint64_t resets = b.front.stats().resets;
  b.front.function_level_reset(0);
  b.run_ns(20);
  EXPECT_EQ(b.front.stats().resets, resets + 1) << "it is a reset of everything else, too";
  EXPECT_EQ(b.front.read32(0, abi::bar0::ownership), 0u);
}

TEST(Registers, FlashSemaphoreIsFreedByReset) {
  bench b;
  b.run_ns(20);
  EXPECT_EQ(b.front.read32(0, abi::bar0::flash_semaphore), 0u);
  b.run_ns(20);
  EXPECT_EQ(b.front.read32(0, abi::bar0::flash_semaphore), 1u);
  b.write(abi::bar0::reset, 1);
  b.run_ns(40);
  EXPECT_EQ(b.front.read32(0, abi::bar0::flash_semaphore), 0u);
}

TEST(Registers, EightByteWritesAreTwoWords) {
  bench b;
  pcie::mmio_write w;
  w.offset = abi::bar0::hcr + abi::hcr::in_param_high;
  w.length = 8;
  abi::store64(w.data.data(), 0, 0x1122334455667788);
  b.host.to_write.push_back(w);
  b.host.start();
  b.run_ns(40);
  EXPECT_EQ(b.front.read32(0, abi::bar0::hcr), 0x11223344u);
  EXPECT_EQ(b.front.read32(0, abi::bar0::hcr + 4), 0x55667788u);
}

TEST(Registers, BadAccessesAreCounted) {
  bench b;
  pcie::mmio_write w = store(abi::bar0::reset, 1);
  w.function = 3;
  b.host.to_write.push_back(w);
  w = store(abi::bar0::reset + 2, 1);
  b.host.to_write.push_back(w);
  w = store(0x40, 1);
  b.host.to_write.push_back(w);
  w = store(abi::bar0::hcr, 1);
  w.length = 16;
  b.host.to_write.push_back(w);
  b.host.start();
  b.run_ns(100);
  EXPECT_EQ(b.front.stats().bad_access, 4u);
  EXPECT_EQ(b.target.resets, 0u);
  EXPECT_EQ(b.front.read32(3, abi::bar0::hcr), ~0u);
}

TEST(Registers, CatastrophicBufferIsFirmwares) {
  bench b;
  b.front.cr_write(command::cr::catas + 8, 0x55);
  b.run_ns(10);
  EXPECT_EQ(b.front.read32(0, abi::bar0::catas + 8), 0x55u);
  b.write(abi::bar0::reset, 1);
  b.run_ns(40);
  EXPECT_EQ(b.front.read32(0, abi::bar0::catas + 8), 0u);
}

TEST(Idle, NoActivityWithoutCommands) {
  bench b;
  b.run_ns(20000);
  const std::uint64_t before = b.base.kernel_activations();
  sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_SEC));
  EXPECT_EQ(b.base.kernel_activations(), before);
}

/// Sleeping is invisible, and so is the order of blocks inside an edge: three benches in one kernel do the same.
TEST(Laws, SleepingAndOrderChangeNothing) {
  sim::timebase::options always, shuffled;
  always.always_tick = true;
  shuffled.shuffle_seed = 7;
  bench benches[3] = {bench{}, bench{always}, bench{shuffled}};
  std::vector<std::uint64_t> seen[3];
  sc_core::sc_start(500, sc_core::SC_PS);  // looks between the edges
  for (unsigned i = 0; i < 4; ++i) {
    for (bench& b : benches) {
      b.command(abi::opcode::query_fw, 0, 0, memory_base + 4096 * i);
      b.command(abi::opcode::nop, abi::hcr::event, 0, 0);
      if (i == 2) b.write(abi::bar0::reset, 1);
    }
    for (unsigned k = 0; k < 3000; ++k) {
      sc_core::sc_start(2, sc_core::SC_NS);
      for (unsigned n = 0; n < 3; ++n) {
        seen[n].push_back(benches[n].control());
        seen[n].push_back(benches[n].engine.writes);
        seen[n].push_back(benches[n].front.stats().commands);
      }
    }
  }
  EXPECT_GE(seen[0].back(), 4u);
  EXPECT_TRUE(seen[0] == seen[1]);
  EXPECT_TRUE(seen[0] == seen[2]);
}

}  // namespace rnic
