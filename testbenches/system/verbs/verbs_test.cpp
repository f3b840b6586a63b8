// SPDX-License-Identifier: Apache-2.0
// Every verb over every encapsulation and MTU: the bytes arrive where they were sent, and nowhere else.
#include <gtest/gtest.h>

#include <cstring>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

using host_driver::roce_types;
using hosts::connection_options;

constexpr std::uint32_t largest = 1u << 20;
constexpr std::uint32_t guard = 256;
constexpr std::uint32_t sizes[] = {0, 1, 63, 64, 65, 255, 256, 1023, 1024, 1025, 4096, 4097, 65536, largest};
constexpr ibv_wr_opcode verbs[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                   IBV_WR_RDMA_READ};

ibv_wc_opcode send_opcode_of(ibv_wr_opcode verb) {
  if (verb == IBV_WR_RDMA_READ) return IBV_WC_RDMA_READ;
  return verb == IBV_WR_SEND || verb == IBV_WR_SEND_WITH_IMM ? IBV_WC_SEND : IBV_WC_RDMA_WRITE;
}

/// Buffers on both hosts with a copy of what they should hold.
class arena {
 public:
  arena(link& l, std::uint64_t seed) : random_(seed) {
    from_ = hosts::make_buffer(l.a.at, bytes);
    to_ = hosts::make_buffer(l.b.at, bytes);
    fill_random(to_.at(), bytes, random_);
    fill_random(from_.at(), bytes, random_);
    from_expected_.assign(from_.at(), from_.at() + bytes);
    to_expected_.assign(to_.at(), to_.at() + bytes);
  }

  /// Buffers belong to protection domains: every connection that uses them is of the same link.
  void exchange(const link& l, ibv_wr_opcode verb, std::uint32_t size, bool inlined) {
    const bool reads = verb == IBV_WR_RDMA_READ;
    const bool receives = verb != IBV_WR_RDMA_WRITE && !reads;
    const bool immediate = verb == IBV_WR_SEND_WITH_IMM || verb == IBV_WR_RDMA_WRITE_WITH_IMM;
    const std::uint64_t source = guard + random_() % guard, destination = guard + random_() % guard;
    hosts::buffer& from = reads ? to_ : from_;
    hosts::buffer& to = reads ? from_ : to_;
    fill_random(from.at(source), size, random_);
    std::memcpy((reads ? to_expected_ : from_expected_).data() + source, from.at(source), size);
    std::memcpy((reads ? from_expected_ : to_expected_).data() + destination, from.at(source), size);

    request r;
    r.opcode = verb;
    r.id = random_();
    r.immediate = static_cast<std::uint32_t>(random_());
    if (inlined) r.flags |= IBV_SEND_INLINE;
    if (size != 0) r.sges = {{reads ? to.address(destination) : from.address(source), size, from_.region->lkey}};
    r.remote = reads ? from.address(source) : to.address(destination);
    r.rkey = to_.region->rkey;
    const std::uint64_t receive_id = random_();
    const bool sends = verb == IBV_WR_SEND || verb == IBV_WR_SEND_WITH_IMM;
    if (receives)
      post_receive(l.b,
                   sends && size != 0 ? std::vector<ibv_sge>{{to.address(destination), size, to_.region->lkey}}
                                      : std::vector<ibv_sge>{},
                   receive_id);
    post(l.a, r);
    if (receives) {
      const ibv_wc wc = l.b.wait_receive();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << "vendor error " << wc.vendor_err;
      EXPECT_EQ(wc.wr_id, receive_id);
      EXPECT_EQ(wc.opcode, sends ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
      EXPECT_EQ(wc.byte_len, size);
      EXPECT_EQ(wc.qp_num, l.b.qp->qp_num);
      EXPECT_EQ((wc.wc_flags & IBV_WC_WITH_IMM) != 0, immediate);
      EXPECT_EQ(immediate ? __builtin_bswap32(wc.imm_data) : r.immediate, r.immediate);
      check_destination(to, reads, destination, size);  // a completion comes after its bytes
    }
    const ibv_wc wc = l.a.wait_send();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << "vendor error " << wc.vendor_err;
    EXPECT_EQ(wc.wr_id, r.id);
    EXPECT_EQ(wc.opcode, send_opcode_of(verb));
    EXPECT_EQ(wc.qp_num, l.a.qp->qp_num);
    if (reads) {
      EXPECT_EQ(wc.byte_len, size);
    } else if (!receives) {
      l.b.at.bus->spend_ps(5 * us);  // acknowledged is not yet visible
    }
    check_destination(to, reads, destination, size);
    EXPECT_TRUE(l.a.silent());
    EXPECT_TRUE(l.b.silent());
  }

  /// Everything, not only around the last message.
  void check_all() const {
    EXPECT_EQ(std::memcmp(from_.at(), from_expected_.data(), bytes), 0);
    EXPECT_EQ(std::memcmp(to_.at(), to_expected_.data(), bytes), 0);
  }

 private:
  static constexpr std::size_t bytes = largest + 4 * guard;
  void check_destination(const hosts::buffer& to, bool reads, std::uint64_t destination, std::uint32_t size) const {
    const std::vector<std::uint8_t>& expected = reads ? from_expected_ : to_expected_;
    const std::uint64_t first = destination - guard;
    const std::size_t window = std::size_t{size} + 2 * guard;
    ASSERT_EQ(std::memcmp(to.at(first), expected.data() + first, window), 0);
  }

  std::mt19937_64 random_;
  hosts::buffer from_, to_;
  std::vector<std::uint8_t> from_expected_, to_expected_;
};

void every_size(arena& memory, const link& l, const connection_options& options) {
  for (const ibv_wr_opcode verb : verbs) {
    for (const std::uint32_t size : sizes) {
      for (const bool inlined : {false, true}) {
        if (inlined && (size == 0 || size > options.inline_bytes || verb == IBV_WR_RDMA_READ)) continue;
        SCOPED_TRACE("verb " + std::to_string(verb) + " of " + std::to_string(size) + " bytes, MTU " +
                     std::to_string(options.mtu) + (inlined ? ", inline" : ""));
        memory.exchange(l, verb, size, inlined);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

void every_mtu(connection_options options, const hosts::two_nodes_config& config) {
  hosts::two_nodes system(config);
  options.inline_bytes = 400;
  run(system, [&] {
    link first = make_link(system, options);
    arena memory(first, 1);
    for (const unsigned mtu : {256u, 1024u, 4096u}) {
      options.mtu = mtu;
      const link l = make_sibling(first, options, 0x100 * mtu);
      every_size(memory, l, options);
      if (::testing::Test::HasFatalFailure()) return;
    }
    memory.check_all();
  });
  EXPECT_EQ(counted(system, "retransmissions"), 0U);
}

connection_options options_of(roce_types roce, unsigned ip) {
  connection_options o;
  o.roce = roce;
  o.ip = ip;
  return o;
}

TEST(EveryVerb, RoceV1) { every_mtu(options_of(roce_types::v1, 6), default_system()); }
TEST(EveryVerb, RoceV1WithIpv4Gids) { every_mtu(options_of(roce_types::v1, 4), default_system()); }
TEST(EveryVerb, RoceV2Ipv4) { every_mtu(options_of(roce_types::v2, 4), default_system()); }
TEST(EveryVerb, RoceV2Ipv6) { every_mtu(options_of(roce_types::v2, 6), default_system()); }

TEST(EveryVerb, SmallCompletionEntries) {
  hosts::two_nodes_config c = default_system();
  c.node.driver.large_cqe = !c.node.driver.large_cqe;
  every_mtu(options_of(roce_types::v2, 4), c);
}

/// Counts tags of the frames on the cable.
class tag_observer : public payload::frame_observer_if {
 public:
  void observe(unsigned, const payload::frame& f, sim::time_ps, sim::time_ps) override {
    const std::uint8_t* d = f.data();
    if (d[12] != 0x81 || d[13] != 0x00) {
      ++untagged;
    } else if ((d[14] << 8 | d[15]) == (5 << 13 | 42)) {
      ++right;
    } else {
      ++wrong;
    }
  }
  unsigned untagged = 0, right = 0, wrong = 0;
};

TEST(EveryVerb, TaggedWithPriority) {
  hosts::two_nodes system(default_system());
  tag_observer tags;
  system.cable().add_observer(tags);
  connection_options options = options_of(roce_types::v2, 4);
  options.vlan = 42;
  options.priority = 5;
  options.mtu = 1024;
  options.inline_bytes = 400;
  run(system, [&] {
    link l = make_link(system, options);
    arena memory(l, 2);
    every_size(memory, l, options);
    memory.check_all();
  });
  EXPECT_GT(tags.right, 1000U);
  EXPECT_EQ(tags.wrong, 0U);
  EXPECT_EQ(tags.untagged, 0U);
}

/// Cuts [0, bytes) into pieces of random sizes, some of them one byte.
std::vector<ibv_sge> pieces(const hosts::buffer& b, std::uint64_t start, std::uint32_t bytes, unsigned count,
                            std::mt19937_64& random) {
  std::vector<ibv_sge> list;
  std::uint64_t at = start;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint32_t left = bytes - static_cast<std::uint32_t>(at - start);
    const std::uint32_t size = i + 1 == count      ? left
                               : random() % 4 == 0 ? std::min(left, 1u)
                                                   : static_cast<std::uint32_t>(random() % (left / 2 + 1));
    if (size == 0) continue;
    list.push_back({b.address(at), size, b.region->lkey});
    at += size;
  }
  return list;
}

TEST(EveryVerb, ScatterAndGather) {
  hosts::two_nodes system(default_system());
  connection_options options = options_of(roce_types::v2, 4);
  options.send_sges = options.receive_sges = 8;
  options.mtu = 1024;
  run(system, [&] {
    link l = make_link(system, options);
    constexpr std::uint32_t space = 32768;
    hosts::buffer from = hosts::make_buffer(l.a.at, space), to = hosts::make_buffer(l.b.at, space);
    std::mt19937_64 random(3);
    for (unsigned n = 0; n < 300; ++n) {
      const ibv_wr_opcode verb = verbs[n % std::size(verbs)];
      const bool reads = verb == IBV_WR_RDMA_READ, sends = verb == IBV_WR_SEND || verb == IBV_WR_SEND_WITH_IMM;
      const std::uint32_t size = 8 + static_cast<std::uint32_t>(random() % (n % 3 == 0 ? 100 : 20000));
      const std::uint64_t local = random() % 512, remote = random() % 512;
      fill_random(from.at(), space, random);
      fill_random(to.at(), space, random);
      std::vector<std::uint8_t> expected(reads ? from.at() : to.at(), (reads ? from.at() : to.at()) + space);
      std::memcpy(expected.data() + (reads ? local : remote), reads ? to.at(remote) : from.at(local), size);
      request r;
      r.opcode = verb;
      r.sges = pieces(from, local, size, 1 + n % 8, random);
      r.remote = to.address(remote);
      r.rkey = to.region->rkey;
      if (size <= 100 && !reads && n % 2 == 0) r.flags |= IBV_SEND_INLINE;
      if (verb != IBV_WR_RDMA_WRITE && !reads)
        post_receive(l.b, sends ? pieces(to, remote, size, 1 + (n / 8) % 8, random) : std::vector<ibv_sge>{});
      post(l.a, r);
      if (verb != IBV_WR_RDMA_WRITE && !reads) {
        const ibv_wc wc = l.b.wait_receive();
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << "message " << n;
        ASSERT_EQ(wc.byte_len, size);
      }
      ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS) << "message " << n;
      l.b.at.bus->spend_ps(5 * us);
      ASSERT_EQ(std::memcmp(reads ? from.at() : to.at(), expected.data(), space), 0)
          << "message " << n << ", verb " << verb << ", " << size << " bytes";
    }
  });
}

TEST(EveryVerb, ManyQueuePairsBothWays) {
  hosts::two_nodes system(default_system());
  connection_options options = options_of(roce_types::v2, 4);
  options.mtu = 1024;
  run(system, [&] {
    constexpr unsigned qps = 64, rounds = 12;
    constexpr std::uint32_t slot = 8192;
    std::vector<link> links{make_link(system, options)};
    while (links.size() < qps)
      links.push_back(make_sibling(links[0], options, static_cast<std::uint32_t>(links.size()) * 1000));
    std::mt19937_64 random(4);
    // [direction][what it is for]: a's messages to b, b's to a.
    hosts::buffer out[2] = {hosts::make_buffer(links[0].a.at, qps * rounds * slot),
                            hosts::make_buffer(links[0].b.at, qps * rounds * slot)};
    hosts::buffer in[2] = {hosts::make_buffer(links[0].b.at, qps * rounds * slot),
                           hosts::make_buffer(links[0].a.at, qps * rounds * slot)};
    std::vector<std::uint8_t> expected[2];
    std::vector<std::uint32_t> length[2];
    for (unsigned d = 0; d < 2; ++d) {
      fill_random(out[d].at(), qps * rounds * slot, random);
      fill_random(in[d].at(), qps * rounds * slot, random);
      expected[d].assign(in[d].at(), in[d].at() + qps * rounds * slot);
      for (unsigned i = 0; i < qps * rounds; ++i) length[d].push_back(static_cast<std::uint32_t>(random() % slot));
    }
    for (unsigned round = 0; round < rounds; ++round) {
      for (unsigned q = 0; q < qps; ++q) {
        for (unsigned d = 0; d < 2; ++d) {
          const side& sender = d == 0 ? links[q].a : links[q].b;
          const side& receiver = d == 0 ? links[q].b : links[q].a;
          const unsigned index = round * qps + q;
          const std::uint64_t at = std::uint64_t{index} * slot;
          const std::uint32_t size = length[d][index];
          request r;
          r.id = std::uint64_t{d} << 32 | index;
          r.opcode = (q + round) % 2 == 0 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE_WITH_IMM;
          r.immediate = index;
          if (size != 0) r.sges = {{out[d].address(at), size, out[d].region->lkey}};
          r.remote = in[d].address(at);
          r.rkey = in[d].region->rkey;
          std::memcpy(expected[d].data() + at, out[d].at(at), size);
          post_receive(receiver,
                       r.opcode == IBV_WR_SEND && size != 0
                           ? std::vector<ibv_sge>{{in[d].address(at), size, in[d].region->lkey}}
                           : std::vector<ibv_sge>{},
                       index);
          post(sender, r);
        }
      }
    }
    std::vector<unsigned> next[2] = {std::vector<unsigned>(qps), std::vector<unsigned>(qps)};
    for (unsigned n = 0; n < 2 * qps * rounds; ++n) {
      const unsigned d = n % 2;
      const ibv_wc wc = (d == 0 ? links[0].b : links[0].a).wait_receive();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      const auto index = static_cast<unsigned>(wc.wr_id);
      ASSERT_EQ(wc.byte_len, length[d][index]);
      ASSERT_EQ(index / qps, next[d][index % qps]++) << "order within a queue pair";
      ASSERT_EQ((d == 0 ? links[0].a : links[0].b).wait_send().status, IBV_WC_SUCCESS);
    }
    for (unsigned d = 0; d < 2; ++d) EXPECT_EQ(std::memcmp(in[d].at(), expected[d].data(), expected[d].size()), 0);
    EXPECT_TRUE(links[0].a.silent());
    EXPECT_TRUE(links[0].b.silent());
  });
  EXPECT_EQ(counted(system, "retransmissions"), 0U);
}

/// Automatic path migration, which RoCE does not have, is not offered and is refused; LIDs are zero.
TEST(WhatRoceLacks, NoMigrationAndNoLids) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, connection_options{});
    ibv_device_attr device{};
    ASSERT_EQ(l.a.dev().query_device(&device), 0);
    EXPECT_EQ(device.device_cap_flags & unsigned{IBV_DEVICE_AUTO_PATH_MIG}, 0u);
    ibv_qp_attr attr{};
    attr.path_mig_state = IBV_MIG_REARM;
    EXPECT_EQ(l.a.dev().modify_qp(l.a.qp, &attr, IBV_QP_PATH_MIG_STATE), -EOPNOTSUPP);
    attr.alt_ah_attr.is_global = 1;
    attr.alt_port_num = 1;
    EXPECT_EQ(l.a.dev().modify_qp(l.a.qp, &attr, IBV_QP_ALT_PATH), -EOPNOTSUPP);
    ibv_port_attr port{};
    ASSERT_EQ(l.a.dev().query_port(1, &port), 0);
    EXPECT_EQ(port.lid, 0);
    EXPECT_EQ(port.sm_lid, 0);
    expect_works(l);
    EXPECT_EQ(l.a.state(), IBV_QPS_RTS);
  });
}

}  // namespace
}  // namespace rnic::system_test
