// SPDX-License-Identifier: Apache-2.0
// The way of the endpoint's packets to the link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "model/pcie/core_interface.h"
#include "model/pcie/link.h"
#include "model/sim/async_fifo.h"
#include "model/sim/server.h"

namespace rnic::pcie {

/// Where the PCIe core has the adapter's clock: over its interface, which may be ahead of the link by the transmit
/// buffer, to the link. Where it has one of its own: into the crossing; interface and link are the core's
/// (pcie_core.h), and a packet has its credits before it crosses, so that none holds up others there. At most one
/// packet a cycle: engine `issue`, which is blocked by "tags", "credits", or "pcie core" when the crossing is full;
/// without a crossing engine `interface`, which is blocked by "tags", "credits" or "link".
class transmit_path {
 public:
  transmit_path(sim::clocked_block& owner, const core_config& c, link_transmitter& link) : owner_(owner), link_(link) {
    if (c.khz == 0)
      interface_.emplace(owner, c);
    else
      issue_.emplace(owner, "issue");
  }
  void cross_by(sim::async_fifo<outgoing>& crossing) { crossing_ = &crossing; }

  /// Room for a packet of a request; else the owner's wake-up is booked.
  bool ready() {
    if (crossing_ != nullptr) {
      if (crossing_->full()) blocked("pcie core");
      return !crossing_->full();
    }
    if (interface_->free_ps() <= link_.now_ps() + ahead()) return true;
    owner_.wake_at(owner_.domain().edge_at_or_after(interface_->free_ps() - ahead()));
    return false;
  }
  /// Room and credits; else the owner's wake-up is booked.
  bool can_send(credit_class type, std::uint32_t bytes) {
    if (crossing_ == nullptr) return link_.can_send(type, bytes);
    return !crossing_->full() && link_.has_credit(type, bytes);
  }
  /// Whether the last refusal of can_send() was for want of credit.
  bool refused_for_credit() const { return link_.refused_for_credit(); }

  /// A packet of a request, `bytes` of which pass the interface. Returns when it has left: its last byte the adapter,
  /// or all of it for the core.
  sim::time_ps send(payload::tlp_ptr&& packet, std::uint32_t bytes, bool first) {
    if (crossing_ != nullptr) return cross(std::move(packet), bytes, first);
    const sim::time_ps begin = interface_->occupy(bytes, first, link_.now_ps());
    return link_.send(std::move(packet), begin);
  }
  /// The edge at which the next packet of a write follows that was sent at edge `sent_at`, when that hangs on nothing
  /// but the interface, which is not idle until then, and the link; else never: it will be known then.
  sim::cycle_t next_edge(sim::cycle_t sent_at, std::uint32_t payload) {
    if (crossing_ != nullptr) return sim::never;
    const sim::time_ps room = std::max(link_.wire().busy_until(), interface_->free_ps());
    const sim::cycle_t edge =
        std::max(sent_at + 1, room > ahead() ? owner_.domain().edge_at_or_after(room - ahead()) : 0);
    if (edge > interface_->free_at()) return sim::never;
    return link_.has_at_hand(credit_class::posted, payload) ? edge : sim::never;
  }
  /// send() at edge next_edge().
  sim::time_ps send_at(sim::cycle_t edge, payload::tlp_ptr&& packet, std::uint32_t bytes) {
    return link_.send(std::move(packet), interface_->occupy_at(edge, bytes));
  }
  /// A request's packet waits that cannot pass because of `by`, or nothing waits any more (sim::server).
  void blocked(const char* by) { engine().blocked(by); }
  void idle() { engine().idle(); }
  /// A completion. It has an interface of its own where the core has the adapter's clock.
  void send_reply(payload::tlp_ptr&& packet) {
    if (crossing_ != nullptr) {
      const std::uint32_t bytes = packet->carried();
      cross(std::move(packet), bytes, false);
    } else {
      link_.send(std::move(packet), link_.now_ps());
    }
  }
  /// Ticks the owner when there is room for another packet of a request, at edge `next` at the earliest.
  void await_room(sim::cycle_t next) {
    if (crossing_ != nullptr) {
      if (crossing_->full()) return blocked("pcie core");  // it wakes the owner
      return owner_.wake_at(next);
    }
    const sim::time_ps wire = link_.wire().busy_until(), room = std::max(wire, interface_->free_ps());
    const bool now = room <= link_.now_ps() + ahead();
    const sim::cycle_t then = now ? next : std::max(next, owner_.domain().edge_at_or_after(room - ahead()));
    if (then != next && room == wire) blocked("link");
    owner_.wake_at(then);
  }

 private:
  sim::server& engine() { return interface_ ? interface_->engine() : *issue_; }
  sim::time_ps ahead() const { return link_.wire().config().transmit_buffer_ps; }
  sim::time_ps cross(payload::tlp_ptr&& packet, std::uint32_t bytes, bool first) {
    link_.take_credit(*packet);
    issue_->start(1);
    crossing_->push({std::move(packet), bytes, first});
    return link_.now_ps();
  }

  sim::clocked_block& owner_;
  link_transmitter& link_;
  std::optional<core_interface> interface_;  // one of the two
  std::optional<sim::server> issue_;
  sim::async_fifo<outgoing>* crossing_ = nullptr;
};

}  // namespace rnic::pcie
