// SPDX-License-Identifier: Apache-2.0
// Requests and half-open connections that wait for their owner.
#include "testbenches/unit/cm/two_hosts.h"

namespace rnic::host_driver::cm::test {
namespace {

TEST(connection_manager, requests_without_number_meet_a_limit) {
  connection_manager_config few;
  few.most_connections = 10;
  node b(2, few);
  b.manager.listen(service);
  address from;
  from.gid = host(9);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    contents c;
    c.local_id = i + 1;
    c.connection.service_id = service;
    c.connection.qpn = 100 + i;
    const mad m = encode(c);
    b.manager.receive(from, m.data(), m.size(), 5);
  }
  EXPECT_EQ(b.manager.connections(), 10u);
  EXPECT_EQ(b.out.size(), 990u);
  const mad& last = b.out.back().second;
  EXPECT_EQ(decode(last.data(), last.size())->why, reason::no_resources);
}

constexpr std::uint64_t second = 1'000'000'000'000;

TEST(connection_manager, a_request_that_waits_is_told_so_and_asks_no_more) {
  network n;
  n.b.manager.listen(service);
  const auto id = n.ask();
  n.wait(second / 4);
  EXPECT_EQ(n.a.manager.state_of(id), state::req_sent);
  n.wait(second);
  EXPECT_EQ(n.a.manager.state_of(id), state::mra_req_received);
  n.wait(answer_time << 4);
  EXPECT_EQ(n.a.manager.count().retries, 0u);
  EXPECT_TRUE(n.b.manager.accept(n.b.take(kind::request).id, {}, {}, n.now));
  n.deliver();
  n.a.take(kind::reply);
}

TEST(connection_manager, a_client_that_goes_away_while_it_waits_is_forgotten) {
  network n;
  n.b.manager.listen(service);
  n.ask();
  n.drop = [](const contents& c) { return c.kind == message::req; };
  EXPECT_TRUE(n.b.manager.has_event());
  n.wait(second);
  n.wait(answer_time << 4);
  EXPECT_TRUE(n.b.manager.has_event());
  n.wait(2 * answer_time);
  EXPECT_FALSE(n.b.manager.has_event());
  n.wait(second);
  EXPECT_EQ(n.b.manager.connections(), 0u);

  n.drop = [](const contents&) { return false; };
  const auto id = n.ask(0x79);
  n.a.manager.abandon(id, n.now);  // and one that says so
  n.deliver();
  EXPECT_FALSE(n.b.manager.has_event());
}

TEST(connection_manager, a_client_that_asks_again_waits_on) {
  network n;
  n.b.manager.listen(service);
  n.ask();
  for (unsigned i = 0; i < 40; ++i) n.wait(answer_time);
  EXPECT_GT(n.a.manager.count().retries, 0u);
  EXPECT_TRUE(n.b.manager.accept(n.b.take(kind::request).id, {}, {}, n.now));
  n.deliver();
  n.a.take(kind::reply);
}

TEST(connection_manager, the_backlog_is_bounded) {
  connection_manager_config few;
  few.backlog = 4;
  node b(2, few);
  b.manager.listen(service);
  address from;
  from.gid = host(9);
  const auto ask = [&](std::uint32_t i) {
    contents c;
    c.local_id = i;
    c.connection.service_id = service;
    c.connection.qpn = 100 + i;
    const mad m = encode(c);
    b.manager.receive(from, m.data(), m.size(), 5);
  };
  for (std::uint32_t i = 1; i <= 6; ++i) ask(i);
  EXPECT_EQ(b.manager.connections(), 4u);
  EXPECT_EQ(b.manager.count().backlog_full, 2u);
  ASSERT_EQ(b.out.size(), 2u);
  EXPECT_EQ(decode(b.out.front().second.data(), mad_length)->why, reason::no_resources);
  EXPECT_TRUE(b.manager.accept(b.take(kind::request).id, {}, {}, 5));
  ask(7);
  EXPECT_EQ(b.manager.connections(), 5u);
  ask(8);
  EXPECT_EQ(b.manager.count().backlog_full, 3u);
}

TEST(connection_manager, a_packet_is_as_good_as_a_confirmation) {
  network n;
  n.b.manager.listen(service);
  const auto ida = n.ask();
  const event request = n.b.take(kind::request);
  connection_data d;
  d.qpn = 0x78;
  EXPECT_FALSE(n.b.manager.awaits_confirmation());
  EXPECT_TRUE(n.b.manager.accept(request.id, d, {}, n.now));
  n.deliver();
  n.a.take(kind::reply);
  EXPECT_TRUE(n.b.manager.awaits_confirmation());
  EXPECT_FALSE(n.b.manager.data_came(0x79));
  EXPECT_TRUE(n.b.manager.data_came(0x78));
  n.b.take(kind::established);
  EXPECT_FALSE(n.b.manager.data_came(0x78));
  EXPECT_TRUE(n.a.manager.confirm(ida, {}));  // the RTU comes late
  n.deliver();
  EXPECT_FALSE(n.b.manager.has_event());
  EXPECT_EQ(n.b.manager.count().duplicates, 1u);
  EXPECT_EQ(n.b.manager.count().by_data, 1u);
  EXPECT_EQ(n.b.manager.state_of(request.id), state::established);
}

TEST(connection_manager, whoever_is_left_is_told) {
  network n;
  const auto [a, b] = n.established();
  const auto asks = n.ask(0x90);
  n.b.manager.abandon_all(n.now);
  EXPECT_TRUE(n.b.manager.has_peers());
  n.deliver();
  EXPECT_EQ(n.a.manager.state_of(a), state::dreq_received);
  EXPECT_EQ(n.a.take(kind::disconnect_request).id, a);
  EXPECT_EQ(n.a.take(kind::rejected).id, asks);
  EXPECT_TRUE(n.a.manager.disconnect(a, {}, n.now));
  n.deliver();
  EXPECT_FALSE(n.b.manager.has_peers());
  EXPECT_FALSE(n.b.manager.has_event());
  n.ask(0x91);
  EXPECT_EQ(n.a.take(kind::rejected).message.why, reason::invalid_service);
}

}  // namespace
}  // namespace rnic::host_driver::cm::test
