// SPDX-License-Identifier: Apache-2.0
// The datagrams of rdma-core's rsockets (librdmacm/rsocket.c, SOCK_DGRAM): UD messages with the sender's address in
// front. Where the peer's queue pair is, it tells in UDP datagrams to the same address and port, which carry the
// messages until that is known.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "testbenches/serve/cm/rdma_connection.h"
#include "testbenches/serve/host/application.h"
#include "testbenches/serve/host/udp.h"

namespace rnic::serve {

struct rsocket_counters {
  std::uint64_t over_udp = 0;   ///< messages that came in UDP datagrams
  std::uint64_t malformed = 0;  ///< UDP datagrams and UD messages that make no sense, dropped
  std::uint64_t no_room = 0;    ///< messages beyond what is kept, dropped
  std::uint64_t forgotten = 0;  ///< peers: those unheard of for longest, when there are too many
  std::uint64_t unknown = 0;    ///< messages to peers that nobody has heard of, not sent
};

/// One socket. In an SC_THREAD. Whatever comes it goes on; what goes wrong with our own sends is a peer_failure.
class rsocket_datagrams {
 public:
  /// Longest message with its address in front, of either kind.
  static constexpr std::uint32_t slot_bytes = 2048, most_over_ipv4 = slot_bytes - 8, most_over_ipv6 = slot_bytes - 24;
  struct message {
    udp_end from;
    std::vector<std::uint8_t> data;
  };

  /// Bound to the address of the route's row. `port` 0: a free one.
  rsocket_datagrams(served_host& host, const rdma_route& route, std::uint16_t port);
  ~rsocket_datagrams();
  rsocket_datagrams(const rsocket_datagrams&) = delete;
  rsocket_datagrams& operator=(const rsocket_datagrams&) = delete;

  /// Finds the neighbour, so that send() knows it; peer_failure when there is nobody, or its address is of another
  /// kind.
  void connect(const udp_end& to);
  /// Up to slot_bytes with the header, to a peer of connect(), or one that was heard of; false for others. Waits
  /// for room.
  bool send(const udp_end& to, const std::vector<std::uint8_t>& data);
  /// The next message, or nothing after `timeout_ps`.
  std::optional<message> receive(std::uint64_t timeout_ps);
  const udp_end& own() const { return udp_.own(); }
  const rsocket_counters& count() const { return count_; }

 private:
  static constexpr unsigned depth = 256;  // of both queues: what udpong's buffers of 512 KiB make
  static constexpr std::uint32_t receive_bytes = grh_bytes + 4096;
  static constexpr std::size_t most_peers = 1024, most_messages = depth;
  struct peer {
    host_driver::mac_address mac{};
    host_driver::address_handle* ah = nullptr;  // none: its queue pair is not known
    std::uint32_t qpn = 0;
    std::uint64_t heard = 0;  // when, in messages
  };

  void make_queue_pair();
  void wake();
  void post_one(unsigned slot);
  peer& find(const udp_end& who, const host_driver::mac_address& mac);
  void forget_one();
  void point(peer& p, const host_driver::gid_bytes& address, const host_driver::mac_address& mac, std::uint32_t qpn);
  void tell(const udp_end& to, const peer& p, std::uint8_t op, const std::vector<std::uint8_t>& data);
  void take(const udp_datagram& d);
  void take(const ibv_wc& wc);
  void keep(message&& m);
  void look(std::uint64_t timeout_ps);

  served_host& host_;
  host_driver::device& device_;
  rdma_route route_;
  verbs_objects objects_;
  host_driver::completion_queue* cq_ = nullptr;
  host_driver::queue_pair* qp_ = nullptr;
  app_buffer out_, in_;
  std::vector<unsigned> free_;  // slots of out_
  std::map<udp_end, peer> peers_;
  std::uint64_t heard_ = 0;
  std::deque<message> messages_;
  rsocket_counters count_;
  udp_socket udp_;
};

}  // namespace rnic::serve
