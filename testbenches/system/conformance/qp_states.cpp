// SPDX-License-Identifier: Apache-2.0
// Every state of a queue pair times every event (IBA volume 1, 10.3.1 and 11.2.5.2; adapter data plane A.7.1, A.7.2;
// adapter control plane 4.16).
#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "model/abi/command_set.h"
#include "model/abi/endian.h"
#include "testbenches/system/conformance/frames.h"

namespace rnic::conformance {
namespace {

using op = operation;

constexpr std::array<ibv_qp_state, 7> states = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                                IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};
const char* name_of(ibv_qp_state s) {
  static const char* const names[] = {"reset", "init", "rtr", "rts", "sqd", "sqe", "err"};
  return names[s];
}
/// A send queue in error is a state of the unreliable services (IBA 10.3.1.6).
bool has_state(service s, ibv_qp_state state) { return state != IBV_QPS_SQE || s == service::uc || s == service::ud; }

// ---------------------------------------------------------------- events

enum class event : std::uint8_t {
  send_posted,
  bad_send_posted,
  receive_posted,
  doorbell,
  request_in,
  bad_request_in,
  response_in,
  to_error,
  to_reset
};
constexpr std::array<event, 9> events = {event::send_posted, event::bad_send_posted, event::receive_posted,
                                         event::doorbell,    event::request_in,      event::bad_request_in,
                                         event::response_in, event::to_error,        event::to_reset};
const char* name_of(event e) {
  static const char* const names[] = {"send_posted",    "bad_send_posted", "receive_posted", "doorbell", "request_in",
                                      "bad_request_in", "response_in",     "to_error",       "to_reset"};
  return names[static_cast<unsigned>(e)];
}

work send(std::uint32_t bytes = 100) { return work(IBV_WR_SEND, bytes); }
completion sent() { return good(IBV_WC_SEND); }

/// Requests are executed in RTS alone. Where there is no connection yet, a doorbell is a mistake of software.
void send_posted(row& r, ibv_qp_state s, bool bad_one) {
  r.steps.push_back(post(bad_one ? send().with(key::unknown) : send()));
  switch (s) {
    case IBV_QPS_RESET:
      r.after.counts("requester.no_context");
      return;
    case IBV_QPS_INIT:
    case IBV_QPS_RTR:
      r.after.counts("requester.bad_grant");
      return;
    case IBV_QPS_RTS:
      break;
    case IBV_QPS_SQD:
      r.steps.push_back(silence(20));
      return;
    default:
      r.after.flushes = true;
      r.after.receives_live = s == IBV_QPS_SQE;
      return;
  }
  const bool reliable = r.on == service::rc;
  if (bad_one) {
    r.after.error().sends(bad(IBV_WC_LOC_PROT_ERR)).counts("diag.sq_num_lpe");
    r.after.receives_live = !reliable;
    if (!reliable) r.after.in(IBV_QPS_SQE);
    return;
  }
  packet p = packet(op::send_only).bytes(100);
  if (!reliable) p.silent();
  r.steps.push_back(hear(p));
  if (reliable) r.steps.push_back(inject(ack(0, 1)));
  r.after.sends(sent());
}

/// Packets are taken from RTR on, until the error state. The first one says so.
void request_in(row& r, ibv_qp_state s) {
  packet p = packet(op::send_only).bytes(100);
  const bool taken = s != IBV_QPS_RESET && s != IBV_QPS_INIT && s != IBV_QPS_ERR;
  if (taken) p.lands_at(0);
  r.steps.push_back(inject(p));
  if (!taken) {
    r.after.counts(s == IBV_QPS_RESET  ? "responder.drop.no_qp"
                   : s == IBV_QPS_INIT ? "responder.drop.state"
                                       : "responder.drop.error");
    return;
  }
  if (r.on == service::rc) r.steps.push_back(hear(ack(0, 1)));
  r.after.receives(good(IBV_WC_RECV, r.on == service::ud ? 140 : 100));
  if (s == IBV_QPS_RTR) {
    r.steps.push_back(inject(packet(op::send_only, 1).bytes(100).lands_at(1024)));
    if (r.on == service::rc) r.steps.push_back(hear(ack(1, 2)));
    r.after.receives(good(IBV_WC_RECV)).event(IBV_EVENT_COMM_EST);
  }
}

/// One that a reliable connection answers with an error, and the others drop.
void bad_request_in(row& r, ibv_qp_state s) {
  const packet p = r.on == service::ud ? packet(op::send_only).bytes(100).wrong_qkey()
                                       : packet(op::write_only).bytes(100).with(key::unknown);
  r.steps.push_back(inject(p));
  if (s == IBV_QPS_RESET || s == IBV_QPS_INIT || s == IBV_QPS_ERR) {
    r.after.counts(s == IBV_QPS_RESET  ? "responder.drop.no_qp"
                   : s == IBV_QPS_INIT ? "responder.drop.state"
                                       : "responder.drop.error");
    return;
  }
  if (r.on == service::ud) {
    r.after.counts("responder.drop.qkey");
    return;
  }
  if (s == IBV_QPS_RTR) r.after.event(IBV_EVENT_COMM_EST);
  if (r.on == service::uc) {
    r.after.counts("responder.drop.unreliable");
    return;
  }
  r.steps.push_back(hear(ack(0, 0, 0x62)));
  r.after.error().event(IBV_EVENT_QP_ACCESS_ERR).counts("responder.naks").counts("diag.rq_num_rae");
}

row row_of(service on, ibv_qp_state s, event e) {
  row r;
  r.name = std::string(name_of(s)) + "." + name_of(e);
  r.on = on;
  r.before.in(s);
  r.after.in(s);
  switch (e) {
    case event::send_posted:
    case event::bad_send_posted:
      send_posted(r, s, e == event::bad_send_posted);
      break;
    case event::receive_posted:
      r.steps.push_back(post(receive{}));
      r.after.flushes = s == IBV_QPS_ERR;
      break;
    case event::doorbell:
      r.steps.push_back(ring());
      if (s == IBV_QPS_RESET) r.after.counts("requester.no_context");
      if (s == IBV_QPS_INIT || s == IBV_QPS_RTR) r.after.counts("requester.bad_grant");
      break;
    case event::request_in:
      request_in(r, s);
      break;
    case event::bad_request_in:
      bad_request_in(r, s);
      break;
    case event::response_in:
      r.steps.push_back(inject(ack(0, 1).raw(0x11)));
      r.after.counts("requester.stray_responses");
      break;
    case event::to_error:
      if (s == IBV_QPS_RESET) break;  // refused: times_states_of_software
      r.steps.push_back(modify(IBV_QPS_ERR));
      r.after.error();
      break;
    case event::to_reset:
      r.steps.push_back(modify(IBV_QPS_RESET));
      r.after.in(IBV_QPS_RESET);
      break;
  }
  return r;
}

// ---------------------------------------------------------------- transitions

/// Software's way, IBA table 91 as the kernel has it: 0 or EINVAL.
bool may_go(ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_RESET) return true;
  if (to == IBV_QPS_ERR) return from != IBV_QPS_RESET;
  const struct {
    ibv_qp_state from, to;
  } ways[] = {{IBV_QPS_RESET, IBV_QPS_INIT}, {IBV_QPS_INIT, IBV_QPS_INIT}, {IBV_QPS_INIT, IBV_QPS_RTR},
              {IBV_QPS_RTR, IBV_QPS_RTS},    {IBV_QPS_RTS, IBV_QPS_RTS},   {IBV_QPS_RTS, IBV_QPS_SQD},
              {IBV_QPS_SQD, IBV_QPS_RTS},    {IBV_QPS_SQD, IBV_QPS_SQD},   {IBV_QPS_SQE, IBV_QPS_RTS}};
  for (const auto& w : ways)
    if (w.from == from && w.to == to) return true;
  return false;
}
/// Attributes without which a transition is refused.
bool needs_attributes(ibv_qp_state from, ibv_qp_state to, service s) {
  if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) return true;
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) return s != service::ud;
  return from == IBV_QPS_RTR && to == IBV_QPS_RTS;
}

/// The hardware's way: the commands, and in which states it takes them (adapter control plane 4.16).
struct command {
  abi::opcode code;
  const char* name;
  std::vector<ibv_qp_state> from;
  ibv_qp_state to;
};
const command commands[] = {
    {abi::opcode::init2init_qp, "init2init", {IBV_QPS_INIT}, IBV_QPS_INIT},
    {abi::opcode::init2rtr_qp, "init2rtr", {IBV_QPS_INIT}, IBV_QPS_RTR},
    {abi::opcode::rtr2rts_qp, "rtr2rts", {IBV_QPS_RTR}, IBV_QPS_RTS},
    {abi::opcode::rts2rts_qp, "rts2rts", {IBV_QPS_RTS}, IBV_QPS_RTS},
    {abi::opcode::sqerr2rts_qp, "sqerr2rts", {IBV_QPS_SQE}, IBV_QPS_RTS},
    {abi::opcode::rts2sqd_qp, "rts2sqd", {IBV_QPS_RTS}, IBV_QPS_SQD},
    {abi::opcode::sqd2sqd_qp, "sqd2sqd", {IBV_QPS_SQD}, IBV_QPS_SQD},
    {abi::opcode::sqd2rts_qp, "sqd2rts", {IBV_QPS_SQD}, IBV_QPS_RTS},
    {abi::opcode::to_err_qp,
     "2err",
     {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE, IBV_QPS_ERR},
     IBV_QPS_ERR},
};
constexpr std::uint8_t bad_qp_state = 0x10;

// ----------------------------------------------------------------

struct state_cell {
  service on;
  ibv_qp_state state;
};
std::ostream& operator<<(std::ostream& to, const state_cell& c) {
  return to << to_string(c.on) << "_" << name_of(c.state);
}
std::vector<state_cell> all_states() {
  std::vector<state_cell> all;
  for (const service s : {service::rc, service::uc, service::ud})
    for (const ibv_qp_state state : states)
      if (has_state(s, state)) all.push_back({s, state});
  return all;
}
constexpr auto named = [](const auto& info) {
  return std::string(to_string(info.param.on)) + "_" + name_of(info.param.state);
};

class qp_states : public testing::TestWithParam<state_cell> {};

TEST_P(qp_states, times_events) {
  for (const event e : events) play("qp_states", row_of(GetParam().on, GetParam().state, e));
}

setup before(ibv_qp_state s) { return setup().in(s); }
/// A queue pair that was brought to the state, as the driver knows it too.
template <class Body>
void in_state(const state_cell& c, Body body) {
  rig& r = rig::instance();
  r.run([&] {
    subject on(r, c.on, before(c.state));
    r.rest(30 * us);
    EXPECT_EQ(on.state(), c.state);
    r.events();
    body(r, on);
  });
}

TEST_P(qp_states, times_states_of_software) {
  for (const ibv_qp_state to : states) {
    SCOPED_TRACE(name_of(to));
    in_state(GetParam(), [&](rig&, subject& on) {
      const ibv_qp_state from = GetParam().state;
      const bool bare = may_go(from, to) && !needs_attributes(from, to, on.on());
      EXPECT_EQ(on.modify(to), bare ? 0 : -EINVAL) << "without attributes";
      EXPECT_EQ(on.state(), bare ? to : from);
      if (bare || !may_go(from, to)) return;
      on.move(to);
      EXPECT_EQ(on.state(), to);
    });
  }
}

TEST_P(qp_states, times_attributes_that_do_not_belong_there) {
  for (const ibv_qp_state to : states) {
    SCOPED_TRACE(name_of(to));
    in_state(GetParam(), [&](rig&, subject& on) {
      EXPECT_EQ(on.modify(to, IBV_QP_PATH_MTU), -EINVAL);
      EXPECT_EQ(on.state(), GetParam().state);
    });
  }
}

TEST_P(qp_states, times_commands) {
  for (const command& c : commands) {
    SCOPED_TRACE(c.name);
    in_state(GetParam(), [&](rig& r, subject& on) {
      const bool taken = std::find(c.from.begin(), c.from.end(), GetParam().state) != c.from.end();
      host_driver::command_channel& channel = r.dev().commands();
      host_driver::command_channel::mailbox box(channel);
      hosts::require(channel.read(box, abi::opcode::query_qp, on.qp()->qp_num), "query_qp");  // what it has already
      abi::store32(box.data(), 0, 0);
      EXPECT_EQ(channel.write(box, c.code, on.qp()->qp_num) == 0, taken);
      EXPECT_EQ(unsigned{channel.last_status()}, taken ? 0u : unsigned{bad_qp_state});
      EXPECT_EQ(on.state(), taken ? c.to : GetParam().state);
    });
  }
}

TEST_P(qp_states, times_destroy) {
  rig& r = rig::instance();
  r.run([&] {
    std::uint32_t qpn = 0;
    {
      subject on(r, GetParam().on, before(GetParam().state));
      r.rest(30 * us);
      qpn = on.qp()->qp_num;
    }
    r.events();
    fault_counts earlier = r.faults();
    subject other(r, service::rc, setup());
    packet p = packet(op::send_only).bytes(100);
    const std::uint32_t own = other.qp()->qp_num;
    if (own == qpn) return;  // the number has a new owner
    other.address_to(qpn);
    r.inject(frame_of(p, other));
    r.rest(20 * us);
    EXPECT_EQ(r.faults()["responder.drop.no_qp"], earlier["responder.drop.no_qp"] + 1);
    EXPECT_TRUE(r.events().empty());
  });
}

INSTANTIATE_TEST_SUITE_P(state, qp_states, testing::ValuesIn(all_states()), named);
}  // namespace
}  // namespace rnic::conformance
