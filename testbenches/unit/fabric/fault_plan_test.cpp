// SPDX-License-Identifier: Apache-2.0
// Fault plans from text: every field, and one line for every mistake.
#include "model/fabric/fault_plan.h"

#include <gtest/gtest.h>

#include "model/sim/check.h"
#include "model/wire/packet.h"

namespace rnic::fabric {
namespace {

TEST(fault_plan, every_field) {
  const fault_plan p = parse_fault_plan(R"(
seed = 42
capture = "before"
[rates]
drop = 1.5
corrupt = 100
[[event]]
type = "drop"
name = "second write"
direction = "a_to_b"
opcode = ["rc_rdma_write_only", 17]
qpn = 0x208
psn = 0xfffffe
iter = 2
expect = { completion = "retry_exceeded", counter = "timeouts" }
[[event]]
type = "reorder"
flow = 3
psn_offset = 4
frames = 5
hold_us = 7
times = 2
[[event]]
type = "corrupt"
field = "psn"
value = 77
made_right = "icrc"
first = 10
last = 20
every = 3
[[event]]
type = "corrupt"
part = "payload"
offset = 9
bit = 3
[[event]]
type = "duplicate"
copies = 4
probability = 25
[[event]]
type = "delay"
delay_ns = 1500
answer = "rnr_nak"
[[event]]
type = "ecn"
frames_of = "roce"
)",
                                        "plan");
  EXPECT_EQ(p.seed, 42u);
  EXPECT_TRUE(p.capture_before);
  ASSERT_EQ(p.rules.size(), 9u);
  const fault_rule& drop = p.rules[0];
  EXPECT_EQ(drop.action, fault_action::drop);
  EXPECT_EQ(drop.name, "second write");
  EXPECT_EQ(drop.directions, 1u);
  EXPECT_EQ(drop.opcodes.count(), 2u);
  EXPECT_TRUE(drop.opcodes[0x0a] && drop.opcodes[0x11]);
  EXPECT_EQ(drop.qpn, 0x208u);
  EXPECT_EQ(drop.by_psn, fault_rule::psn_kind::absolute);
  EXPECT_EQ(drop.psn, 0xfffffeu);
  EXPECT_EQ(drop.first, 2u);
  EXPECT_EQ(drop.last, 2u);
  EXPECT_EQ(drop.completion, "retry_exceeded");
  EXPECT_EQ(drop.counter, "timeouts");
  const fault_rule& reorder = p.rules[1];
  EXPECT_EQ(reorder.flow, 3u);
  EXPECT_EQ(reorder.by_psn, fault_rule::psn_kind::relative);
  EXPECT_EQ(reorder.psn, 4u);
  EXPECT_EQ(reorder.frames, 5u);
  EXPECT_EQ(reorder.hold_ps, 7'000'000u);
  EXPECT_EQ(reorder.times, 2u);
  const fault_rule& field = p.rules[2];
  EXPECT_EQ(field.part, frame_part::header);
  EXPECT_EQ(field.field, header_field::psn);
  EXPECT_TRUE(field.by_value);
  EXPECT_EQ(field.value, 77u);
  EXPECT_EQ(field.right, made_right::icrc);
  EXPECT_EQ(field.first, 10u);
  EXPECT_EQ(field.last, 20u);
  EXPECT_EQ(field.every, 3u);
  EXPECT_EQ(p.rules[3].part, frame_part::payload);
  EXPECT_TRUE(p.rules[3].by_offset);
  EXPECT_EQ(p.rules[3].offset, 9u);
  EXPECT_EQ(p.rules[3].bit, 3u);
  EXPECT_EQ(p.rules[3].right, made_right::fcs);
  EXPECT_EQ(p.rules[4].copies, 4u);
  EXPECT_EQ(p.rules[4].probability, fault_rule::certain / 4);
  EXPECT_EQ(p.rules[5].delay_ps, 1'500'000u);
  EXPECT_EQ(p.rules[5].answer, answer_kind::rnr_nak);
  EXPECT_EQ(p.rules[6].action, fault_action::mark_congestion);
  EXPECT_TRUE(p.rules[6].roce_only);
  EXPECT_EQ(p.rules[7].action, fault_action::drop);  // rates come last
  EXPECT_EQ(p.rules[8].probability, fault_rule::certain);
}

TEST(fault_plan, outages) {
  const fault_plan p = parse_fault_plan(
      "[[outage]]\ndown_us = 7\n[[outage]]\nport = 2\ndown_us = 0\nlasts_us = 3\nevery_us = 10\ntimes = 4\n", "plan");
  ASSERT_EQ(p.outages.size(), 2u);
  EXPECT_FALSE(p.empty());
  EXPECT_TRUE(p.rules.empty());
  EXPECT_EQ(p.outages[0].port, 0u);
  EXPECT_EQ(p.outages[0].down_ps, 7'000'000u);
  EXPECT_EQ(p.outages[0].lasts_ps, outage::for_good);
  EXPECT_EQ(p.outages[0].times, 1u);
  EXPECT_EQ(p.outages[1].port, 2u);
  EXPECT_EQ(p.outages[1].lasts_ps, 3'000'000u);
  EXPECT_EQ(p.outages[1].every_ps, 10'000'000u);
  EXPECT_EQ(p.outages[1].times, 4u);
}

TEST(fault_plan, opcodes_by_the_beginning_of_their_names) {
  const auto codes = [](const std::string& word) {
    return parse_fault_plan("[[event]]\ntype = \"drop\"\nopcode = \"" + word + "\"\n", "plan").rules[0].opcodes;
  };
  EXPECT_TRUE(codes("rdma_read_response")[0x0d] && codes("rdma_read_response")[0x10]);
  EXPECT_FALSE(codes("rdma_read_response")[0x0c]);
  EXPECT_TRUE(codes("send")[0x00] && codes("send")[0x17] && codes("send")[0x64]);
  EXPECT_FALSE(codes("rc_send")[0x64]);
  EXPECT_EQ(codes("rc_send_only").count(), 1u);  // not SEND Only Immediate
  EXPECT_EQ(codes("cnp").count(), 1u);
  EXPECT_TRUE(codes("acknowledge")[0x11]);
}

struct mistake {
  const char* text;
  const char* line;  // as in the message
  std::vector<const char*> words;
};

const mistake mistakes[] = {
    {"seed = 0\n", ":1:", {"seed", "0", "1 to "}},
    {"sed = 1\n", ":1:", {"no field sed", "seed"}},
    {"capture = \"front\"\n", ":1:", {"capture", "front", "behind, before"}},
    {"[rates]\ndrop = 101\n", ":2:", {"rates: drop", "101", "0 to 100"}},
    {"[rates]\ndrop = \"x\"\n", ":2:", {"rates: drop", "0 to 100"}},
    {"[rates]\nlose = 1\n", ":2:", {"rates: no field lose", "drop"}},
    {"[event]\ntype = \"drop\"\n", ":1:", {"[[event]]"}},
    {"[[event]]\nqpn = 1\n", ":1:", {"event 1: type", "missing", "drop"}},
    {"[[event]]\ntype = \"lose\"\n", ":2:", {"event 1: type", "lose", "duplicate"}},
    {"[[event]]\ntype = \"drop\"\n[[event]]\ntype = \"drop\"\nqpn = 16777216\n",
     ":5:",
     {"event 2: qpn", "16777216", "0 to 16777215"}},
    {"[[event]]\ntype = \"drop\"\npsn = -1\n", ":3:", {"psn", "-1", "0 to 16777215"}},
    {"[[event]]\ntype = \"drop\"\npsn = 1\npsn_offset = 1\n", ":4:", {"psn_offset", "psn"}},
    {"[[event]]\ntype = \"drop\"\niter = 1\n", ":3:", {"iter", "psn"}},
    {"[[event]]\ntype = \"drop\"\nnth = 0\n", ":3:", {"nth", "0", "1 to "}},
    {"[[event]]\ntype = \"drop\"\nnth = 1.5\n", ":3:", {"nth", "1.5", "1 to "}},
    {"[[event]]\ntype = \"drop\"\nfirst = 5\nlast = 4\n", ":4:", {"last", "first"}},
    {"[[event]]\ntype = \"drop\"\nnth = 2\nevery = 3\n", ":4:", {"every", "nth"}},
    {"[[event]]\ntype = \"drop\"\nopcode = []\n", ":3:", {"opcode", "[]", "one or more"}},
    {"[[event]]\ntype = \"corrupt\"\nfield = \"psn\"\noffset = 3\n", ":4:", {"offset", "3", "0 to 2"}},
    {"[[event]]\ntype = \"corrupt\"\nfield = \"pad\"\nbit = 7\n", ":4:", {"bit", "7", "0 to 1"}},
    {"[[outage]]\ndown_us = 1\nlasts_us = 50\nevery_us = 50\ntimes = 3\n", ":4:", {"every_us", "50", "lasts"}},
    {"[[event]]\ntype = \"drop\"\nopcode = \"rc_sent\"\n", ":3:", {"opcode", "rc_sent", "rc_send_only"}},
    {"[[event]]\ntype = \"drop\"\nopcode = 256\n", ":3:", {"opcode", "256", "0 to 255"}},
    {"[[event]]\ntype = \"drop\"\ncopies = 2\n", ":3:", {"copies", "duplicate", "drop"}},
    {"[[event]]\ntype = \"duplicate\"\ncopies = 0\n", ":3:", {"copies", "1 to 1000"}},
    {"[[event]]\ntype = \"corrupt\"\nfield = \"qpn\"\n", ":3:", {"field", "qpn", "dest_qp"}},
    {"[[event]]\ntype = \"corrupt\"\nfield = \"psn\"\nvalue = 16777216\n", ":4:", {"value", "0 to 16777215"}},
    {"[[event]]\ntype = \"corrupt\"\nbit = 8\n", ":3:", {"bit", "8", "0 to 7"}},
    {"[[event]]\ntype = \"corrupt\"\nmade_right = \"all\"\n", ":3:", {"made_right", "nothing, fcs, icrc, either"}},
    {"[[event]]\ntype = \"drop\"\nexpect = { completion = \"fine\" }\n", ":3:", {"expect", "completion", "success"}},
    {"[[event]]\ntype = \"drop\"\nprobability = 200\n", ":3:", {"probability", "200", "0 to 100"}},
    {"[outage]\ndown_us = 1\n", ":1:", {"[[outage]]"}},
    {"[[outage]]\nport = 1\n", ":1:", {"outage 1: down_us", "missing", "0 to"}},
    {"[[outage]]\ndown_us = 1\nport = 3\n", ":3:", {"outage 1: port", "3", "1 to 2"}},
    {"[[outage]]\ndown_us = 1\nlasts_us = 0\n", ":3:", {"lasts_us", "0", "1 to"}},
    {"[[outage]]\ndown_us = 1\nlasts_us = 1\nevery_us = 5\n", ":1:", {"times", "missing"}},
    {"[[outage]]\ndown_us = 1\nlasts_us = 1\ntimes = 5\n", ":1:", {"every_us", "missing"}},
    {"[[outage]]\ndown_us = 1\nevery_us = 5\ntimes = 2\n", ":1:", {"lasts_us", "missing"}},
    {"[[outage]]\ndown_us = 1\nup_us = 5\n", ":3:", {"no field up_us", "lasts_us"}},
    {"[[event]]\ntype = drop\n", ":2:", {}},
    {"[[event]]\nflow = t\n", ":2:", {}},  // the library's words have the end of the line in them
    {"[[[event]]]\ntype = \"drop\"\n", ": cannot be read as TOML", {}},
};

TEST(fault_plan, mistakes_are_one_line_with_place_and_range) {
  for (const mistake& m : mistakes) {
    SCOPED_TRACE(m.text);
    try {
      parse_fault_plan(m.text, "my.toml");
      ADD_FAILURE() << "accepted";
    } catch (const sim::config_error& e) {
      const std::string what = e.what();
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
      EXPECT_EQ(what.rfind(std::string("my.toml") + m.line, 0), 0u) << what;
      for (const char* w : m.words) EXPECT_NE(what.find(w), std::string::npos) << what << " lacks " << w;
    }
  }
  EXPECT_THROW(load_fault_plan("/nowhere/plan.toml"), sim::config_error);
}

}  // namespace
}  // namespace rnic::fabric
