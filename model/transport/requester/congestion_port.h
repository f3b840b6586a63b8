// SPDX-License-Identifier: Apache-2.0
// Congestion as the completer sees it: notifications for queue pairs of ours, and marks on responses.
#pragma once

#include <cstdint>

#include "model/icm/contexts.h"
#include "model/payload/frame.h"
#include "model/sim/fifo.h"
#include "model/sim/statistics.h"
#include "model/transport/congestion/marked_packets.h"
#include "model/transport/congestion/notice.h"
#include "model/transport/congestion/rate_limiter.h"
#include "model/transport/requester/config.h"
#include "model/transport/requester/context_memory.h"
#include "model/transport/requester/settings.h"
#include "model/transport/requester/tables.h"

namespace rnic::transport {

/// Part of the completer. A CNP moves the reaction point of the queue pair (rate_limiter) in the cycle in which it is
/// taken, and goes on to the READ generator, which has one of its own. A marked response makes a CNP (marked_packets).
class congestion_port {
 public:
  using context = icm::requester_context;
  congestion_port(const requester_config& config, const port_map& ports, qp_table& qps, context_memory& contexts,
                  payload::frame_pool& frames, rate_limiter& limiter, const sim::fifo_out<rate_notice>& notice,
                  const sim::fifo_out<congestion_notice>& cnp)
      : config_(config.congestion),
        ports_(ports),
        qps_(qps),
        contexts_(contexts),
        limiter_(limiter),
        notice_(notice),
        marked_(config.congestion.notification, frames, cnp) {}
  void announce(const std::string& name, sim::statistics& to) const;

  /// A CNP. False: the context is not there yet.
  bool handle_cnp(const payload::frame& f);
  /// A response for the queue pair, which may have the mark of congestion.
  void note(const context& c, const payload::frame& f) {
    if (marked_.answers(f)) marked_.tell(c.qpn, f.packet, f.port, f.gid_index, c.remote_qpn);
  }

 private:
  const congestion_config& config_;
  const port_map& ports_;
  qp_table& qps_;
  context_memory& contexts_;
  rate_limiter& limiter_;
  const sim::fifo_out<rate_notice>& notice_;
  marked_packets marked_;
  std::uint64_t handled_ = 0, ignored_ = 0;
};

}  // namespace rnic::transport
