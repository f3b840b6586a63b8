// SPDX-License-Identifier: Apache-2.0
// A flow steering rule in the mailbox of QP_FLOW_STEERING_ATTACH.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "host_driver/gid_rules.h"

namespace rnic::host_driver {

/// Control segment and headers (net/mcg.c: trans_rule_ctrl_to_hw, parse_trans_rule; ib/main.c: __mlx4_ib_create_flow,
/// parse_flow_attr).
class flow_request {
 public:
  struct control {
    std::uint16_t priority = 0;  ///< with its domain
    std::uint8_t type = 0;       ///< abi::flow_rule
    bool loopback = false;       ///< what the port has sent itself, too
    unsigned port = 1;
    std::uint32_t qpn = 0;
  };
  /// `mailbox`: zeros. A rule without headers.
  explicit flow_request(std::uint8_t* mailbox) : mailbox_(mailbox) {}

  void set(const control& c);
  /// All frames to this address.
  void add_destination(const mac_address& mac);
  /// All RoCE datagrams to this group.
  void add_group(const ibv_gid& gid);
  /// The headers of a program's rule. 0, or -EINVAL: one that there is not, or they do not fit into `attr.size`.
  int add_headers(const ibv_flow_attr& attr);
  /// in_modifier.
  std::uint32_t words() const { return static_cast<std::uint32_t>(bytes_ / 4); }

 private:
  std::uint8_t* add(std::uint16_t id, std::size_t bytes);
  int add_header(const std::uint8_t* spec, std::size_t bytes);

  std::uint8_t* mailbox_;
  std::size_t bytes_ = 16;  // the control segment
};

}  // namespace rnic::host_driver
