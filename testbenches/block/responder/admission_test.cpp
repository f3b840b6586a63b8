// SPDX-License-Identifier: Apache-2.0
// Which packet is checked next: one look at a context in a cycle.
#include "testbenches/bench/child.h"
#include "testbenches/block/responder/bench.h"

namespace rnic::transport::test {
namespace {

using wire::operation;

/// A SEND waits for its receive on one queue pair, and `apart` cycles behind it a WRITE comes on another: the cycle of
/// its payload's write, from where it was sent.
sim::cycle_t in_process(unsigned apart, unsigned sends) {
  bench b;
  for (unsigned n = 1; n != 4; ++n) {
    icm::responder_context c = bench::context();
    c.qpn = qpn + n;
    b.put(c);
  }
  b.post(0, {{data_va, lkey, 256}});
  const auto write = [&b](unsigned n, std::uint32_t psn) {
    b.send(operation::write_only, psn, bench::pattern(8), [n](wire::packet& p) {
      p.bth.dest_qp = qpn + n;
      p.reth = {data_va + 4096, rkey, 8};
    });
  };
  for (unsigned n = 0; n != 4; ++n) write(n, 100);  // brings their contexts on chip
  b.run(3000);
  for (unsigned n = 0; n != sends; ++n)
    b.send(operation::send_only, 101, bench::pattern(16), [n](wire::packet& p) { p.bth.dest_qp = qpn + n; });
  b.run(apart);
  const std::size_t before = b.s.writes.size();
  write(3, 101);
  b.run(2000);
  for (std::size_t i = before; i != b.s.writes.size(); ++i)
    if (b.s.writes[i].length == 8) return b.s.write_cycle[i] - apart;
  return 0;
}
sim::cycle_t written(unsigned apart, unsigned sends) {
  return rnic::bench::in_child([=] { return in_process(apart, sends); });
}

/// Cycles by which the WRITE is later than one that nobody is in front of.
std::vector<sim::cycle_t> later(unsigned first, unsigned end, unsigned sends) {
  const sim::cycle_t alone = written(60, sends);
  std::vector<sim::cycle_t> list;
  for (unsigned apart = first; apart != end; ++apart) list.push_back(written(apart, sends) - alone);
  return list;
}

/// The doorbell record comes 134 cycles behind the SEND (130 of memory, two each way): in that cycle it is taken
/// over and the descriptor asked for, with the look at the context that the cycle has. The WRITE is a cycle later.
TEST(admission, a_look_takes_its_cycle_though_its_packet_goes_on_waiting) {
  EXPECT_EQ(later(128, 136, 1), (std::vector<sim::cycle_t>{0, 0, 0, 0, 0, 0, 1, 0}));
}

/// Of three queue pairs whose records come in three cycles, each has its look in a cycle of its own.
TEST(admission, one_queue_pair_is_looked_at_in_a_cycle) {
  EXPECT_EQ(later(128, 138, 3), (std::vector<sim::cycle_t>{0, 0, 0, 0, 0, 0, 3, 2, 1, 0}));
}

/// What the check has been blocked by, in cycles.
std::string blocked(bench& b) {
  std::string text;
  for (const sim::server* s : b.core.servers())
    if (s->name().find("responder.check") != std::string::npos)
      for (const sim::server::hold_up& h : s->blocked_cycles())
        text += (text.empty() ? "" : "; ") + std::string(h.by) + " " + std::to_string(h.cycles);
  return text;
}

/// A WRITE whose context is not on chip, another one behind it, and a SEND.
std::string blocked_with(unsigned read_cycles) {
  bench b;
  b.s.read_cycles = read_cycles;
  b.post(0, {{data_va, lkey, 256}});
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8);
  b.run(3000);
  std::string text = blocked(b);
  b.write(operation::write_only, 101, bench::pattern(8), data_va, 8);
  b.run(3000);
  text += " | " + blocked(b);
  b.send(operation::send_only, 102, bench::pattern(16));
  b.run(3000);
  return text + " | " + blocked(b);
}

/// A read of memory for a context; two, one behind the other, for a receive: the doorbell record and the descriptor.
TEST(admission, is_blocked_by_what_comes_from_memory_for_as_long) {
  EXPECT_EQ(blocked_with(130), "contexts 191 | contexts 191 | contexts 191; receive descriptors 275");
}
TEST(admission, is_blocked_for_longer_by_slower_memory) {
  EXPECT_EQ(blocked_with(230), "contexts 291 | contexts 291 | contexts 291; receive descriptors 475");
}

/// Of the 1500 cycles of a translation, those behind the 64 checks of 12 cycles that fill the slots (and two of its
/// channels).
TEST(admission, is_blocked_by_slots_that_wait_for_a_translation) {
  bench b;
  b.write(operation::write_only, 100, bench::pattern(8), data_va, 8);
  b.run(3000);
  b.s.slow_key[0x4400] = 1500;
  b.s.regions[0x4400] = b.s.regions[rkey];
  for (unsigned i = 0; i != 70; ++i) b.write(operation::write_only, 101 + i, bench::pattern(8), data_va, 8, 0x4400);
  b.run(6000);
  EXPECT_EQ(blocked(b), "contexts 191; slots " + std::to_string(1500 + 2 - 64 * 12));
}

/// Law 17, planted: a frame that the channel in front gives before its last byte is there.
TEST(admission, a_frame_without_its_last_byte_ends_the_run) {
  bench b;
  b.write(operation::write_only, 100, bench::pattern(512), data_va, 512);
  b.s.to_send.back()->first_byte = 60;
  try {
    b.run(30);
    FAIL() << "its bytes come from cycle 60 on";
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find("responder: byte 585 of a frame is used at cycle "), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace rnic::transport::test
