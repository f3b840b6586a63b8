// SPDX-License-Identifier: Apache-2.0
// The sender of CNPs alone: literal cycles idle, back to back and stalled; both sources and both ports in turn; the
// interval in each scope; full queues; reset.
#include "model/transport/congestion/cnp_sender.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <systemc>
#include <tuple>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"
#include "testbenches/bench/child.h"

namespace rnic::transport {
namespace {

using cycle = sim::cycle_t;
constexpr std::uint8_t priority = 6;
constexpr unsigned places = 2;

/// Requester, responder and answer_transmit in one.
struct world : sim::clocked_block {
  explicit world(sim::clock_domain& d) : clocked_block("world", d) { wake_at(1); }
  sim::fifo_out<congestion_notice> notices[2] = {sim::fifo_out<congestion_notice>(*this),
                                                 sim::fifo_out<congestion_notice>(*this)};
  sim::fifo_in<answer_job> job{*this};
  sim::fifo_out<answer_room> room{*this};

  struct start {
    cycle at;
    unsigned source;
    congestion_notice notice;
  };
  struct left {
    cycle at;
    std::uint32_t number;  ///< of the CNP
    unsigned port;
  };
  std::deque<start> starts;      ///< in order of time
  bool gives[2] = {true, true};  ///< places back, by port, in the cycle in which it takes a CNP
  bool takes = true;
  std::vector<left> got;

 private:
  void tick() override {
    wake_next();
    for (; !starts.empty() && starts.front().at <= now(); starts.pop_front())
      notices[starts.front().source].push(std::move(starts.front().notice));
    if (!takes || !job.can_pop()) return;
    answer_job j = job.pop();
    EXPECT_TRUE(j.complete);
    EXPECT_EQ(j.priority, priority);
    got.push_back({now(), j.frame->packet.bth.dest_qp, j.port});
    if (gives[j.port]) room.push({j.port, j.priority});
  }
};

notification_config with(cnp_scope scope, unsigned queue = 8, unsigned interval_us = 4) {
  notification_config c;
  c.scope = scope;
  c.queue = queue;
  c.interval_us = interval_us;
  return c;
}

/// A clock of 1 ns.
struct rig {
  explicit rig(const notification_config& c = with(cnp_scope::qp), const sim::timebase::options& o = {})
      : base(o), dut("cnp_sender", core, c, places, stats) {
    for (unsigned i = 0; i != 2; ++i) {
      w.notices[i].bind(ways[i]);
      dut.notices[i].bind(ways[i]);
    }
    dut.answers.job.bind(jobs);
    w.job.bind(jobs);
    w.room.bind(rooms);
    dut.answers.room.bind(rooms);
  }
  /// A notice that is pushed at `at`: CNP `number` for queue pair `qpn`, by `port`, to the peer with this last byte.
  void tell(cycle at, std::uint32_t number, std::uint32_t qpn, unsigned port = 0,
            unsigned source = cnp_sender::responder, std::uint8_t peer = 1) {
    congestion_notice n;
    n.qpn = qpn;
    n.cnp = frames.get();
    n.cnp->port = static_cast<std::uint8_t>(port);
    n.cnp->priority = priority;
    n.cnp->packet = wire::packet{};
    n.cnp->packet.bth.dest_qp = number;
    n.cnp->packet.dgid[15] = peer;
    w.starts.push_back({at, source, std::move(n)});
  }
  /// To behind edge `until`.
  void run(cycle until) {
    sc_core::sc_start(sc_core::sc_time::from_value(until * 1000 + 500) - (sc_core::sc_time_stamp() - begun));
  }
  std::vector<std::pair<cycle, std::uint32_t>> left() const {
    std::vector<std::pair<cycle, std::uint32_t>> all;
    for (const world::left& l : w.got) all.emplace_back(l.at, l.number);
    return all;
  }
  std::uint64_t count(const std::string& of) const { return stats.value("cnp_sender." + of); }

  sc_core::sc_time begun = sc_core::sc_time_stamp();
  sim::timebase base;
  sim::clock_domain core{"core", base, {1000, 1, begun.value()}};
  sim::statistics stats;
  payload::frame_pool frames;
  world w{core};
  cnp_sender dut;
  sim::fifo<congestion_notice> ways[2] = {{"from_responder", core, 64}, {"from_requester", core, 64}};
  sim::fifo<answer_job> jobs{"jobs", core, 2};
  sim::fifo<answer_room> rooms{"rooms", core, 64};
};

using cycles = std::vector<std::pair<cycle, std::uint32_t>>;

TEST(cnp_sender, idle_one_leaves_a_cycle_after_it_is_seen) {
  rig r;
  r.tell(10, 7, 0x100);
  r.run(50);
  EXPECT_EQ(r.left(), (cycles{{13, 7}}));  // seen at 11, pushed at 12, seen at 13
  EXPECT_EQ(r.count("np_cnp_sent"), 1u);
}

TEST(cnp_sender, back_to_back_one_leaves_a_cycle) {
  rig r;
  for (unsigned i = 0; i != 4; ++i) r.tell(10 + i, i, 0x100 + i);
  r.run(50);
  EXPECT_EQ(r.left(), (cycles{{13, 0}, {14, 1}, {15, 2}, {16, 3}}));
}

TEST(cnp_sender, sources_take_turns) {
  rig r;
  for (unsigned i = 0; i != 3; ++i) {
    r.tell(10 + i, 2 * i, 0x100 + i, 0, cnp_sender::responder);
    r.tell(10 + i, 2 * i + 1, 0x200 + i, 0, cnp_sender::requester);
  }
  r.run(50);
  EXPECT_EQ(r.left(), (cycles{{13, 0}, {14, 1}, {15, 2}, {16, 3}, {17, 4}, {18, 5}}));
}

TEST(cnp_sender, ports_take_turns_and_one_without_places_holds_up_no_other) {
  rig r;
  r.w.gives[1] = false;
  for (unsigned i = 0; i != 4; ++i) r.tell(10 + i, i, 0x100 + i, 1);
  for (unsigned i = 4; i != 6; ++i) r.tell(20 + i, i, 0x100 + i, 0);
  r.run(60);
  EXPECT_EQ(r.left(), (cycles{{13, 0}, {14, 1}, {27, 4}, {28, 5}}));
  EXPECT_EQ(r.w.got.back().port, 0u);
  const auto& engine = *r.core.servers().front();
  ASSERT_EQ(engine.blocked_cycles().size(), 1u);
  EXPECT_STREQ(engine.blocked_cycles()[0].by, "answer_transmit");
}

TEST(cnp_sender, a_place_that_comes_back_is_used_two_cycles_later) {
  rig r;
  r.w.takes = false;
  for (unsigned i = 0; i != 4; ++i) r.tell(10 + i, i, 0x100 + i, 0);  // two go, two wait for a place
  r.run(40);
  EXPECT_TRUE(r.left().empty());
  r.w.takes = true;
  r.run(80);
  // Taken at 41 and 42, room seen at 42 and 43, the others pushed then.
  EXPECT_EQ(r.left(), (cycles{{41, 0}, {42, 1}, {43, 2}, {44, 3}}));
}

TEST(cnp_sender, a_full_queue_loses_what_comes_and_says_so) {
  rig r(with(cnp_scope::qp, 3));
  r.w.gives[0] = false;
  for (unsigned i = 0; i != places + 3 + 2; ++i) r.tell(10 + 10 * i, i, 0x100 + i);
  r.run(200);
  EXPECT_EQ(r.left().size(), places);
  EXPECT_EQ(r.count("np_cnp_lost"), 2u);
  EXPECT_EQ(r.count("np_cnp_early"), 0u);
  EXPECT_EQ(r.frames.in_use(), 3u) << "what was lost went back to the pool";
}

/// Interval of 4 us: the second comes one cycle early, the third in time.
void check_interval(cnp_scope scope, unsigned same_of, const std::vector<std::uint32_t>& wanted) {
  rig r(with(scope));
  const cycle again = 10 + 4000;
  r.tell(10, 0, 0x100, 0, 0, 1);
  r.tell(20, 1, same_of == 0 ? 0x100 : 0x200, same_of == 2 ? 0 : 1, 0, same_of == 1 ? 1 : 2);
  r.tell(30, 2, 0x300, 1, 0, 3);  // alike in nothing but, perhaps, the port
  r.tell(again - 1, 3, 0x100, 0, 0, 1);
  r.tell(again, 4, 0x100, 0, 0, 1);
  r.run(again + 100);
  std::vector<std::uint32_t> numbers;
  for (const auto& l : r.left()) numbers.push_back(l.second);
  EXPECT_EQ(numbers, wanted);
  EXPECT_EQ(r.count("np_cnp_early"), 5 - wanted.size());
}

TEST(cnp_sender, interval_by_queue_pair) { check_interval(cnp_scope::qp, 0, {0, 2, 4}); }
TEST(cnp_sender, interval_by_peer) { check_interval(cnp_scope::address, 1, {0, 2, 4}); }
TEST(cnp_sender, interval_by_port) { check_interval(cnp_scope::port, 2, {0, 2, 4}); }
TEST(cnp_sender, other_queue_pairs_have_intervals_of_their_own) { check_interval(cnp_scope::qp, 1, {0, 1, 2, 4}); }

TEST(cnp_sender, reset_forgets_what_waits_and_when_the_last_went) {
  rig r;
  r.w.gives[0] = false;
  for (unsigned i = 0; i != places + 2; ++i) r.tell(10 + i, i, 0x100 + i);
  r.run(40);
  r.dut.device_reset();
  EXPECT_EQ(r.frames.in_use(), 0u);
  r.tell(50, 9, 0x100, 1);
  r.run(80);
  EXPECT_EQ(r.left().back(), (std::pair<cycle, std::uint32_t>{53, 9})) << "within the interval, but of another life";
}

std::string record(const sim::timebase::options& o) {
  rig r(with(cnp_scope::qp, 3), o);
  for (unsigned i = 0; i != 40; ++i) r.tell(10 + 3 * i + i / 2 % 3, i, 0x100 + i % 30, i / 3 % 2, i % 2);
  r.run(30);
  r.w.takes = false;
  r.run(60);
  r.w.takes = true;
  r.run(400);
  std::string all;
  for (const auto& [at, number] : r.left()) all += std::to_string(at) + ":" + std::to_string(number) + " ";
  for (const char* const of : {"np_cnp_sent", "np_cnp_lost", "np_cnp_early"}) {
    EXPECT_NE(r.count(of), 0u) << of;
    all += std::to_string(r.count(of)) + " ";
  }
  for (const auto& by : r.core.servers().front()->blocked_cycles()) all += by.by + std::to_string(by.cycles);
  return all;
}

TEST(cnp_sender, sleeping_and_order_are_invisible) {
  const std::string usual = bench::in_child([] { return record({}); });
  EXPECT_EQ(bench::in_child([] { return record({true}); }), usual);
  EXPECT_EQ(bench::in_child([] { return record({false, 7}); }), usual);
}

TEST(cnp_sender, ports_in_turn) {
  rig r;
  r.w.gives[0] = r.w.gives[1] = true;
  r.w.takes = false;
  for (unsigned i = 0; i != 5; ++i) r.tell(10 + 2 * i, i, 0x100 + i, 0);
  for (unsigned i = 0; i != 5; ++i) r.tell(30 + 2 * i, 10 + i, 0x200 + i, 1);
  r.run(60);
  r.w.takes = true;
  r.run(120);
  std::vector<unsigned> ports;
  for (const auto& l : r.w.got) ports.push_back(l.port);
  std::string s;
  for (const unsigned p : ports) s += static_cast<char>('0' + p);
  EXPECT_EQ(s, "0010101011");
}

}  // namespace
}  // namespace rnic::transport
