// SPDX-License-Identifier: Apache-2.0
// The rows of the responder error table (adapter data plane, C.7.2), each on packets, completions, events and state.
#include "testbenches/bench/child.h"
#include "testbenches/block/responder/bench.h"

namespace rnic::transport::test {
namespace {

using wire::operation;

struct outcome {
  std::uint8_t nak;
  std::uint32_t psn;
  std::uint8_t cqe;    // syndrome of the first CQE, 0: no CQE
  std::uint8_t event;  // 0: none
};

void expect_fatal(bench& b, const outcome& o) {
  ASSERT_FALSE(b.s.answers.empty());
  EXPECT_EQ(b.s.answers.back()->aeth.syndrome, o.nak);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), o.psn);
  if (o.cqe != 0) {
    ASSERT_FALSE(b.s.cqes.empty());
    EXPECT_EQ(b.s.cqes[0].second.syndrome, o.cqe);
    EXPECT_EQ(b.s.cqes[0].second.opcode, 0x1e);
    EXPECT_LE(b.s.cqes[0].first, b.s.answers.back().at);  // completion first, then the NAK
  }
  if (o.event != 0) {
    ASSERT_EQ(b.s.events.size(), 1u);
    EXPECT_EQ(b.s.events[0].type, o.event);
    EXPECT_EQ(b.s.events[0].data[3], qpn);
  } else {
    EXPECT_TRUE(b.s.events.empty());
  }
  EXPECT_EQ(b.s.errors, std::vector<std::uint32_t>{qpn});
  // In the error state nothing is accepted any more.
  const std::size_t answers = b.s.answers.size();
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8);
  b.run();
  EXPECT_EQ(b.s.answers.size(), answers);
  EXPECT_GE(b.count("drop.error"), 1u);
}

TEST(responder_errors, sequence_gap_gives_one_nak) {
  bench b;
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8);
  for (unsigned i = 0; i < 4; ++i) b.write(operation::write_only, 102 + i, bench::pattern(8, 9), data_va, 8);
  b.run();
  ASSERT_EQ(b.count("naks"), 1u);
  EXPECT_EQ(b.s.answers.back()->aeth.syndrome, 0x60);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 101u);
  EXPECT_EQ(b.s.answers.back()->aeth.msn, 1u);
  EXPECT_EQ(b.data(0, 8), bench::pattern(8));
  EXPECT_TRUE(b.s.events.empty());
  b.write(operation::write_only, 101, bench::pattern(8), data_va, 8);  // the gap closes, the next one gets a NAK again
  b.write(operation::write_only, 103, bench::pattern(8), data_va, 8);
  b.run();
  EXPECT_EQ(b.count("naks"), 2u);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 102u);
  EXPECT_EQ(b.r.cr_read(cr::diagnostics + 0x100), 5u);
}

TEST(responder_errors, a_gap_that_a_read_closes_is_over) {
  bench b;
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8);
  b.write(operation::write_only, 102, bench::pattern(8, 9), data_va, 8);
  b.run();
  ASSERT_EQ(b.count("naks"), 1u);
  b.read(101, data_va, 8);
  b.write(operation::write_only, 103, bench::pattern(8), data_va, 8);
  b.run();
  EXPECT_EQ(b.count("naks"), 2u);
  EXPECT_EQ(b.s.answers.back()->aeth.syndrome, 0x60);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 102u);
}

TEST(responder_errors, duplicate_is_acknowledged_with_the_newest_psn) {
  bench b;
  for (unsigned i = 0; i < 3; ++i) b.write(operation::write_only, 100 + i, bench::pattern(8, i), data_va, 8);
  b.run();
  b.send(operation::write_only, 100, bench::pattern(8, 77), [](wire::packet& p) {
    p.reth = {data_va, rkey, 8};
    p.bth.ack_request = false;
  });
  b.run();
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 102u);
  EXPECT_EQ(b.s.answers.back()->aeth.syndrome, 0x1f);
  EXPECT_EQ(b.s.answers.back()->aeth.msn, 3u);
  EXPECT_EQ(b.data(0, 8), bench::pattern(8, 2));  // not executed again
  EXPECT_EQ(b.count("duplicates"), 1u);
}

TEST(responder_errors, no_receive_wqe_gives_rnr_and_recovers) {
  bench b;
  b.send(operation::send_only, 100, bench::pattern(64));
  b.send(operation::send_only, 101, bench::pattern(64));  // already on its way behind it: dropped without NAK
  b.run();
  ASSERT_EQ(b.s.answers.size(), 1u);
  EXPECT_EQ(b.s.answers[0]->aeth.syndrome, 0x20 | 12);
  EXPECT_EQ(b.s.answers[0]->bth.psn.value(), 100u);
  EXPECT_EQ(b.s.answers[0]->aeth.msn, 0u);
  EXPECT_TRUE(b.s.cqes.empty());
  b.post(0, {{data_va, lkey, 64}});
  b.post(1, {{data_va + 64, lkey, 64}});
  b.send(operation::send_only, 100, bench::pattern(64, 1));
  b.send(operation::send_only, 101, bench::pattern(64, 2));
  b.run();
  EXPECT_EQ(b.s.cqes.size(), 2u);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 101u);
  EXPECT_EQ(b.data(64, 64), bench::pattern(64, 2));
  EXPECT_EQ(b.r.cr_read(cr::diagnostics + 0x68), 1u);
}

/// Each of the 32 codes of the queue pair's timer, as it is.
TEST(responder_errors, the_rnr_nak_names_the_queue_pairs_timer) {
  for (const std::uint8_t code : std::vector<std::uint8_t>{0, 1, 15, 16, 30, 31}) {
    EXPECT_EQ(rnic::bench::in_child([code] {
                bench b;
                auto c = bench::context();
                c.rnr_timer = code;
                b.put(c);
                b.send(operation::send_only, 100, bench::pattern(64));
                b.run();
                return b.s.answers.size() == 1 ? unsigned{b.s.answers[0]->aeth.syndrome} : 0u;
              }),
              0x20u + code);
  }
}

TEST(responder_errors, write_immediate_without_wqe_gives_rnr_for_that_packet) {
  bench b;
  b.write(operation::write_first, 100, bench::pattern(1024), data_va, 1030);
  b.send(operation::write_last_immediate, 101, bench::pattern(6));
  b.run();
  EXPECT_EQ(b.s.answers.back()->aeth.syndrome, 0x20 | 12);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 101u);
  b.post(0, {});
  b.send(operation::write_last_immediate, 101, bench::pattern(6, 3));
  b.run();
  ASSERT_EQ(b.s.cqes.size(), 1u);
  EXPECT_EQ(b.s.cqes[0].second.byte_count, 1030u);
  EXPECT_EQ(b.data(1024, 6), bench::pattern(6, 3));
}

TEST(responder_errors, missing_first) {
  bench b;
  b.send(operation::send_middle, 100, bench::pattern(1024));
  b.run();
  expect_fatal(b, {0x61, 100, 0, 0x10});
}

TEST(responder_errors, missing_last_of_a_send_completes_its_wqe) {
  bench b;
  b.post(0, {{data_va, lkey, 4096}});
  b.send(operation::send_first, 100, bench::pattern(1024));
  b.send(operation::send_only, 101, bench::pattern(10));
  b.run();
  expect_fatal(b, {0x61, 101, 0x12, 0});
  EXPECT_EQ(b.s.cqes[0].second.wqe_index, 0u);
}

TEST(responder_errors, missing_last_of_a_write) {
  bench b;
  b.write(operation::write_first, 100, bench::pattern(1024), data_va, 2000);
  b.send(operation::send_last, 101, bench::pattern(10));
  b.run();
  expect_fatal(b, {0x61, 101, 0, 0x10});
}

TEST(responder_errors, operation_not_enabled) {
  bench b;
  auto c = bench::context();
  c.access = icm::responder_access_read;
  b.put(c);
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8);
  b.run();
  expect_fatal(b, {0x61, 100, 0, 0x10});
}

TEST(responder_errors, read_not_enabled) {
  bench b;
  auto c = bench::context();
  c.access = icm::responder_access_write;
  b.put(c);
  b.read(100, data_va, 8);
  b.run();
  expect_fatal(b, {0x61, 100, 0, 0x10});
}

TEST(responder_errors, too_many_reads) {
  bench b;
  for (unsigned i = 0; i < 5; ++i) b.read(100 + i, data_va, 8);  // 4 are allowed
  b.run();
  EXPECT_EQ(b.s.answers.size(), 5u);
  expect_fatal(b, {0x61, 104, 0, 0x10});
}

TEST(responder_errors, write_longer_than_announced) {
  bench b;
  b.write(operation::write_only, 100, bench::pattern(9), data_va, 8);
  b.run();
  expect_fatal(b, {0x61, 100, 0, 0x10});
  EXPECT_TRUE(b.s.writes.empty());
}

TEST(responder_errors, write_first_shorter_than_mtu) {
  bench b;
  b.write(operation::write_first, 100, bench::pattern(1000), data_va, 2000);
  b.run();
  expect_fatal(b, {0x61, 100, 0, 0x10});
}

TEST(responder_errors, write_last_of_wrong_length) {
  bench b;
  b.write(operation::write_first, 100, bench::pattern(1024), data_va, 2000);
  b.send(operation::write_last, 101, bench::pattern(900));
  b.run();
  expect_fatal(b, {0x61, 101, 0, 0x10});
}

TEST(responder_errors, write_of_more_than_2_gib) {
  bench b;
  b.write(operation::write_first, 100, bench::pattern(1024), data_va, 0x80000001);
  b.run();
  expect_fatal(b, {0x61, 100, 0, 0x10});
}

TEST(responder_errors, send_longer_than_the_receive_wqe) {
  bench b;
  b.post(0, {{data_va, lkey, 100}, {data_va + 200, lkey, 100}});
  b.send(operation::send_only, 100, bench::pattern(201));
  b.run();
  expect_fatal(b, {0x61, 100, 0x01, 0});
  EXPECT_EQ(b.r.cr_read(cr::diagnostics + 0x00), 1u);
}

TEST(responder_errors, send_longer_than_the_receive_wqe_in_its_second_packet) {
  bench b;
  b.post(0, {{data_va, lkey, 1030}});
  b.send(operation::send_first, 100, bench::pattern(1024));
  b.send(operation::send_last, 101, bench::pattern(7));
  b.run();
  expect_fatal(b, {0x61, 101, 0x01, 0});
}

TEST(responder_errors, rkey_unknown) {
  bench b;
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8, 0x9900);
  b.run();
  expect_fatal(b, {0x62, 100, 0, 0x11});
}

TEST(responder_errors, rkey_of_another_pd) {
  bench b;
  b.s.regions[0x5500] = b.s.regions[rkey];
  b.s.regions[0x5500].pd = 8;
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8, 0x5500);
  b.run();
  expect_fatal(b, {0x62, 100, 0, 0x11});
}

TEST(responder_errors, rkey_without_rights) {
  bench b;
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8, read_only_key);
  b.run();
  expect_fatal(b, {0x62, 100, 0, 0x11});
}

TEST(responder_errors, whole_message_must_be_in_range_at_its_first_packet) {
  bench b;
  b.write(operation::write_first, 100, bench::pattern(1024), data_va, 0x100001);
  b.run();
  expect_fatal(b, {0x62, 100, 0, 0x11});
  EXPECT_TRUE(b.s.writes.empty());
}

TEST(responder_errors, rkey_fault_of_a_write_with_immediate_completes_its_wqe) {
  bench b;
  b.post(0, {});
  b.send(operation::write_only_immediate, 100, bench::pattern(8), [](wire::packet& p) {
    p.reth = {data_va, 0x9900, 8};
  });
  b.run();
  expect_fatal(b, {0x62, 100, 0x13, 0});
}

/// UC: the message is dropped, its receive completes in error, and the queue pair goes on.
TEST(responder_errors, rkey_fault_of_a_write_with_immediate_of_uc_is_its_own) {
  bench b;
  auto c = bench::context();
  c.type = icm::service::uc;
  b.put(c);
  for (unsigned i = 0; i < 3; ++i) b.post(i, {{data_va + 9000, lkey, 4096}});
  for (const std::uint32_t key : {rkey, 0x9900u, rkey})
    b.send(
        operation::write_only_immediate, 500, bench::pattern(8),
        [key](wire::packet& p) {
          p.reth = {data_va, key, 8};
          p.immediate = key;
        },
        wire::transport::uc);
  b.run();
  ASSERT_EQ(b.s.cqes.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(b.s.cqes[i].second.wqe_index, i);
    EXPECT_EQ(b.s.cqes[i].second.syndrome, i == 1 ? 0x13 : 0);
  }
  EXPECT_TRUE(b.s.answers.empty());
  EXPECT_TRUE(b.s.events.empty());
  EXPECT_EQ(b.count("drop.unreliable"), 1u);
  EXPECT_EQ(b.data(0, 8), bench::pattern(8));
}

TEST(responder_errors, lkey_fault_of_the_receive_wqe) {
  bench b;
  b.post(0, {{data_va, 0x9900, 100}});
  b.send(operation::send_only, 100, bench::pattern(10));
  b.run();
  expect_fatal(b, {0x63, 100, 0x04, 0});
  EXPECT_EQ(b.r.cr_read(cr::diagnostics + 0x18), 1u);
}

TEST(responder_errors, malformed_receive_wqe) {
  bench b;
  b.post(0, {{data_va, lkey, 0x80000010}});
  b.send(operation::send_only, 100, bench::pattern(10));
  b.run();
  expect_fatal(b, {0x63, 100, 0x02, 0});
}

TEST(responder_errors, unreadable_doorbell_record) {
  bench b;
  auto c = bench::context();
  c.db_record = 0xffff'0000'0000;
  b.put(c);
  b.send(operation::send_only, 100, bench::pattern(10));
  b.run();
  expect_fatal(b, {0x63, 100, 0, 0x05});
}

TEST(responder_errors, atomics_and_invalidate_are_not_offered) {
  bench b;
  b.send(operation::compare_swap, 100, {});
  b.run();
  expect_fatal(b, {0x61, 100, 0, 0x10});
}

TEST(responder_errors, earlier_packets_count_and_later_ones_are_given_up) {
  bench b;
  b.s.regions[0x4400] = b.s.regions[read_only_key];
  b.s.slow_key[0x4400] = 300;
  for (unsigned i = 0; i < 4; ++i) b.post(i, {{data_va + i * 64, lkey, 64}});
  b.send(operation::send_only, 100, bench::pattern(64));
  b.write(operation::write_only, 101, bench::pattern(8), data_va, 8, 0x4400);  // fails late
  b.send(operation::send_only, 102, bench::pattern(64));                       // checked before that is known
  b.send(operation::send_only, 103, bench::pattern(64));
  b.run();
  ASSERT_EQ(b.s.cqes.size(), 4u);
  EXPECT_EQ(b.s.cqes[0].second.opcode, 1);
  for (unsigned i = 1; i < 4; ++i) {
    EXPECT_EQ(b.s.cqes[i].second.syndrome, 0x05);
    EXPECT_EQ(b.s.cqes[i].second.wqe_index, i);
  }
  EXPECT_EQ(b.s.answers.back()->aeth.syndrome, 0x62);
  EXPECT_EQ(b.s.answers.back()->bth.psn.value(), 101u);
  EXPECT_EQ(b.s.answers.back()->aeth.msn, 1u);
  EXPECT_EQ(b.s.writes.size(), 1u);
}

TEST(responder_errors, error_state_flushes_what_is_posted_later) {
  bench b;
  b.post(0, {{data_va, lkey, 64}});
  b.s.to_tell.push_back({qpn});  // the requester has failed
  b.s.wake_next();
  b.run();
  ASSERT_EQ(b.s.cqes.size(), 1u);
  EXPECT_EQ(b.s.cqes[0].second.syndrome, 0x05);
  EXPECT_TRUE(b.s.errors.empty());  // it knows
  b.run(20000);
  EXPECT_EQ(b.s.cqes.size(), 1u);
  b.post(1, {{data_va, lkey, 64}});
  b.post(2, {{data_va, lkey, 64}});
  b.run(20000);
  ASSERT_EQ(b.s.cqes.size(), 3u);
  EXPECT_EQ(b.s.cqes[2].second.wqe_index, 2u);
  b.r.cr_write(cr::qp_select, qpn);
  b.r.cr_write(cr::qp_command, cr::qp_command_discard);
  b.run();
  EXPECT_EQ(b.r.cr_read(cr::qp_status), 0u);
  b.post(3, {});
  b.run(20000);
  EXPECT_EQ(b.s.cqes.size(), 3u);
}

TEST(responder_errors, error_state_by_firmware_flushes_after_release) {
  bench b;
  auto c = bench::context();
  c.state = icm::qp_state::error;
  c.in_message = 1;  // a SEND had begun
  c.rq_consumed = 1;
  b.put(c);
  b.post(0, {{data_va, lkey, 64}});
  b.post(1, {{data_va, lkey, 64}});
  b.r.cr_write(cr::qp_select, qpn);
  b.r.cr_write(cr::qp_command, cr::qp_command_release);
  b.run();
  ASSERT_EQ(b.s.cqes.size(), 2u);
  EXPECT_EQ(b.s.cqes[0].second.wqe_index, 0u);
  EXPECT_EQ(b.s.cqes[1].second.wqe_index, 1u);
}

TEST(responder_errors, silent_drops) {
  bench b;
  const auto reth = [](wire::packet& p) { p.reth = {data_va, rkey, 8}; };
  b.send(operation::write_only, 100, bench::pattern(8), [&](wire::packet& p) {
    reth(p);
    p.bth.pkey = 0x1234;
  });
  b.send(operation::write_only, 100, bench::pattern(8), [&](wire::packet& p) {
    reth(p);
    p.sgid[15] = 9;
  });
  b.send(operation::write_only, 100, bench::pattern(8), [&](wire::packet& p) {
    reth(p);
    p.bth.dest_qp = 0x777;  // never created
  });
  b.send(operation::write_only, 100, bench::pattern(8), [&](wire::packet& p) {
    reth(p);
    p.bth.dest_qp = 0x10048;  // the same entry of the table, another number
  });
  b.send(operation::write_only, 100, bench::pattern(8), reth, wire::transport::uc);
  b.run();
  EXPECT_TRUE(b.s.answers.empty());
  EXPECT_TRUE(b.s.writes.empty());
  EXPECT_TRUE(b.s.events.empty());
  EXPECT_EQ(b.count("drop.pkey"), 1u);
  EXPECT_EQ(b.count("drop.address"), 1u);
  EXPECT_EQ(b.count("drop.no_qp"), 2u);
  EXPECT_EQ(b.count("drop.service"), 1u);
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8);
  b.run();
  EXPECT_EQ(b.s.answers.size(), 1u);
}

void set_row(bench& b, std::uint32_t attributes) { b.gids[0].cr_write(gid::cr::gid_word(2, 4), attributes); }

/// A request for which the parser has found another entry than the path's, whose attributes are these.
void expect_dropped(std::uint32_t attributes, unsigned dropped) {
  bench b;
  set_row(b, attributes);
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8);
  b.s.to_send.back()->gid_index = 7;
  b.run();
  EXPECT_EQ(b.s.answers.size(), 1 - dropped);
  EXPECT_EQ(b.count("drop.address"), dropped);
}
constexpr std::uint32_t ours = gid::cr::gid_valid | 2u << gid::cr::gid_type_shift;

TEST(responder_source, request_to_an_entry_that_is_not_ours_any_more_is_dropped) { expect_dropped(0, 1); }
TEST(responder_source, request_to_an_entry_of_the_other_version_is_dropped) { expect_dropped(gid::cr::gid_valid, 1); }
TEST(responder_source, request_to_an_entry_that_the_table_holds_twice_is_taken) { expect_dropped(ours, 0); }

TEST(responder_source, answers_end_with_the_entry_they_come_from) {
  bench b;
  b.read(100, data_va, 100'000);
  while (b.s.answers.size() < 3) b.run(10);
  set_row(b, 0);
  b.run(20'000);
  EXPECT_LT(b.s.answers.size(), 50u);  // those whose headers were made before
  const std::size_t sent = b.s.answers.size();
  EXPECT_EQ(b.stats.value("answer_transmit.sourceless"), 98 - sent);
  set_row(b, ours);
  b.read(100, data_va, 10);
  b.run();
  EXPECT_EQ(b.s.answers.size(), sent + 1);
}

}  // namespace
}  // namespace rnic::transport::test
