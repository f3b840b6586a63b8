// SPDX-License-Identifier: Apache-2.0
// Function-level reset of one function while others work.
#include <gtest/gtest.h>

#include "model/abi/bar_layout.h"
#include "testbenches/system/functions/shared_card.h"

namespace rnic::system_test {
namespace {

constexpr std::uint16_t command = 0x04;

void expect_nothing_left(hosts::two_nodes& system, unsigned function) {
  using host_driver::resource;
  const auto& tracker = system.node_b().master().tracker();
  for (unsigned kind = 0; kind < host_driver::resource_kinds; ++kind)
    EXPECT_TRUE(tracker.of(function, static_cast<resource>(kind)).empty()) << kind;
  for (unsigned port = 1; port <= 2; ++port) {
    const auto w = system.node_b().master().ports().gids_of(function, port);
    for (unsigned i = 0; i < w.count; ++i)
      EXPECT_FALSE(system.node_b().device(0).port(port).gids[w.first + i].valid) << port << " " << i;
  }
}

/// In the middle of transfers of both: the one's peer gets no answers any more, the other one is as it was.
TEST(FunctionReset, LeavesTheOthersAlone) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    hosts::connection_options o;
    o.retries = 1;
    const link lost = connect(system.node_a(), 0, system.node_b(), 1, 11, o);
    const link kept = connect(system.node_a(), 0, system.node_b(), 2, 21);
    const hosts::buffer from = hosts::make_buffer(kept.a.at, 1 << 20), to = hosts::make_buffer(kept.b.at, 1 << 20);
    const hosts::buffer gone = hosts::make_buffer(lost.b.at, 1 << 20), source = hosts::make_buffer(lost.a.at, 1 << 20);
    std::mt19937_64 random(3);
    fill_random(from.at(), 1 << 20, random);
    post_write(kept.a, from, to, 1 << 20);
    post_write(lost.a, source, gone, 1 << 20);
    kept.a.at.bus->spend_ps(100 * us);
    host_driver::bus_if& bus = system.node_b().bus(1);
    initiate_reset(bus);
    EXPECT_EQ(bus.config_read32(command) & 4, 0u) << "no bus master after it";
    EXPECT_EQ(lost.a.wait_send(1000 * ms).status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(kept.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(from.at(), to.at(), 1 << 20), 0);
    expect_works(kept);
    EXPECT_EQ(system.node_b().master().counts().resets, 1u);
    expect_nothing_left(system, 1);
    // Its driver begins anew.
    EXPECT_EQ(system.node_b().device(1).abandon(), 0);
    EXPECT_EQ(system.node_b().device(1).open(), 0);
    expect_works(connect(system.node_a(), 0, system.node_b(), 1, 31));
  });
  EXPECT_EQ(system.statistics().value("b.adapter.pcie.function_resets"), 1u);
}

/// Through the channel, for a host that does not let its guest touch configuration space.
TEST(FunctionReset, IsAskedForThroughTheChannel) {
  namespace comm = abi::comm;
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    host_driver::bus_if& bus = system.node_b().bus(2);
    for (unsigned round = 0; round < 2; ++round) {
      const link l = connect(system.node_a(), 0, system.node_b(), 2, 21 + 10 * round);
      expect_works(l);
      const std::uint32_t flags = bus.mmio_read32(2, comm::flags);
      const bool request = (flags & comm::flag_reset_request) != 0;
      EXPECT_EQ((flags & comm::flag_reset_done) != 0, request) << "none is under way";
      bus.mmio_write32(2, comm::flags, request ? 0 : comm::flag_reset_request);
      const std::uint64_t deadline = bus.now_ps() + 100 * ms;
      bool done = request;
      while (done == request && bus.now_ps() < deadline) {
        bus.spend_ps(us);
        done = (bus.mmio_read32(2, comm::flags) & comm::flag_reset_done) != 0;
      }
      EXPECT_NE(done, request);
      expect_nothing_left(system, 2);
      EXPECT_EQ(system.node_b().device(2).abandon(), 0);
      EXPECT_EQ(system.node_b().device(2).open(), 0);
    }
  });
}

/// A driver that goes at any point of a command of its own: the next one finds the channel, and others notice nothing.
TEST(FunctionReset, InTheMiddleOfACommand) {
  namespace comm = abi::comm;
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    const link kept = connect(system.node_a(), 0, system.node_b(), 1, 11);
    host_driver::bus_if& bus = system.node_b().bus(2);
    std::mt19937 random(5);
    for (unsigned round = 0; round < 24; ++round) {
      const link l = connect(system.node_a(), 0, system.node_b(), 2, 21);
      ASSERT_EQ(l.b.state(), IBV_QPS_RTS);
      const std::uint32_t toggle = (bus.mmio_read32(2, comm::slave_write) >> comm::toggle_shift) ^ 1;
      constexpr std::uint32_t posted = 5;
      bus.mmio_write32(2, comm::slave_write, toggle << comm::toggle_shift | posted << comm::command_shift);
      bus.spend_ps((round + random() % 8) * 400'000);
      initiate_reset(bus);
      if (round % 3 == 0) initiate_reset(bus);
      ASSERT_EQ(system.node_b().device(2).abandon(), 0);
      ASSERT_EQ(system.node_b().device(2).open(), 0) << round;
    }
    expect_works(kept);
    expect_works(connect(system.node_a(), 0, system.node_b(), 2, 91));
  });
}

/// The host's driver ends while functions work: they are not there any more, and their peers notice that.
TEST(FunctionReset, ThePhysicalFunctionTakesThemWithIt) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    hosts::connection_options o;
    o.retries = 1;
    const link lost = connect(system.node_a(), 0, system.node_b(), 1, 11, o);
    const hosts::buffer source = hosts::make_buffer(lost.a.at, 1 << 20), to = hosts::make_buffer(lost.b.at, 1 << 20);
    post_write(lost.a, source, to, 1 << 20);
    lost.a.at.bus->spend_ps(50 * us);
    EXPECT_EQ(system.node_b().device(0).close(), 0);
    EXPECT_EQ(lost.a.wait_send(1000 * ms).status, IBV_WC_RETRY_EXC_ERR);
    for (const unsigned function : {1u, 2u}) {
      EXPECT_EQ(system.node_b().bus(function).mmio_read32(2, abi::comm::flags), ~0u);
      EXPECT_EQ(system.node_b().bus(function).config_read32(command), ~0u);
    }
    ibv_port_attr attr{};
    EXPECT_NE(lost.b.dev().query_port(1, &attr), 0);
    EXPECT_EQ(lost.b.dev().abandon(), 0);
    EXPECT_NE(lost.b.dev().open(), 0);
  });
}

/// A function whose driver ends in order leaves nothing either.
TEST(FunctionReset, AnOrderlyEndLeavesNothing) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    const link l = connect(system.node_a(), 0, system.node_b(), 1, 11);
    expect_works(l);
    EXPECT_EQ(system.node_b().device(1).close(), 0);
    expect_nothing_left(system, 1);
    EXPECT_EQ(system.node_b().device(1).open(), 0);
    expect_works(connect(system.node_a(), 0, system.node_b(), 1, 21));
  });
}

}  // namespace
}  // namespace rnic::system_test
