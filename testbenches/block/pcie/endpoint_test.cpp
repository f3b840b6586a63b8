// SPDX-License-Identifier: Apache-2.0
// Configuration space, BARs and MSI-X as software on the bus sees them.
#include "testbenches/bench/held_up.h"
#include "testbenches/block/pcie/bench.h"

namespace rnic::test {
namespace {

struct reset_log : pcie::function_reset_if {
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
  b.endpoint.on_function_reset(log);
  b.config_write(0x68, 0x8000 | b.config_read(0x68, 2), 2);
  EXPECT_EQ(log.resets, 1u);
  EXPECT_EQ(b.config_read(0x04, 2), 0u);
  EXPECT_EQ(b.config_read(0x10), 4u);
  EXPECT_EQ(b.config_read(0x68, 2), 0x2810u);
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

}  // namespace
}  // namespace rnic::test
