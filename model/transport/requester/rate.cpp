// SPDX-License-Identifier: Apache-2.0
// Requester: rate limits of queue pairs.
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
void requester::set_limit(const send_unit& u) {
  const context& c = *u.ctx;
  limiter_.limit(u.grant.qpn, limit_of(c, c.type == icm::service::ud ? u.wqe.address.static_rate : c.dest.static_rate));
}

// A command has changed what limits the queue pair, maybe amid a message.
void requester::change_limit(const context& c, qp_runtime& r) {
  const std::uint8_t code = c.type == icm::service::ud ? std::uint8_t{0} : c.dest.static_rate;
  if (limiter_.change_limit(r.qpn, limit_of(c, code))) resumes_.resume(r);
  if (r.unit < 0) return;
  units_.release(units_.mask_of(*units_.of(r)));  // it may have waited for its time
  wake_next();
}

// False: the QP's time has not come. A unit waits for it when that is soon; else the QP parks and others have the unit.
bool requester::in_time(send_unit& u) {
  const sim::cycle_t due = limiter_.due(u.grant.qpn), hold = config_.congestion.hold_cycles;
  if (due <= now()) return true;
  if (!u.paced) ++paced_;
  u.paced = true;
  if (due - now() <= hold) {
    units_.hold(units_.mask_of(u), due);
    return false;
  }
  limiter_.park(u.grant.qpn, due - hold);
  units_.end_turn(u, report_kind::stalled);
  wake_next();
  return false;
}

// A frame of `bytes` has started.
void requester::pace(send_unit& u, std::uint32_t bytes) {
  if (u.paced) spans_.leave(u.span, name(), "rate limit", now_ps(), sim::wait::rate_limit);
  u.paced = false;
  limiter_.sent(u.grant.qpn, bytes);
}

void requester::wake_paced() {
  std::uint32_t qpn;
  while ((qpn = limiter_.expired()) != rate_limiter::none) resumes_.resume(qps_[qpn]);
}

}  // namespace rnic::transport
