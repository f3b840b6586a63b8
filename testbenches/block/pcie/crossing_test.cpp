// SPDX-License-Identifier: Apache-2.0
// A PCIe core with a clock of its own: when packets and credits cross, in literal picoseconds.
#include <vector>

#include "testbenches/block/pcie/bench.h"

namespace rnic::test {
namespace {

constexpr sim::time_ps wire_64 = 11'823 + 60'000;  // 88 bytes, and the way to the other end

options crossed(std::uint32_t khz = 250'000) {
  options o;
  o.endpoint.core.khz = khz;
  return o;
}

/// Arrivals at the root complex of writes of `length` bytes that are asked for one a cycle.
std::vector<sim::time_ps> writes(bench& b, unsigned count, std::uint32_t length) {
  static const std::vector<std::uint8_t> source(4096, 7);
  b.up.packets.clear();
  b.up.record = true;
  const auto buffer = b.memory.allocate(4096);
  for (unsigned i = 0; i < count; ++i) b.clients[0]->queue(write_request(buffer.address, length, source.data()));
  b.run_ns(4000);
  std::vector<sim::time_ps> at;
  for (const auto& p : b.up.packets) at.push_back(p.arrival);
  return at;
}

// The client asks at 50'002'341; at the adapter's next edge, 50'004'683, the packet is written into the crossing.
TEST(pcie_crossing, a_packet_is_seen_two_flip_flops_behind_the_next_edge) {
  bench b(crossed());
  const auto at = writes(b, 1, 64);
  EXPECT_EQ(b.clients[0]->sent[0], 50'002'341u);
  EXPECT_EQ(at, (std::vector<sim::time_ps>{50'016'000 + wire_64})) << "flip-flops at 50'008'000 and 50'012'000";
}

TEST(pcie_crossing, a_longer_chain_takes_longer) {
  options o = crossed();
  o.endpoint.core.synchroniser_stages = 4;
  bench b(o);
  EXPECT_EQ(writes(b, 1, 64), (std::vector<sim::time_ps>{50'024'000 + wire_64}));
}

TEST(pcie_crossing, a_faster_core_sees_it_sooner) {
  bench b(crossed(1'000'000));
  EXPECT_EQ(writes(b, 1, 64), (std::vector<sim::time_ps>{50'007'000 + wire_64}));
}

TEST(pcie_crossing, setting_a_request_up_takes_cycles_of_the_core) {
  options o = crossed();
  o.endpoint.core.request_setup_cycles = 3;
  bench b(o);
  // Three for the set-up and four for the beats of each.
  EXPECT_EQ(writes(b, 3, 64),
            (std::vector<sim::time_ps>{50'028'000 + wire_64, 50'056'000 + wire_64, 50'084'000 + wire_64}));
}

TEST(pcie_crossing, a_packet_starts_when_the_one_before_has_passed_the_interface) {
  options o = crossed();
  o.endpoint.core.interface_bytes = 4;  // 16 beats
  bench b(o);
  const sim::server& interface = *b.core_side->clock().servers().front();
  const std::uint64_t before = interface.busy_cycles();
  EXPECT_EQ(writes(b, 3, 64),
            (std::vector<sim::time_ps>{50'016'000 + wire_64, 50'080'000 + wire_64, 50'144'000 + wire_64}));
  EXPECT_EQ(interface.busy_cycles() - before, 48u);
}

// The core takes the packet at 50'016'000; the adapter's flip-flops see the slot at 50'016'393 and 50'018'735, so the
// next one is written at 50'021'077, and has its own flip-flops at 50'024'000 and 50'028'000.
TEST(pcie_crossing, one_slot_is_free_after_the_way_of_both_pointers) {
  options o = crossed();
  o.endpoint.core.crossing_packets = 1;
  bench b(o);
  EXPECT_EQ(writes(b, 3, 64),
            (std::vector<sim::time_ps>{50'016'000 + wire_64, 50'032'000 + wire_64, 50'048'000 + wire_64}));
}

// The host has written the first at 50'168'000; its credit is here 80 ns later, at an edge of the core, seen by the
// adapter at 50'252'927, the third edge behind it, and the packet is at the core at 50'264'000.
TEST(pcie_crossing, credits_cross_as_well) {
  options o = crossed();
  o.root.posted_headers = 1;
  bench b(o);
  EXPECT_EQ(writes(b, 2, 64), (std::vector<sim::time_ps>{50'016'000 + wire_64, 50'264'000 + wire_64}));
  EXPECT_EQ(b.stat("pcie.link.credit_stalls"), 1u);
}

// From 50'320'000 on the data takes eight beats, the last at 50'348'000; the adapter sees it at 50'353'629, fills eight
// cycles, and the client has the answer in the one behind.
TEST(pcie_crossing, a_completion_crosses_with_its_last_beat) {
  bench b(crossed());
  std::vector<std::uint8_t> back(128);
  const auto buffer = b.memory.allocate(4096);
  b.down.record = true;
  b.clients[0]->queue(read_request(buffer.address, 128, back.data()));
  b.run_ns(2000);
  EXPECT_EQ(b.down.packets.at(0).arrival, 50'319'883u);
  EXPECT_EQ(b.clients[0]->answers.at(0).at, 50'374'707u);
}

// It is here at 50'111'762, taken at 50'112'000, seen at 50'117'096, and in the channel one cycle.
TEST(pcie_crossing, a_doorbell_crosses) {
  bench b(crossed());
  b.spans.enable(true);
  b.down.record = true;
  const std::uint32_t value = 1;
  const sim::span_id id = b.spans.open(b.time());
  EXPECT_TRUE(b.root.mmio_store(b.bar2_at, &value, 4, id));
  b.run_ns(500);
  EXPECT_EQ(b.down.packets.at(0).arrival, 50'111'762u);
  EXPECT_EQ(b.doorbell.at.at(0), 50'119'437u);
  const sim::span& s = b.spans[id];
  ASSERT_EQ(s.count(), 6u);  // post, store path, link, receive, crossing, mmio write
  EXPECT_EQ(s[3].at, 50'112'000u);
  EXPECT_EQ(s[4].at, 50'117'096u);
}

/// A write without credits must not hold up reads that were started before it.
TEST(pcie_crossing, what_has_no_credits_does_not_enter) {
  options o = crossed();
  o.endpoint.core.crossing_packets = 1;
  o.root.posted_headers = 1;
  bench b(o);
  const std::vector<std::uint8_t> source(64, 3);
  std::vector<std::uint8_t> back(2048);
  const auto buffer = b.memory.allocate(4096);
  b.up.record = true;
  b.clients[1]->queue(read_request(buffer.address + 2048, 2048, back.data()));  // four packets
  for (unsigned i = 0; i < 2; ++i) b.clients[0]->queue(write_request(buffer.address, 64, source.data()));
  b.run_ns(200);
  unsigned reads = 0;
  for (const auto& p : b.up.packets) reads += p.packet->type == payload::tlp_type::mem_read ? 1 : 0;
  EXPECT_EQ(reads, 4u);
  EXPECT_EQ(b.up.packets.size(), 5u);
  b.run_ns(2000);
  EXPECT_EQ(b.up.packets.size(), 6u);
}

}  // namespace
}  // namespace rnic::test
