// SPDX-License-Identifier: Apache-2.0
// Multicast alone: literal cycles, members by idle time by back-pressure, the loopback filter, what is found by nobody,
// changes and resets while a datagram is copied.
#include "model/transport/multicast/multicast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <systemc>
#include <tuple>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"
#include "model/transport/transport_cr.h"
#include "model/wire/groups.h"
#include "testbenches/bench/child.h"
#include "testbenches/block/icm/group_table.h"

namespace {

using namespace rnic;
using rnic::bench::group_id;
using rnic::bench::group_table;
using cycle = sim::cycle_t;
using members = std::vector<std::uint32_t>;

constexpr std::uint32_t no_loopback = 1u << 30;
constexpr unsigned memory_cycles = 100;

/// ICRC check in front, responder behind.
struct world : sim::clocked_block {
  world(sim::clock_domain& d, transport::multicast& m) : clocked_block("world", d), in("in", d, 2), out("out", d, 3) {
    to.bind(in);
    m.in.bind(in);
    m.out.bind(out);
    from.bind(out);
    wake_at(1);
  }
  sim::fifo<payload::frame_ptr> in, out;
  sim::fifo_out<payload::frame_ptr> to{*this};
  sim::fifo_in<payload::frame_ptr> from{*this};

  struct copy {
    cycle at;
    std::uint32_t qpn;
    payload::frame_ptr frame;
  };
  std::deque<std::pair<unsigned, payload::frame_ptr>> to_send;  ///< and idle cycles in front of each
  unsigned every = 1;                                           ///< takes a copy in one of so many cycles; 0: none
  std::vector<cycle> pushed;
  std::vector<copy> got;

 private:
  void tick() override {
    wake_next();
    if (!to_send.empty() && to_send.front().first != 0) {
      --to_send.front().first;
    } else if (!to_send.empty() && to.claim()) {
      pushed.push_back(now());
      to.push(std::move(to_send.front().second));
      to_send.pop_front();
    }
    if (every == 0 || now() % every != 0 || !from.can_pop()) return;
    payload::frame_ptr f = from.pop();
    got.push_back({now(), f->packet.bth.dest_qp, std::move(f)});
  }
};

struct rig {
  static transport::multicast_config configuration(unsigned bytes_per_cycle) {
    transport::multicast_config c;
    c.bytes_per_cycle = bytes_per_cycle;
    c.groups = {64, 64, 1, 0, 1};
    return c;
  }
  explicit rig(bool always = false, unsigned bytes_per_cycle = 16)
      : base({always, 0}),
        core("core", base, {1000, 1, 0}),
        memory(core, 0x10000, memory_cycles),
        table(map, memory),
        dut("multicast", core, configuration(bytes_per_cycle), map, frames, spans, stats),
        w(core, dut) {
    memory.attach(dut.groups().dma);
    dut.cr_write(transport::cr::mcg_hash_bits, group_table::hash_bits);
    sc_core::sc_start(500, sc_core::SC_PS);  // what the test does, it does between the edges
  }
  void run(unsigned cycles) { sc_core::sc_start(static_cast<double>(cycles), sc_core::SC_NS); }
  void written(const std::vector<std::uint32_t>& entries) {
    for (const std::uint32_t i : entries) dut.cr_write(transport::cr::mcg_written, i);
  }
  static std::uint8_t byte_at(std::uint32_t i, unsigned seed) {
    return static_cast<std::uint8_t>(i * 7 + (i >> 8) + seed);
  }
  /// A datagram to `to` behind `idle` cycles.
  payload::frame& send(const group_id& to, std::uint32_t length, unsigned seed = 0, unsigned idle = 0) {
    payload::frame_ptr f = frames.get();
    f->begin = 40;
    f->length = length;
    for (std::uint32_t i = 0; i < length; ++i) f->data()[i] = byte_at(i, seed);
    f->fcs = 0x1234'0000 + seed;
    f->priority = 3;
    f->port = 1;
    f->gid_index = 5;
    f->stamp = 77 + seed;
    f->span = spans.open(base.now_ps());
    f->packet = wire::packet{};
    f->packet.bth.opcode = wire::make_opcode(wire::transport::ud, wire::operation::send_only);
    f->packet.bth.dest_qp = wire::group_qpn;
    f->packet.dgid = to;
    f->packet.payload_length = length - 50;
    w.to_send.emplace_back(idle, std::move(f));
    return *w.to_send.back().second;
  }
  /// The entries of `to`'s chain come on chip, and nothing else stays.
  void warm(const group_id& to) {
    send(to, 64);
    run(20'000);
    w.got.clear();
    w.pushed.clear();
  }
  members reached() const {
    members all;
    for (const auto& c : w.got) all.push_back(c.qpn);
    return all;
  }
  std::uint64_t counted(const std::string& name) const { return stats.value("multicast." + name); }

  sim::timebase base;
  sim::clock_domain core;
  sim::span_recorder spans;
  sim::statistics stats;
  payload::frame_pool frames;
  icm::icm_map map;
  rnic::bench::fake_memory memory;
  group_table table;
  transport::multicast dut;
  world w;
};

const group_id group{0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3};
const group_id another{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 4};

unsigned beats(std::uint32_t length, unsigned bytes_per_cycle = 16) {
  return (length + bytes_per_cycle - 1) / bytes_per_cycle;
}

/// Place of the group in its chain, bytes of the datagram, width of the datapath.
class MulticastTime : public testing::TestWithParam<std::tuple<unsigned, std::uint32_t, unsigned>> {};

TEST_P(MulticastTime, CopyTakesTheCyclesOfItsBeatsBehindTheSearch) {
  const auto [place, length, width] = GetParam();
  rig r(false, width);
  r.written(r.table.chain(group, place, {0x41, 0x42, 0x43}));
  r.warm(group);
  r.spans.enable(true);
  const sim::span_id span = r.send(group, length).span;
  r.run(2000);
  ASSERT_EQ(r.reached(), (members{0x41, 0x42, 0x43}));
  // Accepted a cycle behind the push, an entry a cycle from the next on, the first copy behind them.
  const cycle first = r.w.pushed[0] + 1 + place + 1 + beats(length, width);
  EXPECT_EQ(r.w.got[0].at, first);
  EXPECT_EQ(r.w.got[1].at, first + beats(length, width));
  EXPECT_EQ(r.w.got[2].at, first + 2 * beats(length, width));
  const sim::span& s = r.spans[span];  // of the last copy
  ASSERT_EQ(s.count(), 3u);
  EXPECT_STREQ(s[0].stage, "search");
  EXPECT_EQ(s[0].waited, sim::wait::none);
  EXPECT_STREQ(s[1].stage, "turn");
  EXPECT_EQ(s[1].at - s[0].at, 1000 * (1 + 2 * beats(length, width)));
  EXPECT_STREQ(s[2].stage, "copy");
  EXPECT_EQ(s[2].at - s[1].at, 1000 * beats(length, width));
}

INSTANTIATE_TEST_SUITE_P(Time, MulticastTime,
                         testing::Combine(testing::Values(1u, 4u), testing::Values(64u, 65u, 80u, 1088u),
                                          testing::Values(16u, 32u)));

/// A rule for a group that comes in by a port (0, 1), at a place of the flow table.
void put_rule(rig& r, std::uint32_t place, const group_id& to, unsigned port, std::uint32_t rank,
              std::uint32_t member) {
  namespace f = rnic::flow::cr;
  const auto put = [&](std::uint32_t offset, std::uint32_t v) { r.dut.cr_write(transport::cr::flows + offset, v); };
  put(f::enable, 1);
  for (std::uint32_t w = 0; w < f::key_words; ++w) {
    const bool gid = w >= f::datagram_key::dgid && w < f::datagram_key::dgid + 4;
    std::uint32_t value = w == 0 && port == 1 ? f::frame_key::port_2 : 0;
    for (unsigned i = 0; gid && i < 4; ++i) value = value << 8 | to[4 * (w - f::datagram_key::dgid) + i];
    put(f::rule_value + 4 * w, value);
    put(f::rule_mask + 4 * w, w == 0 ? f::frame_key::port_2 : gid ? ~0u : 0);
  }
  put(f::rule_rank_low, rank);
  put(f::rule_member, member);
  put(f::rule_write, place | f::rule_valid);
}

/// Place of the last rule: 16 are compared in a cycle.
class MulticastByRules : public testing::TestWithParam<unsigned> {};

TEST_P(MulticastByRules, TakesACycleAWordAndCopiesForAll) {
  rig r;
  const unsigned last = GetParam();
  put_rule(r, 0, group, 1, 5, 0x41);
  put_rule(r, 1, group, 1, 5, 0x42 | rnic::flow::cr::member_no_loopback);
  put_rule(r, 2, group, 0, 5, 0x77);    // of the other port
  put_rule(r, 3, another, 1, 4, 0x78);  // of another group
  put_rule(r, last, group, 1, 5, 0x43);
  r.send(group, 160);
  r.run(1000);
  ASSERT_EQ(r.reached(), (members{0x41, 0x42, 0x43}));
  const cycle first = r.w.pushed[0] + 1 + (last / 16 + 1) + 1 + beats(160);
  EXPECT_EQ(r.w.got[0].at, first);
  EXPECT_EQ(r.w.got[2].at, first + 2 * beats(160));
  r.w.got.clear();
  r.send(group, 64).loopback = payload::frame::loopback_too;
  group_id nobody = group;
  nobody[15] = 99;
  r.send(nobody, 64);
  r.run(1000);
  EXPECT_EQ(r.reached(), (members{0x41, 0x43}));
  EXPECT_EQ(r.counted("drop.no_group"), 1u);
  EXPECT_EQ(r.counted("flows.matched"), 2u);
}
INSTANTIATE_TEST_SUITE_P(Places, MulticastByRules, testing::Values(4u, 15u, 16u, 999u));

TEST(Multicast, FromRulesToGroupsInTheMiddleOfASearch) {
  rig r;
  put_rule(r, 1999, group, 1, 5, 0x43);
  r.written(r.table.chain(group, 1, {0x50}));
  r.send(group, 64);
  r.run(60);  // among 125 words
  r.dut.cr_write(transport::cr::flows + rnic::flow::cr::enable, 0);
  r.run(500);
  EXPECT_EQ(r.reached(), members{0x50});
  r.dut.cr_write(transport::cr::flows + rnic::flow::cr::enable, 1);
  r.send(group, 64);
  r.run(500);
  EXPECT_EQ(r.reached(), (members{0x50, 0x43}));
  r.send(group, 64);
  r.run(60);
  r.dut.cr_write(transport::cr::reset, 1);
  r.run(500);
  EXPECT_EQ(r.reached().size(), 2u);
}

TEST(Multicast, DatagramsBackToBack) {
  rig r;
  r.written(r.table.chain(group, 1, {0x41, 0x42}));
  r.warm(group);
  for (unsigned i = 0; i < 4; ++i) r.send(group, 160, i);
  r.run(500);
  ASSERT_EQ(r.w.got.size(), 8u);
  for (unsigned i = 1; i < 8; ++i)  // between datagrams: accept, search
    EXPECT_EQ(r.w.got[i].at - r.w.got[i - 1].at, i % 2 != 0 ? 10u : 12u) << i;
}

TEST(Multicast, MissIsAFetchOfTheEntry) {
  rig r;
  r.spans.enable(true);
  r.written(r.table.chain(group, 1, {0x41}));
  const sim::span_id span = r.send(group, 64).span;
  r.run(500);
  ASSERT_EQ(r.w.got.size(), 1u);
  EXPECT_EQ(r.w.got[0].at, r.w.pushed[0] + 2 + memory_cycles + 2 + 1 + 4);
  EXPECT_EQ(r.counted("groups.misses"), 1u);
  const sim::span& s = r.spans[span];
  ASSERT_EQ(s.count(), 2u);
  EXPECT_STREQ(s[0].stage, "search");
  EXPECT_EQ(s[0].waited, sim::wait::context_miss);
  EXPECT_STREQ(s[1].stage, "copy");
  EXPECT_EQ(s[1].at - s[0].at, 5000);
}

TEST(Multicast, DatagramToNobodyIsCountedAndTheNextOneAcceptedACycleLater) {
  rig r;
  r.written(r.table.chain(group, 2, {0x41}));
  r.warm(group);
  const std::uint64_t before = r.counted("datagrams");
  r.send(another, 64, 1);
  r.send(another, 64, 2);
  r.send(group, 64, 3);
  r.run(500);
  ASSERT_EQ(r.w.got.size(), 1u);
  // Two that need a cycle to accept and one to find nothing, then this one, of two entries.
  EXPECT_EQ(r.w.got[0].at, r.w.pushed[0] + 1 + 2 * 2 + 2 + 1 + 4);
  EXPECT_EQ(r.counted("drop.no_group"), 2u);
  EXPECT_EQ(r.counted("datagrams"), before + 3);
  r.table.put(group_table::bucket(group), group, 0, {});
  r.written({group_table::bucket(group)});
  r.send(group, 64);
  r.run(500);
  EXPECT_EQ(r.counted("drop.no_group"), 3u) << "a group without members";
}

TEST(Multicast, OwnDatagramsDoNotReachThoseThatDoNotWantThem) {
  rig r;
  r.written(r.table.chain(group, 1, {no_loopback | 0x41, 0x42, no_loopback | 0x43, 0x44}));
  for (const std::uint8_t from :
       {payload::frame::loopback_none, payload::frame::loopback_only, payload::frame::loopback_too}) {
    r.send(group, 64).loopback = from;
    r.run(500);
    EXPECT_EQ(r.reached(),
              from == payload::frame::loopback_none ? (members{0x41, 0x42, 0x43, 0x44}) : (members{0x42, 0x44}));
    for (const auto& c : r.w.got) EXPECT_EQ(c.frame->loopback, from);
    r.w.got.clear();
  }
  r.table.put(group_table::bucket(group), group, 0, {no_loopback | 0x41});
  r.written({group_table::bucket(group)});
  r.send(group, 64).loopback = payload::frame::loopback_too;
  r.run(500);
  EXPECT_TRUE(r.w.got.empty());
  EXPECT_EQ(r.counted("drop.no_group"), 1u);
}

/// Members, idle cycles in front of each datagram, and in one of how many cycles a copy is taken.
class MulticastLoad : public testing::TestWithParam<std::tuple<unsigned, unsigned, unsigned>> {};

TEST_P(MulticastLoad, EachMemberHasItsCopyOfEachDatagramInOrder) {
  const auto [count, idle, every] = GetParam();
  rig r;
  members all(count);
  for (std::uint32_t i = 0; i < count; ++i) all[i] = 0x100 + i * 3;
  r.written(r.table.chain(group, 2, all));
  r.w.every = every;
  constexpr std::uint32_t lengths[] = {64, 1100, 77, 300, 64};
  for (unsigned i = 0; i < 5; ++i) r.send(group, lengths[i], i, idle);
  r.run(20'000 + 5 * count * (every + 80));
  ASSERT_EQ(r.w.got.size(), 5 * count);
  for (std::size_t k = 0; k < r.w.got.size(); ++k) {
    const unsigned i = static_cast<unsigned>(k / count);
    const world::copy& c = r.w.got[k];
    ASSERT_EQ(c.qpn, all[k % count]);
    ASSERT_EQ(c.frame->length, lengths[i]);
    for (std::uint32_t b = 0; b < lengths[i]; ++b) ASSERT_EQ(c.frame->data()[b], rig::byte_at(b, i));
    EXPECT_EQ(c.frame->fcs, 0x1234'0000 + i);
    EXPECT_EQ(c.frame->stamp, 77 + i);
    EXPECT_EQ(c.frame->priority, 3);
    EXPECT_EQ(c.frame->port, 1);
    EXPECT_EQ(c.frame->gid_index, 5);
    EXPECT_EQ(c.frame->packet.payload_length, lengths[i] - 50);
    EXPECT_EQ(c.frame->packet.dgid, group);
    if (k == 0 || every != 1) continue;
    const cycle gap = c.at - r.w.got[k - 1].at;
    EXPECT_GE(gap, beats(lengths[i])) << k;
    EXPECT_TRUE(gap == beats(lengths[i]) || k % count == 0) << k;
  }
  EXPECT_EQ(r.counted("copies"), 5 * count);
  EXPECT_EQ(r.counted("datagrams"), 5u);
  EXPECT_EQ(r.counted("drop.no_group"), count == 0 ? 5u : 0u);
  EXPECT_LE(r.w.out.max_occupancy(), 3u);
}

INSTANTIATE_TEST_SUITE_P(Load, MulticastLoad,
                         testing::Combine(testing::Values(0u, 1u, 2u, 17u, 120u), testing::Values(0u, 9u, 400u),
                                          testing::Values(1u, 3u, 90u)));

TEST(Multicast, WaitsWhileItsCopiesAreNotTaken) {
  rig r;
  r.spans.enable(true);
  r.written(r.table.chain(group, 1, {0x41, 0x42, 0x43, 0x44, 0x45}));
  r.w.every = 0;
  const sim::span_id span = r.send(group, 64).span;
  for (unsigned i = 1; i < 6; ++i) r.send(group, 64, i);
  r.run(3000);
  EXPECT_EQ(r.counted("copies"), 3u);  // what the channel has room for
  EXPECT_TRUE(r.w.to_send.empty()) << "five wait inside";
  r.w.every = 1;
  r.run(3000);
  EXPECT_EQ(r.w.got.size(), 30u);
  const sim::span& s = r.spans[span];
  ASSERT_EQ(s.count(), 3u);  // of the last copy
  EXPECT_STREQ(s[1].stage, "turn");
  EXPECT_EQ(s[1].waited, sim::wait::arbitration);
  EXPECT_GT(s[1].at - s[0].at, 2'000'000);
  EXPECT_EQ(s[2].at - s[1].at, 4000);
}

TEST(Multicast, MembersAreThoseOfTheSearch) {
  rig r;
  r.written(r.table.chain(group, 1, {0x41, 0x42, 0x43}));
  r.send(group, 1600);
  r.send(group, 64, 1);
  r.run(memory_cycles + 150);  // the second copy has begun
  EXPECT_EQ(r.counted("copies"), 2u);
  r.table.put(group_table::bucket(group), group, 0, {0x42, 0x44});
  r.written({group_table::bucket(group)});
  r.run(2000);
  EXPECT_EQ(r.reached(), (members{0x41, 0x42, 0x43, 0x42, 0x44}));
}

TEST(Multicast, ResetWhileADatagramIsCopied) {
  rig r;
  const auto chain = r.table.chain(group, 1, {0x41, 0x42, 0x43});
  r.written(chain);
  r.warm(group);
  r.send(group, 1600);
  r.run(150);
  EXPECT_EQ(r.counted("copies"), 3u + 2u);
  r.dut.device_reset();
  r.run(1000);
  EXPECT_EQ(r.reached(), (members{0x41, 0x42})) << "those that had begun";
  EXPECT_EQ(r.counted("drop.reset"), 1u);
  r.send(group, 64);
  r.run(1000);
  EXPECT_EQ(r.w.got.size(), 2u);
  EXPECT_EQ(r.counted("drop.no_group"), 1u) << "no entry is written any more";
  r.dut.cr_write(transport::cr::mcg_hash_bits, group_table::hash_bits);
  EXPECT_EQ(r.dut.cr_read(transport::cr::mcg_hash_bits), group_table::hash_bits);
  r.written(chain);
  r.send(group, 64);
  r.run(1000);
  EXPECT_EQ(r.w.got.size(), 5u);
}

TEST(Multicast, ResetWhileAnEntryIsFetched) {
  rig r;
  const auto chain = r.table.chain(group, 1, {0x41});
  r.written(chain);
  r.send(group, 64);
  r.send(group, 64, 1);
  r.run(40);
  r.dut.cr_write(transport::cr::reset, 1);
  r.table.put(chain[0], group, 0, {0x42});
  r.dut.cr_write(transport::cr::mcg_hash_bits, group_table::hash_bits);
  r.written(chain);
  r.run(1000);
  EXPECT_EQ(r.reached(), members{0x42}) << "the second, from what was fetched behind the reset";
  EXPECT_EQ(r.counted("drop.reset"), 1u);
  r.dut.device_reset();
  EXPECT_EQ(r.counted("drop.reset"), 1u) << "nothing was inside";
}

/// The first one's copies find no room, sixteen wait, the others are dropped: the channel from the ICRC check is never
/// full, so nothing behind them waits.
TEST(Multicast, DatagramsBeyondThePlacesAreDroppedAndHoldNobodyUp) {
  rig r;
  r.written(r.table.chain(group, 1, {0x41, 0x42}));
  r.warm(group);
  r.w.every = 0;
  constexpr unsigned many = 60, waiting = 16;
  for (unsigned i = 0; i < many; ++i) r.send(group, 64, i);
  r.run(400);
  ASSERT_EQ(r.w.pushed.size(), many);
  EXPECT_EQ(r.w.pushed.back() - r.w.pushed.front(), many - 1) << "one a cycle";
  const std::uint64_t dropped = r.counted("drop.full");
  ASSERT_GT(dropped, 0u);
  r.w.every = 1;
  r.run(2000);
  EXPECT_EQ(r.w.got.size(), 2 * (many - dropped));
  EXPECT_GE(many - dropped, waiting + 1);
  EXPECT_EQ(r.counted("datagrams"), many + 1);
}

/// When which member got its copy, and what was counted.
std::string deliveries(bool always) {
  return rnic::bench::in_child([always] {
    rig r(always);
    r.written(r.table.chain(group, 5, {0x41, no_loopback | 0x42, 0x43}));
    r.w.every = 13;
    for (unsigned i = 0; i < 12; ++i) {
      payload::frame& f = r.send(i % 3 == 2 ? another : group, 64 + 100 * i, i, i * 11);
      f.loopback = i % 4 == 0 ? payload::frame::loopback_too : payload::frame::loopback_none;
    }
    r.run(5000);
    std::string seen = std::to_string(r.w.got.size()) + " copies:";
    for (const auto& c : r.w.got) seen += ' ' + std::to_string(c.at) + '/' + std::to_string(c.qpn);
    return seen + ' ' + std::to_string(r.counted("groups.hits")) + ' ' +
           std::to_string(r.core.servers()[0]->busy_cycles());
  });
}

TEST(Multicast, SleepingIsInvisible) {
  const std::string seen = deliveries(false);
  EXPECT_EQ(seen.substr(0, 10), "22 copies:");
  EXPECT_EQ(deliveries(true), seen);
}

}  // namespace
