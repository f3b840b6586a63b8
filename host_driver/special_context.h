// SPDX-License-Identifier: Apache-2.0
// What the contexts of queue pairs without a peer have alike: QP1 of a port, its proxies and tunnels.
#pragma once

#include <cstdint>

#include "host_driver/profile.h"
#include "host_driver/verbs_objects.h"
#include "model/abi/contexts.h"

namespace rnic::host_driver {

/// Says what every step from RESET to RTS says (ib/qp.c: __mlx4_ib_modify_qp): size of queues and messages, numbers,
/// domain, Q_Key and the port of the path. `service`: of abi::qpc; `log_message`: longest message.
inline void fill_special_context(const queue_pair& qp, ibv_qp_state to, unsigned service, unsigned log_message,
                                 std::uint32_t qkey, std::uint32_t uar, std::uint8_t* context) {
  namespace f = abi::qpc;
  constexpr std::uint32_t migrated = 3u << 11;
  constexpr std::uint8_t sched_queue_of_port_1 = 0x83;
  const auto size = [](const auto& ring) {
    return static_cast<std::uint8_t>(log2_up(ring.count) << 3 | (ring.log_stride - 4));
  };
  abi::set(context, f::flags, static_cast<std::uint32_t>(to) << 28 | service << 16 | migrated);
  abi::set(context, f::mtu_msgmax, static_cast<std::uint8_t>(IBV_MTU_4096 << 5 | log_message));
  abi::set(context, f::rq_size_stride, size(qp.rq));
  abi::set(context, f::sq_size_stride, size(qp.sq));
  abi::set(context, f::uar, uar);
  abi::set(context, f::local_qpn, qp.qp_num);
  abi::set(context, f::pd, qp.domain->pdn);
  abi::set(context, f::send_cqn, qp.send_queue->cqn);
  abi::set(context, f::receive_cqn, qp.receive_queue->cqn);
  abi::set(context, f::qkey, qkey);
  abi::set(context + f::primary_path, abi::path::sched_queue,
           static_cast<std::uint8_t>(sched_queue_of_port_1 | (qp.port - 1) << 6));
}

}  // namespace rnic::host_driver
