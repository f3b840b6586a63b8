// SPDX-License-Identifier: Apache-2.0
// When a queue pair's next packet may start, where its rate is limited.
#pragma once

#include <cstdint>

#include "model/icm/contexts.h"
#include "model/sim/clocked_block.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/congestion/config.h"
#include "model/transport/congestion/rate_limiter.h"
#include "model/transport/congestion/vport_rates.h"
#include "model/transport/requester/resumptions.h"
#include "model/transport/requester/send_unit.h"
#include "model/transport/requester/tables.h"

namespace rnic::transport {

/// Part of the transmit engine in front of rate_limiter, which it asks before a packet starts and tells of each that
/// did. Rates of virtual ports come on top of those of queue pairs: the later time counts. A unit waits for the time of
/// its queue pair when that is soon; else the queue pair parks, and others have the unit.
class pacing {
 public:
  using context = icm::requester_context;
  pacing(sim::clocked_block& owner, const congestion_config& config, rate_limiter& limiter, qp_table& qps,
         unit_table& units, resumptions& resumes, sim::span_recorder& spans)
      : owner_(owner),
        config_(config),
        limiter_(limiter),
        qps_(qps),
        units_(units),
        resumes_(resumes),
        spans_(spans),
        vports_(owner.domain()) {}
  void announce(sim::statistics& to) const { to.add(owner_.name() + ".paced", paced_); }

  /// A WQE begins, whose path may limit it.
  void set_limit(const send_unit& u);
  /// A command has changed what limits the queue pair, maybe amid a message.
  void change_limit(const context& c, qp_runtime& r);
  /// The registers of the rates of virtual ports (transport_cr.h).
  vport_rates& vports() { return vports_; }
  /// False: the QP's time has not come.
  bool in_time(send_unit& u);
  /// A frame of `bytes` has started.
  void started(send_unit& u, std::uint32_t bytes);
  /// The frame of the queue pair, with its headers, is one of those that reaction points of 802.1Qau are told of.
  void note_flow(std::uint32_t qpn, const payload::frame& f) {
    if (limiter_.qcn().reacts()) limiter_.qcn().note(qpn, f.packet.dmac.data(), f.packet.bth.dest_qp);
  }
  /// Queue pairs whose time has come, of those that park.
  void wake_due();

 private:
  std::uint32_t limit_of(const context& c, std::uint8_t static_rate) const;
  static std::uint32_t vport_of(const context& c) { return vport_rates::place(c.dest.port, c.vport, c.dest.priority); }

  sim::clocked_block& owner_;
  const congestion_config& config_;
  rate_limiter& limiter_;
  qp_table& qps_;
  unit_table& units_;
  resumptions& resumes_;
  sim::span_recorder& spans_;
  vport_rates vports_;
  std::uint64_t paced_ = 0;
};

}  // namespace rnic::transport
