// SPDX-License-Identifier: Apache-2.0
// Who waits for room in an egress queue, and who goes on when there is some.
#include "model/transport/requester/egress_credits.h"

namespace rnic::transport {

egress_credits::egress_credits(sim::clocked_block& owner, std::uint32_t frames, unsigned wait_cycles, channels& in,
                               qp_table& qps, unit_table& units, resumptions& resumes)
    : owner_(owner), wait_cycles_(wait_cycles), in_(in), qps_(qps), units_(units), resumes_(resumes) {
  for (auto& port : pools_)
    for (egress_pool& pool : port) pool.credits = frames;
}

void egress_credits::take() {
  for (unsigned port = 0; port < egress_ports; ++port) {
    if (!in_[port].can_pop()) continue;
    in_[port].take_due([&](const egress_credit& c) { give_back(port, c.priority % egress_priorities); });
    if (!awaited_[port]) continue;
    const auto& all = pools_[port];
    awaited_[port] = std::any_of(all.begin(), all.end(), [](const egress_pool& p) { return p.is_awaited(); });
    in_[port].set_quiet(!awaited_[port]);
  }
}

void egress_credits::give_back(unsigned port, unsigned priority) {
  egress_pool& pool = pools_[port][priority];
  ++pool.credits;
  pool.moved = owner_.now();
  units_.release(pool.awaited_by);
  resumes_.resume_first(pool.parked);
}

// The last credit is gone: those that wait for one need not try.
void egress_credits::use(send_unit& u, unsigned port, unsigned priority) {
  egress_pool& pool = pools_[port][priority];
  units_.forget_credit(u);
  if (--pool.credits != 0 || pool.awaited_by == 0) return;
  units_.hold(pool.awaited_by, owner_.now() + wait_cycles_);
}

// The unit keeps its QP as long as the egress queue moves: others of that priority would fare no better. When it stands
// still, because it is paused for example, a QP of another priority may have the unit.
bool egress_credits::await(send_unit& u, unsigned port, unsigned priority) {
  egress_pool& pool = pools_[port][priority];
  if (u.credit_since == sim::never) {
    u.credit_since = owner_.now();
    u.awaits = &pool;
    pool.awaited_by |= units_.mask_of(u);
    ++stalls_;
  }
  awaited_[port] = true;
  in_[port].set_quiet(false);
  const sim::cycle_t limit = std::max(u.credit_since, pool.moved) + wait_cycles_;
  if (owner_.now() < limit) {
    units_.hold(units_.mask_of(u), limit);
    return true;
  }
  pool.parked.push(qps_, qps_[u.grant.qpn]);
  return false;
}

void egress_credits::look_again() {
  for (auto& port : pools_)
    for (egress_pool& pool : port) {
      pool.moved = owner_.now();
      units_.release(pool.awaited_by);
      while (!pool.parked.empty()) resumes_.resume_first(pool.parked);
    }
  owner_.wake_next();
}

void egress_credits::pass_on() {
  for (unsigned port = 0; port < egress_ports; ++port)
    for (unsigned priority = 0; awaited_[port] && priority < egress_priorities; ++priority)
      if (pools_[port][priority].credits != 0) resumes_.resume_first(pools_[port][priority].parked);
}

}  // namespace rnic::transport
