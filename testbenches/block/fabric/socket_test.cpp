// SPDX-License-Identifier: Apache-2.0
// Frames over TLM-2.0 sockets arrive as over a direct call.
#include <gtest/gtest.h>

#include "model/payload/ethernet_socket.h"
#include "testbenches/block/mac/bench.h"

namespace rnic::fabric::test {
namespace {

TEST(fabric_socket, same_times_as_without_sockets) {
  mac::test::bench direct;
  payload::frame_pool pool;
  sim::span_recorder spans;
  sim::timebase base;
  sim::clock_domain domain("core", base, {1000, 1, 0});
  mac::test::station a("sa", domain, {}, pool, spans), b("sb", domain, {}, pool, spans);
  payload::ethernet_transmit_rim out("out", base);
  payload::ethernet_receive_rim in("in", b.mac);
  out.out.bind(in.in);
  a.mac.attach(out);
  b.mac.attach(out);  // never sends; a port without a line is down
  for (unsigned i = 0; i < 5; ++i) {
    direct.a.tx.send(direct.frame(500 + i));
    a.tx.send(direct.frame(500 + i));
  }
  mac::test::bench::run_ns(2'000);
  ASSERT_EQ(direct.b.rx.notes.size(), 5u);
  ASSERT_EQ(b.rx.notes.size(), 5u);
  for (unsigned i = 0; i < 5; ++i) {
    // The direct one has 3 m of cable.
    EXPECT_EQ(b.rx.notes[i].frame->stamp + 15'150, direct.b.rx.notes[i].frame->stamp);
    EXPECT_EQ(b.rx.notes[i].frame->length, 500 + i);
  }
}

}  // namespace
}  // namespace rnic::fabric::test
