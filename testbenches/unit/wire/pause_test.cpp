// SPDX-License-Identifier: Apache-2.0
// MAC control frames, byte for byte.
#include "model/wire/pause.h"

#include <gtest/gtest.h>

#include "testbenches/unit/wire/oracle.h"

namespace rnic::wire::test {
namespace {

TEST(wire_pause, pfc_example_of_the_reference) {
  // Adapter data plane E.2: priority 3 for 0xffff quanta.
  const bytes expected = from_hex(
      "0180c2000001 020000000001 8808 0101 0008 0000 0000 0000 ffff 0000 0000 0000 0000"
      "00000000000000000000000000000000000000000000000000 00");
  ASSERT_EQ(expected.size(), pause_frame_length);
  pause_frame p;
  p.per_priority = true;
  p.enabled = 0x08;
  p.quanta[3] = 0xffff;
  bytes built(pause_frame_length);
  encode_pause(p, {2, 0, 0, 0, 0, 1}, built.data());
  EXPECT_EQ(built, expected);
  pause_frame q;
  ASSERT_EQ(decode_pause(built.data(), built.size(), q), pause_kind::pause);
  EXPECT_TRUE(q.per_priority);
  EXPECT_EQ(q.enabled, 0x08);
  EXPECT_EQ(q.quanta, p.quanta);
}

TEST(wire_pause, global_pause) {
  const bytes f = from_hex("0180c2000001 020000000001 8808 0001 1234" + std::string(84, '0'));
  ASSERT_EQ(f.size(), pause_frame_length);
  pause_frame q;
  ASSERT_EQ(decode_pause(f.data(), f.size(), q), pause_kind::pause);
  EXPECT_FALSE(q.per_priority);
  EXPECT_EQ(q.quanta[0], 0x1234);
  bytes built(pause_frame_length);
  encode_pause(q, {2, 0, 0, 0, 0, 1}, built.data());
  EXPECT_EQ(built, f);
}

TEST(wire_pause, others) {
  pause_frame q;
  bytes f = from_hex("0180c2000001 020000000001 8808 0002 1234" + std::string(84, '0'));
  EXPECT_EQ(decode_pause(f.data(), f.size(), q), pause_kind::unsupported);
  EXPECT_EQ(decode_pause(f.data(), 17, q), pause_kind::unsupported);
  f[14] = 0x01, f[15] = 0x01;
  EXPECT_EQ(decode_pause(f.data(), 33, q), pause_kind::unsupported);
  f[13] = 0x00;
  EXPECT_EQ(decode_pause(f.data(), f.size(), q), pause_kind::none);
}

}  // namespace
}  // namespace rnic::wire::test
