// SPDX-License-Identifier: Apache-2.0
// Memories on chip between the requester and its neighbours.
#pragma once

#include "model/transport/requester/config.h"
#include "model/transport/requester/descriptor_memory.h"
#include "model/transport/requester/scatter_lists.h"
#include "model/transport/requester/withdrawals.h"

namespace rnic::transport {

/// Memories that the requester has the one side of and a neighbour the other: they lie between the blocks, as channels
/// do. Each says at its declaration which ports it has and when one side sees what the other has written.
struct requester_memories {
  explicit requester_memories(const requester_config& c)
      : descriptors(c.processing_units), withdrawn(c.log_qps), lists(c.scatter_lists) {}

  descriptor_memory descriptors;  ///< descriptor fetch has the port to write, each processing unit one to read
  withdrawals withdrawn;          ///< go-back has the port to write, gather three to read
  scatter_lists lists;            ///< the message table has one port, scatter the other
};

}  // namespace rnic::transport
