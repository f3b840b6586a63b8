// SPDX-License-Identifier: Apache-2.0
// What follows from a queue pair's context alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/icm/contexts.h"
#include "model/transport/requester/mlx_wqe.h"
#include "model/transport/requester/send_wqe.h"
#include "model/wire/psn.h"

namespace rnic::transport {

inline constexpr std::uint32_t half_window = 1u << 23;  ///< of the PSNs (IBA 9.7.2)

inline wire::psn_t next_psn(const icm::requester_context& c) { return wire::psn_t(c.next_psn); }
inline wire::psn_t unacked_psn(const icm::requester_context& c) { return wire::psn_t(c.unacked_psn); }

/// Path MTU in bytes; a code that does not exist is taken as the nearest one.
inline std::uint32_t mtu_of(const icm::requester_context& c) {
  return icm::mtu_bytes(c.dest.mtu_code < 1 ? 1 : c.dest.mtu_code > 5 ? 5 : c.dest.mtu_code);
}
/// Bytes of the message that a packet takes: the path MTU, or what an Ethernet QP puts into a frame.
inline std::uint32_t packet_bytes(const icm::requester_context& c, const send_wqe& wqe) {
  if (c.type == icm::service::mlx) return longest_special_frame;
  if (c.type != icm::service::ethernet) return mtu_of(c);
  return wqe.is_segmented() ? std::max<std::uint32_t>(1, wqe.ethernet.segment_bytes) : std::max(1u, wqe.length);
}
/// READs and atomics that may be under way.
inline unsigned most_reads(const icm::requester_context& c) { return 1u << std::min<unsigned>(c.log_max_rd_atomic, 7); }

}  // namespace rnic::transport
