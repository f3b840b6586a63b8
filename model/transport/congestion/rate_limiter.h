// SPDX-License-Identifier: Apache-2.0
// When a queue pair may send its next packet.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/sim/clock_domain.h"
#include "model/sim/seldom.h"
#include "model/transport/congestion/config.h"
#include "model/transport/congestion/qcn_reactions.h"
#include "model/transport/congestion/reaction_point.h"

namespace rnic::transport {

/// Part of one half of the transport: the limits of its queue pairs, by software (static rate, QP rate limit) and by
/// their reaction points, that of DCQCN and that of 802.1Qau. A packet that takes n bytes on the line moves the queue
/// pair's next one by the time that n bytes take at the lower limit. Lateness by a little is that of the machine and is
/// made up for, so that the mean is met; beyond it the queue pair had nothing to send, and begins anew. Queue pairs
/// without a limit are not kept here.
class rate_limiter {
 public:
  rate_limiter(const congestion_config& c, const sim::clock_domain& domain, unsigned log_qps);

  /// False as long as no queue pair has ever had a limit: nothing else needs to be asked.
  bool any() const { return any_; }
  /// Software's limit of a queue pair in kb/s; 0: none.
  void limit(std::uint32_t qpn, std::uint32_t kbps);
  /// The same at once: what is left of the wait for its next frame is as long as it would be at the new rate. True: it
  /// was parked, and is not any more.
  bool change_limit(std::uint32_t qpn, std::uint32_t kbps);
  /// Whether it has a limit of either kind.
  bool limits(std::uint32_t qpn) const;
  /// A CNP for the queue pair, which sends through `port`.
  void notified(std::uint32_t qpn, unsigned port);
  /// A CNM (802.1Qau) about a frame that this half may have sent.
  void notified(const cnm_notice& n);
  qcn_reactions& qcn() { return qcn_; }
  const qcn_reactions& qcn() const { return qcn_; }
  /// First edge at which it may send.
  sim::cycle_t due(std::uint32_t qpn) const;
  /// It starts a frame of `bytes` (without FCS) now. Not before due().
  void sent(std::uint32_t qpn, std::uint32_t bytes);
  /// The queue pair is gone, or all are.
  void forget(std::uint32_t qpn);
  void clear();

  /// It gives up its place until `edge`, when expired() names it.
  void park(std::uint32_t qpn, sim::cycle_t edge);
  bool parked(std::uint32_t qpn) const;
  /// Edge at which the first one that parks is due; sim::never without.
  sim::cycle_t earliest() const { return sim::mostly(parking_.empty()) ? sim::never : parking_.front().first; }
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  /// One that is due, which does not park any more, or `none`.
  std::uint32_t expired();

  /// Present rate of a flow after CNPs; 0: there was none.
  std::uint32_t reaction_kbps(std::uint32_t qpn);

 private:
  struct flow {
    std::uint32_t limit_kbps = 0;
    bool parks = false;
    sim::cycle_t parks_until = 0;
    sim::time_ps next = 0;  // the next frame not before
    reaction_point reaction;
    qcn_reactions::number qcn = qcn_reactions::none;  // its number, where it is still this flow's
  };
  static constexpr std::uint32_t page = 64;
  flow* find(std::uint32_t qpn) const;
  flow& make(std::uint32_t qpn);

  const congestion_config& config_;
  const sim::clock_domain& domain_;
  qcn_reactions qcn_;
  bool any_ = false;
  std::uint32_t mask_;
  std::vector<std::unique_ptr<std::array<flow, page>>> pages_;
  using parking = std::pair<sim::cycle_t, std::uint32_t>;
  std::vector<parking> parking_;  // heap, the first due on top
};

}  // namespace rnic::transport
