// SPDX-License-Identifier: Apache-2.0
// The slot as a TLM socket.
#pragma once

#include <systemc>

#include "model/host/root_complex.h"
#include "model/payload/pcie_socket.h"
#include "model/pcie/pcie_rim.h"
#include "model/sim/timebase.h"

namespace rnic::host {

/// Thin shell: bind `socket` to an adapter's (model/pcie/endpoint_socket.h). The link comes up at the end of
/// elaboration; do not call root_complex::connect beside it.
class root_complex_socket : public sc_core::sc_module, private payload::pcie_bw_if {
 public:
  payload::pcie_initiator_socket socket{"socket"};

  root_complex_socket(const sc_core::sc_module_name& name, root_complex& root)
      : sc_core::sc_module(name), root_(root), down_(sender{*this}) {
    socket.bind(*this);
  }

 private:
  struct sender {
    root_complex_socket& shell;
    void operator()(payload::pcie_payload& p, ::tlm::tlm_phase& phase, sc_core::sc_time& delay) const {
      shell.socket->nb_transport_fw(p, phase, delay);
      shell.root_.domain().base().left_model();
    }
  };
  void end_of_elaboration() override { root_.connect(down_); }
  ::tlm::tlm_sync_enum nb_transport_bw(payload::pcie_payload& p, ::tlm::tlm_phase&, sc_core::sc_time& delay) override {
    return pcie::socket_to_link(p, delay, root_);
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

  root_complex& root_;
  pcie::link_to_socket<sender> down_;
};

}  // namespace rnic::host
