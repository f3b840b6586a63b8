// SPDX-License-Identifier: Apache-2.0
// Operations on keys to the cycle, and in turn.
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "model/sim/memory_ports.h"
#include "testbenches/bench/held_up.h"
#include "testbenches/block/icm/translation_rig.h"

namespace {
using namespace translation_test;
using cycle = sim::cycle_t;

/// One of the two that ask, with the revocations' channels when it is one that must answer them.
class asker : public sim::clocked_block {
 public:
  asker(sim::clock_domain& d, icm::key_engine& engine, unsigned n, bool revocations)
      : clocked_block("asker", d),
        request_(*this),
        response_(*this),
        revoke_(*this),
        revoked_(*this),
        requests_("request", d, 4),
        responses_("response", d, 4),
        revokes_("revoke", d, 2),
        answers_("revoked", d, 2) {
    request_.bind(requests_);
    engine.request[n].bind(requests_);
    engine.response[n].bind(responses_);
    response_.bind(responses_);
    if (!revocations) return;
    engine.revoke[n].bind(revokes_);
    revoke_.bind(revokes_);
    revoked_.bind(answers_);
    engine.revoked[n].bind(answers_);
  }
  void ask(const icm::key_operation& o) {
    todo_.push_back(o);
    wake_next();
  }
  std::map<std::uint64_t, cycle> asked, answered;
  std::map<std::uint64_t, icm::key_status> status;
  std::vector<std::uint32_t> revoked;
  unsigned slowly = 0;  ///< cycles until a revocation is answered

 private:
  void tick() override {
    for (; response_.can_pop(); response_.drop()) {
      answered[response_.front().tag] = now();
      status[response_.front().tag] = response_.front().status;
    }
    if (revoke_.can_pop()) {
      revoked.push_back(revoke_.pop().key);
      answer_at_ = now() + slowly;
      if (slowly != 0) wake_at(answer_at_);
    }
    if (answer_at_ == now()) revoked_.push({revoked.back()});
    while (!todo_.empty() && request_.claim()) {
      asked[todo_.front().tag] = now();
      request_.push(todo_.front());
      todo_.pop_front();
    }
  }
  sim::fifo_out<icm::key_operation> request_;
  sim::fifo_in<icm::key_answer> response_;
  sim::fifo_in<icm::key_revocation> revoke_;
  sim::fifo_out<icm::key_revocation> revoked_;
  sim::fifo<icm::key_operation> requests_;
  sim::fifo<icm::key_answer> responses_;
  sim::fifo<icm::key_revocation> revokes_, answers_;
  std::deque<icm::key_operation> todo_;
  cycle answer_at_ = sim::never;
};

struct keys : rig {
  explicit keys(const icm::translation_config& c = at_once(), bool revocations = false)
      : rig(c), first(clock, tpt.keys(), 0, revocations), second(clock, tpt.keys(), 1, revocations) {
    memory.attach(tpt.keys().dma);
    region(0x124, 0x45, 7, 0x10000, 0x8000, 0x200);
    for (const unsigned slot : {0x23u, 0x24u})  // for fast registration, and may be invalidated
      memory.be32(mpt_host + slot * 64 + 0xc, 1u << 27 | 3u << 24 | 7);
  }
  static icm::key_operation invalidate(std::uint32_t index, std::uint64_t tag) {
    icm::key_operation o;
    o.key = index << 8 | 0x45;
    o.pd = 7;
    o.tag = tag;
    return o;
  }
  asker first, second;
};

cycle took(const asker& a, std::uint64_t tag) { return a.answered.at(tag) - a.asked.at(tag); }

/// Taken after 1, 40 cycles of the operation; a read of 100 with a cycle each way, a write that is told after 3 with a
/// cycle each way; the answer is seen a cycle later: 1 + 40 + 102 + 5 + 1. The entry that was read and the one that has
/// no meaning any more are written on chip one after the other: 1.
TEST(key_engine, an_entry_that_is_not_on_chip) {
  keys b;
  b.first.ask(keys::invalidate(0x123, 1));
  b.run(300);
  EXPECT_EQ(b.first.status.at(1), icm::key_status::ok);
  EXPECT_EQ(took(b.first, 1), 150u);
  ASSERT_EQ(b.memory.log.size(), 2u);
  EXPECT_EQ(b.memory.log[0].address, mpt_host + 0x23 * 64);
  EXPECT_EQ(b.memory.log[1].at - b.memory.log[0].at, 103u);
  EXPECT_EQ(b.tpt.keys().counters().invalidations, 1u);
}

TEST(key_engine, an_entry_on_chip) {
  keys b;
  b.answer(b.key(0x10010, 64, 1));
  b.first.ask(keys::invalidate(0x123, 1));
  b.run(300);
  EXPECT_EQ(took(b.first, 1), 1u + 40 + 5 + 1);
  EXPECT_EQ(b.answer(b.key(0x10010, 64, 2)).status, translate_status::bad_key) << "there is no such key any more";
}

TEST(key_engine, the_time_of_an_operation_is_its_parameter) {
  icm::translation_config c = at_once();
  c.keys.operation_cycles = 7;
  keys b(c);
  b.answer(b.key(0x10010, 64, 1));
  b.first.ask(keys::invalidate(0x123, 1));
  b.run(300);
  EXPECT_EQ(took(b.first, 1), 1u + 7 + 5 + 1);
  EXPECT_EQ(rnic::bench::busy_cycles(b.clock, "tpt.keys"), 7u);
}

/// One that is refused writes nothing.
TEST(key_engine, a_refusal_is_known_when_the_entry_is) {
  keys b;
  auto wrong = keys::invalidate(0x123, 1);
  wrong.pd = 8;
  b.first.ask(wrong);
  b.run(300);
  EXPECT_EQ(b.first.status.at(1), icm::key_status::wrong_owner);
  EXPECT_EQ(took(b.first, 1), 1u + 40 + 102 + 1);
  EXPECT_EQ(b.memory.writes(), 0u);
  EXPECT_EQ(b.tpt.keys().counters().refused, 1u);
  EXPECT_EQ(b.tpt.keys().counters().invalidations, 0u);
}

/// One at a time: the second begins when the first is answered, and the clients take turns.
TEST(key_engine, two_that_ask_in_one_cycle) {
  keys b;
  for (const std::uint32_t index : {0x123u, 0x124u}) {  // bring both on chip
    auto r = b.key(0x10010, 64, index);
    r.key = index << 8 | 0x45;
    b.answer(r);
  }
  b.first.ask(keys::invalidate(0x123, 1));
  b.first.ask(keys::invalidate(0x123, 2));
  b.second.ask(keys::invalidate(0x124, 3));
  b.run(400);
  ASSERT_EQ(b.first.asked.at(1), b.second.asked.at(3));
  EXPECT_EQ(took(b.first, 1), 47u);
  EXPECT_EQ(took(b.second, 3), 47u + 46) << "behind the first client's first and before its second";
  EXPECT_EQ(took(b.first, 2), 47u + 46 + 46 - 1) << "asked a cycle after the others";
}

/// Both clients have to say that nothing of the key is under way: the answer waits for the slower one.
TEST(key_engine, an_answer_waits_for_both_revocations) {
  keys b(at_once(), true);
  b.second.slowly = 30;
  b.answer(b.key(0x10010, 64, 1));
  b.first.ask(keys::invalidate(0x123, 1));
  b.run(300);
  EXPECT_EQ(b.first.revoked, std::vector<std::uint32_t>{0x12345});
  EXPECT_EQ(b.second.revoked, std::vector<std::uint32_t>{0x12345});
  EXPECT_EQ(took(b.first, 1), 47u + 2 + 30) << "a cycle each way, and what the second took";
  EXPECT_EQ(b.tpt.keys().counters().revocations, 1u);
}

/// Memory: a read of 100 and a write of 3, each with a cycle each way. Entries: that which was read takes the write
/// port for a cycle. Holders: a cycle each way, and 30 of the second.
TEST(key_engine, says_by_whom_it_is_held_up) {
  keys b(at_once(), true);
  b.second.slowly = 30;
  b.first.ask(keys::invalidate(0x123, 1));
  b.run(300);
  EXPECT_EQ(took(b.first, 1), 1u + 40 + 102 + 1 + 5 + 32 + 1);
  EXPECT_EQ(rnic::bench::held_up(b.clock, "tpt.keys"), "memory 107; entries 1; holders 32; ");
}

/// Two pages of region 0x124, which is free: its translations are those at 0x200.
struct registration : keys {
  explicit registration(const icm::translation_config& c = at_once()) : keys(c) {
    memory.be32(entry, free_region);
    memory.be32(entry + 0x34, 8);  // room for so many
    for (unsigned i = 0; i < 2; ++i) memory.be64(page_list + 8 * i, (0x7000000 + 0x1000 * i) | 1);
    icm::key_operation o = invalidate(0x124, 1);
    o.what = icm::key_operation::kind::fast_register;
    o.start = 0x10000;
    o.length = 0x2000;
    o.page_list = page_list;
    first.ask(o);
  }
  static constexpr std::uint64_t entry = mpt_host + 0x24 * 64, page_list = 0x30000;
  static constexpr std::uint32_t free_region = 3u << 28 | 1u << 17 | 1u << 8, by_software = 0xfu << 28;
};

/// The write port of the entries on chip, in one cycle wanted by what was fetched for a translation and by an
/// invalidation: the entry that was fetched is written first, the other one in the next cycle. `apart`: cycles between
/// the two.
struct write_port : keys {
  explicit write_port(unsigned ports) : keys(with(ports)) { tpt.announce(stats); }
  static icm::translation_config with(unsigned ports) {
    icm::translation_config c = at_once();
    c.mpt_write_ports = ports;
    return c;
  }
  /// The invalidation of an entry on chip is asked for 62 cycles behind a translation that misses: 1 + 102 cycles to
  /// where the latter's entry is written, 1 + 40 to where the former's is.
  void both(int apart) {
    answer(key(0x10010, 64, 1));
    auto other = key(0x10010, 64, 2);
    other.key = 0x124u << 8 | 0x45;
    users[0]->ask(other);
    run(static_cast<unsigned>(62 + apart));
    first.ask(invalidate(0x123, 1));
    run(400);
    translation = users[0]->answered.at(2) - users[0]->asked.at(2);
    invalidation = took(first, 1);
  }
  std::uint64_t waits(const char* user) const { return stats.value(std::string("tpt.mpt_memory.") + user + ".waits"); }
  sim::statistics stats;
  cycle translation = 0, invalidation = 0;
};

TEST(key_engine, an_entry_that_was_fetched_is_written_before_one_that_changes) {
  write_port b(1);
  b.both(0);
  EXPECT_EQ(b.translation, 210u);
  EXPECT_EQ(b.invalidation, 47u + 1);
  EXPECT_EQ(b.waits("keys"), 1u);
  EXPECT_EQ(b.waits("fills"), 0u);
}
TEST(key_engine, an_entry_changes_beside_another_one_where_there_are_two_ports) {
  write_port b(2);
  b.both(0);
  EXPECT_EQ(b.invalidation, 47u);
  EXPECT_EQ(b.waits("keys"), 0u);
}
void expect_no_wait(int apart) {
  write_port b(1);
  b.both(apart);
  EXPECT_EQ(b.translation, 210u);
  EXPECT_EQ(b.invalidation, 47u);
  EXPECT_EQ(b.waits("keys") + b.waits("fills"), 0u);
}
TEST(key_engine, a_cycle_before_a_fetched_entry_an_invalidation_does_not_wait) { expect_no_wait(-1); }
TEST(key_engine, a_cycle_behind_a_fetched_entry_an_invalidation_does_not_wait) { expect_no_wait(1); }

/// The read ports of the entries on chip, in one cycle wanted by an invalidation and by a translation, which is asked
/// for 40 cycles later: the look-up comes first.
struct read_port : keys {
  explicit read_port(unsigned ports) : keys(with(ports)) {
    tpt.announce(stats);
    answer(key(0x10010, 64, 1));
    answer(of_second(0));
    first.ask(invalidate(0x123, 1));
    run(40);
    auto other = key(0x10010, 64, 2);
    users[0]->ask(other);
    run(400);
  }
  /// Of region 0x124, on chip.
  icm::translate_request of_second(std::uint64_t tag) const {
    icm::translate_request r = key(0x10010, 64, tag);
    r.key = 0x124 << 8 | 0x45;
    return r;
  }
  static icm::translation_config with(unsigned ports) {
    icm::translation_config c = at_once();
    c.mpt_read_ports = ports;
    return c;
  }
  std::uint64_t waits(const char* user) const { return stats.value(std::string("tpt.mpt_reads.") + user + ".waits"); }
  sim::statistics stats;
};

TEST(key_engine, an_entry_is_read_behind_that_of_a_look_up_where_there_is_one_port) {
  const read_port b(1);
  EXPECT_EQ(took(b.first, 1), 47u + 1);
  EXPECT_EQ(b.waits("keys"), 1u);
  EXPECT_EQ(b.waits("look_up"), 0u);
}
TEST(key_engine, an_entry_is_read_beside_that_of_a_look_up) {
  const read_port b(2);
  EXPECT_EQ(took(b.first, 1), 47u);
  EXPECT_EQ(b.waits("keys"), 0u);
}

/// Two translations are asked for one behind the other, and with one port the first of the two takes it: the engine,
/// refused, has it in the next cycle before the second.
TEST(key_engine, an_entry_is_read_before_a_second_look_up) {
  read_port b(1);
  b.first.ask(keys::invalidate(0x124, 2));
  b.run(40);
  for (const std::uint64_t tag : {3, 4}) b.users[0]->ask(b.of_second(tag));
  b.run(400);
  EXPECT_EQ(took(b.first, 2), 47u + 1);
  EXPECT_EQ(b.users[0]->answered.at(3) - b.users[0]->asked.at(3), 6u);
  EXPECT_EQ(b.users[0]->answered.at(4) - b.users[0]->asked.at(4), 6u + 1);
  EXPECT_EQ(b.waits("keys"), 1u + 1);
  EXPECT_EQ(b.waits("look_up"), 1u);
}

/// Window and region are on chip: the window is read after 1 + 40 cycles, the region in the next one, however many
/// ports there are. Both are written to memory, five cycles each, and the answer is seen a cycle later.
void expect_a_binding_of(unsigned ports) {
  keys b(read_port::with(ports));
  b.memory.be32(mpt_host + 0x23 * 64, 1u << 17 | 1u << 15 | 0x7c00u | 1u << 8);
  const std::uint64_t window = mpt_host + 0x30 * 64;
  b.memory.be32(window + 8, 2u << 24 | 0x30);
  b.memory.be32(window + 0xc, 3u << 24 | 7);
  b.answer(b.key(0x10010, 64, 1));
  auto through = b.key(0x10010, 64, 2);
  through.key = 0x30 << 8 | 2;
  ASSERT_EQ(b.answer(through).status, translate_status::window_not_bound);
  icm::key_operation o;
  o.what = icm::key_operation::kind::bind;
  o.key = 0x30 << 8 | 2;
  o.lkey = 0x123 << 8 | 0x45;
  o.rights = icm::right_remote_read;
  o.pd = 7;
  o.start = 0x10000;
  o.length = 0x1000;
  o.tag = 1;
  const auto reads = [&] { return b.clock.memories().front()->accesses(1); };
  const std::uint64_t before = reads();
  b.first.ask(o);
  b.run(300);
  ASSERT_EQ(b.first.status.at(1), icm::key_status::ok);
  EXPECT_EQ(took(b.first, 1), 1u + 40 + 1 + 5 + 5 + 1);
  EXPECT_EQ(reads() - before, 3u) << "the window again, before it is written";
}
TEST(key_engine, a_binding_reads_window_and_region_in_two_cycles) { expect_a_binding_of(1); }
TEST(key_engine, a_binding_reads_them_in_two_cycles_where_there_are_two_ports) { expect_a_binding_of(2); }

/// The entry is known after 143 cycles, the page list 103 later, the translations are written in 5, and the entry.
TEST(key_engine, a_fast_registration_writes_translations_and_entry) {
  registration b;
  b.run(400);
  EXPECT_EQ(b.first.status.at(1), icm::key_status::ok);
  EXPECT_EQ(b.memory.get32(b.entry) >> 28, 0u);
  EXPECT_EQ(b.memory.get32(mtt_host + 0x20c), 0x7001001u);
  EXPECT_EQ(b.tpt.keys().counters().registrations, 1u);
}

/// Firmware takes the entry back while the page list is read: it stays software's.
TEST(key_engine, an_entry_taken_back_meanwhile_is_not_written) {
  registration b;
  b.run(200);
  b.memory.be32(b.entry, b.by_software | b.free_region);
  b.cr(icm::cr::tpt_index, 0x124);
  b.cr(icm::cr::tpt_command, icm::cr::tpt_command_drop_mpt);
  b.run(500);
  EXPECT_EQ(b.first.status.at(1), icm::key_status::wrong_state);
  EXPECT_EQ(b.memory.get32(b.entry) >> 28, 0xfu);
  EXPECT_EQ(b.tpt.keys().counters().registrations, 0u);
  EXPECT_EQ(b.tpt.keys().counters().refused, 1u);
}

/// A line of old translations has come and is not usable yet when they are written anew: it is not used, nor kept.
TEST(key_engine, translations_fetched_before_they_were_registered_are_fetched_again) {
  icm::translation_config c = at_once();
  c.miss_cycles = 20;
  registration b(c);
  auto of_buffer = b.key(0, 16, 7);
  of_buffer.what = icm::translate_request::kind::buffer;
  of_buffer.log_page = 12;
  of_buffer.buffer_mtt = 0x200;
  b.run(140);
  b.users[0]->ask(of_buffer);
  b.run(500);
  EXPECT_EQ(b.first.status.at(1), icm::key_status::ok);
  EXPECT_LT(b.users[0]->asked.at(7) + 102, b.first.answered.at(1));
  EXPECT_EQ(b.tpt.counters().stale, 1u);
  EXPECT_EQ(b.users[0]->answers.at(7).segments[0].address, 0x7000000u);
  EXPECT_EQ(b.answer(of_buffer).segments[0].address, 0x7000000u);
}

}  // namespace
