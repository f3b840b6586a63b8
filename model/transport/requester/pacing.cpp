// SPDX-License-Identifier: Apache-2.0
// Rate limits of queue pairs: which one counts, and who waits for it.
#include "model/transport/requester/pacing.h"

#include <algorithm>

#include "model/sim/seldom.h"
#include "model/transport/congestion/rates.h"

namespace rnic::transport {

// kb/s, 0: none that the line does not have anyway.
std::uint32_t pacing::limit_of(const context& c, std::uint8_t static_rate) const {
  const std::uint32_t kbps = lower_rate(static_rate_kbps(static_rate), qp_rate_kbps(c.rate_limit));
  return kbps < std::uint64_t{config_.line_mbps[c.dest.port & 1u]} * 1000 ? kbps : 0;
}

// A datagram's rate is that of its address vector.
void pacing::set_limit(const send_unit& u) {
  const context& c = *u.ctx;
  const bool datagram = c.type == icm::service::ud;
  if (!limiter_.any() && c.dest.static_rate == 0 && c.rate_limit == 0 && !(datagram && u.wqe.address.static_rate != 0))
    return;
  limiter_.limit(u.grant.qpn, limit_of(c, datagram ? u.wqe.address.static_rate : c.dest.static_rate));
}

void pacing::change_limit(const context& c, qp_runtime& r) {
  const std::uint8_t code = c.type == icm::service::ud ? std::uint8_t{0} : c.dest.static_rate;
  if (limiter_.change_limit(r.qpn, limit_of(c, code))) resumes_.resume(r);
  if (r.turn.unit < 0) return;
  units_.release(units_.mask_of(*units_.of(r)));  // it may have waited for its time
  owner_.wake_next();
}

bool pacing::in_time(send_unit& u) {
  if (sim::mostly(!limiter_.any() && !vports_.any())) return true;
  const sim::cycle_t due = std::max(limiter_.due(u.grant.qpn), vports_.any() ? vports_.due(vport_of(*u.ctx)) : 0);
  const sim::cycle_t hold = config_.hold_cycles;
  if (due <= owner_.now()) return true;
  if (!u.paced) ++paced_;
  u.paced = true;
  if (due - owner_.now() <= hold) {
    units_.hold(units_.mask_of(u), due);
    return false;
  }
  limiter_.park(u.grant.qpn, due - hold);
  units_.give_up(u, standstill::rate);
  return false;
}

void pacing::started(send_unit& u, std::uint32_t bytes) {
  if (vports_.any())
    vports_.sent(vport_of(*u.ctx), bytes + config_.line_overhead_bytes,
                 owner_.domain().edge_time(config_.catch_up_cycles + 1u));
  if (!limiter_.any() && !u.paced) return;
  if (u.paced) spans_.leave(u.span, owner_.name(), "rate limit", owner_.now_ps(), sim::wait::rate_limit);
  u.paced = false;
  limiter_.sent(u.grant.qpn, bytes);
}

void pacing::wake_due() {
  if (sim::mostly(limiter_.earliest() > owner_.now())) return;
  std::uint32_t qpn;
  while ((qpn = limiter_.expired()) != rate_limiter::none) resumes_.resume(qps_[qpn]);
}

}  // namespace rnic::transport
