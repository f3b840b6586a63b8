// SPDX-License-Identifier: Apache-2.0
#include "model/transport/congestion/cnp_sender.h"

#include <utility>

namespace rnic::transport {

namespace {
constexpr unsigned log_queue_pairs = 18;  // QPNs on chip, as requester_config::log_qps
}  // namespace

cnp_sender::cnp_sender(std::string name, sim::clock_domain& domain, const notification_config& config, unsigned places,
                       sim::statistics& stats)
    : clocked_block(name, domain),
      answers(*this, places),
      point_(config, log_queue_pairs),
      waiting_{sim::ring<payload::frame_ptr>(config.queue), sim::ring<payload::frame_ptr>(config.queue)} {
  stats.add(this->name() + ".np_cnp_sent", sent_);
  stats.add(this->name() + ".np_cnp_lost", lost_);
  stats.add(this->name() + ".np_cnp_early", early_);
}

void cnp_sender::tick() {
  answers.work();
  bool changed = false;
  if (waits()) {
    changed = send(next_port_) || send(next_port_ ^ 1);
    if (changed)
      engine_.start(1);
    else
      engine_.blocked("answer_transmit");
  }
  if (take()) changed = true;
  if (changed && waits()) wake_next();  // what waits for a place is ticked by that
}

/// A notice; true when it waits now.
bool cnp_sender::take() {
  for (const unsigned from : {next_source_, next_source_ ^ 1}) {
    if (!notices[from].can_pop()) continue;
    next_source_ = from ^ 1;
    if (notices[from ^ 1].can_pop()) wake_next();
    return queue(notices[from].pop());
  }
  return false;
}

bool cnp_sender::queue(congestion_notice&& n) {
  auto& waiting = waiting_[n.cnp->port & 1];
  if (waiting.full()) {
    ++lost_;
    return false;
  }
  if (!point_.due(n.qpn, n.cnp->packet.dgid, n.cnp->port, now_ps())) {
    ++early_;
    return false;
  }
  waiting.push(std::move(n.cnp));
  return true;
}

bool cnp_sender::send(unsigned port) {
  auto& waiting = waiting_[port];
  if (waiting.empty() || !answers.claim(port, waiting.front()->priority)) return false;
  answer_job j;
  j.complete = true;
  j.port = static_cast<std::uint8_t>(port);
  j.priority = waiting.front()->priority;
  j.frame = waiting.pop();
  answers.push(std::move(j));
  next_port_ = port ^ 1;
  ++sent_;
  return true;
}

void cnp_sender::device_reset() {
  point_.clear();
  for (auto& waiting : waiting_) waiting.clear();
  engine_.idle();
}

}  // namespace rnic::transport
