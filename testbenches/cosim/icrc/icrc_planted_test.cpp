// SPDX-License-Identifier: Apache-2.0
// The lockstep bench must find bugs: planted ones, each at the first cycle in which it can be seen.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "rtl/icrc/icrc_rtl.h"
#include "testbenches/cosim/icrc/planted_engine.h"
#include "testbenches/cosim/icrc/stimulus.h"

namespace rnic::cosim {
namespace {

/// 128 bytes in cycles 0..7, 96 bytes in 8..13, 109 (13 in the last beat) in 14..20, 40 in 21..23; results 3 cycles
/// after the last.
outcome run_with(bug b, const std::string& name) {
  traffic t;
  std::mt19937_64 rng(9);
  for (const std::size_t n : {128u, 96u, 109u, 40u})
    add(t, random_packet(rng, wire::encapsulation::roce_v2_ipv4, n), rng);
  return run(
      t, [b] { return std::make_unique<planted_engine>(b); }, name);
}

void expect_found(const outcome& o, std::uint64_t cycle, const std::string& port, unsigned packet) {
  ASSERT_TRUE(o.first_difference);
  const rtl::difference::place& d = o.first_difference->where();
  const std::string report = o.first_difference->what();
  EXPECT_EQ(d.cycle, cycle) << report;
  EXPECT_EQ(d.port, port) << report;
  EXPECT_NE(d.model, d.rtl);
  EXPECT_NE(report.find("in cycle " + std::to_string(cycle) + " at " + port), std::string::npos) << report;
  EXPECT_NE(report.find("packet " + std::to_string(packet) + " of this engine"), std::string::npos) << report;
  EXPECT_GT(std::filesystem::file_size(d.waveform), 100U);
  std::filesystem::remove(d.waveform);
}

TEST(IcrcPlantedBug, NoneIsFoundWhereNoneIs) {
  const outcome o = run_with(bug::none, "none");
  EXPECT_FALSE(o.first_difference) << o.first_difference->what();
  EXPECT_TRUE(o.finished);
}

TEST(IcrcPlantedBug, WrongMaskIsFoundAtTheFirstResult) {
  expect_found(run_with(bug::wrong_byte_masked, "wrong_mask"), 10, "result_crc", 1);
}

TEST(IcrcPlantedBug, WrongCrcForOneLengthIsFoundAtItsFirstPacket) {
  expect_found(run_with(bug::wrong_crc_for_13_bytes, "wrong_crc"), 23, "result_crc", 3);
}

TEST(IcrcPlantedBug, LateReadyIsFoundInTheSameCycle) {
  expect_found(run_with(bug::ready_too_late, "late_ready"), 23, "in_ready", 3);
}

TEST(IcrcPlantedBugDeathTest, StreamCheckerStopsAProducerThatTakesItsBeatBack) {
  icrc::icrc_beat beat;
  beat.valid = beat.first = beat.last = true;
  const auto violate = [&beat] {
    dup2(STDERR_FILENO, STDOUT_FILENO);  // failed assertions are printed there, death tests read the other
    const auto rtl = std::make_unique<rtl::icrc_rtl>(rtl::make_icrc_rtl(16), 16);
    while (rtl->step(beat, false).in_ready) {
    }
    beat.valid = false;
    rtl->step(beat, false);
    rtl->step(beat, false);
  };
  EXPECT_DEATH(violate(), "valid fell before ready");
}

}  // namespace
}  // namespace rnic::cosim
