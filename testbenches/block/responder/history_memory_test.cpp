// SPDX-License-Identifier: Apache-2.0
// Rings of READs and atomics: who gets a port in a cycle, who waits.
#include "testbenches/block/responder/parts_bench.h"

namespace rnic::transport::test::parts {
namespace {

using kept = read_backlog::result;

/// The rings of the first two queue pairs come on chip; nobody accesses them.
void fetch_rings(bench& t) {
  for (unsigned n = 0; n != 2; ++n)
    t.at(50 + n, [&t, n] {
      icm::rdma_resources* ring = nullptr;
      EXPECT_EQ(t.b.histories.find(first_qpn + n, history_user::commit, ring), history_memory::found::pending);
    });
}

responder_config ports(unsigned n) {
  responder_config c;
  c.history_ports = n;
  return c;
}

std::uint64_t waits(const bench& t, const char* user) {
  return t.stats.value(std::string("parts.history_memory.") + user + ".waits");
}

/// An executed atomic of a queue pair, as read_generator reports it: seen by the responder's half a cycle later.
read_report executed(const responder_flow& f, std::uint32_t psn) {
  read_report r;
  r.what = read_report::kind::ended;
  r.flow = f.number;
  r.psn = psn;
  r.atomic = r.executed = true;
  r.original = 77;
  return r;
}

/// The atomic of this PSN has been executed: its report is under way at the end of `c`.
void report_at(bench& t, cycle c, responder_flow& f, std::uint32_t psn) {
  t.at(c, [&t, &f, psn] {
    t.b.histories.pin(first_qpn);
    t.w.report.push(executed(f, psn));
  });
}

/// Its answer is in the ring in the cycle in which the report comes, and the place of the request is free.
TEST(history_memory, an_answer_is_written_in_the_cycle_of_its_report) {
  bench t;
  responder_flow& f = t.open();
  t.b.histories.ports().announce(t.stats);
  fetch_rings(t);
  f.requests.accepted = f.requests.fresh = 1;
  report_at(t, 99, f, 9);
  t.at(100, [&] {
    EXPECT_EQ(f.requests.finished, 1u);
    EXPECT_EQ(t.b.rings.peek(first_qpn)->entries[0].value, 77u);
    EXPECT_TRUE(t.b.rings.busy(first_qpn));  // to be written to host memory
  });
  t.run(200);
  EXPECT_EQ(t.b.histories.ports().accesses(static_cast<unsigned>(history_user::reports)), 1u);
  for (const char* u : {"reports", "commit", "reads", "opening"}) EXPECT_EQ(waits(t, u), 0u) << u;
}

/// The report is first in a cycle: a READ that would be put aside in it is a cycle later.
TEST(history_memory, a_read_is_put_aside_in_the_cycle_behind_an_answer) {
  bench t;
  responder_flow& f = t.open(0);
  responder_flow& g = t.open(1);
  t.b.histories.ports().announce(t.stats);
  fetch_rings(t);
  f.requests.accepted = f.requests.fresh = 1;
  report_at(t, 99, f, 9);
  std::vector<kept> made;
  for (const cycle c : {100u, 101u}) t.at(c, [&] { made.push_back(t.b.backlog.keep(g, read_command{})); });
  t.run(200);
  EXPECT_EQ(made, (std::vector<kept>{kept::no_port, kept::done}));
  EXPECT_EQ(g.requests.held, 1u);
  EXPECT_EQ(waits(t, "commit"), 1u);
  EXPECT_EQ(waits(t, "reports"), 0u);
}

/// Who was refused comes before who is first otherwise: the answer of the second cycle waits for the third.
TEST(history_memory, who_was_refused_is_served_next) {
  bench t;
  responder_flow& f = t.open(0);
  responder_flow& g = t.open(1);
  t.b.histories.ports().announce(t.stats);
  fetch_rings(t);
  f.requests.accepted = f.requests.fresh = 2;
  for (const cycle c : {99u, 100u}) report_at(t, c, f, static_cast<std::uint32_t>(c));
  std::vector<kept> made;
  for (const cycle c : {100u, 101u}) t.at(c, [&] { made.push_back(t.b.backlog.keep(g, read_command{})); });
  std::vector<std::uint32_t> finished;
  for (const cycle c : {100u, 101u, 102u}) t.at(c, [&] { finished.push_back(f.requests.finished); });
  t.run(200);
  EXPECT_EQ(made, (std::vector<kept>{kept::no_port, kept::done}));
  EXPECT_EQ(finished, (std::vector<std::uint32_t>{1, 1, 2}));
  EXPECT_EQ(waits(t, "commit"), 1u);
  EXPECT_EQ(waits(t, "reports"), 1u);
}

TEST(history_memory, two_ports_serve_both) {
  bench t(ports(2));
  responder_flow& f = t.open(0);
  responder_flow& g = t.open(1);
  t.b.histories.ports().announce(t.stats);
  fetch_rings(t);
  f.requests.accepted = f.requests.fresh = 1;
  report_at(t, 99, f, 9);
  std::vector<kept> made;
  t.at(100, [&] {
    made.push_back(t.b.backlog.keep(g, read_command{}));
    EXPECT_EQ(f.requests.finished, 1u);
  });
  t.run(200);
  EXPECT_EQ(made, (std::vector<kept>{kept::done}));
  EXPECT_EQ(waits(t, "commit"), 0u);
}

/// Nothing is on chip yet, or software gave no entries: nobody takes a port or waits for one.
TEST(history_memory, who_finds_no_ring_takes_no_port) {
  bench t;
  responder_flow& f = t.open();
  t.b.histories.ports().announce(t.stats);
  std::vector<kept> made;
  t.at(100, [&] { made.push_back(t.b.backlog.keep(f, read_command{})); });
  t.at(140, [&] {
    t.b.rings.drop_all();
    t.map.layout(icm::table::rdmarc).entry_bytes = 32;
    made.push_back(t.b.backlog.keep(f, read_command{}));
  });
  t.run(200);
  EXPECT_EQ(made, (std::vector<kept>{kept::pending, kept::no_memory}));
  EXPECT_EQ(t.b.histories.ports().accesses(static_cast<unsigned>(history_user::commit)), 0u);
  EXPECT_EQ(waits(t, "commit"), 0u);
}

}  // namespace
}  // namespace rnic::transport::test::parts
