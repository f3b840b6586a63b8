// SPDX-License-Identifier: Apache-2.0
#include "model/transport/requester/ack_timers.h"

#include <utility>

namespace rnic::transport {

ack_timers::ack_timers(std::string name, sim::clock_domain& domain, const timer_config& config, unsigned log_qps,
                       sim::statistics& stats)
    : clocked_block(name, domain),
      expiry_cycles_(sim::checked(config, this->name()).expiry_cycles),
      entries_(config, domain, log_qps) {
  stats.add(this->name() + ".timer_waits", entries_.waits());
  stats.add(this->name() + ".expired", expired_);
}

void ack_timers::tick() {
  if (!expire() && entries_.may_give()) entries_.give(edge());
  if (commands.can_pop()) {
    take(commands.front());
    commands.drop();
  }
  plan();
}

bool ack_timers::expire() {
  if (!entries_.due(edge()) || !engine_.is_free() || !expirations.can_push()) return false;
  expirations.push(entries_.end());
  engine_.start(expiry_cycles_);
  ++expired_;
  return true;
}

void ack_timers::take(const timer_command& c) {
  if (c.what == timer_command::kind::start)
    entries_.start(c, edge());
  else
    entries_.stop(c.qpn);
}

// What is due and did not expire waits for the engine or, when that is free, for the channel, which ticks the block.
void ack_timers::plan() {
  if (entries_.may_give()) wake_next();
  if (!entries_.due(edge())) {
    engine_.idle();
    if (const sim::cycle_t next = entries_.earliest(); next < asked_ || asked_ <= edge()) {
      asked_ = next;
      if (next != sim::never) wake_at(next);
    }
  } else if (engine_.is_free()) {
    engine_.blocked("expirations");
  } else {
    engine_.await();
  }
}

}  // namespace rnic::transport
