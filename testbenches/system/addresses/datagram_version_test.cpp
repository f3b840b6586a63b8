// SPDX-License-Identifier: Apache-2.0
// config::ud_gid_type: the RoCE version of datagram queue pairs.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "model/abi/command_set.h"
#include "model/abi/contexts.h"
#include "testbenches/system/addresses/captured.h"

namespace rnic::system_test {
namespace {

using host_driver::roce_types;
using version = host_driver::config::datagram_version;

constexpr std::uint32_t qkey = 0x22223333, bytes = 64;

/// A datagram queue pair and what it says to the other host.
struct speaker {
  side s;
  hosts::buffer memory;

  explicit speaker(hosts::two_nodes& system) {
    const hosts::connection_options o;
    s.at = system.a();
    hosts::set_address(s.at, o, 1);
    s.at.device->add_address(1, s.at.gid, roce_types::both);
    hosts::set_address(system.b(), o, 2);
    s.send_cq = s.dev().create_cq(64);
    s.receive_cq = s.dev().create_cq(64);
    s.qp = make_datagram_qp(s, qkey, 8, 1);
    memory = hosts::make_buffer(s.at, bytes);
  }
  host_driver::address_handle* handle(ibv_gid_type type, const hosts::endpoint& to) const {
    ibv_ah_attr a{};
    a.is_global = 1;
    std::copy(to.gid.begin(), to.gid.end(), a.grh.dgid.raw);
    a.grh.sgid_index = static_cast<std::uint8_t>(s.dev().find_gid(1, s.at.gid, type));
    a.grh.hop_limit = 64;
    a.port_num = 1;
    return s.dev().create_ah(s.at.pd, &a, &to.mac);
  }
  int send(ibv_ah* ah, std::uint32_t qpn = 0x123, std::uint32_t key = qkey) const {
    ibv_sge sge{memory.address(0), bytes, memory.region->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = key;
    const int error = s.dev().post_send(s.qp, &wr, &bad);
    EXPECT_EQ(bad, error != 0 ? &wr : nullptr);
    if (error == 0) {
      EXPECT_EQ(s.wait_send().status, IBV_WC_SUCCESS);
    }
    return error;
  }
  unsigned context_mode() const {
    host_driver::command_channel::mailbox box(s.dev().commands());
    hosts::require(s.dev().commands().read(box, abi::opcode::query_qp, s.qp->qp_num), "QUERY_QP");
    return abi::get(box.data() + abi::qp_mailbox::context, abi::qpc::roce_mode);
  }
};

/// Sends a datagram of each version; which of them were taken.
std::vector<std::string> spoken(version setting, const char* name, int expected_v1, int expected_v2,
                                unsigned expected_mode) {
  hosts::two_nodes_config c = default_system();
  c.node.driver.ud_gid_type = setting;
  capture_into(c, name);
  {
    hosts::two_nodes system(c);
    run(system, [&] {
      const speaker a(system);
      EXPECT_EQ(a.context_mode(), expected_mode);
      auto* const v1 = a.handle(IBV_GID_TYPE_ROCE_V1, system.b());
      auto* const v2 = a.handle(IBV_GID_TYPE_ROCE_V2, system.b());
      ASSERT_TRUE(v1 != nullptr && v2 != nullptr) << "address handles know no queue pair yet";
      EXPECT_EQ(a.send(v1), expected_v1);
      EXPECT_EQ(a.send(v2), expected_v2);
      a.s.at.bus->spend_ps(20 * us);
    });
  }
  return frames_of(c.capture, {"eth.type", "udp.dstport"});
}

/// ib/qp.c writes a mode at INIT to RTR for queue pairs with an address vector and for QP1, so datagram queue pairs
/// have 0, and each datagram goes out as its address handle's GID is.
TEST(DatagramVersion, FollowsTheAddressHandleByDefault) {
  if (!has_tshark()) GTEST_SKIP() << "no tshark";
  EXPECT_EQ(host_driver::config{}.ud_gid_type, version::by_address);
  EXPECT_EQ(spoken(version::by_address, "ud_by_address.pcap", 0, 0, abi::qpc::roce_mode_v1),
            (std::vector<std::string>{"0x8915\t", "0x0800\t4791"}));
}

/// The distribution's manual: 0, RoCE v1, for all UD queue pairs of the device.
TEST(DatagramVersion, OfAllQueuePairsIsOne) {
  if (!has_tshark()) GTEST_SKIP() << "no tshark";
  EXPECT_EQ(spoken(version::v1, "ud_v1.pcap", 0, -EINVAL, abi::qpc::roce_mode_v1),
            std::vector<std::string>{"0x8915\t"});
}

TEST(DatagramVersion, OfAllQueuePairsIsTwo) {
  if (!has_tshark()) GTEST_SKIP() << "no tshark";
  EXPECT_EQ(spoken(version::v2, "ud_v2.pcap", -EINVAL, 0, abi::qpc::roce_mode_v2),
            std::vector<std::string>{"0x0800\t4791"});
}

/// QP1 has a queue pair for each version (ib/qp.c:mlx4_ib_post_send): connections are made in both whatever UD has.
TEST(DatagramVersion, IsNothingToTheConnectionManager) {
  hosts::two_nodes_config c = default_system();
  c.node.driver.ud_gid_type = version::v1;
  hosts::two_nodes system(c);
  run(system, [&] {
    speaker a(system);
    ibv_qp_init_attr init{};
    init.send_cq = a.s.send_cq;
    init.recv_cq = a.s.receive_cq;
    init.cap.max_send_wr = init.cap.max_recv_wr = 4;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    a.s.qp = a.s.dev().create_gsi(a.s.at.pd, &init, 1);
    ASSERT_NE(a.s.qp, nullptr);
    for (const ibv_gid_type type : {IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2})
      EXPECT_EQ(a.send(a.handle(type, system.b()), 1, host_driver::gsi_qkey), 0);
  });
}

}  // namespace
}  // namespace rnic::system_test
