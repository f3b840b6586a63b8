// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/host/interface_groups.h"

#include <algorithm>
#include <utility>

#include "host_driver/hosts/connection.h"
#include "host_driver/neighbour_messages.h"
#include "model/wire/ethernet.h"

namespace rnic::serve {

using host_driver::gid_bytes;
using host_driver::groups::memberships;

interface_groups::interface_groups(ethernet_ring& ring, const sim::timebase& base, std::function<bool()> has_network)
    : ring_(ring), base_(base), has_network_(std::move(has_network)) {
  sc_core::sc_spawn([this] { serve(); }, sc_core::sc_gen_unique_name("groups"));
}

void interface_groups::add_interface(const host_driver::groups::interface_addresses& own,
                                     host_driver::groups::igmp_version version) {
  host_driver::frame_output_if& out = *this;  // which is nobody else's business
  interfaces_.push_back(std::make_unique<memberships>(own, out, version, wire::to_u64(own.mac)));
}

int interface_groups::join(unsigned interface, const gid_bytes& group) {
  const int error = interfaces_[interface]->join(group, base_.now_ps());
  changed_.notify(sc_core::SC_ZERO_TIME);
  return error;
}

void interface_groups::leave(unsigned interface, const gid_bytes& group) {
  interfaces_[interface]->leave(group, base_.now_ps());
  changed_.notify(sc_core::SC_ZERO_TIME);
}

void interface_groups::add_address(unsigned interface, const gid_bytes& address) {
  if (host_driver::is_ipv4(address)) return;
  hosts::require(join(interface, host_driver::messages::solicited_node(address)), "join the solicited-node group");
}

void interface_groups::leave_all() {
  for (const auto& i : interfaces_) i->leave_all(base_.now_ps());
  changed_.notify(sc_core::SC_ZERO_TIME);
}

void interface_groups::network_came() {
  for (const auto& i : interfaces_) i->report_again(base_.now_ps());
  changed_.notify(sc_core::SC_ZERO_TIME);
}

bool interface_groups::receive(const std::uint8_t* frame, std::size_t length) {
  bool taken = false;
  for (const auto& i : interfaces_) taken = i->receive(frame, length, base_.now_ps()) || taken;
  if (taken) changed_.notify(sc_core::SC_ZERO_TIME);
  return taken;
}

void interface_groups::transmit(const std::uint8_t* frame, std::size_t length) {
  if (has_network_()) ring_.transmit(frame, length);
}

std::uint64_t interface_groups::deadline_ps() const {
  std::uint64_t first = ~std::uint64_t{0};
  for (const auto& i : interfaces_) first = std::min(first, i->deadline_ps());
  return first;
}

/// The timers of the memberships.
void interface_groups::serve() {
  for (;;) {
    const std::uint64_t due = deadline_ps(), now = base_.now_ps();
    if (due == ~std::uint64_t{0})
      sc_core::wait(changed_);
    else if (due > now)
      sc_core::wait(sc_core::sc_time::from_value(due - now), changed_);
    for (const auto& i : interfaces_) i->tick(base_.now_ps());
  }
}

}  // namespace rnic::serve
