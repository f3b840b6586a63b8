// SPDX-License-Identifier: Apache-2.0
// Pause timers, and what the peer has been told.
#include "model/mac/flow_control.h"

#include <algorithm>
#include <utility>

namespace rnic::mac {

void flow_control::receive(const wire::pause_frame& p, sim::time_ps now) {
  settle(now);
  for (unsigned i = 0; i < 8; ++i) {
    const bool meant = p.per_priority ? (p.enabled & obey_pfc & (1u << i)) != 0 : obey_pause;
    if (meant) hold(i, p.quanta[p.per_priority ? i : 0], now);
  }
}

void flow_control::hold(unsigned priority, std::uint16_t quanta, sim::time_ps now) {
  counters& c = counters_[priority];
  const sim::time_ps before = std::max(until_[priority], now);
  const sim::time_ps after = now + quanta_time(quanta);
  ++c.rx_frames;
  if (before == now && after > now) ++c.rx_transitions;
  if (after == before) return;
  until_[priority] = after;
  counted_[priority] = now;
  latest_until_ = std::max(latest_until_, after);
}

std::uint8_t flow_control::paused_ones(sim::time_ps now) const {
  unsigned mask = 0;
  for (unsigned i = 0; i < 8; ++i) mask |= (now < until_[i] ? 1u : 0u) << i;
  return static_cast<std::uint8_t>(mask);
}

std::uint8_t flow_control::wanted(std::uint8_t above) const {
  if (send_pfc != 0) return above & send_pfc;
  return send_pause && above != 0 ? 0xff : 0;
}

bool flow_control::news(std::uint8_t above, sim::time_ps now) const {
  const std::uint8_t want = wanted(above);
  return want != told_ || (want != 0 && now >= refresh_at_);
}

wire::pause_frame flow_control::tell(std::uint8_t above, sim::time_ps now, std::uint16_t quanta,
                                     unsigned refresh_percent) {
  const std::uint8_t want = wanted(above);
  wire::pause_frame p;
  p.per_priority = send_pfc != 0;
  if (p.per_priority) {
    p.enabled = want | told_;
    for (unsigned i = 0; i < 8; ++i) p.quanta[i] = ((want >> i) & 1) != 0 ? quanta : std::uint16_t{0};
  } else {
    p.quanta[0] = want != 0 ? quanta : std::uint16_t{0};
  }
  remember(want, now);
  refresh_at_ = want != 0 ? now + quanta_time(quanta) * refresh_percent / 100 : ~sim::time_ps{0};
  return p;
}

void flow_control::remember(std::uint8_t want, sim::time_ps now) {
  for (unsigned i = 0; i < 8; ++i) {
    const bool is = ((want >> i) & 1) != 0;
    const bool was = ((told_ >> i) & 1) != 0;
    counters& c = counters_[i];
    if (is || was) ++c.tx_frames;
    if (is && !was) ++c.tx_transitions, told_since_[i] = now;
    if (was && !is) c.tx_duration_ps += now - told_since_[i];
  }
  told_ = want;
}

void flow_control::settle(sim::time_ps now) {
  for (unsigned i = 0; i < 8; ++i) {
    counters& c = counters_[i];
    if (const sim::time_ps end = std::min(until_[i], now); end > counted_[i]) {
      c.rx_duration_ps += end - counted_[i];
      counted_[i] = end;
    }
    if (((told_ >> i) & 1) == 0 || now <= told_since_[i]) continue;
    c.tx_duration_ps += now - told_since_[i];
    told_since_[i] = now;
  }
}

/// What was left of a pause, or has begun of one, ends here.
void flow_control::reset(sim::time_ps now) {
  settle(now);
  for (sim::time_ps& until : until_) until = std::min(until, now);
  latest_until_ = now;
  told_ = 0;
  refresh_at_ = ~sim::time_ps{0};
}

/// A pause that lasts is counted from now on.
void flow_control::clear_counters(sim::time_ps now) {
  settle(now);
  counters_.fill({});
}

void flow_control::announce(const std::string& prefix, sim::statistics& to, std::function<sim::time_ps()> now) {
  to.settle_by([this, now = std::move(now)] { settle(now()); });
  for (unsigned i = 0; i < 8; ++i) {
    const counters& c = counters_[i];
    const std::string start = prefix + ".prio" + std::to_string(i) + ".";
    to.add(start + "rx_frames", c.rx_frames);
    to.add(start + "rx_duration_ps", c.rx_duration_ps);
    to.add(start + "rx_transitions", c.rx_transitions);
    to.add(start + "tx_frames", c.tx_frames);
    to.add(start + "tx_duration_ps", c.tx_duration_ps);
    to.add(start + "tx_transitions", c.tx_transitions);
  }
}

}  // namespace rnic::mac
