// SPDX-License-Identifier: Apache-2.0
// TLM-2.0 sockets for Ethernet frames, and the shells that put them around a frame_sink_if.
#pragma once

#include <string>
#include <systemc>
#include <tlm>
#include <utility>

#include "model/sim/timebase.h"
#include "tlm/frame_port.h"

namespace rnic::tlm {

/// One frame on the line. The delay annotated to nb_transport_fw is the time until its last bit arrives.
struct ethernet_transaction {
  frame_ptr frame;
};

/// Protocol traits. One call, BEGIN_REQ answered by TLM_COMPLETED, is all of the protocol: Ethernet has no handshake,
/// back-pressure is by pause frames. A link is two pairs of sockets, one for each direction.
struct ethernet_protocol_types {
  using tlm_payload_type = ethernet_transaction;
  using tlm_phase_type = ::tlm::tlm_phase;
};
class ethernet_fw_if : public virtual ::tlm::tlm_fw_nonblocking_transport_if<ethernet_transaction, ::tlm::tlm_phase> {
 public:
  using protocol_types = ethernet_protocol_types;
};
class ethernet_bw_if : public virtual ::tlm::tlm_bw_nonblocking_transport_if<ethernet_transaction, ::tlm::tlm_phase> {
 public:
  using protocol_types = ethernet_protocol_types;
};
using ethernet_initiator_socket = ::tlm::tlm_base_initiator_socket<8, ethernet_fw_if, ethernet_bw_if>;
using ethernet_target_socket = ::tlm::tlm_base_target_socket<8, ethernet_fw_if, ethernet_bw_if>;

/// Frames handed to it leave through the socket.
class ethernet_transmit_rim : public sc_core::sc_module, public frame_sink_if, private ethernet_bw_if {
 public:
  ethernet_transmit_rim(const sc_core::sc_module_name& name, sim::timebase& base)
      : sc_core::sc_module(name), out("out"), base_(base) {
    out.bind(static_cast<ethernet_bw_if&>(*this));
  }
  ethernet_initiator_socket out;

  void deliver(frame_ptr frame, sim::time_ps arrival) override {
    ethernet_transaction t{std::move(frame)};
    ::tlm::tlm_phase phase = ::tlm::BEGIN_REQ;
    sc_core::sc_time delay = sc_core::sc_time::from_value(arrival - sc_core::sc_time_stamp().value());
    out->nb_transport_fw(t, phase, delay);
    base_.left_model();
  }

 private:
  ::tlm::tlm_sync_enum nb_transport_bw(ethernet_transaction&, ::tlm::tlm_phase&, sc_core::sc_time&) override {
    return ::tlm::TLM_COMPLETED;  // nothing comes back in this protocol
  }
  sim::timebase& base_;
};

/// Frames that come in through the socket go to `sink`.
class ethernet_receive_rim : public sc_core::sc_module, private ethernet_fw_if {
 public:
  ethernet_receive_rim(const sc_core::sc_module_name& name, frame_sink_if& sink)
      : sc_core::sc_module(name), in("in"), sink_(sink) {
    in.bind(static_cast<ethernet_fw_if&>(*this));
  }
  ethernet_target_socket in;

 private:
  ::tlm::tlm_sync_enum nb_transport_fw(ethernet_transaction& t, ::tlm::tlm_phase&, sc_core::sc_time& delay) override {
    sink_.deliver(std::move(t.frame), (sc_core::sc_time_stamp() + delay).value());
    return ::tlm::TLM_COMPLETED;
  }
  frame_sink_if& sink_;
};

/// The connector of a port as seen from behind sockets: frames of either direction pass a pair of them on their way
/// between the port and what is plugged into this.
class ethernet_connector : public frame_port_if, private frame_sink_if {
 public:
  ethernet_connector(const std::string& name, frame_port_if& port, sim::timebase& base)
      : port_(port),
        leaving_((name + "_leaving").c_str(), base),
        left_((name + "_left").c_str(), *this),
        coming_((name + "_coming").c_str(), base),
        come_((name + "_come").c_str(), port.receiver()) {
    leaving_.out.bind(left_.in);
    coming_.out.bind(come_.in);
    port.attach(leaving_);
  }

  frame_sink_if& receiver() override { return coming_; }
  void attach(frame_sink_if& line) override { line_ = &line; }
  void carrier(bool up, sim::time_ps at) override { port_.carrier(up, at); }

 private:
  void deliver(frame_ptr frame, sim::time_ps arrival) override { line_->deliver(std::move(frame), arrival); }

  frame_port_if& port_;
  frame_sink_if* line_ = nullptr;
  ethernet_transmit_rim leaving_;
  ethernet_receive_rim left_;
  ethernet_transmit_rim coming_;
  ethernet_receive_rim come_;
};

}  // namespace rnic::tlm
