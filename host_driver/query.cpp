// SPDX-License-Identifier: Apache-2.0
// What the device said about itself, in the structures of verbs (ib/main.c:mlx4_ib_query_device, mlx4_ib_query_port).
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "host_driver/device.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

namespace {
constexpr std::uint8_t speed_10g_lane = 4, speed_14g_lane = 16;  // IBTA active speed codes
constexpr std::uint8_t width_1x = 1, width_4x = 2;
constexpr std::uint32_t port_cm_supported = 1u << 16, port_ip_based_gids = 1u << 26;  // IBTA, and verbs' own

unsigned capability_flags(const device_caps& caps) {
  namespace c = abi::dev_cap;
  unsigned flags =
      IBV_DEVICE_CHANGE_PHY_PORT | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN;
  const std::pair<unsigned, unsigned> by_bit[] = {{c::flag_bad_pkey_counter, IBV_DEVICE_BAD_PKEY_CNTR},
                                                  {c::flag_bad_qkey_counter, IBV_DEVICE_BAD_QKEY_CNTR},
                                                  {c::flag_apm, IBV_DEVICE_AUTO_PATH_MIG},
                                                  {c::flag_ud_av_port, IBV_DEVICE_UD_AV_PORT_ENFORCE},
                                                  {c::flag_ipoib_csum, IBV_DEVICE_UD_IP_CSUM},
                                                  {c::flag_xrc, IBV_DEVICE_XRC},
                                                  {c::flag_mem_window, IBV_DEVICE_MEM_WINDOW}};
  for (const auto& [bit, flag] : by_bit)
    if (caps.has(bit)) flags |= flag;
  constexpr std::uint32_t management = c::bmme_local_inv | c::bmme_remote_inv | c::bmme_fast_reg;
  if ((caps.bmme_flags & management) == management) flags |= IBV_DEVICE_MEM_MGT_EXTENSIONS;
  if ((caps.bmme_flags & c::bmme_type_2_win) != 0)
    flags |= (caps.bmme_flags & c::bmme_win_2b) != 0 ? IBV_DEVICE_MEM_WINDOW_TYPE_2B : IBV_DEVICE_MEM_WINDOW_TYPE_2A;
  return flags;
}

int as_int(std::uint64_t n) { return static_cast<int>(std::min<std::uint64_t>(n, 0x7fffffff)); }
}  // namespace

int device::query_device(ibv_device_attr* attr) {
  if (!open_) return -ENODEV;
  *attr = ibv_device_attr{};
  std::snprintf(attr->fw_ver, sizeof attr->fw_ver, "%u.%u.%u", unsigned{firmware_.major}, unsigned{firmware_.minor},
                unsigned{firmware_.subminor});
  attr->node_guid = __builtin_bswap64(node_guid_);
  attr->sys_image_guid = __builtin_bswap64(system_guid_);
  attr->max_mr_size = ~std::uint64_t{0};
  attr->page_size_cap = ~(caps_.min_page - 1);  // 32 bits, as the kernel keeps it
  attr->vendor_id = 0x02c9;
  attr->vendor_part_id = device_id_;
  attr->hw_ver = revision_;
  attr->max_qp = as_int(virtual_ ? num_qps_ : num_qps_ - tables_.first_qpn());
  attr->max_qp_wr = as_int(caps_.max_qp_wqes - 33);  // headroom for the spare entries
  attr->device_cap_flags = capability_flags(caps_);
  if (by_device()) attr->device_cap_flags |= IBV_DEVICE_MANAGED_FLOW_STEERING;
  attr->max_sge = as_int(std::min(caps_.max_sq_sge, caps_.max_rq_sge));
  attr->max_sge_rd = std::min(attr->max_sge, 30);
  attr->max_cq = as_int(profile_[icm_region::cq].count - caps_.reserved_cqs);
  attr->max_cqe = as_int(caps_.max_cqes - 1);
  attr->max_mr = as_int(num_mpts_ - caps_.reserved_mpts);
  attr->max_pd = as_int(caps_.max_pds - caps_.reserved_pds);
  attr->max_qp_rd_atom = as_int(caps_.max_responder_rdma);
  attr->max_qp_init_rd_atom = as_int(caps_.max_requester_rdma);
  attr->max_res_rd_atom = as_int(std::uint64_t{caps_.max_responder_rdma} * static_cast<unsigned>(attr->max_qp));
  attr->atomic_cap = caps_.has(abi::dev_cap::flag_atomic) ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
  attr->max_mcast_grp = as_int(profile_[icm_region::mcg].count);
  const std::uint64_t group_qps = 4 * (std::uint64_t{profile_.mcg_entry_bytes} / 16 - 2);  // net/mcg.c
  attr->max_mcast_qp_attach = as_int(group_qps);
  attr->max_total_mcast_qp_attach = as_int(profile_[icm_region::mcg].count * group_qps);
  attr->max_ah = 0x7fffffff;
  attr->max_srq = as_int(profile_[icm_region::srq].count - caps_.reserved_srqs);
  attr->max_srq_wr = as_int(caps_.max_srq_wqes - 1);
  attr->max_srq_sge = as_int(caps_.max_rq_sge - 1);
  attr->max_pkeys = static_cast<std::uint16_t>(ports_[0].pkeys);
  attr->local_ca_ack_delay = static_cast<std::uint8_t>(caps_.ack_delay);
  attr->phys_port_cnt = static_cast<std::uint8_t>(num_ports());
  return 0;
}

int device::query_port(unsigned port, ibv_port_attr* attr) {
  if (!open_ || !has_port(port)) return -EINVAL;
  if (const int error = read_port(port)) return error;
  const port_state& s = ports_[port - 1];
  const bool up = bonded_ ? links() != 0 : s.link_up;
  *attr = ibv_port_attr{};
  attr->state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attr->phys_state = up ? 5 : 3;  // link up, disabled
  attr->max_mtu = IBV_MTU_4096;
  attr->active_mtu = path_mtu(std::min(cfg_.mtu, s.max_mtu), cfg_.path_mtu_rule);
  attr->gid_tbl_len = static_cast<int>(s.gid_rows);
  attr->max_msg_sz = 1u << std::min(caps_.log_max_message, 31u);
  attr->pkey_tbl_len = 1;
  attr->port_cap_flags = port_cm_supported | port_ip_based_gids;
  attr->link_layer = IBV_LINK_LAYER_ETHERNET;
  attr->max_vl_num = 2;
  if (s.speed == abi::query_port::speed_other) return query_extended_speed(port, attr);
  const bool four_lanes = s.speed == abi::query_port::speed_40g || s.speed == abi::query_port::speed_56g;
  attr->active_width = four_lanes ? width_4x : width_1x;
  attr->active_speed = s.speed == abi::query_port::speed_56g ? speed_14g_lane : speed_10g_lane;
  return 0;
}

/// Rates that QUERY_PORT has no code for.
int device::query_extended_speed(unsigned port, ibv_port_attr* attr) {
  std::uint8_t response[abi::mad::bytes];
  if (const int error = mad(port, abi::mad::port_info, port, response)) return error;
  const unsigned extended = abi::get(response, abi::mad::port_speed_extended) >> 4;
  const bool has_extended = (abi::get(response, abi::mad::port_capability_mask) & abi::mad::extended_speeds) != 0;
  attr->active_width = abi::get(response, abi::mad::port_width_active);
  attr->active_speed =  // verbs go on with 16 FDR, 32 EDR ... where the ordinary codes end
      static_cast<std::uint8_t>(has_extended && extended != 0 ? extended << 4 : speed_10g_lane);
  return 0;
}

int device::query_gid(unsigned port, int index, ibv_gid* gid) {
  if (!has_port(port) || index < 0 || index >= static_cast<int>(ports_[0].gids.size())) return -EINVAL;
  const gid_row& row = ports_[port - 1].gids[static_cast<unsigned>(index)];
  std::memcpy(gid->raw, row.id.data(), row.id.size());
  return 0;
}

int device::query_gid_type(unsigned port, int index, ibv_gid_type* type) {
  if (!has_port(port) || index < 0 || index >= static_cast<int>(ports_[0].gids.size())) return -EINVAL;
  const gid_row& row = ports_[port - 1].gids[static_cast<unsigned>(index)];
  if (!row.valid) return -ENODATA;
  *type = row.type;
  return 0;
}

int device::query_traffic(unsigned port, traffic_statistics* out, bool clear) {
  if (!open_ || !has_port(port)) return -EINVAL;
  namespace f = abi::if_stat;
  command_channel::mailbox box(channel_);
  const std::uint32_t counter = ports_[port - 1].counter;
  if (const int error = channel_.read(box, abi::opcode::query_if_stat, counter | (clear ? f::reset : 0))) return error;
  out->rx_frames = abi::get(box.data(), f::rx_frames);
  out->rx_bytes = abi::get(box.data(), f::rx_bytes);
  out->tx_frames = abi::get(box.data(), f::tx_frames);
  out->tx_bytes = abi::get(box.data(), f::tx_bytes);
  return 0;
}

int device::query_pkey(unsigned port, int index, std::uint16_t* pkey) {
  if (!has_port(port) || index != 0) return -EINVAL;  // one key on RoCE
  std::uint8_t response[abi::mad::bytes];
  if (const int error = mad(port, abi::mad::pkey_table, 0, response)) return error;
  std::memcpy(pkey, response + abi::mad::data, sizeof *pkey);
  return 0;
}

int device::query_statistics(unsigned port, port_statistics* out) {
  namespace f = abi::eth_stats;
  if (!open_ || !has_port(port)) return -EINVAL;
  *out = port_statistics{};
  command_channel::mailbox box(channel_);
  if (const int error = channel_.read(box, abi::opcode::dump_eth_stats, port)) return error;
  const auto wide = [&](std::size_t offset) { return abi::load64(box.data(), offset); };
  for (std::size_t p = 0; p < out->rx_frames.size(); ++p) {
    out->rx_frames[p] = wide(f::rx_frames + 24 * p);
    out->rx_octets[p] = wide(f::rx_good_octets + 24 * p);
    out->tx_frames[p] = wide(f::tx_frames + 24 * p);
    out->tx_octets[p] = wide(f::tx_good_octets + 24 * p);
  }
  out->rx_control = wide(f::rx_control);
  out->rx_too_long = wide(f::too_long);
  out->rx_crc = abi::load32(box.data(), f::crc);
  out->rx_runt = abi::load32(box.data(), f::runt);
  out->rx_dropped = abi::load32(box.data(), f::rx_drop);
  out->rx_overflow = abi::load32(box.data(), f::rx_drop_overflow);
  out->tx_dropped = abi::load32(box.data(), f::tx_drop);

  command_channel::mailbox flow(channel_);
  if (const int error = channel_.read(flow, abi::opcode::dump_eth_stats, port | f::flow_control)) return error;
  for (std::size_t p = 0; p < out->rx_pause.size(); ++p) {
    const auto at = [&](std::size_t word) { return abi::load64(flow.data(), 64 * p + 8 * word); };
    out->rx_pause[p] = {at(0), at(1), at(2)};
    out->tx_pause[p] = {at(3), at(4), at(5)};
  }
  return 0;
}

}  // namespace rnic::host_driver
