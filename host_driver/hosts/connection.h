// SPDX-License-Identifier: Apache-2.0
// Connected queue pairs between two hosts, as a verbs programmer sets them up.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "host_driver/device.h"

namespace rnic::hosts {

/// Scatter/gather list of a message in contiguous memory. A segment is shorter than 2^31 bytes (its length's top bit
/// has another meaning, adapter data plane A.4), so the longest message of the standard, 2^31, takes two.
struct message_segments {
  static constexpr std::uint32_t longest = 1u << 30;
  static unsigned needed(std::uint32_t bytes) { return bytes > longest ? 2 : 1; }

  message_segments() = default;
  message_segments(std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey) {
    const std::uint32_t first = bytes > longest ? longest : bytes;
    list[0] = {address, first, lkey};
    list[1] = {address + first, bytes - first, lkey};
    count = bytes == 0 ? 0 : bytes > longest ? 2 : 1;
  }
  std::array<ibv_sge, 2> list;
  int count;  ///< of one that was made of a message
};

class node;

/// What both ends of a connection agree on.
struct connection_options {
  ibv_qp_type type = IBV_QPT_RC;  ///< or UC, UD, XRC_SEND, XRC_RECV
  host_driver::roce_types roce = host_driver::roce_types::v2;
  unsigned ip = 4;  ///< 4 or 6
  std::uint16_t vlan = host_driver::no_vlan;
  unsigned priority = 0;
  bool priority_is_given = false;  ///< 0 is meant; else it is the host's for RoCE (DCBX), of frames with a tag
  unsigned mtu = 2048;
  unsigned send_depth = 128;
  unsigned receive_depth = 128;
  unsigned send_sges = 1;
  unsigned receive_sges = 1;
  unsigned inline_bytes = 220;
  unsigned inline_receive = 0;  ///< messages up to so many bytes stay in their receive request; 0: none do
  int access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;  ///< what the peer may do
  unsigned ack_timeout = 14;                                                                 ///< 4.096 us * 2^n
  unsigned retries = 7;
  unsigned rnr_retries = 7;
  unsigned rnr_timer = 12;  ///< 0.64 ms
  unsigned rd_atomic = 16;
  bool kernel = false;                        ///< queue pairs take what only kernel verbs post
  ibv_rate static_rate = IBV_RATE_MAX;        ///< of the address path; MAX: the port's
  std::uint8_t traffic_class = 0;             ///< of the address path
  std::optional<std::uint32_t> flow_entropy;  ///< of bonded devices: which port; else they take turns
};

/// One host's end: device, its addresses, and one protection domain.
struct endpoint {
  host_driver::device* device = nullptr;
  host_driver::bus_if* bus = nullptr;
  unsigned port = 1;
  host_driver::protection_domain* pd = nullptr;
  host_driver::xrc_domain* xrcd = nullptr;  ///< see domain_of()
  int gid_index = -1;
  host_driver::gid_bytes gid{};
  host_driver::mac_address mac{};
  node* of = nullptr;         ///< the host; nullptr: one without agents
  endpoint* other = nullptr;  ///< of the same host, at its other port, where both have a cable
};

/// Gives the device's port the address 10.0.0.`host` or fd00::`host`, port 2 10.1.0.`host` or fd00::1:`host`, the
/// same to the other port if it has one, and allocates a protection domain, one for both. Throws std::runtime_error
/// that names the step that failed.
void set_address(endpoint& e, const connection_options& options, unsigned host);

/// The end of the `nth` of equal things that take turns at the host's ports.
inline endpoint& in_turn(endpoint& e, std::size_t nth) { return e.other != nullptr && nth % 2 == 1 ? *e.other : e; }

/// The endpoint's XRC domain, opened at its first use.
host_driver::xrc_domain* domain_of(endpoint& e);

/// The priority of a connection's frames: as given, or what the host's agent of data centre bridging has found for RoCE
/// when it is asked (dcb::service::roce_priority), else 0. Frames without a tag have none.
unsigned priority_of(const endpoint& e, const connection_options& options);

/// The way from one endpoint to another.
ibv_ah_attr path_of(const endpoint& e, const connection_options& options, const endpoint& peer);

/// Q_Key of datagram queue pairs.
inline constexpr std::uint32_t datagram_qkey = 0x11111111;

/// Creates a queue pair, XRC ones that receive in domain_of(); `inline_receive`: messages up to so many bytes stay in
/// their receive request, 0: none do.
host_driver::queue_pair* create_qp(const endpoint& e, const ibv_qp_init_attr& attr, unsigned inline_receive = 0);

/// Creates a queue pair on `e` for the given completion queues, with receives of its own or of a shared queue.
host_driver::queue_pair* make_qp(endpoint& e, const connection_options& options, ibv_cq& send_cq, ibv_cq& receive_cq,
                                 ibv_srq* shared = nullptr);

/// RTR, RTS towards the peer's queue pair.
void connect(endpoint& e, const connection_options& options, host_driver::queue_pair& qp, const endpoint& peer,
             std::uint32_t peer_qpn, std::uint32_t own_psn, std::uint32_t peer_psn);

/// A registered buffer.
struct buffer {
  host_driver::bus_if::dma_memory memory;
  host_driver::memory_region* region = nullptr;
  std::uint64_t address(std::uint64_t offset = 0) const { return region->iova + offset; }
  std::uint8_t* at(std::uint64_t offset = 0) const { return memory.pointer + offset; }
};
buffer make_buffer(const endpoint& e, std::size_t bytes);

inline constexpr std::uint32_t atomic_bytes = 8;
/// Makes `wr` an atomic that moves a remote counter from `found` to the next number.
void make_atomic(ibv_send_wr& wr, bool compare_swap, std::uint64_t address, std::uint32_t rkey, std::uint64_t found);

/// Throws with `what` and the error's text when `result` is negative.
void require(int result, const std::string& what);
/// Throws with `what` and errno's text; sim::config_error that names driver.memlock when the programs of this device
/// have no more memory to pin.
[[noreturn]] void not_made(const host_driver::device& device, const std::string& what);
template <class T>
T* require_made(const host_driver::device& device, T* object, const std::string& what) {
  if (object == nullptr) not_made(device, what);
  return object;
}

ibv_mtu to_ibv_mtu(unsigned bytes);

/// "success", "retry_exceeded", "rnr_retry_exceeded", "remote_access", ...: as fault plans name completions.
const char* to_string(ibv_wc_status status);

/// A message ended in an error completion: not the program's fault, but that of the network or of the peer.
class message_failed : public std::runtime_error {
 public:
  explicit message_failed(const ibv_wc& wc);
  explicit message_failed(const std::string& what) : std::runtime_error(what) {}
};

/// What came is not what was sent, though every check on the way had passed.
class content_differs : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rnic::hosts
