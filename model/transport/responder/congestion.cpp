// SPDX-License-Identifier: Apache-2.0
// Responder: marked packets and the CNPs that answer them (adapter data plane C.9, E.8).
#include <utility>

#include "model/transport/responder/responder.h"

namespace rnic::transport {

// What a CNP needs of a packet that its execution may take away.
void responder::keep_marked(const payload::frame& f) {
  marked_.packet = f.packet;
  marked_.port = f.port;
  marked_.gid_index = f.gid_index;
}

void responder::note_marked(const responder_flow& f) {
  if (!gate_passed_) return;
  ++count_.ecn_marked;
  const wire::packet& p = marked_.packet;
  const bool datagram = wire::transport_of(p.bth.opcode) == wire::transport::ud;
  payload::frame_ptr cnp = frames_.get();
  notification_.build(*cnp, p, marked_.port, marked_.gid_index, datagram ? p.deth.src_qp : f.ctx->remote_qpn,
                      *gids_[marked_.port & 1]);
  queue_cnp(f.qpn, std::move(cnp));
}

// From the requester, for which the responder keeps intervals and sends.
void responder::take_notices() {
  if (!notice_in.can_pop() || !reads.room(1)) return;  // who makes room ticks us
  congestion_notice n = notice_in.pop();
  if (resetting_) return;
  if (n.cnp) return queue_cnp(n.qpn, std::move(n.cnp));
  read_command r;  // READ responses have rates
  r.what = read_command::kind::notified;
  r.qpn = n.qpn;
  reads.push(r);
}

/// Each port has a queue: a port that is paused holds up no other. One that finds it full is lost and counted, and its
/// queue pair's next marked packet makes another.
void responder::queue_cnp(std::uint32_t qpn, payload::frame_ptr frame) {
  auto& queue = cnps_[frame->port & 1];
  if (queue.full()) {
    ++count_.cnps_lost;
    return;
  }
  if (!notification_.due(qpn, frame->packet.dgid, frame->port, now_ps())) return;
  queue.push(std::move(frame));
  wake_next();
}

/// One in a cycle, of the ports in turn.
void responder::send_cnp() {
  if (cnps_[0].empty() && cnps_[1].empty()) return;
  if (!send_cnp(cnp_turn_) && !send_cnp(cnp_turn_ ^ 1)) return;
  cnp_turn_ ^= 1;
  if (!cnps_[0].empty() || !cnps_[1].empty()) wake_next();
}

bool responder::send_cnp(unsigned port) {
  auto& queue = cnps_[port];
  if (queue.empty() || !notifications.claim(port, queue.front()->priority)) return false;
  answer_job j;
  j.complete = true;
  j.port = static_cast<std::uint8_t>(port);
  j.priority = queue.front()->priority;
  j.frame = queue.pop();
  notifications.push(std::move(j));
  ++count_.cnps;
  return true;
}

}  // namespace rnic::transport
