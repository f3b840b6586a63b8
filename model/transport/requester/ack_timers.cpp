// SPDX-License-Identifier: Apache-2.0
// For how long the timer of a queue pair runs.
#include "model/transport/requester/ack_timers.h"

#include <algorithm>

#include "model/transport/requester/rules.h"
#include "model/transport/rnr_timer.h"

namespace rnic::transport {

namespace {
constexpr sim::time_ps timeout_unit_ps = 4'096'000;  // IBA 9.7.6.1.3: 4.096 us
constexpr sim::time_ps rnr_unit_ps = 10 * sim::ps_per_us;
}  // namespace

ack_timers::ack_timers(sim::clocked_block& owner, const timer_config& config, qp_table& qps,
                       const rate_limiter& limiter)
    : owner_(owner),
      expiry_cycles_(config.expiry_cycles),
      qps_(qps),
      limiter_(limiter),
      timers_(config, owner.domain()),
      engine_(owner, "timer_engine"),
      unit_(owner.domain().cycles(timeout_unit_ps)) {}

void ack_timers::start(const context& c, qp_runtime& r) {
  if (qp_timers::is_on(r) || !icm::is_reliable(c.type) || c.ack_timeout == 0) return;
  if (c.unacked_psn == c.next_psn && !r.progress.retrying) return;
  if (limiter_.any() && nothing_asked(c, r)) return;
  timers_.start(qps_, r, owner_.now(), unit_ << std::min<unsigned>(c.ack_timeout, 31));
}

// Between two packets that ask for an acknowledgement a paced QP may take longer than its timer, which runs from the
// second on (IBA 9.7.6.1.3).
bool ack_timers::nothing_asked(const context& c, const qp_runtime& r) const {
  return limiter_.limits(r.qpn) && r.progress.asked.since(unacked_psn(c)) - 1 >= half_window;
}

void ack_timers::restart(const context& c, qp_runtime& r) {
  stop(r);
  start(c, r);
}

void ack_timers::wait_for_receiver(qp_runtime& r, std::uint8_t syndrome) {
  timers_.start(qps_, r, owner_.now(), owner_.domain().cycles(rnr_unit_ps * rnr_timer_10us[syndrome & 0x1f]));
}

qp_runtime* ack_timers::expired() {
  if (timers_.earliest() > owner_.now()) return nullptr;
  if (!engine_.is_free()) {
    engine_.await();
    return nullptr;
  }
  const std::uint32_t qpn = timers_.expired(qps_, owner_.now());
  return qpn == no_index ? nullptr : &qps_[qpn];
}

}  // namespace rnic::transport
