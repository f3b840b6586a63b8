// SPDX-License-Identifier: Apache-2.0
// Traffic class and hop limit that an administrator forces on the RC queue pairs of a port: what the vendor's
// distribution has as files, /sys/class/infiniband/DEVICE/tc/PORT/traffic_class and ttl (its manual, "Force DSCP" and
// "Force Time to Live (TTL)").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host_driver/gid_rules.h"

namespace rnic::host_driver {

/// A traffic class is the eight bits of IPv4's ToS and IPv6's traffic class: four times the DSCP.
class forced_path {
 public:
  /// What is written into traffic_class: "96" or "tclass=96" is for all queue pairs, negative: for none any more;
  /// "tclass=16,src_ip=1.1.1.2,dst_ip=1.1.1.0/24" for those with this source or destination or both; -1 takes this
  /// rule away. A mask (/0 to /32) may be at an IPv4 destination. A rule with the addresses of one that is there takes
  /// its place. 0 or a negative errno: EINVAL for what is none of these or a class above 255, ENOENT for a rule to take
  /// away that is not there.
  int write_traffic_class(const std::string& text);
  /// As the file is read: a line for what is for all, and a line for each rule.
  std::string traffic_class_text() const;
  /// For a queue pair from `source` to `destination` (GIDs). What is for all goes before rules, rules with both
  /// addresses before those with one, whatever the order in which they were written. Among several others the manual
  /// has no order; here a longer mask goes first, then a source before a destination.
  std::optional<std::uint8_t> traffic_class(const gid_bytes& source, const gid_bytes& destination) const;

  /// What is written into ttl: 0 to 255; negative: as the queue pairs have it. 0 or -EINVAL.
  int write_ttl(const std::string& text);
  std::string ttl_text() const;
  std::optional<std::uint8_t> ttl() const { return ttl_; }

 private:
  struct rule {
    std::uint8_t traffic_class = 0;
    std::optional<gid_bytes> source, destination;
    unsigned mask_bits = 128;  ///< of the destination, as a GID

    bool same_addresses(const rule& other) const;
    bool covers(const gid_bytes& from, const gid_bytes& to) const;
    bool goes_before(const rule& other) const;
  };
  struct request;
  static bool parse(const std::string& text, request& out);

  std::optional<std::uint8_t> for_all_, ttl_;
  std::vector<rule> rules_;
};

}  // namespace rnic::host_driver
