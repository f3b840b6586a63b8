// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/links/real_time.h"

#include <algorithm>
#include <systemc>

namespace rnic::serve {

namespace {

constexpr sim::time_ps never = ~sim::time_ps{0};
/// Simulated time between two looks at the sockets while there is work: about a millisecond of a busy simulation.
constexpr sim::time_ps slice = 50 * sim::ps_per_us;

constexpr sim::time_ps before_next_event = 1000 * sim::ps_per_us;

sim::time_ps kernel_now() { return sc_core::sc_time_stamp().value(); }

sim::time_ps next_event() {
  const sim::time_ps now = kernel_now();
  const sim::time_ps delay = sc_core::sc_time_to_pending_activity().value();
  return delay > never - now ? never : now + delay;
}

std::uint64_t microseconds(std::chrono::steady_clock::duration d) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(d).count());
}

}  // namespace

real_time::real_time(sim::timebase& base, boost::asio::io_context& io) : base_(base), io_(io), timer_(io) {}

void real_time::start_clock() {
  paced_ = true;
  real_origin_ = last_turn_ = clock::now();
  origin_ = base_.now_ps();
}

sim::time_ps real_time::present() const {
  if (!paced_) return base_.now_ps();
  const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - real_origin_).count();
  const sim::time_ps counted = origin_ + static_cast<sim::time_ps>(passed) * sim::ps_per_ns;
  return std::max(base_.now_ps(), counted - std::min(counted, lost_));
}

std::uint64_t real_time::elapsed_us() const { return paced_ ? microseconds(clock::now() - real_origin_) : 0; }

void real_time::run() {
  while (!stopped_) turn();
  advance(kernel_now() + slice);  // what has come in by then goes through the cable
}

/// What lies in the sockets has come before whatever waited for it ran out of patience: the present becomes a moment
/// before the next event.
void real_time::lose_time() {
  const sim::time_ps target = present(), next = next_event();
  if (next >= target || target - next <= most_behind_ps) return;
  const sim::time_ps late = target - next;
  lag_.max_us = std::max(lag_.max_us, late / sim::ps_per_us);
  lag_.lagging_us += late / sim::ps_per_us;
  lost_ += late + before_next_event;
  if (tell_lost_) tell_lost_(late / sim::ps_per_us);
}

void real_time::catch_up() {
  const sim::time_ps target = present();
  if (paced_ && next_event() > target) advance(target);
}

/// Handlers run in the order in which they became ready, those of timers and signals among them.
void real_time::serve_sockets() {
  io_.restart();
  const clock::time_point end = clock::now() + socket_share;
  while (io_.poll_one() != 0 && !stopped_ && clock::now() < end) {
  }
}

void real_time::turn() {
  if (paced_) lose_time();
  serve_sockets();
  if (stopped_) return;
  if (!paced_) return advance(kernel_now() + slice);
  const clock::time_point now = clock::now();
  const sim::time_ps target = present();
  const sim::time_ps next = next_event();
  const sim::time_ps late = next >= target ? 0 : target - next;
  lag_.max_us = std::max(lag_.max_us, late / sim::ps_per_us);
  if (was_lagging_) lag_.lagging_us += microseconds(now - last_turn_);
  was_lagging_ = late > tolerated_ps;
  last_turn_ = now;
  if (next > target) {
    advance(target);
    sleep_until(next_event());
  } else {
    advance(std::min(target, std::max(next, kernel_now()) + slice));
  }
}

void real_time::advance(sim::time_ps to) {
  const sim::time_ps now = kernel_now();
  if (to <= now) return;
  base_.run_ahead_until(to);
  sc_core::sc_start(sc_core::sc_time::from_value(to - now));
}

void real_time::sleep_until(sim::time_ps next) {
  if (next != never) {
    const auto due = real_origin_ + std::chrono::nanoseconds((next - origin_ + lost_) / sim::ps_per_ns + 1);
    if (!armed_ || due != armed_for_) {  // setting it again would wake us to say that it was cancelled
      armed_ = true;
      armed_for_ = due;
      timer_.expires_at(due);
      timer_.async_wait([this, due](const boost::system::error_code& error) {
        if (!error && due == armed_for_) armed_ = false;
      });
    }
  }
  io_.run_one();
}

}  // namespace rnic::serve
