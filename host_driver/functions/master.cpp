// SPDX-License-Identifier: Apache-2.0
// The channel of the virtual functions (net/cmd.c: mlx4_master_comm_channel, mlx4_master_do_cmd).
#include "host_driver/functions/master.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"

namespace rnic::host_driver {

namespace comm = abi::comm;

namespace {

constexpr std::uint32_t access_unit = 256;  // MLX4_ACCESS_MEM_ALIGN

/// What a network driver needs of the host's tables: rings with their completion queues, and one region of all memory.
/// No more queue pairs, no other regions, no shared queues and domains: the tables have no memory for them.
resource_tracker::quotas without_roce(resource_tracker::quotas most) {
  constexpr std::uint32_t rings = 64;  // design: 16 of each direction and port
  const auto at_most = [&most](resource what, std::uint32_t n) {
    std::uint32_t& q = most[static_cast<unsigned>(what)];
    q = std::min(q, n);
  };
  at_most(resource::qp, rings);
  at_most(resource::cq, rings);
  at_most(resource::mpt, 1);
  at_most(resource::srq, 0);
  at_most(resource::xrcd, 0);
  return most;
}

}  // namespace

int function_master::start(const std::vector<function_settings>& settings) {
  const unsigned count = device_.virtual_functions();
  if (count == 0) return -ENODEV;
  functions_.assign(count + 1, function_state{});
  const host_driver::config& said = device_.settings();
  const unsigned alone = said.functions_port_1 + said.functions_port_2;
  if (alone > count) return -EINVAL;
  ports_ = {{said.functions_port_1, said.functions_port_2, count - alone}, device_.num_ports()};
  if (const int error = tell_ports()) return error;
  for (unsigned f = 1; f <= count; ++f) {
    function_state& s = functions_[f];
    s.event_eqs.fill(no_eq);
    if (f <= settings.size()) s.settings = settings[f - 1];
    if (s.settings.vlan > 4094 || s.settings.priority > 7) return -EINVAL;
    for (unsigned port = 1; port <= device_.num_ports(); ++port) {
      if (!ports_.has(f, port)) continue;
      std::uint64_t physical = 0;
      for (const std::uint8_t byte : device_.port(port).mac) physical = physical << 8 | byte;
      s.macs[port - 1] = mac_of(s.settings, physical, f, s.settings.mac != 0 ? ports_.own_of(f, port) : port);
      const int vlan = s.settings.vlan != 0 ? device_.add_vlan(port, s.settings.vlan, table_user::functions) : 0;
      if (vlan < 0) return vlan;
      s.vlan_index[port - 1] = static_cast<std::uint8_t>(vlan);
    }
    // Zero on both sides: nobody has said anything.
    bus_.mmio_write32(0, abi::bar0::comm + f * comm::slot_bytes + comm::slave_write, 0);
    bus_.mmio_write32(0, abi::bar0::comm + f * comm::slot_bytes + comm::slave_read, 0);
  }
  {
    command_channel::mailbox box(device_.commands());
    if (const int error = device_.commands().read(box, abi::opcode::query_func, 1)) return error;
    virtual_eqs_ = abi::get(box.data(), abi::query_func_mailbox::max_eqs);
  }
  const icm_profile& p = device_.profile();
  const device_caps& caps = device_.caps();
  resource_tracker::quotas most{};
  const auto quota = [&most](resource what) -> std::uint32_t& { return most[static_cast<unsigned>(what)]; };
  for (const resource what : numbered) quota(what) = device_.tables().free(what) / (count + 1);
  quota(resource::mtt) = static_cast<std::uint32_t>(p[icm_region::mtt].count / 2 / count);
  // A port has 128 of each: one MAC address for everybody, and VLANs, which functions share, as long as there are any.
  quota(resource::mac) = 2;
  quota(resource::vlan) = abi::set_port::table_size;
  quota(resource_eq) = virtual_eqs_;
  // Half of what the table may have at least, as of translation entries.
  constexpr std::uint64_t fewest_rules = 1024;
  quota(resource_flow) = static_cast<std::uint32_t>(std::min(p[icm_region::mcg].count, fewest_rules) / 2 / count + 1);
  quota(resource_member) = quota(resource_flow);
  const std::uint32_t shared_counters = caps.max_counters - std::min(caps.max_counters, device_.num_ports() + 1);
  quota(resource::counter) = std::max(device_.num_ports(), shared_counters / (count + 1));
  tracker_.start(count, most);
  for (unsigned f = 1; f <= count; ++f)
    if (!functions_[f].settings.roce) tracker_.limit(f, without_roce(most));
  if (const int error = keep_for_functions()) return error;
  device_.set_mad_carrier(&mads_);
  if (const int error = start_rates()) return error;
  return device_.commands().command(abi::opcode::arm_comm_channel);
}

/// Entries of GID tables have owners in hardware, which takes all functions for dual-ported unless it is told.
int function_master::tell_ports() {
  namespace f = abi::config_dev_mailbox;
  const functions_by_port& n = ports_.numbers();
  if (n.port_1 + n.port_2 == 0) return 0;
  command_channel::mailbox box(device_.commands());
  abi::set(box.data(), f::update_flags, f::update_function_ports);
  abi::set(box.data(), f::functions_port_1, static_cast<std::uint8_t>(n.port_1));
  abi::set(box.data(), f::functions_port_2, static_cast<std::uint8_t>(n.port_2));
  abi::set(box.data(), f::functions_both, static_cast<std::uint8_t>(n.both));
  return device_.commands().write(box, abi::opcode::config_dev);
}

/// Of those functions that have one. Virtual ports are numbered as functions are (net/cmd.c: mlx4_set_vf_rate).
int function_master::start_rates() {
  constexpr unsigned priority = 0;  // the one that the kernel gives virtual ports (mlx4_set_default_port_qos)
  const auto limited = [](const function_state& s) { return s.settings.max_rate_mbps != 0; };
  if (std::none_of(functions_.begin(), functions_.end(), limited)) return 0;
  if (!device_.caps().qos_vpp) return -EOPNOTSUPP;
  command_channel& channel = device_.commands();
  for (unsigned port = 1; port <= device_.num_ports(); ++port) {
    command_channel::mailbox places(channel);
    abi::store32(places.data(), abi::vpp::of_priority + 4 * priority, device_.virtual_functions());
    if (const int error = channel.write(places, abi::opcode::allocate_vpp, port)) return error;
    for (unsigned f = 1; f < functions_.size(); ++f) {
      const function_settings& s = functions_[f].settings;
      if (s.max_rate_mbps == 0 || !ports_.has(f, port)) continue;
      if (s.vlan == 0 || s.priority != priority) return -EINVAL;
      namespace q = abi::vport_qos;
      command_channel::mailbox box(channel);
      std::uint8_t* const m = box.data() + q::first + q::each * priority;
      abi::set(m, q::max_rate, s.max_rate_mbps);
      abi::set(m, q::enable, 1u);
      if (const int error = channel.write(box, abi::opcode::set_vport_qos, f << 8 | port)) return error;
    }
  }
  return 0;
}

std::uint64_t function_master::mac_of(const function_settings& s, std::uint64_t physical, unsigned function,
                                      unsigned port) {
  if (s.mac != 0) return s.mac + (port - 1);
  // Locally administered, so that no card has it: a bit, the function's number, and what tells cards and ports apart.
  return (physical & 0x0000'00ff'ffff) | std::uint64_t{0x02} << 40 | std::uint64_t{function} << 32 |
         std::uint64_t{port} << 24;
}

void function_master::run() {
  using event = device::function_event;
  event e;
  while (device_.wait_function_event(&e)) {
    if (e.what == event::kind::of_object) {
      forward_event(e.function, e.entry.data());
    } else if (e.what == event::kind::port) {
      forward_port_event(e.entry);
    } else if (e.what == event::kind::reset) {
      reset_was_reported(e.function);
    } else {
      for (unsigned f = 1; f < functions_.size(); ++f)
        if ((e.functions[f / 32] >> f % 32 & 1) != 0) serve_channel(f);
      device_.commands().command(abi::opcode::arm_comm_channel);
    }
  }
}

std::uint32_t function_master::channel_read(unsigned function, std::uint64_t reg) {
  return bus_.mmio_read32(0, abi::bar0::comm + function * comm::slot_bytes + reg);
}

void function_master::channel_answer(unsigned function, std::uint32_t word) {
  bus_.mmio_write32(0, abi::bar0::comm + function * comm::slot_bytes + comm::slave_read, word);
}

/// The registers themselves say whether there is something to be answered: their toggles differ.
void function_master::serve_channel(unsigned function) {
  const std::uint32_t word = channel_read(function, comm::slave_write);
  const std::uint32_t toggle = word >> comm::toggle_shift;
  if (toggle == channel_read(function, comm::slave_read) >> comm::toggle_shift) return;
  function_state& s = functions_[function];
  if (s.resetting) return;
  const auto what = static_cast<step>(word >> comm::command_shift & comm::command_mask);
  std::uint32_t answer = toggle << comm::toggle_shift;
  if (what == step::reset) {
    clean_up(function);
    s.last = step::reset;
    s.has_last = true;
    answer |= comm::version;
  } else if (!take_step(function, what, static_cast<std::uint16_t>(word & comm::parameter_mask))) {
    clean_up(function);
    s.has_last = false;
    answer |= comm::internal_error;
  } else {
    s.last = what;
  }
  if (!s.resetting) channel_answer(function, answer);  // a function that was reset meanwhile has forgotten its command
}

/// False: the function does not keep to the order, or its memory cannot be reached.
bool function_master::take_step(unsigned function, step what, std::uint16_t parameter) {
  function_state& s = functions_[function];
  const auto after = [&s](step before) { return s.has_last && s.last == before; };
  switch (what) {
    case step::vhcr0:
      s.vhcr = std::uint64_t{parameter} << 48;
      return after(step::reset);
    case step::vhcr1:
      s.vhcr |= std::uint64_t{parameter} << 32;
      return after(step::vhcr0);
    case step::vhcr2:
      s.vhcr |= std::uint64_t{parameter} << 16;
      return after(step::vhcr1);
    case step::vhcr_enable:
      s.vhcr |= parameter;
      s.active = after(step::vhcr2) && s.vhcr % 4096 == 0;
      return s.active;
    case step::vhcr_post:
      return s.active && (after(step::vhcr_enable) || after(step::vhcr_post)) && execute_posted(function);
    default:
      return false;
  }
}

/// ACCESS_MEM between the physical function's memory and the function's (net/cmd.c: mlx4_ACCESS_MEM).
int function_master::copy(unsigned from, std::uint64_t from_address, unsigned to, std::uint64_t to_address,
                          std::uint32_t bytes) {
  const std::uint32_t size = (bytes + access_unit - 1) / access_unit * access_unit;
  return device_.commands().execute({abi::opcode::access_mem, size, 0, from_address | from, to_address | to, nullptr});
}

bool function_master::execute_posted(unsigned function) {
  namespace v = abi::vhcr;
  constexpr std::uint64_t page = ~std::uint64_t{4095};
  function_state& s = functions_[function];
  command_channel& channel = device_.commands();
  command_channel::mailbox box(channel);
  if (copy(function, s.vhcr, 0, box.address(), v::bytes) != 0) return false;
  request r;
  r.function = function;
  r.op = static_cast<abi::opcode>(abi::get(box.data(), v::opcode) & 0xfff);
  r.op_modifier = static_cast<std::uint8_t>(abi::get(box.data(), v::opcode) >> 12);
  r.modifier = abi::get(box.data(), v::in_modifier);
  r.in = abi::get(box.data(), v::in_param);
  r.out = abi::get(box.data(), v::out_param);
  const std::uint64_t out_address = r.out & page;
  ++counts_.commands;
  status result = status::bad_op;
  command_channel::mailbox in(channel), out(channel);
  for (const command* c = commands; c->execute != nullptr; ++c) {
    if (c->op != r.op) continue;
    if (c->inbox && copy(function, r.in & page, 0, in.address(), abi::mailbox_bytes) != 0) {
      result = status::internal_error;
      break;
    }
    r.inbox = c->inbox ? &in : nullptr;
    r.outbox = c->outbox ? &out : nullptr;
    result = (this->*c->execute)(r);
    if (result == status::ok && c->outbox && copy(0, out.address(), function, out_address, abi::mailbox_bytes) != 0)
      return false;
    break;
  }
  if (result != status::ok) ++counts_.refused;
  abi::set(box.data(), v::out_param, r.out);
  abi::set(box.data(), v::status, static_cast<std::uint8_t>(result));
  const bool wants_event = (abi::get(box.data(), v::flags) & v::flag_event) != 0;
  if (copy(0, box.address(), function, s.vhcr, v::bytes) != 0) return false;
  if (wants_event) {
    std::array<std::uint8_t, abi::eqe::bytes> entry{};
    abi::set(entry.data(), abi::eqe::type, static_cast<std::uint8_t>(abi::eqe::event::command));
    abi::set(entry.data(), abi::eqe::command_token, abi::get(box.data(), v::token));
    forward_event(function, entry.data());
  }
  return true;
}

/// GEN_EQE into the queue to which the function has mapped events of this type.
void function_master::forward_event(unsigned function, const std::uint8_t* entry) {
  if (function == 0 || function >= functions_.size() || !functions_[function].active) return;
  const std::uint8_t type = abi::get(entry, abi::eqe::type);
  const std::uint32_t eqn = type < functions_[function].event_eqs.size() ? functions_[function].event_eqs[type] : no_eq;
  if (eqn == no_eq) return;
  command_channel::mailbox box(device_.commands());
  std::memcpy(box.data(), entry, abi::eqe::bytes - 4);
  ++counts_.events;
  device_.commands().write(box, abi::opcode::gen_eqe, function | eqn << 16);
}

bool function_master::sees_link(unsigned function, bool there) const {
  const function_link link = functions_[function].settings.link;
  return link == function_link::automatic ? there : link == function_link::up;
}

/// Of a port that it has, by its own number. Where ports stand in for each other its port is down when both are, and
/// each that comes up is told, since the events may be older than what is known of the links (net/eq.c: mlx4_eq_int,
/// mlx4_gen_slave_eqe).
void function_master::forward_port_event(const std::array<std::uint8_t, abi::eqe::bytes>& entry) {
  const unsigned port = abi::get(entry.data(), abi::eqe::port_word) >> 28;
  const bool mirrored = device_.mirrors_ports();
  const bool up = abi::get(entry.data(), abi::eqe::subtype) == abi::eqe::port_active;
  if (mirrored && !up && device_.links() != 0) return;
  for (unsigned f = 1; f < functions_.size(); ++f) {
    const unsigned own = mirrored ? 1 : ports_.own_of(f, port);
    if (own != 0 && functions_[f].settings.link == function_link::automatic) forward_link(f, own, up);
  }
}

/// The port `port` is one of the physical function's.
bool function_master::has_link(unsigned port) const {
  return device_.mirrors_ports() ? device_.links() != 0 : device_.port(port).link_up;
}

void function_master::forward_link(unsigned function, unsigned own_port, bool up) {
  std::array<std::uint8_t, abi::eqe::bytes> entry{};
  abi::set(entry.data(), abi::eqe::type, static_cast<std::uint8_t>(abi::eqe::event::port_change));
  abi::set(entry.data(), abi::eqe::subtype, up ? abi::eqe::port_active : abi::eqe::port_down);
  abi::set(entry.data(), abi::eqe::port_word, own_port << 28);
  forward_event(function, entry.data());
}

int function_master::set_link(unsigned function, function_link link) {
  if (function == 0 || function >= functions_.size()) return -EINVAL;
  functions_[function].settings.link = link;
  for (unsigned own = 1; own <= ports_.count(function); ++own)
    forward_link(function, own, sees_link(function, has_link(ports_.physical_of(function, own))));
  return 0;
}

void function_master::reset_was_reported(unsigned function) {
  if (function == 0 || function >= functions_.size()) return;
  ++counts_.resets;
  functions_[function].resetting = true;
  clean_up(function);
  functions_[function].has_last = false;
  // The answer to what was under way is not the next driver's.
  channel_answer(function, 0);
  device_.commands().command(abi::opcode::inform_flr_done, function);
  functions_[function].resetting = false;
  serve_channel(function);  // its driver may have begun anew
}

/// Takes back all that the function has, with hardware first (net/resource_tracker.c:
/// mlx4_delete_all_resources_for_slave).
void function_master::clean_up(unsigned function) {
  function_state& s = functions_[function];
  s.active = false;
  s.event_eqs.fill(no_eq);
  mads_.close_tunnels(function);
  command_channel& channel = device_.commands();
  icm_resources& tables = device_.tables();
  const auto of = [&](resource what) { return tracker_.of(function, what); };
  const auto with_hardware = [&](resource what, std::uint32_t number) {
    const auto* o = tracker_.find(function, what, number);
    return o != nullptr && o->with_hardware;
  };
  for (const std::uint32_t rule : of(resource_flow)) {
    channel.command(abi::opcode::flow_steering_detach, 0, 0, rule);
    remove_rule(function, rule);
  }
  for (const std::uint32_t qpn : of(resource::qp)) {
    if (with_hardware(resource::qp, qpn))
      channel.command(abi::opcode::to_rst_qp, tracker_.find(function, resource::qp, qpn)->qpn,
                      abi::qp_mailbox::to_reset_op_modifier);
    leave_groups(function, qpn);
    give_number(function, resource::qp, qpn);
  }
  const struct {
    resource what;
    abi::opcode take_back;
  } queues[] = {{resource::srq, abi::opcode::hw2sw_srq},
                {resource::cq, abi::opcode::hw2sw_cq},
                {resource::mpt, abi::opcode::hw2sw_mpt}};
  for (const auto& q : queues)
    for (const std::uint32_t number : of(q.what)) {
      const std::uint32_t at = q.what == resource::mpt ? number & (tables.num_mpts() - 1) : number;
      if (with_hardware(q.what, number)) channel.command(q.take_back, at, 1);
      give_number(function, q.what, number);
    }
  for (const std::uint32_t eqn : of(resource_eq)) {
    channel.command(abi::opcode::hw2sw_eq, eqn & 0xff, 1, function);
    tracker_.remove(resource_eq, eqn);
  }
  for (const std::uint32_t first : of(resource::mtt)) {
    tables.give_back_mtts(first, tracker_.find(function, resource::mtt, first)->order);
    tracker_.remove(resource::mtt, first);
  }
  for (const std::uint32_t number : of(resource::xrcd)) give_number(function, resource::xrcd, number);
  for (const std::uint32_t number : of(resource::counter)) tracker_.remove(resource::counter, number);
  for (const resource what : {resource::mac, resource::vlan})
    for (const std::uint32_t number : of(what)) {
      for (unsigned users = tracker_.find(function, what, number)->users; users != 0; --users)
        what == resource::mac ? device_.remove_mac(number >> 8 & 0xff, number & 0xff, table_user::functions)
                              : device_.remove_vlan(number >> 8 & 0xff, number & 0xff, table_user::functions);
      tracker_.remove(what, number);
    }
  for (unsigned port = 1; port <= device_.num_ports(); ++port) {
    const function_ports::window w = ports_.gids_of(function, port);
    const auto& rows = device_.port(port).gids;
    const bool any = std::any_of(rows.begin() + w.first, rows.begin() + w.first + w.count,
                                 [](const gid_row& row) { return row.valid; });
    if (any) device_.change_gids(port, w.first, std::vector<gid_row>(w.count));
  }
}

abi::status function_master::native(const request& r, std::uint64_t* immediate) {
  const std::uint64_t in = r.inbox != nullptr ? r.inbox->address() | r.function : r.in;
  // Hardware writes with the physical function's rights: never where the function says.
  const std::uint64_t out = r.outbox != nullptr ? r.outbox->address() : 0;
  command_channel& channel = device_.commands();
  const int error = channel.execute({r.op, r.modifier, r.op_modifier, in, out, immediate});
  if (error == 0) return status::ok;
  return channel.last_status() != 0 ? static_cast<status>(channel.last_status()) : status::internal_error;
}

abi::status function_master::native(const request& r, std::uint32_t modifier) {
  request other = r;
  other.modifier = modifier;
  return native(other);
}

}  // namespace rnic::host_driver
