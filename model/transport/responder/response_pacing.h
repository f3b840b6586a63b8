// SPDX-License-Identifier: Apache-2.0
// Rates of READ responses by queue pair, and which queue pairs wait until they are due.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/register_bus/cr_space.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/transport/congestion/rate_limiter.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the READ generator. A queue pair that is ahead of its rate waits here instead of in a line, `flows` places
/// with a comparator each, and comes back when it is due, one a cycle.
/// CNMs (802.1Qau) move the rates in the cycle in which they are seen, one a cycle; firmware sets how (qcn_cr.h).
class response_pacing : public register_bus::cr_target_if {
 public:
  response_pacing(sim::clocked_block& owner, const responder_config& cfg)
      : cnm_in(owner), owner_(owner), limiter_(cfg.congestion, owner.domain(), log_qps) {
    waiting_.reserve(cfg.flows);
  }

  sim::fifo_in<cnm_notice> cnm_in;  ///< from the receiver of CNMs. May stay unbound
  std::uint32_t cr_read(std::uint32_t offset) override { return limiter_.qcn().read(offset, owner_.now_ps()); }
  void cr_write(std::uint32_t offset, std::uint32_t value) override {
    limiter_.qcn().write(offset, value, owner_.now_ps());
  }

  rate_limiter& limits() { return limiter_; }
  void take_notice() {
    if (cnm_in.can_pop()) limiter_.notified(cnm_in.pop());
  }
  /// Whether the queue pair may send now; else it waits here, and the owner is ticked.
  bool in_time(std::uint16_t flow, std::uint32_t qpn) {
    const sim::cycle_t due = limiter_.due(qpn);
    if (due <= owner_.now()) return true;
    waiting_.push_back({flow, qpn, due});
    owner_.wake_at(due);
    return false;
  }
  /// One that is due, or no_link; its rate may have become lower meanwhile.
  std::uint16_t come_back() {
    const auto w =
        std::find_if(waiting_.begin(), waiting_.end(), [&](const entry& x) { return x.due <= owner_.now(); });
    if (w == waiting_.end()) return no_link;
    const std::uint16_t flow = w->flow;
    w->due = limiter_.due(w->qpn);
    owner_.wake_next();  // another one may be due as well
    if (w->due > owner_.now()) {
      owner_.wake_at(w->due);
      return no_link;
    }
    waiting_.erase(w);
    return flow;
  }
  /// It waits no more.
  void leave(std::uint16_t flow) {
    waiting_.erase(std::find_if(waiting_.begin(), waiting_.end(), [&](const entry& x) { return x.flow == flow; }));
  }

 private:
  static constexpr unsigned log_qps = 18;  // QPNs on chip, as requester_config::log_qps
  struct entry {
    std::uint16_t flow;
    std::uint32_t qpn;
    sim::cycle_t due;
  };
  sim::clocked_block& owner_;
  rate_limiter limiter_;
  std::vector<entry> waiting_;
};

}  // namespace rnic::transport
