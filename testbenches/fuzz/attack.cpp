// SPDX-License-Identifier: Apache-2.0
#include "testbenches/fuzz/attack.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "testbenches/fuzz/live_adapter.h"
#include "testbenches/fuzz/property.h"

namespace rnic::fuzz {

using namespace conformance;

namespace {

constexpr unsigned most_steps = 200, most_rest_us = 1000, kept_requests = 16;
constexpr std::uint64_t most_ticks = 1'500'000;
/// Longer than a pause, and than anything that a queue pair may still have to do.
constexpr std::uint64_t command_us = 20'000, command_ticks = 1'500'000;
constexpr service services[] = {service::rc, service::rc, service::rc, service::uc, service::ud, service::xrc};

}  // namespace

/// For people who look into a finding: with RNIC_FUZZ_SAY=1.
void attack::say(const std::string& what) const {
  static const bool wanted = std::getenv("RNIC_FUZZ_SAY") != nullptr;
  if (wanted)
    std::fprintf(stderr, "fuzz: %.3f us: %s\n", static_cast<double>(r_.at().bus->now_ps()) / us, what.c_str());
}

attack::attack(rig& r, input& in, bool process)
    : r_(r), in_(in), process_(process), actors_(1 + in.below(most_actors)) {}

void attack::run() {
  estate::instance().fill();
  for (actor& a : actors_) take_on(a);
  const std::uint64_t start = ticks();
  for (unsigned i = 0; i < most_steps && !in_.empty() && ticks() - start < most_ticks; ++i) {
    try {
      step();
    } catch (const std::runtime_error& e) {  // what the driver refuses is refused
      say(std::string("refused: ") + e.what());
    }
  }
  end();
}

/// A new queue pair as the input wants it.
void attack::take_on(actor& a) {
  const patience all("a queue pair is made", command_us * us, command_ticks);
  const std::uint8_t how = in_.u8(), more = in_.u8();
  setup s;
  const service on = services[how % std::size(services)];
  s.shared = on != service::xrc && (how & 0x40) != 0;
  s.sends = (how & 0x80) != 0;
  s.window = on == service::rc && !s.shared && (more & 1) != 0;
  s.rd_atomic = 1u << (more >> 1) % 5;
  if ((more & 0x80) != 0) s.timer(2, (more >> 4) % 4);  // 16 us
  s.rnr(more >> 5);
  s.receives.assign(more % 6, receive{});
  a.qp = std::make_unique<subject>(r_, on, s);
  a.next_in = 0;
  a.asked.clear();
}

/// The end of a queue pair: whatever it has under way, it halts and is empty within a bounded time.
void attack::dismiss(actor& a) {
  if (!a.qp) return;
  {
    const patience all("a queue pair halts and drains", command_us * us, command_ticks);
    if (const int error = a.qp->modify(IBV_QPS_RESET)) broken("to RESET: " + std::string(std::strerror(-error)));
  }
  const patience all("what belonged to a queue pair goes", command_us * us, command_ticks);
  a.qp.reset();
}

void attack::step() {
  const unsigned what = in_.below(16);
  say("step of kind " + std::to_string(what) + ", behind it " + std::to_string(in_.left()) + " bytes");
  if (what < 9) return process_ && what < 5 ? step_of_process(what) : step_of_peer(what);
  step_of_program(what);
}

void attack::step_of_program(unsigned what) {
  actor& a = pick();
  switch (what) {
    case 9:
    case 10:
      post_verb(a);
      break;
    case 11:
      a.qp->post(receive{in_.u8() * 5u + 1, key(), 1 + in_.below(4), in_.below(16) == 0});
      break;
    case 12:
      move(a);
      break;
    case 13:
      dismiss(a);
      take_on(a);
      break;
    default: {
      // 100 ns to 3 us, or up to 32 us.
      const unsigned how = in_.below(64);
      const std::uint64_t rest_ps = how < 32 ? how * us / 10 : (how - 31) * us;
      if (rested_ps_ + rest_ps > most_rest_us * us) return;
      rested_ps_ += rest_ps;
      r_.rest(rest_ps);
      listen();
    }
  }
}

void attack::move(actor& a) {
  const patience all("a queue pair changes its state", command_us * us, command_ticks);
  static constexpr ibv_qp_state states[] = {IBV_QPS_ERR, IBV_QPS_SQD,  IBV_QPS_RTS,
                                            IBV_QPS_RTR, IBV_QPS_INIT, IBV_QPS_RESET};
  const unsigned to = in_.below(8);
  if (to < 2) {
    a.qp->modify(states[to]);
  } else if (to < 5) {
    a.qp->move(states[to]);
  } else if (to == 5) {
    a.qp->modify(IBV_QPS_RESET);
    a.next_in = 0;
    a.asked.clear();
    a.qp->move(IBV_QPS_INIT);
    a.qp->move(IBV_QPS_RTR);
    a.qp->move(IBV_QPS_RTS);
  } else {
    a.qp->drain();
  }
}

/// What the adapter has sent meanwhile: requests can be answered.
void attack::listen() {
  for (heard_frame h; r_.hear(h, 0);) {
    if (!wire::traits(h.packet.bth.opcode).request) continue;
    for (actor& a : actors_) {
      if (!a.qp || a.qp->peer_qpn() != h.packet.bth.dest_qp) continue;
      say(std::string("heard ") + wire::traits(h.packet.bth.opcode).name);
      if (a.asked.size() == kept_requests) a.asked.pop_front();
      a.asked.push_back(h);
    }
  }
}

void attack::end() {
  for (actor& a : actors_) dismiss(a);
  expect_rest(r_);
  expect_serves(r_);
}

}  // namespace rnic::fuzz
