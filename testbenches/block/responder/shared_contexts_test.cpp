// SPDX-License-Identifier: Apache-2.0
// Contexts of shared receive queues: who gets a port in a cycle, who waits.
#include "testbenches/block/responder/parts_bench.h"

namespace rnic::transport::test::parts {
namespace {

using result = receive_result;

std::uint64_t waits(const bench& t, const char* user) {
  return t.stats.value(std::string("parts.srq_memory.") + user + ".waits");
}
std::uint64_t accesses(bench& t, srq_user user) {
  return t.b.receives.contexts().ports().accesses(static_cast<unsigned>(user));
}

struct srq_bench : bench {
  explicit srq_bench(unsigned ports = 1) : bench(with(ports)) { b.receives.contexts().ports().announce(stats); }
  static responder_config with(unsigned ports) {
    responder_config c;
    c.srq_ports = ports;
    return c;
  }
  /// Whether the user has a port for the context in this cycle; if so it makes its access.
  bool access(std::uint32_t queue, srq_user user) {
    shared_contexts& c = b.receives.contexts();
    if (!c.may_access(queue, user)) return false;
    c.access(queue, user);
    return true;
  }
  /// A packet asks in every cycle from 100 on, and takes what it gets, up to `most`: when it has.
  std::vector<cycle> take(unsigned most, std::uint16_t limit) {
    responder_flow& f = open();
    share(*f.ctx);
    icm::srq_context s;
    std::memcpy(&s, w.memory.data() + srqc_bus + srqn * sizeof s, sizeof s);
    s.limit = limit;
    std::memcpy(w.memory.data() + srqc_bus + srqn * sizeof s, &s, sizeof s);
    for (unsigned i = 0; i != 8; ++i) post(i, 0x100 * (i + 1), 64, true);
    std::vector<cycle> taken;
    b.in_cycle = [&] {
      receive_descriptors::entry e;
      if (b.now() < 100 || taken.size() == most) return;
      if (b.receives.find(*f.ctx, true, true, e) != result::ready) return;
      taken.push_back(b.now());
      b.receives.take(*f.ctx, e, false);
    };
    run(300);
    b.in_cycle = [] {};
    return taken;
  }
};

/// Context 22 cycles, doorbell record 24, translation and entries 31: at the end of each the packet that asks all the
/// time makes one access, the last with the entry. While it waits it takes no port.
TEST(shared_contexts, a_packet_that_waits_takes_no_port) {
  srq_bench t;
  EXPECT_EQ(t.take(1, 0), (std::vector<cycle>{100 + 22 + 24 + 31}));
  EXPECT_EQ(accesses(t, srq_user::check), 3u);
  EXPECT_EQ(accesses(t, srq_user::limits), 0u);
  EXPECT_EQ(waits(t, "check"), 0u);
}

/// A limit is looked at in the cycle behind the take that may have passed it: the next take is a cycle later.
TEST(shared_contexts, a_packet_waits_a_cycle_for_the_limit) {
  srq_bench t;
  EXPECT_EQ(t.take(3, 8), (std::vector<cycle>{177, 179, 180}));
  EXPECT_EQ(waits(t, "check"), 1u);
  EXPECT_EQ(waits(t, "limits"), 0u);
  EXPECT_EQ(t.w.events.size(), 1u);
}

TEST(shared_contexts, with_two_ports_it_does_not) {
  srq_bench t(2);
  EXPECT_EQ(t.take(3, 8), (std::vector<cycle>{177, 178, 179}));
  EXPECT_EQ(waits(t, "check"), 0u);
}

TEST(shared_contexts, who_was_refused_is_served_next) {
  srq_bench t;
  std::vector<bool> may;
  for (const cycle c : {100u, 101u, 102u})
    t.at(c, [&] {
      for (const srq_user u : {srq_user::limits, srq_user::check}) may.push_back(t.access(srqn, u));
    });
  t.run(200);
  EXPECT_EQ(may, (std::vector<bool>{true, false, false, true, true, false}));
  EXPECT_EQ(waits(t, "check"), 2u);
  EXPECT_EQ(waits(t, "limits"), 1u);
}

/// What a packet does with its queue is one access; that of another packet with another queue is a second one.
TEST(shared_contexts, one_context_is_one_access) {
  srq_bench t;
  std::vector<bool> may;
  t.at(100, [&] {
    for (const std::uint32_t queue : {srqn, srqn, srqn + 1}) may.push_back(t.access(queue, srq_user::check));
  });
  t.run(200);
  EXPECT_EQ(may, (std::vector<bool>{true, true, false}));
  EXPECT_EQ(accesses(t, srq_user::check), 1u);
}

/// Firmware halts queues 5 and 6 between cycles 199 and 200. What is left to be done from 199 on, one digit a queue.
std::vector<unsigned> halts(srq_bench& t, unsigned cycles) {
  shared_contexts& c = t.b.receives.contexts();
  t.at(199, [&] {
    for (const std::uint32_t queue : {srqn, srqn + 1}) c.halt(queue, false);
  });
  std::vector<unsigned> left;
  for (unsigned n = 0; n != cycles; ++n)
    t.at(199 + n, [&] { left.push_back((c.halting(srqn) ? 1u : 0u) + (c.halting(srqn + 1) ? 10u : 0u)); });
  t.run(300);
  return left;
}
/// The packets of a cycle look for the contexts of both queues.
void look_for(srq_bench& t, cycle when, std::initializer_list<std::uint32_t> queues) {
  for (const std::uint32_t queue : queues)
    t.at(when, [&t, queue] {
      icm::srq_context* c = nullptr;
      t.b.receives.contexts().open(queue, srq_user::check, c);
    });
}

TEST(shared_halts, of_one_cycle_are_done_one_after_the_other) {
  srq_bench t;
  look_for(t, 100, {srqn, srqn + 1});
  EXPECT_EQ(halts(t, 4), (std::vector<unsigned>{11, 10, 0, 0}));
}
/// Its context, asked for in cycle 190, is there in 212, and forgotten then.
TEST(shared_halts, behind_one_that_is_being_fetched_wait) {
  srq_bench t;
  look_for(t, 190, {srqn});
  std::vector<unsigned> expected(13, 11);
  expected.insert(expected.end(), {10, 0});
  EXPECT_EQ(halts(t, 15), expected);
}

}  // namespace
}  // namespace rnic::transport::test::parts
