// SPDX-License-Identifier: Apache-2.0
// INTx: the wire of the physical function, as messages (Base Specification 3.0, 2.2.8.1, 7.5.1.1 and 7.5.1.2).
#include "testbenches/block/pcie/bench.h"

namespace rnic::test {

namespace {

constexpr std::uint64_t clear_low = 0xf00d8 + 4;   // bits of lines 0 to 31, big-endian
constexpr std::uint32_t first_line = 0x0100'0000;  // bit 0 of a big-endian word
constexpr std::uint32_t status_bit = 1u << 19, msix_on = 0x8000;

using levels = std::vector<bool>;
levels levels_of(const bench& b) {
  levels all;
  for (const auto& [level, at] : b.log.wire) all.push_back(level);
  return all;
}

}  // namespace

TEST(pcie_line, moves_with_the_request_and_back_with_clr_int) {
  bench b;
  b.up.record = true;
  EXPECT_EQ(b.config_read(0x04) & status_bit, 0u);
  EXPECT_EQ(b.config_read(0x3d, 1), 1u) << "INTA";
  b.interrupts.raise(5);
  bench::run_ns(1000);
  EXPECT_EQ(levels_of(b), levels{true});
  EXPECT_TRUE(b.log.got.empty());
  EXPECT_EQ(b.config_read(0x04) & status_bit, status_bit);
  b.interrupts.raise(0);  // a wire that is up cannot go up
  bench::run_ns(1000);
  EXPECT_EQ(levels_of(b), levels{true});
  b.store32(b.bar0_at + clear_low - 4, first_line);   // line 32
  b.store32(b.bar0_at + clear_low, first_line << 1);  // line 1
  bench::run_ns(1000);
  EXPECT_EQ(levels_of(b), levels{true});
  b.store32(b.bar0_at + clear_low, first_line);
  bench::run_ns(1000);
  EXPECT_EQ(levels_of(b), (levels{true, false}));
  EXPECT_EQ(b.config_read(0x04) & status_bit, 0u);
  EXPECT_TRUE(b.command.got.empty()) << "the register is the endpoint's";
  b.interrupts.raise(1);
  bench::run_ns(1000);
  EXPECT_EQ(levels_of(b), (levels{true, false, true}));
  std::vector<const payload::tlp*> messages;
  for (const auto& p : b.up.packets)
    if (p.packet->type == payload::tlp_type::message) messages.push_back(&*p.packet);
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(static_cast<unsigned>(messages[0]->code), 0x20u);
  EXPECT_EQ(static_cast<unsigned>(messages[1]->code), 0x24u);
  EXPECT_EQ(messages[0]->carried(), 0u);
  EXPECT_EQ(b.stat("root.interrupt_messages"), 3u);
}

TEST(pcie_line, is_off_while_the_command_register_says_so) {
  bench b;
  const std::uint32_t command = b.config_read(0x04, 2);
  b.config_write(0x04, command | 0x0400, 2);
  b.interrupts.raise(0);
  bench::run_ns(1000);
  EXPECT_TRUE(b.log.wire.empty());
  EXPECT_EQ(b.config_read(0x04) & status_bit, status_bit) << "software may look";
  b.config_write(0x04, command, 2);
  EXPECT_EQ(levels_of(b), levels{true});
  b.config_write(0x04, command | 0x0400, 2);
  EXPECT_EQ(levels_of(b), (levels{true, false})) << "an interrupt that was sent is taken back";
  b.store32(b.bar0_at + clear_low, first_line);
  b.config_write(0x04, command, 2);
  EXPECT_EQ(levels_of(b), (levels{true, false}));
}

/// A function that has MSI-X enabled does not use the wire (PCI Local Bus Specification 3.0, 6.8.3.3).
TEST(pcie_line, is_off_with_msix) {
  bench b;
  b.program_vector(3);
  b.config_write(0x9e, msix_on, 2);
  b.interrupts.raise(3);
  bench::run_ns(1000);
  EXPECT_TRUE(b.log.wire.empty());
  EXPECT_EQ(b.log.got.size(), 1u);
  b.config_write(0x9e, 0, 2);
  b.interrupts.raise(3);
  bench::run_ns(1000);
  EXPECT_EQ(levels_of(b), levels{true});
  b.config_write(0x9e, msix_on, 2);
  EXPECT_EQ(levels_of(b), (levels{true, false}));
}

/// A message is no memory request, so it does not need the right to make those.
TEST(pcie_line, moves_without_bus_mastering) {
  bench b;
  const std::uint32_t command = b.config_read(0x04, 2);
  b.config_write(0x04, command & ~0x4u, 2);
  b.interrupts.raise(0);
  bench::run_ns(1000);
  EXPECT_EQ(levels_of(b), levels{true});
}

TEST(pcie_line, comes_after_the_write_that_was_started_before) {
  bench b;
  const auto buffer = b.memory.allocate(4096, 4096, host::memory_class::llc, 0);
  std::vector<std::uint8_t> bytes(2048, 0x5a);
  b.clients[0]->queue(write_request(buffer.address, 2048, bytes.data()));
  bench::run_ns(10);
  b.interrupts.raise(0);
  while (b.log.wire.empty()) bench::run_ns(1);
  EXPECT_EQ(buffer.pointer[2047], 0x5a);
}

TEST(pcie_line, goes_down_with_resets) {
  bench b;
  b.interrupts.raise(0);
  bench::run_ns(1000);
  b.endpoint.device_reset();
  bench::run_ns(1000);
  EXPECT_EQ(levels_of(b), (levels{true, false}));
  b.interrupts.raise(0);
  bench::run_ns(1000);
  EXPECT_EQ(levels_of(b), (levels{true, false})) << "DMA is off";
}

}  // namespace rnic::test
