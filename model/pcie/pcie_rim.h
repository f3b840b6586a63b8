// SPDX-License-Identifier: Apache-2.0
// Between the TLM socket of a PCIe link and the plain calls that blocks use. Shared by both ends.
#pragma once

#include <systemc>
#include <utility>

#include "model/payload/pcie_socket.h"
#include "model/pcie/tlp_link_if.h"

namespace rnic::pcie {

/// Outgoing: plain calls become transports. `send` is called with (payload, phase, delay).
template <class Send>
class link_to_socket : public tlp_link_if {
 public:
  explicit link_to_socket(Send send) : send_(std::move(send)) {}
  void deliver(payload::tlp_ptr packet, sim::time_ps arrival) override {
    payload::pcie_payload p;
    p.packet = std::move(packet);
    transport(p, arrival);
  }
  void credit(const credit_amount& amount, sim::time_ps arrival) override {
    payload::pcie_payload p;
    p.what = payload::pcie_payload::kind::credit;
    p.credit_class = static_cast<std::uint8_t>(amount.type);
    p.headers = amount.headers;
    p.data = amount.data;
    transport(p, arrival);
  }

 private:
  void transport(payload::pcie_payload& p, sim::time_ps arrival) {
    const sim::time_ps now = sc_core::sc_time_stamp().value();
    sc_core::sc_time delay = sc_core::sc_time::from_value(arrival - now);
    ::tlm::tlm_phase phase = ::tlm::BEGIN_REQ;
    send_(p, phase, delay);
  }
  Send send_;
};

/// Incoming: a transport becomes a plain call.
inline ::tlm::tlm_sync_enum socket_to_link(payload::pcie_payload& p, const sc_core::sc_time& delay, tlp_link_if& to) {
  const sim::time_ps arrival = sc_core::sc_time_stamp().value() + delay.value();
  if (p.what == payload::pcie_payload::kind::packet)
    to.deliver(std::move(p.packet), arrival);
  else if (p.credit_class <= static_cast<std::uint8_t>(credit_class::completion))
    to.credit({static_cast<credit_class>(p.credit_class), p.headers, p.data}, arrival);
  return ::tlm::TLM_COMPLETED;
}

}  // namespace rnic::pcie
