// SPDX-License-Identifier: Apache-2.0
// TLM-2.0 sockets for Ethernet frames, and the shells that put them around a frame_sink_if.
#pragma once

#include <cstdint>
#include <string>
#include <systemc>
#include <tlm>
#include <utility>

#include "model/payload/frame_port.h"
#include "model/sim/check.h"
#include "model/sim/timebase.h"

namespace rnic::payload {

/// What goes over the socket: a frame, the annotated delay of nb_transport_fw being the time until its last bit
/// arrives, or word that from then on the line has a carrier or none. A line has one when it is bound.
struct ethernet_transaction {
  enum class kind : std::uint8_t { frame, carrier };
  frame_ptr frame;
  kind what = kind::frame;
  bool up = true;  ///< carrier
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
    send(t, arrival);
  }
  void carrier(bool up, sim::time_ps at) {
    ethernet_transaction t;
    t.what = ethernet_transaction::kind::carrier;
    t.up = up;
    send(t, at);
  }

 private:
  void send(ethernet_transaction& t, sim::time_ps arrival) {
    ::tlm::tlm_phase phase = ::tlm::BEGIN_REQ;
    sc_core::sc_time delay = sc_core::sc_time::from_value(arrival - sc_core::sc_time_stamp().value());
    out->nb_transport_fw(t, phase, delay);
    base_.left_model();
  }
  ::tlm::tlm_sync_enum nb_transport_bw(ethernet_transaction&, ::tlm::tlm_phase&, sc_core::sc_time&) override {
    return ::tlm::TLM_COMPLETED;  // nothing comes back in this protocol
  }
  sim::timebase& base_;
};

/// Frames that come in through the socket go to `sink`, which has no notion of a carrier.
class ethernet_receive_rim : public sc_core::sc_module, private ethernet_fw_if {
 public:
  ethernet_receive_rim(const sc_core::sc_module_name& name, frame_sink_if& sink)
      : sc_core::sc_module(name), in("in"), sink_(sink) {
    in.bind(static_cast<ethernet_fw_if&>(*this));
  }
  ethernet_target_socket in;

 private:
  ::tlm::tlm_sync_enum nb_transport_fw(ethernet_transaction& t, ::tlm::tlm_phase&, sc_core::sc_time& delay) override {
    if (t.what == ethernet_transaction::kind::frame)
      sink_.deliver(std::move(t.frame), (sc_core::sc_time_stamp() + delay).value());
    return ::tlm::TLM_COMPLETED;
  }
  frame_sink_if& sink_;
};

/// A port as its users see it: a pair of sockets. bind() of two of them is a cable without length; a longer one, a
/// switch or a bridge has such sockets as well (ethernet_connector). A port of which neither is bound has no link.
class ethernet_port_socket : private frame_sink_if, private ethernet_fw_if, private ethernet_bw_if {
 public:
  ethernet_port_socket(const std::string& name, frame_port_if& port, sim::timebase& base)
      : transmit((name + "_transmit").c_str()), receive((name + "_receive").c_str()), port_(port), base_(base) {
    transmit.bind(static_cast<ethernet_bw_if&>(*this));
    receive.bind(static_cast<ethernet_fw_if&>(*this));
  }
  /// Both must be bound, or neither.
  ::tlm::tlm_base_initiator_socket<8, ethernet_fw_if, ethernet_bw_if, 1, sc_core::SC_ZERO_OR_MORE_BOUND> transmit;
  ::tlm::tlm_base_target_socket<8, ethernet_fw_if, ethernet_bw_if, 1, sc_core::SC_ZERO_OR_MORE_BOUND> receive;

  void bind(ethernet_port_socket& other) {
    transmit.bind(other.receive);
    other.transmit.bind(receive);
  }

  /// At the end of elaboration, by the port's module: gives the port its line. Throws sim::config_error when one socket
  /// alone is bound.
  void connect() {
    const bool out = transmit.size() != 0, in = receive.get_base_port().size() != 0;
    if (out != in)
      throw sim::config_error(std::string(out ? receive.name() : transmit.name()) + ": not bound, but " +
                              (out ? transmit.basename() : receive.basename()) + " is");
    if (out) port_.attach(*this);
  }

 private:
  void deliver(frame_ptr frame, sim::time_ps arrival) override {
    ethernet_transaction t{std::move(frame)};
    ::tlm::tlm_phase phase = ::tlm::BEGIN_REQ;
    sc_core::sc_time delay = sc_core::sc_time::from_value(arrival - sc_core::sc_time_stamp().value());
    transmit->nb_transport_fw(t, phase, delay);
    base_.left_model();
  }
  ::tlm::tlm_sync_enum nb_transport_fw(ethernet_transaction& t, ::tlm::tlm_phase&, sc_core::sc_time& delay) override {
    const sim::time_ps at = (sc_core::sc_time_stamp() + delay).value();
    if (t.what == ethernet_transaction::kind::carrier)
      port_.carrier(t.up, at);
    else
      port_.receiver().deliver(std::move(t.frame), at);
    return ::tlm::TLM_COMPLETED;
  }
  ::tlm::tlm_sync_enum nb_transport_bw(ethernet_transaction&, ::tlm::tlm_phase&, sc_core::sc_time&) override {
    return ::tlm::TLM_COMPLETED;
  }

  frame_port_if& port_;
  sim::timebase& base_;
};

/// What is plugged into a port's sockets, as plain calls: a cable that is attached to it ends at the port.
class ethernet_connector : public frame_port_if, private frame_sink_if {
 public:
  ethernet_connector(const std::string& name, ethernet_port_socket& port, sim::timebase& base)
      : left_((name + "_left").c_str(), *this), coming_((name + "_coming").c_str(), base) {
    port.transmit.bind(left_.in);
    coming_.out.bind(port.receive);
  }

  frame_sink_if& receiver() override { return coming_; }
  void attach(frame_sink_if& line) override { line_ = &line; }
  void carrier(bool up, sim::time_ps at) override { coming_.carrier(up, at); }

 private:
  void deliver(frame_ptr frame, sim::time_ps arrival) override { line_->deliver(std::move(frame), arrival); }

  frame_sink_if* line_ = nullptr;
  ethernet_receive_rim left_;
  ethernet_transmit_rim coming_;
};

}  // namespace rnic::payload
