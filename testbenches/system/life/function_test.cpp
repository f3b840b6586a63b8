// SPDX-License-Identifier: Apache-2.0
// What the system does to the function through its configuration space: function-level reset, bus mastering.
#include <gtest/gtest.h>

#include <cstring>

#include "model/abi/bar_layout.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

// PCI Express Base Specification 3.0, 7.5 and 7.8; the capabilities lie where the list says.
constexpr std::uint16_t reg_command = 0x04, reg_bar0 = 0x10, reg_bar2 = 0x18, reg_capabilities = 0x34;
constexpr std::uint32_t bus_master = 1u << 2, initiate_reset = 1u << 15;

std::uint16_t capability(host_driver::bus_if& bus, unsigned id) {
  unsigned at = bus.config_read32(reg_capabilities) & 0xff;
  while (at != 0 && (bus.config_read32(static_cast<std::uint16_t>(at)) & 0xff) != id)
    at = bus.config_read32(static_cast<std::uint16_t>(at)) >> 8 & 0xff;
  return static_cast<std::uint16_t>(at);
}

std::uint64_t bar(host_driver::bus_if& bus, std::uint16_t reg) {
  return std::uint64_t{bus.config_read32(static_cast<std::uint16_t>(reg + 4))} << 32 | (bus.config_read32(reg) & ~0xfu);
}

std::uint64_t dma_packets(hosts::two_nodes& system) {
  return system.statistics().value("b.adapter.pcie.dma.write_packets") +
         system.statistics().value("b.adapter.pcie.dma.read_packets");
}

/// Messages from host a to host b over and over; none is waited for.
struct flood {
  explicit flood(const link& l)
      : way(l), from(hosts::make_buffer(l.a.at, 65536)), to(hosts::make_buffer(l.b.at, 65536)) {
    std::mt19937_64 random(3);
    fill_random(from.at(), 65536, random);
    for (unsigned i = 0; i < 16; ++i) post_write(l.a, from, to, 65536);
  }
  link way;
  hosts::buffer from, to;
};

void expect_write_works(const link& l) {
  const hosts::buffer from = hosts::make_buffer(l.a.at, 65536), to = hosts::make_buffer(l.b.at, 65536);
  std::mt19937_64 random(4);
  fill_random(from.at(), 65536, random);
  post_write(l.a, from, to, 65536);
  ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
  ASSERT_EQ(std::memcmp(from.at(), to.at(), 65536), 0);
}

TEST(Function, LevelResetUnderTraffic) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const flood f(make_link(system, {}));
    host_driver::bus_if& bus = *f.way.b.at.bus;
    bus.spend_ps(20 * us);
    ASSERT_NE(bar(bus, reg_bar0), 0U);
    ASSERT_NE(bus.mmio_read32(0, abi::bar0::ownership), 0U) << "the driver owns the device";
    const auto control = static_cast<std::uint16_t>(capability(bus, 0x10) + 8);
    bus.config_write32(control, bus.config_read32(control) | initiate_reset);
    const std::vector<std::uint8_t> frozen(f.to.memory.pointer, f.to.memory.pointer + 65536);
    const std::uint64_t packets = dma_packets(system);
    EXPECT_EQ(bar(bus, reg_bar0), 0U);
    EXPECT_EQ(bar(bus, reg_bar2), 0U);
    EXPECT_EQ(bus.config_read32(reg_command) & 0x406, 0U);
    EXPECT_EQ(bus.config_read32(capability(bus, 0x11)) >> 31, 0U) << "MSI-X enabled";
    bus.spend_ps(50 * us);
    EXPECT_EQ(dma_packets(system), packets) << "a function that was reset does not touch memory";
    EXPECT_EQ(std::memcmp(f.to.memory.pointer, frozen.data(), frozen.size()), 0);

    // The driver finds its device as new: nobody owns it, the system has to place its BARs again.
    ASSERT_EQ(f.way.b.dev().abandon(), 0);
    ASSERT_EQ(system.node_b().start(), 0);
    const link again = make_link(system, {}, 21);
    expect_write_works(again);
    EXPECT_EQ(std::memcmp(f.to.memory.pointer, frozen.data(), frozen.size()), 0);
  });
  EXPECT_EQ(system.statistics().value("b.adapter.pcie.function_resets"), 1U);
}

TEST(Function, BusMasteringOffStopsDma) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const flood f(make_link(system, {}));
    host_driver::bus_if& bus = *f.way.b.at.bus;
    bus.spend_ps(20 * us);
    const std::uint32_t command = bus.config_read32(reg_command) & 0xffff;
    bus.config_write32(reg_command, command & ~bus_master);
    const std::vector<std::uint8_t> frozen(f.to.memory.pointer, f.to.memory.pointer + 65536);
    const std::uint64_t packets = dma_packets(system);
    ASSERT_GT(packets, 0U);
    bus.spend_ps(100 * us);
    EXPECT_EQ(dma_packets(system), packets);
    EXPECT_EQ(std::memcmp(f.to.memory.pointer, frozen.data(), frozen.size()), 0);
    EXPECT_EQ(bus.mmio_read32(0, abi::bar0::hcr + abi::hcr::control) >> 31, 0U) << "registers still answer";
    // What could not be written is lost; the device is not.
    bus.config_write32(reg_command, command);
    ASSERT_EQ(f.way.b.dev().reset(), 0);
    ASSERT_EQ(f.way.b.dev().open(), 0);
    expect_write_works(make_link(system, {}, 21));
  });
  EXPECT_GT(system.statistics().value("b.adapter.pcie.dma.refused_requests"), 0U);
}

}  // namespace
}  // namespace rnic::system_test
