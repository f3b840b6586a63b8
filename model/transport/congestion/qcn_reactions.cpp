// SPDX-License-Identifier: Apache-2.0
#include "model/transport/congestion/qcn_reactions.h"

#include <algorithm>

#include "model/transport/congestion/qcn_cr.h"

namespace rnic::transport {

namespace {

constexpr sim::time_ps centisecond = 10'000 * sim::ps_per_us;

std::uint32_t qcn_group::*const fields[] = {nullptr,
                                            &qcn_group::max_rps,
                                            &qcn_group::time_reset_us,
                                            &qcn_group::byte_reset,
                                            &qcn_group::threshold,
                                            &qcn_group::max_rate_mbps,
                                            &qcn_group::ai_rate_mbps,
                                            &qcn_group::hai_rate_mbps,
                                            &qcn_group::gd,
                                            &qcn_group::min_dec_percent,
                                            &qcn_group::min_rate_mbps};
static_assert(std::size(fields) == cr::qcn_parameters);

std::uint32_t mbps(std::uint64_t kbps) { return static_cast<std::uint32_t>(kbps / 1000); }

}  // namespace

qcn_reactions::qcn_reactions(const qcn_config& config, const std::array<std::uint32_t, qcn_ports>& line_mbps)
    : line_mbps_(line_mbps), mask_((1u << config.log_flows) - 1) {}

void qcn_reactions::announce(const std::string& name, sim::statistics& to) const {
  const std::pair<const char*, const std::uint64_t*> all[] = {
      {"handled", &count_.handled},   {"unknown_flow", &count_.unknown_flow}, {"disabled", &count_.disabled},
      {"no_place", &count_.no_place}, {"created", &count_.created},           {"ended", &count_.ended}};
  for (const auto& [n, counter] : all) to.add(name + ".rp_cnm_" + n, *counter);
}

qcn_reactions::flow_entry& qcn_reactions::place_of(const std::uint8_t* dmac, std::uint32_t dest_qp) {
  std::uint64_t h = dest_qp;
  for (unsigned i = 0; i < 6; ++i) h = (h ^ dmac[i]) * 0x100000001b3;  // FNV-1a
  return flows_[(h ^ h >> 32) & mask_];
}

void qcn_reactions::note(std::uint32_t qpn, const std::uint8_t* dmac, std::uint32_t dest_qp) {
  flow_entry& e = place_of(dmac, dest_qp);
  std::copy_n(dmac, e.dmac.size(), e.dmac.begin());
  e.valid = true;
  e.dest_qp = dest_qp;
  e.qpn = qpn;
}

std::optional<std::uint32_t> qcn_reactions::flow_of(const cnm_notice& n) {
  group& g = groups_[qcn_group_of(n.port, n.priority)];
  if (!g.set.enable) {
    ++count_.disabled;
    ++g.ignored;
    return std::nullopt;
  }
  const flow_entry& e = place_of(n.dmac.data(), n.dest_qp);
  if (e.valid && e.dest_qp == n.dest_qp && e.dmac == n.dmac) return e.qpn;
  ++count_.unknown_flow;
  ++g.ignored;
  return std::nullopt;
}

qcn_reactions::number qcn_reactions::take(const cnm_notice& n, std::uint32_t qpn, number at, sim::time_ps now) {
  const unsigned named = qcn_group_of(n.port, n.priority);
  if (!holds(at, qpn)) at = open(named, qpn, n.port, now);
  if (at == none) {
    ++count_.no_place;
    ++groups_[named].ignored;
    return none;
  }
  point& p = points_[at - 1u];
  group& g = groups_[p.group];
  p.rate.notified(g.set, n.feedback, now);
  count_rate(p);
  g.least_kbps = g.handled == 0 ? g.total_kbps : std::min(g.least_kbps, g.total_kbps);
  g.most_kbps = std::max(g.most_kbps, g.total_kbps);
  ++g.handled;
  ++count_.handled;
  return at;
}

qcn_reactions::number qcn_reactions::open(unsigned g, std::uint32_t qpn, unsigned port, sim::time_ps now) {
  group& of = groups_[g];
  if (of.points >= of.set.max_rps) end_finished(g, now);
  if (of.points >= of.set.max_rps) return none;
  if (free_.empty()) {
    if (points_.size() == most_points) return none;
    points_.emplace_back();
    free_.push_back(static_cast<number>(points_.size()));
  }
  const number at = free_.back();
  free_.pop_back();
  point& p = points_[at - 1u];
  p.there = true;
  p.group = static_cast<std::uint8_t>(g);
  p.qpn = qpn;
  p.since = now;
  p.rate.begin(of.set, line_mbps_[port] * 1000, now);
  ++of.points;
  ++of.created;
  ++count_.created;
  of.since_ps += now;
  return at;
}

void qcn_reactions::count_rate(point& p) {
  group& g = groups_[p.group];
  g.total_kbps += p.rate.rate_kbps();
  g.total_kbps -= p.counted_kbps;
  p.counted_kbps = p.rate.rate_kbps();
}

std::uint32_t qcn_reactions::sent(number at, std::uint32_t bytes, sim::time_ps now) {
  point& p = points_[at - 1u];
  p.rate.sent(groups_[p.group].set, bytes, now);
  if (p.rate.ended()) {
    close(p, p.rate.ended_at());
    return 0;
  }
  count_rate(p);
  return p.rate.rate_kbps();
}

void qcn_reactions::end_finished(unsigned g, sim::time_ps now) {
  for (point& p : points_) {
    if (!p.there || p.group != g) continue;
    p.rate.advance(groups_[g].set, now);
    if (p.rate.ended())
      close(p, p.rate.ended_at());
    else
      count_rate(p);
  }
}

void qcn_reactions::close(point& p, sim::time_ps at) {
  group& g = groups_[p.group];
  g.total_kbps -= p.counted_kbps;
  g.since_ps -= p.since;
  g.past_ps += at - p.since;
  --g.points;
  ++count_.ended;
  p = {};
  free_.push_back(static_cast<number>(&p - points_.data() + 1));
}

void qcn_reactions::forget(number at, sim::time_ps now) { close(points_[at - 1u], now); }

void qcn_reactions::clear() {
  flows_.clear();
  points_.clear();
  free_.clear();
  groups_.fill({});
  enabled_ = 0;
}

std::uint32_t qcn_reactions::highest_index(unsigned g) const {
  for (std::size_t i = points_.size(); i-- != 0;)
    if (points_[i].there && points_[i].group == g) return static_cast<std::uint32_t>(i + 1);
  return 0;
}

std::uint32_t qcn_reactions::read(std::uint32_t offset, sim::time_ps now) const {
  const unsigned n = (offset - cr::qcn) / cr::qcn_stride, in_group = (offset - cr::qcn) % cr::qcn_stride;
  if (n >= qcn_groups) return 0;
  const group& g = groups_[n];
  if (in_group < 4 * cr::qcn_parameters)
    return in_group / 4 == 0 ? (g.set.enable ? 1u : 0u) : g.set.*fields[in_group / 4];
  if (in_group < cr::qcn_statistics) return 0;
  switch ((in_group - cr::qcn_statistics) / 4) {
    case cr::qcn_centiseconds:
      return static_cast<std::uint32_t>((g.past_ps + g.points * now - g.since_ps) / centisecond >> 32);
    case cr::qcn_centiseconds + 1:
      return static_cast<std::uint32_t>((g.past_ps + g.points * now - g.since_ps) / centisecond);
    case cr::qcn_ignored:
      return g.ignored;
    case cr::qcn_created:
      return g.created;
    case cr::qcn_handled:
      return g.handled;
    case cr::qcn_total_rate:
      return mbps(g.total_kbps);
    case cr::qcn_least_total:
      return mbps(g.least_kbps);
    case cr::qcn_most_total:
      return mbps(g.most_kbps);
    case cr::qcn_highest_index:
      return highest_index(n);
    default:
      return 0;
  }
}

void qcn_reactions::write(std::uint32_t offset, std::uint32_t value, sim::time_ps now) {
  const unsigned n = (offset - cr::qcn) / cr::qcn_stride, word = (offset - cr::qcn) % cr::qcn_stride / 4;
  if (n >= qcn_groups || word >= cr::qcn_parameters) return;
  qcn_group& g = groups_[n].set;
  if (word != 0) {
    g.*fields[word] = value;
    return;
  }
  g.enable = (value & 1) != 0;
  enabled_ = static_cast<std::uint16_t>(g.enable ? enabled_ | 1u << n : enabled_ & ~(1u << n));
  if (reacts() && flows_.empty()) flows_.resize(mask_ + std::size_t{1});
  if (g.enable) return;
  for (point& p : points_)
    if (p.there && p.group == n) close(p, now);
}

}  // namespace rnic::transport
