// SPDX-License-Identifier: Apache-2.0
// The adapter's PCIe connector as a TLM socket.
#pragma once

#include <systemc>

#include "model/pcie/endpoint.h"
#include "model/pcie/pcie_rim.h"
#include "model/sim/timebase.h"
#include "tlm/pcie_socket.h"

namespace rnic::pcie {

/// Thin shell: bind `socket` to a root complex (model/host/root_complex_socket.h) or a bridge. The link comes up at the
/// end of elaboration; do not call endpoint::connect beside it.
class pcie_endpoint_socket : public sc_core::sc_module, private tlm::pcie_fw_if {
 public:
  tlm::pcie_target_socket socket{"socket"};

  pcie_endpoint_socket(const sc_core::sc_module_name& name, endpoint& end)
      : sc_core::sc_module(name), endpoint_(end), up_(sender{*this}) {
    socket.bind(*this);
  }

 private:
  struct sender {
    pcie_endpoint_socket& shell;
    void operator()(tlm::pcie_payload& p, ::tlm::tlm_phase& phase, sc_core::sc_time& delay) const {
      shell.socket->nb_transport_bw(p, phase, delay);
      shell.endpoint_.domain().base().left_model();
    }
  };
  void end_of_elaboration() override { endpoint_.connect(up_); }
  ::tlm::tlm_sync_enum nb_transport_fw(tlm::pcie_payload& p, ::tlm::tlm_phase&, sc_core::sc_time& delay) override {
    return socket_to_link(p, delay, endpoint_);
  }
  void b_transport(tlm::pcie_payload& p, sc_core::sc_time& delay) override { socket_to_link(p, delay, endpoint_); }
  bool get_direct_mem_ptr(tlm::pcie_payload&, ::tlm::tlm_dmi&) override { return false; }
  unsigned int transport_dbg(tlm::pcie_payload&) override { return 0; }

  endpoint& endpoint_;
  link_to_socket<sender> up_;
};

}  // namespace rnic::pcie
