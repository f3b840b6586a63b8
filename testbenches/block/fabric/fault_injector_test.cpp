// SPDX-License-Identifier: Apache-2.0
// Every fault between two plugs: which frames, in what order, when, and with which bytes.
#include "model/fabric/fault_injector.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <memory>

#include "model/fabric/frame_damage.h"
#include "model/wire/ethernet.h"
#include "testbenches/block/mac/bench.h"

namespace rnic::fabric::test {
namespace {

using wire::operation;

constexpr sim::time_ps on_the_way = 15'150;  // 3 m

struct plug : payload::frame_port_if, payload::frame_sink_if {
  struct note {
    payload::frame_ptr frame;
    sim::time_ps arrival;
    wire::packet packet;
  };
  void deliver(payload::frame_ptr frame, sim::time_ps arrival) override {
    note n{std::move(frame), arrival, {}};
    EXPECT_TRUE(got.empty() || got.back().arrival <= arrival) << "back in time";
    wire::decode(n.frame->data(), n.frame->length, n.packet);
    got.push_back(std::move(n));
  }
  payload::frame_sink_if& receiver() override { return *this; }
  void attach(payload::frame_sink_if& to) override { line = &to; }
  payload::frame_sink_if* line = nullptr;
  std::vector<note> got;
};

/// A cable with a plan, and packets that can be told apart by PSN.
struct rig {
  explicit rig(const std::string& plan, std::uint64_t seed = 1)
      : clock("cable", base, {1000, 1, 0}),
        injector("faults", clock, parse_fault_plan(plan, "plan"), seed, pool, stats),
        line(a, b) {
    line.insert(injector);
    line.add_observer(before, cable::tap::before);
    line.add_observer(behind, cable::tap::behind);
  }

  /// A packet whose last bit is 100 ns after the one before it.
  void send(plug& from, operation op, std::uint32_t psn, std::uint32_t qpn = 0x48, std::uint32_t payload = 100,
            wire::encapsulation encap = wire::encapsulation::roce_v2_ipv4) {
    payload::frame_ptr f = pool.get();
    wire::packet p;
    p.encap = encap;
    p.sgid = p.dgid = wire::gid_from_ipv4(0x0a000001);
    p.dmac = {2, 0, 0, 0, 0, 1};
    p.udp_source = 0xc123;
    p.bth.opcode = wire::make_opcode(wire::transport::rc, op);
    p.bth.dest_qp = qpn;
    p.bth.psn = wire::psn_t(psn);
    p.payload_length = wire::traits(p.bth.opcode).payload ? payload : 0;
    if (op == operation::acknowledge) p.aeth.syndrome = syndrome;
    std::uint8_t* start = f->buffer.data() + payload::frame::payload_start;
    for (std::uint32_t i = 0; i < payload; ++i) start[i] = static_cast<std::uint8_t>(i + psn);
    const std::uint8_t* first = wire::build(p, start);
    f->begin = static_cast<std::uint32_t>(first - f->buffer.data());
    f->length = p.icrc_offset + 4;
    make_icrc_right(*f, p);
    make_fcs_right(*f);
    f->stamp = at + 20'000;
    at += 100'000;
    from.line->deliver(std::move(f), at);
  }
  void writes(unsigned count, std::uint32_t qpn = 0x48) {
    for (unsigned i = 0; i < count; ++i) send(a, operation::write_only, i, qpn);
  }
  std::vector<std::uint32_t> psns(const plug& p) const {
    std::vector<std::uint32_t> all;
    for (const auto& n : p.got) all.push_back(n.packet.bth.psn.value());
    return all;
  }
  std::uint64_t done(fault_action what, unsigned from = 0) const {
    return injector.counted(from).done[static_cast<unsigned>(what)];
  }
  static void run_us(std::uint64_t us) { mac::test::bench::run_ns(us * 1000); }

  sim::timebase base;
  sim::clock_domain clock;
  payload::frame_pool pool;
  sim::statistics stats;
  plug a, b;
  fault_injector injector;
  cable line;
  mac::test::line_log before, behind;
  sim::time_ps at = 0;
  std::uint8_t syndrome = 0x1f;
};

using list = std::vector<std::uint32_t>;

bool fcs_right(const payload::frame& f) { return f.fcs == crc32(0, f.data(), f.length); }
bool icrc_right(const payload::frame& f, const wire::packet& p) { return p.icrc == wire::icrc(f.data(), p); }

TEST(fault_injector, without_rules_nothing_changes) {
  rig r("");
  r.writes(3);
  r.send(r.b, operation::acknowledge, 2);
  ASSERT_EQ(r.b.got.size(), 3u);
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(r.b.got[i].arrival, (i + 1) * 100'000 + on_the_way);
  ASSERT_EQ(r.a.got.size(), 1u);
  EXPECT_EQ(r.injector.counted(0).frames, 3u);
  EXPECT_EQ(r.injector.counted(1).frames, 1u);
  EXPECT_EQ(r.behind.notes.size(), 4u);
}

TEST(fault_injector, drops_by_psn_and_transmission) {
  rig r("[[event]]\ntype = \"drop\"\npsn_offset = 1\niter = 2\n");
  for (const std::uint32_t psn : {7u, 8u, 9u, 8u, 8u}) r.send(r.a, operation::write_only, psn);
  EXPECT_EQ(r.psns(r.b), (list{7, 8, 9, 8}));
  EXPECT_EQ(r.b.got[3].arrival, 500'000 + on_the_way) << "the second one was lost";
  EXPECT_EQ(r.done(fault_action::drop), 1u);
  EXPECT_EQ(r.stats.value("faults.a_to_b.drop"), 1u);
  EXPECT_EQ(r.injector.hits(0), 1u);
  EXPECT_EQ(r.before.notes.size(), 5u);
  EXPECT_EQ(r.behind.notes.size(), 4u);
}

TEST(fault_injector, selects_by_direction_opcode_answer_qp_and_flow) {
  rig r(R"(
[[event]]
type = "drop"
direction = "b_to_a"
answer = "nak"
[[event]]
type = "drop"
opcode = "send"
[[event]]
type = "drop"
qpn = 0x50
psn = 5
[[event]]
type = "drop"
flow = 3
)");
  r.send(r.a, operation::write_only, 1, 0x48);
  r.send(r.a, operation::send_only, 2, 0x48);
  r.send(r.a, operation::write_only, 5, 0x50);
  r.send(r.a, operation::write_only, 6, 0x50);
  r.send(r.a, operation::write_only, 5, 0x48);
  r.send(r.a, operation::write_only, 8, 0x51);
  r.send(r.a, operation::acknowledge, 9, 0x52);  // responses are flows of their own
  EXPECT_EQ(r.psns(r.b), (list{1, 6, 5, 9}));
  r.send(r.b, operation::acknowledge, 1);
  r.syndrome = 0x60;
  r.send(r.b, operation::acknowledge, 2);
  r.send(r.b, operation::write_only, 3);
  EXPECT_EQ(r.psns(r.a), (list{1, 3}));
  EXPECT_EQ(r.injector.hits(0), 1u);
  EXPECT_EQ(r.injector.hits(3), 1u);
}

TEST(fault_injector, counts_every_and_from_to_by_flow) {
  rig r("[[event]]\ntype = \"drop\"\nfirst = 2\nlast = 6\nevery = 2\ntimes = 3\n");
  for (std::uint32_t i = 1; i <= 8; ++i) {
    r.send(r.a, operation::write_only, i, 0x48);
    r.send(r.a, operation::write_only, 100 + i, 0x49);
  }
  EXPECT_EQ(r.psns(r.b), (list{1, 101, 3, 103, 104, 5, 105, 6, 106, 7, 107, 8, 108}));
}

TEST(fault_injector, duplicates) {
  rig r("[[event]]\ntype = \"duplicate\"\nnth = 2\ncopies = 2\n");
  r.writes(3);
  EXPECT_EQ(r.psns(r.b), (list{0, 1, 1, 1, 2}));
  const auto bytes = [&](unsigned i) {
    const payload::frame& f = *r.b.got[i].frame;
    return std::vector<std::uint8_t>(f.data(), f.data() + f.length);
  };
  EXPECT_EQ(bytes(1), bytes(2));
  EXPECT_NE(r.b.got[1].frame->data(), r.b.got[2].frame->data());
  EXPECT_TRUE(fcs_right(*r.b.got[2].frame));
}

TEST(fault_injector, reorders_behind_the_next_of_the_same_qp) {
  rig r("[[event]]\ntype = \"reorder\"\npsn = 1\nqpn = 0x48\nframes = 2\n");
  r.send(r.a, operation::write_only, 1);
  r.send(r.a, operation::write_only, 50, 0x49);
  r.send(r.a, operation::write_only, 2);
  r.send(r.a, operation::write_only, 51, 0x49);
  r.send(r.a, operation::write_only, 3);
  r.send(r.a, operation::write_only, 4);
  EXPECT_EQ(r.psns(r.b), (list{50, 2, 51, 3, 1, 4}));
  EXPECT_GE(r.b.got[4].arrival, 500'000 + 80'000 + on_the_way) << "it takes its time on the line";
  EXPECT_LT(r.b.got[4].arrival, 600'000 + on_the_way);
  EXPECT_EQ(r.done(fault_action::reorder), 1u);
  EXPECT_EQ(r.injector.counted(0).hold_ended, 0u);
}

TEST(fault_injector, what_nobody_overtakes_goes_on_after_a_time) {
  rig r("[[event]]\ntype = \"reorder\"\npsn = 2\nhold_us = 3\n");
  r.writes(3);
  EXPECT_EQ(r.psns(r.b), (list{0, 1}));
  rig::run_us(10);
  EXPECT_EQ(r.psns(r.b), (list{0, 1, 2}));
  EXPECT_EQ(r.b.got[2].arrival, 300'000 + 3'000'000 + on_the_way);
  EXPECT_EQ(r.injector.counted(0).hold_ended, 1u);
  ASSERT_EQ(r.behind.notes.size(), 3u);
  EXPECT_EQ(r.behind.notes[2].first_bit, 3'300'000u - 80'000) << "it is as long as it was";
}

TEST(fault_injector, delays_and_lets_others_pass) {
  rig r("[[event]]\ntype = \"delay\"\npsn = 1\ndelay_ns = 1250\n");
  r.writes(4);
  rig::run_us(10);
  EXPECT_EQ(r.psns(r.b), (list{0, 2, 3, 1}));
  EXPECT_EQ(r.b.got[3].arrival, 200'000 + 1'250'000 + on_the_way);
}

TEST(fault_injector, payload_bit_under_right_and_wrong_fcs) {
  for (const bool right : {true, false}) {
    rig r(std::string("[[event]]\ntype = \"corrupt\"\npart = \"payload\"\noffset = 10\nbit = 0\nmade_right = \"") +
          (right ? "fcs" : "nothing") + "\"\n");
    r.send(r.a, operation::send_only, 3);
    const auto& n = r.b.got.at(0);
    EXPECT_EQ(n.frame->data()[n.packet.payload_offset + 10], static_cast<std::uint8_t>((10 + 3) ^ 1));
    EXPECT_EQ(fcs_right(*n.frame), right);
    EXPECT_FALSE(icrc_right(*n.frame, n.packet));
    EXPECT_EQ(r.done(fault_action::corrupt), 1u);
  }
}

TEST(fault_injector, header_field_as_a_wrong_sender_would_set_it) {
  rig r("[[event]]\ntype = \"corrupt\"\nfield = \"psn\"\nvalue = 0xabcdef\nmade_right = \"icrc\"\n");
  r.send(r.a, operation::send_only, 3);
  const auto& n = r.b.got.at(0);
  EXPECT_EQ(n.packet.bth.psn.value(), 0xabcdefu);
  EXPECT_TRUE(fcs_right(*n.frame));
  EXPECT_TRUE(icrc_right(*n.frame, n.packet));
}

TEST(fault_injector, fields_are_where_the_decoder_finds_them) {
  const struct {
    const char* field;
    std::uint64_t value;
    std::uint64_t (*read)(const wire::packet&);
  } cases[] = {
      {"dest_qp", 0x123456, [](const wire::packet& p) -> std::uint64_t { return p.bth.dest_qp; }},
      {"opcode", 0x04, [](const wire::packet& p) -> std::uint64_t { return p.bth.opcode; }},
      {"pkey", 0x7ffe, [](const wire::packet& p) -> std::uint64_t { return p.bth.pkey; }},
      {"version", 5, [](const wire::packet& p) -> std::uint64_t { return p.bth.version; }},
      {"solicited", 1, [](const wire::packet& p) -> std::uint64_t { return p.bth.solicited; }},
      {"migration", 1, [](const wire::packet& p) -> std::uint64_t { return p.bth.migration; }},
      {"ack_request", 1, [](const wire::packet& p) -> std::uint64_t { return p.bth.ack_request; }},
      {"reth_va", 0x123456789abc, [](const wire::packet& p) -> std::uint64_t { return p.reth.va; }},
      {"reth_rkey", 0xdeadbeef, [](const wire::packet& p) -> std::uint64_t { return p.reth.rkey; }},
      {"reth_length", 0x1234, [](const wire::packet& p) -> std::uint64_t { return p.reth.length; }},
      {"udp_source", 0x1234, [](const wire::packet& p) -> std::uint64_t { return p.udp_source; }},
      {"dmac", 0x020000000009, [](const wire::packet& p) -> std::uint64_t { return wire::to_u64(p.dmac); }},
      {"smac", 0x020000000009, [](const wire::packet& p) -> std::uint64_t { return wire::to_u64(p.smac); }},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.field);
    rig r(std::string("[[event]]\ntype = \"corrupt\"\nfield = \"") + c.field +
          "\"\nvalue = " + std::to_string(c.value) + "\n");
    r.send(r.a, operation::write_only, 3);
    EXPECT_EQ(c.read(r.b.got.at(0).packet), c.value);
  }
  rig none("[[event]]\ntype = \"corrupt\"\nfield = \"reth_va\"\nvalue = 1\n");
  none.send(none.a, operation::acknowledge, 3);
  EXPECT_EQ(none.injector.counted(0).not_possible, 1u);
  EXPECT_EQ(none.done(fault_action::corrupt), 0u);
}

TEST(fault_injector, icrc_and_fcs) {
  rig icrc("[[event]]\ntype = \"corrupt\"\npart = \"icrc\"\n");
  icrc.send(icrc.a, operation::send_only, 3);
  EXPECT_FALSE(icrc_right(*icrc.b.got.at(0).frame, icrc.b.got[0].packet));
  EXPECT_TRUE(fcs_right(*icrc.b.got[0].frame));
  rig fcs("[[event]]\ntype = \"corrupt\"\npart = \"fcs\"\n");
  fcs.send(fcs.a, operation::send_only, 3);
  EXPECT_TRUE(icrc_right(*fcs.b.got.at(0).frame, fcs.b.got[0].packet));
  EXPECT_FALSE(fcs_right(*fcs.b.got[0].frame));
}

TEST(fault_injector, marks_congestion_where_there_is_a_field_for_it) {
  for (const auto encap :
       {wire::encapsulation::roce_v2_ipv4, wire::encapsulation::roce_v2_ipv6, wire::encapsulation::roce_v1}) {
    rig r("[[event]]\ntype = \"ecn\"\n");
    r.send(r.a, operation::send_only, 3, 0x48, 100, encap);
    const auto& n = r.b.got.at(0);
    const bool v1 = encap == wire::encapsulation::roce_v1;
    EXPECT_EQ(n.packet.traffic_class & 3, v1 ? 0 : 3);
    EXPECT_EQ(n.packet.bth.psn.value(), 3u) << "the decoder has checked the IP checksum";
    EXPECT_TRUE(fcs_right(*n.frame));
    EXPECT_TRUE(icrc_right(*n.frame, n.packet));
    EXPECT_EQ(r.done(fault_action::mark_congestion), v1 ? 0u : 1u);
    EXPECT_EQ(r.injector.counted(0).not_possible, v1 ? 1u : 0u);
  }
}

TEST(fault_injector, rates_hold_and_follow_the_seed) {
  const auto run = [](std::uint64_t seed) {
    auto r = std::make_unique<rig>("[rates]\ndrop = 5\nduplicate = 5\n", seed);
    for (std::uint32_t i = 0; i < 20'000; ++i) r->send(r->a, operation::write_only, i);
    EXPECT_NEAR(static_cast<double>(r->done(fault_action::drop)), 1000, 150);
    EXPECT_NEAR(static_cast<double>(r->done(fault_action::duplicate)), 950, 150);
    return r->psns(r->b);
  };
  const list first = run(1);
  EXPECT_EQ(first, run(1));
  EXPECT_NE(first, run(2));
}

TEST(fault_injector, directions_do_not_know_each_other) {
  const auto run = [](bool other) {
    auto r = std::make_unique<rig>("[rates]\ndrop = 20\nreorder = 20\n");
    for (std::uint32_t i = 0; i < 1000; ++i) {
      r->send(r->a, operation::write_only, i);
      if (other)
        r->send(r->b, operation::write_only, i);
      else
        r->at += 100'000;
    }
    return r->psns(r->b);
  };
  EXPECT_EQ(run(false), run(true));
}

}  // namespace
}  // namespace rnic::fabric::test
