// SPDX-License-Identifier: Apache-2.0
// Sources of packets: who may send with which entry, what comes with it, and its cycles.
#include "model/gid/gid_source.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "model/gid/gid_cr.h"

namespace rnic::gid {
namespace {

constexpr std::uint32_t v2 = 2u << cr::gid_type_shift;
constexpr wire::mac_address own{0x02, 0, 0, 0, 0, 7}, stale{0x02, 0, 0, 0, 0, 9};

void put(gid_table& t, unsigned i, bool ipv4, std::uint32_t attributes) {
  t.cr_write(cr::gid_word(i, 0), ipv4 ? 0 : 0xfe800000);
  t.cr_write(cr::gid_word(i, 2), ipv4 ? 0xffff : 0x11223344);
  t.cr_write(cr::gid_word(i, 3), 0x0a000000 | i);
  t.cr_write(cr::gid_word(i, 4), attributes);
}

/// 3: v1; 20: v2, IPv6; 21: v2, IPv4; 22: written, and not valid. MAC 5 is valid, 6 is not; VID 2 is valid, 4 is not.
struct tables : gid_table {
  tables() {
    put(*this, 3, false, cr::gid_valid);
    put(*this, 20, false, cr::gid_valid | v2);
    put(*this, 21, true, cr::gid_valid | v2);
    put(*this, 22, true, v2);
    cr_write(cr::mac_word(5, 0), cr::mac_valid | 0x0200);
    cr_write(cr::mac_word(5, 1), 7);
    cr_write(cr::mac_word(6, 0), 0x0200);
    cr_write(cr::mac_word(6, 1), 9);
    cr_write(cr::vlan_word(2), cr::vlan_valid | 77);
    cr_write(cr::vlan_word(4), 78);
  }
};

source_request request(unsigned index, roce_type type, bool ipv4, std::uint16_t function = 0) {
  source_request r;
  r.checked = true;
  r.index = static_cast<std::uint8_t>(index);
  r.type = type;
  r.ipv4 = ipv4;
  r.function = function;
  return r;
}

TEST(gid_source, is_valid_of_the_version_the_function_and_the_family) {
  tables t;
  gid_source s({}, t);
  const auto why = [&s](const source_request& r) { return s.look_up(r).why; };
  EXPECT_EQ(why(request(3, roce_type::v1, false, 5)), refusal::none);
  EXPECT_EQ(why(request(3, roce_type::v1, true, 5)), refusal::none) << "there is no IP";
  EXPECT_EQ(why(request(3, roce_type::v2, false)), refusal::version);
  EXPECT_EQ(why(request(20, roce_type::v2, false, 5)), refusal::none);
  EXPECT_EQ(why(request(20, roce_type::v2, true)), refusal::family);
  EXPECT_EQ(why(request(21, roce_type::v2, true)), refusal::none);
  EXPECT_EQ(why(request(21, roce_type::v2, false)), refusal::family);
  EXPECT_EQ(why(request(21, roce_type::v1, true)), refusal::version);
  EXPECT_EQ(why(request(22, roce_type::v2, true)), refusal::invalid);
  EXPECT_EQ(why(request(90, roce_type::v1, false)), refusal::invalid);
  t.set_num_vfs(4);  // 16 entries of the physical function, then 28 of the first virtual one
  EXPECT_EQ(why(request(20, roce_type::v2, false, 1)), refusal::none);
  EXPECT_EQ(why(request(20, roce_type::v2, false, 0)), refusal::function);
  EXPECT_EQ(why(request(3, roce_type::v1, false, 1)), refusal::function);
  EXPECT_EQ(why(request(3, roce_type::v1, false, 0)), refusal::none);
  EXPECT_EQ(why(request(3, roce_type::v2, false, 1)), refusal::version) << "the first reason counts";
}

TEST(gid_source, one_virtual_function_has_entries_of_its_own) {
  tables t;
  gid_source s({}, t);
  t.set_num_vfs(1);  // 16 entries of the physical function, 112 of the virtual one
  EXPECT_EQ(s.look_up(request(3, roce_type::v1, false, 1)).why, refusal::function);
  EXPECT_EQ(s.look_up(request(20, roce_type::v2, false, 0)).why, refusal::function);
  EXPECT_EQ(s.look_up(request(20, roce_type::v2, false, 1)).why, refusal::none);
}

TEST(gid_source, reset_forgets_gids_macs_vids_and_functions) {
  tables t;
  gid_source s({}, t);
  t.set_num_vfs(1);
  t.device_reset();
  EXPECT_EQ(s.look_up(request(20, roce_type::v2, false, 1)).why, refusal::invalid);
  source_request r;
  r.mac_index = 5;
  r.vlan_index = 2;
  r.tagged = true;
  r.dmac = own;
  EXPECT_EQ(s.look_up(r).mac, wire::mac_address{});
  EXPECT_FALSE(s.look_up(r).own_destination);
  EXPECT_FALSE(s.look_up(r).vlan_valid);
  EXPECT_EQ(t.cr_read(cr::vlan_word(2)), 0u);
  put(t, 20, false, cr::gid_valid | v2);
  EXPECT_EQ(s.look_up(request(20, roce_type::v2, false, 5)).why, refusal::none) << "nobody's own";
}

TEST(gid_source, datagram_takes_the_version_of_the_entry) {
  tables t;
  gid_source s({}, t);
  source_request r = request(3, roce_type::v2, false);
  r.any_version = true;
  EXPECT_EQ(s.look_up(r).why, refusal::none);
  EXPECT_EQ(s.look_up(r).type, roce_type::v1);
  r.index = 20;
  r.type = roce_type::v1;
  EXPECT_EQ(s.look_up(r).why, refusal::none);
  EXPECT_EQ(s.look_up(r).type, roce_type::v2);
  r.ipv4 = true;
  EXPECT_EQ(s.look_up(r).why, refusal::family);
  r.index = 22;
  EXPECT_EQ(s.look_up(r).why, refusal::invalid);
}

TEST(gid_source, frame_of_software_needs_no_entry) {
  tables t;
  t.set_num_vfs(4);
  gid_source s({}, t);
  source_request r = request(22, roce_type::v1, false, 3);
  r.checked = false;
  EXPECT_EQ(s.look_up(r).why, refusal::none);
}

TEST(gid_source, brings_gid_mac_and_vid) {
  tables t;
  gid_source s({}, t);
  source_request r = request(21, roce_type::v2, true);
  r.mac_index = 5;
  r.vlan_index = 2;
  EXPECT_EQ(s.look_up(r).id, (wire::gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 21}));
  EXPECT_EQ(s.look_up(r).mac, own);
  EXPECT_FALSE(s.look_up(r).vlan_valid) << "not asked for";
  EXPECT_EQ(s.look_up(r).vlan, 0u);
  r.tagged = true;
  EXPECT_TRUE(s.look_up(r).vlan_valid);
  EXPECT_EQ(s.look_up(r).vlan, 77u);
  r.vlan_index = 4;
  EXPECT_FALSE(s.look_up(r).vlan_valid);
  EXPECT_EQ(s.look_up(r).vlan, 0u);
  r.mac_index = 6;
  EXPECT_EQ(s.look_up(r).mac, stale) << "the QP's path decides, as for every frame";
}

TEST(gid_source, tells_frames_that_come_back) {
  tables t;
  gid_source s({}, t);
  source_request r;
  r.dmac = own;
  EXPECT_TRUE(s.look_up(r).own_destination);
  r.dmac = stale;
  EXPECT_FALSE(s.look_up(r).own_destination);
  r.dmac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  EXPECT_FALSE(s.look_up(r).own_destination) << "a group's go out as well";
}

/// A look-up a cycle, each with its result source_cycles later, of the tables as they were in its own cycle.
TEST(gid_source, clocked_it_answers_after_its_cycles_from_one_state_of_the_tables) {
  for (const std::uint8_t cycles : {std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{5}}) {
    tables t;
    source_config config;
    config.source_cycles = cycles;
    gid_source clocked(config, t), told(config, t);
    std::mt19937 rng(11);
    struct due {
      unsigned cycle;
      refusal why;
      wire::gid id;
    };
    std::deque<due> expected;
    unsigned seen = 0;
    for (unsigned cycle = 0; cycle < 2000; ++cycle) {
      if (rng() % 3 == 0)
        put(t, static_cast<unsigned>(20 + rng() % 4), rng() % 2 == 0, (rng() % 4 != 0 ? cr::gid_valid : 0) | v2);
      source_inputs in;
      in.valid = rng() % 4 != 0;
      in.request = request(static_cast<unsigned>(20 + rng() % 4), roce_type::v2, rng() % 2 == 0);
      if (in.valid) {
        const source s = told.look_up(in.request);
        expected.push_back({cycle + cycles, s.why, s.id});
      }
      const source_outputs out = clocked.step(in);
      EXPECT_TRUE(out.ready);
      const bool is_due = !expected.empty() && expected.front().cycle == cycle;
      ASSERT_EQ(out.result_valid, is_due) << cycle;
      if (!is_due) continue;
      EXPECT_EQ(out.found.why, expected.front().why);
      EXPECT_EQ(out.found.id, expected.front().id);
      expected.pop_front();
      ++seen;
    }
    EXPECT_GT(seen, 1400u);
  }
}

}  // namespace
}  // namespace rnic::gid
