// SPDX-License-Identifier: Apache-2.0
// DMA through a slot whose root complex has an IOMMU: what it costs, PCIe's order, refusals, and that sleeping blocks
// cannot be seen.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "testbenches/bench/child.h"
#include "testbenches/block/pcie/bench.h"

namespace rnic::test {
namespace {

using host::memory_class;

options with_iommu() {
  options o;
  o.root.iommu.enable = true;
  return o;
}

sim::time_ps read_ps(bench& b, std::uint64_t address) {
  static std::uint8_t data[64];
  b.clients[0]->queue(read_request(address, 64, data));
  b.run_ns(5000);
  return b.clients[0]->answers.back().at - b.clients[0]->sent.back();
}

TEST(iommu_traffic, a_miss_costs_two_accesses_and_a_hit_at_most_two_cycles_and_the_adapters_edge) {
  const auto times = [](bool enable) {
    return ::rnic::bench::in_child([enable] {
      options o = with_iommu();
      o.root.iommu.enable = enable;
      test::bench b(o);
      const std::uint64_t at = b.memory.allocate(65536).address;
      struct {
        sim::time_ps first, hit, miss;
      } t{};
      t.first = read_ps(b, at);
      t.hit = read_ps(b, at);
      t.miss = read_ps(b, at + 4096);
      return t;
    });
  };
  const auto without = times(false), with = times(true);
  constexpr double edges = 2342 + 2000;  // the adapter's clock, and the stage's two edges
  EXPECT_NEAR(static_cast<double>(with.hit), static_cast<double>(without.hit) + edges / 2, edges / 2);
  EXPECT_NEAR(static_cast<double>(with.miss), static_cast<double>(without.miss) + 293'000 + edges / 2, edges / 2);
  EXPECT_NEAR(static_cast<double>(with.first), static_cast<double>(without.first) + 440'000 + edges / 2, edges / 2);
}

/// The order in which device writes become visible.
struct order_log : host::write_watcher {
  std::vector<std::pair<std::uint64_t, sim::time_ps>> got;
  void memory_written(std::uint64_t address, std::uint32_t, sim::time_ps at) override { got.emplace_back(address, at); }
};

// PCI Express Base Specification 3.0, table 2-34: neither a posted request nor a read passes a posted one.
TEST(iommu_traffic, a_write_that_misses_holds_up_writes_and_reads_behind_it) {
  test::bench b(with_iommu());
  const auto warm = b.memory.allocate(4096);
  const auto cold = b.memory.allocate(2 * 4096);
  static std::uint8_t data[64];
  read_ps(b, warm.address);
  order_log seen;
  b.memory.watch(warm.address, 4096, seen);
  b.memory.watch(cold.address, 8192, seen);
  dma_client& c = *b.clients[0];
  c.queue(write_request(cold.address, 64, data));
  c.queue(write_request(warm.address, 64, data));
  c.queue(write_request(cold.address + 4096, 64, data));
  c.queue(read_request(warm.address, 64, data));
  b.run_ns(5000);
  ASSERT_EQ(seen.got.size(), 3u);
  EXPECT_EQ(seen.got[0].first, cold.address);
  EXPECT_EQ(seen.got[1].first, warm.address);
  EXPECT_EQ(seen.got[2].first, cold.address + 4096);
  EXPECT_EQ(seen.got[1].second - seen.got[0].second, 1000u) << "ready long before, and behind it in the next cycle";
  EXPECT_LT(seen.got[2].second - seen.got[0].second, 100'000u) << "two walks at once";
  // Memory's access begins when the last of them has its line, 80 ns before it is seen.
  EXPECT_GT(c.answers.back().at, seen.got[2].second - 80'000 + 160'000);
  b.memory.unwatch(warm.address, 4096, seen);
  b.memory.unwatch(cold.address, 8192, seen);
}

TEST(iommu_traffic, a_read_that_hits_passes_one_that_misses) {
  test::bench b(with_iommu());
  const auto pages = b.memory.allocate(2 * 4096);
  static std::uint8_t data[64];
  read_ps(b, pages.address);
  b.clients[0]->queue(read_request(pages.address + 4096, 64, data, 1));
  b.clients[1]->queue(read_request(pages.address, 64, data, 2));
  b.run_ns(5000);
  EXPECT_GT(b.clients[0]->answers.back().at, b.clients[1]->answers.back().at + 250'000);
}

TEST(iommu_traffic, what_is_not_mapped_is_refused_and_counted_and_the_slot_goes_on) {
  test::bench b(with_iommu());
  const auto own = b.memory.allocate(4096);
  const auto others = b.memory.allocate(4096, 4096, memory_class::llc, 5);
  const auto gone = b.memory.allocate(4096);
  b.memory.release(gone);
  static std::uint8_t data[64];
  std::memset(data, 0x5a, sizeof data);
  for (const std::uint64_t at : {others.address, gone.address, std::uint64_t{0x12'3456'7000}}) {
    b.clients[0]->queue(read_request(at, 64, data));
    b.run_ns(5000);
    EXPECT_EQ(b.clients[0]->answers.back().response.status, pcie::dma_status::unsupported_request);
    b.clients[0]->queue(write_request(at, 64, data));
    b.run_ns(5000);
  }
  EXPECT_EQ(b.stat("root.iommu.faults"), 6u);
  EXPECT_EQ(b.stat("root.unsupported_reads"), 3u);
  EXPECT_EQ(b.stat("root.unsupported_writes"), 3u);
  EXPECT_EQ(b.stat("root.poisoned"), 0u);
  EXPECT_EQ(others.pointer[0], 0);
  b.clients[0]->queue(write_request(own.address, 64, data));
  b.clients[0]->queue(read_request(own.address, 64, data));
  b.run_ns(5000);
  EXPECT_EQ(b.clients[0]->answers.back().response.status, pcie::dma_status::ok);
  EXPECT_EQ(own.pointer[63], 0x5a);
}

// Walks hold up 128 writes of 64 bytes, each of another page: the device runs out of credits, and all arrive.
TEST(iommu_traffic, walks_take_the_devices_credits) {
  options o = with_iommu();
  o.root.iommu.walkers = 1;
  o.root.posted_headers = 8;
  test::bench b(o);
  constexpr unsigned pages = 128;
  const auto buffer = b.memory.allocate(pages * 4096);
  static std::uint8_t data[64];
  std::memset(data, 0x5a, sizeof data);
  for (unsigned i = 0; i < pages; ++i) b.clients[0]->queue(write_request(buffer.address + 4096 * i, 64, data));
  b.run_ns(20'000);
  EXPECT_GT(b.stat("pcie.link.credit_stalls"), 10u);
  EXPECT_LT(b.stat("root.writes"), pages);
  b.run_ns(30'000);
  EXPECT_EQ(b.stat("root.writes"), pages);
  EXPECT_EQ(b.stat("root.iommu.walks"), pages);
  for (unsigned i = 0; i < pages; ++i) EXPECT_EQ(buffer.pointer[4096 * i], 0x5a) << i;
}

TEST(iommu_traffic, a_load_is_answered_behind_a_write_that_misses) {
  test::bench b(with_iommu());
  const auto cold = b.memory.allocate(4096);
  b.up.record = true;
  unsigned fresh = 0;
  struct reader : host::processor_port::reader {
    const std::uint8_t* memory = nullptr;
    bool done = false;
    std::uint8_t found = 0;
    void read_completed(std::uint64_t, payload::tlp_status, const std::uint8_t*, std::uint32_t) override {
      found = *memory;
      done = true;
    }
  };
  const std::uint8_t byte = 0x5a;
  for (unsigned wait = 0; wait < 20; ++wait) {
    const auto page = b.memory.allocate(4096);
    reader r;
    r.memory = page.pointer;
    b.up.packets.clear();
    ASSERT_TRUE(b.root.start_mmio_read(b.bar0_at, 4, r, 1));
    b.run_ns(100 + 10 * wait);
    b.clients[0]->queue(write_request(page.address, 1, &byte));
    b.run_ns(3000);
    ASSERT_TRUE(r.done);
    ASSERT_EQ(b.up.packets.size(), 2u);
    if (b.up.packets[0].packet->type == payload::tlp_type::completion) continue;
    EXPECT_EQ(r.found, byte) << wait;
    ++fresh;
  }
  EXPECT_GE(fresh, 3u);
  b.memory.release(cold);
}

/// What a run of random traffic over a random IOMMU gives: each answer with its time, and the counters.
std::string random_run(unsigned set, bool always_tick, std::uint64_t shuffle) {
  std::mt19937_64 r(set);
  const auto one_of = [&r](std::initializer_list<unsigned> all) { return all.begin()[r() % all.size()]; };
  options o = with_iommu();
  o.always_tick = always_tick;
  o.shuffle = shuffle;
  host::iommu_config& c = o.root.iommu;
  c.ways = one_of({1, 2, 4});
  c.entries = c.ways * one_of({1, 2, 8});
  c.lookup_cycles = one_of({1, 2, 9});
  c.page = static_cast<host::iommu_page>(r() % 4 == 0 ? 1 : 0);
  c.levels = one_of({3, 4, 5});
  c.cached_level = one_of({2, 3, 4, 6});
  c.walk_entries = one_of({1, 2, 16});
  c.walkers = one_of({1, 2, 5});
  c.access_ps = one_of({1, 20'300, 146'500});
  c.tables = static_cast<memory_class>(r() % 3);
  o.root.memory.jitter.law = static_cast<host::jitter_law>(r() % 3);
  o.root.memory.jitter.seed = r();
  o.root.posted_headers = one_of({2, 16, 64});
  o.root.non_posted_headers = one_of({2, 16, 64});
  test::bench b(o);
  const auto buffer = b.memory.allocate(24 * 4096, 4096, static_cast<memory_class>(r() % 3));
  const auto others = b.memory.allocate(4096, 4096, memory_class::llc, 9);
  static std::uint8_t data[2048];
  std::string all;
  std::vector<host::host_memory::buffer> extra;
  for (unsigned step = 0; step < 12; ++step) {
    if (step % 3 == 1) extra.push_back(b.memory.allocate(4096));
    for (unsigned i = 0; i < 12; ++i) {
      const auto bytes = static_cast<std::uint32_t>(1 + r() % (r() % 4 == 0 ? 2048 : 64));
      std::uint64_t at = buffer.address + r() % (22 * 4096);
      if (r() % 16 == 0) at = others.address;
      if (!extra.empty() && r() % 8 == 0) at = extra.back().address;
      dma_client& client = *b.clients[r() % 2];
      client.queue(r() % 2 == 0 ? read_request(at, bytes, data) : write_request(at, bytes, data, 0, r() % 4 == 0));
    }
    b.run_ns(r() % 2000);
    if (step % 3 == 2) b.memory.release(extra.back());  // amid the traffic
    if (step % 3 == 2) extra.pop_back();
  }
  b.run_ns(400'000);
  for (const auto& client : b.clients)
    for (const dma_client::answer& a : client->answers)
      all += std::to_string(static_cast<int>(a.response.status)) + "@" + std::to_string(a.at) + " ";
  for (const auto& [name, value] : b.stats.all()) all += name + "=" + std::to_string(*value) + "\n";
  return all;
}

/// A quarter of a hundred parameter sets.
class iommu_random : public ::testing::TestWithParam<unsigned> {};

TEST_P(iommu_random, sleeping_and_the_order_of_blocks_cannot_be_seen) {
  constexpr unsigned sets = 25;
  unsigned faults = 0, merged = 0, stalls = 0;
  for (unsigned set = sets * GetParam(); set < sets * (GetParam() + 1); ++set) {
    const auto run = [set](bool tick, std::uint64_t shuffle) {
      return ::rnic::bench::in_child([=] { return random_run(set, tick, shuffle); });
    };
    const std::string asleep = run(false, 0);
    EXPECT_EQ(asleep, run(true, 0)) << "set " << set << ": every block at every edge";
    EXPECT_EQ(asleep, run(true, set + 1)) << "set " << set << ": in another order";
    const auto counts = [&](const char* name) { return asleep.find(name + std::string("=0\n")) == std::string::npos; };
    faults += counts("root.iommu.faults") ? 1 : 0;
    merged += counts("root.iommu.merged") ? 1 : 0;
    stalls += counts("root.iommu.stalls") ? 1 : 0;
  }
  EXPECT_GT(faults, 15u);
  EXPECT_GT(merged, 10u);
  EXPECT_GT(stalls, 4u);
}

INSTANTIATE_TEST_SUITE_P(quarters, iommu_random, ::testing::Range(0u, 4u));

}  // namespace
}  // namespace rnic::test
