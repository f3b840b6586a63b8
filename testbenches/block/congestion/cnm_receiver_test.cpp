// SPDX-License-Identifier: Apache-2.0
// The receiver of CNMs alone: literal cycles idle, back to back and stalled; both ports in turn; which flow a CNM
// names, for each encapsulation; and all that is counted and does nothing. Then a flow's reaction point behind it.
#include "model/transport/congestion/cnm_receiver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "model/gid/gid_cr.h"
#include "model/sim/timebase.h"
#include "model/transport/congestion/qcn_cr.h"
#include "model/transport/congestion/rate_limiter.h"
#include "model/wire/bytes.h"

namespace rnic::transport {
namespace {

using cycle = sim::cycle_t;
constexpr std::uint16_t udp_port = 4791;
constexpr unsigned busy = 8;  // cnm_cycles

/// Ports, requester and READ generator in one.
struct world : sim::clocked_block {
  explicit world(sim::clock_domain& d) : clocked_block("world", d) { wake_at(1); }
  sim::fifo_out<payload::frame_ptr> cnms[2] = {sim::fifo_out<payload::frame_ptr>(*this),
                                               sim::fifo_out<payload::frame_ptr>(*this)};
  sim::fifo_in<cnm_notice> notices[2] = {sim::fifo_in<cnm_notice>(*this), sim::fifo_in<cnm_notice>(*this)};

  struct start {
    cycle at;
    unsigned port;
    payload::frame_ptr frame;
  };
  struct left {
    cycle at;
    unsigned half;
    cnm_notice notice;
  };
  std::deque<start> starts;  ///< in order of time
  cycle takes_from = 0;
  std::vector<left> got;

 private:
  void tick() override {
    wake_next();
    for (; !starts.empty() && starts.front().at <= now(); starts.pop_front())
      cnms[starts.front().port].push(std::move(starts.front().frame));
    for (unsigned half = 0; half < 2; ++half)
      if (now() >= takes_from && notices[half].can_pop()) got.push_back({now(), half, notices[half].pop()});
  }
};

wire::cnm about(std::uint16_t type, std::uint8_t opcode, std::uint32_t dest_qp) {
  wire::cnm m;
  m.dmac = {2, 0, 0, 0, 0, 1};
  m.smac = {2, 0, 0, 0, 0x80, 1};
  m.vlan_tci = 6 << 13 | 2;
  m.feedback = 7;
  m.priority = 3;
  m.sampled_dmac = {2, 0, 0, 0, 0, 9};
  m.msdu_bytes = 64;
  std::uint8_t* d = m.msdu.data();
  wire::store_be16(d, type);
  std::size_t bth = 2 + 40;
  if (type == 0x0800) {
    d[2] = 0x45;
    d[2 + 9] = 17;
    bth = 2 + 20 + 8;
  } else if (type == 0x86dd) {
    d[2] = 0x60;
    d[2 + 6] = 17;
    bth = 2 + 40 + 8;
  }
  if (type != 0x8915) wire::store_be16(d + bth - 6, udp_port);
  d[bth] = opcode;
  wire::store_be32(d + bth + 4, 0xff000000 | dest_qp);  // what is reserved in front of it does not count
  return m;
}

constexpr std::uint16_t v1 = 0x8915, ipv4 = 0x0800, ipv6 = 0x86dd;
constexpr std::uint8_t write_middle = 0x07, read_response = 0x0e, acknowledge = 0x11, cnp = 0x81, xrc_write = 0xa7;

/// A clock of 1 ns.
struct rig {
  rig() : dut("cnm_receiver", core, qcn_config{}, {&gids[0], &gids[1]}, udp, stats) {
    for (unsigned i = 0; i != 2; ++i) {
      w.cnms[i].bind(ways[i]);
      dut.cnms[i].bind(ways[i]);
      dut.notices[i].bind(notices[i]);
      w.notices[i].bind(notices[i]);
      gids[i].cr_write(gid::cr::mac_word(5, 1), 0x00000001 + i);
      gids[i].cr_write(gid::cr::mac_word(5, 0), gid::cr::mac_valid | 0x0200);
    }
  }
  /// A CNM that is pushed at `at`.
  void tell(cycle at, const wire::cnm& m, unsigned port = 0, std::size_t cut = 0, std::uint8_t version = 0) {
    payload::frame_ptr f = frames.get();
    f->begin = payload::frame::payload_start;
    f->length = static_cast<std::uint32_t>(wire::encode_cnm(m, f->data()) - cut);
    f->data()[18] = static_cast<std::uint8_t>(f->data()[18] | version << 4);
    w.starts.push_back({at, port, std::move(f)});
  }
  /// To behind edge `until`.
  void run(cycle until) {
    sc_core::sc_start(sc_core::sc_time::from_value(until * 1000 + 500) - (sc_core::sc_time_stamp() - begun));
  }
  std::vector<std::pair<cycle, std::uint32_t>> left() const {
    std::vector<std::pair<cycle, std::uint32_t>> all;
    for (const world::left& l : w.got) all.emplace_back(l.at, l.notice.dest_qp);
    return all;
  }
  std::uint64_t count(const std::string& of) const { return stats.value("cnm_receiver." + of); }

  sc_core::sc_time begun = sc_core::sc_time_stamp();
  sim::timebase base;
  sim::clock_domain core{"core", base, {1000, 1, begun.value()}};
  sim::statistics stats;
  payload::frame_pool frames;
  gid::gid_table gids[2];
  std::uint16_t udp = udp_port;
  world w{core};
  cnm_receiver dut;
  sim::fifo<payload::frame_ptr> ways[2] = {{"from_port1", core, 16}, {"from_port2", core, 16}};
  sim::fifo<cnm_notice> notices[2] = {{"requests", core, 2}, {"responses", core, 2}};
};

using cycles = std::vector<std::pair<cycle, std::uint32_t>>;

TEST(CnmReceiver, CyclesIdleAndBackToBack) {
  rig r;
  r.tell(10, about(v1, write_middle, 1));
  r.tell(50, about(v1, write_middle, 2));
  r.tell(51, about(ipv4, write_middle, 3));
  r.tell(52, about(ipv6, write_middle, 4));
  r.run(100);
  // Taken a cycle after it was pushed; the notice is seen a cycle after it has left.
  EXPECT_EQ(r.left(), (cycles{{11 + busy + 1, 1}, {51 + busy + 1, 2}, {51 + 2 * busy + 1, 3}, {51 + 3 * busy + 1, 4}}));
  for (const world::left& l : r.w.got) {
    EXPECT_EQ(l.half, cnm_receiver::requests);
    EXPECT_EQ(l.notice.port, 0);
    EXPECT_EQ(l.notice.priority, 3);
    EXPECT_EQ(l.notice.feedback, 7);
    EXPECT_EQ(l.notice.dmac, (wire::mac_address{2, 0, 0, 0, 0, 9}));
  }
  EXPECT_EQ(r.count("received"), 4u);
  EXPECT_EQ(r.count("notices"), 4u);
}

TEST(CnmReceiver, PortsInTurn) {
  rig r;
  for (std::uint32_t i = 0; i < 3; ++i) r.tell(10 + i, about(v1, write_middle, 1 + i));
  for (std::uint32_t i = 0; i < 3; ++i) {
    wire::cnm m = about(v1, write_middle, 11 + i);
    m.dmac[5] = 2;
    r.tell(12 + i, m, 1);
  }
  r.run(100);
  std::vector<std::uint32_t> order;
  for (const auto& [at, qp] : r.left()) order.push_back(qp);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{1, 11, 2, 12, 3, 13}));
  EXPECT_EQ(r.w.got[1].notice.port, 1);
}

TEST(CnmReceiver, ANoticeThatNobodyTakesHoldsUpTheOthers) {
  rig r;
  r.w.takes_from = 100;
  for (std::uint32_t i = 0; i < 4; ++i) r.tell(10 + i, about(v1, write_middle, 1 + i));
  r.run(150);
  // Two are in the channel; the third waits for a place, and the fourth behind it.
  EXPECT_EQ(r.left(), (cycles{{100, 1}, {101, 2}, {102, 3}, {102 + busy, 4}}));
}

/// A reset drops the notice that waits; the CNM behind it is taken in the next cycle.
TEST(CnmReceiver, AResetTakesAwayWhatHeldUpTheOthers) {
  rig r;
  r.w.takes_from = 1000;
  for (std::uint32_t i = 0; i < 3; ++i) r.tell(10 + i, about(v1, write_middle, 1 + i));
  r.tell(13, about(v1, read_response, 4));
  r.run(100);
  EXPECT_EQ(r.count("received"), 3u);
  r.dut.device_reset();
  r.run(101);
  EXPECT_EQ(r.count("received"), 4u);
  r.run(1100);
  EXPECT_EQ(r.left(), (cycles{{1000, 1}, {1000, 4}, {1001, 2}}));
}

TEST(CnmReceiver, ResponsesGoToTheReadGenerator) {
  rig r;
  r.tell(10, about(v1, read_response, 1));
  r.tell(20, about(ipv6, xrc_write, 2));
  r.run(60);
  ASSERT_EQ(r.w.got.size(), 2u);
  EXPECT_EQ(r.w.got[0].half, cnm_receiver::responses);
  EXPECT_EQ(r.w.got[1].half, cnm_receiver::requests);
}

TEST(CnmReceiver, WhatIsWrongIsCountedAndDoesNothing) {
  rig r;
  cycle at = 0;
  const auto tell = [&](const wire::cnm& m, std::size_t cut = 0, std::uint8_t version = 0) {
    r.tell(at += 20, m, 0, cut, version);
  };
  const wire::cnm good = about(ipv4, write_middle, 1);
  wire::cnm m = good;
  m.dmac[5] = 2;  // the other port's
  tell(m);
  m.dmac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  tell(m);
  tell(good, 0, 1);
  tell(good, 1);
  tell(good, 64 + 24);
  m = good;
  m.feedback = 0;
  tell(m);
  tell(about(ipv4, acknowledge, 1));
  tell(about(ipv4, cnp, 1));
  tell(about(0x0806, 0, 1));
  m = good;
  m.msdu_bytes = 2 + 20 + 8 + 11;  // a byte less than its BTH
  tell(m);
  m = good;
  wire::store_be16(m.msdu.data() + 2 + 20 + 2, 4792);
  tell(m);
  m = good;
  m.msdu[2 + 9] = 6;
  tell(m);
  m = about(v1, write_middle, 1);
  m.msdu_bytes = 1;
  tell(m);
  r.run(at + 40);
  EXPECT_TRUE(r.w.got.empty());
  EXPECT_EQ(r.count("received"), 13u);
  EXPECT_EQ(r.count("drop_address"), 2u);
  EXPECT_EQ(r.count("drop_version"), 1u);
  EXPECT_EQ(r.count("drop_malformed"), 2u);
  EXPECT_EQ(r.count("drop_empty"), 1u);
  EXPECT_EQ(r.count("drop_flow"), 7u);
  EXPECT_EQ(r.dut.cr_read(cr::cnm_ignored + 4 * 3), 7u);
  EXPECT_EQ(r.dut.cr_read(cr::cnm_ignored + 4 * 11), 0u);
  EXPECT_EQ(r.dut.cr_read(0x1000), 0u);
  r.dut.device_reset();
  EXPECT_EQ(r.dut.cr_read(cr::cnm_ignored + 4 * 3), 0u);
  r.tell(at + 60, good);
  r.run(at + 100);
  EXPECT_EQ(r.left(), (cycles{{at + 61 + busy + 1, 1}}));
}

/// Reaction points in the limiter of a half, by its registers.
struct limited {
  limited() { limiter.qcn().announce("half", stats); }
  static std::uint32_t at(unsigned group, unsigned word) { return cr::qcn + group * cr::qcn_stride + 4 * word; }
  void set(unsigned group, unsigned word, std::uint32_t value) { limiter.qcn().write(at(group, word), value, now); }
  std::uint32_t get(unsigned group, unsigned word) { return limiter.qcn().read(at(group, word), now); }
  std::uint32_t stat(unsigned group, std::uint32_t n) { return get(group, cr::qcn_statistics / 4 + n); }
  /// A frame of `qpn` for queue pair `to` of the peer starts, of `bytes`, at its time.
  sim::cycle_t frame(std::uint32_t qpn, std::uint32_t to, std::uint32_t bytes) {
    const sim::cycle_t due = limiter.due(qpn);
    limiter.qcn().note(qpn, peer.data(), to);
    limiter.sent(qpn, bytes);
    return due;
  }
  void cnm(std::uint32_t to, std::uint8_t feedback, std::uint8_t priority = 3) {
    cnm_notice n;
    n.priority = priority;
    n.feedback = feedback;
    n.dmac = peer;
    n.dest_qp = to;
    limiter.notified(n);
  }
  std::uint64_t count(const std::string& of) const { return stats.value("half.rp_cnm_" + of); }

  const wire::mac_address peer{2, 0, 0, 0, 0, 9};
  const sim::time_ps now = 0;
  sim::timebase base;
  sim::clock_domain core{"core", base, {1000, 1, 0}};
  sim::statistics stats;
  congestion_config config;
  rate_limiter limiter{config, core, 18};
};

TEST(QcnReactions, ACnmPacesTheFlowThatItIsAbout) {
  limited h;
  EXPECT_FALSE(h.limiter.qcn().reacts());
  h.set(3, 0, 1);
  EXPECT_TRUE(h.limiter.qcn().reacts());
  h.frame(100, 7, 1000);
  h.frame(200, 8, 1000);
  EXPECT_FALSE(h.limiter.any()) << "nothing moves before the first CNM";
  h.cnm(7, 63);
  EXPECT_TRUE(h.limiter.limits(100));
  EXPECT_FALSE(h.limiter.limits(200));
  EXPECT_EQ(h.frame(100, 7, 976), 0u);
  // 1000 bytes on the line at 40 Gb/s * 65/128 are 393.85 ns.
  EXPECT_EQ(h.limiter.due(100), 394u);
  EXPECT_EQ(h.limiter.due(200), 0u);
  EXPECT_EQ(h.stat(3, cr::qcn_handled), 1u);
  EXPECT_EQ(h.stat(3, cr::qcn_created), 1u);
  EXPECT_EQ(h.stat(3, cr::qcn_total_rate), 20'312u);
  EXPECT_EQ(h.stat(3, cr::qcn_most_total), 20'312u);
  EXPECT_EQ(h.stat(3, cr::qcn_least_total), 20'312u);
  EXPECT_EQ(h.stat(3, cr::qcn_highest_index), 1u);
  h.cnm(8, 63);
  EXPECT_EQ(h.stat(3, cr::qcn_total_rate), 40'625u);
  EXPECT_EQ(h.stat(3, cr::qcn_most_total), 40'625u);
  EXPECT_EQ(h.stat(3, cr::qcn_highest_index), 2u);
  h.limiter.forget(200);
  EXPECT_EQ(h.stat(3, cr::qcn_total_rate), 20'312u);
  h.limiter.limit(100, 1'000'000);  // software's limit is the lower one
  h.limiter.forget(100);
  EXPECT_EQ(h.stat(3, cr::qcn_total_rate), 0u);
  EXPECT_EQ(h.count("ended"), 2u);
}

TEST(QcnReactions, WhoIsIgnored) {
  limited h;
  h.set(3, 0, 1);
  h.set(3, 1, 2);  // max_rps
  for (std::uint32_t i = 1; i <= 3; ++i) h.frame(i, 10 + i, 500);
  h.cnm(99, 9);  // nobody has sent there
  EXPECT_EQ(h.count("unknown_flow"), 1u);
  h.cnm(11, 9, 4);  // a priority that does not react
  EXPECT_EQ(h.count("disabled"), 1u);
  EXPECT_EQ(h.stat(4, cr::qcn_ignored), 1u);
  for (std::uint32_t i = 1; i <= 3; ++i) h.cnm(10 + i, 9);
  EXPECT_EQ(h.count("no_place"), 1u);
  EXPECT_EQ(h.stat(3, cr::qcn_ignored), 2u);
  EXPECT_EQ(h.stat(3, cr::qcn_handled), 2u);
  EXPECT_FALSE(h.limiter.limits(3));
  h.limiter.forget(1);
  h.cnm(13, 9);
  EXPECT_TRUE(h.limiter.limits(3));
  h.set(3, 0, 0);
  EXPECT_FALSE(h.limiter.limits(2) || h.limiter.limits(3)) << "disabled: all are forgotten";
  EXPECT_EQ(h.stat(3, cr::qcn_total_rate), 0u);
  h.set(3, 0, 1);
  h.cnm(12, 9);
  EXPECT_TRUE(h.limiter.limits(2));
  h.limiter.clear();
  EXPECT_EQ(h.get(3, 0), 0u);
  EXPECT_EQ(h.get(3, 1), 100u) << "as after power-up";
  EXPECT_EQ(h.stat(3, cr::qcn_created), 0u);
}

/// The last queue pair that has sent to a peer's is the one that a CNM is for.
TEST(QcnReactions, TheFlowTableRemembersTheLastSender) {
  limited h;
  h.set(0, 0, 1);
  h.frame(1, 5, 500);
  h.frame(2, 5, 500);
  h.cnm(5, 9, 0);
  EXPECT_FALSE(h.limiter.limits(1));
  EXPECT_TRUE(h.limiter.limits(2));
}

/// Nobody asks a flow that has nothing to send; its place is wanted by another one.
TEST(QcnReactions, APlaceIsFreeAgainBehindTheHighestRate) {
  limited h;
  qcn_reactions q(h.config.qcn, h.config.line_mbps);
  const auto stat = [&](std::uint32_t n, sim::time_ps at) {
    return q.read(limited::at(3, cr::qcn_statistics / 4 + n), at);
  };
  constexpr sim::time_ps second = 1'000'000 * sim::ps_per_us;
  q.write(limited::at(3, 0), 1, 0);
  q.write(limited::at(3, 1), 1, 0);  // one reaction point
  cnm_notice n;
  n.priority = 3;
  n.feedback = 63;
  EXPECT_EQ(q.take(n, 1, qcn_reactions::none, second), 1u);
  EXPECT_EQ(stat(cr::qcn_centiseconds + 1, 2 * second), 100u);
  EXPECT_EQ(q.take(n, 2, qcn_reactions::none, second), qcn_reactions::none);
  EXPECT_EQ(q.sent(1, 1000, second), 20'312'500u);
  EXPECT_EQ(q.take(n, 2, qcn_reactions::none, 100 * second), 1u) << "the same place";
  EXPECT_FALSE(q.holds(1, 1));
  EXPECT_TRUE(q.holds(1, 2));
  // 19 687 500 kb/s to the highest rate are halved 25 times: 5 stages of 15 ms, 20 of 7.5 ms.
  const std::uint32_t past = stat(cr::qcn_centiseconds + 1, 100 * second);
  EXPECT_EQ(past, 22u);
  EXPECT_EQ(stat(cr::qcn_centiseconds + 1, 100 * second + second / 2), past + 50);
  EXPECT_EQ(stat(cr::qcn_created, 0), 2u);
  EXPECT_EQ(stat(cr::qcn_ignored, 0), 1u);
  EXPECT_EQ(stat(cr::qcn_handled, 0), 2u);
}

TEST(QcnReactions, Registers) {
  limited h;
  const std::uint32_t defaults[] = {0, 100, 15'000, 150'000, 5, 0, 5, 50, 7, 50, 5};
  for (unsigned group : {0u, 9u, 15u})
    for (unsigned word = 0; word < cr::qcn_parameters; ++word) {
      EXPECT_EQ(h.get(group, word), defaults[word]);
      h.set(group, word, word == 0 ? 1 : 1000 + group * 16 + word);
    }
  for (unsigned group : {0u, 9u, 15u})
    for (unsigned word = 1; word < cr::qcn_parameters; ++word) EXPECT_EQ(h.get(group, word), 1000 + group * 16 + word);
  EXPECT_EQ(h.get(1, 1), 100u);
  EXPECT_EQ(h.get(0, cr::qcn_parameters), 0u);
  EXPECT_EQ(h.stat(0, 12), 0u);
  EXPECT_EQ(h.get(16, 1), 0u);
  h.set(16, 1, 5);
}

}  // namespace
}  // namespace rnic::transport
