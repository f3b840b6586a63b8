// SPDX-License-Identifier: Apache-2.0
// Configuration space, BARs and MSI-X as software on the bus sees them.
#include "model/pcie/pcie_cr.h"
#include "testbenches/bench/held_up.h"
#include "testbenches/block/pcie/bench.h"

namespace rnic::test {
namespace {

struct reset_log : pcie::function_listener_if {
  void functions_enabled() override { ++enabled; }
  unsigned enabled = 0;
  unsigned resets = 0;
  void function_level_reset(std::uint16_t) override { ++resets; }
};

TEST(pcie_config, identity_and_bar_sizes) {
  options o;
  o.set_up = false;
  bench b(o);
  EXPECT_EQ(b.config_read(0x00), 0x100715b3u);
  EXPECT_EQ(b.config_read(0x08) >> 8, 0x020000u);
  EXPECT_EQ(b.config_read(0x0e, 1), 0u);
  const std::uint32_t sizes[6] = {0xfff00004, 0xffffffff, 0xff80000c, 0xffffffff, 0, 0};
  for (unsigned i = 0; i < 6; ++i) {
    const auto at = static_cast<std::uint16_t>(0x10 + 4 * i);
    b.config_write(at, 0xffffffff);
    EXPECT_EQ(b.config_read(at), sizes[i]) << i;
    b.config_write(at, 0);
  }
  EXPECT_EQ(b.config_read(0x10), 4u);
  b.config_write(0x00, 0xffffffff);
  EXPECT_EQ(b.config_read(0x00), 0x100715b3u);
}

TEST(pcie_config, capability_lists) {
  options o;
  o.set_up = false;
  o.endpoint.space.total_vfs = 16;
  bench b(o);
  EXPECT_NE(b.config_read(0x06, 2) & 0x10, 0u);
  std::map<unsigned, unsigned> found;
  for (unsigned at = b.config_read(0x34, 1), n = 0; at != 0 && n < 20; ++n) {
    const std::uint32_t header = b.config_read(static_cast<std::uint16_t>(at));
    found[header & 0xff] = at;
    at = header >> 8 & 0xff;
  }
  EXPECT_EQ(found, (std::map<unsigned, unsigned>{{0x01, 0x40}, {0x03, 0x48}, {0x10, 0x60}, {0x11, 0x9c}}));
  std::map<unsigned, unsigned> extended;
  for (unsigned at = 0x100, n = 0; at != 0 && n < 20; ++n) {
    const std::uint32_t header = b.config_read(static_cast<std::uint16_t>(at));
    extended[header & 0xffff] = at;
    at = header >> 20;
  }
  EXPECT_EQ(extended,
            (std::map<unsigned, unsigned>{{0x000e, 0x100}, {0x0010, 0x108}, {0x0003, 0x148}, {0x0001, 0x154}}));
  EXPECT_EQ(b.config_read(0x9e, 2) & 0x7ff, 127u);
  EXPECT_EQ(b.config_read(0xa0), 0x7c000u);
  EXPECT_EQ(b.config_read(0xa4), 0x7d000u);
  EXPECT_EQ(b.config_read(0x72, 2) & 0x3ff, 3u | 8u << 4);
  EXPECT_EQ(b.config_read(0x108 + 0x0e, 2), 16u);
  EXPECT_EQ(b.config_read(0x108 + 0x1a, 2), 0x1004u);
}

TEST(pcie_config, no_sriov_without_virtual_functions) {
  bench b;
  for (unsigned at = 0x100, n = 0; at != 0 && n < 20; ++n) {
    const std::uint32_t header = b.config_read(static_cast<std::uint16_t>(at));
    EXPECT_NE(header & 0xffff, 0x0010u);
    at = header >> 20;
  }
}

TEST(pcie_config, byte_enables_and_write_one_to_clear) {
  bench b;
  b.config_write(0x3c, 0x5a, 1);
  EXPECT_EQ(b.config_read(0x3c, 2), 0x015au);
  b.config_write(0x05, 0x04, 1);  // INTx disable, the lower byte stays
  EXPECT_EQ(b.config_read(0x04, 2), 0x0406u);
  b.mmio_read(b.bar0_at + (1u << 20) + 0x1000, 4);  // behind the BAR, before BAR2
  EXPECT_EQ(b.config_read(0x6a, 2) & 0xf, 0xau);
  EXPECT_NE(b.config_read(0x158) & 1u << 20, 0u);
  b.config_write(0x6a, 0x2, 2);
  EXPECT_EQ(b.config_read(0x6a, 2) & 0xf, 0x8u);
  b.config_write(0x158, 1u << 20);
  EXPECT_EQ(b.config_read(0x158), 0u);
}

TEST(pcie_config, vital_product_data) {
  bench b;
  b.config_write(0x4a, 0x0000, 2);
  EXPECT_NE(b.config_read(0x4a, 2) & 0x8000, 0u);
  EXPECT_EQ(b.config_read(0x4c) & 0xff, 0x82u);
}

TEST(pcie_config, absent_function_is_all_ones) {
  bench b;
  ASSERT_TRUE(b.root.start_config_read(3, 0, 4, b.reads, 1));
  b.run_ns(2000);
  ASSERT_EQ(b.reads.done.count(1), 1u);
  EXPECT_EQ(b.reads.done[1].status, payload::tlp_status::unsupported_request);
  EXPECT_EQ(b.reads.done[1].data, (std::vector<std::uint8_t>{0xff, 0xff, 0xff, 0xff}));
}

TEST(pcie_config, bus_setup_finds_and_places_everything) {
  bench b;
  const auto& r = b.setup.found();
  EXPECT_TRUE(r.present);
  EXPECT_EQ(r.vendor, 0x15b3);
  EXPECT_EQ(r.device, 0x1007);
  EXPECT_EQ(r.bar_bytes[0], 1u << 20);
  EXPECT_EQ(r.bar_bytes[2], 8u << 20);
  EXPECT_EQ(r.bar_address[2] % r.bar_bytes[2], 0u);
  EXPECT_EQ(b.endpoint.configuration().now().max_payload, 256u);
  EXPECT_EQ(b.endpoint.configuration().now().max_read_request, 512u);
  EXPECT_EQ(r.express, 0x60);
  EXPECT_EQ(r.msix, 0x9c);
}

TEST(pcie_config, function_level_reset) {
  bench b;
  reset_log log;
  b.endpoint.on_function_change(log);
  b.config_write(0x68, 0x8000 | b.config_read(0x68, 2), 2);
  EXPECT_EQ(log.resets, 1u);
  EXPECT_EQ(b.config_read(0x04, 2), 0u);
  EXPECT_EQ(b.config_read(0x10), 4u);
  EXPECT_EQ(b.config_read(0x68, 2), 0x2810u);
}

// ---------------------------------------------------------------- virtual functions

constexpr std::uint16_t sriov = 0x108;

/// A card of eight virtual functions, of which `enabled` are there; their BARs begin at `bars`.
struct shared_card : bench {
  static options with_functions() {
    options o;
    o.endpoint.space.total_vfs = 8;
    return o;
  }
  explicit shared_card(unsigned enabled) : bench(with_functions()) {
    bars = bar0_at + (1ull << 32);
    config_write(sriov + 0x2c, static_cast<std::uint32_t>(bars));
    config_write(sriov + 0x30, static_cast<std::uint32_t>(bars >> 32));
    config_write(sriov + 0x10, enabled, 2);
    config_write(sriov + 0x08, 0x9, 2);
  }
  void store(unsigned function, std::uint64_t offset, const void* data, std::uint32_t bytes) {
    EXPECT_TRUE(root.mmio_store(at(function, offset), data, bytes, 0));
  }
  std::uint32_t load(unsigned function, std::uint64_t offset) {
    std::uint32_t v = 0;
    std::memcpy(&v, mmio_read(at(function, offset), 4).data.data(), 4);
    return v;
  }
  std::uint64_t at(unsigned function, std::uint64_t offset) const {
    return bars + (8u << 20) * (function - 1) + offset;
  }
  std::uint64_t bars = 0;
};

TEST(pcie_functions, come_and_go_with_their_enable_bit) {
  shared_card b(3);
  reset_log log;
  b.endpoint.on_function_change(log);
  for (unsigned f = 1; f <= 8; ++f) EXPECT_EQ(b.config_read(0x08, 4, f), f <= 3 ? 0x02000000u : 0xffffffffu) << f;
  b.config_write(sriov + 0x10, 5, 2);
  EXPECT_EQ(b.config_read(sriov + 0x10, 2), 3u) << "the number stays while they are enabled";
  b.config_write(sriov + 0x08, 0, 2);
  EXPECT_EQ(b.config_read(0x08, 4, 1), 0xffffffffu);
  b.config_write(sriov + 0x10, 200, 2);
  b.config_write(sriov + 0x08, 0x9, 2);
  EXPECT_NE(b.config_read(0x08, 4, 8), 0xffffffffu);
  EXPECT_EQ(b.config_read(0x08, 4, 9), 0xffffffffu) << "there are no more than the capability says";
  EXPECT_EQ(log.enabled, 2u);
}

/// SR-IOV specification 1.1, 3.4 and 3.5.
TEST(pcie_functions, have_registers_of_their_own) {
  shared_card b(2);
  EXPECT_EQ(b.config_read(0x00, 4, 1), 0xffffffffu);
  b.config_write(0x04, 0xffff, 2, 1);
  EXPECT_EQ(b.config_read(0x04, 2, 1), 0x0004u) << "bus mastering and nothing else";
  EXPECT_EQ(b.config_read(0x04, 2, 2), 0u);
  for (std::uint16_t bar = 0x10; bar < 0x28; bar = static_cast<std::uint16_t>(bar + 4)) {
    b.config_write(bar, 0xffffffff, 4, 1);
    EXPECT_EQ(b.config_read(bar, 4, 1), 0u);
  }
  std::map<unsigned, unsigned> found;
  for (unsigned at = b.config_read(0x34, 1, 1), n = 0; at != 0 && n < 20; ++n) {
    const std::uint32_t header = b.config_read(static_cast<std::uint16_t>(at), 4, 1);
    found[header & 0xff] = at;
    at = header >> 8 & 0xff;
  }
  EXPECT_EQ(found, (std::map<unsigned, unsigned>{{0x10, 0x60}, {0x11, 0x9c}}));
  EXPECT_EQ(b.config_read(0x100, 4, 1), 0x0001000eu) << "ARI, and no other extended capability";
  EXPECT_EQ(b.config_read(0x9e, 2, 1) & 0x7ff, 3u);
  EXPECT_EQ(b.config_read(0xa0, 4, 1), 0x2002u);
  EXPECT_EQ(b.config_read(0xa4, 4, 1), 0x3002u);
}

TEST(pcie_functions, writes_say_whose_they_are) {
  shared_card b(2);
  const std::uint8_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  b.store(1, 0x80014, data, 4);
  b.store(2, 0x80020, data, 8);
  b.store(2, 0x4, data, 4);      // its registers of the channel
  b.store(3, 0x80014, data, 4);  // nobody's
  b.run_ns(2000);
  ASSERT_EQ(b.doorbell.got.size(), 2u);
  EXPECT_EQ(b.doorbell.got[0].function, 1u);
  EXPECT_EQ(b.doorbell.got[0].offset, 0x80014u);
  EXPECT_EQ(b.doorbell.got[1].function, 2u);
  ASSERT_EQ(b.command.got.size(), 1u);
  EXPECT_EQ(b.command.got[0].function, 2u);
  EXPECT_EQ(b.command.got[0].offset, 4u);
  EXPECT_EQ(b.stats.value("pcie.unsupported_writes"), 1u);
  b.config_write(sriov + 0x08, 0x1, 2);  // memory space off
  b.store(1, 0x80014, data, 4);
  b.run_ns(2000);
  EXPECT_EQ(b.stats.value("pcie.unsupported_writes"), 2u);
}

TEST(pcie_functions, interrupts_are_pended_by_function) {
  shared_card b(2);
  const auto program = [&b](unsigned function, unsigned vector, std::uint32_t data, std::uint32_t mask) {
    const std::uint32_t words[] = {0xfee00000, 0, data, mask};
    for (unsigned i = 0; i < 4; ++i) b.store(function, 0x2000 + 16 * vector + 4 * i, &words[i], 4);
    b.run_ns(500);
  };
  for (unsigned f = 1; f <= 2; ++f) {
    program(f, 1, 0x100 * f, 0);
    b.config_write(0x9e, 0x8000, 2, f);
  }
  b.config_write(0x04, 4, 2, 1);  // function 2 does not master the bus yet
  b.interrupts.raise(1, 1);
  b.interrupts.raise(1, 2);
  b.interrupts.raise(3, 1);
  b.interrupts.raise(4, 1);  // no such vector
  b.interrupts.raise(1, 3);  // no such function
  b.run_ns(3000);
  ASSERT_EQ(b.log.got.size(), 1u) << "vector 3 is masked, function 2 pending";
  EXPECT_EQ(b.log.got[0].function, 1u);
  EXPECT_EQ(b.log.got[0].data, 0x100u);
  EXPECT_EQ(b.load(1, 0x3000), 1u << 3);
  EXPECT_EQ(b.load(2, 0x3000), 1u << 1);
  EXPECT_EQ(b.stats.value("pcie.dma.interrupts_dropped"), 2u);
  b.config_write(0x04, 4, 2, 2);
  program(1, 3, 0x133, 0);
  b.run_ns(3000);
  ASSERT_EQ(b.log.got.size(), 3u);
  EXPECT_EQ(b.log.got[1].function, 2u);
  EXPECT_EQ(b.log.got[1].data, 0x200u);
  EXPECT_EQ(b.log.got[2].data, 0x133u);
  EXPECT_EQ(b.load(2, 0x3000), 0u);
}

/// A function's DMA has its own routing ID, and its own pages: others' are refused in both directions.
TEST(pcie_functions, reach_their_own_pages_only) {
  shared_card b(2);
  const auto physical = b.memory.allocate(4096);
  const auto first = b.memory.allocate(4096, 4096, host::memory_class::llc, 1);
  const auto second = b.memory.allocate(4096, 4096, host::memory_class::llc, 2);
  for (unsigned f = 1; f <= 2; ++f) b.config_write(0x04, 4, 2, f);
  const host::host_memory::buffer* const pages[] = {&physical, &first, &second};
  for (std::uint16_t f = 0; f <= 2; ++f)
    for (unsigned page = 0; page <= 2; ++page) {
      std::memset(pages[page]->pointer, 0x11, 64);
      std::array<std::uint8_t, 64> got{};
      pcie::dma_request r;
      r.op = pcie::dma_request::kind::write;
      r.function = f;
      r.length = 64;
      r.address = pages[page]->address;
      r.bytes.fill(0x77);
      b.clients[0]->queue(r);
      b.run_ns(3000);
      EXPECT_EQ(pages[page]->pointer[0], f == page ? 0x77 : 0x11) << f << " " << page;
      r.op = pcie::dma_request::kind::read;
      r.destination = got.data();
      b.clients[0]->queue(r);
      b.run_ns(3000);
      ASSERT_FALSE(b.clients[0]->answers.empty());
      EXPECT_EQ(b.clients[0]->answers.back().response.status == pcie::dma_status::ok, f == page) << f << " " << page;
      EXPECT_EQ(got[5], f == page ? 0x77 : 0);
    }
  EXPECT_EQ(b.stats.value("root.unsupported_writes"), 6u);
  EXPECT_EQ(b.stats.value("root.unsupported_reads"), 6u);
}

/// From its reset on a function is still, until firmware lets it go; the others are as they were.
TEST(pcie_functions, are_held_after_their_reset) {
  shared_card b(2);
  reset_log log;
  b.endpoint.on_function_change(log);
  const auto own = b.memory.allocate(4096, 4096, host::memory_class::llc, 1);
  for (unsigned f = 1; f <= 2; ++f) b.config_write(0x04, 4, 2, f);
  b.config_write(0x68, 0x8000, 2, 1);
  EXPECT_EQ(log.resets, 1u);
  EXPECT_EQ(b.config_read(0x04, 2, 1), 0u);
  EXPECT_EQ(b.config_read(0x04, 2, 2), 4u);
  EXPECT_EQ(b.config_read(0x04, 2, 0) & 4, 4u);
  b.config_write(0x04, 4, 2, 1);
  const std::uint8_t data[4] = {1, 2, 3, 4};
  const auto try_both = [&] {
    b.store(1, 0x80014, data, 4);
    pcie::dma_request r;
    r.op = pcie::dma_request::kind::write;
    r.function = 1;
    r.length = 4;
    r.address = own.address;
    r.bytes.fill(0x77);
    b.clients[0]->queue(r);
    b.run_ns(3000);
  };
  try_both();
  EXPECT_EQ(own.pointer[0], 0);
  EXPECT_TRUE(b.doorbell.got.empty());
  EXPECT_EQ(b.stats.value("pcie.held_writes"), 1u);
  b.store(1, 0x0, data, 4);  // its channel is heard
  b.run_ns(1000);
  EXPECT_EQ(b.command.got.size(), 1u);
  const auto raise = [&b] {  // vector 1 as far as the function's own driver is concerned
    const std::uint32_t words[] = {0xfee00000, 0, 0x123, 0};
    for (unsigned i = 0; i < 4; ++i) b.store(1, 0x2000 + 16 + 4 * i, &words[i], 4);
    b.config_write(0x9e, 0x8000, 2, 1);
    b.run_ns(1000);
    b.interrupts.raise(1, 1);
    b.run_ns(3000);
  };
  raise();
  EXPECT_TRUE(b.log.got.empty());
  EXPECT_EQ(b.load(1, 0x3000), 0u) << "it does not pend either";
  EXPECT_EQ(b.stats.value("pcie.dma.interrupts_dropped"), 1u);
  b.endpoint.cr_write(pcie::cr::release_function, 1);
  raise();
  ASSERT_EQ(b.log.got.size(), 1u);
  EXPECT_EQ(b.log.got[0].data, 0x123u);
  try_both();
  EXPECT_EQ(own.pointer[0], 0x77);
  EXPECT_EQ(b.doorbell.got.size(), 1u);
}

TEST(pcie_bar, writes_reach_their_channel_in_order_with_exact_bytes) {
  bench b;
  std::uint8_t line[64];
  for (unsigned i = 0; i < 64; ++i) line[i] = static_cast<std::uint8_t>(i + 1);
  ASSERT_TRUE(b.root.mmio_store(b.bar2_at + 0x80014, line, 4, 0));
  ASSERT_TRUE(b.root.mmio_store(b.bar2_at + 0x90040, line, 64, 0));
  ASSERT_TRUE(b.root.mmio_store(b.bar0_at + 0x80680, line, 8, 0));
  ASSERT_TRUE(b.root.mmio_store(b.bar2_at + 0x80021, line, 1, 0));
  b.run_ns(1000);
  ASSERT_EQ(b.doorbell.got.size(), 3u);
  EXPECT_EQ(b.doorbell.got[0].offset, 0x80014u);
  EXPECT_EQ(b.doorbell.got[0].length, 4u);
  EXPECT_EQ(b.doorbell.got[1].offset, 0x90040u);
  EXPECT_EQ(b.doorbell.got[1].length, 64u);
  EXPECT_EQ(std::memcmp(b.doorbell.got[1].data.data(), line, 64), 0);
  EXPECT_EQ(b.doorbell.got[2].offset, 0x80021u);
  EXPECT_EQ(b.doorbell.got[2].length, 1u);
  ASSERT_EQ(b.command.got.size(), 1u);
  EXPECT_EQ(b.command.got[0].offset, 0x80680u);
  EXPECT_EQ(b.command.got[0].length, 8u);
}

TEST(pcie_bar, holes_in_byte_enables_split_a_write_and_long_ones_are_cut_at_lines) {
  bench b;
  payload::tlp_ptr t = b.pool.get();
  t->type = payload::tlp_type::mem_write;
  t->address = b.bar2_at + 0x1000;
  t->length = 8;
  t->first_be = 0x9;
  t->last_be = 0x4;
  for (unsigned i = 0; i < 8; ++i) t->data[i] = static_cast<std::uint8_t>(0x10 + i);
  b.endpoint.deliver(t, b.time() + 1000);
  payload::tlp_ptr u = b.pool.get();
  u->type = payload::tlp_type::mem_write;
  u->address = b.bar2_at + 0x2020;
  u->length = 160;
  u->completer = 0x100;
  b.endpoint.deliver(u, b.time() + 1000);
  b.run_ns(1000);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> got;
  for (const auto& w : b.doorbell.got) got.emplace_back(w.offset, w.length);
  EXPECT_EQ(got, (std::vector<std::pair<std::uint64_t, std::uint32_t>>{
                     {0x1000, 1}, {0x1003, 1}, {0x1006, 1}, {0x2020, 32}, {0x2040, 64}, {0x2080, 64}}));
  EXPECT_EQ(b.doorbell.got[1].data[0], 0x13);
  EXPECT_EQ(b.doorbell.got[2].data[0], 0x16);
}

TEST(pcie_bar, store_arrives_after_120_ns) {
  bench b;
  const sim::time_ps start = b.time();
  const std::uint8_t line[64] = {};
  ASSERT_TRUE(b.root.mmio_store(b.bar2_at + 0x80000, line, 64, 0));
  b.run_ns(1000);
  ASSERT_EQ(b.doorbell.at.size(), 1u);
  EXPECT_GE(b.doorbell.at[0] - start, 115'000u);
  EXPECT_LE(b.doorbell.at[0] - start, 130'000u);
}

TEST(pcie_bar, span_of_a_store_is_marked_on_arrival_and_handed_on) {
  bench b;
  b.spans.enable(true);
  const sim::span_id id = b.spans.open(b.time());
  const std::uint32_t v = 1;
  ASSERT_TRUE(b.root.mmio_store(b.bar2_at + 0x14, &v, 4, id));
  b.run_ns(500);
  ASSERT_EQ(b.doorbell.got.size(), 1u);
  EXPECT_EQ(b.doorbell.got[0].span, id);
  const sim::span& s = b.spans[id];
  const char* const stages[] = {"post", "store path", "link", "mmio write"};
  ASSERT_EQ(s.count(), 4u);
  for (unsigned i = 0; i < 4; ++i) EXPECT_STREQ(s[i].stage, stages[i]);
  EXPECT_STREQ(s[1].block, b.root.name().c_str());
  EXPECT_STREQ(s[2].block, s[3].block);
  EXPECT_EQ(s[0].at, s.start());
  EXPECT_LT(s[3].at, b.doorbell.at[0]);
}

TEST(pcie_bar, reads_ask_the_register_file_for_each_dword) {
  bench b;
  const auto word = b.mmio_read(b.bar0_at + 0x80698, 4);
  EXPECT_EQ(word.status, payload::tlp_status::success);
  EXPECT_EQ(word.data, (std::vector<std::uint8_t>{0xa0, 0xb8, 0xc6, 0x98}));
  const auto two = b.mmio_read(b.bar0_at + 0x85b0, 8);
  EXPECT_EQ(two.data, (std::vector<std::uint8_t>{0xa0, 0xb1, 0x45, 0xb0, 0xa0, 0xb1, 0x45, 0xb4}));
  const auto odd = b.mmio_read(b.bar0_at + 0x85b1, 2);
  EXPECT_EQ(odd.data, (std::vector<std::uint8_t>{0xb1, 0x45}));
  EXPECT_EQ(b.bar0.asked, (std::vector<std::uint64_t>{0x80698, 0x85b0, 0x85b4, 0x85b0}));
  b.mmio_read(b.bar2_at + 0x10, 4);
  EXPECT_EQ(b.bar2.asked, (std::vector<std::uint64_t>{0x10}));
}

TEST(pcie_bar, outside_and_disabled_are_unsupported) {
  bench b;
  const std::uint32_t v = 1;
  EXPECT_EQ(b.mmio_read(b.bar2_at + (8u << 20), 4).status, payload::tlp_status::unsupported_request);
  EXPECT_EQ(b.mmio_read(b.bar2_at + (8u << 20), 4).data, (std::vector<std::uint8_t>{0xff, 0xff, 0xff, 0xff}));
  EXPECT_EQ(b.mmio_read(b.bar2_at + (8u << 20) - 4, 4).status, payload::tlp_status::success);
  ASSERT_TRUE(b.root.mmio_store(b.bar2_at + (8u << 20), &v, 4, 0));
  b.run_ns(500);
  EXPECT_EQ(b.stat("pcie.unsupported_writes"), 1u);
  b.config_write(0x04, 0x0004, 2);
  EXPECT_EQ(b.mmio_read(b.bar0_at, 4).status, payload::tlp_status::unsupported_request);
  ASSERT_TRUE(b.root.mmio_store(b.bar2_at, &v, 4, 0));
  b.run_ns(500);
  EXPECT_EQ(b.stat("pcie.unsupported_writes"), 2u);
  EXPECT_TRUE(b.doorbell.got.empty());
}

TEST(pcie_bar, too_long_a_read_is_unsupported) {
  bench b;
  payload::tlp_ptr t = b.pool.get();
  t->type = payload::tlp_type::mem_read;
  t->address = b.bar0_at;
  t->length = 128;
  b.up.record = true;
  b.endpoint.deliver(t, b.time() + 1000);
  b.run_ns(1000);
  ASSERT_EQ(b.up.packets.size(), 1u);
  EXPECT_EQ(b.up.packets[0].packet->status, payload::tlp_status::unsupported_request);
}

void expect_waiting_writes_once(bool always_tick) {
  options o;
  o.always_tick = always_tick;
  bench b(o);
  b.spans.enable(true);
  b.doorbell.open = false;
  const std::uint64_t before = b.stats.value("pcie.bar_writes");
  std::vector<sim::span_id> ids;
  for (std::uint32_t i = 0; i < 8; ++i) {  // the channel takes four
    ids.push_back(b.spans.open(b.time()));
    ASSERT_TRUE(b.root.mmio_store(b.bar2_at + 8 * i, &i, 4, ids.back()));
  }
  b.run_ns(3000);
  EXPECT_EQ(b.stats.value("pcie.bar_writes") - before, 4u);
  b.doorbell.reopen();
  b.run_ns(3000);
  EXPECT_EQ(b.stats.value("pcie.bar_writes") - before, 8u);
  ASSERT_EQ(b.doorbell.got.size(), 8u);
  for (const sim::span_id id : ids) EXPECT_EQ(b.spans[id].count(), 4u);  // post, store path, link, mmio write
}
TEST(pcie_bar, writes_that_wait_for_a_full_channel_are_counted_and_marked_once) { expect_waiting_writes_once(false); }
TEST(pcie_bar, ticked_always_they_are_counted_and_marked_once) { expect_waiting_writes_once(true); }

// The channel takes four. The fifth is here at 50'126'810, seen at edge 21'405, and waits to now, 22'631; what is taken
// in the next cycle makes room at 22'633.
TEST(pcie_bar, says_by_whom_a_write_is_held_up) {
  bench b;
  b.doorbell.open = false;
  b.down.record = true;
  const auto busy = [&b] { return rnic::bench::busy_cycles(b.core, "pcie.requests"); };
  const std::uint64_t before = busy();
  for (std::uint32_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(b.root.mmio_store(b.bar2_at + 8 * i, &i, 4, 0));
  }
  b.run_ns(3000);
  EXPECT_EQ(b.down.packets.at(4).arrival, 50'126'810u);
  EXPECT_EQ(b.core.now(), 22'631u);
  EXPECT_EQ(rnic::bench::held_up(b.core, "pcie.requests"), "doorbell 1226; ");
  EXPECT_EQ(busy() - before, 4u);
  b.doorbell.reopen();
  b.run_ns(3000);
  EXPECT_EQ(rnic::bench::held_up(b.core, "pcie.requests"), "doorbell 1228; ");
  EXPECT_EQ(busy() - before, 6u);
}

TEST(pcie_bar, full_doorbell_channel_stops_the_processor_by_credits_and_loses_nothing) {
  options o;
  o.endpoint.posted_headers = 8;
  bench b(o);
  b.doorbell.open = false;
  struct waiter : host::processor_port::space_waiter {
    unsigned calls = 0;
    void store_space() override { ++calls; }
  } w;
  std::uint32_t sent = 0;
  for (unsigned round = 0; round < 100; ++round) {
    while (b.root.mmio_store(b.bar2_at + 8 * (sent % 64), &sent, 4, 0)) ++sent;
    b.run_ns(300);
  }
  // Channel 4, receiver 8, processor 32: no more can be on its way.
  EXPECT_EQ(sent, 44u);
  b.root.wait_for_space(w);
  b.run_ns(1000);
  EXPECT_EQ(w.calls, 0u);
  b.doorbell.reopen();
  b.run_ns(20'000);
  EXPECT_EQ(w.calls, 1u);
  ASSERT_EQ(b.doorbell.got.size(), sent);
  for (std::uint32_t i = 0; i < sent; ++i) {
    std::uint32_t v;
    std::memcpy(&v, b.doorbell.got[i].data.data(), 4);
    EXPECT_EQ(v, i);
  }
}

TEST(pcie_bar, read_does_not_pass_writes) {
  bench b;
  b.doorbell.open = false;
  const std::uint32_t v = 7;
  for (unsigned i = 0; i < 6; ++i) ASSERT_TRUE(b.root.mmio_store(b.bar2_at, &v, 4, 0));
  ASSERT_TRUE(b.root.start_mmio_read(b.bar0_at, 4, b.reads, 1));
  b.run_ns(3000);
  EXPECT_EQ(b.reads.done.count(1), 0u);
  b.doorbell.reopen();
  b.run_ns(3000);
  EXPECT_EQ(b.reads.done.count(1), 1u);
}

TEST(pcie_msix, message_goes_out_as_programmed) {
  bench b;
  b.program_vector(5);
  b.config_write(0x9e, 0x8000, 2);
  b.interrupts.raise(5);
  b.run_ns(1000);
  ASSERT_EQ(b.log.got.size(), 1u);
  EXPECT_EQ(b.log.got[0].address, 0xfee00000u);
  EXPECT_EQ(b.log.got[0].data, 0x45u);
  EXPECT_EQ(b.log.got[0].function, 0u);
  EXPECT_EQ(b.mmio_read(b.bar0_at + 0x7c000 + 16 * 5 + 8, 4).data, (std::vector<std::uint8_t>{0x45, 0, 0, 0}));
}

TEST(pcie_msix, masked_vectors_pend_once_and_go_out_when_unmasked) {
  bench b;
  b.program_vector(1, true);
  b.program_vector(70, false);
  b.config_write(0x9e, 0xc000, 2);  // enabled, function masked
  for (const std::uint16_t v : std::vector<std::uint16_t>{1, 1, 70}) b.interrupts.raise(v);
  b.run_ns(1000);
  EXPECT_TRUE(b.log.got.empty());
  EXPECT_EQ(b.mmio_read(b.bar0_at + 0x7d000, 4).data[0], 2u);
  EXPECT_EQ(b.mmio_read(b.bar0_at + 0x7d008, 4).data[0], 1u << 6);
  b.config_write(0x9e, 0x8000, 2);
  ASSERT_EQ(b.log.got.size(), 1u);
  EXPECT_EQ(b.log.got[0].data, 0x40u + 70);
  b.store32(b.bar0_at + 0x7c000 + 16 + 12, 0);
  b.run_ns(500);
  ASSERT_EQ(b.log.got.size(), 2u);
  EXPECT_EQ(b.log.got[1].data, 0x41u);
  EXPECT_EQ(b.mmio_read(b.bar0_at + 0x7d000, 8).data, std::vector<std::uint8_t>(8, 0));
}

/// The function may send; one vector of it is masked, the others go out.
TEST(pcie_msix, a_masked_vector_of_a_function_that_is_not_masked_pends_and_goes_out_once) {
  bench b;
  b.program_vector(3, true);
  b.program_vector(4);
  b.config_write(0x9e, 0x8000, 2);  // enabled, function not masked
  for (const std::uint16_t v : std::vector<std::uint16_t>{3, 4, 3, 3}) b.interrupts.raise(v);
  b.run_ns(1000);
  ASSERT_EQ(b.log.got.size(), 1u);
  EXPECT_EQ(b.log.got[0].data, 0x44u);
  EXPECT_EQ(b.mmio_read(b.bar0_at + 0x7d000, 8).data, (std::vector<std::uint8_t>{1u << 3, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(b.stat("pcie.dma.interrupts"), 1u);
  EXPECT_EQ(b.stat("pcie.dma.interrupts_pended"), 1u) << "once, however often it was raised";
  EXPECT_EQ(b.stat("pcie.dma.interrupts_dropped"), 0u);

  b.store32(b.bar0_at + 0x7c000 + 16 * 4 + 12, 1);  // another vector's mask changes nothing
  b.run_ns(1000);
  EXPECT_EQ(b.log.got.size(), 1u);
  b.store32(b.bar0_at + 0x7c000 + 16 * 3 + 12, 0);
  b.run_ns(1000);
  ASSERT_EQ(b.log.got.size(), 2u);
  EXPECT_EQ(b.log.got[1].data, 0x43u);
  EXPECT_EQ(b.mmio_read(b.bar0_at + 0x7d000, 8).data, std::vector<std::uint8_t>(8, 0));

  b.store32(b.bar0_at + 0x7c000 + 16 * 3 + 12, 1);  // masked and unmasked again: nothing is left to be said
  b.store32(b.bar0_at + 0x7c000 + 16 * 3 + 12, 0);
  b.run_ns(1000);
  EXPECT_EQ(b.log.got.size(), 2u);
  b.interrupts.raise(3);
  b.run_ns(1000);
  EXPECT_EQ(b.log.got.size(), 3u);
  EXPECT_EQ(b.stat("pcie.dma.interrupts"), 3u);
  EXPECT_EQ(b.stat("pcie.dma.interrupts_pended"), 1u);
}

/// A pending vector goes out with the address and data that the table has when its mask is taken off.
TEST(pcie_msix, a_pending_vector_goes_out_as_programmed_meanwhile) {
  bench b;
  b.program_vector(3, true);
  b.config_write(0x9e, 0x8000, 2);
  b.interrupts.raise(3);
  b.run_ns(1000);
  const std::uint64_t entry = b.bar0_at + 0x7c000 + 16 * 3;
  b.store32(entry, 0xfee0'1000);
  b.store32(entry + 8, 0x99);
  b.run_ns(1000);
  EXPECT_TRUE(b.log.got.empty());
  b.store32(entry + 12, 0);
  b.run_ns(1000);
  ASSERT_EQ(b.log.got.size(), 1u);
  EXPECT_EQ(b.log.got[0].address, 0xfee0'1000u);
  EXPECT_EQ(b.log.got[0].data, 0x99u);
}

TEST(pcie_msix, disabled_and_bad_vectors_are_dropped_and_counted) {
  bench b;
  b.program_vector(0);
  b.interrupts.raise(0);
  b.run_ns(500);
  b.config_write(0x9e, 0x8000, 2);
  b.interrupts.raise(128);
  b.run_ns(500);
  EXPECT_TRUE(b.log.got.empty());
  EXPECT_EQ(b.stat("pcie.dma.interrupts_dropped"), 1u);
  EXPECT_EQ(b.log.wire.size(), 2u) << "while it was off, the wire";
  b.endpoint.device_reset();
  b.interrupts.raise(0);
  b.run_ns(500);
  EXPECT_EQ(b.stat("pcie.dma.interrupts_dropped"), 2u);
}

TEST(pcie_msix, comes_after_the_write_that_was_started_before) {
  bench b;
  b.program_vector(0);
  b.config_write(0x9e, 0x8000, 2);
  const auto buffer = b.memory.allocate(8192);
  std::vector<std::uint8_t> data(4096, 0x77);
  b.clients[0]->queue(write_request(buffer.address, 4096, data.data()));
  b.run_ns(10);
  b.interrupts.raise(0);
  b.run_ns(150);
  EXPECT_TRUE(b.log.got.empty());
  b.run_ns(3000);
  ASSERT_EQ(b.log.got.size(), 1u);
  EXPECT_EQ(buffer.pointer[4095], 0x77);
}

TEST(pcie_socket, the_tlm_way_gives_the_same_times_as_plain_calls) {
  options o;
  o.sockets = true;
  bench b(o);
  std::uint8_t to[64] = {};
  const auto buffer = b.memory.allocate(4096);
  std::memset(buffer.pointer, 0x5c, 64);
  b.clients[0]->queue(read_request(buffer.address, 64, to, 9));
  b.run_ns(1000);
  ASSERT_EQ(b.clients[0]->answers.size(), 1u);
  EXPECT_EQ(to[63], 0x5c);
  const auto rtt = b.clients[0]->answers[0].at - b.clients[0]->sent[0];
  EXPECT_NEAR(static_cast<double>(rtt), 310'000, 10'000);
}

TEST(pcie_msix, a_reset_masks_all_vectors) {
  bench b;
  b.program_vector(3);
  EXPECT_EQ(b.mmio_read(b.bar0_at + 0x7c000 + 16 * 3 + 12, 4).data[0], 0u);
  b.config_write(0x68, 0x8000 | b.config_read(0x68, 2), 2);
  b.bring_up();
  EXPECT_EQ(b.mmio_read(b.bar0_at + 0x7c000 + 16 * 3 + 8, 4).data[0], 0u);
  EXPECT_EQ(b.mmio_read(b.bar0_at + 0x7c000 + 16 * 3 + 12, 4).data[0], 1u);
}

TEST(pcie_msix, nothing_is_mastered_in_d3) {
  bench b;
  b.program_vector(3);
  b.config_write(0x9e, 0x8000, 2);
  b.config_write(0x44, 3, 2);
  b.interrupts.raise(3);
  b.run_ns(1000);
  EXPECT_TRUE(b.log.got.empty());
}

}  // namespace
}  // namespace rnic::test
