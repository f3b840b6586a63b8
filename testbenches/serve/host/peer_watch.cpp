// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/host/peer_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <systemc>
#include <utility>

#include "host_driver/hosts/connection.h"
#include "testbenches/serve/host/application.h"

namespace rnic::serve {

namespace {

/// Between two questions to the adapter: each is a command to its firmware.
constexpr sim::time_ps ask_every_ps = sim::ps_per_s;

sim::time_ps now() { return sc_core::sc_time_stamp().value(); }

}  // namespace

peer_watch::peer_watch(host_driver::device& device, std::function<bool()> has_closed, sim::time_ps patience_ps)
    : device_(device),
      has_closed_(std::move(has_closed)),
      patience_ps_(patience_ps),
      progress_ps_(now()),
      looked_ps_(progress_ps_) {}

void peer_watch::add(host_driver::queue_pair* qp) { queues_.push_back({qp, 0}); }

void peer_watch::progress() { progress_ps_ = now(); }

/// A responder that has taken a packet expects the next one.
bool peer_watch::packets_came() {
  bool moved = false;
  for (queue& q : queues_) {
    ibv_qp_attr attr{};
    hosts::require(device_.query_qp(q.qp, &attr, IBV_QP_RQ_PSN, nullptr), "query_qp");
    moved |= std::exchange(q.psn, attr.rq_psn) != attr.rq_psn;
  }
  return moved;
}

void peer_watch::look() {
  if (!closed_ && has_closed_()) {
    closed_ = true;
    closed_ps_ = now();
  }
  if (closed_ && now() - std::max(closed_ps_, progress_ps_) >= after_closing_ps)
    throw peer_failure("the peer has left in the middle of the test: it ended the conversation");
  if (now() - std::max(looked_ps_, progress_ps_) < ask_every_ps) return;
  looked_ps_ = now();
  if (packets_came()) return progress();
  if (now() - progress_ps_ >= patience_ps_)
    throw peer_failure(
        fmt::format("the peer stands still: nothing of it has come for {} s", patience_ps_ / sim::ps_per_s));
}

}  // namespace rnic::serve
