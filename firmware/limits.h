// SPDX-License-Identifier: Apache-2.0
// What QUERY_DEV_CAP and QUERY_PORT announce as limits, and commands are held to.
#pragma once

#include <cstdint>

#include "model/icm/contexts.h"

namespace rnic::firmware {

/// log2 of work queue entries: of a send or receive queue, of a shared receive queue.
inline constexpr unsigned log_max_qp_wqes = 14, log_max_srq_wqes = 14;
/// Bytes of a work queue entry. Its stride is the power of two above.
inline constexpr unsigned max_sq_bytes = 1008, max_rq_bytes = 512;
inline constexpr unsigned log_max_sq_stride = 10, log_max_rq_stride = 9;
static_assert(max_sq_bytes <= 1u << log_max_sq_stride && max_sq_bytes > 1u << (log_max_sq_stride - 1));
static_assert(max_rq_bytes == 1u << log_max_rq_stride);
/// log2 of READs and atomics under way: as responder, as requester.
inline constexpr unsigned log_max_responder_rdma = 4, log_max_requester_rdma = 7;
static_assert(1u << log_max_responder_rdma == icm::rdma_resources::depth);
/// log2 of members of a multicast group.
inline constexpr unsigned log_max_mcg_qps = 8;
static_assert(1u << log_max_mcg_qps == icm::multicast_group::max_members);
/// Of a path: 4096 bytes.
inline constexpr std::uint8_t largest_mtu_code = 5;
/// Bytes of an interface's MTU, and what a driver adds to it in SET_PORT: address fields, two VLAN tags and FCS
/// (net/en_netdev.c, MLX4_EN_EFF_MTU).
inline constexpr unsigned max_ethernet_mtu = 9600, ethernet_overhead = 14 + 2 * 4 + 4;

}  // namespace rnic::firmware
