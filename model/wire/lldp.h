// SPDX-License-Identifier: Apache-2.0
// Data units of the Link Layer Discovery Protocol (IEEE 802.1AB-2016, clause 8), values to bytes and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/wire/dcbx.h"
#include "model/wire/packet.h"

namespace rnic::wire {

/// Destination of the nearest bridge: no bridge forwards it (IEEE 802.1AB table 7-1).
inline constexpr mac_address lldp_nearest_bridge{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e};
inline constexpr std::uint16_t lldp_ethertype = 0x88cc;

/// Chassis ID or Port ID: who sends (802.1AB 8.5.2, 8.5.3).
struct lldp_id {
  static constexpr std::uint8_t chassis_mac = 4, port_mac = 3;  ///< subtypes whose value is a MAC address
  std::uint8_t subtype = 0;
  std::vector<std::uint8_t> value;  ///< 1 to 255 bytes

  bool operator==(const lldp_id& o) const { return subtype == o.subtype && value == o.value; }
};

/// A data unit as software has it. What is not there is empty or nullopt.
struct lldp_unit {
  static constexpr std::uint16_t station_only = 1u << 7;  ///< of `capabilities` (802.1AB table 8-4)

  lldp_id chassis, port;
  std::uint16_t ttl_s = 0;  ///< for how long the receiver keeps it; 0: the sender goes
  std::string port_description, system_name, system_description;
  std::optional<std::uint16_t> capabilities;   ///< those in use are the same
  std::optional<std::uint16_t> largest_frame;  ///< IEEE 802.3 maximum frame size TLV, with FCS (802.3 79.3.4)
  dcbx_values dcbx;
};

/// What was wrong with a data unit, as its receiver counts it (802.1AB 9.2.6).
struct lldp_faults {
  unsigned tlvs_discarded = 0;     ///< cut short, too long, impossible contents, or there was one before
  unsigned tlvs_unrecognized = 0;  ///< of another organisation, or reserved
};

/// Reads what stands behind the EtherType. Nothing for a unit that is to be discarded (802.1AB 9.2.7): one that does
/// not begin with Chassis ID, Port ID and Time To Live in this order and each once, or in which a TLV reaches beyond
/// the end. Other bad TLVs are left out and counted.
std::optional<lldp_unit> decode_lldp(const std::uint8_t* body, std::size_t length, lldp_faults& faults);

/// What stands behind the EtherType, with the end TLV. Of a unit with a time to live of 0 the three that it must have.
std::vector<std::uint8_t> encode_lldp(const lldp_unit& unit);

}  // namespace rnic::wire
