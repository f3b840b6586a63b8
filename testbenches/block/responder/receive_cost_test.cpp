// SPDX-License-Identifier: Apache-2.0
// What a message that takes a receive costs the engine that checks it: with a list of buffers, in its request, empty.
#include "testbenches/bench/child.h"
#include "testbenches/block/responder/bench.h"

namespace rnic::transport::test {
namespace {

using wire::operation;

constexpr unsigned messages = 12;

/// Cycles of the engine for each of the SENDs of `bytes`; requests have 2^log_stride bytes.
unsigned in_process(std::uint32_t bytes, bool in_request, std::uint8_t log_stride) {
  bench b;
  icm::responder_context c = bench::context();
  if (in_request) c.flags |= icm::responder_flag_inline_receive;
  c.log_rq_stride = log_stride;
  b.put(c);
  if (log_stride == 6)
    for (unsigned i = 0; i < messages; ++i) b.post(i, {{data_va + 256 * i, lkey, 256}});
  store_be32(b.s.memory.data() + record_bus, messages);
  for (unsigned i = 0; i < messages; ++i) b.send(operation::send_only, 100 + i, bench::pattern(bytes));
  b.run(8000);
  if (b.s.cqes.size() != messages) return 0;
  return static_cast<unsigned>(b.stats.value("responder.check_busy_cycles") / messages);
}
unsigned cycles_of_send(std::uint32_t bytes, bool in_request, std::uint8_t log_stride = 6) {
  return rnic::bench::in_child([=] { return in_process(bytes, in_request, log_stride); });
}

/// 13 cycles for what all have, 7 for the list, beside which up to 7 beats are moved; 5 and the beats of a long one.
TEST(receive_cost, of_a_list_of_buffers) {
  EXPECT_EQ(cycles_of_send(0, false), 13u);
  EXPECT_EQ(cycles_of_send(1, false), 20u);
  EXPECT_EQ(cycles_of_send(64, false), 20u);
  EXPECT_EQ(cycles_of_send(241, false), 5u + 16);
}

/// Without a list the beats come behind the 13, while that is the shorter way.
TEST(receive_cost, of_the_request_itself) {
  EXPECT_EQ(cycles_of_send(0, true), 13u);
  EXPECT_EQ(cycles_of_send(1, true), 13u + 1);
  EXPECT_EQ(cycles_of_send(32, true), 13u + 2);
  EXPECT_EQ(cycles_of_send(64, true), 13u + 4);
  EXPECT_EQ(cycles_of_send(65, true), 20u) << "has no room in it";
  EXPECT_EQ(cycles_of_send(96, true, 7), 13u + 6);
  EXPECT_EQ(cycles_of_send(128, true, 7), 20u);
}

}  // namespace
}  // namespace rnic::transport::test
