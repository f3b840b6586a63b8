// SPDX-License-Identifier: Apache-2.0
// Plain frames of Ethernet queue pairs: what of them the transmit engine decides.
#pragma once

#include <cstdint>

#include "model/transport/requester/gather.h"
#include "model/transport/requester/packet.h"
#include "model/transport/requester/send_unit.h"

namespace rnic::transport {

/// Syndrome of a WQE whose frames the port would not take: longer than `port_mtu` with tag and FCS, or shorter than a
/// header. 0: none.
std::uint8_t ethernet_fault(const send_unit& u, std::uint32_t port_mtu);
/// BlueFlame posting leaves index and QPN in the control segment, where VLAN tag and its bits are otherwise.
void forget_leftovers(send_unit& u);
/// The frame of a packet up to its payload, and what gather has to do to it.
void begin_ethernet(const send_unit& u, gather_job& job, const packet_place& place, std::uint16_t udp_port);

}  // namespace rnic::transport
