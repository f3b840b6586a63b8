// SPDX-License-Identifier: Apache-2.0
// Functions that take all that they can get, the physical one among them: what QUERY_FUNC_CAP has promised to another
// one is there for it, to the last number.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

#include "host_driver/resources.h"
#include "model/abi/contexts.h"
#include "model/abi/device.h"
#include "model/abi/paravirtual.h"
#include "testbenches/system/ethernet/station.h"
#include "testbenches/system/functions/shared_card.h"
#include "testbenches/system/functions/statuses.h"

namespace rnic::system_test {
namespace {

using abi::opcode;
using host_driver::command_channel;
using host_driver::resource;

/// Bytes of host memory are no part of this.
hosts::two_nodes_config small_cards(unsigned functions) {
  hosts::two_nodes_config c = shared_cards(functions);
  c.node.driver.log_num_qp = 12;
  c.node.driver.log_num_srq = 8;
  c.node.driver.log_num_cq = 8;
  c.node.driver.log_num_mpt = 9;
  c.node.driver.log_num_mtt = 14;
  return c;
}

std::uint8_t step_of(resource what) {
  return what == resource::qp || what == resource::mpt ? abi::res_op::reserve : abi::res_op::reserve_and_map;
}

/// One more of the kind for the function whose channel this is; the command's status.
unsigned take(command_channel& channel, resource what, std::uint64_t in, std::uint64_t* number) {
  const int error =
      channel.execute({opcode::alloc_res, static_cast<std::uint32_t>(what), step_of(what), in, 0, number});
  return error == 0 ? 0 : channel.last_status();
}

using quantities = std::map<resource, std::uint32_t>;
quantities promised(command_channel& channel) {
  namespace f = abi::func_cap;
  command_channel::mailbox box(channel);
  EXPECT_EQ(channel.read(box, opcode::query_func_cap), 0);
  return {{resource::qp, abi::get(box.data(), f::qp_quota)},
          {resource::cq, abi::get(box.data(), f::cq_quota)},
          {resource::srq, abi::get(box.data(), f::srq_quota)},
          {resource::mpt, abi::get(box.data(), f::mpt_quota)},
          {resource::mtt, abi::get(box.data(), f::mtt_quota)}};
}

/// Until it is refused; how many they were, and the status of the refusal.
std::uint32_t take_all(command_channel& channel, resource what, unsigned* refusal) {
  std::uint64_t number = 0;
  std::uint32_t got = 0;
  // Queue pairs one by one, aligned as badly as can be, so that numbers in between stay free.
  const std::uint64_t in = what == resource::qp ? std::uint64_t{1} << 32 | 1 : 0;
  while ((*refusal = take(channel, what, in, &number)) == 0) ++got;
  return got;
}

/// The physical function's own.
void take_all(host_driver::icm_resources& tables, std::uint32_t* mtts) {
  std::uint32_t number = 0;
  for (const resource what : {resource::qp, resource::cq, resource::srq, resource::mpt, resource::xrcd})
    while (tables.take(what, &number) == 0) {
    }
  for (*mtts = 0; tables.take_mtts(0, &number) == 0; ++*mtts) {
  }
}

}  // namespace

TEST(Exhaustion, WhatIsPromisedIsThere) {
  constexpr unsigned functions = 3;
  hosts::two_nodes system(small_cards(functions));
  run(system, [&] {
    hosts::node& n = system.node_b();
    const host_driver::resource_tracker& tracker = n.master().tracker();
    std::map<unsigned, quantities> drivers;  // what they need themselves
    for (unsigned f = 1; f <= functions; ++f)
      for (const auto& [what, most] : promised(n.device(f).commands())) {
        drivers[f][what] = tracker.used(f, what);
        EXPECT_LT(drivers[f][what], most / 2);
      }
    std::uint32_t mtts = 0;
    take_all(n.device(0).tables(), &mtts);
    EXPECT_GT(mtts, 100u) << "the physical function has a half";
    {  // Its proxy of QP1 is the function's from the beginning, and in no quota.
      command_channel& channel = n.device(1).commands();
      command_channel::mailbox box(channel);
      ASSERT_EQ(channel.read(box, opcode::query_func_cap, 1, 1), 0);
      EXPECT_EQ(channel.command(opcode::alloc_res, static_cast<std::uint32_t>(resource::qp), abi::res_op::map,
                                abi::get(box.data(), abi::paravirtual::qp1_proxy)),
                0);
    }
    // Function 1 is the victim: it takes last.
    for (const unsigned f : {2u, 3u, 1u}) {
      command_channel& channel = n.device(f).commands();
      for (const auto& [what, most] : promised(channel)) {
        SCOPED_TRACE(testing::Message() << "function " << f << ", resource " << static_cast<unsigned>(what));
        EXPECT_GT(most, 20u);
        unsigned refusal = 0;
        EXPECT_EQ(drivers[f][what] + take_all(channel, what, &refusal), most);
        EXPECT_EQ(refusal, internal_error) << "resource_tracker.c: mlx4_grant_resource";
      }
    }
  });
}

/// Small pieces of another one are not between its large ones.
TEST(Exhaustion, TranslationEntriesAreInLargePieces) {
  hosts::two_nodes system(small_cards(2));
  run(system, [&] {
    hosts::node& n = system.node_b();
    command_channel &thief = n.device(2).commands(), &victim = n.device(1).commands();
    const auto kind = static_cast<std::uint32_t>(resource::mtt);
    const std::uint32_t most = promised(victim)[resource::mtt];
    // The two take turns; what the victim had is free again behind it, the thief's is not.
    std::vector<std::uint64_t> own;
    std::uint64_t number = 0;
    for (unsigned i = 0; i < most / 4; ++i) {
      ASSERT_EQ(take(thief, resource::mtt, 0, &number), 0u);
      ASSERT_EQ(take(victim, resource::mtt, 0, &number), 0u);
      own.push_back(number);
    }
    for (const std::uint64_t first : own)
      ASSERT_EQ(victim.command(opcode::free_res, kind, abi::res_op::reserve_and_map, first), 0);
    unsigned order = 0;
    while (4u << order <= most) ++order;  // half of what it may have
    EXPECT_EQ(take(victim, resource::mtt, order, &number), 0u) << "2^" << order << " of " << most;
  });
}

/// Numbers that are given back are everybody's part again: the function's whom they were.
TEST(Exhaustion, WhatIsGivenBackIsTheSamePart) {
  hosts::two_nodes system(small_cards(2));
  run(system, [&] {
    hosts::node& n = system.node_b();
    command_channel& channel = n.device(1).commands();
    std::uint32_t mtts = 0;
    unsigned refusal = 0;
    for (unsigned round = 0; round < 3; ++round) {
      for (const auto& [what, most] : promised(channel)) {
        const std::uint32_t before = n.master().tracker().used(1, what);
        EXPECT_EQ(before + take_all(channel, what, &refusal), most) << round;
      }
      initiate_reset(n.bus(1));
      n.bus(0).spend_ps(3000 * us);
      EXPECT_EQ(n.device(1).abandon(), 0);
      if (round == 0) take_all(n.device(0).tables(), &mtts);  // now that they are free
      ASSERT_EQ(n.device(1).open(), 0);
    }
  });
}

/// Counters, rules, memberships, VLANs: the tables are the device's, and one function does not fill them.
TEST(Exhaustion, TablesOfTheDeviceAreShared) {
  hosts::two_nodes_config c = small_cards(2);
  c.node.driver.steering = host_driver::config::steering_mode::device_managed;
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::node& n = system.node_b();
    const link theirs = connect(system.node_a(), 0, n, 2, 21), own = connect(system.node_a(), 0, n, 1, 11);
    std::map<unsigned, std::array<std::uint32_t, 3>> got;
    for (const unsigned f : {2u, 1u}) {
      const link& l = f == 2 ? theirs : own;
      command_channel& channel = l.b.dev().commands();
      std::uint64_t number = 0;
      unsigned refusal = 0;
      got[f][0] = take_all(channel, resource::counter, &refusal);
      EXPECT_EQ(refusal, internal_error);
      std::uint32_t vlans = 0;
      const std::uint32_t vlan_of_port = static_cast<std::uint32_t>(resource::vlan) | 1u << 8;
      while (channel.execute(
                 {opcode::alloc_res, vlan_of_port, abi::res_op::reserve_and_map, 100u * f + vlans, 0, &number}) == 0)
        ++vlans;
      EXPECT_EQ(channel.last_status(), 0x03u) << "vlan_add_to_slave: EINVAL";
      got[f][1] = vlans;
      std::uint32_t rules = 0;
      for (;; ++rules) {
        namespace r = abi::flow_rule;
        command_channel::mailbox box(channel);
        std::uint8_t* const m = box.data();
        abi::set(m, r::qpn, l.b.qp->qp_num);
        abi::set(m, r::port, std::uint8_t{1});
        abi::set(m, r::priority, std::uint16_t{r::domain_verbs});
        std::uint8_t* const h = m + r::control_bytes;
        abi::set(h, r::header_id, r::id_ethernet);
        abi::set(h, r::header_words, static_cast<std::uint8_t>(r::ethernet_bytes / 4));
        const std::uint8_t group[6] = {1,
                                       0,
                                       0x5e,
                                       static_cast<std::uint8_t>(f),
                                       static_cast<std::uint8_t>(rules >> 8),
                                       static_cast<std::uint8_t>(rules)};
        std::memcpy(h + r::dmac, group, 6);
        std::memset(h + r::dmac_mask, 0xff, 6);
        const auto words = static_cast<std::uint32_t>((r::control_bytes + r::ethernet_bytes) / 4);
        if (channel.execute({opcode::flow_steering_attach, words, 0, box.address(), 0, &number}) != 0) break;
      }
      EXPECT_EQ(channel.last_status(), exceed_lim);
      got[f][2] = rules;
    }
    EXPECT_EQ(got[1], got[2]) << "the last one has as much as the first one";
    for (const std::uint32_t each : got[1]) EXPECT_GT(each, 10u);
  });
}

}  // namespace rnic::system_test
