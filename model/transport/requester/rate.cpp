// SPDX-License-Identifier: Apache-2.0
// Requester: rate limits of queue pairs, CNPs, and marked responses.
#include <algorithm>
#include <utility>

#include "model/transport/congestion/rates.h"
#include "model/transport/requester/requester.h"

namespace rnic::transport {

// kb/s, 0: none that the line does not have anyway.
std::uint32_t requester::limit_of(const context& c, std::uint8_t static_rate) const {
  const std::uint32_t kbps = lower_rate(static_rate_kbps(static_rate), qp_rate_kbps(c.rate_limit));
  return kbps < std::uint64_t{config_.congestion.line_mbps} * 1000 ? kbps : 0;
}

// A datagram's rate is that of its address vector.
void requester::set_limit(const unit& u) {
  const context& c = *u.ctx;
  limiter_.limit(u.grant.qpn, limit_of(c, c.type == icm::service::ud ? u.wqe.address.static_rate : c.dest.static_rate));
}

// A command has changed what limits the queue pair, maybe amid a message.
void requester::change_limit(const context& c, qp_runtime& r) {
  const std::uint8_t code = c.type == icm::service::ud ? std::uint8_t{0} : c.dest.static_rate;
  if (limiter_.change_limit(r.qpn, limit_of(c, code))) resume(r);
  if (r.unit < 0) return;
  uncredited_ &= ~(1u << static_cast<unsigned>(r.unit));  // it may have waited for its time
  wake_next();
}

// False: the QP's time has not come. A unit waits for it when that is soon; else the QP parks and others have the unit.
bool requester::in_time(unit& u) {
  const sim::cycle_t due = limiter_.due(u.grant.qpn), hold = config_.congestion.hold_cycles;
  if (due <= now()) return true;
  if (!u.paced) ++paced_;
  u.paced = true;
  if (due - now() <= hold) {
    uncredited_ |= mask_of(u);
    uncredited_until_ = std::min(uncredited_until_, due);
    wake_at(due);
    return false;
  }
  limiter_.park(u.grant.qpn, due - hold);
  end_turn(u, report_kind::stalled);
  wake_next();
  return false;
}

// A frame of `bytes` has started.
void requester::pace(unit& u, std::uint32_t bytes) {
  if (u.paced) spans_.leave(u.span, name(), "rate limit", now_ps(), sim::wait::rate_limit);
  u.paced = false;
  limiter_.sent(u.grant.qpn, bytes);
}

// Between two packets that ask for an acknowledgement a paced QP may take longer than its timer, which runs from the
// second on (IBA 9.7.6.1.3).
bool requester::nothing_asked(const context& c, const qp_runtime& r) const {
  constexpr std::uint32_t half_window = 1u << 23;
  return limiter_.limits(r.qpn) && distance(c.unacked_psn, r.asked_psn) - 1 >= half_window;
}

void requester::wake_paced() {
  std::uint32_t qpn;
  while ((qpn = limiter_.expired()) != rate_limiter::none) resume(qps_[qpn]);
}

/// A CNP counts for a QP that exists, has the sender for its peer, and is of a priority that reacts. False: the context
/// is not there yet.
bool requester::handle_cnp(const payload::frame& f) {
  const wire::packet& p = f.packet;
  const std::uint32_t qpn = p.bth.dest_qp;
  const auto ignore = [this] {
    ++cnp_ignored_;
    return true;
  };
  const std::uint8_t reacting = config_.congestion.reaction.priorities;
  const bool stopped = qps_.known(qpn) && (qps_[qpn].halted || qps_[qpn].halting);
  if (reacting == 0 || !qps_.legal(qpn) || stopped || p.encap == wire::encapsulation::roce_v1) return ignore();
  context* c = nullptr;
  const auto found = contexts_.lookup(qpn, c);
  if (found == decltype(contexts_)::result::pending) return false;
  if (found != decltype(contexts_)::result::hit || c->qpn != qpn) return ignore();
  const bool sends = c->state == icm::qp_state::rtr || c->state == icm::qp_state::rts ||
                     c->state == icm::qp_state::sq_draining || c->state == icm::qp_state::sqd;
  const bool connected = c->type != icm::service::ud;
  if (!sends || c->type == icm::service::mlx || (reacting >> (c->dest.priority & 7) & 1) == 0) return ignore();
  const bool from_peer =
      f.port == c->dest.port && std::equal(p.sgid.begin(), p.sgid.end(), std::begin(c->dest.remote_gid));
  if (connected && !from_peer) return ignore();
  limiter_.notified(qpn);
  ++cnp_handled_;
  if (connected && notice_out.bound() && notice_out.claim()) notice_out.push(congestion_notice{qpn, {}});
  return true;
}

void requester::note_marked(const context& c, const payload::frame& f) {
  if (!notification_.answers(f)) return;
  ++ecn_marked_;
  if (!notice_out.bound() || !notice_out.claim()) {
    ++cnp_lost_;
    return;
  }
  payload::frame_ptr cnp = frames_.get();
  notification_.build(*cnp, f.packet, f.port, f.gid_index, c.remote_qpn, *gids_[f.port % ports]);
  notice_out.push(congestion_notice{c.qpn, std::move(cnp)});
}

}  // namespace rnic::transport
