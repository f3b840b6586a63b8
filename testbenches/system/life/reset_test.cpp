// SPDX-License-Identifier: Apache-2.0
// A device that is reset in the middle of its work: memory is left alone from then on, and the driver can start again.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "model/abi/bar_layout.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

using hosts::connection_options;

constexpr unsigned connections = 8;
constexpr std::uint32_t bytes = 16'384;

connection_options patient() {
  connection_options o;
  o.mtu = 1024;
  o.ack_timeout = 6;  // 262 us
  return o;
}

/// Load in both directions over several queue pairs that never ends by itself.
class load {
 public:
  explicit load(const link& first) : lanes_{first} {
    while (lanes_.size() < connections)
      lanes_.push_back(make_sibling(first, patient(), static_cast<std::uint32_t>(1000 * lanes_.size())));
    near_ = hosts::make_buffer(first.a.at, connections * bytes);
    far_ = hosts::make_buffer(first.b.at, connections * bytes);
    std::mt19937_64 random(17);
    fill_random(near_.at(), connections * bytes, random);
    fill_random(far_.at(), connections * bytes, random);
  }

  /// Every lane: a WRITE, a SEND and a READ by both sides.
  void post_all() {
    for (unsigned i = 0; i < lanes_.size(); ++i) {
      post_side(lanes_[i].a, lanes_[i].b, near_, far_, i);
      post_side(lanes_[i].b, lanes_[i].a, far_, near_, i);
    }
  }

  std::vector<link> lanes_;
  hosts::buffer near_, far_;

 private:
  static void post_side(const side& from, const side& to, const hosts::buffer& here, const hosts::buffer& there,
                        unsigned i) {
    post_receive(to, {{there.address(i * bytes), bytes, there.region->lkey}});
    request r;
    r.sges = {{here.address(i * bytes), bytes, here.region->lkey}};
    r.remote = there.address(i * bytes);
    r.rkey = there.region->rkey;
    for (const ibv_wr_opcode verb : {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ}) {
      r.opcode = verb;
      post(from, r);
    }
  }
};

std::uint64_t value(hosts::two_nodes& system, const std::string& name) { return system.statistics().value(name); }

/// After `interrupt` host b's adapter must not write to its memory any more, a new driver life must work, and the old
/// queue pairs of host a must end for want of answers.
void reset_and_reopen(hosts::two_nodes& system, const std::function<void(host_driver::device&)>& interrupt) {
  run(system, [&] {
    load l(make_link(system, patient()));
    expect_works(l.lanes_[0]);
    host_driver::device& b = l.lanes_[0].b.dev();
    l.post_all();
    system.b().bus->spend_ps(6 * us);  // the line is full in both directions
    ASSERT_GT(value(system, "b.adapter.port1.rx_frames"), 10U);
    const std::uint64_t arrived =
        value(system, "b.adapter.port1.rx_frames") + value(system, "b.adapter.port1.drop_link_down");
    interrupt(b);
    EXPECT_FALSE(b.is_open());
    std::vector<std::uint8_t> frozen(l.far_.memory.pointer, l.far_.memory.pointer + connections * bytes);

    ASSERT_EQ(b.open(), 0) << "while the peer goes on sending";
    EXPECT_GT(value(system, "b.adapter.port1.rx_frames") + value(system, "b.adapter.port1.drop_link_down"), arrived);
    EXPECT_EQ(std::memcmp(l.far_.memory.pointer, frozen.data(), frozen.size()), 0) << "written after the reset";

    // A new connection between the reset host and the other one, whose old queue pairs still repeat themselves.
    const link again = make_link(system, patient(), 11);
    expect_works(again);
    EXPECT_EQ(std::memcmp(l.far_.memory.pointer, frozen.data(), frozen.size()), 0) << "written after the reset";
    std::map<std::uint32_t, unsigned> first;
    for (unsigned i = 0; i < 3 * connections; ++i) {
      const ibv_wc wc = l.lanes_[0].a.wait_send();
      if (wc.status == IBV_WC_SUCCESS) continue;
      if (first[wc.qp_num]++ == 0) {
        EXPECT_TRUE(wc.status == IBV_WC_RETRY_EXC_ERR || wc.status == IBV_WC_WR_FLUSH_ERR) << wc.status;
      }
    }
    EXPECT_EQ(first.size(), connections) << "queue pairs whose peer is gone";
    for (const link& lane : l.lanes_) EXPECT_EQ(lane.a.state(), IBV_QPS_ERR);
    expect_works(again);
    EXPECT_EQ(b.close(), 0);
  });
}

TEST(Reset, ByTheRegisterUnderTraffic) {
  hosts::two_nodes system(default_system());
  reset_and_reopen(system, [](host_driver::device& b) { ASSERT_EQ(b.reset(), 0); });
  EXPECT_GT(value(system, "b.adapter.pcie.dma.refused_requests"), 0U) << "the reset came when DMA was at rest";
}

TEST(Reset, ByClosingUnderTraffic) {
  hosts::two_nodes system(default_system());
  reset_and_reopen(system, [](host_driver::device& b) { ASSERT_EQ(b.close(), 0); });
}

/// CLOSE_HCA with everything still in hardware, as when the driver was killed and another one cleans up.
TEST(Reset, ByCloseHcaUnderTraffic) {
  hosts::two_nodes_config c = default_system();
  c.node.driver.command_timeout_us = 2000;
  hosts::two_nodes system(c);
  reset_and_reopen(system, [](host_driver::device& b) {
    ASSERT_EQ(b.commands().command(abi::opcode::close_hca), -ETIMEDOUT) << "its event queue is gone, too";
    ASSERT_EQ(b.abandon(), 0);
  });
}

}  // namespace
}  // namespace rnic::system_test
