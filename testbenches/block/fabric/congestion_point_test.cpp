// SPDX-License-Identifier: Apache-2.0
// Congestion points: the numbers of a sample against a reference of its own, written with real numbers after the
// pseudo code of quantised congestion notification (au-rong-qcn-serial-hai, 802.1Qau), and a switch with them.
#include "model/fabric/congestion_point.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>
#include <vector>

#include "model/wire/cnm.h"
#include "testbenches/block/fabric/switch_rig.h"

namespace rnic::fabric::test {
namespace {

qcn_config on(std::uint8_t priorities) {
  qcn_config c;
  c.priorities = priorities;
  return c;
}

/// The feedback of a sample, by the text: Fb = (Q_EQ - qlen) - w (qlen - qlen_old), not below -Q_EQ (2 w + 1), not
/// above 0; quantised so that the whole of that range is 63.
unsigned reference_feedback(double q_eq, double w, double qlen, double qlen_old) {
  double fb = q_eq - qlen - w * (qlen - qlen_old);
  fb = std::min(0.0, std::max(fb, -q_eq * (2 * w + 1)));
  return static_cast<unsigned>(std::floor(-fb * 63 / (q_eq * (2 * w + 1)) + 1e-9));
}

/// mark_table of the pseudo code: bytes to the next sample by the upper three bits of the feedback.
double reference_distance(double base, unsigned feedback) {
  const unsigned row = feedback / 8;
  return base / (1.0 + row);
}

TEST(congestion_point, samples_and_feedback_are_those_of_the_pseudo_code) {
  std::mt19937_64 random(5);
  for (const auto& [setpoint, weight, base] : std::vector<std::array<unsigned, 3>>{
           {26'000, 2, 150'000}, {33'000, 1, 100'000}, {66'000, 4, 150'000}, {100, 2, 10'000}}) {
    qcn_config c = on(0x08);
    c.setpoint_bytes = setpoint;
    c.weight = static_cast<std::uint16_t>(weight);
    c.sample_bytes = base;
    congestion_point p(c, 3, 17);
    double since = 0, old = 0, distance = base;
    unsigned samples = 0, told = 0;
    double least = 2, most = 0;
    std::int64_t queued = 0;
    for (unsigned i = 0; i < 200'000; ++i) {
      const auto bytes = static_cast<std::uint32_t>(64 + random() % 4096);
      queued = std::max<std::int64_t>(bytes, queued + static_cast<std::int64_t>(random() % 9000) - 4500);
      if (queued > 4 * setpoint) queued = setpoint;
      since += bytes;
      const auto s = p.take(bytes, static_cast<std::uint32_t>(queued));
      ASSERT_TRUE(s || since <= distance * 1.15) << "a sample is late";
      if (!s) continue;
      ++samples;
      ASSERT_GT(since, distance * 0.85 - 1) << "a sample is early";
      ASSERT_LE(since - bytes, distance * 1.15) << "the one that passes the distance is sampled";
      least = std::min(least, since / distance);
      most = std::max(most, (since - bytes) / distance);
      const unsigned expected = reference_feedback(setpoint, weight, static_cast<double>(queued), old);
      ASSERT_EQ(s->feedback, expected);
      ASSERT_EQ(s->q_offset, std::int64_t{setpoint} - queued);
      ASSERT_EQ(s->q_delta, queued - static_cast<std::int64_t>(old));
      ASSERT_EQ(s->queued, queued);
      told += expected != 0 ? 1 : 0;
      old = static_cast<double>(queued);
      distance = reference_distance(base, expected);
      since = 0;
    }
    EXPECT_GT(samples, 1000u);
    EXPECT_GT(told, 100u);
    EXPECT_LT(told, samples);
    EXPECT_LT(least, 0.95) << "the jitter is there";
    EXPECT_GT(most, 1.05);
  }
}

TEST(congestion_point, literal_samples) {
  const qcn_config c = on(1);
  congestion_point p(c, 0, 1);
  EXPECT_FALSE(congestion_point(c, 1, 1).is_on());
  EXPECT_TRUE(p.is_on());
  const auto next = [&](std::uint32_t queued) {
    for (;;)
      if (const auto s = p.take(1000, queued)) return *s;
  };
  EXPECT_EQ(next(26'000).feedback, 25);   // -(0 - 2 * 26000) * 63 / 130000
  EXPECT_EQ(next(26'000).feedback, 0);    // in balance
  EXPECT_EQ(next(30'000).feedback, 5);    // 4000 + 2 * 4000
  EXPECT_EQ(next(29'000).feedback, 0);    // 3000 - 2 * 1000: little, and falling
  EXPECT_EQ(next(100'000).feedback, 63);  // 74000 + 2 * 71000, cut at 130000
  EXPECT_EQ(next(0).feedback, 0);
}

TEST(congestion_point, what_a_message_says) {
  rig r(3);
  qcn_config c = on(0xff);
  payload::frame_ptr f = r.frame(1, 2, 200, 5 << 13 | 77);
  for (unsigned i = 18; i < 200; ++i) f->data()[i] = static_cast<std::uint8_t>(i);
  congestion_point::sample s;
  s.feedback = 9;
  s.q_offset = -6400;
  s.q_delta = 130;
  wire::cnm m = message_about(*f, 5, s, c);
  EXPECT_EQ(m.dmac, (wire::mac_address{2, 0, 0, 0, 0, 1}));
  EXPECT_EQ(m.sampled_dmac, (wire::mac_address{2, 0, 0, 0, 0, 2}));
  EXPECT_EQ(m.vlan_tci.value_or(0), 6 << 13 | 77);
  EXPECT_FALSE(m.flow);
  EXPECT_EQ(m.priority, 5);
  EXPECT_EQ(m.q_offset, -100);
  EXPECT_EQ(m.q_delta, 2);
  ASSERT_EQ(m.msdu_bytes, 64);
  EXPECT_EQ(wire::load_be16(m.msdu.data()), 0x88b5);
  EXPECT_EQ(m.msdu[63], 79) << "64 bytes from the EtherType behind the tag on";
  s.q_offset = -100'000'000;
  c.header_bytes = 2;
  f = r.frame(1, 2, 60);
  wire::store_be16(f->data() + 12, 0x22e9);
  wire::store_be16(f->data() + 14, 4660);
  m = message_about(*f, 5, s, c);
  EXPECT_EQ(m.q_offset, -32'768);
  EXPECT_EQ(m.flow.value_or(0), 4660);
  EXPECT_FALSE(m.vlan_tci);
  EXPECT_EQ(m.msdu_bytes, 2);
}

/// Ports 0 and 1 send to port 2 at the rate of the line, until its queue is `queued` bytes long and more.
struct overload {
  explicit overload(switch_config c) : r(3, std::move(c)) {
    r.teach();
    start = r.base.now_ps();
  }
  void run(unsigned frames, int tag, std::uint8_t source_group = 0) {
    const sim::time_ps each = (1000 + overhead + gap) * byte_ps;
    for (unsigned i = 1; i <= frames; ++i)
      for (unsigned from : {0u, 1u}) {
        payload::frame_ptr f = r.frame(from, 2, 1000, tag);
        f->data()[6] = static_cast<std::uint8_t>(f->data()[6] | source_group);
        f->fcs = wire::ethernet_fcs(f->data(), f->length);
        r.deliver(from, std::move(f), start + i * each);
      }
    r.run(start + (2 * frames + 10) * each);
  }
  rig r;
  sim::time_ps start = 0;
};

switch_config with(std::uint8_t priorities) {
  switch_config c;
  c.ports.assign(3, {rate, 3, {}});
  c.qcn.priorities = priorities;
  return c;
}

TEST(congestion_point, a_switch_tells_the_sources_of_a_queue_that_grows) {
  overload o(with(0x08));
  o.run(600, 3 << 13 | 2);
  const auto& count = o.r.middle->count(2);
  EXPECT_GT(count.cnms, 10u);
  EXPECT_GE(count.sampled, count.cnms);
  EXPECT_GT(count.sampled_bytes, 26'000 * count.cnms);
  EXPECT_EQ(o.r.counted("port2.qcn_cnms"), count.cnms);
  std::uint64_t got = 0;
  for (unsigned from : {0u, 1u}) {
    EXPECT_FALSE(o.r.plugs[from].got.empty());
    for (const auto& [f, at] : o.r.plugs[from].got) {
      wire::cnm m;
      ASSERT_EQ(wire::decode_cnm(f->data(), f->length, m), wire::cnm_kind::message);
      EXPECT_EQ(f->fcs, wire::ethernet_fcs(f->data(), f->length));
      EXPECT_EQ(m.dmac, (wire::mac_address{2, 0, 0, 0, 0, static_cast<std::uint8_t>(from)}));
      EXPECT_EQ(m.vlan_tci.value_or(0), 6 << 13 | 2);
      EXPECT_EQ(m.priority, 3);
      EXPECT_EQ(m.cpid & 0xffff, 0x0203u) << "port and priority";
      EXPECT_GT(m.feedback, 0);
      EXPECT_LT(m.q_offset, 0);
      EXPECT_EQ(m.msdu_bytes, 64);
      ++got;
    }
  }
  EXPECT_EQ(got, count.cnms);
  EXPECT_EQ(o.r.plugs[2].got.size(), 1200u) << "no frame is lost or changed";
}

/// The first sample of a queue with a set point of 100 bytes: its CNM leaves a hop behind the frame that was sampled.
TEST(congestion_point, a_message_is_late_by_the_hop) {
  switch_config c = with(1);
  c.qcn.setpoint_bytes = 100;
  c.qcn.sample_bytes = 10'000;
  overload o(c);
  o.run(20, -1);
  ASSERT_FALSE(o.r.plugs[0].got.empty() && o.r.plugs[1].got.empty());
  const auto& [first, second] = std::tie(o.r.plugs[0].got, o.r.plugs[1].got);
  const unsigned port = first.empty() || (!second.empty() && second[0].second < first[0].second) ? 1 : 0;
  const auto& [f, at] = o.r.plugs[port].got.front();
  EXPECT_EQ(f->length, 14u + 24 + 64);
  const sim::time_ps each = (1000 + overhead + gap) * byte_ps;
  const sim::time_ps sampled = at - hop - o.start;  // the last bit of the frame that it is about
  EXPECT_EQ(sampled % each, 0u);
  EXPECT_GE(sampled / each, 4u);  // eight frames are 8 to 9 of 8500 to 11500 bytes
  EXPECT_LE(sampled / each, 6u);
}

TEST(congestion_point, only_queues_of_its_priorities) {
  overload o(with(0x08));
  o.run(600, 2 << 13 | 2);
  EXPECT_EQ(o.r.middle->count(2).sampled, 0u);
  EXPECT_TRUE(o.r.plugs[0].got.empty());
}

TEST(congestion_point, a_group_is_no_source) {
  overload o(with(0x08));
  o.run(600, 3 << 13 | 2, 1);
  EXPECT_GT(o.r.middle->count(2).sampled, 10u);
  EXPECT_EQ(o.r.middle->count(2).cnms, 0u);
}

TEST(congestion_point, none_unless_an_administrator_says_so) {
  overload o(with(0));
  o.run(600, 3 << 13 | 2);
  EXPECT_EQ(o.r.middle->count(2).sampled, 0u);
  EXPECT_TRUE(o.r.plugs[0].got.empty());
}

/// CNMs in a queue that has a congestion point are not sampled themselves.
TEST(congestion_point, messages_cause_no_messages) {
  switch_config c = with(0xff);
  c.qcn.cnm_priority = 3;
  c.qcn.setpoint_bytes = 100;
  c.qcn.sample_bytes = 10'000;
  overload o(c);
  o.run(600, 3 << 13 | 2);
  EXPECT_GT(o.r.middle->count(2).cnms, 100u);
  EXPECT_EQ(o.r.middle->count(0).sampled + o.r.middle->count(1).sampled, 0u);
}

}  // namespace
}  // namespace rnic::fabric::test
