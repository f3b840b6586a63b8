// SPDX-License-Identifier: Apache-2.0
// The DMA engine against host memory: data, splits, order, limits, errors, and the published bandwidths and latencies.
#include <random>

#include "testbenches/bench/child.h"
#include "testbenches/bench/measuring_card.h"
#include "testbenches/block/pcie/bench.h"

namespace rnic::test {
namespace {

std::vector<std::uint8_t> pattern(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<std::uint8_t> v(n);
  for (auto& b : v) b = static_cast<std::uint8_t>(rng());
  return v;
}

TEST(pcie_dma, data_of_any_length_and_alignment_arrives) {
  bench b;
  const auto buffer = b.memory.allocate(64 << 10);
  const auto source = pattern(64 << 10, 1);
  std::mt19937 rng(2);
  for (unsigned i = 0; i < 60; ++i) {
    const std::uint32_t length = 1 + static_cast<std::uint32_t>(rng() % (i % 3 == 0 ? 64u : 9000u));
    const std::uint32_t at = static_cast<std::uint32_t>(rng() % 20000);
    std::memset(buffer.pointer, 0, 64 << 10);
    b.clients[0]->queue(write_request(buffer.address + at, length, source.data(), i, true));
    b.run_ns(4000);
    ASSERT_EQ(b.clients[0]->answers.size(), 2 * i + 1);
    ASSERT_EQ(std::memcmp(buffer.pointer + at, source.data(), length), 0);
    if (at != 0) {
      ASSERT_EQ(buffer.pointer[at - 1], 0);
    }
    ASSERT_EQ(buffer.pointer[at + length], 0);
    std::vector<std::uint8_t> back(length + 1, 0xee);
    b.clients[0]->queue(read_request(buffer.address + at, length, back.data(), i));
    b.run_ns(6000);
    ASSERT_EQ(b.clients[0]->answers.size(), 2 * i + 2);
    ASSERT_EQ(b.clients[0]->answers.back().response.status, pcie::dma_status::ok);
    ASSERT_EQ(std::memcmp(back.data(), source.data(), length), 0);
    ASSERT_EQ(back[length], 0xee);
  }
  EXPECT_EQ(b.pool.in_use(), 0u);
}

/// Byte by byte: a packet ends where the next byte is on another page or the limit is reached.
std::vector<std::pair<std::uint64_t, std::uint32_t>> split(std::uint64_t address, std::uint32_t length,
                                                           std::uint32_t max) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> out;
  for (std::uint32_t i = 0; i < length; ++i) {
    if (out.empty() || out.back().second == max || (address + i) % 4096 == 0) out.emplace_back(address + i, 0u);
    ++out.back().second;
  }
  return out;
}

TEST(pcie_dma, splits_as_the_specification_says) {
  bench b;
  const auto buffer = b.memory.allocate(32 << 10);
  const auto source = pattern(16 << 10, 3);
  std::vector<std::uint8_t> back(16 << 10);
  std::mt19937 rng(4);
  for (unsigned i = 0; i < 40; ++i) {
    const std::uint64_t at = buffer.address + rng() % 8192;
    const auto length = static_cast<std::uint32_t>(1 + rng() % 8192);
    b.up.record = b.down.record = true;
    b.up.packets.clear();
    b.down.packets.clear();
    b.clients[0]->queue(write_request(at, length, source.data()));
    b.clients[0]->queue(read_request(at, length, back.data()));
    b.run_ns(6000);
    std::vector<std::pair<std::uint64_t, std::uint32_t>> writes, reads;
    for (const auto& s : b.up.packets) {
      auto& list = s.packet->type == payload::tlp_type::mem_write ? writes : reads;
      list.emplace_back(s.packet->address, s.packet->length);
      // Byte enables as an independent count: 4 * dwords - disabled lanes = length.
      const auto lanes = [](unsigned be) { return static_cast<unsigned>(__builtin_popcount(be)); };
      const std::uint64_t dwords = (s.packet->address + s.packet->length - 1) / 4 - s.packet->address / 4 + 1;
      if (dwords == 1)
        EXPECT_EQ(lanes(s.packet->first_be), s.packet->length);
      else
        EXPECT_EQ(4 * (dwords - 2) + lanes(s.packet->first_be) + lanes(s.packet->last_be), s.packet->length);
    }
    ASSERT_EQ(writes, split(at, length, 256));
    ASSERT_EQ(reads, split(at, length, 512));
    for (const auto& s : b.down.packets) {
      ASSERT_LE(s.packet->length, 256u);
      if (s.packet->byte_count != s.packet->length) {
        ASSERT_EQ((s.packet->address + s.packet->length) % 64, 0u);
      }
    }
  }
}

TEST(pcie_dma, payload_and_read_size_follow_device_control) {
  bench b;
  b.config_write(0x68, 0x0810, 2);  // 128 and 128
  const auto buffer = b.memory.allocate(4096);
  const auto source = pattern(1024, 3);
  std::vector<std::uint8_t> back(1024);
  b.up.record = true;
  b.clients[0]->queue(write_request(buffer.address, 1024, source.data()));
  b.clients[0]->queue(read_request(buffer.address, 1024, back.data()));
  b.run_ns(3000);
  EXPECT_EQ(b.up.packets.size(), 16u);
  EXPECT_EQ(back, source);
}

void expect_reassembly(std::uint32_t bytes) {
  options o;
  o.root.completion_bytes = bytes;
  bench b(o);
  const auto buffer = b.memory.allocate(16384);
  const auto source = pattern(8000, bytes);
  std::memcpy(buffer.pointer + 33, source.data(), source.size());
  std::vector<std::uint8_t> back(8000);
  b.down.record = true;
  b.clients[0]->queue(read_request(buffer.address + 33, 8000, back.data()));
  b.run_ns(6000);
  EXPECT_EQ(b.clients[0]->answers.size(), 1u);
  EXPECT_EQ(back, source);
  for (const auto& seen : b.down.packets) EXPECT_LE(seen.packet->length, bytes);
  EXPECT_GE(b.down.packets.size(), 8000 / bytes);
}
TEST(pcie_dma, completions_of_64_are_put_together) { expect_reassembly(64); }
TEST(pcie_dma, completions_of_128_are_put_together) { expect_reassembly(128); }
TEST(pcie_dma, completions_of_256_are_put_together) { expect_reassembly(256); }

double write_bandwidth(std::uint32_t length) {
  options o;
  o.endpoint = rnic::bench::measuring_card();
  bench b(o);
  const auto buffer = b.memory.allocate(1 << 20);
  const auto source = pattern(4096, 5);
  const unsigned count = 400'000 / length;
  b.up.record = true;
  for (unsigned i = 0; i < count; ++i)
    b.clients[0]->queue(write_request(buffer.address + (std::uint64_t{i} * length) % (1 << 19), length, source.data()));
  b.run_ns(200'000);
  const auto& p = b.up.packets;
  EXPECT_EQ(b.stat("root.write_bytes"), std::uint64_t{count} * length);
  const std::size_t skip = p.size() / 4;  // steady state
  std::uint64_t bytes = 0;
  for (std::size_t i = skip + 1; i < p.size(); ++i) bytes += p[i].packet->length;
  return static_cast<double>(bytes) * 8000.0 / static_cast<double>(p.back().arrival - p[skip].arrival);
}

// C01: DMA write bandwidth, Gen3 x8 (calibration 6.1).
void expect_bandwidth(std::uint32_t length, double gbps) {
  const double got = write_bandwidth(length);
  ::testing::Test::RecordProperty("gbps", std::to_string(got));
  std::printf("DMA write %u B: %.2f Gb/s, measured %.2f\n", length, got, gbps);
  EXPECT_NEAR(got, gbps, 0.05 * gbps);
}
TEST(pcie_c01, dma_write_128) { expect_bandwidth(128, 42.41); }
TEST(pcie_c01, dma_write_256) { expect_bandwidth(256, 50.55); }
TEST(pcie_c01, dma_write_512) { expect_bandwidth(512, 54.45); }
TEST(pcie_c01, dma_write_2048) { expect_bandwidth(2048, 54.45); }

double read_latency_ns(bench& b, std::uint64_t address, std::uint32_t length) {
  std::vector<std::uint8_t> back(length);
  dma_client& c = *b.clients[0];
  c.queue(read_request(address, length, back.data()));
  b.run_ns(5000);
  return static_cast<double>(c.answers.back().at - c.sent.back()) / 1000.0;
}

// C02: the measured values contain what the measuring adapter adds, so the steps between sizes count (calibration 2.4).
TEST(pcie_c02, dma_read_latency) {
  bench b;
  const auto buffer = b.memory.allocate(8192);
  const double base = read_latency_ns(b, buffer.address, 64);
  std::printf("DMA read 64 B: %.1f ns\n", base);
  EXPECT_NEAR(base, 310, 10);
  const double offset = 560 - base;
  const std::pair<std::uint32_t, double> measured[] = {{128, 586}, {256, 626}, {512, 706}, {1024, 853}, {2048, 1146}};
  for (const auto& [length, ns] : measured) {
    const double got = read_latency_ns(b, buffer.address, length) + offset;
    std::printf("DMA read %u B: %.1f ns with the offset, measured %.0f\n", length, got, ns);
    EXPECT_NEAR(got, ns, 0.10 * ns);
  }
}

TEST(pcie_c02, memory_classes_add_their_latency) {
  bench b;
  const auto llc = b.memory.allocate(4096);
  const auto dram = b.memory.allocate(4096, 4096, host::memory_class::dram);
  const auto remote = b.memory.allocate(4096, 4096, host::memory_class::remote);
  const double base = read_latency_ns(b, llc.address, 64);
  EXPECT_NEAR(read_latency_ns(b, dram.address, 64) - base, 70, 4);
  EXPECT_NEAR(read_latency_ns(b, remote.address, 64) - base, 100, 4);
}

TEST(pcie_dma, read_bandwidth_comes_near_the_link) {
  bench b;
  const auto buffer = b.memory.allocate(1 << 20);
  std::vector<std::uint8_t> back(1 << 20);
  for (unsigned i = 0; i < 200; ++i)
    b.clients[0]->queue(read_request(buffer.address + i * 2048, 2048, back.data() + i * 2048, i));
  b.run_ns(200'000);
  const auto& a = b.clients[0]->answers;
  ASSERT_EQ(a.size(), 200u);
  const double gbps = 150 * 2048 * 8000.0 / static_cast<double>(a[199].at - a[49].at);
  std::printf("DMA read: %.2f Gb/s, measured 55.4\n", gbps);
  EXPECT_NEAR(gbps, 55.4, 0.05 * 55.4);
}

// Sixteen lanes of the fourth generation bring the answer of 4 bytes in 0.8 ns: behind a completion that the endpoint
// takes at once two more may come in the same cycle of 2.3 ns, and then wait for the next ones.
TEST(pcie_dma, three_completions_may_come_in_a_cycle) {
  options o;
  o.root.link.width = 16;
  o.root.link.generation = 4;
  o.root.completion_bytes = 64;
  o.endpoint.link = o.root.link;
  bench b(o);
  const auto buffer = b.memory.allocate(4096);
  const auto source = pattern(4096, 5);
  std::memcpy(buffer.pointer, source.data(), source.size());
  constexpr unsigned rounds = 200;
  std::vector<std::array<std::uint8_t, 68>> longer(rounds);
  std::vector<std::array<std::uint8_t, 4>> shorter(2 * rounds);
  for (unsigned i = 0; i < rounds; ++i) {
    b.clients[0]->queue(read_request(buffer.address, 68, longer[i].data(), i));
    for (unsigned k = 2 * i; k != 2 * i + 2; ++k)
      b.clients[1]->queue(read_request(buffer.address + 4 * k, 4, shorter[k].data(), k));
    b.run_ns(100 + i);
  }
  b.run_ns(3000);
  ASSERT_EQ(b.clients[0]->answers.size(), rounds);
  ASSERT_EQ(b.clients[1]->answers.size(), 2 * rounds);
  for (unsigned i = 0; i < rounds; ++i) {
    EXPECT_EQ(std::memcmp(longer[i].data(), source.data(), 68), 0);
    for (unsigned k = 2 * i; k != 2 * i + 2; ++k)
      EXPECT_EQ(std::memcmp(shorter[k].data(), source.data() + 4 * k, 4), 0);
  }
}

TEST(pcie_dma, write_is_visible_after_160_ns) {
  bench b;
  const auto buffer = b.memory.allocate(4096);
  struct watcher : host::write_watcher {
    sim::time_ps at = 0;
    void memory_written(std::uint64_t, std::uint32_t, sim::time_ps t) override { at = t; }
  } w;
  b.memory.watch(buffer.address, 64, w);
  const auto source = pattern(64, 1);
  b.clients[0]->queue(write_request(buffer.address, 64, source.data()));
  b.run_ns(1000);
  const sim::time_ps took = w.at - b.clients[0]->sent[0];
  std::printf("write visible after %.1f ns\n", static_cast<double>(took) / 1000);
  EXPECT_NEAR(static_cast<double>(took), 160'000, 10'000);
  b.memory.unwatch(buffer.address, 64, w);
  w.at = 0;
  b.clients[0]->queue(write_request(buffer.address, 64, source.data()));
  b.run_ns(1000);
  EXPECT_EQ(w.at, 0u);
}

TEST(pcie_dma, tags_bound_the_packets_in_flight) {
  options o;
  o.endpoint.dma.tags = 2;
  bench b(o);
  const auto buffer = b.memory.allocate(64 << 10);
  const auto source = pattern(64 << 10, 8);
  std::memcpy(buffer.pointer, source.data(), source.size());
  std::vector<std::uint8_t> back(64 << 10);
  b.clients[0]->queue(read_request(buffer.address, 64 << 10, back.data()));
  b.run_ns(60'000);
  ASSERT_EQ(b.clients[0]->answers.size(), 1u);
  EXPECT_EQ(back, source);
  // Little: two packets of 512 bytes a round trip.
  const double ns = static_cast<double>(b.clients[0]->answers[0].at - b.clients[0]->sent[0]) / 1000;
  EXPECT_GT(ns, 64 * 300.0);
  EXPECT_GT(b.stat("pcie.dma.tags_used_up"), 50u);
}

TEST(pcie_dma, reads_of_a_client_in_flight_are_bounded) {
  options o;
  o.endpoint.dma.reads_per_client = 3;
  bench b(o);
  const auto buffer = b.memory.allocate(4096);
  std::vector<std::uint8_t> back(4096);
  b.up.record = true;
  for (unsigned i = 0; i < 10; ++i)
    b.clients[0]->queue(read_request(buffer.address + 64 * i, 64, back.data() + 64 * i, i));
  b.run_ns(200);
  EXPECT_EQ(b.up.packets.size(), 3u);
  b.run_ns(3000);
  EXPECT_EQ(b.clients[0]->answers.size(), 10u);
}

TEST(pcie_dma, cycles_with_as_many_reads_as_may_be_are_counted) {
  options o;
  o.endpoint.dma.reads_per_client = 3;
  o.clients = 2;
  bench b(o);
  const auto buffer = b.memory.allocate(4096);
  std::vector<std::uint8_t> back(4096);
  const auto read = [&](unsigned client, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      b.clients[client]->queue(read_request(buffer.address + 64 * i, 64, back.data() + 64 * i, i));
    b.run_ns(3000);
  };
  const auto full = [&](unsigned client) { return b.endpoint.dma().clients().full_cycles(client); };
  // From the start of the last one that may be under way to the answer behind which there is one fewer.
  const auto between = [&](unsigned client, unsigned started, unsigned answered) {
    const dma_client& c = *b.clients[client];
    return b.core.edge_at_or_after(c.answers[answered].at) - b.core.edge_at_or_after(c.sent[started]);
  };
  read(0, 2);
  EXPECT_EQ(full(0), 0u);
  read(0, 3);
  ASSERT_EQ(b.clients[0]->answers.size(), 5u);
  const std::uint64_t once = full(0);
  EXPECT_GT(once, 100u);
  EXPECT_LE(once, between(0, 4, 2));
  EXPECT_GE(once + 6, between(0, 4, 2));
  read(1, 9);
  ASSERT_EQ(b.clients[1]->answers.size(), 9u);
  EXPECT_LE(full(1), between(1, 2, 6));
  EXPECT_GE(full(1) + 6 * 7, between(1, 2, 6)) << "the next one is started at once when one is answered";
  EXPECT_EQ(full(0), once);
}

TEST(pcie_dma, posted_credits_bound_writes_and_the_wait_is_told) {
  options o;
  o.root.posted_headers = 2;
  bench b(o);
  b.spans.enable(true);
  const auto buffer = b.memory.allocate(64 << 10);
  const auto source = pattern(16 << 10, 9);
  auto r = write_request(buffer.address, 16 << 10, source.data(), 1, true);
  r.span = b.spans.open(b.time());
  b.clients[0]->queue(r);
  b.run_ns(40'000);
  ASSERT_EQ(b.clients[0]->answers.size(), 1u);
  EXPECT_EQ(std::memcmp(buffer.pointer, source.data(), source.size()), 0);
  EXPECT_GT(b.stat("pcie.link.credit_stalls"), 10u);
  const sim::span& s = b.spans[r.span];
  ASSERT_EQ(s.count(), 5u);
  EXPECT_STREQ(s[0].stage, "turn");  // from where the bench has queued it
  EXPECT_EQ(s[0].waited, sim::wait::arbitration);
  EXPECT_STREQ(s[1].stage, "dma");
  EXPECT_EQ(s[1].waited, sim::wait::none);
  EXPECT_STREQ(s[2].stage, "packets");
  EXPECT_EQ(s[2].waited, sim::wait::pcie_credit);
  EXPECT_GT(s[2].at, s[1].at);
  EXPECT_STREQ(s[3].stage, "link");
  EXPECT_EQ(s[3].waited, sim::wait::pcie);
  EXPECT_GT(s[3].at, s[2].at);
  EXPECT_STREQ(s[4].stage, "memory write");
  EXPECT_GT(s[4].at, s[3].at);
}

TEST(pcie_dma, a_read_sees_the_write_started_before_it) {
  bench b;
  const auto buffer = b.memory.allocate(16 << 10);
  const auto source = pattern(8192, 11);
  std::vector<std::uint8_t> back(8192);
  b.clients[0]->queue(write_request(buffer.address, 8192, source.data()));
  b.clients[0]->queue(read_request(buffer.address, 8192, back.data()));
  b.run_ns(6000);
  EXPECT_EQ(back, source);
}

TEST(pcie_dma, packets_of_two_writes_are_not_mixed_and_clients_take_turns) {
  bench b;
  const auto buffer = b.memory.allocate(1 << 20);
  const auto source = pattern(4096, 12);
  b.up.record = true;
  for (unsigned i = 0; i < 8; ++i) {
    b.clients[0]->queue(write_request(buffer.address + i * 4096, 2048, source.data()));
    b.clients[1]->queue(write_request(buffer.address + (64 + i) * 4096, 64, source.data()));
  }
  b.run_ns(8000);
  std::uint64_t expected_next = 0;
  unsigned small_before_last_big = 0, bigs = 0;
  for (const auto& s : b.up.packets) {
    if (expected_next != 0) {
      ASSERT_EQ(s.packet->address, expected_next);
    }
    expected_next = s.packet->address + s.packet->length;
    if (s.packet->length == 64 || expected_next % 4096 == 2048) expected_next = 0;
    if (s.packet->length == 256) ++bigs;
    if (s.packet->length == 64 && bigs < 64) ++small_before_last_big;
  }
  EXPECT_EQ(bigs, 64u);
  EXPECT_GE(small_before_last_big, 7u);
}

TEST(pcie_dma, a_slow_client_does_not_hold_up_another) {
  bench b;
  const auto buffer = b.memory.allocate(4096);
  std::vector<std::uint8_t> back(4096);
  b.clients[0]->take_answers = false;
  for (unsigned i = 0; i < 30; ++i) b.clients[0]->queue(read_request(buffer.address, 64, back.data(), i));
  b.run_ns(3000);
  for (unsigned i = 0; i < 30; ++i) b.clients[1]->queue(read_request(buffer.address, 64, back.data(), i));
  b.run_ns(4000);
  EXPECT_EQ(b.clients[1]->answers.size(), 30u);
  EXPECT_TRUE(b.clients[0]->answers.empty());
  b.clients[0]->resume();
  b.run_ns(4000);
  EXPECT_EQ(b.clients[0]->answers.size(), 30u);
}

TEST(pcie_dma, unbacked_memory_is_unsupported) {
  bench b;
  const auto buffer = b.memory.allocate(4096);
  std::vector<std::uint8_t> back(8192, 0x11);
  b.clients[0]->queue(read_request(0x10, 64, back.data(), 1));
  b.clients[0]->queue(read_request(buffer.address, 8192, back.data(), 2));  // the second page is nobody's
  b.clients[0]->queue(write_request(buffer.address + 4096, 64, back.data(), 3, true));
  b.clients[0]->queue(read_request(buffer.address, 64, back.data(), 4));
  b.run_ns(8000);
  std::map<std::uint64_t, pcie::dma_status> got;
  for (const auto& a : b.clients[0]->answers) got[a.response.tag] = a.response.status;
  EXPECT_EQ(got, (std::map<std::uint64_t, pcie::dma_status>{{1, pcie::dma_status::unsupported_request},
                                                            {2, pcie::dma_status::unsupported_request},
                                                            {3, pcie::dma_status::ok},  // posted: nobody tells
                                                            {4, pcie::dma_status::ok}}));
  EXPECT_EQ(b.stat("root.unsupported_writes"), 1u);
  EXPECT_EQ(b.endpoint.dma().tags_in_use(), 0u);
  EXPECT_NE(b.config_read(0x06, 2) & 0x2000, 0u);  // received master abort
}

/// No request goes round the end of the address space to its beginning.
TEST(pcie_dma, ranges_end_with_the_address_space) {
  bench b;
  std::vector<std::uint8_t> back(8192, 0x11);
  b.down.record = b.up.record = true;
  const std::uint64_t end = ~std::uint64_t{0};
  b.clients[0]->queue(read_request(end - 31, 64, back.data(), 1));
  b.clients[0]->queue(write_request(end - 31, 33, back.data(), 2, true));
  b.clients[0]->queue(read_request(end, 2, back.data(), 3));
  b.run_ns(8000);
  ASSERT_EQ(b.clients[0]->answers.size(), 3u);
  for (const auto& a : b.clients[0]->answers)
    EXPECT_EQ(a.response.status, pcie::dma_status::unsupported_request) << a.response.tag;
  EXPECT_TRUE(b.up.packets.empty());
  b.clients[0]->queue(read_request(end - 31, 32, back.data(), 4));  // the last bytes are asked for, and nobody's
  b.run_ns(8000);
  EXPECT_EQ(b.up.packets.size(), 1u);
  EXPECT_EQ(b.clients[0]->answers.back().response.status, pcie::dma_status::unsupported_request);
}

TEST(pcie_dma, refused_without_bus_mastering) {
  bench b;
  b.config_write(0x04, 0x0002, 2);
  const auto buffer = b.memory.allocate(4096);
  std::vector<std::uint8_t> back(64);
  b.clients[0]->queue(read_request(buffer.address, 64, back.data(), 1));
  b.clients[0]->queue(write_request(buffer.address, 64, back.data(), 2, true));
  b.clients[0]->queue(write_request(buffer.address, 64, back.data(), 3, false));
  b.up.record = true;
  b.run_ns(2000);
  ASSERT_EQ(b.clients[0]->answers.size(), 2u);
  for (const auto& a : b.clients[0]->answers) EXPECT_EQ(a.response.status, pcie::dma_status::unsupported_request);
  EXPECT_TRUE(b.up.packets.empty());
  EXPECT_EQ(b.stat("pcie.dma.refused_requests"), 3u);
}

/// Cycles of the adapter from a read of 1024 bytes to its answer, when no more than the last `limit` bytes of a read
/// are put down behind its last packet.
sim::cycle_t cycles_of_a_read(std::uint32_t limit) {
  return rnic::bench::in_child([limit] {
    options o;
    o.endpoint.dma.fill_limit_bytes = limit;
    bench b(o);
    const auto buffer = b.memory.allocate(4096);
    std::vector<std::uint8_t> back(1024);
    b.clients[0]->queue(read_request(buffer.address, 1024, back.data()));
    b.run_ns(4000);
    return b.core.edge_at_or_after(b.clients[0]->answers.at(0).at) - b.core.edge_at_or_after(b.clients[0]->sent.at(0));
  });
}

/// 16 bytes a cycle: 1024 take 64 cycles, 256 take 16 and 64 take 4.
TEST(pcie_dma, no_more_than_the_limit_of_a_read_is_put_down_behind_it) {
  const sim::cycle_t all = cycles_of_a_read(1024);
  EXPECT_EQ(cycles_of_a_read(4096), all);
  EXPECT_EQ(all - cycles_of_a_read(256), 48u);
  EXPECT_EQ(all - cycles_of_a_read(64), 60u);
}

TEST(pcie_dma, lost_completions_time_out_and_late_ones_are_counted) {
  options o;
  o.endpoint.dma.completion_timeout_ps = 50'000'000;
  bench b(o);
  const auto buffer = b.memory.allocate(4096);
  std::vector<std::uint8_t> back(2048);
  b.up.swallow_reads = b.up.record = true;
  b.clients[0]->queue(read_request(buffer.address, 2048, back.data(), 1));
  b.run_ns(49'000);
  EXPECT_TRUE(b.clients[0]->answers.empty());
  b.run_ns(2'000);
  ASSERT_EQ(b.clients[0]->answers.size(), 1u);
  EXPECT_EQ(b.clients[0]->answers[0].response.status, pcie::dma_status::timeout);
  EXPECT_EQ(b.stat("pcie.dma.completion_timeouts"), 4u);
  payload::tlp_ptr late = b.pool.get();
  late->type = payload::tlp_type::completion;
  late->tag = b.up.packets[0].packet->tag;
  late->length = late->byte_count = 512;
  b.endpoint.deliver(late, b.time() + 1000);
  b.up.swallow_reads = false;
  b.clients[0]->queue(read_request(buffer.address, 64, back.data(), 2));
  b.run_ns(2000);
  EXPECT_EQ(b.stat("pcie.dma.unexpected_completions"), 1u);
  ASSERT_EQ(b.clients[0]->answers.size(), 2u);
  EXPECT_EQ(b.clients[0]->answers[1].response.status, pcie::dma_status::ok);
}

TEST(pcie_dma, aborted_and_poisoned_completions_are_told) {
  bench b;
  const auto buffer = b.memory.allocate(4096);
  std::vector<std::uint8_t> back(64, 0x11);
  b.up.swallow_reads = b.up.record = true;
  b.clients[0]->queue(read_request(buffer.address, 64, back.data(), 1));
  b.clients[0]->queue(read_request(buffer.address, 64, back.data(), 2));
  b.run_ns(500);
  ASSERT_EQ(b.up.packets.size(), 2u);
  for (unsigned i = 0; i < 2; ++i) {
    payload::tlp_ptr t = b.pool.get();
    t->type = payload::tlp_type::completion;
    t->tag = b.up.packets[i].packet->tag;
    if (i == 0) t->status = payload::tlp_status::completer_abort;
    if (i == 1) t->poisoned = true;
    t->length = i == 0 ? 0 : 64;
    t->byte_count = 64;
    b.endpoint.deliver(t, b.time() + 1000);
  }
  b.run_ns(500);
  ASSERT_EQ(b.clients[0]->answers.size(), 2u);
  EXPECT_EQ(b.clients[0]->answers[0].response.status, pcie::dma_status::completer_abort);
  EXPECT_EQ(b.clients[0]->answers[1].response.status, pcie::dma_status::poisoned);
  EXPECT_EQ(back, std::vector<std::uint8_t>(64, 0x11));
}

/// Of the mixed run: whether each write is a message whose time is recorded, which takes it step by step.
enum class writes { plain, recorded };

/// A mixed run as text: every packet with its time, every answer, every counter.
std::string record_of(bool always_tick, std::uint64_t shuffle, std::uint32_t core_khz, writes kind = writes::plain,
                      std::uint32_t posted_headers = 6) {
  options o;
  o.always_tick = always_tick;
  o.shuffle = shuffle;
  o.endpoint.dma.tags = 4;
  o.endpoint.dma.reads_per_client = 2;
  o.endpoint.core.khz = core_khz;
  o.endpoint.core.crossing_packets = 3;
  o.root.posted_headers = posted_headers;
  o.clients = 3;
  bench b(o);
  b.spans.enable(kind == writes::recorded);
  b.program_vector(0);
  b.config_write(0x9e, 0x8000, 2);
  b.up.record = b.down.record = true;
  const auto buffer = b.memory.allocate(1 << 20);
  const auto source = pattern(8192, 20);
  std::vector<std::uint8_t> back(1 << 16);
  std::mt19937 rng(21);
  for (unsigned i = 0; i < 60; ++i) {
    dma_client& c = *b.clients[rng() % 3];
    const auto at = buffer.address + rng() % 100'000;
    const auto length = static_cast<std::uint32_t>(1 + rng() % 3000);
    if (rng() % 2 != 0) {
      pcie::dma_request r = write_request(at, length, source.data(), i, rng() % 2 != 0);
      if (kind == writes::recorded) r.span = b.spans.open(b.time());
      c.queue(r);
    } else {
      c.queue(read_request(at, length, back.data(), i));
    }
    if (i % 7 == 0) b.interrupts.raise(0);
    if (i % 3 == 0) {
      EXPECT_TRUE(b.root.mmio_store(b.bar2_at + 64 * i, source.data(), 8, 0));
    }
    if (i % 5 == 0) {
      EXPECT_TRUE(b.root.start_mmio_read(b.bar0_at + 4 * i, 4, b.reads, i));
    }
    b.run_ns(rng() % 400);
  }
  b.run_ns(20'000);
  std::string text;
  for (const tap* t : {&b.up, &b.down})
    for (const auto& s : t->packets)
      text += std::to_string(static_cast<int>(s.packet->type)) + " " + std::to_string(s.packet->address) + " " +
              std::to_string(s.packet->length) + " " + std::to_string(s.packet->tag) + " @" +
              std::to_string(s.arrival) + "\n";
  for (const auto& c : b.clients)
    for (const auto& a : c->answers) text += std::to_string(a.response.tag) + "@" + std::to_string(a.at) + "\n";
  for (const auto& w : b.doorbell.at) text += std::to_string(w) + "\n";
  for (unsigned i = 0; i < 3; ++i) text += "full " + std::to_string(b.endpoint.dma().clients().full_cycles(i)) + "\n";
  for (const auto& [name, value] : b.stats.all()) text += name + "=" + std::to_string(*value) + "\n";
  return text;
}

/// The same from a process of its own: one SystemC kernel runs one simulation.
std::string record_in_child(bool always_tick, std::uint64_t shuffle, std::uint32_t core_khz = 0) {
  std::string text = rnic::bench::in_child([&] { return record_of(always_tick, shuffle, core_khz); });
  EXPECT_GT(text.size(), 1000u);
  return text;
}

TEST(pcie_law, sleeping_is_invisible) { EXPECT_EQ(record_in_child(false, 0), record_in_child(true, 0)); }
TEST(pcie_law, order_of_blocks_is_nothing) { EXPECT_EQ(record_in_child(false, 0), record_in_child(false, 77)); }

/// Packets that are reckoned ahead go when they would have gone one by one: with few credits and with many.
TEST(pcie_law, packets_ahead_are_where_they_would_have_been) {
  for (const std::uint32_t posted_headers : {3u, 6u, 64u}) {
    const auto run = [&](writes kind) {
      return rnic::bench::in_child([&] { return record_of(false, 0, 0, kind, posted_headers); });
    };
    EXPECT_EQ(run(writes::plain), run(writes::recorded)) << posted_headers;
  }
}

/// The PCIe core's clock slower and faster than the adapter's, and one whose edges are the host's too.
void expect_laws(std::uint32_t core_khz) {
  const std::string text = record_in_child(false, 0, core_khz);
  EXPECT_EQ(text, record_in_child(true, 0, core_khz));
  EXPECT_EQ(text, record_in_child(false, 77, core_khz));
  EXPECT_EQ(text, record_in_child(true, 78, core_khz));
  EXPECT_NE(text, record_in_child(false, 0));
}
TEST(pcie_law, a_slow_core_keeps_them) { expect_laws(125'000); }
TEST(pcie_law, a_core_of_250_mhz_keeps_them) { expect_laws(250'000); }
TEST(pcie_law, a_core_with_edges_of_the_host_keeps_them) { expect_laws(1'000'000); }

TEST(pcie_dma, a_completion_that_counts_other_bytes_is_unexpected) {
  options o;
  o.endpoint.dma.completion_timeout_ps = 50'000'000;
  bench b(o);
  const auto buffer = b.memory.allocate(4096);
  std::vector<std::uint8_t> back(512);
  b.up.swallow_reads = b.up.record = true;
  b.clients[0]->queue(read_request(buffer.address, 512, back.data(), 1));
  b.run_ns(2'000);
  payload::tlp_ptr odd = b.pool.get();
  odd->type = payload::tlp_type::completion;
  odd->tag = b.up.packets[0].packet->tag;
  odd->length = 512;
  odd->byte_count = 256;
  b.endpoint.deliver(odd, b.time() + 1000);
  b.run_ns(2'000);
  EXPECT_TRUE(b.clients[0]->answers.empty());
  EXPECT_EQ(b.stat("pcie.dma.unexpected_completions"), 1u);
}

}  // namespace
}  // namespace rnic::test
