// SPDX-License-Identifier: Apache-2.0
// Packets that came with the mark of congestion, as a half of the transport sees them.
#pragma once

#include <cstdint>
#include <string>

#include "model/payload/frame.h"
#include "model/sim/fifo.h"
#include "model/sim/statistics.h"
#include "model/transport/congestion/config.h"
#include "model/transport/congestion/ecn.h"
#include "model/transport/congestion/notice.h"

namespace rnic::transport {

/// Part of requester and responder (adapter data plane C.9): makes the CNP that answers a marked packet and gives it
/// to the sender of CNPs, one a cycle. One for which the channel has no room is lost and counted; the queue pair's next
/// marked packet makes another. What has been marked is asked of every received packet, so that it is one comparison.
/// Counters: np_ecn_marked_roce_packets, np_cnp_lost.
class marked_packets {
 public:
  /// `out` may stay unbound: then all CNPs are lost.
  marked_packets(const notification_config& config, payload::frame_pool& frames,
                 const sim::fifo_out<congestion_notice>& out)
      : config_(sim::checked(config, "congestion.notification")), frames_(frames), out_(out) {}
  void announce(const std::string& name, sim::statistics& to) const;

  /// Whether the frame is to be told of: marked, RoCE v2, not to a group, no CNP, and its priority is enabled.
  bool answers(const payload::frame& f) const { return ecn_marked(f.packet.traffic_class) && may_answer(f); }
  /// The queue pair has taken such a packet, of `port` and GID `gid_index`, from its sender's queue pair `remote_qpn`.
  void tell(std::uint32_t qpn, const wire::packet& received, std::uint8_t port, std::uint16_t gid_index,
            std::uint32_t remote_qpn);

 private:
  bool may_answer(const payload::frame& f) const;
  void build(payload::frame& out, const wire::packet& received, std::uint8_t port, std::uint16_t gid_index,
             std::uint32_t remote_qpn) const;

  const notification_config& config_;
  payload::frame_pool& frames_;
  const sim::fifo_out<congestion_notice>& out_;
  std::uint64_t marked_ = 0, lost_ = 0;
};

}  // namespace rnic::transport
