// SPDX-License-Identifier: Apache-2.0
// Steering by rules that the device manages (net/main.c: choose_steering_mode; net/mcg.c: mlx4_flow_attach,
// mlx4_trans_to_dmfs_attach; ib/main.c: mlx4_ib_create_flow, mlx4_ib_mcg_attach).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host_driver/device.h"
#include "host_driver/flow_request.h"
#include "model/abi/command_set.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

namespace f = abi::flow_rule;

namespace {

constexpr std::uint16_t highest_priority = 0xfff;  // MLX4_IB_FLOW_MAX_PRIO
constexpr std::uint32_t sniffs = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;

bool all(const std::uint8_t* bytes, std::size_t count, std::uint8_t value) {
  return std::all_of(bytes, bytes + count, [value](std::uint8_t b) { return b == value; });
}

bool same(const ibv_gid& a, const ibv_gid& b) { return std::memcmp(a.raw, b.raw, sizeof a.raw) == 0; }

/// Copies of what others get (ib/main.c: mlx4_ib_add_dont_trap_rule): all, or what the group bit of the address says.
int sniffer_types(const ibv_flow_attr& attr, std::vector<std::uint8_t>* types) {
  if (attr.num_of_specs > 1 || attr.priority != 0) return -EOPNOTSUPP;
  ibv_flow_spec_eth spec{};
  if (attr.num_of_specs == 1) {
    if (attr.size < sizeof attr + sizeof spec) return -EINVAL;
    std::memcpy(&spec, &attr + 1, sizeof spec);
    if (spec.type != IBV_FLOW_SPEC_ETH) return -EINVAL;
  }
  if (all(spec.mask.dst_mac, sizeof spec.mask.dst_mac, 0)) {
    *types = {f::type_group_sniffer, f::type_unicast_sniffer};
    return 0;
  }
  if (spec.mask.dst_mac[0] != 1 || !all(spec.mask.dst_mac + 1, sizeof spec.mask.dst_mac - 1, 0)) return -EINVAL;
  *types = {(spec.val.dst_mac[0] & 1) != 0 ? f::type_group_sniffer : f::type_unicast_sniffer};
  return 0;
}

/// 0 and the types of the rules that a program's one becomes.
int types_of(const ibv_flow_attr& attr, bool has_sniffers, std::vector<std::uint8_t>* types) {
  if ((attr.flags & ~sniffs) != 0 || attr.comp_mask != 0) return -EOPNOTSUPP;
  if ((attr.flags & sniffs) != 0) {
    if (attr.type != IBV_FLOW_ATTR_NORMAL || !has_sniffers) return -EOPNOTSUPP;
    return sniffer_types(attr, types);
  }
  switch (attr.type) {
    case IBV_FLOW_ATTR_NORMAL:
      *types = {f::type_regular};
      return 0;
    case IBV_FLOW_ATTR_ALL_DEFAULT:
      *types = {f::type_all_default};
      return 0;
    case IBV_FLOW_ATTR_MC_DEFAULT:
      *types = {f::type_group_default};
      return 0;
    case IBV_FLOW_ATTR_SNIFFER:  // the device has none, and says so
      *types = {f::type_mirror_receive, f::type_mirror_send};
      return 0;
    default:
      return -EINVAL;
  }
}

/// One Ethernet header to a group: broadcast and groups that virtual functions and network interfaces have, too
/// (net/resource_tracker.c: mlx4_handle_eth_header_mcast_prio).
bool is_plain_group(const ibv_flow_attr& attr) {
  ibv_flow_spec_eth spec{};
  if (attr.num_of_specs != 1 || attr.size < sizeof attr + sizeof spec) return false;
  std::memcpy(&spec, &attr + 1, sizeof spec);
  return spec.type == IBV_FLOW_SPEC_ETH && (spec.val.dst_mac[0] & 1) != 0;
}

}  // namespace

/// Every function has a place in an entry: all of them attach broadcast.
void device::choose_steering() {
  const bool may = caps_.flow_steering && caps_.max_flow_qps >= cfg_.virtual_functions + 1;
  steering_ = may ? cfg_.steering : config::steering_mode::b0;
}

/// A rule on the port; bonded, one on each; mirrored, with its twin on the other one.
int device::attach_rules(unsigned port, const std::function<int(unsigned port, flow_request& to)>& fill,
                         std::vector<std::uint64_t>* ids) {
  for (unsigned p = 1; p <= ports_.size(); ++p) {
    if (p != port && !bonded_) continue;
    command_channel::mailbox box(channel_);
    flow_request request(box.data());
    int error = fill(p, request);
    std::uint64_t id = 0;
    if (error == 0)
      error = channel_.execute({abi::opcode::flow_steering_attach, request.words(), 0, box.address(), 0, &id});
    if (error == 0) {
      ids->push_back(id);
      if (!may_mirror()) continue;
      const std::size_t bytes = std::size_t{request.words()} * 4;
      own_rule& rule = own_rules_[id];
      rule = {std::vector<std::uint8_t>(box.data(), box.data() + bytes), 0};
      if (mirrored_) error = mirror_rule(rule);
    }
    if (error != 0) {
      detach_rules(*ids);
      ids->clear();
      return error;
    }
  }
  return 0;
}

int device::detach_rules(const std::vector<std::uint64_t>& ids) {
  int first = 0;
  const auto detach = [&](std::uint64_t id) {
    const int error = channel_.command(abi::opcode::flow_steering_detach, 0, 0, id);
    if (first == 0) first = error;
  };
  for (const std::uint64_t id : ids) {
    detach(id);
    const auto own = own_rules_.find(id);
    if (own == own_rules_.end()) continue;
    if (own->second.mirror != 0) detach(own->second.mirror);
    own_rules_.erase(own);
  }
  return first;
}

steering_flow* device::create_managed_flow(queue_pair* qp, const ibv_flow_attr* attr) {
  const auto fail = [](int error) -> steering_flow* {
    errno = -error;
    return nullptr;
  };
  if ((qp->qp_type != IBV_QPT_RAW_PACKET && qp->qp_type != IBV_QPT_UD) || !has_port(attr->port)) return fail(-EINVAL);
  std::vector<std::uint8_t> types;
  if (const int error = types_of(*attr, caps_.flow_sniffer, &types)) return fail(error);
  if (attr->priority > highest_priority) return fail(-EINVAL);
  const bool shared = enabled_functions_ != 0 && attr->flags == 0 && attr->type == IBV_FLOW_ATTR_NORMAL;
  flow_request::control control;
  control.priority = static_cast<std::uint16_t>(f::domain_verbs | attr->priority);
  if (shared && is_plain_group(*attr)) control.priority = f::domain_nic;
  control.qpn = qp->qp_num;
  auto flow = std::make_unique<steering_flow>();
  flow->qp = qp;
  flow->type = attr->type;
  flow->port = attr->port;
  for (const std::uint8_t type : types) {
    control.type = type;
    const auto fill = [&](unsigned port, flow_request& to) {
      control.port = port;
      to.set(control);
      return to.add_headers(*attr);
    };
    if (const int error = attach_rules(attr->port, fill, &flow->rules)) return fail(error);
  }
  flows_.push_back(std::move(flow));
  return flows_.back().get();
}

int device::attach_group_rule(queue_pair& qp, const ibv_gid& gid, bool block_loopback) {
  for (const group_rule& r : group_rules_)
    if (r.qp == &qp && same(r.gid, gid)) return 0;
  if (!has_port(qp.port)) return -EINVAL;
  group_rule rule{&qp, gid, {}};
  const auto fill = [&](unsigned port, flow_request& to) {
    to.set({f::domain_nic, f::type_regular, !block_loopback, port, qp.qp_num});
    to.add_group(gid);
    return 0;
  };
  const int error = attach_rules(qp.port, fill, &rule.rules);
  if (error == 0) group_rules_.push_back(std::move(rule));
  return error;
}

int device::detach_group_rule(const queue_pair& qp, const ibv_gid& gid) {
  const auto at = std::find_if(group_rules_.begin(), group_rules_.end(),
                               [&](const group_rule& r) { return r.qp == &qp && same(r.gid, gid); });
  if (at == group_rules_.end()) return -EINVAL;
  const std::vector<std::uint64_t> rules = std::move(at->rules);
  group_rules_.erase(at);
  return detach_rules(rules);
}

}  // namespace rnic::host_driver
