// SPDX-License-Identifier: Apache-2.0
// QP1 of virtual functions, as their commands name it (net/resource_tracker.c: valid_reserved, adjust_proxy_tun_qkey;
// net/fw.c: mlx4_QUERY_FUNC_CAP_wrapper).
#include <algorithm>

#include "host_driver/functions/master.h"
#include "model/abi/contexts.h"
#include "model/abi/paravirtual.h"

namespace rnic::host_driver {

namespace pv = abi::paravirtual;

std::optional<function_master::gid_owner> function_master::owner_in(unsigned port, const gid_bytes& gid) const {
  const auto& gids = device_.port(port).gids;
  const auto at =
      std::find_if(gids.begin(), gids.end(), [&gid](const gid_row& row) { return row.valid && row.id == gid; });
  if (at == gids.end()) return std::nullopt;
  const auto row = static_cast<unsigned>(at - gids.begin());
  for (unsigned f = 0; f < functions_.size(); ++f)
    if (const function_ports::window w = ports_.gids_of(f, port); row - w.first < w.count) return gid_owner{f, port};
  return std::nullopt;
}

std::optional<function_master::gid_owner> function_master::owner_of(unsigned port, const gid_bytes& gid) const {
  if (const auto owner = owner_in(port, gid); owner || !device_.mirrors_ports()) return owner;
  return owner_in(3 - port, gid);
}

std::optional<std::uint16_t> function_master::forced_tag(unsigned function) const {
  const function_settings& s = functions_[function].settings;
  if (s.vlan == 0) return std::nullopt;
  return static_cast<std::uint16_t>(s.priority << 13 | s.vlan);
}

bool function_master::has_vlan(unsigned function, unsigned port, std::uint16_t vid) const {
  constexpr std::uint32_t valid = 1u << 31, vid_bits = 0xfff;
  for (const std::uint32_t number : tracker_.of(function, resource::vlan)) {
    const std::uint32_t entry = device_.port(port).vlans[number & 0x7f];
    if ((number >> 8 & 0xff) == port && (entry & valid) != 0 && (entry & vid_bits) == vid) return true;
  }
  return false;
}

bool function_master::is_proxy(const request& r, std::uint32_t qpn) const {
  const std::uint32_t first = pv::proxy(device_.tables().base_special_qpn(), r.function, 1);
  return functions_[r.function].settings.roce && qpn - first < device_.num_ports() &&
         ports_.has(r.function, qpn - first + 1);
}

unsigned function_master::port_of_proxy(const request& r, std::uint32_t qpn) const {
  return qpn - pv::proxy(device_.tables().base_special_qpn(), r.function, 1) + 1;
}

/// The number is the function's from the beginning; it becomes an object of it with this.
abi::status function_master::map_proxy(const request& r, std::uint32_t qpn) {
  if (tracker_.find(r.function, resource::qp, qpn) != nullptr) return status::resource_busy;
  std::uint32_t number = 0;
  if (device_.tables().take(resource::qp, &number, &qpn) != 0) return status::exceed_lim;
  tracker_.add_special(r.function, resource::qp, qpn);
  return status::ok;
}

abi::status function_master::free_proxy(const request& r, std::uint32_t qpn) {
  const auto* const o = tracker_.find(r.function, resource::qp, qpn);
  if (o == nullptr) return status::bad_resource;
  if (o->with_hardware) return status::resource_busy;
  give_number(r.function, resource::qp, qpn);
  return status::ok;
}

/// A queue pair of the function is about to change. A proxy is a datagram queue pair of its port with a Q_Key of its
/// own, and works inside the port. No other one does that, or has a Q_Key of those, or another controlled one, with
/// which it could write to the QP1 of any host (IBA volume 1, 10.2.5; work requests cannot name those).
abi::status function_master::check_special(request& r, std::uint32_t qpn) {
  namespace q = abi::qpc;
  namespace box = abi::qp_mailbox;
  std::uint8_t* const c = r.inbox->data() + box::context;
  const auto fl = abi::at(q::primary_path, abi::path::fl);
  const std::uint32_t optional = abi::get(r.inbox->data(), box::optional);
  if (!is_proxy(r, qpn)) {
    const bool brings_qkey = r.op == abi::opcode::rst2init_qp || (optional & box::opt_qkey) != 0;
    if (brings_qkey && (abi::get(c, q::qkey) & pv::own_qkey) != 0) return status::bad_param;
    abi::set(c, fl, static_cast<std::uint8_t>(abi::get(c, fl) & ~abi::path::fl_loopback));
    return status::ok;
  }
  const unsigned port = port_of_proxy(r, qpn);
  if (abi::get(c, q::service) != q::service_ud || abi::get(c, q::srq_valid) != 0) return status::bad_op;
  abi::set(c, q::qkey, pv::qkey(r.function, port));
  if (r.op == abi::opcode::rst2init_qp) return status::ok;
  // What else could change its path changes nothing.
  abi::set(r.inbox->data(), box::optional, optional & ~(box::opt_primary_path | box::opt_sched_queue));
  if (r.op != abi::opcode::init2rtr_qp) return status::ok;
  const unsigned own = abi::get(c, abi::at(q::primary_path, abi::path::port)) + 1u;
  if (ports_.physical_of(r.function, own) != port) return status::bad_param;
  abi::set(c, fl, abi::path::fl_loopback);
  return mads_.open_tunnel(r.function, port) == 0 ? status::ok : status::exceed_lim;
}

void function_master::tell_special_numbers(const request& r) const {
  if (!functions_[r.function].settings.roce) return;
  const std::uint32_t base = device_.tables().base_special_qpn();
  std::uint8_t* const m = r.outbox->data();
  const unsigned port = ports_.physical_of(r.function, r.modifier);
  const std::uint32_t proxy = pv::proxy(base, r.function, port);
  const std::uint32_t tunnel = pv::tunnel(base, r.function, port);
  abi::set(m, pv::qp0_tunnel, tunnel - pv::qp1);
  abi::set(m, pv::qp0_proxy, proxy - pv::qp1);
  abi::set(m, pv::qp1_tunnel, tunnel);
  abi::set(m, pv::qp1_proxy, proxy);
}

}  // namespace rnic::host_driver
