// SPDX-License-Identifier: Apache-2.0
// The connection manager's states.
#include <random>

#include "testbenches/unit/cm/two_hosts.h"

namespace rnic::host_driver::cm::test {
namespace {

TEST(connection_manager, a_connection_comes_and_goes) {
  network n;
  n.b.manager.listen(service);
  const auto id = n.ask();
  EXPECT_EQ(n.a.manager.state_of(id), state::req_sent);
  const event request = n.b.take(kind::request);
  EXPECT_EQ(request.message.connection.qpn, 0x77u);
  EXPECT_EQ(request.message.private_data[50], 9);
  EXPECT_EQ(request.from.gid, host(1));
  connection_data d;
  d.qpn = 0x99;
  EXPECT_TRUE(n.b.manager.accept(request.id, d, {}, n.now));
  EXPECT_FALSE(n.b.manager.accept(request.id, d, {}, n.now));
  n.deliver();
  EXPECT_EQ(n.a.take(kind::reply).message.connection.qpn, 0x99u);
  EXPECT_TRUE(n.a.manager.confirm(id, {}));
  n.deliver();
  n.b.take(kind::established);
  EXPECT_TRUE(n.a.manager.disconnect(id, {}, n.now));
  n.deliver();
  EXPECT_EQ(n.b.take(kind::disconnect_request).message.remote_qpn, 0x99u);
  EXPECT_EQ(n.a.manager.state_of(id), state::dreq_sent);
  EXPECT_TRUE(n.b.manager.disconnect(request.id, {}, n.now));
  n.deliver();
  n.a.take(kind::disconnected);
  n.wait(answer_time);
  EXPECT_EQ(n.a.manager.connections() + n.b.manager.connections(), 0u);
  EXPECT_EQ(n.a.manager.deadline_ps(), ~0ull);
}

TEST(connection_manager, every_message_may_be_lost) {
  for (const message lost : {message::req, message::rep, message::rtu, message::dreq, message::drep}) {
    network n;
    n.b.manager.listen(service);
    n.drop = first(3, lost);
    const auto id = n.ask();
    for (int i = 0; i < 4 && !n.b.manager.has_event(); ++i) n.wait(answer_time);
    const event request = n.b.take(kind::request);
    EXPECT_TRUE(n.b.manager.accept(request.id, {}, {}, n.now));
    n.deliver();
    for (int i = 0; i < 4 && !n.a.manager.has_event(); ++i) n.wait(answer_time);
    n.a.take(kind::reply);
    EXPECT_TRUE(n.a.manager.confirm(id, {}));
    n.deliver();
    for (int i = 0; i < 4 && !n.b.manager.has_event(); ++i) n.wait(answer_time);  // the REP again, and its RTU
    n.b.take(kind::established);
    EXPECT_TRUE(n.a.manager.disconnect(id, {}, n.now));
    n.deliver();
    for (int i = 0; i < 4 && !n.b.manager.has_event(); ++i) n.wait(answer_time);
    n.b.take(kind::disconnect_request);
    EXPECT_TRUE(n.b.manager.disconnect(request.id, {}, n.now));
    n.deliver();
    for (int i = 0; i < 4 && !n.a.manager.has_event(); ++i) n.wait(answer_time);  // answered also when it is over
    n.a.take(kind::disconnected);
    EXPECT_FALSE(n.a.manager.has_event() || n.b.manager.has_event());
  }
}

TEST(connection_manager, nobody_answers) {
  network n;
  n.drop = [](const contents&) { return true; };
  const auto id = n.ask();
  for (int i = 0; i < 15; ++i) n.wait(answer_time);
  EXPECT_FALSE(n.a.manager.has_event());
  n.wait(answer_time);
  n.a.take(kind::unreachable);
  EXPECT_EQ(n.a.manager.count().retries, 15u);
  n.wait(answer_time);
  EXPECT_EQ(n.a.manager.state_of(id), state::idle);
  EXPECT_EQ(n.a.manager.connections(), 0u);
}

TEST(connection_manager, refusals) {
  network n;
  n.ask();
  EXPECT_EQ(n.a.take(kind::rejected).message.why, reason::invalid_service);
  n.b.manager.listen(service);
  const auto id = n.ask();
  const event request = n.b.take(kind::request);
  private_area why{};
  why[3] = 33;
  EXPECT_TRUE(n.b.manager.reject(request.id, reason::consumer, why, n.now));
  n.deliver();
  const event no = n.a.take(kind::rejected);
  EXPECT_EQ(no.message.why, reason::consumer);
  EXPECT_EQ(no.message.private_data[3], 33);
  EXPECT_FALSE(n.a.manager.confirm(id, {}));
}

TEST(connection_manager, more_time_is_given) {
  network n;
  n.b.manager.listen(service);
  const auto id = n.ask();
  const event request = n.b.take(kind::request);
  EXPECT_TRUE(n.b.manager.delay(request.id, 22));
  n.deliver();
  EXPECT_EQ(n.a.manager.state_of(id), state::mra_req_received);
  n.wait(4 * answer_time);
  EXPECT_EQ(n.a.manager.count().retries, 0u);
  n.wait(2 * answer_time);
  EXPECT_EQ(n.a.manager.count().retries, 1u);
  EXPECT_EQ(n.b.manager.count().duplicates, 1u);
  EXPECT_EQ(n.a.manager.state_of(id), state::mra_req_received);  // told again
  EXPECT_TRUE(n.b.manager.accept(request.id, {}, {}, n.now));
  n.deliver();
  n.a.take(kind::reply);
}

TEST(connection_manager, both_release_at_once) {
  network n;
  const auto [a, b] = n.established();
  EXPECT_TRUE(n.a.manager.disconnect(a, {}, n.now));
  EXPECT_TRUE(n.b.manager.disconnect(b, {}, n.now));
  n.deliver();
  n.a.take(kind::disconnected);
  n.b.take(kind::disconnected);
  EXPECT_FALSE(n.a.manager.has_event() || n.b.manager.has_event());
}

TEST(connection_manager, a_queue_pair_that_is_connected_is_not_connected_again) {
  network n;
  const auto [a, b] = n.established(0x500);
  n.ask(0x500);
  n.a.take(kind::disconnect_request);
  EXPECT_EQ(n.a.take(kind::rejected).message.why, reason::stale);
  EXPECT_EQ(n.b.manager.state_of(b), state::dreq_sent);
  EXPECT_TRUE(n.a.manager.disconnect(a, {}, n.now));
  n.deliver();
  n.b.take(kind::disconnected);
}

/// The host of a connection began anew, and asks with the same queue pair.
TEST(connection_manager, a_connection_that_its_peer_has_forgotten_ends) {
  network n;
  const auto [a, b] = n.established(0x500);
  static_cast<void>(a);
  n.a.begin_anew(7000);
  n.ask(0x500);
  EXPECT_EQ(n.a.take(kind::rejected).message.why, reason::stale);
  n.b.take(kind::disconnected);  // the peer knows nothing of what it is asked to end
  EXPECT_EQ(n.b.manager.state_of(b), state::timewait);
  EXPECT_EQ(n.b.manager.count().stale, 1u);
  const auto id = n.ask(0x500);
  EXPECT_TRUE(n.b.manager.accept(n.b.take(kind::request).id, {}, {}, n.now));
  n.deliver();
  EXPECT_EQ(n.a.take(kind::reply).id, id);
}

TEST(connection_manager, an_end_that_is_not_confirmed_stands_in_nobodys_way) {
  network n;
  const auto [a, b] = n.established(0x500);
  static_cast<void>(a);
  n.drop = [](const contents& c) { return c.kind == message::dreq; };
  EXPECT_TRUE(n.b.manager.disconnect(b, {}, n.now));
  n.deliver();
  n.a.begin_anew(7000);
  n.ask(0x500);
  n.b.take(kind::request);
  EXPECT_EQ(n.b.manager.count().stale, 0u);
}

TEST(connection_manager, requests_and_half_open_connections_are_forgotten_with_their_peer) {
  network n;
  n.b.manager.listen(service);
  n.ask(0x500);
  n.a.begin_anew(7000);
  n.ask(0x500);  // the first one waits: the second one takes its place
  const event request = n.b.take(kind::request);
  EXPECT_EQ(request.message.local_id, 7000u);
  EXPECT_FALSE(n.b.manager.has_event());
  EXPECT_EQ(n.b.manager.connections(), 1u);
  n.drop = [](const contents& c) { return c.kind == message::rep; };
  EXPECT_TRUE(n.b.manager.accept(request.id, {}, {}, n.now));
  n.deliver();
  n.a.begin_anew(9000);
  n.ask(0x500);
  EXPECT_EQ(n.a.take(kind::rejected).message.why, reason::stale);
  n.b.take(kind::unreachable);
  n.ask(0x500);
  n.b.take(kind::request);
}

TEST(connection_manager, services_for_datagrams) {
  network n;
  n.b.manager.listen(service, service_kind::datagrams);
  service_data s;
  s.service_id = service;
  n.drop = first(1, message::sidr_req);
  const auto id = n.a.manager.ask_service(network::from(n.b), s, {}, n.now);
  n.deliver();
  n.wait(answer_time);
  const event request = n.b.take(kind::service_request);
  n.wait(answer_time);  // asked again before there is an answer
  EXPECT_FALSE(n.b.manager.has_event());
  service_data mine;
  mine.qpn = 0x222;
  mine.qkey = 0x01234567;
  EXPECT_TRUE(n.b.manager.answer_service(request.id, mine, {}));
  n.deliver();
  const event reply = n.a.take(kind::service_reply);
  EXPECT_EQ(reply.id, id);
  EXPECT_EQ(reply.message.service.qpn, 0x222u);
  EXPECT_EQ(reply.message.service.qkey, 0x01234567u);
  EXPECT_EQ(n.a.manager.connections() + n.b.manager.connections(), 0u);
  s.service_id = 1;
  n.a.manager.ask_service(network::from(n.b), s, {}, n.now);
  n.deliver();
  EXPECT_NE(n.a.take(kind::service_reply).message.service.status, 0);
}

TEST(connection_manager, messages_of_a_third_host_change_nothing) {
  network n;
  const auto [a, b] = n.established();
  address liar;
  liar.gid = host(3);
  for (const message what : {message::mra, message::rej, message::rep, message::rtu, message::drep, message::dreq,
                             message::sidr_rep, message::lap, message::apr}) {
    contents c;
    c.kind = what;
    c.local_id = b;
    c.remote_id = a;
    const mad m = encode(c);
    n.a.manager.receive(liar, m.data(), m.size(), n.now);
    c.local_id = 0xdead;  // and the right host with a wrong number
    const mad wrong = encode(c);
    if (what != message::rej) n.a.manager.receive(network::from(n.b), wrong.data(), wrong.size(), n.now);
  }
  EXPECT_EQ(n.a.manager.state_of(a), state::established);
  EXPECT_FALSE(n.a.manager.has_event());
  EXPECT_EQ(n.a.manager.count().unknown_id, 17u);
}

/// IBA volume 1, 12.9.8, and core/cm.c:cm_dreq_handler: who names another queue pair gets no DREP, and ends nothing.
TEST(connection_manager, a_dreq_of_another_queue_pair_is_discarded) {
  for (const bool over : {false, true}) {
    network n;
    const auto [a, b] = n.established(0x77);
    if (over) {
      n.b.manager.abandon(b, n.now);
      n.deliver();
      n.a.take(kind::disconnect_request);
      EXPECT_TRUE(n.a.manager.disconnect(a, {}, n.now));
      n.deliver();
    }
    const state before = n.b.manager.state_of(b);
    EXPECT_EQ(before, over ? state::timewait : state::established);
    contents dreq;
    dreq.kind = message::dreq;
    dreq.local_id = a;
    dreq.remote_id = b;
    for (const std::uint32_t qpn : {0u, 1u, 0x77u, 0x123456u}) {
      dreq.remote_qpn = qpn;
      const mad m = encode(dreq);
      n.b.manager.receive(network::from(n.a), m.data(), m.size(), n.now);
    }
    EXPECT_TRUE(n.b.out.empty() && !n.b.manager.has_event());
    EXPECT_EQ(n.b.manager.state_of(b), before);
    EXPECT_EQ(n.b.manager.count().unknown_id, 4u);
    dreq.remote_qpn = 0x78;
    const mad m = encode(dreq);
    n.b.manager.receive(network::from(n.a), m.data(), m.size(), n.now);
    if (over)
      EXPECT_EQ(n.b.out.size(), 1u) << "the DREP once more";
    else
      EXPECT_EQ(n.b.take(kind::disconnect_request).id, b);
  }
}

/// A LAP of host a's connection, and the APR to it; nothing when there is none.
std::optional<contents> ask_for_path(network& n, connection_id local, connection_id remote, std::uint32_t qpn,
                                     bool reverse = false) {
  node &from = reverse ? n.b : n.a, &to = reverse ? n.a : n.b;
  contents lap;
  lap.kind = message::lap;
  lap.transaction = 0x1234567890;
  lap.local_id = local;
  lap.remote_id = remote;
  lap.remote_qpn = qpn;
  lap.alternate.local = host(11);
  lap.alternate.remote = host(12);
  const mad m = encode(lap);
  to.manager.receive(network::from(from), m.data(), m.size(), n.now);
  if (to.out.empty()) return std::nullopt;
  EXPECT_EQ(to.out.size(), 1u);
  const mad answer = to.out.front().second;
  to.out.clear();
  const auto apr = decode(answer.data(), answer.size());
  EXPECT_EQ(apr->kind, message::apr);
  EXPECT_EQ(apr->transaction, lap.transaction);
  EXPECT_EQ(apr->local_id, remote);
  EXPECT_EQ(apr->remote_id, local);
  return apr;
}

TEST(connection_manager, an_alternate_path_is_refused_and_the_connection_goes_on) {
  network n;
  const auto [a, b] = n.established(0x77);
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(ask_for_path(n, a, b, 0x78)->path_status, path_answer::unsupported);
  EXPECT_EQ(ask_for_path(n, b, a, 0x77, true)->path_status, path_answer::unsupported);
  EXPECT_EQ(n.b.manager.count().paths_refused, 3u);
  EXPECT_EQ(n.a.manager.count().paths_refused, 1u);
  EXPECT_FALSE(n.a.manager.has_event() || n.b.manager.has_event());
  EXPECT_EQ(n.b.manager.state_of(b), state::established);
  EXPECT_TRUE(n.a.manager.disconnect(a, {}, n.now));
  n.deliver();
  n.b.take(kind::disconnect_request);
}

TEST(connection_manager, alternate_paths_of_other_connections_and_states) {
  network n;
  const auto [a, b] = n.established(0x77);
  EXPECT_EQ(ask_for_path(n, a, b, 0x77)->path_status, path_answer::wrong_qpn);
  EXPECT_EQ(ask_for_path(n, a, b + 50, 0x78)->path_status, path_answer::invalid_id);
  EXPECT_EQ(ask_for_path(n, a + 1, b, 0x78)->path_status, path_answer::invalid_id);
  EXPECT_EQ(n.b.manager.count().unknown_id, 2u);
  EXPECT_EQ(n.b.manager.count().wrong_state, 0u);
  // An answer to what was never asked.
  contents apr;
  apr.kind = message::apr;
  apr.local_id = b;
  apr.remote_id = a;
  const mad m = encode(apr);
  n.a.manager.receive(network::from(n.b), m.data(), m.size(), n.now);
  EXPECT_EQ(n.a.manager.count().wrong_state, 1u);
  // Before and after the connection there is no path to change.
  const auto other = n.ask(0x99);
  const event request = n.b.take(kind::request);
  EXPECT_FALSE(ask_for_path(n, other, request.id, 0));
  connection_data d;
  d.qpn = 0x9a;
  EXPECT_TRUE(n.b.manager.accept(request.id, d, {}, n.now));
  n.b.out.clear();
  EXPECT_FALSE(ask_for_path(n, other, request.id, 0x9a));
  EXPECT_TRUE(n.b.manager.disconnect(b, {}, n.now));
  n.b.out.clear();
  EXPECT_FALSE(ask_for_path(n, a, b, 0x78));
  EXPECT_EQ(n.b.manager.count().wrong_state, 3u);
  EXPECT_EQ(n.a.manager.state_of(a), state::established);
}

TEST(connection_manager, a_rep_refuses_the_alternate_path_of_its_req) {
  for (const bool asked : {false, true}) {
    network n;
    n.b.manager.listen(service);
    connection_data d;
    d.service_id = service;
    d.qpn = 0x77;
    d.path.local = host(1);
    d.path.remote = host(2);
    if (asked) d.alternate = d.path;
    n.a.manager.connect(network::from(n.b), d, {}, n.now);
    n.deliver();
    n.b.manager.accept(n.b.take(kind::request).id, d, {}, n.now);
    n.deliver();
    EXPECT_EQ(n.a.take(kind::reply).message.connection.alternate_taken,
              asked ? failover::unsupported : failover::accepted);
  }
}

TEST(connection_manager, hosts_of_two_roce_versions_do_not_meet) {
  network n;
  n.b.manager.listen(service);
  contents req;
  req.kind = message::req;
  req.local_id = 77;
  req.connection.service_id = service;
  const mad m = encode(req);
  n.b.manager.refuse_version(network::from(n.a), m.data(), m.size(), n.now);
  EXPECT_FALSE(n.b.manager.has_event());
  EXPECT_EQ(n.b.manager.connections(), 0u);
  ASSERT_EQ(n.b.out.size(), 1u);
  EXPECT_EQ(decode(n.b.out.front().second.data(), mad_length)->why, reason::invalid_gid);

  n.drop = [](const contents&) { return true; };
  const auto id = n.ask();
  contents rej;
  rej.kind = message::rej;
  rej.remote_id = id;
  rej.why = reason::invalid_gid;
  const mad no = encode(rej);
  n.a.manager.refuse_version(network::from(n.b), no.data(), no.size(), n.now);
  EXPECT_EQ(n.a.take(kind::rejected).message.why, reason::invalid_gid);
  EXPECT_EQ(n.a.manager.count().other_version, 1u);
}

TEST(connection_manager, a_service_of_connections_is_none_of_datagrams) {
  network n;
  n.b.manager.listen(service);
  service_data s;
  s.service_id = service;
  n.a.manager.ask_service(network::from(n.b), s, {}, n.now);
  n.deliver();
  EXPECT_NE(n.a.take(kind::service_reply).message.service.status, 0);
  n.b.manager.stop_listening(service);
  n.b.manager.listen(service, service_kind::datagrams);
  n.ask();
  EXPECT_EQ(n.a.take(kind::rejected).message.why, reason::invalid_service);
}

// As core/cm.c writes them for IB_QPT_XRC_INI and IB_QPT_XRC_TGT.
TEST(connection_manager, over_xrc_a_queue_pair_is_an_ee_context) {
  network n;
  contents req, rep;
  n.drop = [&](const contents& c) {
    if (c.kind == message::req) req = c;
    if (c.kind == message::rep) rep = c;
    return false;
  };
  n.b.manager.listen(service, service_kind::xrc_connections);
  connection_data d;
  d.service_id = service;
  d.qpn = 0x55;
  d.responder_resources = d.initiator_depth = 4;
  d.retry_count = d.rnr_retry_count = 7;
  d.set_xrc();
  const auto id = n.a.manager.connect(network::from(n.b), d, {}, n.now);
  n.deliver();
  EXPECT_EQ(req.connection.qpn, 0x55u);
  EXPECT_EQ(req.connection.transport, 3);
  EXPECT_EQ(req.connection.extended_transport, 1);
  EXPECT_EQ(req.connection.initiator_depth, 4);
  EXPECT_EQ(req.connection.responder_resources, 0);
  EXPECT_EQ(req.connection.retry_count, 0);
  EXPECT_EQ(req.connection.rnr_retry_count, 0);
  connection_data answer;
  answer.qpn = 0x800066;
  answer.responder_resources = answer.initiator_depth = 2;
  EXPECT_TRUE(n.b.manager.accept(n.b.take(kind::request).id, answer, {}, n.now));
  n.deliver();
  EXPECT_EQ(rep.connection.qpn, 0u);
  EXPECT_EQ(rep.connection.ee_context, 0x800066u);
  EXPECT_EQ(rep.connection.initiator_depth, 0);
  EXPECT_EQ(rep.connection.responder_resources, 2);
  EXPECT_TRUE(rep.connection.shared_receive_queue);
  EXPECT_EQ(n.a.take(kind::reply).message.connection.qpn, 0x800066u);
  EXPECT_TRUE(n.a.manager.confirm(id, {}));
  n.deliver();
  EXPECT_EQ(n.b.take(kind::established).id, 2000u);
}

TEST(connection_manager, a_service_has_one_transport) {
  constexpr struct {
    service_kind listens;
    std::uint8_t transport, extended;
    bool taken;
  } cases[] = {{service_kind::connections, 0, 0, true},      {service_kind::connections, 3, 1, false},
               {service_kind::xrc_connections, 3, 1, true},  {service_kind::xrc_connections, 0, 0, false},
               {service_kind::xrc_connections, 3, 2, false}, {service_kind::xrc_connections, 2, 1, false}};
  for (const auto& c : cases) {
    network n;
    n.b.manager.listen(service, c.listens);
    connection_data d;
    d.service_id = service;
    d.transport = c.transport;
    d.extended_transport = c.extended;
    n.a.manager.connect(network::from(n.b), d, {}, n.now);
    n.deliver();
    EXPECT_EQ(n.b.manager.has_event(), c.taken);
    if (!c.taken) {
      EXPECT_EQ(n.a.take(kind::rejected).message.why, reason::invalid_transport);
    }
  }
}

TEST(connection_manager, whatever_comes_it_goes_on) {
  network n;
  std::mt19937 random(99);
  std::vector<std::pair<connection_id, connection_id>> pairs;
  for (unsigned i = 0; i < 8; ++i) pairs.push_back(n.established(0x1000 + 2 * i));
  for (unsigned i = 0; i < 200'000; ++i) {
    mad m;
    for (auto& byte : m) byte = static_cast<std::uint8_t>(random());
    m[0] = 1, m[1] = 7, m[2] = 2, m[3] = 3;
    m[16] = 0, m[17] = static_cast<std::uint8_t>(0x0f + random() % 14);
    const auto& pair = pairs[random() % pairs.size()];
    if (random() % 2 != 0) {  // numbers that mean something, and the service that is there
      const std::uint32_t mine = random() % 2 != 0 ? pair.first : pair.second;
      for (unsigned k = 0; k < 4; ++k) m[28 + k] = static_cast<std::uint8_t>(mine >> (24 - 8 * k));
      for (unsigned k = 0; k < 8; ++k) m[32 + k] = static_cast<std::uint8_t>(service >> (56 - 8 * k));
    }
    address from;
    from.gid = host(static_cast<std::uint8_t>(1 + random() % 3));
    node& to = random() % 2 != 0 ? n.a : n.b;
    to.manager.receive(from, m.data(), random() % 20 == 0 ? random() % 256 : m.size(), n.now);
    if (i % 64 == 0) {
      n.now += random() % answer_time;
      n.a.manager.tick(n.now);
      n.b.manager.tick(n.now);
      while (n.b.manager.has_event()) n.b.manager.abandon(n.b.manager.take_event().id, n.now);
      while (n.a.manager.has_event()) n.a.manager.take_event();
    }
    n.a.out.clear();
    n.b.out.clear();
  }
  EXPECT_LE(n.b.manager.connections(), connection_manager_config{}.most_connections);
  network fresh;
  fresh.established();
}

TEST(connection_manager, a_peer_may_ask_for_time_again_behind_a_repetition) {
  network n;
  n.b.manager.listen(service);
  const auto a = n.ask();
  const event request = n.b.take(kind::request);
  n.drop = first(100, message::rep);
  EXPECT_TRUE(n.b.manager.accept(request.id, {}, {}, n.now));
  contents m;
  m.kind = message::mra;
  m.subject = about::rep;
  m.local_id = a;
  m.remote_id = request.id;
  m.service_timeout = 20;
  const mad d = encode(m);
  n.b.manager.receive(network::from(n.a), d.data(), d.size(), n.now);
  EXPECT_EQ(n.b.manager.state_of(request.id), state::mra_rep_received);
  n.now += 2 * answer_time;
  n.b.manager.tick(n.now);
  EXPECT_EQ(n.b.manager.count().retries, 1u);
  EXPECT_EQ(n.b.manager.state_of(request.id), state::rep_sent);
  n.b.manager.receive(network::from(n.a), d.data(), d.size(), n.now);
  EXPECT_EQ(n.b.manager.state_of(request.id), state::mra_rep_received);
  EXPECT_EQ(n.b.manager.count().wrong_state, 0u);
}

TEST(connection_manager, two_hosts_ask_with_the_same_number) {
  network n;
  node c{3};
  c.begin_anew(1000);  // the first number of host 1 too
  n.b.manager.listen(service, service_kind::datagrams);
  service_data s;
  s.service_id = service;
  const auto x = n.a.manager.ask_service(network::from(n.b), s, {}, n.now);
  const auto y = c.host_software->ask_service(network::from(n.b), s, {}, n.now);
  ASSERT_EQ(x, y);
  n.deliver();
  const mad m = c.out.front().second;
  n.b.manager.receive(network::from(c), m.data(), m.size(), n.now);
  EXPECT_EQ(n.b.take(kind::service_request).from.gid, host(1));
  EXPECT_EQ(n.b.take(kind::service_request).from.gid, host(3));
}

}  // namespace
}  // namespace rnic::host_driver::cm::test
