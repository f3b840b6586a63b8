// SPDX-License-Identifier: Apache-2.0
#include "model/pcie/pcie_core.h"

#include <algorithm>
#include <string>
#include <utility>

namespace rnic::pcie {

pcie_core::pcie_core(const std::string& name, sim::clock_domain& clock, const core_config& c,
                     sim::clocked_block& endpoint, link_wire& wire, sim::span_recorder& spans)
    : clocked_block(name, clock),
      endpoint_(endpoint),
      wire_(wire),
      spans_(spans),
      interface_(*this, c),
      out_(endpoint.name() + "_to_" + basename() + "_packets", endpoint, *this, c.crossing_packets,
           c.synchroniser_stages),
      in_(this->name() + "_to_" + endpoint.basename() + "_packets", *this, endpoint, c.crossing_packets,
          c.synchroniser_stages),
      arrived_(this->name() + ".arrived", *this, 256),
      inwards_(endpoint.name(), clock, c.synchroniser_stages),
      outwards_(endpoint.name(), endpoint.domain(), c.synchroniser_stages) {}

void pcie_core::tick() {
  transmit();
  receive();
}

void pcie_core::transmit() {
  if (!out_.can_pop()) return;
  if (!interface_.engine().is_free()) return interface_.engine().await();
  if (!wire_.has_room(now_ps())) {
    interface_.engine().blocked("link");
    return wake_at(domain().edge_at_or_after(wire_.room_at()));
  }
  outgoing o = out_.pop();
  const bool write = o.packet->type == payload::tlp_type::mem_write;
  const sim::span_id span = o.packet->span;
  if (write) spans_.leave(span, name(), "crossing", now_ps());
  const sim::time_ps begin = interface_.occupy(o.bytes, o.first, now_ps());
  const sim::time_ps left = wire_.send(std::move(o.packet), begin);
  if (write) spans_.leave(span, name(), "transmit", left);
}

void pcie_core::receive() {
  if (!arrived_.can_pop()) return;
  if (!receive_.is_free()) return receive_.await();
  if (in_.full()) return receive_.blocked("endpoint");  // it wakes us
  payload::tlp_ptr t = arrived_.pop();
  const sim::cycle_t beats = interface_.beats(t->carried());
  receive_.start(beats);
  const bool write = t->type == payload::tlp_type::mem_write;
  const sim::span_id span = t->span;
  const sim::cycle_t seen = in_.push(std::move(t), beats - 1);
  if (!write) return;
  spans_.leave(span, name(), "receive", domain().edge_time(now() + beats - 1));
  spans_.leave(span, name(), "crossing", endpoint_.domain().edge_time(seen));
}

sim::time_ps pcie_core::seen_by_endpoint(sim::time_ps arrival) const {
  return outwards_.time(domain().edge_time(domain().edge_at_or_after(arrival)));
}

// ---------------------------------------------------------------- core_domain

std::unique_ptr<core_domain> core_domain::of(endpoint& e, sim::span_recorder& spans) {
  constexpr std::uint32_t slowest_khz = 1000;
  if (const std::uint32_t khz = e.core_parameters().khz; khz != 0 && khz < slowest_khz)
    throw sim::config_error(e.name() + ".core_khz: must be 0 or at least " + std::to_string(slowest_khz));
  return e.core_parameters().khz == 0 ? nullptr : std::make_unique<core_domain>(e, spans);
}

core_domain::core_domain(endpoint& e, sim::span_recorder& spans)
    : clock_(e.name() + "_clock", e.domain().base(), sim::clock_period::from_khz(e.core_parameters().khz)),
      core_(e.name() + "_core", clock_, e.core_parameters(), e, e.transmitter().wire(), spans) {
  e.cross_by(core_);
}

}  // namespace rnic::pcie
