// SPDX-License-Identifier: Apache-2.0
// A function that has something, and another one of the same adapter that would like to have it.
#pragma once

#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"
#include "testbenches/system/functions/shared_card.h"

namespace rnic::system_test {

/// Two functions of host b with a peer each at host a: `victim` is function 1's, `thief` function 2's.
struct scene {
  explicit scene(hosts::two_nodes& system)
      : victim(connect(system.node_a(), 0, system.node_b(), 1, 11)),
        thief(connect(system.node_a(), 0, system.node_b(), 2, 21)),
        theirs(hosts::make_buffer(victim.b.at, 8192)),
        own(hosts::make_buffer(thief.b.at, 8192)),
        sent(hosts::make_buffer(thief.a.at, 8192)) {
    std::mt19937_64 random(17);
    fill_random(theirs.at(), 8192, random);
    fill_random(sent.at(), 8192, random);
    before.assign(theirs.at(), theirs.at() + 8192);
  }
  void expect_untouched() const { EXPECT_EQ(std::memcmp(theirs.at(), before.data(), before.size()), 0); }
  link victim, thief;
  hosts::buffer theirs, own, sent;
  std::vector<std::uint8_t> before;
};

/// RST2INIT of the thief's queue pair `as`, all right but for what `change` makes of its context; the command's error.
inline int begin_qp(const scene& s, std::uint32_t as, const std::function<void(std::uint8_t* context)>& change) {
  namespace q = abi::qpc;
  host_driver::command_channel& channel = s.thief.b.dev().commands();
  host_driver::command_channel::mailbox box(channel);
  std::uint8_t* c = box.data() + abi::qp_mailbox::context;
  abi::set(c, q::pd, s.thief.b.at.pd->pdn);
  abi::set(c, q::send_cqn, s.thief.b.send_cq->cqn);
  abi::set(c, q::receive_cqn, s.thief.b.receive_cq->cqn);
  abi::set(c, q::uar, abi::uar::reserved_pages);
  abi::set(c, q::local_qpn, as);
  c[0x0a] = 2 << 3 | 2;
  abi::store_mtt(c, q::mtt_high, q::mtt_low, std::uint64_t{s.own.region->mtt.first} * abi::mtt::bytes);
  change(c);
  return channel.write(box, abi::opcode::rst2init_qp, as);
}

/// `iommu`: both hosts have one, whose translations are few.
inline void with_scene(const std::function<void(hosts::two_nodes&, scene&)>& body, bool iommu = false) {
  hosts::two_nodes_config c = shared_cards(2);
  c.node.root_complex.iommu.enable = iommu;
  c.node.root_complex.iommu.entries = c.node.root_complex.iommu.ways = 4;
  hosts::two_nodes system(c);
  run(system, [&] {
    scene s(system);
    body(system, s);
    s.expect_untouched();
    expect_works(s.victim);
  });
}

}  // namespace rnic::system_test
