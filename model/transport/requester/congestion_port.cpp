// SPDX-License-Identifier: Apache-2.0
// CNPs for queue pairs that send, and for the senders of marked responses.
#include "model/transport/requester/congestion_port.h"

#include <algorithm>

namespace rnic::transport {

void congestion_port::announce(const std::string& name, sim::statistics& to) const {
  to.add(name + ".rp_cnp_handled", handled_);
  to.add(name + ".rp_cnp_ignored", ignored_);
  marked_.announce(name, to);
}

/// A CNP counts for a QP that exists, has the sender for its peer, and is of a priority that reacts.
bool congestion_port::handle_cnp(const payload::frame& f) {
  const wire::packet& p = f.packet;
  const std::uint32_t qpn = p.bth.dest_qp;
  const auto ignore = [this] {
    ++ignored_;
    return true;
  };
  const std::uint8_t reacting = config_.reaction.priorities;
  const bool stopped = qps_.known(qpn) && (qps_[qpn].stop.halted || qps_[qpn].stop.halting);
  if (reacting == 0 || !qps_.legal(qpn) || stopped || p.encap == wire::encapsulation::roce_v1) return ignore();
  context* c = nullptr;
  const auto found = contexts_.ask(qpn, c);
  if (found == context_memory::result::pending) return false;
  if (found != context_memory::result::hit) return ignore();
  if (!contexts_.access(context_memory::completer, qpn)) return false;
  if (c->qpn != qpn) return ignore();
  const bool sends = c->state == icm::qp_state::rtr || c->state == icm::qp_state::rts ||
                     c->state == icm::qp_state::sq_draining || c->state == icm::qp_state::sqd;
  const bool connected = c->type != icm::service::ud;
  if (!sends || c->type == icm::service::mlx || (reacting >> (c->dest.priority & 7) & 1) == 0) return ignore();
  const bool from_peer =
      ports_.may_arrive(f.port, c->dest) && std::equal(p.sgid.begin(), p.sgid.end(), std::begin(c->dest.remote_gid));
  if (connected && !from_peer) return ignore();
  limiter_.notified(qpn, f.port);
  ++handled_;
  if (connected && notice_.bound() && notice_.claim()) notice_.push(rate_notice{qpn, f.port});
  return true;
}

}  // namespace rnic::transport
