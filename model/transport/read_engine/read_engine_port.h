// SPDX-License-Identifier: Apache-2.0
// A half of the transport at the READ engine.
#pragma once

#include <cstdint>

#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"

namespace rnic::transport {

/// The engine is taken for so many cycles: by a READ or an atomic, which waits for the grant, or because it stands
/// still for what was missing of a context, behind the one that has missed it.
struct read_engine_request {
  std::uint32_t cycles = 0;
  bool wants_grant = true;
};
struct read_engine_grant {};

/// The two channels, and a register: a request is under way, from its beginning to the use of its grant. There is one
/// at most. A half asks as soon as it has a READ or an atomic, before that can start, and the grant waits in its
/// channel until one starts. It is for no queue pair: where the one for which was asked is halted, goes into error,
/// gives up its turn or lies in a domain that is revoked, the grant is the next one's, or stays until there is one.
class read_engine_port {
 public:
  explicit read_engine_port(sim::clocked_block& owner) : request(owner), grant(owner) {}
  sim::fifo_out<read_engine_request> request;
  sim::fifo_in<read_engine_grant> grant;

  bool granted() const { return grant.can_pop(); }
  /// There is a READ or an atomic. Nothing, where a request is under way.
  void ask(std::uint32_t cycles) {
    if (under_way_ || !request.claim()) return;
    request.push({cycles, true});
    under_way_ = true;
  }
  /// One starts, and lets the engine stand still for `missing` cycles behind it.
  void use(std::uint32_t missing) {
    grant.drop();
    under_way_ = false;
    if (missing != 0) request.push({missing, false});
  }

 private:
  bool under_way_ = false;
};

}  // namespace rnic::transport
