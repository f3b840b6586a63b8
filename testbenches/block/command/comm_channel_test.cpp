// SPDX-License-Identifier: Apache-2.0
// The registers that each virtual function shares with the physical one's driver, by themselves.
#include "model/command/comm_channel.h"

#include <gtest/gtest.h>

#include <vector>

namespace rnic::command {
namespace {

namespace comm = abi::comm;
using effect = comm_channel::effect;

/// The functions whose bits firmware takes.
template <std::uint32_t (comm_channel::*Take)(unsigned)>
std::vector<unsigned> taken(comm_channel& c) {
  std::vector<unsigned> out;
  for (unsigned word = 0; word < comm::functions / 32; ++word)
    for (std::uint32_t bits = (c.*Take)(word); bits != 0; bits &= bits - 1)
      out.push_back(32 * word + static_cast<unsigned>(__builtin_ctz(bits)));
  return out;
}
constexpr auto written = &taken<&comm_channel::take_written>;
constexpr auto reset_requests = &taken<&comm_channel::take_reset_requests>;
constexpr auto function_resets = &taken<&comm_channel::take_function_resets>;
using functions = std::vector<unsigned>;

constexpr unsigned last = comm::functions - 1;

TEST(CommChannel, WhoWroteIsToldOnceAndToAllWords) {
  comm_channel c;
  for (const unsigned f : {1u, 31u, 32u, 65u, last, 32u})
    EXPECT_EQ(c.virtual_write(f, comm::slave_write, 0x8000'0000u + f, f), effect::tell_firmware);
  EXPECT_EQ(written(c), (functions{1, 31, 32, 65, last}));
  EXPECT_EQ(written(c), functions{});
  EXPECT_EQ(reset_requests(c), functions{});
  EXPECT_EQ(c.physical_read(last * comm::slot_bytes + comm::slave_write, 200), 0x8000'0000u + last);
}

/// The two sides meet at an edge: a read in the cycle of a write finds what was there before, whatever order they have.
TEST(CommChannel, ReadsGiveWhatWasThereBeforeTheEdge) {
  comm_channel c;
  static_cast<void>(c.virtual_write(3, comm::slave_write, 0x11, 10));
  EXPECT_EQ(c.physical_read(3 * comm::slot_bytes + comm::slave_write, 10), 0u);
  EXPECT_EQ(c.physical_read(3 * comm::slot_bytes + comm::slave_write, 11), 0x11u);
  static_cast<void>(c.virtual_write(3, comm::slave_write, 0x22, 12));
  static_cast<void>(c.virtual_write(3, comm::slave_write, 0x33, 12));
  EXPECT_EQ(c.virtual_read(3, comm::slave_write, 12), 0x11u) << "before the edge, not before the last write";
  EXPECT_EQ(c.virtual_read(3, comm::slave_write, 13), 0x33u);
  c.physical_write(3 * comm::slot_bytes + comm::slave_read, 0x44, 20);
  EXPECT_EQ(c.virtual_read(3, comm::slave_read, 20), 0u);
  EXPECT_EQ(c.virtual_read(3, comm::slave_read, 21), 0x44u);
  EXPECT_EQ(c.virtual_read(4, comm::slave_read, 21), 0u) << "another function's";
}

TEST(CommChannel, AFunctionWritesItsFirstRegisterAndAsksForItsReset) {
  comm_channel c;
  c.reset(0);
  EXPECT_EQ(c.virtual_write(5, comm::slave_read, 0x99, 1), effect::none);
  EXPECT_EQ(c.virtual_write(5, comm::capabilities, 0x99, 1), effect::none);
  EXPECT_EQ(c.virtual_read(5, comm::slave_read, 2), 0u);
  EXPECT_EQ(c.virtual_read(5, comm::capabilities, 2), comm::capability_reset);
  EXPECT_EQ(c.virtual_write(5, 0x100, 0x99, 1), effect::unknown);
  EXPECT_EQ(c.virtual_read(5, 0x100, 2), ~0u);

  c.set_flags(5, 0, 2);
  EXPECT_EQ(c.virtual_write(5, comm::flags, comm::flag_offline, 3), effect::none) << "firmware's bit";
  EXPECT_EQ(c.flags(5), 0u);
  EXPECT_EQ(c.virtual_write(5, comm::flags, comm::flag_reset_request, 4), effect::tell_firmware);
  EXPECT_EQ(c.virtual_write(5, comm::flags, comm::flag_reset_request, 5), effect::none) << "it asks already";
  EXPECT_EQ(c.flags(5), comm::flag_reset_request);
  EXPECT_EQ(reset_requests(c), functions{5});
  EXPECT_EQ(reset_requests(c), functions{});
  EXPECT_EQ(written(c), functions{});
}

TEST(CommChannel, AResetOfAFunctionIsItsOwn) {
  comm_channel c;
  for (const unsigned f : {6u, 7u}) {
    c.set_flags(f, 0, 1);
    static_cast<void>(c.virtual_write(f, comm::slave_write, 0x55, 1));
    c.physical_write(f * comm::slot_bytes + comm::slave_read, 0x66, 1);
  }
  c.function_was_reset(7, 2);
  EXPECT_EQ(function_resets(c), functions{7});
  EXPECT_EQ(c.flags(7), comm::flag_offline);
  EXPECT_EQ(c.flags(6), 0u);
  EXPECT_EQ(c.virtual_read(7, comm::slave_write, 3), 0u);
  EXPECT_EQ(c.virtual_read(7, comm::slave_read, 3), 0u);
  EXPECT_EQ(c.virtual_read(6, comm::slave_write, 3), 0x55u);
  EXPECT_EQ(c.virtual_read(6, comm::slave_read, 3), 0x66u);
}

/// What was said before the device's reset is of functions that firmware does not know any more.
TEST(CommChannel, AResetOfTheDeviceForgetsWhatWasNotTaken) {
  comm_channel c;
  for (const unsigned f : {0u, 1u, 40u, last}) {
    c.set_flags(f, 0, 1);
    static_cast<void>(c.virtual_write(f, comm::slave_write, 0x55, 1));
    static_cast<void>(c.virtual_write(f, comm::flags, comm::flag_reset_request, 1));
    c.function_was_reset(f, 2);
    c.physical_write(f * comm::slot_bytes + comm::slave_read, 0x66, 2);
    c.set_flags(f, 0, 2);
  }
  c.reset(3);
  EXPECT_EQ(written(c), functions{});
  EXPECT_EQ(reset_requests(c), functions{});
  EXPECT_EQ(function_resets(c), functions{});
  for (const unsigned f : {0u, 1u, 40u, last}) {
    EXPECT_EQ(c.virtual_read(f, comm::slave_write, 4), 0u);
    EXPECT_EQ(c.virtual_read(f, comm::slave_read, 4), 0u);
    EXPECT_EQ(c.flags(f), comm::flag_offline);
  }
}

}  // namespace
}  // namespace rnic::command
