// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/cnp_sender.h"

#include <utility>

namespace rnic::transport {

namespace {
constexpr unsigned log_queue_pairs = 18;  // QPNs on chip, as requester_config::log_qps
}  // namespace

cnp_sender::cnp_sender(sim::clocked_block& owner, const responder_config& cfg, payload::frame_pool& frames,
                       answer_port& out, read_port& reads)
    : owner_(owner),
      frames_(frames),
      out_(out),
      reads_(reads),
      point_(cfg.congestion.notification, log_queue_pairs),
      waiting_{sim::ring<payload::frame_ptr>(cfg.congestion.notification.queue),
               sim::ring<payload::frame_ptr>(cfg.congestion.notification.queue)} {}

void cnp_sender::announce(sim::statistics& to, const std::string& name) const {
  to.add(name + ".np_ecn_marked_roce_packets", marked_);
  to.add(name + ".np_cnp_sent", sent_);
  to.add(name + ".np_cnp_lost", lost_);
}

bool cnp_sender::answers(const payload::frame& f) const {
  return !f.plain && notification_point::marked(f.packet) && point_.answers(f);
}

void cnp_sender::keep(const payload::frame& f) {
  kept_.packet = f.packet;
  kept_.port = f.port;
  kept_.gid_index = f.gid_index;
}

void cnp_sender::note(const responder_flow& f) {
  ++marked_;
  const wire::packet& p = kept_.packet;
  const bool datagram = wire::transport_of(p.bth.opcode) == wire::transport::ud;
  payload::frame_ptr cnp = frames_.get();
  point_.build(*cnp, p, kept_.port, kept_.gid_index, datagram ? p.deth.src_qp : f.ctx->remote_qpn);
  queue(f.qpn, std::move(cnp));
}

void cnp_sender::take(sim::fifo_in<congestion_notice>& in, bool ignore) {
  if (!in.can_pop() || !reads_.room(1)) return;  // who makes room ticks us
  congestion_notice n = in.pop();
  if (ignore) return;
  if (n.cnp) return queue(n.qpn, std::move(n.cnp));
  read_command r;  // READ responses have rates
  r.what = read_command::kind::notified;
  r.qpn = n.qpn;
  reads_.push(r);
}

void cnp_sender::queue(std::uint32_t qpn, payload::frame_ptr frame) {
  auto& waiting = waiting_[frame->port & 1];
  if (waiting.full()) {
    ++lost_;
    return;
  }
  if (!point_.due(qpn, frame->packet.dgid, frame->port, owner_.now_ps())) return;
  waiting.push(std::move(frame));
  owner_.wake_next();
}

void cnp_sender::work() {
  if (waiting_[0].empty() && waiting_[1].empty()) return;
  if (!send(turn_) && !send(turn_ ^ 1)) return;
  turn_ ^= 1;
  if (!waiting_[0].empty() || !waiting_[1].empty()) owner_.wake_next();
}

bool cnp_sender::send(unsigned port) {
  auto& waiting = waiting_[port];
  if (waiting.empty() || !out_.claim(port, waiting.front()->priority)) return false;
  answer_job j;
  j.complete = true;
  j.port = static_cast<std::uint8_t>(port);
  j.priority = waiting.front()->priority;
  j.frame = waiting.pop();
  out_.push(std::move(j));
  ++sent_;
  return true;
}

void cnp_sender::clear() {
  point_.clear();
  for (auto& waiting : waiting_) waiting.clear();
}

}  // namespace rnic::transport
