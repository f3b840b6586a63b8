// SPDX-License-Identifier: Apache-2.0
// The words of commands and answers: the names that <infiniband/verbs.h> has, in small letters and without prefix.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <string>

#include "host_driver/cm/connection_manager.h"
#include "host_driver/verbs_objects.h"

namespace rnic::serve::script {

struct word_value {
  const char* text;
  int value;
};
template <std::size_t N>
using vocabulary = std::array<word_value, N>;

inline constexpr vocabulary<5> qp_types{{{"rc", IBV_QPT_RC},
                                         {"uc", IBV_QPT_UC},
                                         {"ud", IBV_QPT_UD},
                                         {"xrc_send", IBV_QPT_XRC_SEND},
                                         {"xrc_recv", IBV_QPT_XRC_RECV}}};
inline constexpr vocabulary<7> qp_states{{{"reset", IBV_QPS_RESET},
                                          {"init", IBV_QPS_INIT},
                                          {"rtr", IBV_QPS_RTR},
                                          {"rts", IBV_QPS_RTS},
                                          {"sqd", IBV_QPS_SQD},
                                          {"sqe", IBV_QPS_SQE},
                                          {"err", IBV_QPS_ERR}}};
inline constexpr vocabulary<3> migration_states{
    {{"migrated", IBV_MIG_MIGRATED}, {"rearm", IBV_MIG_REARM}, {"armed", IBV_MIG_ARMED}}};
inline constexpr vocabulary<5> access_rights{{{"local_write", IBV_ACCESS_LOCAL_WRITE},
                                              {"remote_write", IBV_ACCESS_REMOTE_WRITE},
                                              {"remote_read", IBV_ACCESS_REMOTE_READ},
                                              {"remote_atomic", IBV_ACCESS_REMOTE_ATOMIC},
                                              {"mw_bind", IBV_ACCESS_MW_BIND}}};
inline constexpr vocabulary<4> send_flags{{{"signaled", IBV_SEND_SIGNALED},
                                           {"fence", IBV_SEND_FENCE},
                                           {"solicited", IBV_SEND_SOLICITED},
                                           {"inline", IBV_SEND_INLINE}}};
/// Opcodes of IBV_WR_DRIVER1 begin here.
inline constexpr int masked_opcodes = 1 << 16;
inline constexpr vocabulary<12> send_opcodes{
    {{"rdma_write", IBV_WR_RDMA_WRITE},
     {"rdma_write_with_imm", IBV_WR_RDMA_WRITE_WITH_IMM},
     {"send", IBV_WR_SEND},
     {"send_with_imm", IBV_WR_SEND_WITH_IMM},
     {"rdma_read", IBV_WR_RDMA_READ},
     {"atomic_cmp_and_swp", IBV_WR_ATOMIC_CMP_AND_SWP},
     {"atomic_fetch_and_add", IBV_WR_ATOMIC_FETCH_AND_ADD},
     {"local_inv", IBV_WR_LOCAL_INV},
     {"bind_mw", IBV_WR_BIND_MW},
     {"send_with_inv", IBV_WR_SEND_WITH_INV},
     {"masked_cmp_and_swp", masked_opcodes + static_cast<int>(host_driver::driver_opcode::masked_compare_swap)},
     {"masked_fetch_and_add", masked_opcodes + static_cast<int>(host_driver::driver_opcode::masked_fetch_add)}}};
inline constexpr vocabulary<23> statuses{{{"success", IBV_WC_SUCCESS},
                                          {"loc_len_err", IBV_WC_LOC_LEN_ERR},
                                          {"loc_qp_op_err", IBV_WC_LOC_QP_OP_ERR},
                                          {"loc_eec_op_err", IBV_WC_LOC_EEC_OP_ERR},
                                          {"loc_prot_err", IBV_WC_LOC_PROT_ERR},
                                          {"wr_flush_err", IBV_WC_WR_FLUSH_ERR},
                                          {"mw_bind_err", IBV_WC_MW_BIND_ERR},
                                          {"bad_resp_err", IBV_WC_BAD_RESP_ERR},
                                          {"loc_access_err", IBV_WC_LOC_ACCESS_ERR},
                                          {"rem_inv_req_err", IBV_WC_REM_INV_REQ_ERR},
                                          {"rem_access_err", IBV_WC_REM_ACCESS_ERR},
                                          {"rem_op_err", IBV_WC_REM_OP_ERR},
                                          {"retry_exc_err", IBV_WC_RETRY_EXC_ERR},
                                          {"rnr_retry_exc_err", IBV_WC_RNR_RETRY_EXC_ERR},
                                          {"loc_rdd_viol_err", IBV_WC_LOC_RDD_VIOL_ERR},
                                          {"rem_inv_rd_req_err", IBV_WC_REM_INV_RD_REQ_ERR},
                                          {"rem_abort_err", IBV_WC_REM_ABORT_ERR},
                                          {"inv_eecn_err", IBV_WC_INV_EECN_ERR},
                                          {"inv_eec_state_err", IBV_WC_INV_EEC_STATE_ERR},
                                          {"fatal_err", IBV_WC_FATAL_ERR},
                                          {"resp_timeout_err", IBV_WC_RESP_TIMEOUT_ERR},
                                          {"general_err", IBV_WC_GENERAL_ERR},
                                          {"tm_err", IBV_WC_TM_ERR}}};
inline constexpr vocabulary<10> completion_opcodes{{{"send", IBV_WC_SEND},
                                                    {"rdma_write", IBV_WC_RDMA_WRITE},
                                                    {"rdma_read", IBV_WC_RDMA_READ},
                                                    {"comp_swap", IBV_WC_COMP_SWAP},
                                                    {"fetch_add", IBV_WC_FETCH_ADD},
                                                    {"bind_mw", IBV_WC_BIND_MW},
                                                    {"local_inv", IBV_WC_LOCAL_INV},
                                                    {"recv", IBV_WC_RECV},
                                                    {"recv_rdma_with_imm", IBV_WC_RECV_RDMA_WITH_IMM},
                                                    {"driver1", IBV_WC_DRIVER1}}};
inline constexpr vocabulary<13> event_types{{{"cq_err", IBV_EVENT_CQ_ERR},
                                             {"qp_fatal", IBV_EVENT_QP_FATAL},
                                             {"qp_req_err", IBV_EVENT_QP_REQ_ERR},
                                             {"qp_access_err", IBV_EVENT_QP_ACCESS_ERR},
                                             {"comm_est", IBV_EVENT_COMM_EST},
                                             {"sq_drained", IBV_EVENT_SQ_DRAINED},
                                             {"path_mig", IBV_EVENT_PATH_MIG},
                                             {"path_mig_err", IBV_EVENT_PATH_MIG_ERR},
                                             {"port_active", IBV_EVENT_PORT_ACTIVE},
                                             {"port_err", IBV_EVENT_PORT_ERR},
                                             {"srq_err", IBV_EVENT_SRQ_ERR},
                                             {"srq_limit_reached", IBV_EVENT_SRQ_LIMIT_REACHED},
                                             {"qp_last_wqe_reached", IBV_EVENT_QP_LAST_WQE_REACHED}}};
inline constexpr vocabulary<9> cm_events{
    {{"request", static_cast<int>(host_driver::cm::event::kind::request)},
     {"reply", static_cast<int>(host_driver::cm::event::kind::reply)},
     {"established", static_cast<int>(host_driver::cm::event::kind::established)},
     {"rejected", static_cast<int>(host_driver::cm::event::kind::rejected)},
     {"unreachable", static_cast<int>(host_driver::cm::event::kind::unreachable)},
     {"disconnect_request", static_cast<int>(host_driver::cm::event::kind::disconnect_request)},
     {"disconnected", static_cast<int>(host_driver::cm::event::kind::disconnected)},
     {"service_request", static_cast<int>(host_driver::cm::event::kind::service_request)},
     {"service_reply", static_cast<int>(host_driver::cm::event::kind::service_reply)}}};

/// The word of a value, or its number when it has none.
template <std::size_t N>
std::string said(const vocabulary<N>& table, int value) {
  for (const word_value& w : table)
    if (w.value == value) return w.text;
  return std::to_string(value);
}

}  // namespace rnic::serve::script
