// SPDX-License-Identifier: Apache-2.0
// TLM-2.0 sockets of a PCIe link: where the adapter plugs into a slot.
#pragma once

#include <cstdint>
#include <systemc>
#include <tlm>

#include "model/payload/tlp.h"

namespace rnic::payload {

/// What goes over the socket: a packet (its handle is moved out by the receiver), or flow-control credits. The object
/// lives on the sender's stack for the time of the call.
struct pcie_payload {
  enum class kind : std::uint8_t { packet, credit };
  kind what = kind::packet;
  tlp_ptr packet;
  std::uint8_t credit_class = 0;  ///< 0 posted, 1 non-posted, 2 completion
  std::uint32_t headers = 0;
  std::uint32_t data = 0;  ///< units of 16 bytes; 0xffff'ffff: infinite
};

/// Own protocol traits, base class rules of the TLM-2.0 standard (IEEE 1666-2011, 14.2.2). There is one phase,
/// BEGIN_REQ: each nb_transport call is a whole transfer, its `delay` the time from now until the packet's last byte
/// has arrived (or the credit counts), and it returns TLM_COMPLETED. Forward goes to the device, backward to the host.
/// Back-pressure is by credits, so no call is ever refused. b_transport and DMI are not used. transport_dbg of the
/// device takes a mem_read or cfg_read, fills its data and returns how many bytes it could read without a side effect.
struct pcie_protocol_types {
  using tlm_payload_type = pcie_payload;
  using tlm_phase_type = ::tlm::tlm_phase;
};

using pcie_fw_if = ::tlm::tlm_fw_transport_if<pcie_protocol_types>;
using pcie_bw_if = ::tlm::tlm_bw_transport_if<pcie_protocol_types>;

/// At the slot (root complex).
using pcie_initiator_socket = ::tlm::tlm_initiator_socket<64, pcie_protocol_types>;
/// At the adapter (endpoint).
using pcie_target_socket = ::tlm::tlm_target_socket<64, pcie_protocol_types>;

}  // namespace rnic::payload
