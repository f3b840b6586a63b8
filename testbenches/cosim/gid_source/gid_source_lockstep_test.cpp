// SPDX-License-Identifier: Apache-2.0
// The look-up of sources as RTL beside its model, and planted bugs in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "host_driver/hosts/gid_source_twin.h"
#include "model/gid/gid_cr.h"
#include "testbenches/cosim/gid_source/planted_source.h"
#include "testbenches/cosim/harness/run.h"
#include "testbenches/cosim/harness/stream_driver.h"

namespace rnic::cosim {
namespace {

using pins = rtl::gid_source_pins;
using reference = hosts::gid_source_reference;
using random = std::mt19937_64;

constexpr std::size_t address_bytes = 6;

wire::gid some_gid(random& rng) {
  const auto last = static_cast<std::uint8_t>(rng() % 60);
  switch (rng() % 4) {
    case 0:
      return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 10, 0, 0, last};  // no IPv4 address, by a bit
    case 1:
      return {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last};
    default:
      return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last};
  }
}
std::uint8_t some_index(random& rng) { return static_cast<std::uint8_t>(rng() % gid::table_size); }
gid::roce_type some_type(random& rng) { return rng() % 2 == 0 ? gid::roce_type::v1 : gid::roce_type::v2; }
wire::mac_address some_mac(random& rng) {
  return {static_cast<std::uint8_t>(rng() % 8 == 0 ? 3 : 2),
          0,
          0,
          0,
          static_cast<std::uint8_t>(rng() % 2),
          static_cast<std::uint8_t>(rng() % 40)};
}

pins::row_write some_row(random& rng) {
  pins::row_write w;
  w.valid = true;
  w.index = some_index(rng);
  w.row_valid = rng() % 4 != 0;
  w.where = static_cast<pins::table>(rng() % 3);
  if (w.where == pins::table::gid) {
    w.data = some_gid(rng);
    w.type = some_type(rng);
  } else if (w.where == pins::table::mac) {
    const wire::mac_address mac = some_mac(rng);
    std::copy(mac.begin(), mac.end(), w.data.begin());
  } else {
    w.data[0] = static_cast<std::uint8_t>(rng());
    w.data[1] = static_cast<std::uint8_t>(rng() % 16);
  }
  return w;
}

gid::source_request some_request(random& rng) {
  gid::source_request r;
  r.checked = rng() % 8 != 0;
  r.any_version = rng() % 4 == 0;
  r.ipv4 = rng() % 4 != 0;
  r.tagged = rng() % 2 == 0;
  r.type = some_type(rng);
  r.index = some_index(rng);
  r.mac_index = some_index(rng);
  r.vlan_index = some_index(rng);
  r.function = static_cast<std::uint16_t>(rng() % 3);
  r.dmac = some_mac(rng);
  return r;
}

/// What must come out, by rows as they were written, and by nothing of model or RTL.
struct oracle {
  std::array<pins::row_write, gid::table_size> gids{}, macs{}, vids{};
  void write(const pins::row_write& w) {
    (w.where == pins::table::gid ? gids : w.where == pins::table::mac ? macs : vids)[w.index] = w;
  }
  gid::source of(const gid::source_request& r) const {
    const pins::row_write &g = gids[r.index], &m = macs[r.mac_index], &v = vids[r.vlan_index];
    gid::source s;
    if (r.checked) {
      const bool v2 = g.type == gid::roce_type::v2;
      const bool zeros = std::all_of(g.data.begin(), g.data.begin() + 10, [](std::uint8_t b) { return b == 0; });
      const bool ipv4 = zeros && g.data[10] == 0xff && g.data[11] == 0xff;
      s.why = !g.row_valid                                 ? gid::refusal::invalid
              : !r.any_version && g.type != r.type         ? gid::refusal::version
              : g.num_vfs != 0 && g.function != r.function ? gid::refusal::function
              : v2 && ipv4 != r.ipv4                       ? gid::refusal::family
                                                           : gid::refusal::none;
      s.id = g.data;
      s.type = g.type;
    }
    std::copy_n(m.data.begin(), address_bytes, s.mac.begin());
    s.own_destination = (r.dmac[0] & 1) == 0 && std::any_of(macs.begin(), macs.end(), [&r](const auto& row) {
                          return row.row_valid && std::equal(r.dmac.begin(), r.dmac.end(), row.data.begin());
                        });
    s.vlan_valid = r.tagged && v.row_valid;
    if (s.vlan_valid) s.vlan = static_cast<std::uint16_t>(v.data[0] | v.data[1] << 8);
    return s;
  }
};

/// Owner of an entry of `num_vfs` virtual functions, by the windows of the adapter control plane, 8.6.
std::uint16_t owner_of(unsigned index, unsigned num_vfs) {
  if (num_vfs == 0 || index < 16) return 0;
  const unsigned each = 112 / num_vfs, larger = 112 % num_vfs, i = index - 16;
  const unsigned f = i < (each + 1) * larger ? i / (each + 1) : larger + (i - (each + 1) * larger) / each;
  return static_cast<std::uint16_t>(f + 1);
}

/// Each item writes some rows and makes one look-up; every 500th gives the port other virtual functions, which writes
/// all entries.
plan<pins> make_plan(std::uint64_t seed, unsigned items, std::set<gid::refusal>* seen = nullptr) {
  plan<pins> p;
  p.seed = seed;
  random rng(seed);
  oracle told;
  std::uint16_t num_vfs = 0;
  for (unsigned n = 0; n < items; ++n) {
    plan<pins>::item item;
    const auto write = [&](pins::row_write w) {
      w.num_vfs = num_vfs;
      w.function = w.where == pins::table::gid ? owner_of(w.index, num_vfs) : std::uint16_t{0};
      told.write(w);
      item.beats.push_back({{}, w, false});
    };
    if (n % 500 == 0) {
      num_vfs = static_cast<std::uint16_t>(n == 0 ? 0 : 1 + rng() % 5);
      for (unsigned i = 0; i < gid::table_size; ++i) {
        pins::row_write w = told.gids[i];
        w.valid = true;
        w.index = static_cast<std::uint8_t>(i);
        write(w);
      }
    }
    for (auto writes = rng() % 4; writes != 0; --writes) write(some_row(rng));
    pins::inputs beat;
    beat.look_up = {true, some_request(rng)};
    item.beats.push_back(beat);
    const gid::source s = told.of(beat.look_up.request);
    if (seen != nullptr) seen->insert(s.why);
    item.result = pins::digest(s);
    p.items.push_back(std::move(item));
  }
  return p;
}

TEST(GidSourceLockstep, AgreesInEveryCycle) {
  std::set<gid::refusal> seen;
  for (const pattern offer : {pattern::always, pattern::alternate, pattern::bursts, pattern::random})
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      plan<pins> p = make_plan(seed, 3000, &seen);
      p.offer = offer;
      const outcome o = run_lockstep<pins>(
          stream_driver<pins>(std::move(p)), std::make_unique<reference>(), [] { return rtl::make_gid_source_rtl(); },
          "gid_source_agrees");
      ASSERT_FALSE(o.first_difference) << o.first_difference->what();
      ASSERT_TRUE(o.finished);
    }
  EXPECT_EQ(seen.size(), gid::refusals);
}

/// What firmware writes into a port's tables, whenever it does, the drop-in finds as the model does.
TEST(GidSourceDropIn, FindsWhatTheTablesHold) {
  gid::gid_table table;
  gid::gid_source model({}, table);
  hosts::gid_source_rtl rtl(rtl::make_gid_source_rtl(), table);
  EXPECT_EQ(rtl.cycles(), model.cycles());
  random rng(7);
  unsigned sent = 0;
  for (unsigned n = 0; n < 2000; ++n) {
    if (n == 1000) table.device_reset();
    if (n % 300 == 200) table.set_num_vfs(static_cast<unsigned>(rng() % 6));
    const pins::row_write w = some_row(rng);
    const auto word = [&w](unsigned i) {
      const std::uint8_t* d = w.data.data() + i;
      return static_cast<std::uint32_t>(d[0]) << 24 | static_cast<std::uint32_t>(d[1]) << 16 |
             static_cast<std::uint32_t>(d[2]) << 8 | d[3];
    };
    const std::uint32_t valid = w.row_valid ? 0x80000000 : 0;
    if (w.where == pins::table::gid) {
      for (unsigned i = 0; i < 4; ++i) table.cr_write(gid::cr::gid_word(w.index, i), word(4 * i));
      table.cr_write(gid::cr::gid_word(w.index, 4), valid | static_cast<std::uint32_t>(w.type) << 16);
    } else if (w.where == pins::table::mac) {
      table.cr_write(gid::cr::mac_word(w.index, 0), valid | word(0) >> 16);
      table.cr_write(gid::cr::mac_word(w.index, 1), word(2));
    } else {
      table.cr_write(gid::cr::vlan_word(w.index), valid | word(0) >> 20);
    }
    const gid::source_request r = some_request(rng);
    const gid::source m = model.look_up(r), found = rtl.look_up(r);
    ASSERT_EQ(pins::digest(m), pins::digest(found)) << n;
    sent += m.why == gid::refusal::none ? 1 : 0;
  }
  EXPECT_GT(sent, 200u);
}

TEST(GidSourceLockstep, FindsPlantedBugs) {
  const std::pair<source_bug, const char*> bugs[] = {
      {source_bug::none, ""},         {source_bug::any_version, "why"}, {source_bug::any_function, "why"},
      {source_bug::wrong_mac, "mac"}, {source_bug::never_own, "own"},   {source_bug::any_vid, "vlan_valid"},
  };
  for (const auto& [b, port] : bugs) {
    const source_bug bug = b;
    const outcome o = run_lockstep<pins>(
        stream_driver<pins>(make_plan(5, 2000)), std::make_unique<reference>(),
        [bug] { return std::make_unique<planted_source>(bug); }, "gid_source_planted");
    ASSERT_EQ(o.first_difference.has_value(), bug != source_bug::none) << port;
    if (!o.first_difference) continue;
    const auto& where = o.first_difference->where();
    EXPECT_EQ(where.port, port) << o.first_difference->what();
    EXPECT_NE(std::string(o.first_difference->what()).find("look-up"), std::string::npos);
    EXPECT_GT(std::filesystem::file_size(where.waveform), 100u);
    std::filesystem::remove(where.waveform);
  }
}

}  // namespace
}  // namespace rnic::cosim
