// SPDX-License-Identifier: Apache-2.0
// Answers of the translation, its caches, what firmware takes back.
#include <gtest/gtest.h>

#include "testbenches/bench/child.h"
#include "testbenches/block/icm/translation_rig.h"

namespace {
using namespace translation_test;

TEST(translation, reads_the_published_tables_and_then_hits) {
  rig b;
  auto a = b.answer(b.key(0x10010, 64, 1));
  EXPECT_EQ(a.status, translate_status::ok);
  EXPECT_TRUE(a.missed);
  ASSERT_EQ(a.count, 1u);
  EXPECT_EQ(a.segments[0].address, 0x5000010u);
  EXPECT_EQ(a.segments[0].length, 64u);
  ASSERT_EQ(b.memory.log.size(), 2u);
  EXPECT_EQ(b.memory.log[0].address, mpt_host + 0x23 * 64);
  EXPECT_EQ(b.memory.log[1].address, mtt_host + 0x100);
  EXPECT_EQ(b.memory.log[1].length, 64u);
  a = b.answer(b.key(0x17ff0, 16, 2));
  EXPECT_FALSE(a.missed);
  EXPECT_EQ(a.segments[0].address, 0x5070ff0u);
  // One cycle each for the two channels, and the configured look-up.
  EXPECT_EQ(b.users[0]->answered[2] - b.users[0]->asked[2], 2 + icm::translation_config{}.translate_cycles);
  EXPECT_EQ(b.memory.log.size(), 2u);
}

TEST(translation, two_pages_give_two_segments) {
  rig b;
  const auto a = b.answer(b.key(0x10fff, 4096, 1));
  ASSERT_EQ(a.count, 2u);
  EXPECT_EQ(a.segments[0].address, 0x5000fffu);
  EXPECT_EQ(a.segments[0].length, 1u);
  EXPECT_EQ(a.segments[1].address, 0x5010000u);
  EXPECT_EQ(a.segments[1].length, 4095u);
}

TEST(translation, unaligned_start_of_a_region) {
  rig b;
  b.region(0x10, 1, 7, 0x7f0000000ff0, 0x2000, 0x800);
  auto r = b.key(0x7f0000001000, 8, 1);
  r.key = 0x10 << 8 | 1;
  const auto a = b.answer(r);
  EXPECT_EQ(a.status, translate_status::ok);
  EXPECT_EQ(a.segments[0].address, 0x5010000u);
}

TEST(translation, refusals) {
  rig b;
  auto r = b.key(0x10000, 16, 1);
  r.pd = 8;
  EXPECT_EQ(b.answer(r).status, translate_status::wrong_pd);
  r = b.key(0x17ff8, 16, 2);
  EXPECT_EQ(b.answer(r).status, translate_status::out_of_range);
  r = b.key(0x10000, 16, 3);
  r.check_length = 0x8001;
  EXPECT_EQ(b.answer(r).status, translate_status::out_of_range);
  r = b.key(0x10000, 16, 4);
  r.key ^= 1;
  EXPECT_EQ(b.answer(r).status, translate_status::bad_key);
  r = b.key(0x10000, 0, 5);
  r.key = 0xdeadbeef;
  EXPECT_EQ(b.answer(r).status, translate_status::ok);  // zero length: the key is not looked at
  b.memory.be64(mtt_host + 0x110, 0x9000);              // page 2 not present
  const auto a = b.answer(b.key(0x11ff8, 16, 6));
  EXPECT_EQ(a.status, translate_status::not_mapped);
  EXPECT_EQ(a.count, 0u);
  b.cr(icm::cr::map_icm_lo, static_cast<std::uint32_t>(mpt_icm));
  b.cr(icm::cr::map_command, icm::cr::map_command_unmap);
  b.cr(icm::cr::tpt_command, icm::cr::tpt_command_drop_all);
  EXPECT_EQ(b.answer(b.key(0x10000, 16, 7)).status, translate_status::bad_key);
  EXPECT_EQ(b.registers.cr_read(icm::cr::count_refused), 6u);
}

TEST(translation, reserved_key_physical_region_and_buffer) {
  rig b;
  auto r = b.key(0x123456789, 100, 1);
  r.what = icm::translate_request::kind::reserved_key;
  EXPECT_EQ(b.answer(r).segments[0].address, 0x123456789u);
  b.region(0x20, 0, 7, 0, ~std::uint64_t{0}, 0);
  b.memory.be32(mpt_host + 0x20 * 64, 0x0f00);  // physical, region, local read and write
  r = b.key(0xabcdef0123, 4096, 2);
  r.key = 0x20 << 8;
  const auto a = b.answer(r);
  EXPECT_EQ(a.status, translate_status::ok);
  EXPECT_EQ(a.count, 1u);
  EXPECT_EQ(a.segments[0].address, 0xabcdef0123u);
  b.memory.be64(mtt_host + 0x2008, 0x7000000 | 1);
  r = b.key(0x10000 + 0x804, 32, 3);
  r.what = icm::translate_request::kind::buffer;
  r.log_page = 16;
  r.buffer_mtt = 0x2000;
  EXPECT_EQ(b.answer(r).segments[0].address, 0x7000804u);
}

TEST(translation, ranges_end_with_the_address_space) {
  rig b;
  const std::uint64_t end = ~std::uint64_t{0};
  b.region(0x50, 1, 7, end - 0x1fff, 0x2000, 0x800);  // to the last address
  const auto at_top = [&](std::uint64_t va, std::uint32_t length, std::uint64_t check = 0) {
    auto r = b.key(va, length, 1);
    r.key = 0x50 << 8 | 1;
    r.check_length = check;
    return b.answer(r);
  };
  EXPECT_EQ(at_top(end - 0x1f, 0x20).status, translate_status::ok);
  EXPECT_EQ(at_top(end - 0x1f, 0x20).segments[0].address, 0x5010fe0u);
  EXPECT_EQ(at_top(end - 0x1f, 0x21).status, translate_status::out_of_range);
  EXPECT_EQ(at_top(end - 0x1f, 0x40).status, translate_status::out_of_range);
  EXPECT_EQ(at_top(end - 0x1f, 0x20, 0x21).status, translate_status::out_of_range);
  EXPECT_EQ(at_top(end - 0x1f, 0x20, end).status, translate_status::out_of_range);
  EXPECT_EQ(at_top(end, 1).status, translate_status::ok);
  EXPECT_EQ(at_top(end, 2).status, translate_status::out_of_range);
  EXPECT_EQ(at_top(0, 1).status, translate_status::out_of_range);
  EXPECT_EQ(at_top(end - 0x1fff, 4096, 0x2000).status, translate_status::ok);
  EXPECT_EQ(at_top(end - 0x2000, 1).status, translate_status::out_of_range);
  auto r = b.key(end - 0x1f, 0x20, 2);  // the bus has no addresses behind the last either
  r.what = icm::translate_request::kind::reserved_key;
  EXPECT_EQ(b.answer(r).status, translate_status::ok);
  r.length = 0x21;
  EXPECT_EQ(b.answer(r).status, translate_status::out_of_range);
  EXPECT_EQ(b.answer(r).count, 0u);
}

TEST(translation, window_goes_through_to_its_region) {
  rig b;
  b.region(0x30, 2, 7, 0x11000, 0x1000, 0);
  const std::uint64_t w = mpt_host + 0x30 * 64;
  b.memory.be32(w, 1u << 12);  // window, remote read
  b.memory.be32(w + 0x20, 0x123 << 8 | 0x45);
  auto r = b.key(0x11020, 16, 1);
  r.key = 0x30 << 8 | 2;
  r.access = icm::access::remote_read;
  auto a = b.answer(r);
  EXPECT_EQ(a.status, translate_status::ok);
  EXPECT_EQ(a.segments[0].address, 0x5010020u);
  r.access = icm::access::remote_write;
  EXPECT_EQ(b.answer(r).status, translate_status::no_rights);
  r.access = icm::access::remote_read;
  r.va = 0x10000;
  EXPECT_EQ(b.answer(r).status, translate_status::out_of_range);
}

TEST(translation, misses_are_merged_and_hits_pass) {
  rig b;
  b.answer(b.key(0x10000, 16, 1));
  b.region(0x40, 0, 7, 0, 0x1000, 0x400);
  b.memory.log.clear();
  for (std::uint64_t t = 10; t < 14; ++t) {
    auto r = b.key(8 * t, 8, t);
    r.key = 0x40 << 8;
    b.users[0]->ask(r);
  }
  b.users[0]->ask(b.key(0x10000, 16, 20));
  b.run(600);
  EXPECT_EQ(b.memory.reads(), 2u);
  EXPECT_EQ(b.tpt.counters().merged, 6u);
  EXPECT_LT(b.users[0]->answered.at(20), b.users[0]->answered.at(10));
  for (std::uint64_t t = 10; t < 14; ++t) EXPECT_EQ(b.users[0]->answers.at(t).segments[0].address, 0x5000000 + 8 * t);
}

/// Is told of keys that have lost their meaning, and answers when the test says so.
class key_user : public sim::clocked_block {
 public:
  key_user(sim::clock_domain& d, icm::key_engine& engine, unsigned n)
      : clocked_block("key_user", d), in_(*this), out_(*this), revoke_("revoke", d, 2), revoked_("revoked", d, 2) {
    engine.revoke[n].bind(revoke_);
    in_.bind(revoke_);
    out_.bind(revoked_);
    engine.revoked[n].bind(revoked_);
  }
  void give_back() {
    ready_ = true;
    wake_next();
  }
  std::vector<std::uint32_t> keys;

 private:
  void tick() override {
    while (in_.can_pop()) keys.push_back(in_.pop().key);
    if (!ready_ || !out_.can_push()) return;
    out_.push({keys.back()});
    ready_ = false;
  }
  sim::fifo_in<icm::key_revocation> in_;
  sim::fifo_out<icm::key_revocation> out_;
  sim::fifo<icm::key_revocation> revoke_, revoked_;
  bool ready_ = false;
};

/// HW2SW_MPT of a key that is in use: both halves of the transport say when nothing of it is under way.
TEST(translation, a_key_that_firmware_takes_back_is_waited_for) {
  rig b;
  key_user first(b.clock, b.tpt.keys(), 0), second(b.clock, b.tpt.keys(), 1);
  EXPECT_EQ(b.answer(b.key(0x10010, 64, 1)).status, translate_status::ok);
  b.cr(icm::cr::tpt_index, 0x123);
  b.cr(icm::cr::tpt_command, icm::cr::tpt_command_drop_mpt);
  b.cr(icm::cr::tpt_index, 0x12345);
  b.cr(icm::cr::tpt_command, icm::cr::tpt_command_revoke_key);
  b.run(200);
  EXPECT_EQ(first.keys, std::vector<std::uint32_t>{0x12345});
  EXPECT_EQ(second.keys, std::vector<std::uint32_t>{0x12345});
  EXPECT_EQ(b.registers.cr_read(icm::cr::tpt_status), 1u);
  first.give_back();
  b.run(200);
  EXPECT_EQ(b.registers.cr_read(icm::cr::tpt_status), 1u) << "one of two";
  second.give_back();
  b.run(200);
  EXPECT_EQ(b.registers.cr_read(icm::cr::tpt_status), 0u);
}

TEST(translation, drop_leaves_nothing_stale) {
  rig b;
  b.users[0]->ask(b.key(0x10000, 16, 1));
  b.run(150);  // the MPT has been read, the MTT is under way
  ASSERT_EQ(b.memory.reads(), 2u);
  b.cr(icm::cr::tpt_mtt_lo, 0x100);
  b.cr(icm::cr::tpt_count, 1);
  b.cr(icm::cr::tpt_command, icm::cr::tpt_command_drop_mtt_range);
  EXPECT_EQ(b.registers.cr_read(icm::cr::tpt_status), 1u);
  b.run(54);  // the old line has been read by now, the answer not used yet
  b.memory.be64(mtt_host + 0x100, 0x6000000 | 1);
  b.run(300);
  EXPECT_EQ(b.users[0]->answers.at(1).segments[0].address, 0x6000000u);
  EXPECT_EQ(b.registers.cr_read(icm::cr::tpt_status), 0u);
  EXPECT_EQ(b.tpt.counters().stale, 1u);
  b.memory.be32(mpt_host + 0x23 * 64 + 0xc, 9);
  EXPECT_EQ(b.answer(b.key(0x10000, 16, 2)).status, translate_status::ok);  // on chip
  b.cr(icm::cr::tpt_index, 0x123);
  b.cr(icm::cr::tpt_command, icm::cr::tpt_command_drop_mpt);
  EXPECT_EQ(b.answer(b.key(0x10000, 16, 3)).status, translate_status::wrong_pd);
}

TEST(translation, one_way_caches_and_one_fill_still_answer_everything) {
  icm::translation_config c;
  c.mpt_entries = c.mpt_ways = 1;
  c.mtt_entries = 1;
  c.mtt_ways = 1;
  c.mtt_line_entries = 1;
  c.fills = 1;
  c.waiting = 4;
  rig b(c);
  for (std::uint64_t t = 0; t < 40; ++t) {
    b.users[t & 1]->ask(b.key(0x10000 + t % 7 * 4096 + 4090, 12, t));
  }
  b.run(40000);
  for (std::uint64_t t = 0; t < 40; ++t) {
    const auto& a = b.users[t & 1]->answers.at(t);
    EXPECT_EQ(a.status, translate_status::ok);
    EXPECT_EQ(a.segments[0].address, 0x5000000 + t % 7 * 0x10000 + 4090);
    EXPECT_EQ(a.segments[1].address, 0x5000000 + (t % 7 + 1) * 0x10000);
  }
}

std::uint64_t digest(bool always) {
  icm::translation_config c;
  c.mpt_entries = c.mpt_ways = 1;
  c.mtt_entries = 2;
  c.mtt_ways = 1;
  c.mtt_line_entries = 2;
  c.fills = 2;
  c.waiting = 5;
  c.miss_cycles = 3;
  rig b(c, always);
  b.region(0x50, 0x45, 7, 0, 0x8000, 0x400);
  for (std::uint64_t t = 0; t < 60; ++t) {
    auto r = b.key((t % 3 == 0 ? 0 : 0x10000) + t * 5 % 7 * 4096 + 4090, 12, t);
    if (t % 3 == 0) r.key = 0x50 << 8 | 0x45;
    b.users[t & 1]->ask(r);
    b.run(static_cast<unsigned>(1 + t % 4 * 30));
  }
  b.run(20000);
  std::uint64_t h = b.users[0]->answers.size() * 100 + b.users[1]->answers.size();
  const auto mix = [&h](std::uint64_t x) { h = (h ^ x) * 1099511628211u; };
  for (auto& u : b.users)
    for (auto& [tag, at] : u->answered) mix(tag), mix(at), mix(u->answers[tag].segments[0].address);
  for (const auto& s : b.memory.log) mix(s.at), mix(s.address);
  const auto& n = b.tpt.counters();
  for (const std::uint64_t x : {n.requests, n.mpt_hits, n.mpt_misses, n.mtt_hits, n.mtt_misses, n.merged}) mix(x);
  return h;
}

TEST(translation, sleeping_is_invisible) {
  EXPECT_EQ(rnic::bench::in_child([] { return digest(false); }), rnic::bench::in_child([] { return digest(true); }));
}
}  // namespace
