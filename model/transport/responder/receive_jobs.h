// SPDX-License-Identifier: Apache-2.0
// What the responder asks receive fetch for, and what it is told.
#pragma once

#include <cstdint>

#include "model/transport/responder/receive_memory.h"

namespace rnic::transport {

/// Descriptors that lie behind each other in a queue's buffer, or a doorbell record. A place has one job at a time.
struct receive_job {
  receive_place place;         ///< where they go; given back
  std::uint64_t mtt = 0;       ///< descriptors: of the queue's buffer
  std::uint64_t at = 0;        ///< descriptors: first byte in it; record: bus address
  std::uint32_t bytes = 0;     ///< descriptors: 1 to what the place has; record: receive_memory::record_bytes
  std::uint16_t function = 0;  ///< that the queue belongs to
  std::uint8_t log_page = 12;
};

/// All of a job is in the receive memory, or will never be. There is one for each job.
struct receive_fetch_result {
  receive_place place;
  bool ok = false;  ///< false: memory or translation refused
};

}  // namespace rnic::transport
