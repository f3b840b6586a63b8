// SPDX-License-Identifier: Apache-2.0
// Whose packets are those of a connection, and for which of them the GID table is read.
#include "model/transport/path_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <systemc>

#include "model/gid/gid_cr.h"
#include "model/sim/timebase.h"

namespace {
using namespace rnic;

constexpr unsigned own = 3, twin = 9, other = 4, first_version = 5, group = 0;

struct time_of_a_bench {
  sim::timebase base{{false, 0}};
  sim::clock_domain clock{"core", base, {1000, 1, 0}};
};

/// Entries 3 and 9 are the same GID and version, 4 is another GID, 5 is that of 3 for RoCE v1, 0 is a group's. A packet
/// of the peer as the parser leaves it, with the entry that it finds.
struct bench : time_of_a_bench, sim::clocked_block {
  bench() : clocked_block("bench", clock), dut(*this, {&tables[0], &tables[1]}, ports) {
    set(own, 0x0a000001, true);
    set(twin, 0x0a000001, true);
    set(other, 0x0a000005, true);
    set(first_version, 0x0a000001, false);
    set(group, 0xe0000001, true);
    path.gid_index = own;
    path.flags = icm::path_flag_roce_v2;
    const std::uint8_t remote[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
    std::memcpy(path.remote_gid, remote, sizeof remote);
    std::memcpy(f->packet.sgid.data(), remote, sizeof remote);
    f->packet.encap = wire::encapsulation::roce_v2_ipv4;
    f->packet.dgid = tables[0][own].id;
    f->gid_index = own;
    f->port = 0;
  }
  void set(unsigned entry, std::uint32_t ip, bool v2) {
    const std::uint32_t words[4] = {0, 0, 0x0000ffff, ip};
    for (unsigned i = 0; i < 4; ++i) tables[0].cr_write(gid::cr::gid_word(entry, i), words[i]);
    tables[0].cr_write(gid::cr::gid_word(entry, 4), gid::cr::gid_valid | (v2 ? 2u << gid::cr::gid_type_shift : 0));
  }
  bool passes() { return dut.of_peer(path, *f); }
  void tick() override {}

  std::array<gid::gid_table, 2> tables;
  transport::port_map ports;
  transport::path_check dut;
  icm::path path{};
  payload::frame_pool frames;
  payload::frame_ptr f = frames.get();
};

TEST(path_check, what_the_parser_has_found_is_not_read_again) {
  bench b;
  EXPECT_TRUE(b.passes());
  EXPECT_EQ(b.dut.reads(), 0u);
}

/// The look-up finds the lower one of two.
TEST(path_check, an_entry_that_no_look_up_finds_is_read) {
  bench b;
  b.path.gid_index = twin;
  EXPECT_TRUE(b.passes());
  EXPECT_EQ(b.dut.reads(), 1u);
}

/// Where each port has a table of its own, the number that the parser found is of the port that the packet came by: the
/// path's entry is read, and it is another GID's that has the number here.
TEST(path_check, an_entry_of_the_other_ports_table_is_not_the_paths) {
  constexpr std::uint32_t either = transport::cr::port_map_identity | transport::cr::port_map_any_arrival,
                          own_tables = either | transport::cr::port_map_own_tables;
  const struct {
    std::uint32_t map;
    unsigned port, found, to;  // of the packet: where it came, what the parser found, whose address it has
    bool passes;
    std::uint64_t reads;
  } cases[] = {{transport::cr::port_map_identity, 1, own, own, false, 0},
               {either, 1, own, own, true, 0},  // the tables are the same
               {own_tables, 0, own, own, true, 0},
               {own_tables, 1, own, own, true, 1},
               {own_tables, 1, own, other, false, 1},  // row 3 of port 2's table has that
               {own_tables, 1, gid::table_size + own, own, true, 1},
               {own_tables, 1, gid::table_size + other, other, false, 1}};
  for (const auto& c : cases) {
    bench b;
    b.ports.write(c.map);
    b.f->port = static_cast<std::uint8_t>(c.port);
    b.f->gid_index = static_cast<std::uint16_t>(c.found);
    b.f->packet.dgid = b.tables[0][c.to].id;
    EXPECT_EQ(b.passes(), c.passes) << c.map << " " << c.port << " " << c.found << " " << c.to;
    EXPECT_EQ(b.dut.reads(), c.reads) << c.map << " " << c.port << " " << c.found << " " << c.to;
  }
}

/// A source is of the port that a packet leaves by, or of its path's where each port has a table of its own.
TEST(port_map, tables_of_a_packet) {
  transport::port_map map;
  EXPECT_EQ(map.tables_of(1u), 1u);
  map.write(transport::cr::port_map_any_arrival);  // both virtual ports are port 1
  EXPECT_EQ(map.tables_of(1u), 0u);
  map.write(transport::cr::port_map_any_arrival | transport::cr::port_map_own_tables);
  EXPECT_EQ(map.port_of(1u), 0u);
  EXPECT_EQ(map.tables_of(1u), 1u);
}

/// A queue pair whose packet waits is looked at again, and so are others in the same cycle: one of them reads.
TEST(path_check, two_packets_in_a_cycle_read_one_after_the_other) {
  bench b;
  b.path.gid_index = twin;
  const payload::frame_ptr first = b.f, second = b.frames.get();
  *second = *first;
  EXPECT_TRUE(b.dut.may_check(b.path, *first));
  EXPECT_TRUE(b.dut.of_peer(b.path, *first));
  EXPECT_FALSE(b.dut.may_check(b.path, *second));
  EXPECT_TRUE(b.dut.may_check(b.path, *first));  // it waits, and reads nothing any more
  EXPECT_TRUE(b.dut.of_peer(b.path, *first));
  EXPECT_EQ(b.dut.reads(), 1u);
  sc_core::sc_start(sc_core::sc_time(10, sc_core::SC_NS));
  EXPECT_TRUE(b.dut.may_check(b.path, *second));
  EXPECT_TRUE(b.dut.of_peer(b.path, *second));
  EXPECT_EQ(b.dut.reads(), 2u);
}

TEST(path_check, a_packet_to_another_of_our_addresses_is_not_the_peers) {
  bench b;
  b.f->packet.dgid = b.tables[0][other].id;
  b.f->gid_index = other;
  EXPECT_FALSE(b.passes());
  EXPECT_EQ(b.dut.reads(), 1u);
}

TEST(path_check, an_entry_of_the_other_version_is_no_twin) {
  bench b;
  b.path.gid_index = first_version;
  EXPECT_FALSE(b.passes());
}

TEST(path_check, an_entry_that_is_not_valid_any_more_is_no_twin) {
  bench b;
  b.path.gid_index = twin;
  b.tables[0].cr_write(gid::cr::gid_word(twin, 4), 0);
  EXPECT_FALSE(b.passes());
}

/// It was not looked up: the frame has entry 0, which is that of a path, by chance.
TEST(path_check, a_group_was_not_looked_up) {
  bench b;
  b.set(group, 0x0a000001, true);
  b.path.gid_index = group;
  b.f->gid_index = group;
  EXPECT_TRUE(b.passes());
  b.f->packet.dgid = {0xff, 0x0e, 1};
  EXPECT_FALSE(b.passes());
  EXPECT_EQ(b.dut.reads(), 1u);
}

TEST(path_check, port_source_and_version_are_the_paths_and_nothing_is_read_for_them) {
  bench b;
  b.f->port = 1;
  EXPECT_FALSE(b.passes());
  b.f->port = 0;
  b.f->packet.sgid[15] ^= 1;
  EXPECT_FALSE(b.passes());
  b.f->packet.sgid[15] ^= 1;
  b.f->packet.encap = wire::encapsulation::roce_v1;
  EXPECT_FALSE(b.passes());
  EXPECT_EQ(b.dut.reads(), 0u);
}

}  // namespace
