// SPDX-License-Identifier: Apache-2.0
// What functions that share QP1 may say, and whose their connections are. Layouts and numbers are those of the Linux
// driver: drivers/infiniband/hw/mlx4/mlx4_ib.h (struct mlx4_ib_tunnel_header, struct mlx4_rcv_tunnel_hdr), mad.c
// (struct mlx4_tunnel_mad, struct mlx4_rcv_tunnel_mad), cm.c (struct cm_generic_msg); drivers/net/ethernet/mellanox/
// mlx4/qp.c (mlx4_init_qp_table), main.c (mlx4_get_parav_qkey), fw.c (QUERY_FUNC_CAP_QP1_PROXY).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "host_driver/cm/messages.h"
#include "host_driver/functions/cm_ids.h"
#include "host_driver/functions/mad_rules.h"
#include "model/abi/paravirtual.h"
#include "model/abi/queue_entries.h"

namespace rnic::host_driver {
namespace {

namespace pv = abi::paravirtual;
using mad_rules::fault;
using verdict = cm_ids::verdict;
using cm::contents;
using cm::mad;
using cm::message;

/// The structures as Linux declares them, with its types: big-endian words.
struct linux_av {
  std::uint32_t port_pd;
  std::uint8_t reserved1, g_slid;
  std::uint16_t dlid;
  std::uint8_t reserved2, gid_index, stat_rate, hop_limit;
  std::uint32_t sl_tclass_flowlabel;
  std::uint8_t dgid[16];
};
struct linux_tunnel_header {
  linux_av av;
  std::uint32_t remote_qpn, qkey;
  std::uint16_t vlan;
  std::uint8_t mac[6];
  std::uint16_t pkey_index;
  std::uint8_t reserved[6];
};
struct linux_rcv_tunnel_hdr {
  std::uint32_t flags_src_qp;
  std::uint8_t g_ml_path, reserved;
  std::uint16_t pkey_index, sl_vid, slid_mac_47_32;
  std::uint32_t mac_31_0;
};

TEST(function_mads, headers_of_the_tunnel_are_laid_out_as_in_linux) {
  namespace h = pv::to_tunnel;
  EXPECT_EQ(h::bytes, sizeof(linux_tunnel_header));
  EXPECT_EQ(h::address_vector, sizeof(linux_av));
  EXPECT_EQ(h::remote_qpn.offset, offsetof(linux_tunnel_header, remote_qpn));
  EXPECT_EQ(h::qkey.offset, offsetof(linux_tunnel_header, qkey));
  EXPECT_EQ(h::vlan.offset, offsetof(linux_tunnel_header, vlan));
  EXPECT_EQ(h::destination_mac, offsetof(linux_tunnel_header, mac));
  EXPECT_EQ(h::pkey_index.offset, offsetof(linux_tunnel_header, pkey_index));
  EXPECT_EQ(abi::wqe::datagram::gid_index.offset, offsetof(linux_av, gid_index));
  EXPECT_EQ(abi::wqe::datagram::hop_limit.offset, offsetof(linux_av, hop_limit));
  EXPECT_EQ(abi::wqe::datagram::remote_gid, offsetof(linux_av, dgid));
  namespace p = pv::to_proxy;
  EXPECT_EQ(p::bytes, sizeof(linux_rcv_tunnel_hdr));
  EXPECT_EQ(p::source_qpn.offset, offsetof(linux_rcv_tunnel_hdr, flags_src_qp));
  EXPECT_EQ(p::network_header.offset, offsetof(linux_rcv_tunnel_hdr, g_ml_path));
  EXPECT_EQ(p::pkey_index.offset, offsetof(linux_rcv_tunnel_hdr, pkey_index));
  EXPECT_EQ(p::vlan.offset, offsetof(linux_rcv_tunnel_hdr, sl_vid));
  EXPECT_EQ(p::mac_end, offsetof(linux_rcv_tunnel_hdr, slid_mac_47_32));
  EXPECT_EQ(p::mac_begin, offsetof(linux_rcv_tunnel_hdr, mac_31_0));
}

/// base_sqpn 0x200: 8 special ones, 8 * 128 proxies, 8 * 128 tunnels.
TEST(function_mads, numbers_and_keys_are_those_of_linux) {
  EXPECT_EQ(pv::proxy(0x200, 0, 1), 0x20au);
  EXPECT_EQ(pv::proxy(0x200, 5, 2), 0x200u + 8 + 8 * 5 + 3);
  EXPECT_EQ(pv::tunnel(0x200, 0, 1), 0x200u + 8 + 8 * 128 + 2);
  EXPECT_EQ(pv::tunnel(0x200, 126, 2), 0x200u + 8 + 8 * 128 + 8 * 126 + 3);
  EXPECT_EQ(pv::numbers + 8, 8u + 16 * 128);
  EXPECT_EQ(pv::qkey(0, 1), 0xffff0002u);
  EXPECT_EQ(pv::qkey(3, 2), 0xffff0000u + 8 * 3 + 3);
  EXPECT_TRUE(pv::is_reserved_qkey(pv::qkey(126, 2)));
  EXPECT_FALSE(pv::is_reserved_qkey(0x80010000));
}

mad made(message kind, std::uint32_t local, std::uint32_t remote = 0) {
  contents c;
  c.kind = kind;
  c.local_id = local;
  c.remote_id = remote;
  return cm::encode(c);
}
std::uint32_t local_of(const mad& m) { return cm::decode(m.data(), m.size())->local_id; }
std::uint32_t remote_of(const mad& m) { return cm::decode(m.data(), m.size())->remote_id; }

constexpr std::uint64_t second = 1'000'000'000'000;

struct shared_qp1 {
  cm_ids ids{30 * second, 8};
  std::uint64_t now = 0;
  verdict leave(unsigned f, mad& m) { return ids.leave(f, m.data(), now); }
  verdict arrive(unsigned f, mad& m) { return ids.arrive(f, m.data(), now); }
};

TEST(function_mads, each_function_finds_its_own_connections_again) {
  shared_qp1 q;
  mad one = made(message::req, 77), other = made(message::req, 77), again = made(message::req, 77);
  ASSERT_EQ(q.leave(1, one), verdict::passes);
  ASSERT_EQ(q.leave(2, other), verdict::passes);
  ASSERT_EQ(q.leave(1, again), verdict::passes);
  EXPECT_NE(local_of(one), local_of(other));
  EXPECT_EQ(local_of(one), local_of(again)) << "a repetition is the same message";
  for (const auto& [function, sent] : {std::pair<unsigned, const mad&>{1, one}, {2, other}}) {
    mad reply = made(message::rep, 5, local_of(sent));
    ASSERT_EQ(q.arrive(function, reply), verdict::passes);
    EXPECT_EQ(remote_of(reply), 77u);
    EXPECT_EQ(local_of(reply), 5u) << "the peer's is the peer's";
    mad confirmed = made(message::rtu, 77, 5);
    ASSERT_EQ(q.leave(function, confirmed), verdict::passes);
    EXPECT_EQ(local_of(confirmed), local_of(sent));
    EXPECT_EQ(remote_of(confirmed), 5u);
  }
  mad strange = made(message::rep, 5, local_of(one));
  EXPECT_EQ(q.arrive(2, strange), verdict::foreign);
  EXPECT_EQ(remote_of(strange), local_of(one)) << "nothing of it has changed";
  mad unknown = made(message::rep, 5, 4711);
  EXPECT_EQ(q.arrive(1, unknown), verdict::unknown);
}

TEST(function_mads, messages_without_a_connection_go_nowhere) {
  shared_qp1 q;
  for (const message kind : {message::rtu, message::dreq, message::drep, message::lap, message::apr}) {
    mad m = made(kind, 3, 4);
    EXPECT_EQ(q.leave(1, m), verdict::unknown);
  }
  for (const message kind : {message::req, message::sidr_req}) {
    mad m = made(kind, 9);
    EXPECT_EQ(q.arrive(1, m), verdict::passes);
    EXPECT_EQ(local_of(m), 9u);
  }
  EXPECT_EQ(q.ids.size(), 0u);
}

/// A service is asked for with one number, the requester's.
TEST(function_mads, services_are_answered_with_the_number_of_who_asked) {
  shared_qp1 q;
  mad first = made(message::sidr_req, 6), other = made(message::sidr_req, 6);
  ASSERT_EQ(q.leave(1, first), verdict::passes);
  ASSERT_EQ(q.leave(2, other), verdict::passes);
  mad answer = made(message::sidr_rep, 0, local_of(other));
  ASSERT_EQ(q.arrive(2, answer), verdict::passes);
  EXPECT_EQ(remote_of(answer), 6u);
  mad own = made(message::sidr_rep, 0, 1234);
  ASSERT_EQ(q.leave(1, own), verdict::passes);
  EXPECT_EQ(remote_of(own), 1234u);
}

TEST(function_mads, numbers_end_some_time_after_their_connections) {
  shared_qp1 q;
  const auto open = [&q](std::uint32_t id) {
    mad m = made(message::req, id);
    return q.leave(1, m);
  };
  for (std::uint32_t id = 1; id <= 8; ++id) EXPECT_EQ(open(id), verdict::passes);
  EXPECT_EQ(open(9), verdict::no_room) << "of this function";
  mad of_other = made(message::req, 9);
  EXPECT_EQ(q.leave(2, of_other), verdict::passes);
  mad end = made(message::dreq, 3, 5);
  ASSERT_EQ(q.leave(1, end), verdict::passes);
  q.now += 29 * second;
  EXPECT_EQ(open(9), verdict::no_room);
  mad late = made(message::drep, 5, local_of(end));
  EXPECT_EQ(q.arrive(1, late), verdict::passes) << "its answer is still known";
  q.now += 29 * second;
  EXPECT_EQ(open(9), verdict::no_room) << "and keeps it";
  q.now += 2 * second;
  EXPECT_EQ(open(9), verdict::passes);
  EXPECT_EQ(q.ids.size(), 9u);
  // A number that begins anew before its end stays.
  mad ended = made(message::rej, 4, 5);
  ASSERT_EQ(q.leave(1, ended), verdict::passes);
  EXPECT_EQ(open(4), verdict::passes);
  q.now += 60 * second;
  mad rest = made(message::rtu, 4, 5);
  EXPECT_EQ(q.leave(1, rest), verdict::passes);
  q.ids.forget(1);
  EXPECT_EQ(q.ids.size(), 1u) << "the other function's";
  EXPECT_EQ(q.leave(1, rest), verdict::unknown);
}

TEST(function_mads, messages_of_the_communication_manager_and_no_others) {
  const mad right = made(message::req, 1);
  EXPECT_EQ(mad_rules::fault_of(right.data()), fault::none);
  const auto with = [&right](std::size_t at, std::uint8_t value) {
    mad m = right;
    m[at] = value;
    return mad_rules::fault_of(m.data());
  };
  for (unsigned value = 0; value < 256; ++value) {
    const auto byte = static_cast<std::uint8_t>(value);
    EXPECT_EQ(with(0, byte), value == 1 ? fault::none : fault::version);
    EXPECT_EQ(with(1, byte), value == 7 ? fault::none : fault::management);
    EXPECT_EQ(with(2, byte), value == 2 ? fault::none : fault::version);
    EXPECT_EQ(with(3, byte), value == 3 ? fault::none : fault::method);
    EXPECT_EQ(with(16, byte), value == 0 ? fault::none : fault::attribute);
    EXPECT_EQ(with(17, byte), value >= 0x10 && value <= 0x1a ? fault::none : fault::attribute);
  }
}

TEST(function_mads, paths_of_messages_are_found_where_they_are) {
  contents c;
  c.kind = message::req;
  c.connection.path.local.fill(1);
  c.connection.path.remote.fill(2);
  c.connection.alternate.local.fill(3);
  c.connection.alternate.remote.fill(4);
  gid_bytes ones, threes;
  ones.fill(1);
  threes.fill(3);
  auto found = mad_rules::own_paths(cm::encode(c).data());
  EXPECT_EQ(found[0], ones);
  EXPECT_EQ(found[1], threes);
  c.kind = message::lap;
  c.alternate.local.fill(3);
  found = mad_rules::own_paths(cm::encode(c).data());
  EXPECT_EQ(found[0], threes);
  EXPECT_EQ(found[1], gid_bytes{});
}

}  // namespace
}  // namespace rnic::host_driver
