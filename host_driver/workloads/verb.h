// SPDX-License-Identifier: Apache-2.0
// The verbs that experiments send, as a table.
#pragma once

#include <infiniband/verbs.h>

#include <string>
#include <vector>

namespace rnic::workloads {

/// What a message is, from both ends.
struct verb {
  const char* name;
  ibv_wr_opcode opcode;    ///< masked atomics: of the plain one
  ibv_wc_opcode sent;      ///< of the sender's completion
  bool receives;           ///< consumes a receive of the other end
  ibv_wc_opcode received;  ///< of the receiver's completion
  bool immediate;
  bool reads;   ///< the bytes come from the other end
  bool atomic;  ///< they are a word's original value
  bool masked;  ///< of kernel users, host_driver::masked_atomic_wr
  bool writes() const { return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }
};

const std::vector<verb>& verbs();
/// nullptr: none of this name.
const verb* find_verb(const std::string& name);

/// Whether a transport service carries it (IBA volume 1, table 38; masked atomics, which the standard has not: RC). XRC
/// is IBV_QPT_XRC_SEND.
bool carries(ibv_qp_type transport, const verb& v);

}  // namespace rnic::workloads
