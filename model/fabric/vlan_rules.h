// SPDX-License-Identifier: Apache-2.0
// VLANs of a switch's ports (IEEE 802.1Q, 8.6): to which one a frame belongs, where it may go, and its tag there.
#pragma once

#include <cstdint>
#include <optional>

#include "model/fabric/switch_config.h"
#include "model/payload/frame.h"

namespace rnic::fabric {

/// The VLAN of a frame that comes in at the port; nothing: it is dropped. All that transparent ports take belongs to 0.
std::optional<std::uint16_t> vlan_of(const vlan_port& port, const payload::frame& f);
/// The VLAN of a frame where it goes out: the one above, or, of what came in by a transparent port, that of its tag (0
/// without).
std::uint16_t vlan_behind(std::uint16_t vlan, const payload::frame& f);
/// Whether the port is one of the VLAN's.
bool is_member(const vlan_port& port, std::uint16_t vlan);
/// Gives the frame the tag that it has behind the port, or takes it away; a right FCS stays right. `priority` is the
/// PCP of a tag that is new.
void set_tag(const vlan_port& port, payload::frame& f, std::uint16_t vlan, unsigned priority);

}  // namespace rnic::fabric
