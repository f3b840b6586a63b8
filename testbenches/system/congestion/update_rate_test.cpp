// SPDX-License-Identifier: Apache-2.0
// UPDATE_QP on queue pairs that work: the rate changes on the wire, and nothing else does.
#include <gtest/gtest.h>

#include <cstring>

#include "model/abi/contexts.h"
#include "model/abi/device.h"
#include "testbenches/system/congestion/watch.h"

namespace rnic::system_test {
namespace {

using host_driver::command_channel;
using hosts::connection_options;
using hosts::make_buffer;

constexpr std::uint32_t size = 2'000'000;

/// What the command says to a rate limit as it would lie in the context.
abi::status limit_to(const side& s, std::uint16_t field) {
  command_channel& channel = s.dev().commands();
  command_channel::mailbox box(channel);
  abi::set(box.data(), abi::update_qp::qp_mask, std::uint64_t{1} << abi::update_qp::rate_limit_bit);
  abi::set(box.data() + abi::update_qp::context, abi::qpc::rate_limit, field);
  const int error = channel.write(box, abi::opcode::update_qp, s.qp->qp_num);
  return error == 0 ? abi::status::ok : static_cast<abi::status>(channel.last_status());
}

std::uint16_t limit_of(const side& s) {
  command_channel::mailbox box(s.dev().commands());
  hosts::require(s.dev().commands().read(box, abi::opcode::query_qp, s.qp->qp_num), "QUERY_QP");
  return abi::get(box.data() + abi::qp_mailbox::context, abi::qpc::rate_limit);
}

struct scene {
  explicit scene(hosts::two_nodes& system, unsigned mtu = 1024)
      : l(make_link(system, options(mtu))), near(make_buffer(l.a.at, size)), far(make_buffer(l.b.at, size)) {
    std::mt19937_64 random(mtu);
    fill_random(near.at(), size, random);
  }
  static connection_options options(unsigned mtu) {
    connection_options o;
    o.mtu = mtu;
    return o;
  }
  /// kb/s on the line towards b in the next `span` of simulated time; the first microseconds belong to what was before.
  std::uint64_t rate(watch& w, std::uint64_t span) const {
    l.a.at.bus->spend_ps(20 * us);
    const std::uint64_t from = l.a.at.bus->now_ps();
    l.a.at.bus->spend_ps(span);
    return w.rate_kbps(0, l.b.qp->qp_num, from, l.a.at.bus->now_ps());
  }
  link l;
  hosts::buffer near, far;
};

/// Amid one message: line rate, 10 Gb/s, 700 Mb/s, 2 Gb/s, without limit again.
TEST(UpdateRate, AmidAMessage) {
  hosts::two_nodes system(default_system());
  watch w(system);
  run(system, [&] {
    const scene s(system);
    post_write(s.l.a, s.near, s.far, size);
    EXPECT_GT(s.rate(w, 50 * us), 30'000'000U);
    for (const std::uint32_t mbps : {10'000u, 700u, 2'000u}) {
      ASSERT_EQ(s.l.a.dev().set_max_rate(s.l.a.qp, mbps), 0);
      const double want = mbps * 1000.0;
      EXPECT_NEAR(static_cast<double>(s.rate(w, 100 * us)), want, want * (mbps < 1000 ? 0.15 : 0.03)) << mbps;
    }
    EXPECT_EQ(limit_of(s.l.a), 2 << 14 | 2000);
    ASSERT_EQ(s.l.a.dev().set_max_rate(s.l.a.qp, 0), 0);
    EXPECT_EQ(limit_of(s.l.a), 0);
    EXPECT_GT(s.rate(w, 50 * us), 30'000'000U);
    EXPECT_EQ(s.l.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(s.near.at(), s.far.at(), size), 0);
  });
  EXPECT_EQ(counted(system, "requester.retransmissions"), 0U);
  EXPECT_EQ(counted(system, "responder.drop.halted"), 0U);
}

/// A limit is kept in cycles: 1000 packets at 1 Gb/s, each at its time and not before.
TEST(UpdateRate, PacketByPacket) {
  hosts::two_nodes system(default_system());
  watch w(system);
  run(system, [&] {
    const scene s(system);
    ASSERT_EQ(s.l.a.dev().set_max_rate(s.l.a.qp, 4'096), 0) << "more than the field holds: in Gb/s, as the kernel does";
    EXPECT_EQ(limit_of(s.l.a), 3 << 14 | 4);
    ASSERT_EQ(s.l.a.dev().set_max_rate(s.l.a.qp, 1'000), 0);
    post_write(s.l.a, s.near, s.far, 100 * 1024);
    ASSERT_EQ(s.l.a.wait_send().status, IBV_WC_SUCCESS);
    w.all.clear();
    post_write(s.l.a, s.near, s.far, 1000 * 1024);
    ASSERT_EQ(s.l.a.wait_send().status, IBV_WC_SUCCESS);
    const sim::time_ps start = w.all.front().at;
    std::uint64_t bits = 0;
    unsigned packets = 0;
    for (const seen_packet& p : w.all) {
      if (p.from != 0) continue;
      EXPECT_NEAR(static_cast<double>(p.at - start), static_cast<double>(bits * 1000), 0.6 * us) << packets;
      bits += p.line_bytes * 8;
      ++packets;
    }
    EXPECT_EQ(packets, 1000U);
  });
}

/// At 1 kb/s a packet takes seconds; when the limit goes, nobody waits for them.
TEST(UpdateRate, AWaitEndsWithTheLimit) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const scene s(system);
    ASSERT_EQ(limit_to(s.l.a, 1 << 14 | 1), abi::status::ok);
    post_write(s.l.a, s.near, s.far, 10'000);
    s.l.a.at.bus->spend_ps(200 * us);
    EXPECT_TRUE(s.l.a.silent());
    ASSERT_EQ(limit_to(s.l.a, 3 << 14 | 1), abi::status::ok);
    EXPECT_EQ(s.l.a.wait_send(1 * ms).status, IBV_WC_SUCCESS);
    ASSERT_EQ(limit_to(s.l.a, 1 << 14 | 1), abi::status::ok);
    post_write(s.l.a, s.near, s.far, 10'000);
    s.l.a.at.bus->spend_ps(200 * us);
    EXPECT_TRUE(s.l.a.silent());
    ASSERT_EQ(limit_to(s.l.a, 0), abi::status::ok);
    EXPECT_EQ(s.l.a.wait_send(1 * ms).status, IBV_WC_SUCCESS);
    expect_works(s.l);
  });
}

/// The queue pair beside it has the line.
TEST(UpdateRate, OthersAreNotLimited) {
  hosts::two_nodes system(default_system());
  watch w(system);
  run(system, [&] {
    const scene s(system);
    const link other = make_sibling(s.l, scene::options(1024), 5000);
    ASSERT_EQ(s.l.a.dev().set_max_rate(s.l.a.qp, 500), 0);
    post_write(other.a, s.near, s.far, size);
    post_write(s.l.a, s.near, s.far, 10'000);
    s.l.a.at.bus->spend_ps(100 * us);
    const std::uint64_t from = s.l.a.at.bus->now_ps();
    s.l.a.at.bus->spend_ps(100 * us);
    EXPECT_GT(w.rate_kbps(0, other.b.qp->qp_num, from, s.l.a.at.bus->now_ps()), 30'000'000U);
    for (unsigned i = 0; i < 2; ++i) EXPECT_EQ(s.l.a.wait_send().status, IBV_WC_SUCCESS);
  });
}

TEST(UpdateRate, WhatIsRefused) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const scene s(system);
    ASSERT_EQ(limit_to(s.l.a, 2 << 14 | 100), abi::status::ok);
    for (const unsigned bad : {1u, 0xfffu, 1u << 14, 2u << 14, 3u << 14, 2u << 14 | 1u << 12 | 5u, 2u << 14 | 1u << 13})
      EXPECT_EQ(limit_to(s.l.a, static_cast<std::uint16_t>(bad)), abi::status::bad_param) << bad;
    EXPECT_EQ(limit_of(s.l.a), 2 << 14 | 100) << "what is refused changes nothing";
    command_channel& channel = s.l.a.dev().commands();
    const auto masks = [&](std::uint64_t qp, std::uint64_t path, std::uint64_t alternate, std::uint32_t qpn) {
      command_channel::mailbox box(channel);
      abi::set(box.data(), abi::update_qp::qp_mask, qp);
      abi::set(box.data(), abi::update_qp::path_mask, path);
      abi::set(box.data(), abi::update_qp::alternate_path_mask, alternate);
      channel.write(box, abi::opcode::update_qp, qpn);
      return static_cast<abi::status>(channel.last_status());
    };
    const std::uint32_t qpn = s.l.a.qp->qp_num;
    EXPECT_EQ(masks(1, 0, 0, qpn), abi::status::bad_param);
    EXPECT_EQ(masks(0, 1, 0, qpn), abi::status::bad_param);
    EXPECT_EQ(masks(0, 0, std::uint64_t{1} << 34, qpn), abi::status::bad_param);
    EXPECT_EQ(masks(0, 0, 0, qpn + 1000), abi::status::bad_qp_state);
    EXPECT_EQ(masks(0, 0, 0, qpn), abi::status::ok) << "nothing to change";
    expect_works(s.l);
  });
}

/// The kernel looks at the number of rates before it offers the limit, and at the bit of the command.
TEST(UpdateRate, Capability) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    namespace c = abi::dev_cap;
    const scene s(system);
    command_channel::mailbox box(s.l.a.dev().commands());
    hosts::require(s.l.a.dev().commands().read(box, abi::opcode::query_dev_cap), "QUERY_DEV_CAP");
    EXPECT_NE(box.data()[0xcc] << 8 | box.data()[0xcd], 0) << "adapter control plane 4.6; net/fw.c";
    EXPECT_EQ(box.data()[0xd0] << 8 | box.data()[0xd1], 3 << 14 | 4095);
    EXPECT_EQ(box.data()[0xd2] << 8 | box.data()[0xd3], 1 << 14 | 1);
    EXPECT_NE(abi::get(box.data(), c::ext_flags) & c::ext_update_qp, 0U);
  });
}

}  // namespace
}  // namespace rnic::system_test
