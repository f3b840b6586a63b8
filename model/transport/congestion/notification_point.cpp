// SPDX-License-Identifier: Apache-2.0
#include "model/transport/congestion/notification_point.h"

#include <algorithm>

namespace rnic::transport {

notification_point::notification_point(const notification_config& c, unsigned log_qps)
    : config_(sim::checked(c, "congestion.notification")),
      mask_((1u << log_qps) - 1),
      by_qp_(std::max<std::size_t>(1, (std::size_t{1} << log_qps) / page)) {}

notification_point::moment& notification_point::of_qp(std::uint32_t qpn) {
  auto& p = by_qp_[(qpn & mask_) / page];
  if (!p) p = std::make_unique<std::array<moment, page>>();
  return (*p)[qpn % page];
}

// Whose last CNP is longest ago gives its place to a new one.
notification_point::moment& notification_point::of_peer(const wire::gid& address) {
  peer_entry* oldest = &by_peer_[0];
  for (peer_entry& e : by_peer_) {
    if (e.last != 0 && e.address == address) return e.last;
    if (e.last < oldest->last) oldest = &e;
  }
  oldest->address = address;
  oldest->last = 0;
  return oldest->last;
}

bool notification_point::due(std::uint32_t qpn, const wire::gid& peer, unsigned port, sim::time_ps now) {
  moment& last = config_.scope == cnp_scope::qp        ? of_qp(qpn)
                 : config_.scope == cnp_scope::address ? of_peer(peer)
                                                       : by_port_[port & 1];
  if (last != 0 && now < last - 1 + config_.interval_us * sim::ps_per_us) return false;
  last = now + 1;
  return true;
}

void notification_point::clear() {
  for (auto& p : by_qp_)
    if (p) p->fill(0);
  by_peer_.fill({});
  by_port_.fill(0);
}

}  // namespace rnic::transport
