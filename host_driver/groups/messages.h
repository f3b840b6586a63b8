// SPDX-License-Identifier: Apache-2.0
// The bytes of IGMP and MLD as a host sends and receives them (RFC 2236, 3376, 2710, 3810; net/ipv4/igmp.c,
// net/ipv6/mcast.c).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "host_driver/gid_rules.h"

namespace rnic::host_driver::groups {

/// Kinds of group records (RFC 3376, 4.2.12), those that a host has which takes what any source sends.
enum class record_kind : std::uint8_t { is_exclude = 2, to_include = 3, to_exclude = 4 };

struct record {
  record_kind kind = record_kind::is_exclude;
  gid_bytes group{};  ///< ::ffff:a.b.c.d for IPv4
};

/// What a message of a version without records says of a group.
enum class old_message : std::uint8_t { report, leave };

/// Where a message goes from: VLAN and addresses of the interface.
struct interface_addresses {
  mac_address mac{};
  std::optional<std::uint16_t> vlan;
  gid_bytes ipv4{};        ///< source of IGMP; all zero: 0.0.0.0
  gid_bytes link_local{};  ///< source of MLD
};

// Frames from the DMAC to before the FCS.
/// IGMPv3 or MLDv2 report; all records are of one family, and at least one. Several frames where one has no room.
std::vector<std::vector<std::uint8_t>> build_report(const interface_addresses& from,
                                                    const std::vector<record>& records);
/// IGMPv2 or MLDv1.
std::vector<std::uint8_t> build_old(const interface_addresses& from, old_message what, const gid_bytes& group);

/// A query, or another host's report of an older version.
struct heard {
  bool mld = false;                     ///< else IGMP
  std::optional<std::uint16_t> vlan;    ///< none: untagged
  bool report = false;                  ///< of `group`; else a query
  bool old = false;                     ///< query of IGMPv2 or MLDv1
  std::optional<gid_bytes> group;       ///< of a query: nothing: about all
  std::uint64_t max_response_ps = 0;    ///< within which an answer is expected
  unsigned robustness = 0;              ///< of a new query; 0: not told
  std::uint64_t query_interval_ps = 0;  ///< of a new query; 0: not told
};
/// Nothing for other frames, and for those that a host drops: cut short, a wrong checksum, MLD from beyond the link.
std::optional<heard> parse(const std::uint8_t* frame, std::size_t length);

}  // namespace rnic::host_driver::groups
