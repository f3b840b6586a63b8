// SPDX-License-Identifier: Apache-2.0
// Reaction points of 802.1Qau in a whole adapter: as software sets and reads them, what CNMs about real frames do to
// the flows that have sent these, and forged ones that do nothing.
#include "host_driver/dcb/qcn.h"

#include <gtest/gtest.h>
#include <linux/dcbnl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <vector>

#include "model/wire/bytes.h"
#include "model/wire/cnm.h"
#include "testbenches/system/congestion/watch.h"
#include "testbenches/system/functions/shared_card.h"

namespace rnic::system_test {
namespace {

using hosts::connection_options;
using hosts::make_buffer;
namespace dcb = host_driver::dcb;

constexpr std::uint32_t message = 65'536;

hosts::two_nodes_config reacting(std::uint8_t priorities = 1) {
  hosts::two_nodes_config c = default_system();
  c.node.driver.qcn.priorities = priorities;
  return c;
}

/// The bytes of the last frames of each kind that passed, by sender: requests, and answers with payload.
struct tap final : payload::frame_observer_if {
  explicit tap(hosts::two_nodes& system) { system.cable().add_observer(*this); }
  void observe(unsigned from, const payload::frame& f, sim::time_ps, sim::time_ps) override {
    wire::packet p;
    if (wire::decode(f.data(), f.length, p) != wire::decode_error::none || p.payload_length < 500) return;
    const std::uint8_t operation = p.bth.opcode & 0x1f;
    (operation >= 0x0d && operation <= 0x10 ? response : request)[from].assign(f.data(), f.data() + f.length);
  }
  std::vector<std::uint8_t> request[2], response[2];
};

/// A congestion point at the other end of host a's or b's cable.
class congestion {
 public:
  explicit congestion(hosts::two_nodes& system) : system_(system) {}
  /// What it says about a frame: written here byte by byte, after 802.1Q 33.4.
  static std::vector<std::uint8_t> about(const std::vector<std::uint8_t>& frame, std::uint8_t feedback,
                                         std::uint8_t priority = 0) {
    std::vector<std::uint8_t> m(frame.begin() + 6, frame.begin() + 12);
    m.insert(m.end(), {2, 0, 0, 0, 0x80, 1, 0x22, 0xe7, 0, feedback});
    m.insert(m.end(), {2, 0, 0, 0, 0x80, 1, 7, priority});  // CPID
    m.insert(m.end(), {0xff, 0x00, 0x00, 0x10});            // offset, delta
    m.insert(m.end(), {static_cast<std::uint8_t>(priority << 5), 0});
    m.insert(m.end(), frame.begin(), frame.begin() + 6);
    m.insert(m.end(), {0, 64});
    const std::ptrdiff_t type = frame[12] == 0x81 ? 16 : 12;
    m.insert(m.end(), frame.begin() + type, frame.begin() + type + 64);
    return m;
  }
  void send(const std::vector<std::uint8_t>& bytes, unsigned to = 0) {
    payload::frame_ptr f = pool_.get();
    f->begin = payload::frame::payload_start;
    f->length = static_cast<std::uint32_t>(std::max<std::size_t>(60, bytes.size()));
    std::fill_n(f->data(), 60, std::uint8_t{0});
    std::copy(bytes.begin(), bytes.end(), f->data());
    f->fcs = wire::ethernet_fcs(f->data(), f->length);
    f->stamp = system_.now_ps();
    (to == 0 ? system_.node_a() : system_.node_b()).nic().port(0).deliver(std::move(f), system_.now_ps() + us);
  }

 private:
  hosts::two_nodes& system_;
  payload::frame_pool pool_;
};

/// Messages one behind the other until `duration` is over, four under way.
void keep_busy(const side& s, sim::time_ps duration, const std::function<void()>& post_one) {
  host_driver::bus_if& bus = *s.at.bus;
  const sim::time_ps end = bus.now_ps() + duration;
  for (unsigned i = 0; i < 4; ++i) post_one();
  while (bus.now_ps() < end) {
    ASSERT_EQ(s.wait_send().status, IBV_WC_SUCCESS);
    post_one();
  }
  for (unsigned i = 0; i < 4; ++i) ASSERT_EQ(s.wait_send().status, IBV_WC_SUCCESS);
}

/// WRITEs of one queue pair.
class writer {
 public:
  explicit writer(const link& l) : side_(l.a), from_(make_buffer(l.a.at, message)), to_(make_buffer(l.b.at, message)) {}
  void run(sim::time_ps duration) {
    keep_busy(side_, duration, [this] { post_write(side_, from_, to_, message); });
  }

 private:
  const side& side_;
  hosts::buffer from_, to_;
};

dcb::qcn_counters counters_of(const side& s, unsigned priority = 0) {
  dcb::qcn_counters c;
  EXPECT_EQ(dcb::get_qcn_counters(s.dev(), 1, priority, &c), 0);
  return c;
}

TEST(Qcn, ParametersAreSetAndReadAsDcbnlDoes) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    host_driver::device& dev = system.node_a().device();
    EXPECT_TRUE(dev.caps().qcn);
    ieee_qcn q{};
    ASSERT_EQ(dcb::get_qcn(dev, 1, &q), 0);
    for (unsigned i = 0; i < 8; ++i) {  // 802.1Q's defaults
      EXPECT_EQ(q.rpg_enable[i], 0);
      EXPECT_EQ(q.rppp_max_rps[i], 100u);
      EXPECT_EQ(q.rpg_time_reset[i], 15'000u);
      EXPECT_EQ(q.rpg_byte_reset[i], 150'000u);
      EXPECT_EQ(q.rpg_threshold[i], 5u);
      EXPECT_EQ(q.rpg_max_rate[i], 0u);
      EXPECT_EQ(q.rpg_ai_rate[i], 5u);
      EXPECT_EQ(q.rpg_hai_rate[i], 50u);
      EXPECT_EQ(q.rpg_gd[i], 7u);
      EXPECT_EQ(q.rpg_min_dec_fac[i], 50u);
      EXPECT_EQ(q.rpg_min_rate[i], 5u);
    }
    for (unsigned i = 0; i < 8; ++i) {
      q.rpg_enable[i] = i == 3 ? 1 : 0;
      q.rppp_max_rps[i] = 10 + i;
      q.rpg_time_reset[i] = 100 + i;
      q.rpg_byte_reset[i] = 1000 + i;
      q.rpg_threshold[i] = 1 + i;
      q.rpg_max_rate[i] = 20'000 + i;
      q.rpg_ai_rate[i] = 30 + i;
      q.rpg_hai_rate[i] = 40 + i;
      q.rpg_gd[i] = 5 + i;
      q.rpg_min_dec_fac[i] = 60 + i;
      q.rpg_min_rate[i] = 70 + i;
    }
    ASSERT_EQ(dcb::set_qcn(dev, 2, q), 0);
    ieee_qcn got{};
    ASSERT_EQ(dcb::get_qcn(dev, 2, &got), 0);
    EXPECT_EQ(std::memcmp(&got, &q, sizeof q), 0);
    ASSERT_EQ(dcb::get_qcn(dev, 1, &got), 0);
    EXPECT_EQ(got.rpg_min_rate[7], 5u) << "the other port";
    ieee_qcn_stats s{};
    s.rppp_created_rps[5] = 9;
    ASSERT_EQ(dcb::get_qcn_statistics(dev, 2, &s), 0);
    EXPECT_EQ(s.rppp_created_rps[5] + s.rppp_rp_centiseconds[5], 0u);
    q.cndd_state_machine[0] = DCB_CNDD_INTERIOR_READY;
    EXPECT_EQ(dcb::set_qcn(dev, 1, q), -EINVAL) << "no CN-TAGs";
    EXPECT_EQ(dcb::get_qcn(dev, 0, &got), -EINVAL);
    EXPECT_EQ(dcb::get_qcn(dev, 3, &got), -EINVAL);
    // What a device has forgotten when it is opened again.
    ASSERT_EQ(dev.close(), 0);
    ASSERT_EQ(dev.open(), 0);
    ASSERT_EQ(dcb::get_qcn(dev, 2, &got), 0);
    EXPECT_EQ(got.rpg_enable[3], 0);
    EXPECT_EQ(got.rppp_max_rps[3], 100u);
  });
}

TEST(Qcn, IsNotForVirtualFunctions) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    EXPECT_TRUE(system.node_a().device().caps().qcn);
    host_driver::device& function = system.node_a().device(1);
    EXPECT_FALSE(function.caps().qcn);
    ieee_qcn q{};
    EXPECT_EQ(dcb::get_qcn(function, 1, &q), -EOPNOTSUPP);
    host_driver::command_channel::mailbox box(function.commands());
    EXPECT_NE(function.commands().read(box, abi::opcode::congestion_ctrl, 0x101, 0), 0) << "refused by the channel too";
  });
}

/// Each encapsulation: half of the line after one CNM with all feedback, all of it some time after that.
TEST(Qcn, ACnmSlowsTheFlowThatItIsAbout) {
  for (const encapsulation_case& e : encapsulations) {
    const std::string failure = in_child([&]() -> std::string {
      hosts::two_nodes_config c = reacting();
      c.node.driver.qcn.byte_reset = 0;  // by time alone
      c.node.driver.qcn.time_reset_us = 400;
      hosts::two_nodes system(c);
      watch w(system);
      tap t(system);
      congestion point(system);
      run(system, [&] {
        connection_options o;
        o.mtu = 1024;
        o.roce = e.roce;
        o.ip = e.ip;
        const link l = make_link(system, o), other = make_sibling(l, o);
        writer flow(l);
        flow.run(200 * us);
        writer(other).run(50 * us);  // it sends to another queue pair
        flow.run(50 * us);
        const std::uint32_t qpn = l.b.qp->qp_num;
        const sim::time_ps at = l.a.at.bus->now_ps();
        point.send(congestion::about(t.request[0], 63));
        flow.run(380 * us);
        EXPECT_NEAR(static_cast<double>(w.rate_kbps(0, qpn, at + 50 * us, at + 370 * us)), 20.3125e6, 0.1e6);
        dcb::qcn_counters s = counters_of(l.a);
        EXPECT_EQ(s.handled, 1u);
        EXPECT_EQ(s.created, 1u);
        EXPECT_EQ(s.ignored, 0u);
        EXPECT_EQ(s.highest_limiter, 1u);
        EXPECT_EQ(s.most_total, 20'312u);
        const sim::time_ps then = l.a.at.bus->now_ps();
        ASSERT_GT(then, at + 400 * us);
        ASSERT_LT(then, at + 550 * us);
        flow.run(200 * us);
        EXPECT_NEAR(static_cast<double>(w.rate_kbps(0, qpn, then + 20 * us, then + 180 * us)), 30.156e6, 0.1e6);
        l.a.at.bus->spend_ps(50 * ms);
        const sim::time_ps later = l.a.at.bus->now_ps();
        flow.run(200 * us);
        EXPECT_GT(w.rate_kbps(0, qpn, later + 10 * us, later + 190 * us), 39'000'000u);
        s = counters_of(l.a);
        EXPECT_EQ(s.highest_limiter, 0u) << "it has done its work";
        EXPECT_EQ(s.total_rate, 0u);
        EXPECT_EQ(s.handled, 1u);
        expect_works(l);
      });
      return "";
    });
    EXPECT_EQ(failure, "") << e.ip;
  }
}

/// Two flows: the one that is not named goes on as it was, and takes what the other one leaves.
TEST(Qcn, OtherFlowsGoOn) {
  hosts::two_nodes_config c = reacting();
  c.node.driver.qcn.byte_reset = c.node.driver.qcn.time_reset_us = 0;  // for good
  hosts::two_nodes system(c);
  watch w(system);
  tap t(system);
  congestion point(system);
  run(system, [&] {
    connection_options o;
    o.mtu = 1024;
    const link l = make_link(system, o), other = make_sibling(l, o);
    writer flow(l);
    flow.run(100 * us);
    for (unsigned i = 0; i < 4; ++i) point.send(congestion::about(t.request[0], 63));
    l.a.at.bus->spend_ps(5 * us);
    EXPECT_EQ(counters_of(l.a).total_rate, 2'659u);  // 40 * (65/128)^4
    const sim::time_ps at = l.a.at.bus->now_ps();
    writer(other).run(200 * us);
    EXPECT_GT(w.rate_kbps(0, other.b.qp->qp_num, at + 20 * us, at + 180 * us), 39'000'000u);
    const sim::time_ps then = l.a.at.bus->now_ps();
    flow.run(500 * us);
    EXPECT_NEAR(static_cast<double>(w.rate_kbps(0, l.b.qp->qp_num, then, then + 500 * us)), 2.659e6, 0.03e6);
    // A queue pair that is gone takes its reaction point with it.
    ASSERT_EQ(l.a.dev().destroy_qp(l.a.qp), 0);
    EXPECT_EQ(counters_of(l.a).total_rate, 0u);
    expect_works(other);
  });
}

/// What host b answers READs with is a flow of host b.
TEST(Qcn, ReadResponsesReactAtTheResponder) {
  hosts::two_nodes_config c = reacting();
  c.node.driver.qcn.byte_reset = c.node.driver.qcn.time_reset_us = 0;
  hosts::two_nodes system(c);
  watch w(system);
  tap t(system);
  congestion point(system);
  run(system, [&] {
    connection_options o;
    o.mtu = 1024;
    const link l = make_link(system, o);
    const hosts::buffer to = make_buffer(l.a.at, message), from = make_buffer(l.b.at, message);
    const auto read_one = [&] {
      request r;
      r.opcode = IBV_WR_RDMA_READ;
      r.sges = {{to.address(), message, to.region->lkey}};
      r.remote = from.address();
      r.rkey = from.region->rkey;
      post(l.a, r);
    };
    keep_busy(l.a, 100 * us, read_one);
    ASSERT_FALSE(t.response[1].empty());
    point.send(congestion::about(t.response[1], 63), 1);
    l.a.at.bus->spend_ps(5 * us);
    const sim::time_ps at = l.a.at.bus->now_ps();
    keep_busy(l.a, 300 * us, read_one);
    EXPECT_NEAR(static_cast<double>(w.rate_kbps(1, l.a.qp->qp_num, at + 20 * us, at + 280 * us)), 20.3125e6, 0.2e6);
    EXPECT_EQ(counters_of(l.b).handled, 1u);
    EXPECT_EQ(counters_of(l.a).handled, 0u);
    EXPECT_EQ(counted(system, "read_generator.rp_cnm_handled"), 1u);
  });
}

TEST(Qcn, ForgedCnmsAreCountedAndDoNothing) {
  hosts::two_nodes system(reacting());
  watch w(system);
  tap t(system);
  congestion point(system);
  run(system, [&] {
    connection_options o;
    o.mtu = 1024;
    const link l = make_link(system, o);
    writer flow(l);
    flow.run(100 * us);
    const std::vector<std::uint8_t> good = congestion::about(t.request[0], 63);
    std::uint64_t sent = 0;
    const auto expect_dropped = [&](std::vector<std::uint8_t> m, const char* counter, std::uint64_t times = 1) {
      point.send(m);
      ++sent;
      l.a.at.bus->spend_ps(5 * us);
      EXPECT_EQ(counted(system, counter), times) << counter;
      EXPECT_EQ(counted(system, "requester.rp_cnm_handled"), 0u) << counter;
    };
    std::vector<std::uint8_t> m = good;
    m[5] ^= 0x40;
    expect_dropped(m, "drop_address");
    m = good;
    std::fill_n(m.begin(), 6, std::uint8_t{0xff});
    expect_dropped(m, "drop_address", 2);
    m = good;
    m[14] = 0x10;
    expect_dropped(m, "drop_version");
    m = good;
    m.resize(100);  // less than it says that it gives back
    expect_dropped(m, "drop_malformed");
    m = good;
    m[37] = 65;
    expect_dropped(m, "drop_malformed", 2);
    m = good;
    m[15] = 0;
    expect_dropped(m, "drop_empty");
    m = good;
    m[38] = 0x08, m[39] = 0x06;  // ARP
    expect_dropped(m, "drop_flow");
    m = good;
    m[35] ^= 1;  // to another station
    expect_dropped(m, "requester.rp_cnm_unknown_flow");
    m = good;
    m[38 + 2 + 20 + 8 + 7] ^= 1;  // to another queue pair
    expect_dropped(m, "requester.rp_cnm_unknown_flow", 2);
    m = good;
    m[28] = 5 << 5;  // of a priority that does not react
    expect_dropped(m, "requester.rp_cnm_disabled");
    EXPECT_EQ(counted(system, "cnm_receiver.received"), sent);
    EXPECT_EQ(counters_of(l.a).ignored, 3u) << "of priority 0: ARP and the two flows that nobody has";
    EXPECT_EQ(counters_of(l.a, 5).ignored, 1u);
    EXPECT_EQ(counters_of(l.a).created, 0u);
    const sim::time_ps at = l.a.at.bus->now_ps();
    flow.run(200 * us);
    EXPECT_GT(w.rate_kbps(0, l.b.qp->qp_num, at + 20 * us, at + 180 * us), 39'000'000u);
    point.send(good);
    l.a.at.bus->spend_ps(5 * us);
    EXPECT_EQ(counted(system, "requester.rp_cnm_handled"), 1u) << "and the right one does it";
    expect_works(l);
  });
}

/// An adapter without QCN takes CNMs for any other frame that is not for it.
TEST(Qcn, IsOffUntilSoftwareAsksForIt) {
  hosts::two_nodes system(default_system());
  watch w(system);
  tap t(system);
  congestion point(system);
  run(system, [&] {
    connection_options o;
    o.mtu = 1024;
    const link l = make_link(system, o);
    writer flow(l);
    flow.run(100 * us);
    const std::uint64_t before = counted(system, "port1.rx_frames");
    point.send(congestion::about(t.request[0], 63));
    l.a.at.bus->spend_ps(5 * us);
    EXPECT_EQ(counted(system, "port1.rx_frames"), before + 1);
    EXPECT_EQ(counted(system, "rx_cnm") + counted(system, "rp_cnm"), 0u);
    const sim::time_ps at = l.a.at.bus->now_ps();
    flow.run(200 * us);
    EXPECT_GT(w.rate_kbps(0, l.b.qp->qp_num, at + 20 * us, at + 180 * us), 39'000'000u);
  });
}

}  // namespace
}  // namespace rnic::system_test
