// SPDX-License-Identifier: Apache-2.0
// When the device's reads and writes happen in memory, as pcie-bench measured it on hosts of two sockets: DDIO, order,
// memory that no cache holds.
#include <gtest/gtest.h>

#include "testbenches/block/pcie/bench.h"

namespace rnic::test {
namespace {

using host::memory_class;
using host::memory_timing;

constexpr sim::time_ps cycle = 1000;

struct timing_bench {
  explicit timing_bench(const host::memory_timing_config& c = {}) : timing("root", c, memory, cycle) {}
  host::host_memory memory{host::host_memory::config{0x1'0000'0000, 1ull << 30}};
  std::uint64_t llc = memory.allocate(65536).address;
  std::uint64_t dram = memory.allocate(4 << 20, 4096, memory_class::dram).address;
  std::uint64_t remote = memory.allocate(65536, 4096, memory_class::remote).address;
  memory_timing timing;
};

TEST(memory_timing, a_write_of_a_line_in_the_cache_is_visible_after_80_ns) {
  timing_bench b;
  EXPECT_EQ(b.timing.write(b.llc, 64, 1'000'000), 1'080'000u);
  EXPECT_EQ(b.timing.write(b.llc, 1, 2'000'000), 2'080'000u);
  EXPECT_EQ(b.timing.allocations(), 0u);
}

TEST(memory_timing, a_write_of_a_line_that_no_cache_holds_waits_for_it_once) {
  timing_bench b;
  EXPECT_EQ(b.timing.write(b.remote, 8, 500'000), 675'000u);
  EXPECT_EQ(b.timing.write(b.remote + 56, 8, 800'000), 880'000u);
  EXPECT_EQ(b.timing.write(b.dram, 8, 1'000'000), 1'175'000u);
  EXPECT_EQ(b.timing.write(b.dram + 56, 8, 2'000'000), 2'080'000u);
  EXPECT_EQ(b.timing.write(b.dram + 60, 8, 3'000'000), 3'175'000u) << "of two lines the second is new";
  EXPECT_EQ(b.timing.write(b.dram + 128, 256, 4'000'000), 4'175'000u) << "four lines are allocated side by side";
  EXPECT_EQ(b.timing.allocations(), 4u);
}

TEST(memory_timing, writes_become_visible_in_order_and_one_in_a_cycle) {
  timing_bench b;
  EXPECT_EQ(b.timing.write(b.dram, 64, 1'000'000), 1'175'000u);
  EXPECT_EQ(b.timing.write(b.llc, 64, 1'010'000), 1'176'000u);
  EXPECT_EQ(b.timing.write(b.llc, 64, 1'020'000), 1'177'000u);
  EXPECT_EQ(b.timing.write(b.dram + 4096, 64, 1'030'000), 1'205'000u) << "allocations overlap";
}

TEST(memory_timing, a_read_misses_by_class_and_allocates_nothing) {
  timing_bench b;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(b.timing.read(b.llc, 512, 1'000'000), 1'160'000u);
    EXPECT_EQ(b.timing.read(b.dram, 512, 1'000'000), 1'230'000u);
    EXPECT_EQ(b.timing.read(b.remote, 512, 1'000'000), 1'260'000u);
  }
}

TEST(memory_timing, what_the_device_wrote_is_read_from_the_cache_of_its_own_socket) {
  timing_bench b;
  b.timing.write(b.remote, 128, 1'000'000);
  b.timing.write(b.dram, 128, 1'000'000);
  EXPECT_EQ(b.timing.read(b.remote, 128, 2'000'000), 2'160'000u);
  EXPECT_EQ(b.timing.read(b.dram + 120, 8, 2'000'000), 2'160'000u);
  EXPECT_EQ(b.timing.read(b.dram + 120, 9, 2'000'000), 2'230'000u) << "its last byte is not there";
}

TEST(memory_timing, a_read_begins_when_the_writes_before_it_have_their_lines) {
  timing_bench b;
  b.timing.write(b.llc, 8, 1'000'000);
  EXPECT_EQ(b.timing.read(b.llc, 8, 1'004'000), 1'164'000u);
  b.timing.write(b.dram, 8, 2'000'000);  // has its line at 2 095 ns
  EXPECT_EQ(b.timing.read(b.llc, 8, 2'004'000), 2'255'000u);
  EXPECT_EQ(b.timing.read(b.dram + 4096, 8, 2'004'000), 2'325'000u) << "the write's allocation, then its own miss";
  EXPECT_EQ(b.timing.read(b.llc, 8, 2'100'000), 2'260'000u);
}

// Room of two lines in each of two sets.
TEST(memory_timing, the_line_written_longest_ago_leaves_its_set) {
  host::memory_timing_config c;
  c.io_cache_sets = c.io_cache_ways = 2;
  timing_bench b(c);
  const auto line = [&b](unsigned n) { return b.dram + 64 * n; };
  sim::time_ps now = 1'000'000;
  const auto waits = [&](unsigned n) {
    now += 1'000'000;
    return b.timing.write(line(n), 64, now) == now + 175'000;
  };
  EXPECT_TRUE(waits(0));
  EXPECT_TRUE(waits(2));
  EXPECT_FALSE(waits(0));
  EXPECT_TRUE(waits(4)) << "2 leaves";
  EXPECT_FALSE(waits(0));
  EXPECT_TRUE(waits(2));
  EXPECT_TRUE(waits(1)) << "the other set";
  EXPECT_FALSE(waits(0));
}

TEST(memory_timing, a_write_cannot_be_slower_than_a_read) {
  host::memory_timing_config c;
  c.llc_read_ps = c.posted_visible_ps - 1;
  EXPECT_THROW(timing_bench{c}, sim::config_error);
}

/// Counts what a range of memory sees in one cycle of the root complex.
struct arrivals : host::write_watcher {
  std::vector<sim::time_ps> at;
  void memory_written(std::uint64_t, std::uint32_t, sim::time_ps t) override { at.push_back(t); }
};

// Sixteen lanes of the fourth generation bring a small write in less than a nanosecond; those that waited for the
// first one's line are due together.
TEST(root_complex, writes_memory_once_in_a_cycle) {
  options o;
  o.root.link.width = 16;
  o.root.link.generation = 4;
  o.endpoint.link = o.root.link;
  bench b(o);
  const auto dram = b.memory.allocate(8192, 4096, memory_class::dram);
  arrivals seen;
  b.memory.watch(dram.address, 8192, seen);
  const std::uint8_t byte = 0x5a;
  b.clients[0]->queue(write_request(dram.address, 1, &byte));
  for (unsigned i = 1; i < 12; ++i) b.clients[0]->queue(write_request(dram.address + i, 1, &byte));
  b.run_ns(3000);
  ASSERT_EQ(seen.at.size(), 12u);
  for (unsigned i = 1; i < 12; ++i) EXPECT_GE(seen.at[i] - seen.at[i - 1], cycle) << i;
  EXPECT_EQ(b.stat("root.line_allocations"), 1u);
  b.memory.unwatch(dram.address, 8192, seen);
}

sim::time_ps read_behind_write(bench& b, std::uint64_t address) {
  static std::uint8_t data[64];
  dma_client& c = *b.clients[0];
  c.queue(write_request(address, 8, data));
  c.queue(read_request(address, 8, data));
  b.run_ns(3000);
  return c.answers.back().at - c.sent[c.sent.size() - 2];
}

// pcie-bench: 642 ns in the cache of either socket, 733 when the line has to be brought; the first half is the card's.
TEST(root_complex, a_read_behind_its_write_pays_for_the_line_and_not_for_the_socket) {
  bench b;
  const auto llc = b.memory.allocate(4096);
  const auto dram = b.memory.allocate(4096, 4096, memory_class::dram);
  const auto remote = b.memory.allocate(4096, 4096, memory_class::remote);
  const sim::time_ps warm = read_behind_write(b, llc.address);
  EXPECT_NEAR(static_cast<double>(read_behind_write(b, dram.address)), static_cast<double>(warm) + 91'000, 3'000);
  EXPECT_NEAR(static_cast<double>(read_behind_write(b, remote.address)), static_cast<double>(warm) + 91'000, 3'000);
  EXPECT_NEAR(static_cast<double>(read_behind_write(b, dram.address)), static_cast<double>(warm), 3'000);
  EXPECT_NEAR(static_cast<double>(read_behind_write(b, remote.address)), static_cast<double>(warm), 3'000);
}

/// What a processor finds in memory when its load of a register is answered.
struct looking_reader : host::processor_port::reader {
  explicit looking_reader(const std::uint8_t* at) : memory(at) {}
  const std::uint8_t* memory;
  unsigned found = 0;
  bool done = false;
  void read_completed(std::uint64_t, payload::tlp_status, const std::uint8_t*, std::uint32_t) override {
    while (memory[64 * found] != 0) ++found;
    done = true;
  }
};

// PCI Express Base Specification 3.0, 2.4.1, table 2-34: a read completion does not pass a posted request. A driver
// that finds a register changed may read what the adapter wrote before it.
TEST(root_complex, a_load_is_answered_when_the_writes_before_its_completion_are_seen) {
  constexpr unsigned writes = 60;
  bench b;
  const auto dram = b.memory.allocate(64 * (writes + 1), 4096, memory_class::dram);
  b.up.record = true;
  const std::uint8_t byte = 0x5a;
  unsigned behind_fresh_writes = 0;
  for (unsigned wait = 0; wait < 20; ++wait) {
    std::memset(dram.pointer, 0, 64 * writes);
    looking_reader looks(dram.pointer);
    b.up.packets.clear();
    ASSERT_TRUE(b.root.start_mmio_read(b.bar0_at, 4, looks, 1));
    b.run_ns(100 + 10 * wait);
    for (unsigned i = 0; i < writes; ++i) b.clients[0]->queue(write_request(dram.address + 64 * i, 1, &byte));
    b.run_ns(3000);
    ASSERT_TRUE(looks.done);
    unsigned before = 0;
    for (const tap::seen& p : b.up.packets) {
      if (p.packet->type == payload::tlp_type::completion) break;
      ++before;
    }
    EXPECT_GE(looks.found, before) << wait;
    if (before != 0 && before != writes) ++behind_fresh_writes;
  }
  EXPECT_GE(behind_fresh_writes, 5u);
}

}  // namespace
}  // namespace rnic::test
