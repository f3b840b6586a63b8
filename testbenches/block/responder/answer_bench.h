// SPDX-License-Identifier: Apache-2.0
// Answer transmit with its three users, the ICRC block behind it and the ports' credits.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "model/gid/gid_cr.h"
#include "model/gid/gid_source.h"
#include "model/sim/timebase.h"
#include "model/transport/responder/answer_transmit.h"

namespace rnic::transport::test::answers {

using cycle = sim::cycle_t;
using operation = wire::operation;

inline constexpr unsigned responses = 0, acknowledgements = 1, notifications = 2;
inline constexpr unsigned tx_depth = 48;
inline constexpr std::uint8_t v4_entry = 2, v6_entry = 3, v1_entry = 4, foreign_entry = 40;

/// The three users, the ICRC block behind and the ports' credits, in one.
struct world : sim::clocked_block {
  world(sim::clock_domain& d, unsigned places)
      : clocked_block("world", d),
        ports{answer_port(*this, places), answer_port(*this, places), answer_port(*this, places)} {}

  std::array<answer_port, 3> ports;
  sim::fifo_in<payload::frame_ptr> tx{*this};
  std::array<sim::fifo_out<egress_credit>, 2> credit{sim::fifo_out<egress_credit>(*this),
                                                     sim::fifo_out<egress_credit>(*this)};

  struct start {
    unsigned idle;  ///< cycles in front of it
    answer_job job;
  };
  std::array<std::deque<start>, 3> starts;
  unsigned every = 1;  ///< takes a frame in one of so many cycles
  bool takes = true;
  std::array<std::array<bool, 8>, 2> gives;  ///< a credit for each frame, by port and priority
  std::deque<egress_credit> to_give;

  struct handed {
    cycle at;
    unsigned user, port, priority;
    std::uint32_t psn;
  };
  std::vector<handed> pushed;  ///< of one cycle in the order of the users
  std::vector<cycle> given;
  std::vector<std::pair<cycle, payload::frame_ptr>> frames;

 private:
  void tick() override {
    wake_next();
    for (unsigned u = 0; u < 3; ++u) {
      ports[u].work();
      begin(u);
    }
    if (takes && now() % every == 0 && tx.can_pop()) {
      frames.emplace_back(now(), tx.pop());
      const payload::frame& f = *frames.back().second;
      if (gives[f.port][f.priority]) to_give.push_back({f.port, f.priority});
    }
    if (!to_give.empty() && credit[to_give.front().port].claim()) {
      credit[to_give.front().port].push(to_give.front());
      given.push_back(now());
      to_give.pop_front();
    }
  }
  void begin(unsigned u) {
    if (starts[u].empty()) return;
    start& s = starts[u].front();
    if (s.idle != 0) {
      --s.idle;
      return;
    }
    if (!ports[u].claim(s.job.port, s.job.priority)) return;
    pushed.push_back({now(), u, s.job.port, s.job.priority, s.job.psn});
    ports[u].push(std::move(s.job));
    starts[u].pop_front();
  }
};

inline responder_config config(unsigned credits, unsigned places) {
  responder_config c;
  c.egress_frames = credits;
  c.answer.waiting = places;
  return c;
}

inline icm::responder_context context(std::uint8_t gid_index = v4_entry) {
  icm::responder_context c{};
  c.remote_qpn = 0x1234;
  c.dest.dmac[0] = c.dest.dmac[5] = 2;
  c.dest.gid_index = gid_index;
  c.dest.vlan_index = 1;
  c.dest.flags = gid_index == v1_entry ? 0 : icm::path_flag_roce_v2;
  c.dest.hop_limit = 64;
  c.dest.traffic_class = 0x20;
  c.dest.flow_label = 0x12345;
  c.dest.priority = 3;
  c.dest.udp_source = 0xc123;
  const bool v4 = gid_index != v6_entry && gid_index != v1_entry;
  const wire::gid peer = v4 ? wire::gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2}
                            : wire::gid{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 2};
  std::memcpy(c.dest.remote_gid, peer.data(), peer.size());
  return c;
}

struct rig {
  /// `shared`: with the requests, one read port of the tables.
  explicit rig(unsigned credits = 64, unsigned places = 2, const sim::timebase::options& opts = {}, bool shared = false)
      : base(opts),
        cfg(config(credits, places)),
        dut("answer_transmit", core, cfg, {{&sources[0], &sources[1]}, shared, 1}, roce_v2_port, spans, stats) {
    for (auto& port : w.gives) port.fill(true);
    for (unsigned u = 0; u < 3; ++u) {
      jobs.emplace_back("jobs" + std::to_string(u), core, 2);
      w.ports[u].job.bind(jobs.back());
      dut.from[u].job.bind(jobs.back());
      room.emplace_back("room" + std::to_string(u), core, answer_transmit::room_depth(cfg));
      dut.from[u].room.bind(room.back());
      w.ports[u].room.bind(room.back());
    }
    for (unsigned p = 0; p < 2; ++p) {
      credits_back.emplace_back("credits" + std::to_string(p), core, 8);
      w.credit[p].bind(credits_back.back());
      dut.credit_in[p].bind(credits_back.back());
      fill(gids[p]);
    }
    dut.tx_out.bind(tx);
    w.tx.bind(tx);
    w.wake_at(1);
  }
  static void fill(gid::gid_table& g) {
    using namespace gid::cr;
    g.cr_write(mac_word(0, 0), mac_valid | 0x0200);
    g.cr_write(mac_word(0, 1), 0x00000001);
    g.cr_write(vlan_word(1), vlan_valid | 7);
    for (const unsigned i : {unsigned{v4_entry}, unsigned{foreign_entry}}) {
      g.cr_write(gid_word(i, 2), 0xffff);
      g.cr_write(gid_word(i, 3), 0x0a000001);
      g.cr_write(gid_word(i, 4), gid_valid | 2u << gid_type_shift);
    }
    for (const unsigned i : {unsigned{v6_entry}, unsigned{v1_entry}}) {
      g.cr_write(gid_word(i, 0), 0xfe800000);
      g.cr_write(gid_word(i, 2), 0x000000ff);
      g.cr_write(gid_word(i, 3), 0xfe000001);
      g.cr_write(gid_word(i, 4), gid_valid | (i == v6_entry ? 2u : 0u) << gid_type_shift);
    }
  }
  void run(unsigned cycles) { sc_core::sc_start(2.0 * cycles, sc_core::SC_NS); }

  answer_job job(const icm::responder_context& c, operation op, std::uint32_t psn, std::uint32_t payload = 0) {
    payload::frame_ptr f = frames.get();
    for (std::uint32_t i = 0; i < payload; ++i)
      f->buffer[payload::frame::payload_start + i] = static_cast<std::uint8_t>(i * 3 + psn + 1);
    return make_answer(address_of(c), std::move(f), op, psn, syndrome_ack, 9, payload, 0x0123456789abcdef);
  }
  answer_job cnp(std::uint8_t port, std::uint8_t priority, std::uint32_t psn) {
    answer_job j;
    j.frame = frames.get();
    j.complete = true;
    j.port = port;
    j.priority = priority;
    j.psn = psn;
    j.frame->begin = payload::frame::payload_start;
    j.frame->length = 78;
    j.frame->port = port;
    j.frame->priority = priority;
    j.frame->packet = wire::packet{};
    j.frame->packet.bth.opcode = wire::opcode_cnp;
    j.frame->packet.bth.psn = wire::psn_t(psn);
    return j;
  }
  /// An answer of the kind that `user` sends, `idle` cycles behind the one before it.
  void start(unsigned user, std::uint32_t psn, std::uint8_t priority = 3, unsigned idle = 0, std::uint8_t port = 0,
             std::uint32_t length = 64) {
    icm::responder_context c = context();
    c.dest.priority = priority;
    c.dest.port = port;
    w.starts[user].push_back({idle, user == notifications      ? cnp(port, priority, psn)
                                    : user == acknowledgements ? job(c, operation::acknowledge, psn)
                                                               : job(c, operation::read_response_only, psn, length)});
  }
  std::vector<std::uint32_t> psns() const {
    std::vector<std::uint32_t> all;
    for (const auto& [at, f] : w.frames) all.push_back(f->packet.bth.psn.value());
    return all;
  }
  std::uint64_t count(const char* counter) { return stats.value(std::string("answer_transmit.") + counter); }

  sim::timebase base;
  sim::clock_domain core{"core", base, sim::clock_period::from_khz(500'000)};
  sim::span_recorder spans;
  sim::statistics stats;
  payload::frame_pool frames;
  std::array<gid::gid_table, 2> gids;
  std::array<gid::gid_source, 2> sources{gid::gid_source({}, gids[0]), gid::gid_source({}, gids[1])};
  std::uint16_t roce_v2_port = wire::roce_v2_udp_port;
  responder_config cfg;
  answer_transmit dut;
  world w{core, cfg.answer.waiting};
  std::deque<sim::fifo<answer_job>> jobs;
  std::deque<sim::fifo<answer_room>> room;
  std::deque<sim::fifo<egress_credit>> credits_back;
  sim::fifo<payload::frame_ptr> tx{"tx", core, tx_depth};
};

}  // namespace rnic::transport::test::answers
