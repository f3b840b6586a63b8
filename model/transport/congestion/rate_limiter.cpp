// SPDX-License-Identifier: Apache-2.0
// When a queue pair may send its next packet.
#include "model/transport/congestion/rate_limiter.h"

#include <algorithm>
#include <functional>

#include "model/transport/congestion/rates.h"

namespace rnic::transport {

namespace {

constexpr std::uint64_t kbps_ps_per_bit = 1'000'000'000;  // a bit lasts this many ps at 1 kb/s
constexpr std::size_t usual_parkings = 1024;

}  // namespace

rate_limiter::rate_limiter(const congestion_config& c, const sim::clock_domain& domain, unsigned log_qps)
    : config_(sim::checked(c, "congestion")),
      domain_(domain),
      qcn_(config_.qcn, config_.line_mbps),
      mask_((1u << log_qps) - 1),
      pages_(std::max<std::size_t>(1, (std::size_t{1} << log_qps) / page)) {}

rate_limiter::flow* rate_limiter::find(std::uint32_t qpn) const {
  const auto& p = pages_[(qpn & mask_) / page];
  return p ? &(*p)[qpn % page] : nullptr;
}

rate_limiter::flow& rate_limiter::make(std::uint32_t qpn) {
  auto& p = pages_[(qpn & mask_) / page];
  if (!p) p = std::make_unique<std::array<flow, page>>();
  if (!any_) parking_.reserve(usual_parkings);
  any_ = true;
  return (*p)[qpn % page];
}

void rate_limiter::limit(std::uint32_t qpn, std::uint32_t kbps) {
  if (kbps != 0)
    make(qpn).limit_kbps = kbps;
  else if (flow* f = find(qpn); f != nullptr)
    f->limit_kbps = 0;
}

bool rate_limiter::change_limit(std::uint32_t qpn, std::uint32_t kbps) {
  flow* f = find(qpn);
  const std::uint32_t was = f != nullptr ? f->limit_kbps : 0;
  limit(qpn, kbps);
  if (f == nullptr || was == 0 || was == kbps || f->reaction.active() || qcn_.holds(f->qcn, qpn)) return false;
  const sim::time_ps now = domain_.now_ps();
  if (f->next > now) f->next = kbps == 0 ? now : now + (f->next - now) * was / kbps;
  return std::exchange(f->parks, false);
}

bool rate_limiter::limits(std::uint32_t qpn) const {
  const flow* f = find(qpn);
  return f != nullptr && (f->limit_kbps != 0 || f->reaction.active() || qcn_.holds(f->qcn, qpn));
}

void rate_limiter::notified(std::uint32_t qpn, unsigned port) {
  make(qpn).reaction.notified(config_.reaction, config_.line_mbps[port] * 1000, domain_.now_ps());
}

void rate_limiter::notified(const cnm_notice& n) {
  const auto qpn = qcn_.flow_of(n);
  if (!qpn) return;
  flow& f = make(*qpn);
  f.qcn = qcn_.take(n, *qpn, f.qcn, domain_.now_ps());
}

sim::cycle_t rate_limiter::due(std::uint32_t qpn) const {
  const flow* f = find(qpn);
  return f == nullptr ? 0 : domain_.edge_at_or_after(f->next);
}

void rate_limiter::sent(std::uint32_t qpn, std::uint32_t bytes) {
  flow* f = find(qpn);
  if (f == nullptr) return;
  const sim::time_ps now = domain_.now_ps();
  const std::uint32_t on_line = bytes + config_.line_overhead_bytes;
  std::uint32_t kbps = f->limit_kbps;
  if (f->reaction.active()) {
    f->reaction.sent(config_.reaction, on_line, now);
    kbps = lower_rate(kbps, f->reaction.rate_kbps(config_.reaction, now));
  }
  if (qcn_.holds(f->qcn, qpn)) kbps = lower_rate(kbps, qcn_.sent(f->qcn, on_line, now));
  if (kbps == 0) return;
  const sim::time_ps late = now - std::min(now, f->next), excused = domain_.edge_time(config_.catch_up_cycles + 1u);
  f->next = (late <= excused ? f->next : now) + (std::uint64_t{on_line} * 8 * kbps_ps_per_bit + kbps - 1) / kbps;
}

void rate_limiter::forget(std::uint32_t qpn) {
  flow* f = find(qpn);
  if (f == nullptr) return;
  if (qcn_.holds(f->qcn, qpn)) qcn_.forget(f->qcn, domain_.now_ps());
  *f = flow{};
}

void rate_limiter::clear() {
  for (auto& p : pages_)
    if (p) p->fill(flow{});
  qcn_.clear();
  parking_.clear();
}

void rate_limiter::park(std::uint32_t qpn, sim::cycle_t edge) {
  flow& f = make(qpn);  // one that waits for its virtual port may have no limit of its own
  if (f.parks && f.parks_until <= edge) return;
  f.parks = true;
  f.parks_until = edge;
  parking_.emplace_back(edge, qpn);
  std::push_heap(parking_.begin(), parking_.end(), std::greater<>{});
}

bool rate_limiter::parked(std::uint32_t qpn) const {
  const flow* f = find(qpn);
  return f != nullptr && f->parks;
}

std::uint32_t rate_limiter::expired() {
  while (!parking_.empty() && parking_.front().first <= domain_.now()) {
    const auto [edge, qpn] = parking_.front();
    std::pop_heap(parking_.begin(), parking_.end(), std::greater<>{});
    parking_.pop_back();
    flow* f = find(qpn);
    if (f == nullptr || !f->parks || f->parks_until != edge) continue;
    f->parks = false;
    return qpn;
  }
  return none;
}

std::uint32_t rate_limiter::reaction_kbps(std::uint32_t qpn) {
  flow* f = find(qpn);
  return f != nullptr && f->reaction.active() ? f->reaction.rate_kbps(config_.reaction, domain_.now_ps()) : 0;
}

}  // namespace rnic::transport
