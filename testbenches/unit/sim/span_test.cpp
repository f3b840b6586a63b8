// SPDX-License-Identifier: Apache-2.0
#include "model/sim/span.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "model/sim/clocked_block.h"
#include "model/sim/pipeline.h"
#include "model/sim/timebase.h"

namespace rnic::sim::test {
namespace {

class engine : public clocked_block {
 public:
  using clocked_block::clocked_block;
  void tick() override {}
};

TEST(Span, MarksAreInOrderOfTimeAndNameTheirBlock) {
  span_recorder spans;
  spans.enable(true);
  const span_id id = spans.open(1'000);
  spans.leave(id, "b.second", "late", 9'000, wait::pcie);
  spans.leave(id, "a.first", "early", 4'000);
  const span& s = spans[id];
  ASSERT_EQ(s.count(), 2u);
  EXPECT_STREQ(s[0].block, "a.first");
  EXPECT_STREQ(s[0].stage, "early");
  EXPECT_STREQ(s[1].block, "b.second");
  EXPECT_EQ(s[1].waited, wait::pcie);
  EXPECT_EQ(s.end() - s.start(), 8'000u);
}

TEST(Span, MarksBeyondTheLastPlaceAreToldAsSuch) {
  span_recorder spans;
  spans.enable(true);
  const span_id id = spans.open(0);
  for (unsigned i = 1; i <= span::max_marks; ++i) spans.leave(id, "a.block", "stage", i);
  EXPECT_STREQ(spans[id][span::max_marks - 1].stage, "stage");
  spans.leave(id, "b.block", "one too many", 1'000);
  spans.leave(id, "c.block", "an earlier one", 500);
  const span& s = spans[id];
  ASSERT_EQ(s.count(), span::max_marks);
  EXPECT_STREQ(s[span::max_marks - 2].stage, "stage");
  EXPECT_STREQ(s[span::max_marks - 1].stage, span::beyond);
  EXPECT_STREQ(s[span::max_marks - 1].block, "b.block");
  EXPECT_EQ(s.end(), 1'000u);
}

TEST(Span, BlocksNameOutlivesTheBlock) {
  span_recorder spans;
  spans.enable(true);
  const span_id id = spans.open(0);
  auto name = std::make_unique<std::string>("a.block.that.goes.away.and.is.long");
  spans.leave(id, *name, "stage", 1);
  name.reset();
  EXPECT_STREQ(spans[id][0].block, "a.block.that.goes.away.and.is.long");
}

TEST(Pipeline, StagesEndOneAfterTheOther) {
  timebase base;
  clock_domain core("core", base, {2'000, 1, 500});
  engine block("engine", core);
  const pipeline_stages stages{{"decode", 3}, {"skipped", 0}, {"execute", 16}};
  EXPECT_EQ(stages.cycles(), 19u);

  span_recorder spans;
  spans.enable(true);
  const span_id id = spans.open(core.edge_time(10));
  stages.mark(spans, id, block, 10);
  const span& s = spans[id];
  ASSERT_EQ(s.count(), 2u);
  EXPECT_STREQ(s[0].stage, "decode");
  EXPECT_STREQ(s[0].block, "engine");
  EXPECT_EQ(s[0].at, core.edge_time(13));
  EXPECT_STREQ(s[1].stage, "execute");
  EXPECT_EQ(s[1].at, core.edge_time(29));
}

TEST(Pipeline, WhatIsNotFollowedLeavesNoMark) {
  timebase base;
  clock_domain core("core", base, {1'000, 1, 0});
  engine block("engine", core);
  span_recorder spans;
  pipeline_stages{{"decode", 3}}.mark(spans, 0, block, 1);
  EXPECT_EQ(spans[0].count(), 0u);
}

TEST(Pipeline, SaysWhenWhatEntersHasLeftIt) {
  timebase base;
  clock_domain core("core", base, {1'000, 1, 0});
  engine block("engine", core);
  pipeline p(block, "packets", {{"decode", 3}, {"execute", 4}});
  EXPECT_EQ(p.enter(), 7u);
  EXPECT_EQ(p.enter(), 7u);
  EXPECT_EQ(p.entered(), 2u);
}

}  // namespace
}  // namespace rnic::sim::test
