// SPDX-License-Identifier: Apache-2.0
// Packets of the peer that the capture lacks, made up from what stands around them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Makes packets of one connection's peer. They have the addresses of a captured one, a payload of zeros and an ICRC of
/// their own.
class packet_maker {
 public:
  packet_maker(plan& p, int connection) : plan_(p), connection_(connection) {}

  /// What is to be sent: an operation with the headers that it needs.
  struct recipe {
    wire::operation what;
    std::uint32_t psn;
    std::uint32_t payload = 0;
    wire::reth reth;
    wire::aeth aeth;
    wire::atomic_eth atomic;
  };
  /// A packet like `model`, to be injected right before frame `before` of the capture: its index for plan::frame().
  /// no_frame when no more may be made up.
  std::size_t make(const wire::packet& model, const recipe& r, std::size_t before);
  /// The capture's frames `captured` of the connection and those made up among them, in order.
  std::vector<std::size_t> merge(const std::vector<std::size_t>& captured) const;
  /// A key and an address for a request of which nothing is known.
  wire::reth invent(std::uint32_t length);

 private:
  plan& plan_;
  int connection_;
  std::vector<std::pair<std::size_t, std::size_t>> made_;  // before which frame, index
};

}  // namespace rnic::replay
