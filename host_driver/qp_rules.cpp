// SPDX-License-Identifier: Apache-2.0
// Which attributes a queue pair transition needs and allows.
#include "host_driver/qp_rules.h"

#include <array>

namespace rnic::host_driver {

namespace {

/// What only the half of an RC queue pair that receives has, or only the one that sends: XRC queue pairs are one half.
constexpr int receiving = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int sending = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

/// Attributes for each service: RC, UC, UD, raw packet.
struct masks {
  int rc = 0, uc = 0, ud = 0, raw = 0;
  int of(ibv_qp_type type) const {
    if (type == IBV_QPT_XRC_SEND) return rc & ~receiving;
    if (type == IBV_QPT_XRC_RECV) return rc & ~sending;
    if (type == IBV_QPT_RAW_PACKET) return raw;
    return type == IBV_QPT_UD ? ud : type == IBV_QPT_UC ? uc : rc;
  }
};
struct transition {
  ibv_qp_state from, to;
  masks required, optional;
};

constexpr int key = IBV_QP_PKEY_INDEX, access = IBV_QP_ACCESS_FLAGS, alt = IBV_QP_ALT_PATH,
              migration = IBV_QP_PATH_MIG_STATE, current = IBV_QP_CUR_STATE, qkey = IBV_QP_QKEY,
              rnr_timer = IBV_QP_MIN_RNR_TIMER;
constexpr int path = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr masks init_set{key | IBV_QP_PORT | access, key | IBV_QP_PORT | access, key | IBV_QP_PORT | qkey, IBV_QP_PORT};
constexpr masks running{current | access | alt | migration | rnr_timer, current | access | alt | migration,
                        current | qkey};
constexpr masks drain{IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY};
constexpr masks nothing{};

constexpr std::array<transition, 10> table{{
    {IBV_QPS_RESET, IBV_QPS_INIT, init_set, nothing},
    {IBV_QPS_INIT, IBV_QPS_INIT, nothing, init_set},
    {IBV_QPS_INIT,
     IBV_QPS_RTR,
     {path | IBV_QP_MAX_DEST_RD_ATOMIC | rnr_timer, path, 0},
     {alt | access | key, alt | access | key, key | qkey}},
    {IBV_QPS_RTR,
     IBV_QPS_RTS,
     {IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_SQ_PSN,
      IBV_QP_SQ_PSN},
     running},
    {IBV_QPS_RTS, IBV_QPS_RTS, nothing, running},
    {IBV_QPS_RTS, IBV_QPS_SQD, nothing, drain},
    {IBV_QPS_SQD, IBV_QPS_RTS, nothing, running},
    {IBV_QPS_SQD,
     IBV_QPS_SQD,
     nothing,
     {IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
          IBV_QP_MAX_DEST_RD_ATOMIC | alt | access | key | rnr_timer | migration,
      IBV_QP_AV | alt | access | key | migration, key | qkey}},
    {IBV_QPS_SQE, IBV_QPS_RTS, nothing, {0, current | access, current | qkey}},
    {IBV_QPS_RESET, IBV_QPS_RESET, nothing, nothing},
}};

}  // namespace

bool modify_qp_is_ok(ibv_qp_state from, ibv_qp_state to, ibv_qp_type type, int mask) {
  if ((mask & IBV_QP_CUR_STATE) != 0 && from != IBV_QPS_RTR && from != IBV_QPS_RTS && from != IBV_QPS_SQD &&
      from != IBV_QPS_SQE) {
    return false;
  }
  if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET)) return (mask & ~IBV_QP_STATE) == 0;
  for (const auto& t : table) {
    if (t.from != from || t.to != to) continue;
    const int required = t.required.of(type);
    return (mask & required) == required && (mask & ~(required | t.optional.of(type) | IBV_QP_STATE)) == 0;
  }
  return false;
}

}  // namespace rnic::host_driver
