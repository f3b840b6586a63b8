// SPDX-License-Identifier: Apache-2.0
// The steering block by itself: A0 steering, time, bounded room, reset. Steering by groups is tested with a driver that
// writes the table (testbenches/system/ethernet).
#include "model/ethernet/steering.h"

#include <gtest/gtest.h>

#include <deque>
#include <systemc>
#include <utility>
#include <vector>

#include "model/gid/gid_cr.h"
#include "model/sim/timebase.h"
#include "testbenches/block/icm/group_table.h"

namespace rnic::ethernet {
namespace {

constexpr sim::time_ps cycle = 1000;

/// Parsers and responder.
class rim : public sim::clocked_block {
 public:
  rim(sim::clock_domain& d, steering& s)
      : clocked_block("rim", d),
        in0("in0", d, 4),
        in1("in1", d, 4),
        out("out", d, 2),
        to{sim::fifo_out<payload::frame_ptr>(*this), sim::fifo_out<payload::frame_ptr>(*this)},
        from(*this) {
    to[0].bind(in0);
    to[1].bind(in1);
    s.rx_in[0].bind(in0);
    s.rx_in[1].bind(in1);
    s.out.bind(out);
    from.bind(out);
  }
  sim::fifo<payload::frame_ptr> in0, in1, out;
  std::array<sim::fifo_out<payload::frame_ptr>, 2> to;
  sim::fifo_in<payload::frame_ptr> from;
  std::array<std::deque<payload::frame_ptr>, 2> to_send;
  std::vector<std::pair<sim::cycle_t, payload::frame_ptr>> got;
  bool blocked = false;

 private:
  void tick() override {
    if (!blocked && from.can_pop()) got.emplace_back(now(), from.pop());
    for (unsigned p = 0; p < 2; ++p)
      while (!to_send[p].empty() && to[p].claim()) {
        to[p].push(std::move(to_send[p].front()));
        to_send[p].pop_front();
      }
  }
};

struct bench {
  explicit bench(const steering::config& cfg = {}, const sim::timebase::options& how = {})
      : base(how),
        core("core", base, {cycle, 1, 0}),
        s("steering", core, cfg, map, {&gids[0], &gids[1]}, frames, stats),
        memory(core, 0x10000, memory_cycles),
        table(map, memory),
        r(core, s) {
    memory.attach(s.groups().dma);
    for (unsigned i = 0; i < 3; ++i) {
      gids[0].cr_write(gid::cr::mac_word(i, 1), i);
      gids[0].cr_write(gid::cr::mac_word(i, 0), (i == 1 ? 0 : gid::cr::mac_valid) | 0x0200);
    }
    sc_core::sc_start(sc_core::sc_time(500, sc_core::SC_PS));  // what the test does, it does between the edges
  }
  void write(std::uint32_t offset, std::uint32_t value, unsigned port = 0) {
    s.registers()[port]->cr_write(offset, value);
  }
  void arrive(std::uint8_t first, std::uint8_t last, std::uint32_t length = 64, unsigned port = 0) {
    payload::frame_ptr f = frames.get();
    f->length = length;
    f->port = static_cast<std::uint8_t>(port);
    std::fill_n(f->data(), length, std::uint8_t{0});
    f->data()[0] = first;
    f->data()[5] = last;
    r.to_send[port].push_back(std::move(f));
    r.wake_next();
  }
  void run(unsigned cycles = 500) { sc_core::sc_start(sc_core::sc_time(cycles * cycle, sc_core::SC_PS)); }
  /// QP of the only frame that came out; 0: none did.
  std::uint32_t only() {
    run();
    const std::uint32_t qpn = r.got.size() == 1 ? r.got[0].second->packet.bth.dest_qp : 0;
    EXPECT_LE(r.got.size(), 1u);
    r.got.clear();
    return qpn;
  }

  sim::timebase base;
  sim::clock_domain core;
  sim::statistics stats;
  payload::frame_pool frames;
  std::array<gid::gid_table, 2> gids;
  icm::icm_map map;
  steering s;
  static constexpr unsigned memory_cycles = 100;
  rnic::bench::fake_memory memory;
  rnic::bench::group_table table;
  rim r;
};

/// That finds addresses in the group table.
struct table_bench : bench {
  static constexpr unsigned pipeline = 16;
  static steering::config fully_associative() {
    steering::config c;
    c.pipeline_cycles = pipeline;
    c.groups.ways = c.groups.entries;
    return c;
  }
  table_bench() : bench(fully_associative()) {
    write(cr::group_steering, 1);
    write(cr::group_hash_bits, rnic::bench::group_table::hash_bits);
  }
  /// Identifier of the address first:0:0:0:0:last of port 1.
  static rnic::bench::group_id id(std::uint8_t first, std::uint8_t last) {
    return {0, 0, 0, 0, 0, 1, 0, static_cast<std::uint8_t>((first & 1) == 0 ? 2 : 0), 0, 0, first, 0, 0, 0, 0, last};
  }
  /// An address as the last of a chain of so many entries.
  void chain(std::uint8_t first, std::uint8_t last, unsigned length, const std::vector<std::uint32_t>& members) {
    for (const std::uint32_t i : table.chain(id(first, last), length, members, 20, rnic::bench::group_table::ethernet))
      write(cr::group_written, i);
  }
  /// Cycles that a frame which arrives now needs more than one whose entry is on chip and the first of its chain.
  sim::cycle_t search_cycles() {
    const sim::cycle_t sent = core.now() + 1;
    r.got.clear();
    arrive(3, 7);
    run(20'000);
    EXPECT_EQ(r.got.size(), 1u);
    const sim::cycle_t beats = 4;  // of a frame of 64 bytes, the last of which is handed on too
    return r.got.empty() ? 0 : r.got[0].first - (sent + 1 + pipeline + (beats - 1) + 1);
  }
};

/// Place of an address in its chain.
class steering_chain : public testing::TestWithParam<unsigned> {};

TEST_P(steering_chain, costs_a_cycle_an_entry) {
  const unsigned place = GetParam();
  table_bench b;
  b.chain(3, 7, place, {0x41});
  EXPECT_EQ(b.search_cycles(), place * (table_bench::memory_cycles + 2) + place - 1);
  EXPECT_EQ(b.search_cycles(), place - 1);
  EXPECT_EQ(b.r.got[0].second->packet.bth.dest_qp, 0x41u);
  EXPECT_EQ(b.stats.value("steering.groups.entries"), 2 * place);
}

INSTANTIATE_TEST_SUITE_P(places, steering_chain, testing::Values(1u, 2u, 5u, 30u));

TEST(steering, members_of_the_group_table_get_a_copy_each) {
  table_bench b;
  b.chain(3, 7, 2, {0x41, 1u << 30 | 0x42, 0x43});
  b.write(cr::default_entry + 4, 5);
  b.write(cr::default_entry, 1);
  const auto reached = [&](std::uint8_t loopback, std::uint8_t last) {
    std::vector<std::uint32_t> all;
    b.r.got.clear();
    b.arrive(3, last);
    b.r.to_send[0].back()->loopback = loopback;
    b.run(2000);
    for (const auto& [at, f] : b.r.got) all.push_back(f->packet.bth.dest_qp);
    return all;
  };
  using qpns = std::vector<std::uint32_t>;
  EXPECT_EQ(reached(payload::frame::loopback_none, 7), (qpns{0x41, 0x42, 0x43}));
  EXPECT_EQ(reached(payload::frame::loopback_too, 7), (qpns{0x41, 0x43}));
  EXPECT_EQ(reached(payload::frame::loopback_none, 8), qpns{5}) << "not in the table";
  b.table.put(rnic::bench::group_table::bucket(table_bench::id(3, 7)), table_bench::id(3, 7), 0, {0x44});  // of RoCE
  b.write(cr::group_written, rnic::bench::group_table::bucket(table_bench::id(3, 7)));
  EXPECT_EQ(reached(payload::frame::loopback_none, 7), qpns{5});
}

TEST(steering, settings_that_change_during_a_search) {
  table_bench b;
  b.chain(3, 7, 30, {0x41});
  b.arrive(3, 7);
  b.run(300);  // among the fetches of the chain
  b.write(cr::group_steering, 0);
  b.write(cr::rqp_base, cr::rqp_valid | 0x280);
  b.write(cr::rqp_multicast, 2u << 30 | 0x50);  // no table any more
  EXPECT_EQ(b.only(), 0x50u);
  b.write(cr::group_steering, 1);
  b.chain(3, 7, 2, {0x42});
  b.arrive(3, 7);
  EXPECT_EQ(b.only(), 0x42u);
}

TEST(steering, reset_during_a_search) {
  table_bench b;
  b.chain(3, 7, 30, {0x41});
  b.arrive(3, 7);
  b.run(300);
  b.write(cr::reset, 1);
  b.run(5000);
  EXPECT_TRUE(b.r.got.empty());
  b.write(cr::group_steering, 1);
  b.write(cr::group_hash_bits, rnic::bench::group_table::hash_bits);
  b.chain(3, 7, 3, {0x42});
  b.arrive(3, 7);
  EXPECT_EQ(b.only(), 0x42u);
}

TEST(steering, a0_counts_places_in_the_mac_table) {
  bench b;
  b.arrive(2, 0);
  EXPECT_EQ(b.only(), 0u);  // nothing was set up
  b.write(cr::rqp_base, cr::rqp_valid | 0x280);
  b.arrive(2, 0);
  EXPECT_EQ(b.only(), 0x280u);
  b.arrive(2, 2);
  EXPECT_EQ(b.only(), 0x282u);
  b.arrive(2, 1);  // not valid
  EXPECT_EQ(b.only(), 0u);
  EXPECT_EQ(b.s.count().drop_no_match, 2u);
}

TEST(steering, a0_promiscuous_and_groups) {
  bench b;
  b.write(cr::rqp_base, cr::rqp_valid | 0x280);
  b.write(cr::rqp_promiscuous, 1u << 31 | 0x40);
  b.write(cr::rqp_multicast, 0x41);  // groups that are in the table only
  b.arrive(2, 9);
  EXPECT_EQ(b.only(), 0x40u);
  b.arrive(1, 9);
  EXPECT_EQ(b.only(), 0u);
  for (const std::uint32_t mode : {1u, 2u}) {
    b.write(cr::rqp_multicast, mode << 30 | 0x41);
    b.arrive(1, 9);
    EXPECT_EQ(b.only(), 0x41u);
  }
  b.arrive(2, 9, 64, 1);  // the other port has settings of its own
  EXPECT_EQ(b.only(), 0u);
}

TEST(steering, default_entries_give_a_copy_to_each) {
  bench b;
  b.write(cr::group_steering, 1);
  const std::uint32_t at = cr::default_entry + cr::default_stride;  // unicast
  b.write(at + 4, 5);
  b.write(at + 8, 1u << 30 | 6);
  b.write(at, 2);
  b.arrive(2, 1);
  b.run();
  ASSERT_EQ(b.r.got.size(), 2u);
  EXPECT_EQ(b.r.got[0].second->packet.bth.dest_qp, 5u);
  EXPECT_EQ(b.r.got[1].second->packet.bth.dest_qp, 6u);
  EXPECT_TRUE(b.r.got[1].second->plain);
  EXPECT_EQ(b.r.got[1].second->packet.payload_length, 64u);
  b.r.got.clear();
  b.arrive(3, 1);
  EXPECT_EQ(b.only(), 0u);  // groups have another one
}

TEST(steering, own_frames_do_not_come_back_to_those_that_say_so) {
  bench b;
  b.write(cr::group_steering, 1);
  b.write(cr::default_entry + 4, 5);
  b.write(cr::default_entry + 8, 1u << 30 | 6);
  b.write(cr::default_entry, 2);
  b.arrive(3, 1);
  b.r.to_send[0].back()->loopback = payload::frame::loopback_too;
  EXPECT_EQ(b.only(), 5u);
}

TEST(steering, latency_and_interval_are_parameters) {
  steering::config cfg;
  cfg.pipeline_cycles = 30;
  cfg.frame_cycles = 10;
  cfg.bytes_per_cycle = 16;
  bench b(cfg);
  b.write(cr::rqp_base, cr::rqp_valid | 0x280);
  for (unsigned i = 0; i < 3; ++i) b.arrive(2, 0);
  for (unsigned i = 0; i < 2; ++i) b.arrive(2, 0, 1600);
  b.run();
  ASSERT_EQ(b.r.got.size(), 5u);
  const auto gap = [&](unsigned i) { return b.r.got[i].first - b.r.got[i - 1].first; };
  EXPECT_EQ(gap(1), 10u);
  EXPECT_EQ(gap(2), 10u);
  EXPECT_EQ(gap(3),
            10u + 99u - 3u);  // its last byte comes with the last of 100 beats, that of the one before with four
  EXPECT_EQ(gap(4), 100u);    // the first long one had to go through
  // Out of the parsers' channel at 2, 30 in the pipeline, three beats behind the first, a channel.
  EXPECT_EQ(b.r.got[0].first, 1u + 1u + 30u + 3u + 1u);
}

TEST(steering, a_copy_takes_its_length) {
  bench b;
  b.write(cr::group_steering, 1);
  b.write(cr::default_entry + 4, 5);
  b.write(cr::default_entry + 8, 6);
  b.write(cr::default_entry + 12, 7);
  b.write(cr::default_entry, 3);
  b.arrive(3, 1, 1600);
  b.arrive(3, 1, 64);
  b.run();
  ASSERT_EQ(b.r.got.size(), 6u);
  const unsigned gaps[] = {100, 100, 4, 4, 4};
  for (unsigned i = 1; i < 6; ++i) EXPECT_EQ(b.r.got[i].first - b.r.got[i - 1].first, gaps[i - 1]) << i;
}

TEST(steering, room_is_bounded) {
  steering::config cfg;
  cfg.frames = 3;
  bench b(cfg);
  b.write(cr::rqp_base, cr::rqp_valid | 0x280);
  b.r.blocked = true;
  for (unsigned i = 0; i < 20; ++i) b.arrive(2, 0);
  b.run(2000);
  // 2 in the channel to the responder, 3 inside, 4 in the channel from the parser
  EXPECT_EQ(b.s.count().frames, 5u);
  EXPECT_EQ(b.r.to_send[0].size(), 20u - 5u - 4u);
  b.r.blocked = false;
  b.r.wake_next();
  b.run(2000);
  EXPECT_EQ(b.r.got.size(), 20u);
}

TEST(steering, ports_take_turns) {
  bench b;
  gid::gid_table& other = b.gids[1];
  other.cr_write(gid::cr::mac_word(0, 1), 0);
  other.cr_write(gid::cr::mac_word(0, 0), gid::cr::mac_valid | 0x0200);
  b.write(cr::rqp_base, cr::rqp_valid | 0x280);
  b.write(cr::rqp_base, cr::rqp_valid | 0x300, 1);
  for (unsigned i = 0; i < 10; ++i)
    for (unsigned p = 0; p < 2; ++p) b.arrive(2, 0, 64, p);
  b.run(2000);
  ASSERT_EQ(b.r.got.size(), 20u);
  for (unsigned i = 0; i < 20; ++i) EXPECT_EQ(b.r.got[i].second->packet.bth.dest_qp, i % 2 == 0 ? 0x280u : 0x300u);
}

/// Rules in place of groups.
struct flow_bench : bench {
  explicit flow_bench(const steering::config& cfg = {}) : bench(cfg) { put_register(flow::cr::enable, 1); }
  void put_register(std::uint32_t offset, std::uint32_t value) { write(cr::flows + offset, value); }
  /// For the address first:0:0:0:0:last of port 1.
  void put(std::uint32_t place, std::uint8_t first, std::uint8_t last, std::uint32_t rank, std::uint32_t member) {
    namespace f = flow::cr;
    for (std::uint32_t w = 0; w < f::key_words; ++w) {
      put_register(f::rule_value + 4 * w, w == 1 ? std::uint32_t{first} << 24 : w == 2 ? std::uint32_t{last} << 16 : 0);
      put_register(f::rule_mask + 4 * w, w == 1 ? ~0u : w == 2 ? 0xffff0000 : w == 0 ? f::frame_key::port_2 : 0);
    }
    put_register(f::rule_rank_low, rank);
    put_register(f::rule_member, member);
    put_register(f::rule_write, place | f::rule_valid);
  }
};

TEST(steering, rules_in_place_of_groups) {
  flow_bench b;
  b.write(cr::group_steering, 1);  // counts for nothing now
  b.write(cr::default_entry + cr::default_stride + 4, 0x99);
  b.write(cr::default_entry + cr::default_stride, 1);
  b.put(0, 2, 7, 5, 0x41);
  b.put(1, 2, 7, 4, 0x42);
  b.put(2, 2, 7, 4, 0x43);
  b.arrive(2, 7);
  b.run();
  ASSERT_EQ(b.r.got.size(), 2u);
  EXPECT_EQ(b.r.got[0].second->packet.bth.dest_qp, 0x42u);
  EXPECT_EQ(b.r.got[1].second->packet.bth.dest_qp, 0x43u);
  EXPECT_TRUE(b.r.got[1].second->plain);
  b.r.got.clear();
  b.arrive(2, 7, 64, 1);
  b.arrive(2, 8);
  EXPECT_EQ(b.only(), 0u);
  EXPECT_EQ(b.s.count().drop_no_match, 2u);
  EXPECT_EQ(b.stats.value("steering.flows.matched"), 1u);
  EXPECT_EQ(b.stats.value("steering.flows.missed"), 2u);
  EXPECT_EQ(b.s.registers()[0]->cr_read(cr::flows + flow::cr::capacity), 2048u);
}

/// Place of the last rule of a table of which four are compared in a cycle.
class steering_flow_words : public testing::TestWithParam<unsigned> {};

TEST_P(steering_flow_words, cost_a_cycle_each) {
  steering::config cfg;
  cfg.pipeline_cycles = 16;
  cfg.flows.compared_per_cycle = 4;
  flow_bench b(cfg);
  b.put(GetParam(), 2, 7, 5, 0x41);
  for (unsigned i = 0; i < 3; ++i) b.arrive(2, 7);
  b.run(2000);
  ASSERT_EQ(b.r.got.size(), 3u);
  const sim::cycle_t words = GetParam() / 4 + 1;
  // As without rules, and the words behind the first one.
  EXPECT_EQ(b.r.got[0].first, 1u + 1u + 16u + 3u + 1u + words - 1);
  EXPECT_EQ(b.r.got[2].first - b.r.got[1].first, std::max<sim::cycle_t>(8, words));
}
INSTANTIATE_TEST_SUITE_P(places, steering_flow_words, testing::Values(3u, 4u, 399u));

TEST(steering, another_table_in_the_middle_of_a_search) {
  flow_bench b;
  b.put(1999, 2, 7, 5, 0x41);
  b.arrive(2, 7);
  b.run(60);  // among 125 words
  b.put_register(flow::cr::enable, 0);
  b.write(cr::rqp_base, cr::rqp_valid | 0x280);
  b.write(cr::rqp_promiscuous, 1u << 31 | 0x50);
  EXPECT_EQ(b.only(), 0x50u);
  b.arrive(2, 7);
  b.run(3);
  b.put_register(flow::cr::enable, 1);
  EXPECT_EQ(b.only(), 0x41u);
  b.arrive(2, 7);
  b.run(60);
  b.write(cr::reset, 1);
  b.run(500);
  EXPECT_TRUE(b.r.got.empty());
  EXPECT_EQ(b.s.registers()[0]->cr_read(cr::flows + flow::cr::enable), 0u);
}

/// IP protocol, and byte of the frame that must be there before the look-up.
class steering_flow_headers : public testing::TestWithParam<std::pair<unsigned, unsigned>> {};

TEST_P(steering_flow_headers, are_waited_for) {
  constexpr sim::cycle_t first_byte = 100;
  steering::config cfg;
  cfg.pipeline_cycles = 16;
  cfg.bytes_per_cycle = 4;
  flow_bench b(cfg);
  b.put(0, 2, 7, 5, 0x41);
  b.arrive(2, 7, 200);
  payload::frame& f = *b.r.to_send[0].back();
  f.first_byte = first_byte;
  const std::uint8_t ip[] = {0x08, 0, 0x45, 0, 0, 180, 0, 0, 0, 0, 64, static_cast<std::uint8_t>(GetParam().first)};
  std::copy(std::begin(ip), std::end(ip), f.data() + 12);
  f.data()[14 + 20 + 5] = 160;  // length of UDP
  b.run();
  ASSERT_EQ(b.r.got.size(), 1u);
  EXPECT_EQ(b.r.got[0].first, first_byte + GetParam().second / 4 + 16 + 49 + 1);
}
constexpr unsigned udp = 17, icmp = 1;
INSTANTIATE_TEST_SUITE_P(protocols, steering_flow_headers,
                         testing::Values(std::pair{udp, 14u + 20 + 3}, std::pair{icmp, 14u + 19}));

TEST(steering, reset_forgets) {
  bench b;
  b.write(cr::rqp_base, cr::rqp_valid | 0x280);
  b.write(cr::vlan_filter, 0xff);
  b.write(cr::vlan_filter_on, 1);
  EXPECT_EQ(b.s.registers()[0]->cr_read(cr::vlan_filter), 0xffu);
  b.arrive(2, 0);
  b.run(5);
  b.write(cr::reset, 1);
  EXPECT_EQ(b.only(), 0u);
  EXPECT_EQ(b.s.count().drop_reset, 1u);
  EXPECT_EQ(b.s.registers()[0]->cr_read(cr::vlan_filter_on), 0u);
  EXPECT_EQ(b.s.registers()[0]->cr_read(cr::vlan_filter), 0u);
  b.arrive(2, 0);
  EXPECT_EQ(b.only(), 0u);
}

TEST(steering, group_filter_holds_1024_addresses) {
  bench b;
  b.write(cr::rqp_base, cr::rqp_valid | 0x280);
  b.write(cr::rqp_multicast, 2u << 30 | 0x41);
  b.write(cr::multicast_filter_high, 0x0300);
  for (std::uint32_t i = 0; i < 1023; ++i) b.write(cr::multicast_filter_add, 0x10000 + i);
  b.write(cr::multicast_filter_add, 7);
  b.write(cr::multicast_filter_add, 8);  // has no place
  b.write(cr::multicast_filter_on, 1);
  b.arrive(3, 7);
  EXPECT_EQ(b.only(), 0x41u);
  EXPECT_EQ(b.s.count().drop_group_filtered, 0u);
  b.arrive(3, 8);
  EXPECT_EQ(b.only(), 0u);
  EXPECT_EQ(b.s.count().drop_group_filtered, 1u);
}

TEST(steering, unknown_registers_do_nothing) {
  bench b;
  for (std::uint32_t offset = 0; offset < 0x10000; offset += 4)
    if (offset != cr::reset) {
      b.write(offset, 0xffff'ffff, offset / 4 % 2);
      static_cast<void>(b.s.registers()[0]->cr_read(offset));
    }
  b.write(cr::reset, 1);
  b.write(cr::rqp_base, cr::rqp_valid | 0x280);
  b.arrive(2, 0);
  EXPECT_EQ(b.only(), 0x280u);
}

}  // namespace
}  // namespace rnic::ethernet
