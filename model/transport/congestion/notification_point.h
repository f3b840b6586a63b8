// SPDX-License-Identifier: Apache-2.0
// DCQCN's notification point: which marked packets are answered with a CNP, and the CNP.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/payload/frame.h"
#include "model/transport/congestion/config.h"
#include "model/transport/congestion/ecn.h"

namespace rnic::transport {

/// Part of the transport. What has been marked is asked of every received packet, so that it is one comparison.
class notification_point {
 public:
  notification_point(const notification_config& c, unsigned log_qps);

  static bool marked(const wire::packet& p) { return ecn_marked(p.traffic_class); }
  /// Whether a marked frame is to be told of: RoCE v2, not to a group, not a CNP, and its priority is enabled.
  bool answers(const payload::frame& f) const { return answers(f.packet, f.priority); }
  bool answers(const wire::packet& p, std::uint8_t priority) const;
  /// Whether a CNP may go now to the sender of the packet, for the queue pair that received it; counts it as sent.
  bool due(std::uint32_t qpn, const wire::gid& peer, unsigned port, sim::time_ps now);
  /// Makes `out` the CNP to the packet's sender, for its queue pair `remote_qpn` (adapter data plane C.9).
  void build(payload::frame& out, const wire::packet& received, std::uint8_t port, std::uint16_t gid_index,
             std::uint32_t remote_qpn) const;
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

  const notification_config& config_;
  std::uint32_t mask_;
  std::vector<std::unique_ptr<std::array<moment, page>>> by_qp_;
  std::array<peer_entry, peers> by_peer_{};
  std::array<moment, 2> by_port_{};
};

}  // namespace rnic::transport
