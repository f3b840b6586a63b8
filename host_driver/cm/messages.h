// SPDX-License-Identifier: Apache-2.0
// Messages of the communication manager: management datagrams of class 7 (IBA volume 1, chapter 12; adapter data plane
// part D).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "host_driver/gid_rules.h"

namespace rnic::host_driver::cm {

inline constexpr std::size_t mad_length = 256;
using mad = std::array<std::uint8_t, mad_length>;

/// Attribute numbers.
enum class message : std::uint16_t {
  req = 0x10,
  mra = 0x11,
  rej = 0x12,
  rep = 0x13,
  rtu = 0x14,
  dreq = 0x15,
  drep = 0x16,
  sidr_req = 0x17,
  sidr_rep = 0x18,
  lap = 0x19,
  apr = 0x1a
};

/// Reasons of a REJ (IBA volume 1, table 107).
enum class reason : std::uint16_t {
  none = 0,
  no_qp = 1,
  no_resources = 3,
  timeout = 4,
  unsupported = 5,
  invalid_id = 6,
  invalid_service = 8,
  invalid_transport = 9,
  stale = 10,
  invalid_gid = 12,
  consumer = 28
};

/// What an APR says of an alternate path (IBA volume 1, 12.6.13).
enum class path_answer : std::uint8_t { loaded = 0, invalid_id = 1, unsupported = 2, rejected = 3, wrong_qpn = 6 };

/// What a REP says of the alternate path of a REQ.
enum class failover : std::uint8_t { accepted = 0, unsupported = 1, rejected = 2 };

/// Which message a REJ or MRA is about.
enum class about : std::uint8_t { req = 0, rep = 1, other = 2 };

/// Most private data of any message; each kind takes as much of it as it has room for.
inline constexpr std::size_t most_private = 224;
using private_area = std::array<std::uint8_t, most_private>;
/// Bytes of private data in a message of this kind.
std::size_t private_bytes(message kind);

/// Where a connection goes, as the requester sees it.
struct path_record {
  gid_bytes local{}, remote{};
  std::uint32_t flow_label = 0;
  std::uint8_t traffic_class = 0, hop_limit = 64, service_level = 0, rate = 0;
  std::uint8_t ack_timeout = 0;  ///< 4.096 us * 2^n: for the queue pair of the peer
  /// In messages no path has two zero GIDs.
  bool exists() const { return local != gid_bytes{} || remote != gid_bytes{}; }
};

/// What REQ and REP say of a queue pair and its connection. Not every field is in both.
struct connection_data {
  std::uint64_t service_id = 0, ca_guid = 0;
  std::uint32_t qpn = 0, qkey = 0;
  std::uint32_t psn = 0;  ///< with which the other side begins to send
  std::uint8_t responder_resources = 0, initiator_depth = 0;
  std::uint8_t transport = 0;           ///< REQ: 0 RC, 1 UC, 3 extended
  std::uint8_t extended_transport = 0;  ///< REQ, extended: 1 XRC (Annex A14)
  std::uint32_t ee_context = 0;         ///< REP of an XRC connection: its queue pair's number, in place of `qpn`
  std::uint8_t remote_cm_timeout = 0, local_cm_timeout = 0, max_cm_retries = 0;
  std::uint8_t retry_count = 0, rnr_retry_count = 0;
  std::uint8_t mtu_code = 0;          ///< path MTU, 1 to 5
  std::uint8_t target_ack_delay = 0;  ///< REP
  bool flow_control = false, shared_receive_queue = false;
  std::uint16_t pkey = 0xffff;
  failover alternate_taken = failover::accepted;  ///< REP
  path_record path, alternate;                    ///< REQ
  bool is_xrc() const { return transport == 3 && extended_transport == 1; }
  void set_xrc() {
    transport = 3;
    extended_transport = 1;
  }
};

/// SIDR: a service's queue pair for datagrams.
struct service_data {
  std::uint64_t service_id = 0;
  std::uint16_t pkey = 0xffff;
  std::uint8_t status = 0;  ///< of the reply; 0: valid
  std::uint32_t qpn = 0, qkey = 0;
};

/// One message taken apart. `local_id` and `remote_id` are as the sender names them; a SIDR request's number is
/// `local_id`, that of its reply `remote_id`.
struct contents {
  message kind = message::req;
  std::uint64_t transaction = 0;
  std::uint32_t local_id = 0, remote_id = 0;
  connection_data connection;
  service_data service;
  about subject = about::req;                     ///< MRA, REJ
  std::uint8_t service_timeout = 0;               ///< MRA
  reason why = reason::none;                      ///< REJ
  std::uint32_t remote_qpn = 0;                   ///< DREQ, LAP
  path_record alternate;                          ///< LAP
  std::uint8_t response_timeout = 0;              ///< LAP: 4.096 us * 2^n for the answer
  path_answer path_status = path_answer::loaded;  ///< APR
  private_area private_data{};
};

/// The datagram, with all reserved fields zero.
mad encode(const contents& c);

/// Nothing when it is not a communication management message of version 2 that this side knows.
std::optional<contents> decode(const std::uint8_t* datagram, std::size_t length);

/// The header that the IP addressing of connections puts in front of private data (Annex A11): 36 bytes.
struct ip_header {
  static constexpr std::size_t bytes = 36;
  std::uint16_t source_port = 0;
  gid_bytes source{}, destination{};  ///< ::ffff:a.b.c.d for IPv4
};
void put_ip_header(const ip_header& h, std::uint8_t* to);
/// Nothing when it is not version 0 of the header or the addresses' kind is none.
std::optional<ip_header> get_ip_header(const std::uint8_t* from);

/// Service IDs of ports: the kernel's rdma_cm port spaces.
enum class port_space : std::uint16_t { tcp = 0x0106, udp = 0x0111, ib = 0x013f };
constexpr std::uint64_t service_id(port_space space, std::uint16_t port) {
  return std::uint64_t{static_cast<std::uint16_t>(space)} << 16 | port;
}

/// 4.096 us * 2^code, as times to an answer are told; five bits.
inline std::uint64_t timeout_ps(std::uint8_t code) {
  constexpr std::uint64_t unit_ps = 4'096'000;
  constexpr std::uint8_t longest = 31;
  return unit_ps << (code < longest ? code : longest);
}

}  // namespace rnic::host_driver::cm
