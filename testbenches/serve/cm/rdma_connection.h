// SPDX-License-Identifier: Apache-2.0
// Connections as rdma_cm makes them: by IP address and port, with the queue pair brought along.
#pragma once

#include <cstdint>
#include <optional>

#include "testbenches/serve/cm/cm_service.h"

namespace rnic::serve {

/// What the application of a host is told of the network.
struct rdma_route {
  int gid_index = 0;
  unsigned service_level = 0;
  std::uint8_t traffic_class = 0;  ///< the ToS, which a service level may follow from (cm/cma.h)
  unsigned mtu = 1024;             ///< path MTU in bytes that a client asks for
  std::uint64_t seed = 1;
  std::uint64_t patience_ps = 30 * sim::ps_per_s;  ///< for any one step of the peer
};

/// A reliable connection and its queue pair, of RC or one half of XRC. In an SC_THREAD; what goes wrong with the peer
/// is a peer_failure.
class rdma_connection final : private connection_end_if {
 public:
  rdma_connection(served_host& host, cm_service& service, const rdma_route& route)
      : host_(host), service_(service), route_(route) {
    service_.enter(*this);
  }
  /// Tells the peer when it is still there.
  ~rdma_connection();
  rdma_connection(const rdma_connection&) = delete;
  rdma_connection& operator=(const rdma_connection&) = delete;

  /// Takes a queue pair in RESET to INIT: receives can be posted now.
  void prepare(host_driver::queue_pair* qp);
  /// What the peer is told with the connection, up to 56 bytes; before begin_connect() or begin_accept().
  void set_private(const std::uint8_t* data, std::size_t bytes);
  /// What it has told: 56 bytes at least.
  const std::uint8_t* peer_private() const { return peer_private_.data(); }
  /// As client: to a service at an address. Returns when both sides can send.
  void connect(const host_driver::gid_bytes& to, std::uint16_t port, unsigned reads = 1);
  /// The same, again and again as long as nobody listens there; a peer_failure when that takes `at_most_ps`.
  void connect_patiently(const host_driver::gid_bytes& to, std::uint16_t port, unsigned reads,
                         std::uint64_t at_most_ps);
  /// As server: answers a REQ. Returns when the client has confirmed.
  void accept(const cm_service::event& request, unsigned reads = 1);
  /// Releases the connection from this side.
  void disconnect() {
    begin_disconnect();
    finish_disconnect();
  }
  // The same in two steps each: what is said to the peer, and its answer. finish_connect() is false when nobody
  // listens, or the server has to forget an earlier connection first; begin_accept() when the client gave up meanwhile.
  void begin_connect(const host_driver::gid_bytes& to, std::uint16_t port, unsigned reads = 1);
  bool finish_connect();
  /// What made finish_connect() false.
  peer_failure refusal() const { return refusal(why_not_); }
  bool begin_accept(const cm_service::event& request, unsigned reads = 1);
  void finish_accept();
  /// What has become of begin_accept(), without waiting for the client.
  enum class progress : std::uint8_t { waits, confirmed, gone };
  progress look();
  bool is_confirmed() const { return confirmed_; }
  /// The client has taken too long to confirm, and is told.
  void give_up();
  void begin_disconnect();
  void finish_disconnect();
  /// Whether the peer has released it; then it is released on this side too.
  bool released();
  /// Waits until the peer releases it.
  void wait_released();
  /// The next completion, or nothing when the peer has released the connection before there was one.
  std::optional<ibv_wc> next(host_driver::completion_queue* cq);

  host_driver::queue_pair* qp() const { return qp_; }
  const host_driver::gid_bytes& peer_gid() const { return peer_.gid; }

 private:
  void to_receive(const host_driver::cm::address& peer, const host_driver::cm::connection_data& theirs,
                  const host_driver::cm::connection_data& both, unsigned reads);
  void to_send();
  bool try_to_send();
  bool over_xrc() const { return qp_->qp_type == IBV_QPT_XRC_SEND; }
  peer_failure refusal(host_driver::cm::reason why) const;
  [[noreturn]] void refused(const cm_service::event& e) const;
  bool may_try_again() const;
  void stop() override;

  served_host& host_;
  cm_service& service_;
  rdma_route route_;
  host_driver::queue_pair* qp_ = nullptr;
  cm_service::connection_id id_ = 0;
  host_driver::cm::address peer_;
  host_driver::cm::connection_data asked_;  // by us
  host_driver::cm::private_area private_{}, peer_private_{};
  std::uint32_t psn_ = 0;
  ibv_qp_attr sender_{};  // for the transition to RTS
  host_driver::cm::reason why_not_{};
  bool up_ = false, confirmed_ = false, releasing_ = false;
};

/// Private data with the addresses in front.
host_driver::cm::private_area addressed_private(const host_driver::gid_bytes& own, const host_driver::gid_bytes& to,
                                                std::uint16_t source_port);

/// The CM's address of a neighbour, found on the network; peer_failure when there is nobody.
host_driver::cm::address find_peer(served_host& host, const host_driver::gid_bytes& to, const rdma_route& route);

}  // namespace rnic::serve
