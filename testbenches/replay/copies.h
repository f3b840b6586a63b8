// SPDX-License-Identifier: Apache-2.0
// Packets that a capture shows more than once although they were sent once.
#pragma once

#include <vector>

#include "testbenches/replay/link_addresses.h"
#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Takes the copies that mirror ports and several capture points make out of the replay, and counts them as rejected.
///
/// A copy is the same packet from its GIDs to its ICRC (which covers the IPv4 identification), seen
///  - another way (MAC addresses, VLAN ID, hop limit, DSCP, interface, direction of a cooked frame) within 10 ms:
///  nobody
///    repeats a packet differently; or
///  - just so within 8 us, less than the shortest ACK timeout (4.096 us * 2), and few frames, with nothing in between
///    that makes a host repeat: no NAK of its PSN or one before to a request, no request of its PSN or one before to an
///    answer.
/// All else is a retransmission. Of the sightings of a packet the one on the link (pair of MAC addresses) that shows
/// most of these two hosts' packets stays, so that times are those of one place; packets that were seen on another link
/// alone get the addresses of that one.
void drop_copies(plan& p, const std::vector<frame_origin>& origins);

}  // namespace rnic::replay
