// SPDX-License-Identifier: Apache-2.0
// Commands of virtual functions on their queues, queue pairs and groups (net/resource_tracker.c, net/mcg.c).
#include <algorithm>
#include <cstring>

#include "host_driver/functions/master.h"
#include "model/abi/contexts.h"

namespace rnic::host_driver {

using object = resource_tracker::object;

namespace {

constexpr std::uint32_t qpn_of_modifier = 0xffffff;
constexpr std::uint32_t xrc_receives = 1u << 23;
constexpr std::uint8_t gid_is_base = 0x80;

}  // namespace

// ---------------------------------------------------------------- queues

abi::status function_master::sw2hw_eq(request& r) {
  namespace f = abi::eqc;
  const std::uint8_t* c = r.inbox->data();
  if (r.modifier >= virtual_eqs_) return status::bad_index;
  const std::uint32_t number = r.modifier | r.function << 8;
  if (tracker_.find(r.function, resource_eq, number) != nullptr) return status::bad_res_state;
  const std::uint64_t mtt = abi::load_mtt(c, f::mtt_high, f::mtt_low);
  const std::uint64_t bytes = std::uint64_t{device_.eqe_bytes()} << std::min<unsigned>(abi::get(c, f::log_size), 24);
  if (!within(r, mtt, abi::get(c, f::page_offset), bytes, abi::get(c, f::log_page) + 12u)) return status::bad_op;
  const status s = native(r);
  if (s == status::ok)
    with_hardware(tracker_.add(r.function, resource_eq, number), {{resource::mtt, mtt_entry_of(mtt)}});
  return s;
}

/// Hardware has it from now on, and it needs these.
void function_master::with_hardware(object& o, std::initializer_list<std::pair<resource, std::uint32_t>> needs) {
  o.with_hardware = true;
  for (const auto& [what, number] : needs) tracker_.hold(o, what, number);
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
  if (eqn >= virtual_eqs_) return status::bad_index;
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
  if (!has_cq_buffer(r)) return status::bad_op;
  const status s = native(r);
  if (s == status::ok) with_hardware(*o, {{resource::mtt, mtt_entry_of(abi::load_mtt(c, f::mtt_high, f::mtt_low))}});
  return s;
}

/// The buffer that the mailbox of SW2HW_CQ or MODIFY_CQ names is the function's.
bool function_master::has_cq_buffer(const request& r) const {
  namespace f = abi::cqc;
  const std::uint8_t* c = r.inbox->data();
  const std::uint64_t bytes = std::uint64_t{device_.cqe_bytes()} << std::min<unsigned>(abi::get(c, f::log_size), 24);
  return within(r, abi::load_mtt(c, f::mtt_high, f::mtt_low), abi::get(c, f::page_offset), bytes,
                abi::get(c, f::log_page) + 12u);
}

abi::status function_master::of_cq(request& r) {
  object* o = tracker_.find(r.function, resource::cq, r.modifier);
  if (o == nullptr) return status::bad_op;
  if (r.op == abi::opcode::modify_cq && r.op_modifier == 0) {  // another buffer
    namespace f = abi::cqc;
    const std::uint8_t* c = r.inbox->data();
    if (!has_cq_buffer(r)) return status::bad_op;
    const status s = native(r);
    if (s != status::ok) return s;
    tracker_.release(*o);
    with_hardware(*o, {{resource::mtt, mtt_entry_of(abi::load_mtt(c, f::mtt_high, f::mtt_low))}});
    return s;
  }
  return native(r);
}

/// Nobody needs it, and it needs nobody any more.
abi::status function_master::to_software(request& r, resource what) {
  object* o = tracker_.find(r.function, what, r.modifier);
  if (o == nullptr) return status::bad_op;
  if (o->holders != 0) return status::resource_busy;
  request own = r;
  own.op_modifier = 1;  // without its last state, which hardware would write into the physical function's memory
  const status s = native(own);
  if (s != status::ok) return s;
  o->with_hardware = false;
  tracker_.release(*o);
  return s;
}

abi::status function_master::hw2sw_cq(request& r) { return to_software(r, resource::cq); }

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
  if (s != status::ok) return s;
  with_hardware(*o, {{resource::mtt, mtt_entry_of(abi::load_mtt(c, f::mtt_high, f::mtt_low))}});
  if (domain != 0) with_hardware(*o, {{resource::xrcd, domain}, {resource::cq, abi::get(c, f::cqn)}});
  return s;
}

abi::status function_master::of_srq(request& r) {
  return tracker_.find(r.function, resource::srq, r.modifier) != nullptr ? native(r) : status::bad_op;
}

abi::status function_master::hw2sw_srq(request& r) { return to_software(r, resource::srq); }

// ---------------------------------------------------------------- queue pairs

/// A path names a port by the function's number of it (net/resource_tracker.c: adjust_qp_sched_queue). False: it has no
/// such port.
bool function_master::own_port(unsigned function, std::uint8_t* path) const {
  namespace p = abi::path;
  const unsigned port = ports_.physical_of(function, abi::get(path, p::port) + 1u);
  if (port != 0) abi::set(path, p::port, static_cast<std::uint8_t>(port - 1));
  return port != 0;
}

/// The function numbers the rows of its own window, has its own MAC address, and VLANs that it has registered.
abi::status function_master::own_path(const request& r, std::uint8_t* path, service of) const {
  namespace p = abi::path;
  const unsigned port = abi::get(path, p::port) + 1u;  // own_port() has looked at it
  const function_ports::window w = ports_.gids_of(r.function, port);
  if (of == service::ethernet) {
    abi::set(path, p::gid_index, 0);
  } else if (of == service::datagram || of == service::special) {
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
  if (!registered(resource::mac, abi::get(path, p::mac_index))) return status::bad_op;
  const function_settings& set = functions_[r.function].settings;
  if (of == service::special) return status::ok;  // stays in the port, without tags
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

/// Of the command's modifier. XRC queue pairs that receive have bit 23 beside the number of their place in the table
/// (mlx4_ib: create_qp_common); hardware knows a queue pair by the number of its first command and by no other.
resource_tracker::object* function_master::named_qp(const request& r) {
  const std::uint32_t qpn = r.modifier & qpn_of_modifier;
  object* o = tracker_.find(r.function, resource::qp, qpn);
  if (o == nullptr) o = tracker_.find(r.function, resource::qp, qpn & ~xrc_receives);
  return o != nullptr && o->with_hardware && o->qpn != qpn ? nullptr : o;
}

abi::status function_master::change_qp(request& r) {
  namespace q = abi::qpc;
  namespace box = abi::qp_mailbox;
  std::uint8_t* const c = r.inbox->data() + box::context;
  object* o = named_qp(r);
  if (o == nullptr) return status::bad_op;
  // What it is, its first command says; hardware has no use for what later ones say of it, and nothing follows from it.
  const bool begins = r.op == abi::opcode::rst2init_qp;
  const unsigned number = begins ? abi::get(c, q::service) : o->service;
  abi::set(c, q::service, number);
  const std::uint32_t qpn = r.modifier & 0x7fffff;
  const service of = is_proxy(r, qpn)           ? service::special
                     : number == q::service_mlx ? service::ethernet
                     : number == q::service_ud  ? service::datagram
                                                : service::connection;
  const function_settings& set = functions_[r.function].settings;
  // Management is the physical function's, and so is spreading; without RoCE there are plain frames alone.
  const bool plain = abi::get(c, abi::at(q::primary_path, abi::path::link_type)) == abi::path::link_ethernet;
  if (of == service::ethernet ? !plain || abi::get(c, q::rss) != 0 : !set.roce) return status::bad_op;
  if (abi::get(c, q::rate_limit) != 0) return status::bad_op;
  abi::set(c, q::qos_vport, static_cast<std::uint8_t>(set.max_rate_mbps != 0 ? r.function : 0));
  abi::set(c, q::force_physical_port, 0);  // where it sends is the bond's of its host to say (verify_qp_parameters)
  if (begins) {
    const bool plain_number = tracker_.find(r.function, resource::qp, r.modifier & qpn_of_modifier) != nullptr;
    if (!plain_number && number != q::service_xrc) return status::bad_op;
    const auto own_cq = [&](std::uint32_t cqn) { return tracker_.find(r.function, resource::cq, cqn) != nullptr; };
    if (!own_cq(abi::get(c, q::send_cqn)) || !own_cq(abi::get(c, q::receive_cqn))) return status::bad_op;
    if (abi::get(c, q::srq_valid) != 0 && tracker_.find(r.function, resource::srq, abi::get(c, q::srqn)) == nullptr)
      return status::bad_op;
    if (abi::get(c, q::xrcd) != 0 && tracker_.find(r.function, resource::xrcd, abi::get(c, q::xrcd)) == nullptr)
      return status::bad_op;
    const auto ring = [](unsigned log_size, unsigned log_stride) {
      return std::uint64_t{16} << (log_size + log_stride);
    };
    // As hardware has it: there is a receive queue, or its size means nothing.
    const bool receives = abi::get(c, q::srq_valid) == 0 && number != q::service_xrc &&
                          (abi::get(c, q::db_record) != 0 || abi::get(c, q::rq_size_stride) != 0);
    const std::uint64_t bytes = ring(abi::get(c, q::log_sq_size), abi::get(c, q::log_sq_stride)) +
                                (receives ? ring(abi::get(c, q::log_rq_size), abi::get(c, q::log_rq_stride)) : 0);
    if (!within(r, abi::load_mtt(c, q::mtt_high, q::mtt_low), std::uint64_t{abi::get(c, q::page_offset)} * 64, bytes,
                abi::get(c, q::log_page) + 12u))
      return status::bad_op;
  }
  // A VLAN that it does not know of is in no frame that it gets (update_vport_qp_param: VSD).
  if (set.vlan != 0) abi::set(c, q::vlan_strip_disable, 0);
  if (const status s = check_special(r, qpn); s != status::ok) return s;
  // In other transitions hardware has them from the first one.
  const std::uint32_t optional = abi::get(r.inbox->data(), box::optional);
  const bool has_path = (optional & box::opt_primary_path) != 0 || (of == service::ethernet && begins) ||
                        r.op == abi::opcode::init2rtr_qp;
  std::uint8_t* const path = c + q::primary_path;
  const bool names_port = has_path || begins || (optional & box::opt_sched_queue) != 0;
  if (names_port && !own_port(r.function, path)) return status::bad_param;
  if ((optional & box::opt_alt_path) != 0 && !own_port(r.function, c + q::alternate_path)) return status::bad_param;
  const auto port = static_cast<std::uint8_t>(abi::get(path, abi::path::port) + 1);
  own_counter(r.function, path);  // which may come alone
  if (has_path) {
    if (const status s = own_path(r, path, of); s != status::ok) return s;
  } else if ((optional & box::opt_sched_queue) != 0) {
    // The rest of the path, which was looked at, is of the port that it had. Whose tag or rate the administrator has
    // set does not choose its priority.
    if (port != o->port) return status::bad_param;
    if (set.vlan != 0 || set.max_rate_mbps != 0) return status::bad_op;
  }
  const status s = native(r);
  if (s != status::ok) return s;
  if (has_path) o->port = port;
  if (has_path || (optional & box::opt_counter) != 0) {  // else it would count in it for the next function that has it
    tracker_.release(*o, resource::counter);
    tracker_.hold(*o, resource::counter, abi::get(path, abi::path::counter_index));
  }
  if (begins) {
    o->qpn = r.modifier & qpn_of_modifier;
    o->service = number;
    hold_for_qp(*o, c);
  }
  if (has_path) hold_path(*o, path);
  return s;
}

/// The entries of its port's tables that its path names.
void function_master::hold_path(object& o, const std::uint8_t* path) {
  namespace p = abi::path;
  const std::uint32_t table = std::uint32_t{o.function} << 16 | (abi::get(path, p::port) + 1u) << 8;
  tracker_.release(o, resource::mac);
  tracker_.release(o, resource::vlan);
  tracker_.hold(o, resource::mac, table | abi::get(path, p::mac_index));
  if ((abi::get(path, p::feup) & p::feup_force_vlan) != 0 || (abi::get(path, p::fl) & p::fl_cvlan) != 0)
    tracker_.hold(o, resource::vlan, table | abi::get(path, p::vlan_index));
}

void function_master::hold_for_qp(object& o, const std::uint8_t* c) {
  namespace q = abi::qpc;
  with_hardware(o, {{resource::cq, abi::get(c, q::send_cqn)},
                    {resource::cq, abi::get(c, q::receive_cqn)},
                    {resource::mtt, mtt_entry_of(abi::load_mtt(c, q::mtt_high, q::mtt_low))}});
  if (abi::get(c, q::srq_valid) != 0) tracker_.hold(o, resource::srq, abi::get(c, q::srqn));
  if (abi::get(c, q::xrcd) != 0) tracker_.hold(o, resource::xrcd, abi::get(c, q::xrcd));
}

abi::status function_master::of_qp(request& r) {
  if (named_qp(r) == nullptr) return status::bad_op;
  const status s = native(r);
  if (s != status::ok || r.op != abi::opcode::query_qp) return s;
  // It numbers its own rows, and does not know whose rates limit it.
  abi::set(r.outbox->data(), abi::at(abi::qp_mailbox::context, abi::qpc::qos_vport), 0);
  namespace p = abi::path;
  std::uint8_t* const path = r.outbox->data() + abi::qp_mailbox::context + abi::qpc::primary_path;
  const unsigned port = abi::get(path, p::port) + 1u, own = ports_.own_of(r.function, port);
  abi::set(path, p::port, static_cast<std::uint8_t>(own != 0 ? own - 1 : 0));
  const function_ports::window w = ports_.gids_of(r.function, port);
  const unsigned index = abi::get(path, p::gid_index) & 0x7fu;
  abi::set(path, p::gid_index, static_cast<std::uint8_t>(index - w.first < w.count ? index - w.first : 0));
  return s;
}

abi::status function_master::reset_qp(request& r) {
  const std::uint32_t qpn = r.modifier & 0x7fffff;
  object* o = named_qp(r);
  if (o == nullptr) return status::bad_op;
  if (is_proxy(r, qpn)) mads_.close_tunnel(r.function, port_of_proxy(r, qpn));
  const status s = native(r);
  if (s != status::ok) return s;
  o->with_hardware = false;
  tracker_.release(*o);
  return s;
}

/// Another one's would count for that function.
void function_master::own_counter(unsigned function, std::uint8_t* path) const {
  namespace p = abi::path;
  const std::uint8_t counter = abi::get(path, p::counter_index);
  if (counter != port_state::sink_counter && !counts(function, counter))
    abi::set(path, p::counter_index, port_state::sink_counter);
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
  const std::uint32_t qpn = r.modifier & 0xffffff, protocol = r.modifier >> 28 & 7;
  if (device_.steering() != config::steering_mode::b0) return status::bad_op;  // there is no table
  if (tracker_.find(r.function, resource::qp, qpn) == nullptr) return status::bad_op;
  ibv_gid gid{};
  std::memcpy(gid.raw, r.inbox->data(), sizeof gid.raw);
  if (protocol == f::protocol_ethernet) {
    const unsigned port = ports_.physical_of(r.function, gid.raw[f::ethernet_port]);
    const unsigned kind = gid.raw[f::ethernet_steer] >> 1;
    gid.raw[f::ethernet_port] = static_cast<std::uint8_t>(port);
    std::uint64_t mac = 0;
    for (unsigned i = 0; i < 6; ++i) mac = mac << 8 | gid.raw[f::ethernet_mac + i];
    const bool group = (gid.raw[f::ethernet_mac] & 1) != 0;
    if (port == 0 || kind != (group ? f::steer_multicast : f::steer_unicast)) return status::bad_param;
    if (!group && mac != functions_[r.function].macs[port - 1]) return status::bad_op;
    return change_membership(r, gid, qpn, f::protocol_ethernet);
  }
  if (protocol != f::protocol_roce || !functions_[r.function].settings.roce) return status::bad_op;
  if (gid.raw[0] != 0xff) return status::bad_param;  // a group's, and of RoCE
  const std::uint32_t block = r.modifier >> 31 != 0 ? abi::mcg::block_loopback : 0;
  return change_membership(r, gid, qpn | block, f::protocol_roce);
}

}  // namespace rnic::host_driver
