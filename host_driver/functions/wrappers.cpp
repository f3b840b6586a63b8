// SPDX-License-Identifier: Apache-2.0
// Commands of virtual functions, one by one (net/cmd.c: cmd_info; net/resource_tracker.c, net/fw.c, net/port.c).
#include <algorithm>

#include "host_driver/functions/master.h"
#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"

namespace rnic::host_driver {

namespace op = abi::res_op;
using object = resource_tracker::object;

namespace {

constexpr std::uint32_t qpn_mask = 0xffffff;
constexpr abi::status over_quota = abi::status::internal_error;  // mlx4_grant_resource: EDQUOT

std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }

}  // namespace

/// What the kernel makes of its allocators' errors (net/cmd.c: mlx4_errno_to_status; ENOSPC, a full table of a port, is
/// INTERNAL_ERR).
abi::status function_master::status_of(int error) {
  switch (error) {
    case 0:
      return abi::status::ok;
    case -ENOMEM:
      return abi::status::exceed_lim;
    case -EINVAL:
      return abi::status::bad_param;
    case -EBUSY:
      return abi::status::resource_busy;
    default:
      return abi::status::internal_error;
  }
}

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
      if (!tracker_.has_room(r.function, what, 1u << order)) return over_quota;
      std::uint32_t first = 0;
      if (const int error = device_.tables().take_mtts_of(r.function, order, &first)) return status_of(error);
      tracker_.add(r.function, what, first, order);
      r.out = first;
      return status::ok;
    }
    case resource::counter: {
      if (r.op_modifier != op::reserve_and_map) return status::bad_param;
      if (!tracker_.has_room(r.function, what, 1)) return over_quota;
      const std::uint32_t free = tracker_.first_free(what, device_.num_ports(), port_state::sink_counter);
      if (free == port_state::sink_counter) return status::exceed_lim;
      tracker_.add(r.function, what, free);
      r.out = free;
      return clear_counter(free);
    }
    case resource::mac:
    case resource::vlan:
      return alloc_entry(r, what);
    default:
      return status::bad_param;
  }
}

/// QPs and protection entries are reserved first, and have context memory from a second step on; here both are one.
abi::status function_master::alloc_number(request& r, resource what) {
  const std::uint32_t wanted = low(r.in);
  if (r.op_modifier == op::map) {
    const std::uint32_t number = what == resource::qp ? wanted & qpn_mask : wanted;
    if (what == resource::qp && is_proxy(r, number)) return map_proxy(r, number);
    return tracker_.find(r.function, what, number) != nullptr ? status::ok : status::bad_resource;
  }
  const std::uint32_t count = what == resource::qp ? wanted & 0xffffff : 1;
  const std::uint32_t align = what == resource::qp ? high(r.in) : 1;
  if (count == 0 || (align & (align - 1)) != 0) return status::bad_param;
  if (!tracker_.has_room(r.function, what, count)) return over_quota;
  std::uint32_t first = 0;
  if (const int error = take_numbers(r.function, what, count, align, &first)) return status_of(error);
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
      if (r.op_modifier == op::map)
        return what == resource::qp && is_proxy(r, number) ? free_proxy(r, number) : status::ok;
      const std::uint32_t count = what == resource::qp ? std::max(1u, high(r.in)) : 1;
      for (std::uint32_t i = 0; i < count; ++i) {
        const object* o = tracker_.find(r.function, what, number + i);
        if (o == nullptr) return status::bad_resource;
        if (o->with_hardware || o->holders != 0) return status::resource_busy;
        if (what == resource::qp && leads_anywhere(r.function, number + i)) return status::resource_busy;
      }
      for (std::uint32_t i = 0; i < count; ++i) {
        if (what == resource::qp) leave_groups(r.function, number + i);
        give_number(r.function, what, number + i);
      }
      return status::ok;
    }
    case resource::counter: {
      const object* o = tracker_.find(r.function, what, number);
      if (o == nullptr) return status::bad_resource;
      if (o->holders != 0) return status::resource_busy;
      tracker_.remove(what, number);
      return status::ok;
    }
    case resource::mtt: {
      const object* o = tracker_.find(r.function, what, number);
      if (o == nullptr || o->order != high(r.in)) return status::bad_resource;
      if (o->holders != 0) return status::resource_busy;
      device_.tables().give_back_mtts(number, o->order);
      tracker_.remove(what, number);
      return status::ok;
    }
    case resource::mac:
    case resource::vlan:
      return free_entry(r, what);
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
  if (s != status::ok) return s;
  with_hardware(*o, {});
  if ((flags & f::flag_physical) == 0) with_hardware(*o, {{resource::mtt, mtt_entry_of(abi::get(m, f::mtt_address))}});
  return s;
}

abi::status function_master::hw2sw_mpt(request& r) {
  for (const std::uint32_t number : tracker_.of(r.function, resource::mpt)) {
    if ((number & (device_.tables().num_mpts() - 1)) != r.modifier) continue;
    request own = r;
    own.op_modifier = 1;  // the entry is in the physical function's memory
    const status s = native(own);
    if (s != status::ok) return s;
    object* o = tracker_.find(r.function, resource::mpt, number);
    o->with_hardware = false;
    tracker_.release(*o);
    return s;
  }
  return status::bad_op;
}

}  // namespace rnic::host_driver
