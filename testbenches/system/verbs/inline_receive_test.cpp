// SPDX-License-Identifier: Apache-2.0
// Short messages that stay in the receive request which they end (adapter data plane A.3.3).
#include <gtest/gtest.h>
#include <infiniband/mlx4dv.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

using host_driver::wc_inline_receive;
using hosts::connection_options;

constexpr std::uint32_t room = 128;

/// Sends `bytes` random bytes from a to b and waits for both completions.
ibv_wc pass(const link& l, const hosts::buffer& from, const hosts::buffer& to, std::uint32_t bytes,
            std::mt19937_64& random, ibv_wr_opcode opcode = IBV_WR_SEND) {
  fill_random(from.at(0), bytes, random);
  std::fill_n(to.at(0), bytes + 8, std::uint8_t{0x5a});
  post_receive(l.b, {{to.address(0), std::max(bytes, 1u), to.region->lkey}}, bytes);
  request r;
  r.opcode = opcode;
  r.sges.push_back({from.address(0), bytes, from.region->lkey});
  r.immediate = 0x01020304;
  post(l.a, r);
  EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
  const ibv_wc wc = l.b.wait_receive();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.byte_len, bytes);
  EXPECT_EQ(wc.wr_id, bytes);
  return wc;
}

bool untouched(const std::uint8_t* memory, std::size_t bytes) {
  return std::all_of(memory, memory + bytes, [](std::uint8_t b) { return b == 0x5a; });
}

void expect_inline(const link& l, const hosts::buffer& from, const hosts::buffer& to, std::uint32_t bytes,
                   const ibv_wc& wc) {
  EXPECT_NE(wc.wc_flags & wc_inline_receive, 0u) << bytes;
  EXPECT_EQ(std::memcmp(l.b.qp->last_received(), from.at(0), bytes), 0) << bytes;
  EXPECT_TRUE(untouched(to.at(0), bytes + 8)) << bytes;
}

class inline_receive : public testing::TestWithParam<ibv_qp_type> {};

TEST_P(inline_receive, what_has_room_stays_in_the_request) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    connection_options options;
    options.type = GetParam();
    options.inline_receive = room - 28;  // rounded up
    options.receive_depth = 4;           // the ring comes round more than once
    const link l = make_link(system, options);
    const hosts::buffer from = hosts::make_buffer(l.a.at, 4096), to = hosts::make_buffer(l.b.at, 8192);
    std::mt19937_64 random(7);
    for (const std::uint32_t bytes : {1u, 2u, 15u, 16u, 17u, 63u, 64u, 65u, 127u, 128u})
      expect_inline(l, from, to, bytes, pass(l, from, to, bytes, random));
    for (const std::uint32_t bytes : {0u, 129u, 2048u}) {
      const ibv_wc wc = pass(l, from, to, bytes, random);
      EXPECT_EQ(wc.wc_flags & wc_inline_receive, 0u) << bytes;
      EXPECT_EQ(std::memcmp(to.at(0), from.at(0), bytes), 0) << bytes;
      EXPECT_TRUE(untouched(to.at(bytes), 8)) << bytes;
    }
    const ibv_wc wc = pass(l, from, to, 33, random, IBV_WR_SEND_WITH_IMM);
    expect_inline(l, from, to, 33, wc);
    EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
    EXPECT_EQ(wc.imm_data, __builtin_bswap32(0x01020304));
  });
}

INSTANTIATE_TEST_SUITE_P(services, inline_receive, testing::Values(IBV_QPT_RC, IBV_QPT_UC),
                         [](const auto& p) { return p.param == IBV_QPT_RC ? "rc" : "uc"; });

/// The first packet cannot know whether the others have room.
TEST(inline_receive_limits, a_message_of_two_packets_goes_to_the_buffers) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    connection_options options;
    options.mtu = 256;
    options.inline_receive = 512;
    const link l = make_link(system, options);
    const hosts::buffer from = hosts::make_buffer(l.a.at, 4096), to = hosts::make_buffer(l.b.at, 4096);
    std::mt19937_64 random(8);
    expect_inline(l, from, to, 256, pass(l, from, to, 256, random));
    const ibv_wc wc = pass(l, from, to, 257, random);
    EXPECT_EQ(wc.wc_flags & wc_inline_receive, 0u);
    EXPECT_EQ(std::memcmp(to.at(0), from.at(0), 257), 0);
  });
}

/// A message does not leave its request: those before and behind it keep their buffers.
TEST(inline_receive_limits, requests_beside_it_are_as_they_were) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    connection_options options;
    options.inline_receive = room;
    options.receive_depth = 4;
    const link l = make_link(system, options);
    const hosts::buffer from = hosts::make_buffer(l.a.at, 4096), to = hosts::make_buffer(l.b.at, 4096);
    std::mt19937_64 random(9);
    fill_random(from.at(0), 1024, random);
    for (unsigned i = 0; i < 4; ++i) post_receive(l.b, {{to.address(1024 * i), 1024, to.region->lkey}}, i);
    for (const std::uint32_t bytes : {1024u, room, room, 1024u}) {
      request r;
      r.opcode = IBV_WR_SEND;
      r.sges.push_back({from.address(0), bytes, from.region->lkey});
      post(l.a, r);
    }
    for (const std::uint32_t bytes : {1024u, room, room, 1024u}) {
      EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      const ibv_wc wc = l.b.wait_receive();
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ((wc.wc_flags & wc_inline_receive) != 0, bytes == room);
      const std::uint8_t* at = bytes == room ? l.b.qp->last_received() : to.at(1024 * wc.wr_id);
      EXPECT_EQ(std::memcmp(at, from.at(0), bytes), 0) << wc.wr_id;
    }
  });
}

TEST(inline_receive_limits, a_datagram_takes_its_grh_along) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    link l = make_link(system, connection_options{});
    for (side* s : {&l.a, &l.b}) s->qp = make_datagram_qp(*s, 0x1234, 4, 1, 0, room);
    const hosts::buffer from = hosts::make_buffer(l.a.at, 4096), to = hosts::make_buffer(l.b.at, 4096);
    std::mt19937_64 random(10);
    fill_random(from.at(0), 1024, random);
    ibv_ah_attr a{};
    a.is_global = 1;
    std::memcpy(a.grh.dgid.raw, l.b.at.gid.data(), 16);
    a.grh.sgid_index = static_cast<std::uint8_t>(l.a.at.gid_index);
    a.grh.hop_limit = 64;
    a.port_num = 1;
    host_driver::address_handle* to_b = l.a.dev().create_ah(l.a.at.pd, &a, &l.b.at.mac);
    ASSERT_NE(to_b, nullptr);
    for (const std::uint32_t bytes : {room - grh_bytes, room - grh_bytes + 1}) {
      std::fill_n(to.at(0), 256, std::uint8_t{0x5a});
      post_receive(l.b, {{to.address(0), 256, to.region->lkey}});
      ibv_sge sge{from.address(0), bytes, from.region->lkey};
      ibv_send_wr wr{}, *bad = nullptr;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.opcode = IBV_WR_SEND;
      wr.send_flags = IBV_SEND_SIGNALED;
      wr.wr.ud.ah = to_b;
      wr.wr.ud.remote_qpn = l.b.qp->qp_num;
      wr.wr.ud.remote_qkey = 0x1234;
      hosts::require(l.a.dev().post_send(l.a.qp, &wr, &bad), "post_send");
      EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      const ibv_wc wc = l.b.wait_receive();
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.byte_len, bytes + grh_bytes);
      const bool in_wqe = bytes + grh_bytes <= room;
      EXPECT_EQ((wc.wc_flags & wc_inline_receive) != 0, in_wqe);
      const std::uint8_t* at = in_wqe ? l.b.qp->last_received() : to.at(0);
      EXPECT_EQ(at[20], 0x45);  // the IPv4 header is in the second half of the GRH's place
      EXPECT_EQ(std::memcmp(at + grh_bytes, from.at(0), bytes), 0);
      EXPECT_EQ(untouched(to.at(0), 256), in_wqe);
    }
  });
}

TEST(inline_receive_limits, sizes_and_queues_that_cannot) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, connection_options{});
    ibv_srq_init_attr shared{};
    shared.attr.max_wr = 4;
    shared.attr.max_sge = 1;
    ibv_srq* srq = l.a.dev().create_srq(l.a.at.pd, &shared);
    ASSERT_NE(srq, nullptr);
    const auto create = [&](std::uint32_t bytes, ibv_srq* with) {
      ibv_qp_init_attr_ex attr{};
      attr.comp_mask = IBV_QP_INIT_ATTR_PD;
      attr.pd = l.a.at.pd;
      attr.send_cq = l.a.send_cq;
      attr.recv_cq = l.a.receive_cq;
      attr.srq = with;
      attr.qp_type = IBV_QPT_RC;
      attr.cap.max_send_wr = attr.cap.max_recv_wr = attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
      mlx4dv_qp_init_attr direct{MLX4DV_QP_INIT_ATTR_MASK_INL_RECV, bytes};
      errno = 0;
      return l.a.dev().create_qp_ex(&attr, &direct) != nullptr ? direct.inl_recv_sz : 0;
    };
    EXPECT_EQ(create(0, nullptr), 16u);
    EXPECT_EQ(create(17, nullptr), 32u);
    EXPECT_EQ(create(512, nullptr), 512u);
    EXPECT_EQ(create(513, nullptr), 0u);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(create(64, srq), 0u);
    EXPECT_EQ(errno, EINVAL);
  });
}

}  // namespace
}  // namespace rnic::system_test
