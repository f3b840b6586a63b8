// SPDX-License-Identifier: Apache-2.0
// Host memory and link arithmetic by themselves.
#include "testbenches/block/pcie/bench.h"

namespace rnic::test {
namespace {

TEST(host_memory, buffers_are_distinct_zeroed_and_come_back) {
  host::host_memory m;
  const auto a = m.allocate(5000);
  const auto b = m.allocate(1, 2 << 20);
  EXPECT_EQ(a.address, 0x1'0000'0000u);
  EXPECT_EQ(b.address % (2 << 20), 0u);
  EXPECT_EQ(m.allocated_bytes(), 8192u + 4096u);
  EXPECT_EQ(m.at(a.address, 8192), a.pointer);
  EXPECT_EQ(m.at(a.address, 8193), nullptr);
  EXPECT_EQ(m.at(a.address - 1, 1), nullptr);
  EXPECT_EQ(m.at(~0ull - 3, 8), nullptr);
  std::memset(a.pointer, 0xaa, 8192);
  m.release(a);
  EXPECT_EQ(m.at(a.address, 1), nullptr);
  const auto c = m.allocate(8192);
  EXPECT_EQ(c.address, a.address);
  EXPECT_EQ(c.pointer[0], 0);
  m.release(c);
  m.release(b);
  EXPECT_EQ(m.allocated_bytes(), 0u);
  const auto all = m.allocate(32ull << 30);
  EXPECT_NE(all.pointer, nullptr);
  EXPECT_EQ(m.allocate(1).pointer, nullptr);
}

TEST(host_memory, lies_in_the_address_space) {
  host::host_memory::config c;
  c.bytes = 1 << 20;
  c.base = ~std::uint64_t{0} - (1 << 20) + 1;
  host::host_memory last(c);
  const auto all = last.allocate(1 << 20);
  EXPECT_EQ(all.address, c.base);
  EXPECT_EQ(last.at(~std::uint64_t{0}, 1), all.pointer + (1 << 20) - 1);
  EXPECT_EQ(last.at(~std::uint64_t{0}, 2), nullptr);
  EXPECT_EQ(last.allocate(1, 1 << 21).pointer, nullptr);
  c.base += 4096;
  EXPECT_THROW(host::host_memory{c}, sim::config_error);
}

TEST(host_memory, watches_are_exact) {
  host::host_memory m;
  const auto a = m.allocate(16384);
  struct watcher : host::write_watcher {
    unsigned calls = 0;
    void memory_written(std::uint64_t, std::uint32_t, sim::time_ps) override { ++calls; }
  } w, v;
  m.watch(a.address + 4090, 12, w);  // over a page boundary
  m.watch(a.address + 4096, 4, v);
  const std::uint8_t data[256] = {};
  EXPECT_TRUE(m.device_write(a.address + 4000, data, 90, 1));
  EXPECT_EQ(w.calls, 0u);
  EXPECT_TRUE(m.device_write(a.address + 4000, data, 91, 1));
  EXPECT_EQ(w.calls, 1u);
  EXPECT_TRUE(m.device_write(a.address + 4096, data, 64, 1));
  EXPECT_EQ(w.calls, 2u);
  EXPECT_EQ(v.calls, 1u);
  m.unwatch(a.address + 4090, 12, w);
  EXPECT_TRUE(m.device_write(a.address + 4095, data, 2, 1));
  EXPECT_EQ(w.calls, 2u);
  EXPECT_EQ(v.calls, 2u);
  EXPECT_FALSE(m.device_write(a.address + 16384, data, 1, 1));
}

/// Bandwidth table of calibration 7.2: raw rate of each generation after coding, times the efficiency.
TEST(pcie_link, serialisation_follows_generation_and_width) {
  payload::tlp t;
  t.type = payload::tlp_type::mem_write;
  t.address = 0x1'0000'0000;
  t.length = 256;
  const struct {
    unsigned generation, width;
    double gbps;
  } cases[] = {{1, 8, 16.0}, {2, 8, 32.0}, {3, 8, 63.015}, {3, 16, 126.03}, {4, 8, 126.03}};
  for (const auto& c : cases) {
    pcie::link_config k;
    k.generation = c.generation;
    k.width = c.width;
    const pcie::link_wire link("link", k);
    EXPECT_NEAR(static_cast<double>(link.serialisation(t)), 280 * 8000.0 / (c.gbps * 0.945), 5.0);
  }
  pcie::link_config bad;
  bad.width = 3;
  EXPECT_THROW(pcie::link_wire("link", bad), sim::config_error);
}

}  // namespace
}  // namespace rnic::test
