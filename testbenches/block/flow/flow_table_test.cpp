// SPDX-License-Identifier: Apache-2.0
// The flow table by itself: against a plain list of rules, literal cycles, changes amid look-ups, limits, reset.
#include "model/flow/flow_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/clock_domain.h"
#include "model/sim/timebase.h"

namespace rnic::flow {
namespace {

using qpns = std::vector<std::uint32_t>;
using result = flow_table::result;

/// Asks for one key after the other, as a block does.
struct asker : sim::clocked_block {
  asker(sim::clock_domain& d, const flow_table_config& cfg, sim::statistics& stats)
      : clocked_block("asker", d), table("flows", *this, cfg, stats) {}
  struct question {
    flow_key key;
    bool own = false;
  };
  struct answer {
    sim::cycle_t from, to;
    result r;
    qpns members;
  };
  flow_table table;
  std::deque<question> questions;
  std::vector<answer> answers;
  bool asking = false;
  sim::cycle_t since = 0;

 private:
  void tick() override {
    if (!asking) {
      if (questions.empty()) return;
      since = now();
      table.begin(questions.front().key, questions.front().own);
      questions.pop_front();
      asking = true;
    }
    const result r = table.step();
    if (r == result::waiting) return;
    asking = false;
    answers.push_back({since, now(), r, table.members()});
    if (!questions.empty()) wake_next();
  }
};

struct rig {
  explicit rig(unsigned rules = 256, unsigned width = 4)
      : core("core", base, {1000, 1, 0}), a(core, sized(rules, width), stats) {
    sc_core::sc_start(500, sc_core::SC_PS);  // what the test does, it does between the edges
  }
  static flow_table_config sized(unsigned rules, unsigned width) {
    flow_table_config c;
    c.rules = rules;
    c.compared_per_cycle = width;
    return c;
  }
  void put(std::uint32_t place, const flow_key& value, const flow_key& mask, std::uint64_t rank, std::uint32_t member) {
    for (std::uint32_t i = 0; i < cr::key_words; ++i) {
      a.table.cr_write(cr::rule_value + 4 * i, value[i]);
      a.table.cr_write(cr::rule_mask + 4 * i, mask[i]);
    }
    a.table.cr_write(cr::rule_rank_high, static_cast<std::uint32_t>(rank >> 32));
    a.table.cr_write(cr::rule_rank_low, static_cast<std::uint32_t>(rank));
    a.table.cr_write(cr::rule_member, member);
    a.table.cr_write(cr::rule_write, place | cr::rule_valid);
  }
  void put(std::uint32_t place, std::uint32_t word0, std::uint64_t rank, std::uint32_t member) {
    put(place, flow_key{word0}, flow_key{~0u}, rank, member);
  }
  void remove(std::uint32_t place) { a.table.cr_write(cr::rule_write, place); }
  void ask(const flow_key& key, bool own = false) {
    a.questions.push_back({key, own});
    a.wake_next();
  }
  void run(unsigned cycles) { sc_core::sc_start(static_cast<double>(cycles), sc_core::SC_NS); }
  /// Members of the only rule, or rules, for this first word.
  qpns members(std::uint32_t word0, bool own = false) {
    a.answers.clear();
    ask(flow_key{word0}, own);
    run(1000);
    return a.answers.empty() ? qpns{~0u} : a.answers[0].members;
  }

  sim::timebase base;
  sim::clock_domain core;
  sim::statistics stats;
  asker a;
};

TEST(FlowTable, EmptyFindsNothing) {
  rig r;
  r.ask({1});
  r.run(10);
  ASSERT_EQ(r.a.answers.size(), 1u);
  EXPECT_EQ(r.a.answers[0].r, result::absent);
  EXPECT_EQ(r.a.answers[0].to, r.a.answers[0].from);
  EXPECT_EQ(r.stats.value("flows.missed"), 1u);
}

/// A look-up that is under way goes on where the table is enabled once more.
TEST(FlowTable, EnablingAnEnabledTableChangesNothing) {
  rig r;
  r.a.table.cr_write(cr::enable, 1);
  for (std::uint32_t i = 0; i < 200; ++i) r.put(i, 100 + i, 5, i);
  r.ask({150});
  r.run(10);
  ASSERT_TRUE(r.a.asking);
  r.a.table.cr_write(cr::enable, 1);
  r.run(100);
  ASSERT_EQ(r.a.answers.size(), 1u);
  EXPECT_EQ(r.a.answers[0].r, result::found);
  EXPECT_EQ(r.a.answers[0].members, qpns{50});
  EXPECT_EQ(r.a.answers[0].to - r.a.answers[0].from, 49u);
}

TEST(FlowTable, TheLowestRankDecidesAndIsShared) {
  rig r;
  r.put(0, 7, 20, 0x40);
  r.put(1, 7, std::uint64_t{1} << 40, 0x41);
  r.put(2, 7, 10, 0x42);
  r.put(3, 7, 20, 0x43);
  r.put(9, 7, 10, 0x44);
  EXPECT_EQ(r.members(7), (qpns{0x42, 0x44}));
  r.remove(2);
  EXPECT_EQ(r.members(7), qpns{0x44});
  r.remove(9);
  EXPECT_EQ(r.members(7), (qpns{0x40, 0x43}));
  r.remove(0);
  r.remove(3);
  EXPECT_EQ(r.members(7), qpns{0x41});
  EXPECT_EQ(r.members(8), qpns{});
  EXPECT_EQ(r.stats.value("flows.matched"), 4u);
  EXPECT_EQ(r.stats.value("flows.missed"), 1u);
}

TEST(FlowTable, CopiesComeInAnyCase) {
  rig r;
  r.put(0, {0}, {0}, 0, 0x50 | cr::member_copy);
  EXPECT_EQ(r.members(7), qpns{0x50});
  r.put(1, 7, 99, 0x41);
  EXPECT_EQ(r.members(7), (qpns{0x41, 0x50}));
}

TEST(FlowTable, OwnPacketsAreKeptFromThoseThatDoNotWantThem) {
  rig r;
  r.put(0, 7, 5, 0x40 | cr::member_no_loopback);
  r.put(1, 7, 5, 0x41);
  r.put(2, 7, 6, 0x42);
  EXPECT_EQ(r.members(7), (qpns{0x40, 0x41}));
  EXPECT_EQ(r.members(7, true), qpns{0x41});
  r.remove(1);
  EXPECT_EQ(r.members(7, true), qpns{}) << "the rule took it";
  EXPECT_EQ(r.a.answers[0].r, result::found);
}

/// Place of the last rule, comparators, cycles.
struct walk {
  std::uint32_t last;
  unsigned width, cycles;
};
class FlowTableWalk : public testing::TestWithParam<walk> {};

TEST_P(FlowTableWalk, TakesACycleAWord) {
  const walk w = GetParam();
  rig r(256, w.width);
  r.put(w.last, 7, 1, 0x40);
  for (unsigned i = 0; i < 3; ++i) r.ask({7});
  r.run(2000);
  ASSERT_EQ(r.a.answers.size(), 3u);
  for (const asker::answer& a : r.a.answers) EXPECT_EQ(a.to - a.from + 1, w.cycles);
  EXPECT_EQ(r.a.answers[2].to - r.a.answers[0].to, 2 * w.cycles);
  EXPECT_EQ(r.stats.value("flows.words"), 3u * w.cycles);
}
INSTANTIATE_TEST_SUITE_P(Places, FlowTableWalk,
                         testing::Values(walk{0, 4, 1}, walk{3, 4, 1}, walk{4, 4, 2}, walk{255, 4, 64},
                                         walk{255, 256, 1}, walk{9, 1, 10}));

TEST(FlowTable, GetsShorterWithItsLastRule) {
  rig r;
  r.put(0, 7, 1, 0x40);
  r.put(200, 8, 1, 0x41);
  r.remove(200);
  r.ask({7});
  r.run(10);
  ASSERT_EQ(r.a.answers.size(), 1u);
  EXPECT_EQ(r.a.answers[0].to, r.a.answers[0].from);
}

TEST(FlowTable, AWriteWaitsForTheLookUpThatIsUnderWay) {
  rig r(256, 1);
  r.put(99, 7, 9, 0x40);
  r.ask({7});
  r.ask({7});
  r.run(50);
  r.put(0, 7, 1, 0x41);  // behind the look-up's place
  EXPECT_EQ(r.a.table.cr_read(cr::rule_busy), 1u);
  r.put(1, 7, 0, 0x66);  // whoever does not look at it writes into the void
  r.run(60);
  EXPECT_EQ(r.a.table.cr_read(cr::rule_busy), 0u);
  r.run(200);
  ASSERT_EQ(r.a.answers.size(), 2u);
  EXPECT_EQ(r.a.answers[0].members, qpns{0x40});
  EXPECT_EQ(r.a.answers[1].members, qpns{0x41});
}

/// Who takes the table out of use does not ask for the end of the look-up, which a write would then wait for without
/// end.
TEST(FlowTable, NothingWaitsForALookUpOfATableThatIsNotUsedAnyMore) {
  rig r(256, 1);
  r.a.table.cr_write(cr::enable, 1);
  r.put(99, 7, 9, 0x40);
  r.ask({7});
  r.run(50);
  r.a.table.cr_write(cr::enable, 0);
  r.put(0, 7, 1, 0x41);
  EXPECT_EQ(r.a.table.cr_read(cr::rule_busy), 0u);
  r.a.table.cr_write(cr::enable, 1);
  EXPECT_EQ(r.a.table.cr_read(cr::enable), 1u) << "a write that waits would keep all others out";
  r.a.asking = false;
  r.ask({7});
  r.run(200);
  ASSERT_EQ(r.a.answers.size(), 1u);
  EXPECT_EQ(r.a.answers[0].members, qpns{0x41});
}

/// One rule takes another's place again and again, at either side of where the look-ups are: each look-up sees one of
/// them, never both and never none.
TEST(FlowTable, ReplacedUnderLookUpsNothingIsTorn) {
  rig r(256, 1);
  r.put(60, 9, 1, 0x99);
  r.put(2, 7, 5, 0x40);
  std::minstd_rand random(7);
  std::uint32_t at = 2, qpn = 0x40;
  for (unsigned i = 0; i < 400; ++i) {
    r.ask({7});
    r.run(static_cast<unsigned>(1 + random() % 90));
    const std::uint32_t next = at == 2 ? 50 : 2;
    const auto settle = [&] {
      while (r.a.table.cr_read(cr::rule_busy) != 0) r.run(1);
    };
    r.put(next, 7, 5 - i / 100, ++qpn);  // a little before the other goes, both are members or the new one is
    settle();
    r.run(static_cast<unsigned>(random() % 3));
    r.remove(at);
    settle();
    at = next;
  }
  r.run(40'000);
  ASSERT_EQ(r.a.answers.size(), 400u);
  std::uint32_t last = 0;
  for (const asker::answer& a : r.a.answers) {
    ASSERT_GE(a.members.size(), 1u);
    ASSERT_LE(a.members.size(), 2u);
    EXPECT_GE(*std::min_element(a.members.begin(), a.members.end()), last) << "an older rule came back";
    last = *std::min_element(a.members.begin(), a.members.end());
  }
}

TEST(FlowTable, HoldsWhatItsParameterSays) {
  rig r(3, 2);
  EXPECT_EQ(r.a.table.cr_read(cr::capacity), 3u);
  r.put(2, 7, 1, 0x40);
  r.put(3, 8, 1, 0x41);
  EXPECT_EQ(r.members(7), qpns{0x40});
  EXPECT_EQ(r.members(8), qpns{});
}

TEST(FlowTable, ListsAreBounded) {
  rig r(512, 16);
  for (std::uint32_t i = 0; i < 300; ++i) r.put(i, 7, 1, 0x1000 + i);
  for (std::uint32_t i = 0; i < 20; ++i) r.put(400 + i, 7, 1, (0x2000 + i) | cr::member_copy);
  const qpns got = r.members(7);
  ASSERT_EQ(got.size(), std::size_t{cr::max_members} + cr::max_copies);
  EXPECT_EQ(got[cr::max_members - 1], 0x1000u + cr::max_members - 1);
  EXPECT_EQ(got[cr::max_members], 0x2000u);
}

TEST(FlowTable, ResetForgetsAll) {
  rig r(256, 1);
  r.a.table.cr_write(cr::enable, 1);
  r.put(99, 7, 1, 0x40);
  EXPECT_TRUE(r.a.table.enabled());
  r.a.table.reset();
  EXPECT_FALSE(r.a.table.enabled());
  EXPECT_EQ(r.members(7), qpns{});
}

/// A packet by its fields, and a rule over some of them.
struct packet {
  unsigned port = 0;
  std::uint64_t dmac = 0, smac = 0;
  std::optional<std::uint16_t> tci;
  std::uint16_t type = 0;
  bool ipv4 = false;
  std::uint32_t source = 0, destination = 0;
  std::uint8_t protocol = 0;
  std::uint16_t from = 0, to = 0;
};
struct field_rule {
  unsigned port = 0;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> dmac, smac;  ///< value, mask
  std::optional<std::pair<std::uint16_t, std::uint16_t>> vlan;
  std::optional<std::uint16_t> type;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> source, destination;
  std::uint8_t protocol = 0;
  std::optional<std::pair<std::uint16_t, std::uint16_t>> from, to;
  unsigned priority = 0;
  std::uint32_t qpn = 0;

  template <class T>
  static bool fits(const std::optional<std::pair<T, T>>& f, T value) {
    return !f || (value & f->second) == (f->first & f->second);
  }
  bool matches(const packet& p) const {
    if (p.port != port || !fits(dmac, p.dmac) || !fits(smac, p.smac) || (type && *type != p.type)) return false;
    if (vlan && (!p.tci || !fits(vlan, *p.tci))) return false;
    if ((source || destination) && (!p.ipv4 || !fits(source, p.source) || !fits(destination, p.destination)))
      return false;
    return protocol == 0 || (p.protocol == protocol && fits(from, p.from) && fits(to, p.to));
  }
};

void append(std::vector<std::uint8_t>& to, std::uint64_t value, unsigned count) {
  for (unsigned i = count; i-- != 0;) to.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

std::vector<std::uint8_t> bytes_of(const packet& p) {
  std::vector<std::uint8_t> b;
  append(b, p.dmac, 6);
  append(b, p.smac, 6);
  if (p.tci) append(b, 0x8100u << 16 | *p.tci, 4);
  append(b, p.type, 2);
  if (p.ipv4) {
    append(b, 0x4500, 2);
    append(b, p.protocol == 0 ? 60 : 48, 2);
    append(b, 0x12340000, 4);
    append(b, 0x40u << 24 | (p.protocol == 0 ? 1u : p.protocol) << 16 | 0xabcd, 4);
    append(b, p.source, 4);
    append(b, p.destination, 4);
    append(b, std::uint32_t{p.from} << 16 | p.to, 4);
    if (p.protocol == 6) append(b, 0, 8), append(b, 0x5000, 2);
    if (p.protocol == 17) append(b, 28u << 16, 4);
  }
  b.resize(std::max<std::size_t>(b.size(), 78));
  return b;
}

/// As flow_cr.h has it.
std::pair<flow_key, flow_key> words_of(const field_rule& r) {
  namespace k = cr::frame_key;
  flow_key value{}, mask{};
  const auto put = [&](unsigned word, std::uint32_t v, std::uint32_t m) {
    value[word] |= v & m;
    mask[word] |= m;
  };
  put(k::kind, r.port == 1 ? k::port_2 : 0, k::port_2);
  if (r.dmac) {
    put(k::dmac_high, static_cast<std::uint32_t>(r.dmac->first >> 16),
        static_cast<std::uint32_t>(r.dmac->second >> 16));
    put(k::dmac_smac, static_cast<std::uint32_t>(r.dmac->first << 16),
        static_cast<std::uint32_t>(r.dmac->second << 16));
  }
  if (r.smac) {
    put(k::dmac_smac, static_cast<std::uint32_t>(r.smac->first >> 32),
        static_cast<std::uint32_t>(r.smac->second >> 32));
    put(k::smac_low, static_cast<std::uint32_t>(r.smac->first), static_cast<std::uint32_t>(r.smac->second));
  }
  if (r.vlan) {
    put(k::kind, k::tagged, k::tagged);
    put(k::tag, r.vlan->first, r.vlan->second);
  }
  if (r.type) put(k::kind, *r.type, 0xffff);
  if (r.source || r.destination) put(k::kind, k::ipv4, k::ipv4);
  if (r.source) put(k::source_ip, r.source->first, r.source->second);
  if (r.destination) put(k::destination_ip, r.destination->first, r.destination->second);
  if (r.protocol != 0) put(k::kind, r.protocol == 6 ? k::tcp : k::udp, r.protocol == 6 ? k::tcp : k::udp);
  if (r.from) put(k::ports, std::uint32_t{r.from->first} << 16, std::uint32_t{r.from->second} << 16);
  if (r.to) put(k::ports, r.to->first, r.to->second);
  return {value, mask};
}

/// Small worlds, so that rules and packets meet.
class dice {
 public:
  explicit dice(unsigned seed) : random_(seed) {}
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>((random_() >> 7) % n); }
  bool sometimes(std::uint32_t in = 2) { return below(in) == 0; }
  std::uint64_t mac() { return (sometimes(4) ? 0x0100'5e00'0000u : 0x0200'0000'0000u) | below(4); }
  std::uint32_t ip() { return 0x0a00'0000u | below(2) << 8 | below(4); }
  std::uint16_t port() { return static_cast<std::uint16_t>(1000 + below(4)); }
  packet make_packet() {
    packet p;
    p.port = below(2);
    p.dmac = mac();
    p.smac = mac() & ~(std::uint64_t{1} << 40);
    if (sometimes()) p.tci = static_cast<std::uint16_t>(below(4) << 13 | below(3));
    p.ipv4 = !sometimes(4);
    p.type = p.ipv4 ? 0x0800 : 0x88b5;
    if (!p.ipv4) return p;
    p.source = ip();
    p.destination = ip();
    p.protocol = std::array<std::uint8_t, 3>{0, 6, 17}[below(3)];
    p.from = port();
    p.to = port();
    return p;
  }
  template <class T>
  T mask() {
    constexpr std::array<T, 4> masks{static_cast<T>(~T{0}), static_cast<T>(~T{0}), static_cast<T>(~T{1}), T{3}};
    return masks[below(4)];
  }
  field_rule make_rule() {
    field_rule r;
    r.port = below(2);
    const std::uint64_t all = 0xffff'ffff'ffff;
    if (!sometimes(3)) r.dmac = {mac(), mask<std::uint64_t>() & all};
    if (sometimes(5)) r.smac = {mac(), mask<std::uint64_t>() & all};
    if (sometimes(4)) r.vlan = {static_cast<std::uint16_t>(below(3)), std::uint16_t{0xfff}};
    if (sometimes(6)) r.type = sometimes() ? 0x0800 : 0x88b5;
    if (sometimes(3)) r.destination = {ip(), mask<std::uint32_t>()};
    if (sometimes(5)) r.source = {ip(), mask<std::uint32_t>()};
    if (sometimes(3)) {
      r.protocol = sometimes() ? 6 : 17;
      if (sometimes()) r.from = {port(), mask<std::uint16_t>()};
      if (sometimes()) r.to = {port(), mask<std::uint16_t>()};
    }
    r.priority = below(6);
    return r;
  }

 private:
  std::minstd_rand random_;
};

/// Rules of which the best priority matches, in the order of their places.
qpns reference(const std::vector<std::optional<field_rule>>& rules, const packet& p) {
  unsigned best = ~0u;
  for (const auto& r : rules)
    if (r && r->matches(p)) best = std::min(best, r->priority);
  qpns found;
  for (const auto& r : rules)
    if (r && r->priority == best && r->matches(p)) found.push_back(r->qpn);
  return found;
}

class FlowTableRandom : public testing::TestWithParam<unsigned> {};

/// 1000 sets of rules, changed once, and 24 packets for each set, as frames: 24 000 look-ups a seed.
TEST_P(FlowTableRandom, FindsWhatAPlainListFinds) {
  dice d(GetParam());
  rig r(64, 8);
  payload::frame_pool pool;
  std::uint64_t matched = 0;
  for (unsigned set = 0; set < 1000; ++set) {
    std::vector<std::optional<field_rule>> rules(1 + d.below(40));
    const auto change = [&](std::uint32_t place) {
      if (rules[place] && d.sometimes()) {
        rules[place].reset();
        return r.remove(place);
      }
      rules[place] = d.make_rule();
      rules[place]->qpn = 0x100 + place;
      const auto [value, mask] = words_of(*rules[place]);
      r.put(place, value, mask, std::uint64_t{rules[place]->priority} << 32, rules[place]->qpn);
    };
    for (std::uint32_t i = 0; i < rules.size(); ++i) change(i);
    for (unsigned half = 0; half < 2; ++half) {
      std::vector<packet> packets;
      r.a.answers.clear();
      for (unsigned i = 0; i < 12; ++i) {
        packets.push_back(d.make_packet());
        const std::vector<std::uint8_t> bytes = bytes_of(packets.back());
        payload::frame_ptr f = pool.get();
        f->length = static_cast<std::uint32_t>(bytes.size());
        f->port = static_cast<std::uint8_t>(packets.back().port);
        std::copy(bytes.begin(), bytes.end(), f->data());
        r.ask(key_of_frame(*f));
      }
      r.run(100);
      ASSERT_EQ(r.a.answers.size(), packets.size());
      for (unsigned i = 0; i < packets.size(); ++i) {
        const qpns expected = reference(rules, packets[i]);
        ASSERT_EQ(r.a.answers[i].members, expected) << "seed " << GetParam() << " set " << set << " packet " << i;
        matched += expected.empty() ? 0 : 1;
      }
      for (unsigned i = 0; i < 5; ++i) change(d.below(static_cast<std::uint32_t>(rules.size())));
    }
    r.a.table.reset();
  }
  EXPECT_EQ(r.stats.value("flows.look_ups"), 24'000u);
  EXPECT_EQ(r.stats.value("flows.matched"), matched);
  EXPECT_GT(matched, 6000u);
  EXPECT_LT(matched, 23'000u);
}
INSTANTIATE_TEST_SUITE_P(Seeds, FlowTableRandom, testing::Range(1u, 5u));

}  // namespace
}  // namespace rnic::flow
