// SPDX-License-Identifier: Apache-2.0
#include "host_driver/dcb/service.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "host_driver/dcb/port_commands.h"

namespace rnic::host_driver::dcb {

namespace {

constexpr std::uint64_t processing_ps = 20'000'000;   // of a frame, by a daemon; nobody waits for it
constexpr unsigned ethernet_overhead = 14 + 4 + 4;    // header, one tag, FCS
constexpr std::uint64_t farewell_ps = 1'000'000'000;  // until the last frame has left

wire::lldp_id id_of(std::uint8_t subtype, const mac_address& mac) { return {subtype, {mac.begin(), mac.end()}}; }

}  // namespace

service::service(device& dev, bus_if& bus, unsigned port)
    : dev_(dev),
      bus_(bus),
      port_(port),
      own_(dev.port(port).mac),
      local_(local_values(dev.settings().dcb, dev.settings().pfc_mask)),
      agent_(own_, dev.settings().dcb.lldp, *this),
      frames_(dev, bus, wire::lldp_nearest_bridge, {port}) {}

int service::start() {
  if (const int error = frames_.open()) return error;
  apply(agree(local_, own_, nullptr));
  if (command_errors_ != 0) return -EIO;
  agent_.set_link((dev_.links() >> (port_ - 1) & 1) != 0, bus_.now_ps());
  agent_.start(unit(), bus_.now_ps());
  return 0;
}

wire::lldp_unit service::unit() const {
  wire::lldp_unit u;
  u.chassis = id_of(wire::lldp_id::chassis_mac, dev_.port(1).mac);
  u.port = id_of(wire::lldp_id::port_mac, own_);
  u.port_description = "eth" + std::to_string(port_);
  u.system_name = dev_.settings().dcb.system_name;
  const firmware_info& fw = dev_.firmware();
  char description[64];
  std::snprintf(description, sizeof description, "RoCE adapter model, firmware %u.%u.%u", unsigned{fw.major},
                unsigned{fw.minor}, unsigned{fw.subminor});
  u.system_description = description;
  u.capabilities = wire::lldp_unit::station_only;
  u.largest_frame = static_cast<std::uint16_t>(std::min(dev_.settings().mtu + ethernet_overhead, 0xffffu));
  u.dcbx = local_;
  u.dcbx.ets->table = now_.ets;  // what is in force; what the peer should do is what the administrator has said
  u.dcbx.pfc->enabled = now_.pfc;
  return u;
}

void service::transmit(const std::uint8_t* frame, std::size_t length) { frames_.queue(port_, frame, length); }

/// True when something is known that was not.
bool service::take_received() {
  bool changed = false;
  frames_.take_received(processing_ps, [&](unsigned, const std::uint8_t* frame, std::size_t length) {
    changed |= agent_.receive(frame, length, bus_.now_ps());
  });
  return changed;
}

/// What follows from the neighbours is put in force, and the peer is told.
void service::settle() {
  const operational to = agree(local_, own_, peer_of(agent_.neighbours()));
  if (to != now_) {
    apply(to);
    ++changes_;
    agent_.change(unit(), bus_.now_ps());
  }
  if (tell_) tell_();
}

void service::apply(const operational& to) {
  if (!applied_ || to.ets != now_.ets)
    if (set_ets(dev_, port_, to.ets) != 0) ++command_errors_;
  if (!applied_ || to.pfc != now_.pfc)
    if (set_pfc(dev_, port_, to.pfc) != 0) ++command_errors_;
  applied_ = true;
  now_ = to;
}

void service::run() {
  while (!stopping_) {
    bool changed = follow_link();
    changed |= take_received();
    changed |= agent_.tick(bus_.now_ps());
    if (changed) settle();
    frames_.post_waiting();
    if (stopping_) break;
    const std::uint64_t now = bus_.now_ps(), next = agent_.next_ps();
    if (next > now) frames_.wait(next - now);
  }
  agent_.stop(bus_.now_ps());
  frames_.post_waiting();
  frames_.drain(farewell_ps);
  const operational before = now_;
  apply(agree(local_, own_, nullptr));
  if (now_ != before && tell_) tell_();
  ended_ = true;
}

void service::stop() {
  if (stopping_) return;
  stopping_ = true;
  frames_.end_wait();
}

void service::set_link(bool up) {
  link_changes_.push_back(up);
  frames_.end_wait();
}

/// True when neighbours went with the link.
bool service::follow_link() {
  bool changed = false;
  for (; !link_changes_.empty(); link_changes_.pop_front())
    changed |= agent_.set_link(link_changes_.front(), bus_.now_ps());
  return changed;
}

/// The entry with the lowest number of several, as net/dcb's dcb_ieee_getapp_mask users take it (bnxt_re).
std::optional<std::uint8_t> service::roce_priority(roce_types version) const {
  using kind = wire::application_priority::kind;
  const bool routed = version == roce_types::v2;
  std::optional<std::uint8_t> found;
  for (const wire::application_priority& a : now_.applications) {
    const bool is_meant =
        routed ? (a.selector == kind::udp_port || a.selector == kind::any_port) && a.protocol == wire::roce_v2_udp_port
               : a.selector == kind::ethertype && a.protocol == static_cast<std::uint16_t>(wire::ether_type::roce_v1);
    if (is_meant && (!found || a.priority < *found)) found = a.priority;
  }
  return found;
}

service::state service::current() const {
  state s;
  s.now = now_;
  s.local = local_;
  s.neighbours = agent_.neighbours();
  if (const lldp_neighbour* peer = peer_of(agent_.neighbours(), &s.several)) s.peer = *peer;
  s.lldp = agent_.count();
  s.changes = changes_;
  s.command_errors = command_errors_;
  return s;
}

}  // namespace rnic::host_driver::dcb
