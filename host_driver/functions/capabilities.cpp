// SPDX-License-Identifier: Apache-2.0
// What virtual functions are told of the device, and commands on their ports (net/fw.c, net/port.c).
#include <algorithm>

#include "host_driver/functions/master.h"

namespace rnic::host_driver {

// ---------------------------------------------------------------- what the device can do

/// Without what a virtual function cannot have: BlueFlame, windows, fast registration, raw Ethernet, rate limits, what
/// is set for a port or for other functions.
abi::status function_master::query_dev_cap(request& r) {
  namespace c = abi::dev_cap;
  const status s = native(r);
  if (s != status::ok) return s;
  std::uint8_t* m = r.outbox->data();
  const auto clear = [m](unsigned bit) { abi::set(m, c::flags, abi::get(m, c::flags) & ~(std::uint64_t{1} << bit)); };
  for (const unsigned bit : {c::flag_mem_window, c::flag_uc_steer, c::flag_mc_steer, c::flag_keep_fcs}) clear(bit);
  if (!functions_[r.function].settings.roce)
    for (const unsigned bit :
         {c::flag_rc, c::flag_uc, c::flag_ud, c::flag_xrc, c::flag_srq, c::flag_atomic, c::flag_ud_mcast, c::flag_iboe})
      clear(bit);
  if (device_.steering() != config::steering_mode::device_managed) abi::set(m, c::flow_steering, 0);
  abi::set(m, c::flow_sniffer, 0);
  abi::set(m, c::blue_flame, 0);
  abi::set(m, c::bmme_flags,
           abi::get(m, c::bmme_flags) &
               ~(c::bmme_type_2_win | c::bmme_win_2b | c::bmme_fast_reg | c::bmme_ignore_fcs | c::bmme_port_remap));
  abi::set(m, c::rate_limits, 0);
  abi::set(m, c::qos_vpp, 0);
  abi::set(m, c::eth_prot_ctrl, 0);
  abi::set(m, c::num_ports, static_cast<std::uint8_t>(ports_.count(r.function)));
  abi::set(m, c::ext_flags, abi::get(m, c::ext_flags) & ~(c::ext_fsm | c::ext_80_vfs | c::ext_vlan_control));
  abi::set(m, c::features, abi::get(m, c::features) & ~(c::feature_diag_per_port | c::feature_ets));
  abi::set(m, c::qcn, 0);
  return s;
}

abi::status function_master::query_func_cap(request& r) {
  namespace f = abi::func_cap;
  std::uint8_t* m = r.outbox->data();
  if (r.op_modifier == 1) {
    if (ports_.physical_of(r.function, r.modifier) == 0) return status::bad_param;
    abi::set(m, f::physical_port, static_cast<std::uint8_t>(r.modifier));  // by the function's own number, too
    // The flags behind are filled in. That address and VLAN are the host's is not said: the kernel's driver of a
    // function takes no Ethernet port of which it is (mlx4_QUERY_FUNC_CAP).
    abi::set(m, f::port_flags, f::port_nic_info);
    tell_special_numbers(r);
    return status::ok;
  }
  if (r.op_modifier != 0) return status::bad_param;
  const auto quota = [&](resource what) { return tracker_.most(r.function)[static_cast<unsigned>(what)]; };
  const unsigned kind = f::flag_ethernet | (functions_[r.function].settings.roce ? f::flag_rdma : 0u);
  abi::set(m, f::flags, static_cast<std::uint8_t>(kind | f::flag_quotas | f::flag_reserved_lkey));
  abi::set(m, f::num_ports, static_cast<std::uint8_t>(ports_.count(r.function)));
  abi::set(m, f::max_eqs, virtual_eqs_);
  abi::set(m, f::reserved_eqs, 0);
  abi::set(m, f::reserved_lkey, device_.caps().reserved_lkey);
  abi::set(m, f::qp_quota, quota(resource::qp));
  abi::set(m, f::cq_quota, quota(resource::cq));
  abi::set(m, f::srq_quota, quota(resource::srq));
  abi::set(m, f::mpt_quota, quota(resource::mpt));
  abi::set(m, f::mtt_quota, quota(resource::mtt));
  return status::ok;
}

abi::status function_master::query_port(request& r) {
  namespace f = abi::query_port;
  const unsigned port = ports_.physical_of(r.function, r.modifier);
  if (port == 0) return status::bad_param;
  const status s = native(r, port);
  if (s != status::ok) return s;
  abi::set(r.outbox->data(), f::mac, functions_[r.function].macs[port - 1]);
  const unsigned gids = functions_[r.function].settings.roce ? ports_.gids_of(r.function, port).count : 0;
  abi::set(r.outbox->data(), f::max_gids, static_cast<std::uint16_t>(gids));
  const bool there = abi::get(r.outbox->data(), f::link_up) != 0 || (device_.mirrors_ports() && has_link(port));
  abi::set(r.outbox->data(), f::link_up, static_cast<std::uint8_t>(sees_link(r.function, there) ? 1 : 0));
  return s;
}

/// The port itself is the physical function's: it is up as long as that has it so.
abi::status function_master::of_port(request& r) {
  return ports_.physical_of(r.function, r.modifier) != 0 ? status::ok : status::bad_param;
}

/// Of its port a function may write the rows of its own window, and nothing else (net/port.c: mlx4_common_set_port).
abi::status function_master::set_port(request& r) {
  namespace f = abi::set_port;
  const unsigned port = ports_.physical_of(r.function, r.modifier & 0xff);
  const auto selector = static_cast<f::selector>(r.modifier >> 8 & 0xff);
  if (port == 0 || r.op_modifier != f::op_ethernet) return status::bad_param;
  if (selector == f::selector::general) return status::ok;  // size and pauses: what the physical function has set
  const bool versions = selector == f::selector::roce_addr;
  if ((!versions && selector != f::selector::gid_table) || !functions_[r.function].settings.roce) return status::bad_op;
  const function_ports::window w = ports_.gids_of(r.function, port);
  const std::size_t stride = versions ? f::roce_addr_bytes : f::gid_bytes;
  std::vector<gid_row> rows(w.count);
  for (unsigned i = 0; i < w.count; ++i) {
    const std::uint8_t* entry = r.inbox->data() + i * stride;
    std::copy_n(entry, rows[i].id.size(), rows[i].id.begin());
    rows[i].valid = std::any_of(rows[i].id.begin(), rows[i].id.end(), [](std::uint8_t b) { return b != 0; });
    rows[i].type = versions && abi::get(entry, f::roce_addr_version) == f::roce_addr_version_v2 ? IBV_GID_TYPE_ROCE_V2
                                                                                                : IBV_GID_TYPE_ROCE_V1;
  }
  return status_of(device_.change_gids(port, w.first, rows));
}

}  // namespace rnic::host_driver
