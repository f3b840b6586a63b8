// SPDX-License-Identifier: Apache-2.0
// A counter of the device that tells its ports apart.
#pragma once

#include <cstdint>

namespace rnic::transport {

/// Two registers beside each other, both counted in one cycle: what has happened, and what of it on the second port.
struct port_count {
  std::uint64_t all = 0, second = 0;

  /// `port`: of the queue pair's path, from 0.
  void count(unsigned port) {
    ++all;
    second += port & 1;
  }
};

}  // namespace rnic::transport
