// SPDX-License-Identifier: Apache-2.0
// The lockstep bench must find bugs: planted ones, each at the first cycle in which it can be seen.
#include <Vicrc_planted.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "rtl/icrc/icrc_rtl_core.h"
#include "testbenches/cosim/icrc/lockstep.h"

namespace rnic::cosim {
namespace {

enum class bug : std::uint8_t { none, wrong_byte_masked, wrong_crc_for_13_bytes, ready_too_late };

class planted_engine final : public rtl::icrc_rtl_core<Vicrc_planted> {
 public:
  explicit planted_engine(bug b) : icrc_rtl_core(1) {
    top().bug_i = static_cast<std::uint8_t>(b);
    reset();
  }
};

/// 128 bytes in cycles 0..3, 96 bytes in 4..6, 109 bytes (13 in the last beat) in 7..10; results 3 cycles after the
/// last.
outcome run(bug b, const std::string& name) {
  traffic t;
  std::mt19937_64 rng(9);
  for (const std::size_t n : {128u, 96u, 109u})
    t.packets.push_back(random_packet(rng, wire::encapsulation::roce_v2_ipv4, n));
  return run_lockstep(
      t, [b] { return std::make_unique<planted_engine>(b); }, name);
}

void expect_found(const outcome& o, std::uint64_t cycle, const std::string& port) {
  ASSERT_TRUE(o.first_difference);
  const difference& d = *o.first_difference;
  EXPECT_EQ(d.cycle, cycle) << d.report;
  EXPECT_EQ(d.port, port) << d.report;
  EXPECT_NE(d.model, d.rtl);
  EXPECT_NE(d.report.find("cycle " + std::to_string(cycle) + ", port " + port), std::string::npos) << d.report;
  EXPECT_GT(std::filesystem::file_size(d.waveform), 100U);
}

TEST(IcrcPlantedBug, NoneIsFoundWhereNoneIs) {
  const outcome o = run(bug::none, "none");
  EXPECT_FALSE(o.first_difference) << o.first_difference->report;
  EXPECT_TRUE(o.finished);
}

TEST(IcrcPlantedBug, WrongMaskIsFoundAtTheFirstResult) {
  expect_found(run(bug::wrong_byte_masked, "wrong_mask"), 6, "result_crc");
}

TEST(IcrcPlantedBug, WrongCrcForOneLengthIsFoundAtItsFirstPacket) {
  expect_found(run(bug::wrong_crc_for_13_bytes, "wrong_crc"), 13, "result_crc");
}

TEST(IcrcPlantedBug, LateReadyIsFoundInTheSameCycle) {
  expect_found(run(bug::ready_too_late, "late_ready"), 6, "in_ready");
}

TEST(IcrcPlantedBugDeathTest, StreamCheckerStopsAProducerThatTakesItsBeatBack) {
  icrc::icrc_beat beat;
  beat.valid = beat.first = beat.last = true;
  const auto violate = [&beat] {
    dup2(STDERR_FILENO, STDOUT_FILENO);  // failed assertions are printed there, death tests read the other
    const auto rtl = rtl::make_icrc_rtl();
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
