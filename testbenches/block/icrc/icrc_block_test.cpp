// SPDX-License-Identifier: Apache-2.0
#include "model/icrc/icrc_block.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <systemc>
#include <vector>

#include "model/icrc/icrc_model.h"
#include "model/sim/timebase.h"
#include "rtl/icrc/icrc_rtl.h"
#include "testbenches/bench/held_up.h"

namespace rnic::icrc {
namespace {

using frames = sim::fifo<payload::frame_ptr>;

/// Offers its frames as fast as they are taken; with a `width` beat by beat, one behind the other.
class feeder final : public sim::clocked_block {
 public:
  sim::fifo_out<payload::frame_ptr> out{*this};
  std::vector<payload::frame_ptr> waiting;
  unsigned width = 0;
  explicit feeder(sim::clock_domain& d) : clocked_block("feeder", d) { wake_next(); }

 private:
  void tick() override {
    if (next_ == waiting.size() || !out.can_push()) return;
    if (now() < free_) return wake_at(free_);
    const payload::frame_ptr& f = waiting[next_++];
    if (width != 0) {
      free_ = now() + payload::beats_of(f->length, width);
      payload::stream_out(out, f, now(), 0, width);
    } else {
      out.push(f);
    }
    wake_next();
  }
  sim::cycle_t free_ = 0;
  std::size_t next_ = 0;
};

class collector final : public sim::clocked_block {
 public:
  sim::fifo_in<payload::frame_ptr> in{*this};
  std::vector<payload::frame_ptr> taken;
  std::vector<sim::cycle_t> at;
  bool sometimes = false;
  collector(sim::clock_domain& d, sim::cycle_t open_at) : clocked_block("collector", d), open_at_(open_at) {}

 private:
  void tick() override {
    if (!in.can_pop()) return;
    if (now() < open_at_) return wake_at(open_at_);
    if (sometimes && (now() * 0x9e3779b97f4a7c15U) >> 61 != 0) return wake_next();  // in one cycle of eight
    taken.push_back(in.pop());
    at.push_back(now() - made_at_);
  }
  sim::cycle_t open_at_, made_at_ = now();
};

/// RoCE v2 over IPv4 with `payload` bytes (a multiple of 4) of a pattern.
payload::frame_ptr make_frame(payload::frame_pool& pool, std::uint8_t opcode, std::uint32_t payload,
                              std::uint8_t port) {
  payload::frame_ptr f = pool.get();
  std::uint8_t* at = f->buffer.data() + payload::frame::payload_start;
  for (std::uint32_t i = 0; i < payload; ++i) at[i] = static_cast<std::uint8_t>(i * 7 + payload);
  f->packet = wire::packet{};
  f->packet.bth.opcode = opcode;
  f->packet.payload_length = payload;
  const std::uint8_t* begin = wire::build(f->packet, at);
  f->begin = static_cast<std::uint32_t>(begin - f->buffer.data());
  f->length = f->packet.icrc_offset + 4;
  f->insert_icrc = true;
  f->port = port;
  return f;
}

/// By zlib, over a copy with ones in the fields that change on the way.
std::uint32_t zlib_icrc(const payload::frame& f) {
  std::vector<std::uint8_t> bytes(8, 0xff);
  bytes.insert(bytes.end(), f.data() + 14, f.data() + f.length - 4);
  for (const unsigned i : {1u, 8u, 10u, 11u, 26u, 27u, 32u}) bytes[8 + i] = 0xff;
  return static_cast<std::uint32_t>(crc32(0, bytes.data(), static_cast<uInt>(bytes.size())));
}

std::uint32_t stored_icrc(const payload::frame& f) {
  std::uint32_t word = 0;
  for (unsigned i = 4; i-- > 0;) word = word << 8 | f.data()[f.length - 4 + i];
  return word;
}

/// Transmit and receive with one engine each; ports 0 and 1 of the transmit side, requests and responses of the other.
struct bench {
  sim::clock_domain core;
  sim::span_recorder spans;
  icrc_insert insert;
  icrc_check check;
  frames to_insert_a, to_insert_b, port0, port1, to_check, requests, responses, groups;
  feeder a, b, received;
  collector out0, out1, request_out, response_out, group_out;

  enum class made_of { model, stepped_model, rtl };

  bench(sim::timebase& base, made_of what, sim::cycle_t open_at = 0, unsigned width = 16)
      : core("core", base, {2342, 1, 0}),
        insert("insert", core, 2, engine(what, width), spans),
        check("check", core, 1, engine(what, width), spans),
        to_insert_a("a", core, 4),
        to_insert_b("b", core, 4),
        port0("p0", core, 2),
        port1("p1", core, 2),
        to_check("c", core, 4),
        requests("rq", core, 2),
        responses("rs", core, 2),
        groups("gr", core, 2),
        a(core),
        b(core),
        received(core),
        out0(core, open_at),
        out1(core, 0),
        request_out(core, open_at),
        response_out(core, 0),
        group_out(core, 0) {
    for (frames* c : {&port0, &to_check}) c->forward_by(sim::forwarding::cut_through);  // port1 is store-and-forward
    a.out.bind(to_insert_a);
    b.out.bind(to_insert_b);
    insert.inputs[0].bind(to_insert_a);
    insert.inputs[1].bind(to_insert_b);
    insert.outputs[0].bind(port0);
    insert.outputs[1].bind(port1);
    out0.in.bind(port0);
    out1.in.bind(port1);
    received.out.bind(to_check);
    check.inputs[0].bind(to_check);
    check.requests.bind(requests);
    check.responses.bind(responses);
    check.groups.bind(groups);
    request_out.in.bind(requests);
    response_out.in.bind(responses);
    group_out.in.bind(groups);
  }
  static std::unique_ptr<icrc_engine_if> engine(made_of what, unsigned width) {
    if (what == made_of::rtl) return std::make_unique<rtl::icrc_rtl>(rtl::make_icrc_rtl(width), width);
    if (what == made_of::stepped_model)
      return std::make_unique<rtl::icrc_rtl>(std::make_unique<rtl::icrc_reference>(std::make_unique<icrc_model>(width)),
                                             width);
    return std::make_unique<icrc_model>(width);
  }
};

void run(double us = 20) { sc_core::sc_start(sc_core::sc_time(us, sc_core::SC_US)); }
constexpr std::uint8_t send_only = 0x04, acknowledge = 0x11;

void check_streaming(const collector& out, const std::vector<sim::cycle_t>& expected) {
  ASSERT_EQ(out.taken.size(), 3U);
  for (const auto& f : out.taken) EXPECT_EQ(stored_icrc(*f), zlib_icrc(*f));
  for (const auto& f : out.taken) EXPECT_FALSE(f->open);
  EXPECT_EQ(out.at, expected);
  for (std::size_t i = 1; i < 3; ++i)
    EXPECT_EQ(out.taken[i]->first_byte, payload::last_byte_at(*out.taken[i - 1], 16) + 1) << "back to back";
}

// Frames of 1082, 66 and 314 bytes are 68, 5 and 20 beats. Pushed at 1, taken at 2, 70, 75; the first byte leaves three
// cycles later and is seen a cycle behind, with store-and-forward the last one.
TEST(IcrcInsert, WritesZlibsCrcAndStreamsFramesBackToBack) {
  sim::timebase base;
  payload::frame_pool pool;
  std::vector<std::unique_ptr<bench>> benches;
  for (const auto what : {bench::made_of::model, bench::made_of::stepped_model, bench::made_of::rtl})
    for (const std::uint8_t port : {std::uint8_t{0}, std::uint8_t{1}}) {
      benches.push_back(std::make_unique<bench>(base, what));
      for (const std::uint32_t n : {1024U, 8U, 256U})
        benches.back()->a.waiting.push_back(make_frame(pool, send_only, n, port));
    }
  run();
  for (std::size_t i = 0; i < benches.size(); i += 2) {
    check_streaming(benches[i]->out0, {2 + 4, 70 + 4, 75 + 4});
    check_streaming(benches[i + 1]->out1, {2 + 4 + 67, 70 + 4 + 4, 75 + 4 + 19});
  }
}

/// Two frames of a SEND come in beat by beat, the first from edge 2 on.
struct verdict_bench : bench {
  verdict_bench(sim::timebase& base, payload::frame_pool& pool, made_of what, unsigned bytes, std::uint32_t payload)
      : bench(base, what, 0, bytes), width(bytes) {
    received.width = width;
    for (int i = 0; i < 2; ++i) {
      received.waiting.push_back(make_frame(pool, send_only, payload, 0));
      received.waiting.back()->packet.icrc = zlib_icrc(*received.waiting.back());
    }
  }
  /// Edge at which the first is seen behind the check.
  sim::cycle_t verdict() const {
    EXPECT_EQ(request_out.taken.size(), 2U);
    if (request_out.taken.size() != 2) return 0;
    const std::uint32_t length = request_out.taken[0]->length;
    const sim::cycle_t interval = request_out.at[1] - request_out.at[0];
    EXPECT_GE(interval, payload::beats_of(length, width));
    EXPECT_LE(interval, payload::beats_of(length, width) + 1);
    EXPECT_GT(request_out.at[0], 2 + (length - 1) / width) << "before its last byte: " << length << ", " << width;
    return request_out.at[0];
  }
  unsigned width;
};

TEST(IcrcCheck, VerdictComesBehindTheLastByte) {
  sim::timebase base;
  payload::frame_pool pool;
  std::vector<std::unique_ptr<verdict_bench>> benches, twins;
  using what = bench::made_of;
  const auto add = [&](unsigned width, std::uint32_t payload) {
    benches.push_back(std::make_unique<verdict_bench>(base, pool, what::model, width, payload));
  };
  add(16, 4096);
  add(1, 4096);
  add(16, 8);
  for (const unsigned width : {1U, 3U, 8U, 24U, 100U, 256U})
    for (const std::uint32_t payload : {0U, 4U, 64U, 1000U}) add(width, payload);
  const std::size_t others = benches.size();
  for (const unsigned width : {16U, 64U})
    for (const std::uint32_t payload :
         {0U, 4U, 8U, 12U, 16U, 20U, 24U, 60U, 64U, 68U, 72U, 76U, 80U, 84U, 128U, 1024U}) {
      add(width, payload);
      twins.push_back(std::make_unique<verdict_bench>(base, pool, what::rtl, width, payload));
    }
  run(60);
  // 4154 bytes are there from 2 to 261. The 259 beats from the IPv4 header on begin one later, at 3; the last one
  // enters at 261, the verdict is there three cycles behind it and seen a cycle later.
  EXPECT_EQ(benches[0]->verdict(), 261U + 3 + 1);
  // One by one: the last byte of the ICRC comes at 2 + 4153, the verdict in the next cycle.
  EXPECT_EQ(benches[1]->verdict(), 4155U + 1 + 1);
  // 66 bytes, 48 of them covered: beats at 3, 4, 5.
  EXPECT_EQ(benches[2]->verdict(), 5U + 3 + 1);
  for (std::size_t i = 3; i < others; ++i) benches[i]->verdict();
  for (std::size_t i = 0; i < twins.size(); ++i) EXPECT_EQ(twins[i]->verdict(), benches[others + i]->verdict()) << i;
}

/// Planted: has the result of a packet when its first beat has entered.
class hasty_engine final : public icrc_engine_if {
 public:
  unsigned beat_bytes() const override { return model_.beat_bytes(); }
  icrc_outputs outputs() const override { return {true, valid_, 0}; }
  icrc_outputs step(const icrc_beat& in, bool result_ready) override {
    const icrc_outputs now = outputs();
    if (result_ready) valid_ = false;
    if (in.valid && in.first) valid_ = true;
    return now;
  }
  void reset() override { valid_ = false; }
  result process(wire::encapsulation encap, const std::uint8_t* l3, std::size_t length) override {
    return model_.process(encap, l3, length);
  }

 private:
  icrc_model model_{16};
  bool valid_ = false;
};

// Law 17.
TEST(IcrcCheck, AVerdictBeforeTheLastByteEndsTheRun) {
  sim::timebase base;
  payload::frame_pool pool;
  sim::clock_domain core("core", base, {2342, 1, 0});
  sim::span_recorder spans;
  icrc_check check("check", core, 1, std::make_unique<hasty_engine>(), spans);
  frames in("in", core, 4), requests("requests", core, 2);
  in.forward_by(sim::forwarding::cut_through);
  feeder from(core);
  collector to(core, 0);
  from.width = 16;
  from.waiting.push_back(make_frame(pool, send_only, 1024, 0));
  from.out.bind(in);
  check.inputs[0].bind(in);
  check.requests.bind(requests);
  to.in.bind(requests);
  try {
    run();
    FAIL() << "the last byte came at cycle 69";
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find("check: byte 1081 of a frame is used at cycle 4 and comes at 69"),
              std::string::npos)
        << e.what();
  }
}

TEST(IcrcInsert, PassesOtherFramesUntouched) {
  sim::timebase base;
  payload::frame_pool pool;
  bench t(base, bench::made_of::model);
  t.a.waiting.push_back(make_frame(pool, send_only, 64, 1));
  t.a.waiting[0]->insert_icrc = false;
  run();
  ASSERT_EQ(t.out1.taken.size(), 1U);
  EXPECT_EQ(stored_icrc(*t.out1.taken[0]), 0U);
  EXPECT_EQ(t.insert.counters().frames_passed, 1U);
}

TEST(IcrcInsert, TakesInputsInTurn) {
  sim::timebase base;
  payload::frame_pool pool;
  bench t(base, bench::made_of::model);
  for (int i = 0; i < 4; ++i) {
    t.a.waiting.push_back(make_frame(pool, send_only, 64, 0));
    t.b.waiting.push_back(make_frame(pool, send_only, 128, 0));
  }
  run();
  ASSERT_EQ(t.out0.taken.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(t.out0.taken[i]->packet.payload_length, i % 2 == 0 ? 64U : 128U);
}

TEST(IcrcCheck, DropsAFrameWhenABitFlipsAndDividesByOpcode) {
  sim::timebase base;
  payload::frame_pool pool;
  bench t(base, bench::made_of::model);
  for (const std::uint8_t opcode : {send_only, acknowledge, send_only}) {
    t.received.waiting.push_back(make_frame(pool, opcode, opcode == acknowledge ? 0 : 64, 1));
    t.received.waiting.back()->packet.icrc = zlib_icrc(*t.received.waiting.back());
  }
  t.received.waiting[2]->data()[60] ^= 0x10;
  run();
  EXPECT_EQ(t.request_out.taken.size(), 1U);
  EXPECT_EQ(t.response_out.taken.size(), 1U);
  EXPECT_TRUE(t.group_out.taken.empty());
  EXPECT_EQ(t.check.counters().bad_icrc[1], 1U);
  EXPECT_EQ(t.check.counters().bad_icrc[0], 0U);
}

/// Number 0xffffff is that of groups for datagrams alone.
TEST(IcrcCheck, GivesDatagramsToGroupsToMulticast) {
  sim::timebase base;
  payload::frame_pool pool;
  bench t(base, bench::made_of::model);
  using wire::make_opcode, wire::operation, wire::transport;
  const auto arrives = [&](transport service, operation what, std::uint32_t qpn) {
    t.received.waiting.push_back(make_frame(pool, make_opcode(service, what), 64, 1));
    t.received.waiting.back()->packet.icrc = zlib_icrc(*t.received.waiting.back());
    t.received.waiting.back()->packet.bth.dest_qp = qpn;
  };
  arrives(transport::ud, operation::send_only, 0xffffff);
  arrives(transport::ud, operation::send_only_immediate, 0xffffff);
  arrives(transport::ud, operation::send_only, 0xfffffe);
  arrives(transport::uc, operation::send_only, 0xffffff);
  arrives(transport::rc, operation::send_only, 0xffffff);
  run();
  EXPECT_EQ(t.group_out.taken.size(), 2U);
  EXPECT_EQ(t.request_out.taken.size(), 3U);
}

void load(bench& t, payload::frame_pool& pool) {
  for (std::uint32_t i = 0; i < 30; ++i) {
    t.a.waiting.push_back(make_frame(pool, send_only, 4 * (i * 37 % 256), i % 3 == 0));
    t.b.waiting.push_back(make_frame(pool, acknowledge, 0, i % 2 == 0));
    t.received.waiting.push_back(make_frame(pool, i % 4 == 0 ? acknowledge : send_only, 4 * (i * 53 % 64), 0));
    t.received.waiting.back()->packet.icrc = zlib_icrc(*t.received.waiting.back()) ^ (i % 7 == 0);
  }
}

std::string held_up(const sim::clocked_block& b) { return rnic::bench::held_up(b.domain(), b.name() + ".engine"); }

void expect_same(const bench& x, const bench& y) {
  ASSERT_EQ(x.out0.at.size() + x.out1.at.size(), 60U);
  EXPECT_EQ(x.check.counters().bad_icrc[0], 5U);
  EXPECT_EQ(x.out0.at, y.out0.at);
  EXPECT_EQ(x.out1.at, y.out1.at);
  EXPECT_EQ(x.request_out.at, y.request_out.at);
  EXPECT_EQ(x.response_out.at, y.response_out.at);
  EXPECT_EQ(held_up(x.insert), held_up(y.insert));
  EXPECT_EQ(held_up(x.check), held_up(y.check));
}

TEST(IcrcBlocks, RtlSleepingAndOrderChangeNothing) {
  sim::timebase base, always({true, 0}), shuffled({false, 77});
  payload::frame_pool pool;
  using what = bench::made_of;
  bench model(base, what::model, 700), rtl(base, what::rtl, 700), stepped(base, what::stepped_model, 700);
  bench ticking(always, what::model, 700), other(shuffled, what::rtl, 700);
  for (bench* t : {&model, &rtl, &stepped, &ticking, &other}) load(*t, pool);
  run();
  expect_same(model, rtl);
  expect_same(model, stepped);
  expect_same(model, ticking);
  expect_same(model, other);
  for (std::size_t i = 0; i < model.out0.taken.size(); ++i) {
    EXPECT_EQ(stored_icrc(*model.out0.taken[i]), stored_icrc(*rtl.out0.taken[i]));
    EXPECT_EQ(stored_icrc(*model.out0.taken[i]), zlib_icrc(*model.out0.taken[i]));
  }
}

// The cycles that the model computes are those that it and the RTL have when they are clocked, whatever stalls them.
TEST(IcrcBlocks, BackPressureStallsModelAndRtlAlike) {
  sim::timebase base;
  payload::frame_pool pool;
  using what = bench::made_of;
  bench model(base, what::model), rtl(base, what::rtl), stepped(base, what::stepped_model);
  for (bench* t : {&model, &rtl, &stepped}) {
    load(*t, pool);
    for (collector* c : {&t->out0, &t->out1, &t->request_out, &t->response_out}) c->sometimes = true;
    for (std::size_t i = 0; i < 30; i += 3) {  // 28 bytes behind the Ethernet header are one beat
      t->b.waiting[i]->insert_icrc = false;
      t->b.waiting[i]->length = 42;
    }
  }
  run();
  expect_same(model, rtl);
  expect_same(model, stepped);
}

TEST(IcrcInsert, AFullOutputLeavesThreeFramesInTheEngine) {
  using what = bench::made_of;
  sim::timebase base;
  payload::frame_pool pool;
  bench model(base, what::model, 5000), rtl(base, what::rtl, 5000);
  for (bench* t : {&model, &rtl}) {
    for (int i = 0; i < 8; ++i) t->a.waiting.push_back(make_frame(pool, send_only, 64, 0));
  }
  run(4);
  // Two in the channel; one's result, one in the CRC register, one whose first beat is masked.
  EXPECT_EQ(model.insert.counters().frames_inserted, 5U);
  EXPECT_EQ(rtl.insert.counters().frames_inserted, 5U);
  run(16);
  EXPECT_EQ(model.out0.taken.size(), 8U);
  // 104 bytes are 7 beats, the frame is 8. Room in the channel from 5001 on: first the result, then two cycles for the
  // one in the CRC register; the fifth has its other six beats to go, and behind it they follow each other.
  EXPECT_EQ(model.out0.at, (std::vector<sim::cycle_t>{5000, 5001, 5002, 5004, 5011, 5019, 5027, 5035}));
  EXPECT_EQ(rtl.out0.at, model.out0.at);
  // The fifth entered at 34, which is eight cycles; the sixth at 5009, behind its last beat.
  EXPECT_EQ(held_up(model.insert), "port 1 4967; ");
  EXPECT_EQ(held_up(rtl.insert), "port 1 4967; ");
}

// A frame that is a single beat has no other to come: one more of them can be offered.
TEST(IcrcInsert, AFullOutputLeavesFourFramesOfOneBeatInTheEngine) {
  using what = bench::made_of;
  sim::timebase base;
  payload::frame_pool pool;
  bench model(base, what::model, 5000, 64), stepped(base, what::stepped_model, 5000, 64);
  for (bench* t : {&model, &stepped}) {
    for (int i = 0; i < 8; ++i) t->a.waiting.push_back(make_frame(pool, send_only, 0, 0));
  }
  run(4);
  // Two in the channel; one's result, one in the CRC register, one that is masked, one that waits in front of it.
  EXPECT_EQ(model.insert.counters().frames_inserted, 6U);
  EXPECT_EQ(stepped.insert.counters().frames_inserted, 6U);
  run(16);
  EXPECT_EQ(model.out0.taken.size(), 8U);
  EXPECT_EQ(stepped.out0.at, model.out0.at);
}

TEST(IcrcCheck, SaysByWhomItIsHeldUp) {
  sim::timebase base;
  payload::frame_pool pool;
  bench t(base, bench::made_of::model, 5000);
  for (int i = 0; i < 8; ++i) {
    t.received.waiting.push_back(make_frame(pool, send_only, 64, 0));
    t.received.waiting.back()->packet.icrc = zlib_icrc(*t.received.waiting.back());
  }
  run();
  EXPECT_EQ(t.request_out.taken.size(), 8U);
  EXPECT_EQ(held_up(t.check), "responder 4967; ") << "as on the other side";
}

}  // namespace
}  // namespace rnic::icrc
