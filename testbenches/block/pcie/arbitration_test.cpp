// SPDX-License-Identifier: Apache-2.0
// What goes first in the DMA engine, packet by packet: reads against writes, client against client, limits reached
// exactly.
#include <string>

#include "testbenches/bench/held_up.h"
#include "testbenches/block/pcie/bench.h"

namespace rnic::test {
namespace {

/// The packets that went up: R or W with the client whose pages they are on, client n's being 64 KiB each from
/// 64 KiB * n on.
std::string order_of(const bench& b, std::uint64_t base) {
  std::string text;
  for (const auto& s : b.up.packets) {
    if (!text.empty()) text += ' ';
    text += s.packet->type == payload::tlp_type::mem_read ? 'R' : 'W';
    text += std::to_string((s.packet->address - base) >> 16);
  }
  return text;
}

struct contest : bench {
  explicit contest(const options& o = {}) : bench(o), buffer(memory.allocate(256 << 10)), data(8192) {
    up.record = true;
  }
  void read(unsigned client, std::uint32_t length, std::uint64_t tag = 0) {
    clients[client]->queue(read_request(buffer.address + (client << 16), length, data.data(), tag));
  }
  void write(unsigned client, std::uint32_t length, std::uint32_t at = 0) {
    clients[client]->queue(write_request(buffer.address + (client << 16) + at, length, data.data()));
  }
  std::string order() const { return order_of(*this, buffer.address); }
  std::vector<sim::time_ps> gaps() const {
    std::vector<sim::time_ps> g;
    for (std::size_t i = 1; i < up.packets.size(); ++i) g.push_back(up.packets[i].arrival - up.packets[i - 1].arrival);
    return g;
  }
  host::host_memory::buffer buffer;
  std::vector<std::uint8_t> data;
};

/// Of two that ask in the same cycle the first in turn starts, the other a cycle later: from there on a packet of the
/// write and one of the read, as long as there are both.
TEST(pcie_arbitration, a_read_and_the_write_that_starts_behind_it_take_turns_packet_by_packet) {
  contest b;
  b.read(0, 4096);
  b.write(1, 1024);
  b.run_ns(3000);
  EXPECT_EQ(b.order(), "R0 W1 R0 W1 R0 W1 R0 W1 R0 R0 R0 R0");
  EXPECT_EQ(b.stat("pcie.dma.read_packets"), 8u);
  EXPECT_EQ(b.stat("pcie.dma.write_packets"), 4u);
}

/// Completions of 64 bytes keep the link busy for 700 ns. A store that comes to the link in the middle finds there what
/// the transmit buffer holds, 80 ns, and the packet that was let in last: 84 bytes of 0.134 ns each. Then come its own
/// 32, and the link's 60 ns.
TEST(pcie_arbitration, a_store_waits_for_what_the_transmit_buffer_holds_and_no_more) {
  options o;
  o.root.completion_bytes = 64;
  contest b(o);
  b.down.record = true;
  const std::uint64_t word = 7;
  sim::time_ps least = ~sim::time_ps{0}, most = 0;
  for (unsigned offset = 250; offset < 1300; offset += 17) {
    b.down.packets.clear();
    b.read(0, 4096, offset);
    b.run_ns(offset);
    const sim::time_ps at_link = b.time() + 48'000;
    ASSERT_TRUE(b.root.mmio_store(b.bar2_at, &word, 8, 0));
    b.run_ns(4000);
    ASSERT_EQ(b.down.packets.size(), 65u);
    for (const auto& s : b.down.packets) {
      if (s.packet->type != payload::tlp_type::mem_write) continue;
      least = std::min(least, s.arrival - at_link);
      most = std::max(most, s.arrival - at_link);
    }
  }
  EXPECT_LT(least, 60'000u + 4'500 + 1'000) << "some find the link idle";
  EXPECT_GT(most, 80'000u + 4'000 + 60'000) << "some find the buffer full";
  EXPECT_LE(most, 80'000u + 11'300 + 4'500 + 60'000 + 1'000);
}

TEST(pcie_arbitration, no_read_starts_while_a_write_has_packets_to_send) {
  contest b;
  b.write(0, 1024);
  b.read(1, 1024);
  b.run_ns(3000);
  EXPECT_EQ(b.order(), "W0 W0 W0 W0 R1 R1");
}

TEST(pcie_arbitration, readers_take_turns_packet_by_packet) {
  options o;
  o.clients = 3;
  contest b(o);
  b.read(0, 2048);
  b.read(1, 2048);
  b.read(2, 1024);
  b.run_ns(3000);
  EXPECT_EQ(b.order(), "R0 R1 R2 R0 R1 R2 R0 R1 R0 R1");
}

TEST(pcie_arbitration, writers_take_turns_request_by_request) {
  options o;
  o.clients = 3;
  contest b(o);
  for (unsigned i = 0; i < 3; ++i) {
    b.write(0, 512, 512 * i);
    b.write(2, 64, 64 * i);
  }
  b.write(1, 256);
  b.run_ns(3000);
  EXPECT_EQ(b.order(), "W0 W0 W1 W2 W0 W0 W2 W0 W0 W2");
}

/// A client's own requests keep their order: the read behind the write starts behind it.
TEST(pcie_arbitration, requests_of_a_client_start_in_order) {
  contest b;
  b.read(0, 512);
  b.write(0, 512);
  b.read(0, 512);
  b.write(1, 64);
  b.run_ns(3000);
  EXPECT_EQ(b.order(), "R0 W1 W0 W0 R0");
}

/// 64-bit addresses, 8 GT/s x 8 at 94.5 %: 134.342.. ps a byte. A read is 24 B (3 225 ps), a write of 256 B 280 B
/// (37 616 ps); rounded up each. What the data path to the core takes (16 beats of 2 342 ps for 256 B) is less than the
/// wire's. The core clock is 427 MHz.
TEST(pcie_arbitration, packets_follow_each_other_on_the_wire_without_a_gap) {
  contest b;
  b.read(0, 4096);
  b.write(1, 1024);
  b.run_ns(3000);
  ASSERT_EQ(b.up.packets.size(), 12u);
  // Pushed at one edge and sent at the next, 60 ns of the link later it is there.
  EXPECT_EQ(b.up.packets[0].arrival - b.clients[0]->sent.at(0), 2'342u + 3'225u + 60'000u);
  EXPECT_EQ(b.gaps(), (std::vector<sim::time_ps>{37'616, 3'225, 37'616, 3'225, 37'616, 3'225, 37'616, 3'225, 3'225,
                                                 3'225, 3'225}));
}

/// Four tags: four read packets are under way, not a fifth, and the fifth goes as soon as one has come back.
TEST(pcie_arbitration, as_many_reads_are_under_way_as_there_are_tags) {
  options o;
  o.endpoint.dma.tags = 4;
  contest b(o);
  b.up.swallow_reads = true;
  b.read(0, 4096);
  b.run_ns(2000);
  EXPECT_EQ(b.up.packets.size(), 4u);
  EXPECT_EQ(b.endpoint.dma().tags_in_use(), 4u);
  EXPECT_EQ(b.stat("pcie.dma.tags_used_up"), 1u);
  b.write(1, 256);  // a write needs no tag
  b.run_ns(2000);
  EXPECT_EQ(b.order(), "R0 R0 R0 R0 W1");
  b.up.swallow_reads = false;
  payload::tlp_ptr t = b.pool.get();
  t->type = payload::tlp_type::completion;
  t->tag = b.up.packets[2].packet->tag;
  t->length = t->byte_count = 512;
  b.endpoint.deliver(t, b.time() + 1000);
  b.run_ns(2000);
  EXPECT_EQ(b.up.packets.size(), 9u) << "the other four, with the one tag that came back";
  EXPECT_EQ(b.endpoint.dma().tags_in_use(), 3u);
}

/// The last tag taken by the last packet is no shortage.
TEST(pcie_arbitration, exactly_as_many_packets_as_tags) {
  options o;
  o.endpoint.dma.tags = 4;
  contest b(o);
  b.read(0, 2048);
  b.run_ns(3000);
  EXPECT_EQ(b.up.packets.size(), 4u);
  EXPECT_EQ(b.clients[0]->answers.size(), 1u);
  EXPECT_EQ(b.endpoint.dma().tags_in_use(), 0u);
}

/// Without posted credit the write waits and the reads go on.
TEST(pcie_arbitration, a_write_without_credit_lets_reads_pass) {
  options o;
  o.root.posted_headers = 1;
  contest b(o);
  b.read(0, 4096);
  b.write(1, 1024);
  b.run_ns(4000);
  EXPECT_EQ(b.order(), "R0 W1 R0 R0 R0 R0 R0 R0 R0 W1 W1 W1");
}

/// Behind the read in turn, in front of the write that comes round again.
TEST(pcie_arbitration, an_interrupt_has_its_turn_among_the_clients) {
  contest b;
  b.program_vector(0);
  b.config_write(0x9e, 0x8000, 2);
  b.up.packets.clear();
  b.write(0, 64);
  b.write(0, 64, 64);
  b.write(1, 64);
  b.interrupts.raise(0);
  b.run_ns(1000);
  ASSERT_EQ(b.up.packets.size(), 4u);
  std::vector<std::uint64_t> at;
  for (const auto& s : b.up.packets)
    at.push_back(s.packet->address == 0xfee0'0000 ? 99 : s.packet->address - b.buffer.address);
  EXPECT_EQ(at, (std::vector<std::uint64_t>{0, 1 << 16, 99, 64}));
}

std::string held_up(const bench& b) { return rnic::bench::held_up(b.core, "pcie.interface"); }

// 259'953 ps from a packet to the next are 111 cycles, of which the packet takes 16.
TEST(pcie_held_up, by_credits) {
  options o;
  o.root.posted_headers = 1;
  contest b(o);
  b.write(1, 1024);
  b.run_ns(4000);
  EXPECT_EQ(b.gaps(), (std::vector<sim::time_ps>{259'954, 259'953, 259'953}));
  EXPECT_EQ(held_up(b), "credits 285; ");
}

// Four packets, of a cycle each: two at edges 21'352 and 21'353, the others at 21'505 and 21'537 with the tags of
// these.
TEST(pcie_held_up, by_tags) {
  options o;
  o.endpoint.dma.tags = 2;
  contest b(o);
  b.read(0, 2048);
  b.run_ns(4000);
  EXPECT_EQ(b.up.packets.size(), 4u);
  EXPECT_EQ(held_up(b), "tags 182; ");
}

// Of two lanes a packet takes 150'463 ps. The first is at the interface at edge 21'352; the last one of eight when the
// seven before it are 80 ns from their end, 21'768. Seven times 16 of these cycles are the packets'.
TEST(pcie_held_up, by_the_link) {
  options o;
  o.endpoint.link.width = 2;
  contest b(o);
  b.write(1, 2048);
  b.run_ns(4000);
  EXPECT_EQ(b.gaps(), std::vector<sim::time_ps>(7, 150'463));
  EXPECT_EQ(held_up(b), "link 304; ");
}

// The same behind a crossing: at 250 MHz the first packet is at the core's interface at edge 12'504, the last at
// 12'748.
TEST(pcie_held_up, by_the_link_behind_a_crossing) {
  options o;
  o.endpoint.link.width = 2;
  o.endpoint.core.khz = 250'000;
  contest b(o);
  b.write(1, 2048);
  b.run_ns(4000);
  EXPECT_EQ(b.gaps(), std::vector<sim::time_ps>(7, 150'463));
  EXPECT_EQ(rnic::bench::held_up(b.core_side->clock(), "pcie_core.interface"), "link 132; ");
}

}  // namespace
}  // namespace rnic::test
