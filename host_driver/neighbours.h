// SPDX-License-Identifier: Apache-2.0
// The little of a network stack that a RoCE host cannot do without: ARP, IPv6 neighbour discovery and echo, for its own
// addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "host_driver/gid_rules.h"

namespace rnic::host_driver {

/// Takes frames to be sent (from the DMAC, without FCS).
class frame_output_if {
 public:
  virtual ~frame_output_if() = default;
  virtual void transmit(const std::uint8_t* frame, std::size_t length) = 0;
};

/// Answers for the addresses of one port, and finds out the MAC addresses of others. Echo requests are answered that
/// are for an address, or for an IPv6 group that it has without joining one (ff02::1, solicited-node); those for a
/// broadcast address or a group of IPv4 are not (sysctl net.ipv4.icmp_echo_ignore_broadcasts). It has no time of its
/// own: who calls solicit() waits and asks again. Everything that comes in is taken as hostile: what is cut short, has
/// a wrong checksum or length, or is not for one of the addresses is counted and dropped.
class neighbours {
 public:
  static constexpr std::uint16_t untagged = 0xffff;
  /// Entries of the table; when it is full nobody new is learnt. 1024: gc_thresh3 of Linux.
  static constexpr std::size_t max_entries = 1024;

  struct counters {
    std::uint64_t arp_requests = 0, arp_replies = 0;      ///< received, for us
    std::uint64_t solicitations = 0, advertisements = 0;  ///< received, for us
    std::uint64_t echo_requests = 0, echo6_requests = 0;  ///< received and answered
    std::uint64_t asked = 0;                              ///< requests and solicitations sent
    std::uint64_t malformed = 0;                          ///< cut short, wrong checksum, impossible contents
    std::uint64_t not_for_us = 0;                         ///< other address or VLAN
    std::uint64_t unknown = 0;                            ///< a protocol that is not spoken here
    std::uint64_t table_full = 0;
  };

  neighbours(const mac_address& own, frame_output_if& out) : own_(own), out_(out) {}

  /// An address of this port (`::ffff:a.b.c.d` for IPv4) in a VLAN or in none.
  void add_address(const gid_bytes& address, std::uint16_t vlan = untagged);
  /// A frame that is not RoCE, from the DMAC to before the FCS.
  void receive(const std::uint8_t* frame, std::size_t length);
  /// Asks the link who has `target`: ARP (RFC 826) or a neighbour solicitation (RFC 4861 4.3), from `source`.
  void solicit(const gid_bytes& target, const gid_bytes& source, std::uint16_t vlan = untagged);
  /// What was learnt from requests to us and answers to us.
  std::optional<mac_address> find(const gid_bytes& address) const;
  const counters& count() const { return counters_; }

 private:
  struct own_address {
    gid_bytes id{};
    std::uint16_t vlan = untagged;
  };
  /// A received frame without its link header.
  struct packet {
    mac_address from{};
    std::uint16_t vlan = untagged;
    std::uint8_t priority = 0;
    const std::uint8_t* data = nullptr;
    std::size_t length = 0;
  };
  bool ours(const gid_bytes& address, std::uint16_t vlan) const;
  std::optional<gid_bytes> answers_for(const gid_bytes& group, const gid_bytes& asker, std::uint16_t vlan) const;
  void receive_arp(const packet& p);
  void receive_ipv4(const packet& p);
  void receive_ipv6(const packet& p);
  void receive_solicitation(const packet& p, const gid_bytes& from, const std::uint8_t* icmp, std::size_t length);
  void receive_advertisement(const packet& p, const gid_bytes& to, const std::uint8_t* icmp, std::size_t length);
  void answer_echo6(const packet& p, const gid_bytes& from, const gid_bytes& to, const std::uint8_t* icmp,
                    std::size_t length);
  void learn(const gid_bytes& address, const mac_address& mac);
  void send(const mac_address& to, std::uint16_t vlan, std::uint8_t priority, std::uint16_t type,
            const std::vector<std::uint8_t>& body);
  void send_icmp6(const packet& link, const gid_bytes& from, const gid_bytes& to, std::uint8_t hops,
                  std::vector<std::uint8_t> icmp);

  mac_address own_;
  frame_output_if& out_;
  std::vector<own_address> addresses_;
  std::map<gid_bytes, mac_address> table_;
  counters counters_;
};

}  // namespace rnic::host_driver
