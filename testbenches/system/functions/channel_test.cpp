// SPDX-License-Identifier: Apache-2.0
// The communication channel: what a function's driver says to the physical one's, in order and out of it.
#include <gtest/gtest.h>

#include "model/abi/bar_layout.h"
#include "testbenches/system/functions/shared_card.h"

namespace rnic::system_test {
namespace {

namespace comm = abi::comm;

/// A driver of a function that does as it likes.
struct rude_driver {
  rude_driver(hosts::two_nodes& system, unsigned function) : bus(system.node_b().bus(function)) {
    toggle = bus.mmio_read32(2, comm::slave_write) >> comm::toggle_shift;
  }
  /// The answer, or all ones when none comes.
  std::uint32_t say(unsigned what, std::uint32_t parameter = 0, std::uint64_t patience_us = 2000) {
    toggle ^= 1;
    bus.mmio_write32(2, comm::slave_write, toggle << comm::toggle_shift | what << comm::command_shift | parameter);
    for (std::uint64_t waited = 0; waited < patience_us; ++waited) {
      bus.spend_ps(us);
      const std::uint32_t word = bus.mmio_read32(2, comm::slave_read);
      if (word >> comm::toggle_shift == toggle) return word & ~(1u << comm::toggle_shift);
    }
    return ~0u;
  }
  host_driver::bus_if& bus;
  std::uint32_t toggle;
};

constexpr unsigned reset = 0, vhcr0 = 1, vhcr1 = 2, vhcr2 = 3, enable = 4, posted = 5;

TEST(Channel, KeepsTheOrderOfSteps) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    EXPECT_EQ(system.node_b().device(1).close(), 0);
    rude_driver d(system, 1);
    EXPECT_EQ(d.say(reset), comm::version);
    EXPECT_EQ(d.say(vhcr1), comm::internal_error) << "0 comes first";
    EXPECT_EQ(d.say(vhcr0), comm::internal_error) << "after an error only a reset";
    EXPECT_EQ(d.say(reset), comm::version);
    EXPECT_EQ(d.say(vhcr0, 0), 0u);
    EXPECT_EQ(d.say(posted), comm::internal_error) << "nobody knows where the command is";
    EXPECT_EQ(d.say(reset), comm::version);
    EXPECT_EQ(d.say(200), comm::internal_error) << "no such step";
    EXPECT_EQ(d.say(reset), comm::version);
    // Memory that is not the function's: another one's.
    const auto foreign = system.node_b().bus(2).allocate(4096);
    const auto part = [&](unsigned shift) { return static_cast<std::uint32_t>(foreign.bus_address >> shift & 0xffff); };
    EXPECT_EQ(d.say(vhcr0, part(48)), 0u);
    EXPECT_EQ(d.say(vhcr1, part(32)), 0u);
    EXPECT_EQ(d.say(vhcr2, part(16)), 0u);
    EXPECT_EQ(d.say(enable, part(0)), 0u);
    EXPECT_EQ(d.say(posted), comm::internal_error);
    EXPECT_FALSE(system.node_b().master().is_active(1));
    // A driver that keeps to the rules finds all as it should be.
    EXPECT_EQ(system.node_b().device(1).open(), 0);
    expect_works(connect(system.node_a(), 0, system.node_b(), 1, 11));
  });
}

/// While nobody serves it, a function waits; it goes on when somebody does.
TEST(Channel, IsOfflineWithoutThePhysicalDriver) {
  hosts::two_nodes system(shared_cards(1));
  run(system, [&] {
    host_driver::device& physical = system.node_b().device(0);
    host_driver::bus_if& bus = system.node_b().bus(1);
    EXPECT_EQ(bus.mmio_read32(2, comm::flags) & comm::flag_offline, 0u);
    EXPECT_EQ(system.node_b().device(1).close(), 0);
    EXPECT_EQ(physical.close(), 0);
    EXPECT_EQ(bus.mmio_read32(2, comm::flags), ~0u) << "without SR-IOV there is no such function";
    EXPECT_EQ(bus.config_read32(0x04), ~0u);
  });
}

/// Objects' events, which hardware tells the physical function of, reach the function's driver.
TEST(Channel, EventsOfObjectsAreHandedOn) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    const link l = connect(system.node_a(), 0, system.node_b(), 1, 11);
    ibv_async_event event{};
    // A request with a key that nobody has: the responder's queue pair ends with an access error.
    const hosts::buffer from = hosts::make_buffer(l.a.at, 4096);
    request r;
    r.sges.push_back({from.address(), 64, from.region->lkey});
    r.remote = 0x1000;
    r.rkey = 0xdead;
    post(l.a, r);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_REM_ACCESS_ERR);
    bool found = false;
    while (!found && l.b.dev().get_async_event(&event, 50 * ms)) found = event.event_type == IBV_EVENT_QP_ACCESS_ERR;
    ASSERT_TRUE(found);
    EXPECT_EQ(event.element.qp, l.b.qp);
    EXPECT_FALSE(system.node_b().device(2).get_async_event(&event, ms)) << "the other function hears nothing";
    while (system.node_b().device(0).get_async_event(&event, ms))
      EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ACTIVE) << "nor does the physical one";
  });
}

/// A send queue that has come to rest, and a completion queue that has overflowed.
TEST(Channel, EventsThatFirmwareAndQueuesRaiseAreTheFunctionsToo) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    const link l = connect(system.node_a(), 0, system.node_b(), 2, 21);
    host_driver::device& dev = l.b.dev();
    const auto comes = [&](ibv_event_type type) {
      ibv_async_event event{};
      while (dev.get_async_event(&event, 50 * ms))
        if (event.event_type == type) return true;
      return false;
    };
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_SQD;
    attr.en_sqd_async_notify = 1;
    hosts::require(dev.modify_qp(l.b.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), "SQD");
    EXPECT_TRUE(comes(IBV_EVENT_SQ_DRAINED));
    // A queue of one entry more than it has completions for, and nobody polls.
    host_driver::completion_queue* const small = dev.create_cq(1);
    ASSERT_NE(small, nullptr);
    side s = l.b;
    s.send_cq = s.receive_cq = small;
    s.qp = hosts::make_qp(s.at, {}, *small, *small);
    attr = {};
    attr.qp_state = IBV_QPS_ERR;
    const hosts::buffer to = hosts::make_buffer(s.at, 4096);
    for (unsigned i = 0; i < 8; ++i) post_receive(s, {{to.address(), 64, to.region->lkey}});
    hosts::require(dev.modify_qp(s.qp, &attr, IBV_QP_STATE), "ERR");
    EXPECT_TRUE(comes(IBV_EVENT_CQ_ERR));
    ibv_async_event event{};
    while (system.node_b().device(0).get_async_event(&event, ms)) EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ACTIVE);
  });
}

/// A port's link is everybody's; an administrator can say to a function that it is up or down.
TEST(Channel, LinksAreAsTheyAreOrAsTheAdministratorSays) {
  hosts::two_nodes_config c = shared_cards(3);
  c.node.function_settings.resize(3);
  c.node.function_settings[1].link = host_driver::function_link::up;
  c.node.function_settings[2].link = host_driver::function_link::down;
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::node& n = system.node_b();
    const auto state = [&](unsigned function) {
      ibv_port_attr attr{};
      hosts::require(n.device(function).query_port(1, &attr), "query_port");
      return attr.state;
    };
    const auto event = [&](unsigned function, std::uint64_t patience = 200 * us) {
      ibv_async_event e{};
      while (n.device(function).get_async_event(&e, patience))
        if (e.element.port_num == 1) return static_cast<int>(e.event_type);
      return -1;
    };
    for (unsigned f = 0; f <= 3; ++f)
      while (event(f) >= 0) {
      }
    EXPECT_EQ(state(1), IBV_PORT_ACTIVE);
    EXPECT_EQ(state(2), IBV_PORT_ACTIVE);
    EXPECT_EQ(state(3), IBV_PORT_DOWN);
    system.cable().set_live(false, system.now_ps() + 1000);
    EXPECT_EQ(event(1), IBV_EVENT_PORT_ERR);
    EXPECT_EQ(event(2), -1);
    EXPECT_EQ(event(3), -1);
    EXPECT_EQ(state(1), IBV_PORT_DOWN);
    EXPECT_EQ(state(2), IBV_PORT_ACTIVE);
    system.cable().set_live(true, system.now_ps() + 1000);
    EXPECT_EQ(event(1), IBV_EVENT_PORT_ACTIVE);
    EXPECT_EQ(event(3), -1);
    using link = host_driver::function_link;
    EXPECT_EQ(n.master().set_link(1, link::down), 0);
    EXPECT_EQ(event(1), IBV_EVENT_PORT_ERR);
    EXPECT_EQ(state(1), IBV_PORT_DOWN);
    EXPECT_EQ(n.master().set_link(3, link::automatic), 0);
    EXPECT_EQ(event(3), IBV_EVENT_PORT_ACTIVE);
    EXPECT_EQ(state(3), IBV_PORT_ACTIVE);
    EXPECT_EQ(n.master().set_link(4, link::up), -EINVAL);
    EXPECT_EQ(n.master().set_link(0, link::up), -EINVAL);
    // What the function is told keeps nothing from the wire.
    expect_works(connect(system.node_a(), 1, n, 1, 71));
  });
}

/// Sleeping on completions: interrupts of the function's own vectors.
TEST(Channel, CompletionEventsAndInterruptsAreTheFunctions) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    const link l = connect(system.node_a(), 0, system.node_b(), 2, 21);
    const hosts::buffer from = hosts::make_buffer(l.a.at, 4096), to = hosts::make_buffer(l.b.at, 4096);
    ASSERT_EQ(l.b.dev().req_notify_cq(l.b.receive_cq, 0), 0);
    post_receive(l.b, {{to.address(), 4096, to.region->lkey}});
    request r;
    r.opcode = IBV_WR_SEND;
    r.sges.push_back({from.address(), 512, from.region->lkey});
    post(l.a, r);
    EXPECT_EQ(l.b.dev().get_cq_event(0, 50 * ms), l.b.receive_cq);
    EXPECT_EQ(l.b.wait_receive().status, IBV_WC_SUCCESS);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
  });
}

}  // namespace
}  // namespace rnic::system_test
