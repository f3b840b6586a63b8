// SPDX-License-Identifier: Apache-2.0
// DCQCN's notification point: how often a CNP may go.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/sim/types.h"
#include "model/transport/congestion/config.h"
#include "model/wire/packet.h"

namespace rnic::transport {

/// Part of the sender of CNPs: when the last one went, by queue pair, peer or port (notification.scope).
class notification_point {
 public:
  notification_point(const notification_config& c, unsigned log_qps);

  /// Whether a CNP may go now to `peer`, for the queue pair that received a marked packet; counts it as sent.
  bool due(std::uint32_t qpn, const wire::gid& peer, unsigned port, sim::time_ps now);
  /// All queue pairs are gone.
  void clear();

 private:
  /// Time of the last CNP + 1; 0: none yet.
  using moment = sim::time_ps;
  struct peer_entry {
    wire::gid address{};
    moment last = 0;
  };
  static constexpr std::uint32_t page = 256;
  static constexpr unsigned peers = 64;
  moment& of_qp(std::uint32_t qpn);
  moment& of_peer(const wire::gid& address);

  const notification_config config_;
  std::uint32_t mask_;
  std::vector<std::unique_ptr<std::array<moment, page>>> by_qp_;
  std::array<peer_entry, peers> by_peer_{};
  std::array<moment, 2> by_port_{};
};

}  // namespace rnic::transport
