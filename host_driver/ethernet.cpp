// SPDX-License-Identifier: Apache-2.0
// Raw packet queue pairs: control segment, path, spreading, rules for what they receive (libmlx4 qp.c; net/mcg.c;
// ib/qp.c; net/en_rx.c).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host_driver/address_rule.h"
#include "host_driver/device.h"
#include "host_driver/flow_request.h"
#include "model/abi/command_set.h"
#include "model/abi/contexts.h"
#include "model/abi/device.h"
#include "model/abi/queue_entries.h"

namespace rnic::host_driver {

namespace {

namespace mcg = abi::mcg;
constexpr unsigned attach_protocol_shift = 28;  // of QP_ATTACH's modifier

unsigned kind_of(const mac_address& mac) { return (mac[0] & 1) != 0 ? mcg::steer_multicast : mcg::steer_unicast; }

/// Identifier of an address's group (net/mcg.c:mlx4_unicast_attach, net/en_netdev.c:mlx4_en_uc_steer_add).
ibv_gid gid_of(unsigned port, const mac_address& mac) {
  ibv_gid gid{};
  gid.raw[mcg::ethernet_port] = static_cast<std::uint8_t>(port);
  gid.raw[mcg::ethernet_steer] = static_cast<std::uint8_t>(kind_of(mac) << 1);
  std::copy(mac.begin(), mac.end(), gid.raw + mcg::ethernet_mac);
  return gid;
}

bool same(const ibv_gid& a, const ibv_gid& b) { return std::memcmp(a.raw, b.raw, sizeof a.raw) == 0; }

bool contains(const std::vector<std::uint32_t>& list, std::uint32_t qpn) {
  return std::find(list.begin(), list.end(), qpn) != list.end();
}

/// One address and nothing else.
bool by_address_only(const ibv_flow_spec_eth& spec) {
  const auto all = [](const std::uint8_t* mask, std::uint8_t value) {
    return std::all_of(mask, mask + 6, [value](std::uint8_t b) { return b == value; });
  };
  return spec.type == IBV_FLOW_SPEC_ETH && spec.size == sizeof spec && all(spec.mask.dst_mac, 0xff) &&
         all(spec.mask.src_mac, 0) && spec.mask.ether_type == 0 && spec.mask.vlan_tag == 0;
}

}  // namespace

/// libmlx4 mlx4_post_send: no ICRC; the destination address goes into the control segment for the adapter's own switch.
void device::put_raw_control(const ibv_send_wr& wr, std::uint32_t* flags, std::uint32_t* immediate,
                             std::uint32_t* tag) const {
  namespace f = abi::wqe::control;
  *flags |= f::solicited;
  if ((wr.send_flags & IBV_SEND_IP_CSUM) != 0) *flags |= f::ip_checksum | f::tcp_udp_checksum;
  if ((wr.send_flags & (send_insert_ctag | send_insert_stag)) != 0) {
    *tag = (wr.send_flags & send_insert_ctag) != 0 ? f::insert_ctag : f::insert_stag;
    *tag |= (__builtin_bswap32(wr.imm_data) & 0xffff) << f::tag_shift;
  }
  const std::uint8_t* dmac = nullptr;
  if (wr.opcode == IBV_WR_TSO) {
    dmac = wr.tso.hdr_sz >= 6 ? static_cast<const std::uint8_t*>(wr.tso.hdr) : nullptr;
  } else if (wr.num_sge != 0 && wr.sg_list[0].length >= 6) {
    const std::uint64_t address = wr.sg_list[0].addr;
    const bool in_program = (wr.send_flags & IBV_SEND_INLINE) != 0;
    dmac = static_cast<const std::uint8_t*>(in_program ? inline_source(address, 6) : buffer_at(address, 6));
  }
  if (dmac == nullptr) return;
  *flags |= std::uint32_t{abi::load16(dmac, 0)} << 16;
  *immediate = abi::load32(dmac, 2);
}

/// The path of a raw packet queue pair; the kernel gives the link type with every transition.
void device::fill_raw_path(const queue_pair& qp, std::uint8_t* path) const {
  namespace f = abi::path;
  constexpr std::uint8_t default_sched_queue = 0x83;
  const unsigned port = qp.port != 0 ? qp.port - 1 : 0;
  abi::set(path, f::sched_queue,
           static_cast<std::uint8_t>(default_sched_queue | port << 6 | (qp.ethernet.priority & 7u) << 3));
  abi::set(path, f::link_type, f::link_ethernet);
  abi::set(path, f::fl, qp.ethernet.fl);
  abi::set(path, f::vlan_control, qp.ethernet.vlan_control);
  abi::set(path, f::feup, qp.ethernet.feup);
  abi::set(path, f::fvl_rx, qp.ethernet.fvl_rx);
  abi::set(path, f::vlan_index, qp.ethernet.vlan_index);
  abi::set(path, f::mac_index, static_cast<std::uint8_t>(ports_[port].mac_index));
}

/// The indirection queue pair of net/en_rx.c:mlx4_en_config_rss_steer.
queue_pair* device::create_rss_qp(ibv_pd* pd, const spreading& how) {
  const auto fail = [](int error) -> queue_pair* {
    errno = error;
    return nullptr;
  };
  const std::size_t count = how.targets.size();
  if (count == 0 || (count & (count - 1)) != 0 || how.port == 0 || how.port > ports_.size()) return fail(EINVAL);
  for (std::size_t i = 0; i < count; ++i)
    if (how.targets[i]->qp_num != how.targets[0]->qp_num + i) return fail(EINVAL);
  ibv_qp_init_attr init{};
  init.send_cq = how.targets[0]->send_cq;
  init.recv_cq = how.targets[0]->recv_cq;
  init.qp_type = IBV_QPT_RAW_PACKET;
  queue_pair* qp = create_qp(pd, &init);
  if (qp == nullptr) return nullptr;
  qp->port = how.port;
  namespace q = abi::qpc;
  namespace r = abi::rss;
  for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    command_channel::mailbox box(channel_);
    std::uint8_t* c = box.data() + abi::qp_mailbox::context;
    const ibv_qp_attr nothing{};
    int error = fill_context(*qp, nothing, 0, to, nullptr, box.data());
    std::uint8_t* rss = c + q::rss_context;
    std::memset(rss, 0, r::bytes);
    abi::set(c, q::rss, 1);
    abi::set(rss, r::log_size, log2_up(static_cast<std::uint32_t>(count)));
    abi::set(rss, r::base_qpn, how.targets[0]->qp_num);
    abi::set(rss, r::base_qpn_udp, how.targets[0]->qp_num);
    abi::set(rss, r::default_qpn, (how.otherwise != nullptr ? how.otherwise : how.targets[0])->qp_num);
    abi::set(rss, r::hash_function, how.toeplitz ? r::hash_toeplitz : r::hash_xor);
    abi::set(rss, r::flags, how.fields);
    std::copy(how.key.begin(), how.key.end(), rss + r::key);
    if (error == 0) error = move_qp(*qp, to, &box, false);
    if (error != 0) {
      destroy_qp(qp);
      return fail(-error);
    }
  }
  return qp;
}

/// The tables are the physical function's (net/mcg.c: mlx4_QP_ATTACH).
static int ask_for_address(command_channel& channel, const ibv_gid& gid, std::uint32_t qpn, bool attach) {
  command_channel::mailbox box(channel);
  std::memcpy(box.data(), gid.raw, sizeof gid.raw);
  return channel.write(box, abi::opcode::qp_attach, qpn | mcg::protocol_ethernet << attach_protocol_shift,
                       attach ? 1 : 0);
}

/// A queue pair for an address, and those that want all addresses (net/mcg.c:new_steering_entry).
int device::attach_address(unsigned port, const mac_address& mac, std::uint32_t qpn) {
  if (virtual_) return ask_for_address(channel_, gid_of(port, mac), qpn, true);
  ethernet_table& table = ethernet_tables_[port - 1][kind_of(mac)];
  const ibv_gid gid = gid_of(port, mac);
  if (const int error = attach_member(gid, qpn, mcg::protocol_ethernet)) return error;
  for (const std::uint32_t other : table.promiscuous)
    if (const int error = attach_member(gid, other, mcg::protocol_ethernet)) return error;
  auto at = std::find_if(table.groups.begin(), table.groups.end(), [&](const auto& g) { return same(g.gid, gid); });
  if (at == table.groups.end()) at = table.groups.insert(at, {gid, {}});
  at->qpns.push_back(qpn);
  return 0;
}

int device::detach_address(unsigned port, const mac_address& mac, std::uint32_t qpn) {
  if (virtual_) return ask_for_address(channel_, gid_of(port, mac), qpn, false);
  ethernet_table& table = ethernet_tables_[port - 1][kind_of(mac)];
  const ibv_gid gid = gid_of(port, mac);
  const auto at =
      std::find_if(table.groups.begin(), table.groups.end(), [&](const auto& g) { return same(g.gid, gid); });
  if (at == table.groups.end() || !contains(at->qpns, qpn)) return -EINVAL;
  at->qpns.erase(std::find(at->qpns.begin(), at->qpns.end(), qpn));
  if (!contains(at->qpns, qpn) && !contains(table.promiscuous, qpn))
    if (const int error = detach_member(gid, qpn, mcg::protocol_ethernet)) return error;
  if (!at->qpns.empty()) return 0;
  for (const std::uint32_t other : table.promiscuous)  // nobody asks for this address any more
    if (const int error = detach_member(gid, other, mcg::protocol_ethernet)) return error;
  table.groups.erase(at);
  return 0;
}

/// net/mcg.c:add_promisc_qp, remove_promisc_qp: in every entry, and in the default entry.
int device::set_promiscuous(unsigned port, unsigned kind, std::uint32_t qpn, bool on) {
  if (virtual_) return -EOPNOTSUPP;
  ethernet_table& table = ethernet_tables_[port - 1][kind];
  auto& list = table.promiscuous;
  if (on) {
    for (const ethernet_group& g : table.groups)
      if (const int error = attach_member(g.gid, qpn, mcg::protocol_ethernet)) return error;
    list.push_back(qpn);
  } else {
    if (!contains(list, qpn)) return -EINVAL;
    list.erase(std::find(list.begin(), list.end(), qpn));
    if (contains(list, qpn)) return 0;
    for (const ethernet_group& g : table.groups)
      if (!contains(g.qpns, qpn))
        if (const int error = detach_member(g.gid, qpn, mcg::protocol_ethernet)) return error;
  }
  return write_default_entry(port, kind);
}

int device::write_default_entry(unsigned port, unsigned kind) {
  command_channel::mailbox box(channel_);
  std::uint32_t count = 0;
  for (const std::uint32_t qpn : ethernet_tables_[port - 1][kind].promiscuous)
    abi::store32(box.data(), mcg::members + 4 * count++, qpn);
  abi::set(box.data(), mcg::member_count, count);
  abi::set(box.data(), mcg::protocol, mcg::protocol_ethernet);
  return channel_.write(box, abi::opcode::write_mcg, port << mcg::default_port_shift | kind << mcg::default_steer_shift,
                        1);
}

steering_flow* device::create_flow(ibv_qp* pair, const ibv_flow_attr* attr) {
  auto* qp = static_cast<queue_pair*>(pair);
  return by_device() ? create_managed_flow(qp, attr) : create_group_flow(qp, attr);
}

steering_flow* device::create_group_flow(queue_pair* pair, const ibv_flow_attr* attr) {
  const auto fail = [](int error) -> steering_flow* {
    errno = error;
    return nullptr;
  };
  if (pair->qp_type != IBV_QPT_RAW_PACKET || attr->port == 0 || attr->port > ports_.size()) return fail(EINVAL);
  if (attr->flags != 0 || attr->comp_mask != 0 || attr->priority != 0) return fail(EOPNOTSUPP);
  auto flow = std::make_unique<steering_flow>();
  flow->qp = pair;
  flow->type = attr->type;
  flow->port = attr->port;
  int error = 0;
  if (attr->type == IBV_FLOW_ATTR_NORMAL) {
    ibv_flow_spec_eth spec{};
    if (attr->num_of_specs != 1 || attr->size < sizeof *attr + sizeof spec) return fail(EOPNOTSUPP);
    std::memcpy(&spec, attr + 1, sizeof spec);
    if (!by_address_only(spec)) return fail(EOPNOTSUPP);
    std::copy_n(spec.val.dst_mac, flow->mac.size(), flow->mac.begin());
    error = attach_address(attr->port, flow->mac, pair->qp_num);
  } else if (attr->num_of_specs != 0) {
    return fail(EINVAL);
  } else if (attr->type == IBV_FLOW_ATTR_ALL_DEFAULT || attr->type == IBV_FLOW_ATTR_MC_DEFAULT) {
    error = set_promiscuous(attr->port, mcg::steer_multicast, pair->qp_num, true);
    if (error == 0 && attr->type == IBV_FLOW_ATTR_ALL_DEFAULT)
      error = set_promiscuous(attr->port, mcg::steer_unicast, pair->qp_num, true);
  } else {
    return fail(EOPNOTSUPP);
  }
  if (error != 0) return fail(-error);
  flows_.push_back(std::move(flow));
  return flows_.back().get();
}

steering_flow* device::create_flow(ibv_qp* qp, unsigned port, const mac_address& to) {
  if (by_device()) {  // of one port, also below a bond
    command_channel::mailbox box(channel_);
    flow_request request(box.data());
    request.set({abi::flow_rule::domain_nic, abi::flow_rule::type_regular, true, port, qp->qp_num});
    request.add_destination(to);
    std::uint64_t id = 0;
    const abi::opcode attach = abi::opcode::flow_steering_attach;
    const int error = channel_.execute({attach, request.words(), 0, box.address(), 0, &id});
    errno = -error;
    if (error != 0) return nullptr;
    auto flow = std::make_unique<steering_flow>();
    flow->qp = static_cast<queue_pair*>(qp);
    flow->port = port;
    flow->rules = {id};
    flows_.push_back(std::move(flow));
    return flows_.back().get();
  }
  address_rule rule(to.data(), port);
  return create_flow(qp, &rule.attr);
}

int device::destroy_flow(ibv_flow* rule) {
  const auto at = std::find_if(flows_.begin(), flows_.end(), [&](const auto& f) { return f.get() == rule; });
  if (at == flows_.end()) return -EINVAL;
  const steering_flow flow = **at;
  flows_.erase(at);
  return by_device() ? detach_rules(flow.rules) : remove_group_flow(flow);
}

int device::remove_group_flow(const steering_flow& flow) {
  const std::uint32_t qpn = flow.qp->qp_num;
  if (flow.type == IBV_FLOW_ATTR_NORMAL) return detach_address(flow.port, flow.mac, qpn);
  const int error = set_promiscuous(flow.port, mcg::steer_multicast, qpn, false);
  if (flow.type == IBV_FLOW_ATTR_MC_DEFAULT) return error;
  const int second = set_promiscuous(flow.port, mcg::steer_unicast, qpn, false);
  return error != 0 ? error : second;
}

/// A queue pair that goes takes its rules along.
void device::drop_flows(const queue_pair& qp) {
  for (std::size_t i = flows_.size(); i-- != 0;)
    if (flows_[i]->qp == &qp) destroy_flow(flows_[i].get());
  for (std::size_t i = group_rules_.size(); i-- != 0;)
    if (group_rules_[i].qp == &qp) detach_group_rule(qp, ibv_gid(group_rules_[i].gid));
}

int device::filter_vlans(unsigned port, const std::vector<std::uint16_t>& vids) {
  constexpr std::size_t words = 128;
  if (!has_port(port)) return -EINVAL;
  command_channel::mailbox box(channel_);
  for (const std::uint16_t vid : vids) {
    if (vid >= 32 * words) return -EINVAL;
    const std::size_t at = 4 * (words - 1 - vid / 32);  // the last word has the lowest numbers
    abi::store32(box.data(), at, abi::load32(box.data(), at) | 1u << vid % 32);
  }
  return channel_.write(box, abi::opcode::set_vlan_fltr, port);
}

int device::filter_groups(unsigned port, bool on, const std::vector<mac_address>& groups) {
  if (!has_port(port)) return -EINVAL;
  constexpr std::uint8_t config = 0, disable = 1, enable = 2;
  constexpr std::uint64_t clear = std::uint64_t{1} << 63;
  const auto command = [&](std::uint8_t what, std::uint64_t address) {
    return channel_.execute({abi::opcode::set_mcast_fltr, port, what, address, 0, nullptr});
  };
  if (const int error = command(disable, 0)) return error;
  if (!on) return 0;
  if (const int error = command(config, clear)) return error;
  for (const mac_address& mac : groups) {
    std::uint64_t word = 0;
    for (const std::uint8_t byte : mac) word = word << 8 | byte;
    if (const int error = command(config, word)) return error;
  }
  return command(enable, 0);
}

}  // namespace rnic::host_driver
