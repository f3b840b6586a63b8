// SPDX-License-Identifier: Apache-2.0
#include "host_driver/workloads/verb.h"

#include <algorithm>

namespace rnic::workloads {

const std::vector<verb>& verbs() {
  static const std::vector<verb> table = {
      {"send", IBV_WR_SEND, IBV_WC_SEND, true, IBV_WC_RECV, false, false, false, false},
      {"send_imm", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, true, IBV_WC_RECV, true, false, false, false},
      {"write", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, false, IBV_WC_RECV, false, false, false, false},
      {"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, true, IBV_WC_RECV_RDMA_WITH_IMM, true, false, false,
       false},
      {"read", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, false, IBV_WC_RECV, false, true, false, false},
      {"cas", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, false, IBV_WC_RECV, false, true, true, false},
      {"fadd", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, false, IBV_WC_RECV, false, true, true, false},
      {"masked_cas", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, false, IBV_WC_RECV, false, true, true, true},
      {"masked_fadd", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, false, IBV_WC_RECV, false, true, true, true},
  };
  return table;
}

const verb* find_verb(const std::string& name) {
  const auto at = std::find_if(verbs().begin(), verbs().end(), [&](const verb& v) { return name == v.name; });
  return at == verbs().end() ? nullptr : &*at;
}

bool carries(ibv_qp_type transport, const verb& v) {
  if (transport == IBV_QPT_UD) return v.opcode == IBV_WR_SEND || v.opcode == IBV_WR_SEND_WITH_IMM;
  return v.masked ? transport == IBV_QPT_RC : transport != IBV_QPT_UC || !v.reads;
}

}  // namespace rnic::workloads
