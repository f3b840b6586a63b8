// SPDX-License-Identifier: Apache-2.0
// The words of verbs_peer: the names that <infiniband/verbs.h> has, in small letters and without prefix.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>

/// Tables end with no text.
struct word {
  const char* text;
  int value;
};

static const struct word types[] = {{"rc", IBV_QPT_RC}, {"uc", IBV_QPT_UC}, {"ud", IBV_QPT_UD}, {NULL, 0}};
static const struct word states[] = {
    {"reset", IBV_QPS_RESET}, {"init", IBV_QPS_INIT}, {"rtr", IBV_QPS_RTR}, {"rts", IBV_QPS_RTS},
    {"sqd", IBV_QPS_SQD},     {"sqe", IBV_QPS_SQE},   {"err", IBV_QPS_ERR}, {NULL, 0}};
static const struct word rights[] = {
    {"local_write", IBV_ACCESS_LOCAL_WRITE}, {"remote_write", IBV_ACCESS_REMOTE_WRITE},
    {"remote_read", IBV_ACCESS_REMOTE_READ}, {"remote_atomic", IBV_ACCESS_REMOTE_ATOMIC},
    {"mw_bind", IBV_ACCESS_MW_BIND},         {NULL, 0}};
static const struct word flags[] = {{"signaled", IBV_SEND_SIGNALED},
                                    {"fence", IBV_SEND_FENCE},
                                    {"solicited", IBV_SEND_SOLICITED},
                                    {"inline", IBV_SEND_INLINE},
                                    {NULL, 0}};
static const struct word opcodes[] = {{"rdma_write", IBV_WR_RDMA_WRITE},
                                      {"rdma_write_with_imm", IBV_WR_RDMA_WRITE_WITH_IMM},
                                      {"send", IBV_WR_SEND},
                                      {"send_with_imm", IBV_WR_SEND_WITH_IMM},
                                      {"rdma_read", IBV_WR_RDMA_READ},
                                      {"atomic_cmp_and_swp", IBV_WR_ATOMIC_CMP_AND_SWP},
                                      {"atomic_fetch_and_add", IBV_WR_ATOMIC_FETCH_AND_ADD},
                                      {"local_inv", IBV_WR_LOCAL_INV},
                                      {"bind_mw", IBV_WR_BIND_MW},
                                      {"send_with_inv", IBV_WR_SEND_WITH_INV},
                                      {NULL, 0}};
static const struct word statuses[] = {{"success", IBV_WC_SUCCESS},
                                       {"loc_len_err", IBV_WC_LOC_LEN_ERR},
                                       {"loc_qp_op_err", IBV_WC_LOC_QP_OP_ERR},
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
                                       {"rem_abort_err", IBV_WC_REM_ABORT_ERR},
                                       {"fatal_err", IBV_WC_FATAL_ERR},
                                       {"general_err", IBV_WC_GENERAL_ERR},
                                       {NULL, 0}};
static const struct word done[] = {{"send", IBV_WC_SEND},
                                   {"rdma_write", IBV_WC_RDMA_WRITE},
                                   {"rdma_read", IBV_WC_RDMA_READ},
                                   {"comp_swap", IBV_WC_COMP_SWAP},
                                   {"fetch_add", IBV_WC_FETCH_ADD},
                                   {"bind_mw", IBV_WC_BIND_MW},
                                   {"local_inv", IBV_WC_LOCAL_INV},
                                   {"recv", IBV_WC_RECV},
                                   {"recv_rdma_with_imm", IBV_WC_RECV_RDMA_WITH_IMM},
                                   {NULL, 0}};
static const struct word events[] = {{"cq_err", IBV_EVENT_CQ_ERR},
                                     {"qp_fatal", IBV_EVENT_QP_FATAL},
                                     {"qp_req_err", IBV_EVENT_QP_REQ_ERR},
                                     {"qp_access_err", IBV_EVENT_QP_ACCESS_ERR},
                                     {"comm_est", IBV_EVENT_COMM_EST},
                                     {"sq_drained", IBV_EVENT_SQ_DRAINED},
                                     {"port_active", IBV_EVENT_PORT_ACTIVE},
                                     {"port_err", IBV_EVENT_PORT_ERR},
                                     {"srq_limit_reached", IBV_EVENT_SRQ_LIMIT_REACHED},
                                     {"qp_last_wqe_reached", IBV_EVENT_QP_LAST_WQE_REACHED},
                                     {NULL, 0}};
