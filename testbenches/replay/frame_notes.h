// SPDX-License-Identifier: Apache-2.0
// How a capture is read, and what had to be done to its frames.
#pragma once

#include <cstdint>
#include <string>

namespace rnic::replay {

struct reading_options {
  bool ignore_icrc = false;  ///< frames with a wrong ICRC, or a wrong IPv4 header checksum, get right ones
  std::string also;          ///< second capture of the same run, taken elsewhere; empty: none
};

/// Counts are frames.
struct frame_notes {
  std::uint64_t start_ns = 0;        ///< of the first frame, as in the file
  std::string damage;                ///< why the file could not be read to its end, empty: it could
  std::uint64_t outer_tags = 0;      ///< that had more than the adapter's one VLAN tag, or a service tag: taken off
  std::uint64_t cooked = 0, ip = 0;  ///< of link types without Ethernet addresses
  std::uint64_t invented_macs = 0;   ///< of these, with an address that no other frame tells
  std::uint64_t icrc_made_new = 0, checksum_made_new = 0;
  std::uint64_t copies = 0;       ///< the same packet seen again, not sent again
  std::uint64_t readdressed = 0;  ///< seen on another link than most of its kind: got the MAC addresses of that
  std::uint64_t interfaces = 0;   ///< of the file, that frames came from
};

}  // namespace rnic::replay
