// SPDX-License-Identifier: Apache-2.0
// For how long the timer of a queue pair runs, and what the block of timers is told.
#include "model/transport/requester/timer_port.h"

#include <algorithm>

#include "model/transport/requester/rules.h"
#include "model/transport/rnr_timer.h"

namespace rnic::transport {

namespace {
constexpr sim::time_ps timeout_unit_ps = 4'096'000;  // IBA 9.7.6.1.3: 4.096 us
constexpr sim::time_ps rnr_unit_ps = 10 * sim::ps_per_us;
}  // namespace

timer_port::timer_port(sim::clocked_block& owner, port_set ports, qp_table& qps)
    : owner_(owner), ports_(ports), qps_(qps), unit_(owner.domain().cycles(timeout_unit_ps)) {}

void timer_port::announce(sim::statistics& to) {
  to.add(owner_.name() + ".timers_crossed", crossed_);
  to.add(owner_.name() + ".timers_extended", extended_);
  to.add(owner_.name() + ".standstill.receiver_cycles", for_receivers_.cycles());
  to.settle_by([this] { for_receivers_.settle(owner_.now()); });
  to.add(owner_.name() + ".standstill.timeout_cycles", in_vain_.cycles());
}

// Never: there is nothing to wait for.
sim::cycle_t timer_port::deadline_of(const context& c, const qp_runtime& r) const {
  if (!icm::is_reliable(c.type) || c.ack_timeout == 0) return sim::never;
  const bool waits = c.unacked_psn == c.next_psn ? r.progress.retrying : !nothing_asked(c, r);
  if (!waits) return sim::never;
  return owner_.now() + (unit_ << std::min<unsigned>(c.ack_timeout, 31));
}

// Between two packets that ask for an acknowledgement a queue pair may take longer than its timer, which runs from the
// second on (IBA 9.7.6.1.3): its line is slow, or others have their turns.
bool timer_port::nothing_asked(const context& c, const qp_runtime& r) {
  return r.progress.asked.since(unacked_psn(c)) - 1 >= half_window;
}

void timer_port::wait_for_receiver(qp_runtime& r, std::uint8_t syndrome) {
  want(r, owner_.now() + owner_.domain().cycles(rnr_unit_ps * rnr_timer_10us[syndrome & 0x1f]));
  receiver_waits(r, true);
}

void timer_port::receiver_waits(qp_runtime& r, bool waits) {
  r.timer.for_receiver = waits;
  waits ? for_receivers_.begin(owner_.now()) : for_receivers_.end(owner_.now());
}

qp_runtime* timer_port::expired() {
  if (!ports_.expirations.can_pop()) return nullptr;
  const timer_expiration& e = ports_.expirations.front();
  qp_runtime& r = qps_[e.qpn];
  const bool crossed = r.timer.armed == sim::never || r.timer.tag != e.tag;
  if (!crossed && r.timer.deadline <= owner_.now()) {
    owner_.wake_next();
    return &r;
  }
  ports_.expirations.drop();
  if (crossed) {
    ++crossed_;
    return nullptr;
  }
  r.timer.armed = sim::never;
  ++(is_on(r) ? extended_ : crossed_);
  if (is_on(r)) waiting_.push(qps_, r);
  return nullptr;
}

void timer_port::end(qp_runtime& r) {
  ports_.expirations.drop();
  r.timer.deadline = r.timer.armed = sim::never;
  if (r.timer.for_receiver) receiver_waits(r, false);
}

// What is to be told of may be told already when its turn has come: a stop was followed by a start.
void timer_port::send_first() {
  if (ports_.commands.can_push()) {
    qp_runtime& r = waiting_.pop(qps_);
    const sim::cycle_t known = r.timer.armed;
    if (r.timer.deadline < known) {
      r.timer.armed = r.timer.deadline;
      ports_.commands.push({timer_command::kind::start, r.qpn, r.timer.deadline, ++r.timer.tag});
    } else if (!is_on(r) && known != sim::never) {
      r.timer.armed = sim::never;
      ports_.commands.push({timer_command::kind::stop, r.qpn});
    }
  }
  if (!waiting_.empty()) owner_.wake_next();
}

}  // namespace rnic::transport
