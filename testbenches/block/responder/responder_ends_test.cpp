// SPDX-License-Identifier: Apache-2.0
// How messages and queue pairs end: at a bad key, a lost end, a halt, an error of a neighbour in the pipeline.
#include "model/transport/responder/rules.h"
#include "testbenches/block/responder/bench.h"

namespace rnic::transport::test {
namespace {

using wire::operation;

constexpr std::uint64_t srqc_bus = 0x70000, srq_bus = 0x71000, srq_record = 0x20100;
constexpr std::uint32_t srqn = 5;

void put_qp(bench& b, std::uint32_t number, icm::service type = icm::service::rc, bool shared = false) {
  icm::responder_context c = bench::context();
  c.qpn = number;
  c.type = type;
  c.remote_qpn = peer_qpn + number - qpn;
  if (shared) {
    c.srqn = srqn_valid | srqn;
    c.log_rq_size = c.log_rq_stride = 0;
  }
  b.put(c);
}
/// A shared receive queue of 16 entries of `bytes` at data_va + 1000 i, all posted.
void put_srq(bench& b, std::uint32_t bytes) {
  b.map.layout(icm::table::srqc) = {0x200000, 64, 6};
  b.map.map(0x200000, srqc_bus, 0x1000);
  icm::srq_context s{};
  s.srqn = srqn;
  s.valid = 1;
  s.log_size = 4;
  s.log_stride = 6;
  s.log_page = 12;
  s.address = srq_bus;
  s.db_record = srq_record;
  s.pd = 7;
  s.function = owning_function;
  std::memcpy(b.s.memory.data() + srqc_bus + srqn * 64, &s, sizeof s);
  for (unsigned i = 0; i < 16; ++i) {
    std::uint8_t* e = b.s.memory.data() + srq_bus + i * 64;
    std::memset(e, 0, 64);
    e[3] = static_cast<std::uint8_t>((i + 1) & 15);
    store_be32(e + 16, bytes);
    store_be32(e + 20, lkey);
    store_be32(e + 24, static_cast<std::uint32_t>((data_va + 1000 * i) >> 32));
    store_be32(e + 28, static_cast<std::uint32_t>(data_va + 1000 * i));
    store_be32(e + 36, 0x100);
  }
  store_be32(b.s.memory.data() + srq_record, 16);
}
template <class F>
void send_to(bench& b, std::uint32_t number, operation op, std::uint32_t psn, const std::vector<std::uint8_t>& bytes,
             F f, wire::transport t = wire::transport::rc) {
  b.send(
      op, psn, bytes,
      [&](wire::packet& p) {
        p.bth.dest_qp = number;
        f(p);
      },
      t);
}
void read_on(bench& b, std::uint32_t number, std::uint32_t psn, std::uint64_t va, std::uint32_t length,
             std::uint32_t key = rkey) {
  send_to(b, number, operation::read_request, psn, {}, [&](wire::packet& p) { p.reth = {va, key, length}; });
}

/// Two PSNs of answers: what is expected lies behind the request that is refused.
TEST(responder_ends, a_refused_read_behind_those_that_wait_has_its_nak) {
  bench b({}, places(1));
  put_qp(b, qpn);
  put_qp(b, qpn + 1);
  fill(b, 20000);
  read_on(b, qpn + 1, 100, data_va, 4096);  // has the place
  read_on(b, qpn, 100, data_va, 100);       // waits in host memory
  read_on(b, qpn, 101, data_va, 2000, 0x9900);
  b.run(20000);
  EXPECT_EQ(b.s.errors, std::vector<std::uint32_t>{qpn});
  ASSERT_EQ(b.s.answers.back()->bth.dest_qp, peer_qpn);
  EXPECT_EQ(b.s.answers.back()->aeth.syndrome, 0x62);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 101u);
}

/// The range begins before the region: the packets behind the first lie in it.
TEST(responder_ends, message_of_uc_whose_key_does_not_open_is_dropped_as_a_whole) {
  bench b;
  put_qp(b, qpn, icm::service::uc);
  for (unsigned i = 0; i < 2; ++i) b.post(i, {{data_va + 9000, lkey, 4096}});
  const auto header = [](wire::packet& p) { p.reth = {data_va - 1, rkey, 3000}; };
  b.send(operation::write_first, 500, bench::pattern(1024), header, wire::transport::uc);
  b.send(operation::write_middle, 501, bench::pattern(1024), header, wire::transport::uc);
  b.send(operation::write_last_immediate, 502, bench::pattern(952), header, wire::transport::uc);
  b.run();
  EXPECT_TRUE(b.s.writes.empty());
  for (const auto& [at, c] : b.s.cqes) EXPECT_EQ(c.syndrome, 0x13);
}

/// The same where the rest comes when the first packet was refused.
TEST(responder_ends, rest_of_a_message_of_uc_that_was_refused_is_dropped) {
  bench b;
  put_qp(b, qpn, icm::service::uc);
  for (unsigned i = 0; i < 2; ++i) b.post(i, {{data_va + 9000, lkey, 4096}});
  const auto header = [](wire::packet& p) { p.reth = {data_va - 1, rkey, 2000}; };
  b.send(operation::write_first, 500, bench::pattern(1024), header, wire::transport::uc);
  b.run();
  b.send(operation::write_last_immediate, 501, bench::pattern(976), header, wire::transport::uc);
  b.run();
  EXPECT_TRUE(b.s.writes.empty());
  EXPECT_TRUE(b.s.cqes.empty());
  b.send(
      operation::send_only, 502, bench::pattern(8), [](wire::packet&) {}, wire::transport::uc);
  b.run();
  ASSERT_EQ(b.s.cqes.size(), 1u);
  EXPECT_EQ(b.s.cqes[0].second.wqe_index, 0u);
}

/// The halt comes between the check and the commit of a packet that ends the queue pair, while the doorbell
/// record of another one is read.
TEST(responder_ends, halt_of_a_queue_pair_that_fails_meanwhile_ends) {
  bench b;
  b.s.read_cycles = 1000;
  put_qp(b, qpn + 1);
  put_qp(b, qpn, icm::service::rc, true);
  const auto none = [](wire::packet& p) { p.reth = {data_va, 0x9900, 8}; };
  send_to(b, qpn + 1, operation::write_only, 100, bench::pattern(8), [](wire::packet& p) {
    p.reth = {data_va, rkey, 8};
  });
  send_to(b, qpn, operation::write_only, 100, bench::pattern(8), [](wire::packet& p) { p.reth = {data_va, rkey, 8}; });
  b.run(1500);  // both are on chip
  send_to(b, qpn + 1, operation::write_only, 101, bench::pattern(8), none);
  b.run(100);  // its record is read
  send_to(b, qpn, operation::write_only, 101, bench::pattern(8), none);
  b.run(30);  // checked, not committed
  b.r.cr_write(cr::qp_select, qpn);
  b.r.cr_write(cr::qp_command, cr::qp_command_halt);
  b.run(20000);
  EXPECT_EQ(b.r.cr_read(cr::qp_status) & 1, 0u);
  EXPECT_FALSE(b.r.contexts().on_chip(qpn)) << "firmware edits it now";
  b.r.cr_write(cr::qp_command, cr::qp_command_release);
  b.run(20000);
  unsigned last = 0;
  for (const auto& e : b.s.events) last += e.type == event_last_wqe;
  EXPECT_EQ(last, 1u);
}

/// Nothing else happens behind it.
TEST(responder_ends, receive_of_a_shared_queue_that_is_given_back_completes_at_once) {
  bench b;
  put_srq(b, 4000);
  put_qp(b, qpn, icm::service::uc, true);
  const auto plain = [](wire::packet&) {};
  b.send(operation::send_first, 500, bench::pattern(1024), plain, wire::transport::uc);
  b.run(3000);
  b.send(operation::send_last, 502, bench::pattern(8), plain, wire::transport::uc);  // 501 was lost
  b.run(60);
  ASSERT_EQ(b.s.cqes.size(), 1u);
  EXPECT_EQ(b.s.cqes[0].second.syndrome, 0x12);
}

/// It had taken an entry when it was found to be too long, and ends with the packet before it.
TEST(responder_ends, receive_of_a_first_packet_that_does_not_fit_is_flushed_with_its_queue_pair) {
  bench b;
  put_srq(b, 100);
  put_qp(b, qpn, icm::service::rc, true);
  b.s.slow_key[0x9900] = 1000;
  b.send(operation::send_only, 100, {});  // takes entry 0
  b.run(3000);
  b.write(operation::write_only, 101, bench::pattern(8), data_va, 8, 0x9900);
  b.send(operation::send_first, 102, bench::pattern(1024));  // takes entry 1
  b.run(10000);
  ASSERT_EQ(b.s.cqes.size(), 2u) << "each entry that was taken";
  EXPECT_EQ(b.s.cqes[1].second.wqe_index, 1u);
  EXPECT_EQ(b.s.cqes[1].second.syndrome, cqe_flushed);
}

/// (IBA 11.6.3: behind the completion of the last one.)
TEST(responder_ends, last_receive_has_completed_when_software_is_told_so) {
  bench b;
  put_srq(b, 4000);
  put_qp(b, qpn, icm::service::rc, true);
  b.s.write_cycles = 3000;
  b.send(operation::send_only, 100, bench::pattern(100));
  b.write(operation::write_only, 101, bench::pattern(8), data_va, 8, 0x9900);
  b.run(2000);
  EXPECT_TRUE(b.s.cqes.empty());
  for (const auto& e : b.s.events) EXPECT_NE(e.type, event_last_wqe);
  b.run(10000);
  EXPECT_EQ(b.s.cqes.size(), 1u);
  EXPECT_EQ(b.s.events.back().type, event_last_wqe);
}

/// UC, a message longer than 2 GiB leaves its length behind.
TEST(responder_ends, message_of_uc_that_was_too_long_does_not_end_the_next_ones) {
  bench b;
  auto c = bench::context();
  c.type = icm::service::uc;
  c.message_bytes = (1u << 31) + 1024;  // as a SEND has left it that was dropped for that
  b.put(c);
  b.post(0, {{data_va, lkey, 4096}});
  const auto plain = [](wire::packet&) {};
  b.send(operation::send_first, 500, bench::pattern(1024), plain, wire::transport::uc);
  b.send(operation::send_last, 501, bench::pattern(8), plain, wire::transport::uc);
  b.run();
  EXPECT_EQ(b.s.cqes.size(), 1u);
}

TEST(responder_ends, the_last_event_comes_once) {
  bench b;
  put_srq(b, 4000);
  put_qp(b, qpn, icm::service::rc, true);
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8, 0x9900);
  b.run(10000);
  for (int i = 0; i < 2; ++i) {
    b.r.cr_write(cr::qp_select, qpn);
    b.r.cr_write(cr::qp_command, cr::qp_command_halt);
    b.run(5000);
    b.r.cr_write(cr::qp_command, cr::qp_command_release);
    b.run(5000);
  }
  unsigned last = 0;
  for (const auto& e : b.s.events) last += e.type == event_last_wqe;
  EXPECT_EQ(last, 1u);
}

TEST(responder_ends, first_of_a_message_of_one_packet) {
  bench b;
  put_qp(b, qpn);
  b.write(operation::write_first, 100, bench::pattern(1024), data_va, 1024);
  b.run(5000);
  ASSERT_EQ(b.s.answers.size(), 1u);
  EXPECT_EQ(b.s.answers[0]->aeth.syndrome, 0x61);
}

}  // namespace
}  // namespace rnic::transport::test
