// SPDX-License-Identifier: Apache-2.0
// Commands about a queue pair that works: they read it or change it, and nothing on the wire tells of them.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "model/abi/contexts.h"
#include "model/payload/frame_port.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

constexpr std::uint32_t message_bytes = 20'000, mtu = 2048, packets_each = 10;

/// RoCE packets by direction and kind.
class wire_counter : public payload::frame_observer_if {
 public:
  void observe(unsigned from, const payload::frame& f, sim::time_ps, sim::time_ps) override {
    if (f.plain) return;
    ++packets_[{from, wire::operation_of(f.packet.bth.opcode)}];
  }
  unsigned of(unsigned from, std::initializer_list<wire::operation> kinds) const {
    unsigned n = 0;
    for (const wire::operation k : kinds)
      if (const auto found = packets_.find({from, k}); found != packets_.end()) n += found->second;
    return n;
  }
  unsigned writes(unsigned from) const {
    using wire::operation;
    return of(from, {operation::write_first, operation::write_middle, operation::write_last, operation::write_only});
  }
  unsigned read_requests(unsigned from) const { return of(from, {wire::operation::read_request}); }
  unsigned read_responses(unsigned from) const {
    using wire::operation;
    return of(from, {operation::read_response_first, operation::read_response_middle, operation::read_response_last,
                     operation::read_response_only});
  }

 private:
  std::map<std::pair<unsigned, wire::operation>, unsigned> packets_;
};

struct reported {
  std::uint32_t state, next_send_psn, last_acked_psn, sq_counter;
};

/// QUERY_QP as the command gives it: verbs do not show all of it.
reported query(const side& s) {
  namespace q = abi::qpc;
  host_driver::command_channel::mailbox box(s.dev().commands());
  hosts::require(s.dev().commands().read(box, abi::opcode::query_qp, s.qp->qp_num), "QUERY_QP");
  const std::uint8_t* c = box.data() + abi::qp_mailbox::context;
  return {static_cast<std::uint32_t>(abi::get(c, q::state)), abi::get(c, q::next_send_psn),
          abi::get(c, q::last_acked_psn), abi::get(c, q::sq_counter)};
}

int move(const side& s, ibv_qp_state to) {
  ibv_qp_attr attr{};
  attr.qp_state = to;
  return s.dev().modify_qp(s.qp, &attr, IBV_QP_STATE);
}

/// RTS2RTS.
int set_rnr_timer(const side& s, std::uint8_t code) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.min_rnr_timer = code;
  return s.dev().modify_qp(s.qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
}

void post_read(const side& s, const hosts::buffer& to, const hosts::buffer& from, std::uint64_t offset,
               std::uint64_t id) {
  request r;
  r.opcode = IBV_WR_RDMA_READ;
  r.sges = {{to.address(offset), message_bytes, to.region->lkey}};
  r.remote = from.address(offset);
  r.rkey = from.region->rkey;
  r.id = id;
  post(s, r);
}

void expect_nothing_lost(hosts::two_nodes& system) {
  for (const char* name :
       {"requester.retransmissions", "requester.timeouts", "requester.naks", "requester.rnr_naks",
        "requester.ghost_responses", "requester.duplicate_responses", "requester.dropped_halted",
        "responder.drop.halted", "responder.out_of_sequence", "responder.duplicates", "responder.drop.state"})
    EXPECT_EQ(counted(system, name), 0U) << name;
}

class LiveCommands : public ::testing::Test {
 protected:
  void far_apart(const std::function<void(const link&)>& commands) {
    hosts::two_nodes_config c = default_system();
    c.cable_metres = 100'000;  // 505 us: all commands come while nothing is answered
    hosts::two_nodes system(c);
    wire_counter wire;
    system.cable().add_observer(wire);
    run(system, [&] {
      hosts::connection_options options;
      options.ack_timeout = 16;
      options.mtu = mtu;
      const link l = make_link(system, options);
      const hosts::buffer mine = hosts::make_buffer(l.a.at, 6 * message_bytes);
      const hosts::buffer theirs = hosts::make_buffer(l.b.at, 6 * message_bytes);
      std::mt19937_64 random(9);
      fill_random(mine.at(), 4 * message_bytes, random);
      fill_random(theirs.at(4 * message_bytes), 2 * message_bytes, random);
      for (std::uint64_t id = 0; id < 4; ++id) post_write(l.a, mine, theirs, message_bytes, id, id * message_bytes);
      for (std::uint64_t id = 4; id < 6; ++id) post_read(l.a, mine, theirs, id * message_bytes, id);
      l.a.at.bus->spend_ps(60 * us);  // all are on the cable
      EXPECT_EQ(wire.read_requests(0), 2U);
      commands(l);
      for (std::uint64_t id = 0; id < 6; ++id) {
        const ibv_wc wc = l.a.wait_send();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.wr_id, id);
      }
      EXPECT_EQ(std::memcmp(mine.at(), theirs.at(), 6 * message_bytes), 0);
    });
    EXPECT_EQ(wire.writes(0), 4 * packets_each);
    EXPECT_EQ(wire.read_requests(0), 2U);
    EXPECT_EQ(wire.read_responses(1), 2 * packets_each);
    expect_nothing_lost(system);
  }
};

TEST_F(LiveCommands, QueryOnlyReads) {
  far_apart([](const link& l) {
    constexpr std::uint32_t first_psn = 0xfffff0;
    for (int i = 0; i < 5; ++i) {
      const reported r = query(l.a);
      EXPECT_EQ(r.state, 3U);
      EXPECT_EQ(r.next_send_psn, (first_psn + 6 * packets_each) & 0xffffff) << "READ responses have numbers too";
      EXPECT_EQ(r.last_acked_psn, first_psn - 1);
      EXPECT_EQ(r.sq_counter, 6U);
    }
    l.a.at.bus->spend_ps(3 * ms);
    EXPECT_EQ(query(l.a).last_acked_psn, (first_psn + 6 * packets_each - 1) & 0xffffff) << "all is answered";
  });
}

TEST_F(LiveCommands, ReadyToSendStaysReadyToSend) {
  far_apart([](const link& l) {
    for (const std::uint8_t code : {std::uint8_t{5}, std::uint8_t{9}, std::uint8_t{12}}) {
      ASSERT_EQ(set_rnr_timer(l.a, code), 0);
      ibv_qp_attr attr{};
      ibv_qp_init_attr init{};
      ASSERT_EQ(l.a.dev().query_qp(l.a.qp, &attr, IBV_QP_MIN_RNR_TIMER, &init), 0);
      EXPECT_EQ(attr.min_rnr_timer, code);
    }
  });
}

TEST_F(LiveCommands, DrainingAndGoingOn) {
  far_apart([](const link& l) {
    ASSERT_EQ(move(l.a, IBV_QPS_SQD), 0);
    EXPECT_EQ(query(l.a).state, 7U) << "draining: nothing is answered yet";
    ASSERT_EQ(move(l.a, IBV_QPS_RTS), 0);
    EXPECT_EQ(query(l.a).state, 3U);
    ASSERT_EQ(move(l.a, IBV_QPS_SQD), 0);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_SQD;
    attr.timeout = 15;
    ASSERT_EQ(l.a.dev().modify_qp(l.a.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT), 0);  // SQD2SQD
    EXPECT_EQ(query(l.a).state, 7U);
    l.a.at.bus->spend_ps(3 * ms);
    EXPECT_EQ(query(l.a).state, 5U) << "all is answered";
  });
}

/// Requests and answers both ways, and commands about both ends all the time.
TEST_F(LiveCommands, AmidTrafficBothWays) {
  constexpr std::uint32_t rounds = 40, depth = 8;
  hosts::two_nodes system(default_system());
  wire_counter wire;
  system.cable().add_observer(wire);
  run(system, [&] {
    hosts::connection_options options;
    options.ack_timeout = 16;
    options.mtu = mtu;
    const link l = make_link(system, options);
    const hosts::buffer a = hosts::make_buffer(l.a.at, 4 * message_bytes);
    const hosts::buffer b = hosts::make_buffer(l.b.at, 4 * message_bytes);
    std::mt19937_64 random(10);
    for (const hosts::buffer* x : {&a, &b}) fill_random(x->at(), 4 * message_bytes, random);
    const auto post_one = [&](const side& s, const hosts::buffer& own, const hosts::buffer& other, std::uint32_t n) {
      if (n % 2 == 0)
        post_write(s, own, other, message_bytes, n, &s == &l.a ? 0 : message_bytes);
      else
        post_read(s, own, other, (&s == &l.a ? 2u : 3u) * message_bytes, n);
    };
    std::uint32_t posted = 0, done = 0;
    while (done < 2 * rounds) {
      while (posted < rounds && 2 * posted < done + 2 * depth) {
        post_one(l.a, a, b, posted);
        post_one(l.b, b, a, posted);
        ++posted;
      }
      ASSERT_EQ(set_rnr_timer(random() % 2 == 0 ? l.a : l.b, static_cast<std::uint8_t>(1 + random() % 20)), 0);
      EXPECT_EQ(query(random() % 2 == 0 ? l.a : l.b).state, 3U);
      l.a.at.bus->spend_ps(random() % (20 * us));
      for (const side* s : {&l.a, &l.b}) {
        ibv_wc wc{};
        while (s->dev().poll_cq(s->send_cq, 1, &wc) == 1) {
          ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
          ++done;
        }
      }
    }
    for (const std::uint64_t part : {0u, 1u, 2u, 3u})
      EXPECT_EQ(std::memcmp(a.at(part * message_bytes), b.at(part * message_bytes), message_bytes), 0) << part;
  });
  for (const unsigned from : {0u, 1u}) {
    EXPECT_EQ(wire.writes(from), rounds / 2 * packets_each);
    EXPECT_EQ(wire.read_requests(from), rounds / 2);
    EXPECT_EQ(wire.read_responses(from), rounds / 2 * packets_each);
  }
  expect_nothing_lost(system);
}

}  // namespace
}  // namespace rnic::system_test
