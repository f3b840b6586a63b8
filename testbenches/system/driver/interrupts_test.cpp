// SPDX-License-Identifier: Apache-2.0
// A driver without MSI-X: commands, asynchronous events and completions by the wire INTA (net/eq.c: mlx4_interrupt).
#include "model/fabric/cable.h"
#include "testbenches/system/functions/shared_card.h"

namespace rnic::system_test {
namespace {

constexpr std::uint32_t interrupt_status = 1u << 19, interrupt_disable = 1u << 10;

hosts::two_nodes_config with_lines() {
  hosts::two_nodes_config c = default_system();
  c.node.driver.use_msix = false;
  return c;
}

}  // namespace

TEST(LineInterrupt, CommandsAndCompletionsComeByTheWire) {
  hosts::two_nodes system(with_lines());
  run(system, [&] {
    const link l = make_link(system, {});
    expect_works(l);
    for (const side* s : {&l.a, &l.b}) {
      EXPECT_TRUE(s->dev().commands().event_mode()) << "commands are completed by events";
      EXPECT_EQ(s->at.bus->config_read32(0x04) & interrupt_disable, 0u);
    }
    const hosts::buffer from = hosts::make_buffer(l.a.at, 4096), to = hosts::make_buffer(l.b.at, 4096);
    for (unsigned i = 0; i < 20; ++i) {
      hosts::require(l.b.dev().req_notify_cq(l.b.receive_cq, 0), "req_notify_cq");
      hosts::require(l.a.dev().req_notify_cq(l.a.send_cq, 0), "req_notify_cq");
      post_receive(l.b, {{to.address(), 1024, to.region->lkey}});
      request r;
      r.opcode = IBV_WR_SEND;
      r.sges.push_back({from.address(), 512, from.region->lkey});
      post(l.a, r);
      EXPECT_EQ(l.b.dev().get_cq_event(0, 100 * ms), l.b.receive_cq) << i;
      EXPECT_EQ(l.a.dev().get_cq_event(0, 100 * ms), l.a.send_cq) << i;
      EXPECT_EQ(l.b.wait_receive().status, IBV_WC_SUCCESS);
      EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    }
    l.a.at.bus->spend_ps(10 * us);
    EXPECT_EQ(l.a.at.bus->config_read32(0x04) & interrupt_status, 0u) << "taken back";
    // Up and down, for each of the 20 events at least.
    EXPECT_GE(system.statistics().value("a.root_complex.interrupt_messages"), 40u);
    EXPECT_EQ(system.statistics().value("a.root_complex.interrupt_messages") % 2, 0u);
    EXPECT_EQ(system.statistics().value("a.adapter.pcie.dma.interrupts_dropped"), 0u);
    EXPECT_EQ(l.a.dev().create_cq(7, 1), nullptr) << "one completion queue of events";
  });
}

TEST(LineInterrupt, AsynchronousEventsComeByTheWire) {
  hosts::two_nodes system(with_lines());
  run(system, [&] {
    const link l = make_link(system, {});
    ibv_async_event event{};
    while (l.a.dev().get_async_event(&event, 50 * us)) continue;
    system.cable().set_live(false, system.now_ps() + 1000);
    ASSERT_TRUE(l.a.dev().get_async_event(&event, 10 * ms));
    EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
    system.cable().set_live(true, system.now_ps() + 1000);
    ASSERT_TRUE(l.a.dev().get_async_event(&event, 10 * ms));
    EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ACTIVE);
  });
}

/// Both ways of interrupting bring the same messages; only where they come from differs.
TEST(LineInterrupt, TheSameDeviceOpensEitherWay) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    expect_works(l);
    EXPECT_NE(l.a.at.bus->config_read32(0x04) & interrupt_disable, 0u) << "as the kernel does with MSI-X";
  });
}

/// The kernel does without virtual functions then ("INTx is not supported in multi-function mode").
TEST(LineInterrupt, FunctionsNeedMsix) {
  hosts::two_nodes_config c = shared_cards(2);
  c.node.driver.use_msix = false;
  EXPECT_ANY_THROW({
    hosts::two_nodes system(c);
    run(system, [] {});
  });
}

}  // namespace rnic::system_test
