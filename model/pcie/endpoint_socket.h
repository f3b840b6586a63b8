// SPDX-License-Identifier: Apache-2.0
// The adapter's PCIe connector as a TLM socket.
#pragma once

#include <systemc>

#include "model/payload/pcie_socket.h"
#include "model/pcie/endpoint.h"
#include "model/pcie/pcie_rim.h"
#include "model/sim/timebase.h"

namespace rnic::pcie {

/// A target socket that is an endpoint: bind a root complex (model/host/root_complex_socket.h), a platform
/// (tlm/platform_bridge.h) or a bridge to it. May stay unbound, when endpoint_if::connect is called instead.
class endpoint_socket
    : public ::tlm::tlm_target_socket<64, payload::pcie_protocol_types, 1, sc_core::SC_ZERO_OR_MORE_BOUND>,
      private payload::pcie_fw_if {
 public:
  endpoint_socket(const char* name, endpoint_if& end, sim::timebase& base)
      : tlm_target_socket(name), endpoint_(end), base_(base), up_(sender{*this}) {
    bind(static_cast<payload::pcie_fw_if&>(*this));
  }

  /// From the end of elaboration on: something is bound to it.
  bool bound() { return get_base_port().size() != 0; }
  /// Link-up, once, at the end of elaboration.
  void connect() { endpoint_.connect(up_); }

 private:
  struct sender {
    endpoint_socket& socket;
    void operator()(payload::pcie_payload& p, ::tlm::tlm_phase& phase, sc_core::sc_time& delay) const {
      socket->nb_transport_bw(p, phase, delay);
      socket.base_.left_model();
    }
  };
  ::tlm::tlm_sync_enum nb_transport_fw(payload::pcie_payload& p, ::tlm::tlm_phase&, sc_core::sc_time& delay) override {
    return socket_to_link(p, delay, endpoint_);
  }
  void b_transport(payload::pcie_payload& p, sc_core::sc_time& delay) override { socket_to_link(p, delay, endpoint_); }
  bool get_direct_mem_ptr(payload::pcie_payload&, ::tlm::tlm_dmi&) override { return false; }
  unsigned int transport_dbg(payload::pcie_payload& p) override { return p.packet ? endpoint_.look(*p.packet) : 0; }

  endpoint_if& endpoint_;
  sim::timebase& base_;
  link_to_socket<sender> up_;
};

/// An endpoint without the rest of an adapter behind its socket. The link comes up at the end of elaboration; do not
/// call endpoint::connect beside it.
class pcie_endpoint_socket : public sc_core::sc_module {
 public:
  endpoint_socket socket;

  pcie_endpoint_socket(const sc_core::sc_module_name& name, endpoint& end)
      : sc_core::sc_module(name), socket("socket", end, end.domain().base()) {}

 private:
  void end_of_elaboration() override { socket.connect(); }
};

}  // namespace rnic::pcie
