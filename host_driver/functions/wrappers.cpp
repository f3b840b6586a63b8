// SPDX-License-Identifier: Apache-2.0
// Commands of virtual functions, one by one (net/cmd.c: cmd_info; net/resource_tracker.c, net/fw.c, net/port.c).
#include <algorithm>
#include <cstring>

#include "host_driver/functions/master.h"
#include "model/abi/contexts.h"
#include "model/abi/registers.h"

namespace rnic::host_driver {

namespace op = abi::res_op;
using object = resource_tracker::object;

namespace {

constexpr std::uint32_t qpn_mask = 0xffffff;
constexpr std::uint8_t gid_is_base = 0x80;

std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }

/// What the kernel makes of its allocators' errors.
abi::status status_of(int error) {
  switch (error) {
    case 0:
      return abi::status::ok;
    case -ENOMEM:
    case -ENOSPC:
      return abi::status::exceed_lim;
    case -EINVAL:
      return abi::status::bad_param;
    case -EBUSY:
      return abi::status::resource_busy;
    default:
      return abi::status::internal_error;
  }
}

}  // namespace

/// What is not here does not exist for a virtual function.
const function_master::command function_master::commands[] = {
    {abi::opcode::query_fw, false, true, &function_master::ask},
    {abi::opcode::query_hca, false, true, &function_master::ask},
    {abi::opcode::query_adapter, false, true, &function_master::ask},
    {abi::opcode::nop, false, false, &function_master::ask},
    {abi::opcode::query_dev_cap, false, true, &function_master::query_dev_cap},
    {abi::opcode::query_func_cap, false, true, &function_master::query_func_cap},
    {abi::opcode::query_port, false, true, &function_master::query_port},
    {abi::opcode::init_port, false, false, &function_master::of_port},
    {abi::opcode::close_port, false, false, &function_master::of_port},
    {abi::opcode::set_port, true, false, &function_master::set_port},
    {abi::opcode::alloc_res, false, false, &function_master::alloc_res},
    {abi::opcode::free_res, false, false, &function_master::free_res},
    {abi::opcode::write_mtt, true, false, &function_master::write_mtt},
    {abi::opcode::sync_tpt, false, false, &function_master::ask},
    {abi::opcode::sw2hw_mpt, true, false, &function_master::sw2hw_mpt},
    {abi::opcode::hw2sw_mpt, false, false, &function_master::hw2sw_mpt},
    {abi::opcode::sw2hw_eq, true, false, &function_master::sw2hw_eq},
    {abi::opcode::hw2sw_eq, false, false, &function_master::hw2sw_eq},
    {abi::opcode::map_eq, false, false, &function_master::map_eq},
    {abi::opcode::sw2hw_cq, true, false, &function_master::sw2hw_cq},
    {abi::opcode::hw2sw_cq, false, false, &function_master::hw2sw_cq},
    {abi::opcode::query_cq, false, true, &function_master::of_cq},
    {abi::opcode::modify_cq, true, false, &function_master::of_cq},
    {abi::opcode::sw2hw_srq, true, false, &function_master::sw2hw_srq},
    {abi::opcode::hw2sw_srq, false, false, &function_master::hw2sw_srq},
    {abi::opcode::query_srq, false, true, &function_master::of_srq},
    {abi::opcode::arm_srq, false, false, &function_master::of_srq},
    {abi::opcode::rst2init_qp, true, false, &function_master::change_qp},
    {abi::opcode::init2rtr_qp, true, false, &function_master::change_qp},
    {abi::opcode::rtr2rts_qp, true, false, &function_master::change_qp},
    {abi::opcode::rts2rts_qp, true, false, &function_master::change_qp},
    {abi::opcode::sqerr2rts_qp, true, false, &function_master::change_qp},
    {abi::opcode::rts2sqd_qp, false, false, &function_master::of_qp},
    {abi::opcode::sqd2rts_qp, true, false, &function_master::change_qp},
    {abi::opcode::sqd2sqd_qp, true, false, &function_master::change_qp},
    {abi::opcode::init2init_qp, true, false, &function_master::change_qp},
    {abi::opcode::to_err_qp, false, false, &function_master::of_qp},
    {abi::opcode::to_rst_qp, false, false, &function_master::reset_qp},
    {abi::opcode::query_qp, false, true, &function_master::of_qp},
    {abi::opcode::query_if_stat, false, true, &function_master::query_if_stat},
    {abi::opcode::qp_attach, true, false, &function_master::qp_attach},
    {abi::opcode::flow_steering_attach, true, false, &function_master::attach_flow},
    {abi::opcode::flow_steering_detach, false, false, &function_master::detach_flow},
    {abi::opcode::nop, false, false, nullptr}};

/// Goes on as it is.
abi::status function_master::ask(request& r) { return native(r); }

// ---------------------------------------------------------------- numbers

abi::status function_master::alloc_res(request& r) {
  const auto what = static_cast<resource>(r.modifier & 0xff);
  const std::uint64_t in = r.in;
  r.out = 0;
  switch (what) {
    case resource::qp:
    case resource::mpt:
      return alloc_number(r, what);
    case resource::cq:
    case resource::srq:
    case resource::xrcd:
      return r.op_modifier == op::reserve_and_map ? alloc_number(r, what) : status::bad_param;
    case resource::mtt: {
      const unsigned order = low(in);
      if (r.op_modifier != op::reserve_and_map || order >= 31) return status::bad_param;
      if (!tracker_.has_room(r.function, what, 1u << order)) return status::exceed_lim;
      std::uint32_t first = 0;
      if (const int error = device_.tables().take_mtts(order, &first)) return status_of(error);
      tracker_.add(r.function, what, first, order);
      r.out = first;
      return status::ok;
    }
    case resource::counter: {
      if (r.op_modifier != op::reserve_and_map) return status::bad_param;
      if (!tracker_.has_room(r.function, what, 1)) return status::exceed_lim;
      const std::uint32_t free = tracker_.first_free(what, device_.num_ports(), port_state::sink_counter);
      if (free == port_state::sink_counter) return status::exceed_lim;
      tracker_.add(r.function, what, free);
      r.out = free;
      return clear_counter(free);
    }
    case resource::mac:
    case resource::vlan: {
      const unsigned port = r.modifier >> 8 & 0xff;
      if (r.op_modifier != op::reserve_and_map || port == 0 || port > device_.num_ports()) return status::bad_param;
      if (what == resource::mac && in >> 48 != 0) return status::bad_param;
      // A function has the address that it was given, and no other one's.
      if (what == resource::mac && in != functions_[r.function].macs[port - 1]) return status::bad_op;
      if (what == resource::vlan && in >= 0x1000) return status::bad_param;
      if (what == resource::vlan && functions_[r.function].settings.vlan != 0) return status::bad_op;
      if (!tracker_.has_room(r.function, what, 1)) return status::exceed_lim;
      const int index =
          what == resource::mac ? device_.add_mac(port, in) : device_.add_vlan(port, static_cast<std::uint16_t>(in));
      if (index < 0) return status_of(index);
      const std::uint32_t number = port << 8 | static_cast<std::uint32_t>(index);
      // Several functions may use one VLAN: each has a registration of its own, under a number of its own.
      object* own = tracker_.find(r.function, what, number | r.function << 16);
      if (own == nullptr) own = &tracker_.add(r.function, what, number | r.function << 16);
      ++own->users;
      r.out = static_cast<std::uint32_t>(index);
      return status::ok;
    }
    default:
      return status::bad_param;
  }
}

/// QPs and protection entries are reserved first, and have context memory from a second step on; here both are one.
abi::status function_master::alloc_number(request& r, resource what) {
  const std::uint32_t wanted = low(r.in);
  if (r.op_modifier == op::map) {
    const std::uint32_t number = what == resource::qp ? wanted & qpn_mask : wanted;
    return tracker_.find(r.function, what, number) != nullptr ? status::ok : status::bad_resource;
  }
  const std::uint32_t count = what == resource::qp ? wanted & 0xffffff : 1;
  if (count == 0) return status::bad_param;
  if (!tracker_.has_room(r.function, what, count)) return status::exceed_lim;
  std::uint32_t first = 0;
  const bool range = count != 1 || (what == resource::qp && high(r.in) > 1);
  const int error = range ? device_.tables().take_qps(count, high(r.in), &first) : device_.tables().take(what, &first);
  if (error != 0) return status_of(error);
  for (std::uint32_t i = 0; i < count; ++i) tracker_.add(r.function, what, first + i);
  r.out = first;
  return status::ok;
}

abi::status function_master::free_res(request& r) {
  const auto what = static_cast<resource>(r.modifier & 0xff);
  const std::uint32_t number = low(r.in);
  switch (what) {
    case resource::qp:
    case resource::mpt:
    case resource::cq:
    case resource::srq:
    case resource::xrcd: {
      if (r.op_modifier == op::map) return status::ok;
      const std::uint32_t count = what == resource::qp ? std::max(1u, high(r.in)) : 1;
      for (std::uint32_t i = 0; i < count; ++i) {
        const object* o = tracker_.find(r.function, what, number + i);
        if (o == nullptr) return status::bad_resource;
        if (o->with_hardware) return status::resource_busy;
        if (what == resource::qp && leads_anywhere(r.function, number + i)) return status::resource_busy;
      }
      for (std::uint32_t i = 0; i < count; ++i) {
        device_.tables().give_back(what, number + i);
        tracker_.remove(what, number + i);
      }
      return status::ok;
    }
    case resource::counter:
      if (tracker_.find(r.function, what, number) == nullptr) return status::bad_resource;
      tracker_.remove(what, number);
      return status::ok;
    case resource::mtt: {
      const object* o = tracker_.find(r.function, what, number);
      if (o == nullptr || o->order != high(r.in)) return status::bad_resource;
      device_.tables().give_back_mtts(number, o->order);
      tracker_.remove(what, number);
      return status::ok;
    }
    case resource::mac:
    case resource::vlan: {
      const unsigned port = r.modifier >> 8 & 0xff;
      const std::uint32_t key = r.function << 16 | port << 8 | (number & 0xff);
      object* o = tracker_.find(r.function, what, key);
      if (o == nullptr) return status::bad_resource;
      const int error =
          what == resource::mac ? device_.remove_mac(port, number & 0xff) : device_.remove_vlan(port, number & 0xff);
      if (--o->users == 0) tracker_.remove(what, key);
      return status_of(error);
    }
    default:
      return status::bad_param;
  }
}

// ---------------------------------------------------------------- memory

/// [offset, offset + bytes) of a buffer whose translations begin at `mtt_address` is in entries of the function.
bool function_master::within(const request& r, std::uint64_t mtt_address, std::uint64_t offset, std::uint64_t bytes,
                             unsigned log_page) const {
  const std::uint64_t entry = device_.caps().mtt_bytes;
  if (log_page > 31 || entry == 0 || mtt_address % entry != 0) return false;
  const std::uint64_t pages = (offset + bytes + (std::uint64_t{1} << log_page) - 1) >> log_page;
  return tracker_.has_mtts(r.function, mtt_address / entry, std::max<std::uint64_t>(pages, 1));
}

/// The tables are in the physical function's memory: its driver writes them, as the kernel's does.
abi::status function_master::write_mtt(request& r) {
  namespace f = abi::write_mtt_mailbox;
  const std::uint64_t first = abi::get(r.inbox->data(), f::start_index);
  const std::uint32_t count = r.modifier;
  if (count == 0 || count > f::max_count) return status::bad_param;
  if (!tracker_.has_mtts(r.function, first, count)) return status::bad_op;
  std::vector<std::uint64_t> entries(count);
  for (std::uint32_t i = 0; i < count; ++i) entries[i] = abi::load64(r.inbox->data(), f::entries + 8 * i);
  return status_of(device_.tables().write_mtts(static_cast<std::uint32_t>(first), entries.data(), count));
}

abi::status function_master::sw2hw_mpt(request& r) {
  namespace f = abi::mpt;
  const std::uint8_t* m = r.inbox->data();
  const std::uint32_t number = abi::get(m, f::key);
  object* o = tracker_.find(r.function, resource::mpt, number);
  if (o == nullptr || r.modifier != (number & (device_.tables().num_mpts() - 1))) return status::bad_op;
  const std::uint32_t flags = abi::get(m, f::flags), pd = abi::get(m, f::pd_flags);
  // A queue pair could give itself rights by these that were not looked at here.
  if ((pd & f::pd_fast_reg) != 0 || (flags & f::flag_bind) != 0 || (flags & f::flag_region) == 0) return status::bad_op;
  if ((flags & f::flag_physical) == 0 &&
      !within(r, abi::get(m, f::mtt_address),
              abi::get(m, f::start) & ((1ull << (abi::get(m, f::entity_size) & 31)) - 1), abi::get(m, f::length),
              abi::get(m, f::entity_size)))
    return status::bad_op;
  const status s = native(r);
  if (s == status::ok) o->with_hardware = true;
  return s;
}

abi::status function_master::hw2sw_mpt(request& r) {
  for (const std::uint32_t number : tracker_.of(r.function, resource::mpt)) {
    if ((number & (device_.tables().num_mpts() - 1)) != r.modifier) continue;
    request own = r;
    own.op_modifier = 1;  // the entry is in the physical function's memory
    const status s = native(own);
    if (s == status::ok) tracker_.find(r.function, resource::mpt, number)->with_hardware = false;
    return s;
  }
  return status::bad_op;
}

// ---------------------------------------------------------------- queues

abi::status function_master::sw2hw_eq(request& r) {
  namespace f = abi::eqc;
  const std::uint8_t* c = r.inbox->data();
  if (r.modifier >= virtual_eqs_) return status::bad_index;
  const std::uint32_t number = r.modifier | r.function << 8;
  if (tracker_.find(r.function, resource_eq, number) != nullptr) return status::bad_res_state;
  const std::uint64_t bytes = std::uint64_t{64} << std::min<unsigned>(abi::get(c, f::log_size), 24);
  if (!within(r, abi::load_mtt(c, f::mtt_high, f::mtt_low), 0, bytes / 2, abi::get(c, f::log_page) + 12u))
    return status::bad_op;
  const status s = native(r);
  if (s == status::ok) tracker_.add(r.function, resource_eq, number).with_hardware = true;
  return s;
}

abi::status function_master::hw2sw_eq(request& r) {
  const std::uint32_t number = r.modifier | r.function << 8;
  if (r.modifier >= virtual_eqs_ || tracker_.find(r.function, resource_eq, number) == nullptr) return status::bad_op;
  for (std::uint32_t& eqn : functions_[r.function].event_eqs)
    if (eqn == r.modifier) eqn = no_eq;
  request own = r;
  own.in = r.function;
  own.op_modifier = 1;
  const status s = native(own);
  if (s == status::ok) tracker_.remove(resource_eq, number);
  return s;
}

/// Hardware knows the physical function's queues only: events of others are handed on.
abi::status function_master::map_eq(request& r) {
  const std::uint32_t eqn = r.modifier & 0x7fffffff;
  const bool unmap = r.modifier >> 31 != 0;
  if (!unmap && tracker_.find(r.function, resource_eq, eqn | r.function << 8) == nullptr) return status::bad_op;
  auto& eqs = functions_[r.function].event_eqs;
  for (unsigned type = 0; type < eqs.size(); ++type)
    if ((r.in >> type & 1) != 0) eqs[type] = unmap ? no_eq : eqn;
  return status::ok;
}

abi::status function_master::sw2hw_cq(request& r) {
  namespace f = abi::cqc;
  const std::uint8_t* c = r.inbox->data();
  object* o = tracker_.find(r.function, resource::cq, r.modifier);
  if (o == nullptr) return status::bad_op;
  if (tracker_.find(r.function, resource_eq, abi::get(c, f::eqn) | r.function << 8) == nullptr) return status::bad_op;
  const std::uint64_t bytes = std::uint64_t{32} << std::min<unsigned>(abi::get(c, f::log_size), 24);
  if (!within(r, abi::load_mtt(c, f::mtt_high, f::mtt_low), abi::get(c, f::page_offset), bytes,
              abi::get(c, f::log_page) + 12u))
    return status::bad_op;
  const status s = native(r);
  if (s == status::ok) o->with_hardware = true;
  return s;
}

abi::status function_master::of_cq(request& r) {
  if (tracker_.find(r.function, resource::cq, r.modifier) == nullptr) return status::bad_op;
  if (r.op == abi::opcode::modify_cq && r.op_modifier == 0) {  // another buffer
    namespace f = abi::cqc;
    const std::uint8_t* c = r.inbox->data();
    const std::uint64_t bytes = std::uint64_t{32} << std::min<unsigned>(abi::get(c, f::log_size), 24);
    if (!within(r, abi::load_mtt(c, f::mtt_high, f::mtt_low), abi::get(c, f::page_offset), bytes,
                abi::get(c, f::log_page) + 12u))
      return status::bad_op;
  }
  return native(r);
}

abi::status function_master::hw2sw_cq(request& r) {
  object* o = tracker_.find(r.function, resource::cq, r.modifier);
  if (o == nullptr) return status::bad_op;
  const status s = native(r);
  if (s == status::ok) o->with_hardware = false;
  return s;
}

abi::status function_master::sw2hw_srq(request& r) {
  namespace f = abi::srqc;
  const std::uint8_t* c = r.inbox->data();
  object* o = tracker_.find(r.function, resource::srq, r.modifier);
  if (o == nullptr) return status::bad_op;
  const std::uint16_t domain = abi::get(c, f::xrcd);
  if (domain != 0 && (tracker_.find(r.function, resource::xrcd, domain) == nullptr ||
                      tracker_.find(r.function, resource::cq, abi::get(c, f::cqn)) == nullptr))
    return status::bad_op;
  const std::uint64_t bytes = std::uint64_t{1} << (abi::get(c, f::log_size) + abi::get(c, f::log_stride) + 4u);
  if (!within(r, abi::load_mtt(c, f::mtt_high, f::mtt_low), std::uint64_t{abi::get(c, f::page_offset)} * 64, bytes,
              abi::get(c, f::log_page) + 12u))
    return status::bad_op;
  const status s = native(r);
  if (s == status::ok) o->with_hardware = true;
  return s;
}

abi::status function_master::of_srq(request& r) {
  return tracker_.find(r.function, resource::srq, r.modifier) != nullptr ? native(r) : status::bad_op;
}

abi::status function_master::hw2sw_srq(request& r) {
  object* o = tracker_.find(r.function, resource::srq, r.modifier);
  if (o == nullptr) return status::bad_op;
  const status s = native(r);
  if (s == status::ok) o->with_hardware = false;
  return s;
}

// ---------------------------------------------------------------- queue pairs

/// The function numbers the rows of its own window, has its own MAC address, and VLANs that it has registered.
abi::status function_master::own_path(const request& r, std::uint8_t* path, service of) const {
  namespace p = abi::path;
  const unsigned port = abi::get(path, p::port) + 1u;
  if (port > device_.num_ports()) return status::bad_param;
  const gid_window w = gids_of(r.function);
  if (of == service::ethernet) {
    abi::set(path, p::gid_index, 0);
  } else if (of == service::datagram) {
    abi::set(path, p::gid_index, static_cast<std::uint8_t>(gid_is_base | w.first));
  } else {
    const std::uint8_t index = abi::get(path, p::gid_index);
    if (index >= w.count) return status::bad_param;
    abi::set(path, p::gid_index, static_cast<std::uint8_t>(w.first + index));
  }
  const auto registered = [&](resource what, std::uint32_t index) {
    for (const std::uint32_t number : tracker_.of(r.function, what))
      if ((number & 0xffff) == (port << 8 | index)) return true;
    return false;
  };
  const std::uint8_t counter = abi::get(path, p::counter_index);
  if (counter != port_state::sink_counter && !counts(r.function, counter))
    abi::set(path, p::counter_index, port_state::sink_counter);
  if (!registered(resource::mac, abi::get(path, p::mac_index))) return status::bad_op;
  const function_settings& set = functions_[r.function].settings;
  if (set.spoof_check)  // plain frames with another source address than that of mac_index do not leave (FSM)
    abi::set(path, p::feup, static_cast<std::uint8_t>(abi::get(path, p::feup) | p::feup_force_smac));
  if (set.vlan != 0) {
    abi::set(path, p::vlan_index, functions_[r.function].vlan_index[port - 1]);
    abi::set(path, p::fl, static_cast<std::uint8_t>(abi::get(path, p::fl) | p::fl_cvlan | p::fl_hide_vlan));
    abi::set(path, p::feup, static_cast<std::uint8_t>(abi::get(path, p::feup) | p::feup_force_up | p::feup_force_vlan));
    abi::set(path, p::fvl_rx, static_cast<std::uint8_t>(abi::get(path, p::fvl_rx) | p::fvl_rx_enforce));
    abi::set(path, p::priority, set.priority);
    abi::set(path, p::vlan_control, p::block_tx_tagged | p::block_rx_priority | p::block_rx_untagged);
    return status::ok;
  }
  const bool tagged = (abi::get(path, p::feup) & p::feup_force_vlan) != 0 || (abi::get(path, p::fl) & p::fl_cvlan) != 0;
  if (tagged && !registered(resource::vlan, abi::get(path, p::vlan_index))) return status::bad_op;
  return status::ok;
}

abi::status function_master::change_qp(request& r) {
  namespace q = abi::qpc;
  namespace box = abi::qp_mailbox;
  std::uint8_t* const c = r.inbox->data() + box::context;
  object* o = tracker_.find(r.function, resource::qp, r.modifier & 0x7fffff);
  if (o == nullptr) return status::bad_op;
  constexpr unsigned service_ud = 3, service_mlx = 7;
  const unsigned number = abi::get(c, q::service);
  const service of = number == service_mlx  ? service::ethernet
                     : number == service_ud ? service::datagram
                                            : service::connection;
  const function_settings& set = functions_[r.function].settings;
  // Management is the physical function's, and so is spreading; without RoCE there are plain frames alone.
  const bool plain = abi::get(c, abi::at(q::primary_path, abi::path::link_type)) == abi::path::link_ethernet;
  if (of == service::ethernet ? !plain || abi::get(c, q::rss) != 0 : !set.roce) return status::bad_op;
  if (abi::get(c, q::rate_limit) != 0) return status::bad_op;
  abi::set(c, q::qos_vport, static_cast<std::uint8_t>(set.max_rate_mbps != 0 ? r.function : 0));
  abi::set(c, q::force_physical_port, 0);  // where it sends is the bond's of its host to say (verify_qp_parameters)
  if (r.op == abi::opcode::rst2init_qp) {
    const auto own_cq = [&](std::uint32_t cqn) { return tracker_.find(r.function, resource::cq, cqn) != nullptr; };
    if (!own_cq(abi::get(c, q::send_cqn)) || !own_cq(abi::get(c, q::receive_cqn))) return status::bad_op;
    if (abi::get(c, q::srq_valid) != 0 && tracker_.find(r.function, resource::srq, abi::get(c, q::srqn)) == nullptr)
      return status::bad_op;
    if (abi::get(c, q::xrcd) != 0 && tracker_.find(r.function, resource::xrcd, abi::get(c, q::xrcd)) == nullptr)
      return status::bad_op;
    const auto ring = [](unsigned log_size, unsigned log_stride) {
      return std::uint64_t{16} << (log_size + log_stride);
    };
    const bool receives = abi::get(c, q::db_record) != 0;
    const std::uint64_t bytes = ring(abi::get(c, q::log_sq_size), abi::get(c, q::log_sq_stride)) +
                                (receives ? ring(abi::get(c, q::log_rq_size), abi::get(c, q::log_rq_stride)) : 0);
    if (!within(r, abi::load_mtt(c, q::mtt_high, q::mtt_low), 0, bytes, abi::get(c, q::log_page) + 12u))
      return status::bad_op;
  }
  // In other transitions hardware has them from the first one.
  const std::uint32_t optional = abi::get(r.inbox->data(), box::optional);
  const bool has_path = (optional & box::opt_primary_path) != 0;
  const bool first = of == service::ethernet && r.op == abi::opcode::rst2init_qp;
  if (has_path || first || r.op == abi::opcode::init2rtr_qp) {
    if (const status s = own_path(r, c + q::primary_path, of); s != status::ok) return s;
  }
  const status s = native(r);
  if (s == status::ok) o->with_hardware = true;
  return s;
}

abi::status function_master::of_qp(request& r) {
  if (tracker_.find(r.function, resource::qp, r.modifier & 0x7fffff) == nullptr) return status::bad_op;
  const status s = native(r);
  if (s != status::ok || r.op != abi::opcode::query_qp) return s;
  // It numbers its own rows, and does not know whose rates limit it.
  abi::set(r.outbox->data(), abi::at(abi::qp_mailbox::context, abi::qpc::qos_vport), 0);
  namespace p = abi::path;
  std::uint8_t* const path = r.outbox->data() + abi::qp_mailbox::context + abi::qpc::primary_path;
  const gid_window w = gids_of(r.function);
  const unsigned index = abi::get(path, p::gid_index) & 0x7fu;
  abi::set(path, p::gid_index, static_cast<std::uint8_t>(index - w.first < w.count ? index - w.first : 0));
  return s;
}

abi::status function_master::reset_qp(request& r) {
  object* o = tracker_.find(r.function, resource::qp, r.modifier & 0x7fffff);
  if (o == nullptr) return status::bad_op;
  const status s = native(r);
  if (s == status::ok) o->with_hardware = false;
  return s;
}

/// A counter that nobody has had yet, to its new owner.
abi::status function_master::clear_counter(std::uint32_t counter) {
  command_channel::mailbox box(device_.commands());
  return status_of(device_.commands().read(box, abi::opcode::query_if_stat, counter | abi::if_stat::reset));
}

abi::status function_master::query_if_stat(request& r) {
  const std::uint32_t counter = r.modifier & ~abi::if_stat::reset;
  return counts(r.function, counter) ? native(r) : status::bad_op;
}

/// Groups are the physical function's table (net/mcg.c: mlx4_QP_ATTACH_wrapper): bits 23:0 of the modifier are the
/// queue pair, 30:28 the protocol, 31 that its own datagrams do not come back; op modifier 1 attaches, 0 detaches.
/// Plain frames are its own to take: those to its address, and those to groups.
abi::status function_master::qp_attach(request& r) {
  namespace f = abi::mcg;
  const std::uint32_t qpn = r.modifier & qpn_mask, protocol = r.modifier >> 28 & 7;
  if (device_.steering() != config::steering_mode::b0) return status::bad_op;  // there is no table
  if (tracker_.find(r.function, resource::qp, qpn) == nullptr) return status::bad_op;
  ibv_gid gid{};
  std::memcpy(gid.raw, r.inbox->data(), sizeof gid.raw);
  if (protocol == f::protocol_ethernet) {
    const unsigned port = gid.raw[f::ethernet_port], kind = gid.raw[f::ethernet_steer] >> 1;
    std::uint64_t mac = 0;
    for (unsigned i = 0; i < 6; ++i) mac = mac << 8 | gid.raw[f::ethernet_mac + i];
    const bool group = (gid.raw[f::ethernet_mac] & 1) != 0;
    if (port == 0 || port > device_.num_ports() || kind != (group ? f::steer_multicast : f::steer_unicast))
      return status::bad_param;
    if (!group && mac != functions_[r.function].macs[port - 1]) return status::bad_op;
    return status_of(r.op_modifier != 0 ? device_.attach_member(gid, qpn, f::protocol_ethernet)
                                        : device_.detach_member(gid, qpn, f::protocol_ethernet));
  }
  if (protocol != f::protocol_roce || !functions_[r.function].settings.roce) return status::bad_op;
  if (gid.raw[0] != 0xff) return status::bad_param;  // a group's, and of RoCE
  const std::uint32_t block = r.modifier >> 31 != 0 ? abi::mcg::block_loopback : 0;
  return status_of(r.op_modifier != 0 ? device_.attach_member(gid, qpn | block, abi::mcg::protocol_roce)
                                      : device_.detach_member(gid, qpn, abi::mcg::protocol_roce));
}

// ---------------------------------------------------------------- what the device can do

/// Without what a virtual function cannot have: BlueFlame, windows, fast registration, raw Ethernet, rate limits, QCN.
abi::status function_master::query_dev_cap(request& r) {
  namespace c = abi::dev_cap;
  const status s = native(r);
  if (s != status::ok) return s;
  std::uint8_t* m = r.outbox->data();
  const auto clear = [m](unsigned bit) { abi::set(m, c::flags, abi::get(m, c::flags) & ~(std::uint64_t{1} << bit)); };
  for (const unsigned bit : {c::flag_mem_window, c::flag_uc_steer, c::flag_mc_steer}) clear(bit);
  if (!functions_[r.function].settings.roce)
    for (const unsigned bit :
         {c::flag_rc, c::flag_uc, c::flag_ud, c::flag_xrc, c::flag_srq, c::flag_atomic, c::flag_ud_mcast, c::flag_iboe})
      clear(bit);
  if (device_.steering() != config::steering_mode::device_managed) abi::set(m, c::flow_steering, 0);
  abi::set(m, c::flow_sniffer, 0);
  abi::set(m, c::blue_flame, 0);
  abi::set(m, c::bmme_flags,
           abi::get(m, c::bmme_flags) & ~(c::bmme_type_2_win | c::bmme_win_2b | c::bmme_fast_reg | c::bmme_ignore_fcs));
  abi::set(m, c::rate_limits, 0);
  abi::set(m, c::qos_vpp, 0);
  abi::set(m, c::eth_prot_ctrl, 0);
  abi::set(m, c::ext_flags, abi::get(m, c::ext_flags) & ~c::ext_fsm);
  abi::set(m, c::features, abi::get(m, c::features) & ~c::feature_diag_per_port);
  abi::set(m, c::qcn, 0);
  return s;
}

abi::status function_master::query_func_cap(request& r) {
  namespace f = abi::func_cap;
  std::uint8_t* m = r.outbox->data();
  if (r.op_modifier == 1) {
    if (r.modifier == 0 || r.modifier > device_.num_ports()) return status::bad_param;
    abi::set(m, f::physical_port, static_cast<std::uint8_t>(r.modifier));
    const bool tagged = functions_[r.function].settings.vlan != 0;
    abi::set(m, f::port_flags,
             static_cast<std::uint8_t>(f::port_force_mac | (tagged ? f::port_force_vlan : std::uint8_t{0})));
    return status::ok;
  }
  if (r.op_modifier != 0) return status::bad_param;
  const auto quota = [&](resource what) { return tracker_.most(r.function)[static_cast<unsigned>(what)]; };
  const unsigned kind = f::flag_ethernet | (functions_[r.function].settings.roce ? f::flag_rdma : 0u);
  abi::set(m, f::flags, static_cast<std::uint8_t>(kind | f::flag_quotas | f::flag_reserved_lkey));
  abi::set(m, f::num_ports, static_cast<std::uint8_t>(device_.num_ports()));
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
  if (r.modifier == 0 || r.modifier > device_.num_ports()) return status::bad_param;
  const status s = native(r);
  if (s != status::ok) return s;
  abi::set(r.outbox->data(), f::mac, functions_[r.function].macs[r.modifier - 1]);
  const unsigned gids = functions_[r.function].settings.roce ? gids_of(r.function).count : 0;
  abi::set(r.outbox->data(), f::max_gids, static_cast<std::uint16_t>(gids));
  const bool there = abi::get(r.outbox->data(), f::link_up) != 0;
  abi::set(r.outbox->data(), f::link_up, static_cast<std::uint8_t>(sees_link(r.function, there) ? 1 : 0));
  return s;
}

/// The port itself is the physical function's: it is up as long as that has it so.
abi::status function_master::of_port(request& r) {
  return r.modifier != 0 && r.modifier <= device_.num_ports() ? status::ok : status::bad_param;
}

/// Of its port a function may write the rows of its own window, and nothing else (net/port.c: mlx4_common_set_port).
abi::status function_master::set_port(request& r) {
  namespace f = abi::set_port;
  const unsigned port = r.modifier & 0xff;
  const auto selector = static_cast<f::selector>(r.modifier >> 8 & 0xff);
  if (port == 0 || port > device_.num_ports() || r.op_modifier != f::op_ethernet) return status::bad_param;
  if (selector == f::selector::general) return status::ok;  // size and pauses: what the physical function has set
  const bool versions = selector == f::selector::roce_addr;
  if ((!versions && selector != f::selector::gid_table) || !functions_[r.function].settings.roce) return status::bad_op;
  const gid_window w = gids_of(r.function);
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
