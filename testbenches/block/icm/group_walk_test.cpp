// SPDX-License-Identifier: Apache-2.0
// The walk along a chain of the multicast group table: literal cycles, and every way in which a chain ends.
#include "model/icm/group_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <systemc>
#include <vector>

#include "model/sim/check.h"
#include "model/sim/timebase.h"
#include "testbenches/bench/child.h"
#include "testbenches/block/icm/group_table.h"

namespace {

using namespace rnic;
using rnic::bench::group_id;
using rnic::bench::group_table;
using result = icm::group_walk::result;
using members = std::vector<std::uint32_t>;

constexpr unsigned memory_cycles = 100;
/// A fetch: request and answer in their channels, and memory between them.
constexpr unsigned fetch = memory_cycles + 2;

/// Searches one after the other, each from the cycle on in which it begins.
class owner : public sim::clocked_block {
 public:
  struct ended {
    result how;
    sim::cycle_t after;  // cycles from begin()
    members found;
  };
  owner(sim::clock_domain& d, const icm::context_cache_config& c, const icm::icm_map& map, sim::statistics& stats)
      : clocked_block("owner", d), walk("groups", *this, c, map, stats) {}
  void search(const group_id& id, icm::group_walk::protocol p = icm::group_walk::protocol::roce) {
    todo.push_back({id, p});
    wake_next();
  }
  void give_up() { searching_ = false; }

  icm::group_walk walk;
  std::deque<std::pair<group_id, icm::group_walk::protocol>> todo;
  std::vector<ended> done;

 private:
  void tick() override {
    walk.service();
    if (!searching_) {
      if (todo.empty()) return;
      walk.begin(todo.front().first.data(), todo.front().second);
      todo.pop_front();
      begun_ = now();
      searching_ = true;
    }
    const result r = walk.step();
    if (r == result::next || r == result::waiting) return;
    searching_ = false;
    done.push_back({r, now() - begun_, r == result::found ? walk.members() : members{}});
    if (!todo.empty()) wake_next();
  }
  bool searching_ = false;
  sim::cycle_t begun_ = 0;
};

struct rig {
  explicit rig(bool always = false, const icm::context_cache_config& c = {64, 64, 1, 0, 1},
               std::uint32_t entry_bytes = group_table::entry_bytes)
      : base({always, 0}),
        clock("core", base, {1000, 1, 0}),
        memory(clock, std::size_t{entry_bytes} * 64, memory_cycles),
        table(map, memory, entry_bytes),
        user(clock, c, map, stats) {
    memory.attach(user.walk.groups().dma);
    user.walk.set_hash_bits(group_table::hash_bits);
    sc_core::sc_start(500, sc_core::SC_PS);  // what the test does, it does between the edges
  }
  void written(const std::vector<std::uint32_t>& entries) {
    for (const std::uint32_t i : entries) user.walk.written(i);
  }
  void run(unsigned cycles = 1000) { sc_core::sc_start(static_cast<double>(cycles), sc_core::SC_NS); }
  /// How the next search ends.
  owner::ended search(const group_id& id, icm::group_walk::protocol p = icm::group_walk::protocol::roce,
                      unsigned cycles = 8000) {
    const std::size_t before = user.done.size();
    user.search(id, p);
    run(cycles);
    EXPECT_EQ(user.done.size(), before + 1);
    return user.done.size() == before ? owner::ended{} : user.done.back();
  }
  std::uint64_t counted(const std::string& name) const { return stats.value("groups." + name); }

  sim::timebase base;
  sim::clock_domain clock;
  sim::statistics stats;
  icm::icm_map map;
  rnic::bench::fake_memory memory;
  group_table table;
  owner user;
};

const group_id group{0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3};

/// Place of the group in its chain.
class GroupWalkPlace : public testing::TestWithParam<unsigned> {};

TEST_P(GroupWalkPlace, ReadsOneEntryOfItsChainACycle) {
  const unsigned place = GetParam();
  rig r;
  r.written(r.table.chain(group, place, {0x41, 0x42}));
  const auto fetched = r.search(group);  // each entry comes from memory, and the next is asked for a cycle later
  EXPECT_EQ(fetched.how, result::found);
  EXPECT_EQ(fetched.after, fetch * place + (place - 1));
  const auto cached = r.search(group);
  EXPECT_EQ(cached.how, result::found);
  EXPECT_EQ(cached.after, place - 1);
  EXPECT_EQ(cached.found, (members{0x41, 0x42}));
  EXPECT_EQ(r.counted("entries"), 2 * place);
  EXPECT_EQ(r.counted("searches"), 2u);
  EXPECT_EQ(r.counted("found"), 2u);
  EXPECT_EQ(r.counted("hits"), place);
  EXPECT_EQ(r.counted("misses"), place);
  EXPECT_EQ(r.memory.reads(), place);
}

INSTANTIATE_TEST_SUITE_P(Places, GroupWalkPlace, testing::Values(1u, 2u, 3u, 7u, 40u));

TEST(GroupWalk, SecondEntryInACycleIsABrokenInvariant) {
  rig r;
  r.written(r.table.chain(group, 3, {0x41}));
  r.search(group);
  r.user.walk.begin(group.data(), icm::group_walk::protocol::roce);
  EXPECT_EQ(r.user.walk.step(), result::next);
  EXPECT_THROW(r.user.walk.step(), sim::invariant_error);
}

TEST(GroupWalk, StepWithoutASearchIsABrokenInvariant) {
  rig r;
  EXPECT_THROW(r.user.walk.step(), sim::invariant_error);
}

TEST(GroupWalk, EntryNeverWrittenIsEmptyAndNotRead) {
  rig r;
  const auto chain = r.table.chain(group, 3, {0x41});
  const auto at_once = r.search(group);  // memory has it, firmware has not written it
  EXPECT_EQ(at_once.how, result::absent);
  EXPECT_EQ(at_once.after, 0u);
  EXPECT_EQ(r.memory.reads(), 0u);
  r.written({chain[0]});
  EXPECT_EQ(r.search(group).how, result::absent);
  const auto second = r.search(group);
  EXPECT_EQ(second.how, result::absent);
  EXPECT_EQ(second.after, 1u);
  EXPECT_EQ(r.memory.reads(), 1u);
}

TEST(GroupWalk, ChainWithoutTheGroupEndsAtItsLastEntry) {
  rig r;
  const auto chain = r.table.chain(group, 4, {0x41});
  group_id other = group;
  other[9] = 1;
  r.table.put(chain[3], other, 0, {0x41});
  r.written(chain);
  r.search(group);
  const auto e = r.search(group);
  EXPECT_EQ(e.how, result::absent);
  EXPECT_EQ(e.after, 3u);
}

TEST(GroupWalk, ChainWithoutEndIsGivenUp) {
  rig r;
  const auto chain = r.table.chain(group, 3, {0x41});
  group_id other = group;
  other[9] = 1;
  r.table.put(chain[2], other, chain[1], {0x41});  // a ring of two
  r.written(chain);
  r.search(group);
  const auto e = r.search(group);
  EXPECT_EQ(e.how, result::endless);
  EXPECT_EQ(e.after, icm::group_walk::longest_chain - 1);
  EXPECT_EQ(r.counted("entries"), 2 * icm::group_walk::longest_chain);
  EXPECT_EQ(r.counted("endless"), 2u);
}

TEST(GroupWalk, ThatCannotReadAnEntryFindsNothing) {
  rig r;
  const auto chain = r.table.chain(group, 2, {0x41}, 60);
  r.written(chain);
  r.map.unmap(group_table::icm_base + 60 * group_table::entry_bytes / 4096 * 4096, 4096);
  r.search(group);
  const auto unmapped = r.search(group);
  EXPECT_EQ(unmapped.how, result::absent);
  EXPECT_EQ(unmapped.after, 1u);
  r.map.map(group_table::icm_base + 60 * group_table::entry_bytes / 4096 * 4096, 0x8000'0000, 4096);
  const auto refused = r.search(group);  // mapped to what is no memory
  EXPECT_EQ(refused.how, result::absent);
  EXPECT_EQ(refused.after, 1 + fetch);
  EXPECT_EQ(r.counted("failed_fills"), 1u);
}

TEST(GroupWalk, ComparesProtocolAndMembersToo) {
  rig r;
  const std::uint32_t bucket = group_table::bucket(group);
  r.table.put(bucket, group, 30, {0x41}, group_table::ethernet);
  r.table.put(30, group, 31, {});
  r.table.put(31, group, 0, {0x42, 1u << 30 | 0x43});
  r.written({bucket, 30, 31});
  EXPECT_EQ(r.search(group).found, (members{0x42, 1u << 30 | 0x43}));
  EXPECT_EQ(r.search(group).after, 2u);
  const auto e = r.search(group, icm::group_walk::protocol::ethernet);
  EXPECT_EQ(e.after, 0u);
  EXPECT_EQ(e.found, members{0x41});
}

/// Of entries of each length: members that fit, and 256 at most; so much of an entry is read.
class GroupWalkLength : public testing::TestWithParam<std::uint32_t> {};

TEST_P(GroupWalkLength, TakesNoMoreMembersThanAnEntryHas) {
  const std::uint32_t bytes = GetParam();
  rig r(false, {64, 64, 1, 0, 1}, bytes);
  const std::uint32_t bucket = group_table::bucket(group);
  members many(std::min(256u, bytes / 4 - 8));
  for (std::uint32_t i = 0; i < many.size(); ++i) many[i] = 0x100 + i;
  r.table.put(bucket, group, 0, many);
  r.written({bucket});
  EXPECT_EQ(r.search(group).found, many);
  ASSERT_EQ(r.memory.log.size(), 1u);
  EXPECT_EQ(r.memory.log[0].length, std::min(bytes, 32u + 4 * 256));
  r.memory.be32(std::uint64_t{bucket} * bytes + 4, 0xffffff);
  r.written({bucket});
  EXPECT_EQ(r.search(group).found, many);
}

INSTANTIATE_TEST_SUITE_P(Bytes, GroupWalkLength, testing::Values(128u, 256u, 512u, 1024u, 2048u, 4096u));

TEST(GroupWalk, EntriesShorterThanTheShortestHaveNoGroups) {
  rig r(false, {64, 64, 1, 0, 1}, 64);
  const std::uint32_t bucket = group_table::bucket(group);
  r.table.put(bucket, group, 0, {0x41});
  r.written({bucket});
  EXPECT_EQ(r.search(group).how, result::absent);
  EXPECT_EQ(r.memory.reads(), 0u);
}

TEST(GroupWalk, EntryThatIsWrittenAgainIsReadAgain) {
  rig r;
  const auto chain = r.table.chain(group, 2, {0x41});
  r.written(chain);
  EXPECT_EQ(r.search(group).found, members{0x41});
  r.table.put(chain[1], group, 0, {0x42});
  EXPECT_EQ(r.search(group).found, members{0x41});  // until firmware says so
  r.written({chain[1]});
  const auto e = r.search(group);
  EXPECT_EQ(e.found, members{0x42});
  EXPECT_EQ(e.after, 1 + fetch);
}

TEST(GroupWalk, NumbersBeyondTheTableAreIgnored) {
  rig r;
  r.written({64, 0x1'0000, 0xffff'ffff});
  const auto chain = r.table.chain(group, 1, {0x41});
  EXPECT_EQ(r.search(group).how, result::absent);
  r.table.put(chain[0], {}, 0x3ff'ffff, {0x41});  // leads out of it
  r.written(chain);
  EXPECT_EQ(r.search(group).how, result::absent);
}

TEST(GroupWalk, ResetForgetsAllEntries) {
  rig r;
  const auto chain = r.table.chain(group, 3, {0x41});
  r.written(chain);
  r.user.search(group);
  r.run(fetch + 20);  // the second entry is on its way
  r.user.walk.reset();
  r.user.give_up();
  EXPECT_EQ(r.user.walk.hash_bits(), 0u);
  for (const std::uint32_t i : chain) EXPECT_FALSE(r.user.walk.groups().on_chip(i)) << i;
  r.user.walk.set_hash_bits(group_table::hash_bits);
  EXPECT_EQ(r.search(group).how, result::absent);
  r.written(chain);
  const auto e = r.search(group);
  EXPECT_EQ(e.found, members{0x41});
  EXPECT_EQ(e.after, 3 * fetch + 2);
}

/// Cycles of five searches of a chain, and what was counted.
std::string searches(bool always) {
  return rnic::bench::in_child([always] {
    rig r(always);
    r.written(r.table.chain(group, 5, {0x41}));
    for (unsigned i = 0; i < 5; ++i) r.user.search(group);
    r.run();
    std::string seen;
    for (const auto& e : r.user.done) seen += std::to_string(e.after) + ' ';
    return seen + std::to_string(r.counted("hits")) + ' ' + std::to_string(r.counted("stalls"));
  });
}

TEST(GroupWalk, SleepingIsInvisible) {
  EXPECT_EQ(searches(false), "514 4 4 4 4 20 0");
  EXPECT_EQ(searches(true), searches(false));
}

}  // namespace
