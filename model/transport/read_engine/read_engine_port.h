// SPDX-License-Identifier: Apache-2.0
// A user of the READ engine: a half of the transport, or the responses that it gets or makes.
#pragma once

#include <cstdint>

#include "model/sim/check.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/seldom.h"

namespace rnic::transport {

/// The engine is taken for so many cycles: by a READ, an atomic or a packet of a response, which waits for the grant;
/// or without one, by what has been granted its start and lets the engine stand still for what was missing of a
/// context.
struct read_engine_request {
  std::uint32_t cycles = 0;  ///< 1 or more
  bool wants_grant = true;
};
struct read_engine_grant {};

/// The two channels, and a register: a request is under way, from its beginning to the use of its grant. There is one
/// at most. A half asks as soon as it has a READ or an atomic, before that can start, the completer when a packet of a
/// response lacks nothing else, and the READ generator when the packet is the next that it reads; the grant waits in
/// its channel until it is used. It is for no queue pair: where the one for which was asked is halted, goes into error,
/// gives up its turn or lies in a domain that is revoked, the grant is the next one's, or stays until there is one.
/// Cycles without a grant go before it; where the channel takes nothing, they wait in a counter.
class read_engine_port {
 public:
  explicit read_engine_port(sim::clocked_block& owner) : request(owner), grant(owner) {}
  sim::fifo_out<read_engine_request> request;
  sim::fifo_in<read_engine_grant> grant;

  bool granted() const { return grant.can_pop(); }
  /// There is something for which to ask. Nothing, where a request is under way.
  void ask(std::uint32_t cycles) {
    RNIC_ASSERT(cycles != 0, "a request of the READ engine for no cycle");
    if (under_way_ || owed_ != 0 || !request.claim()) return;
    request.push({cycles, true});
    under_way_ = true;
  }
  /// It goes on, and lets the engine stand still for `missing` cycles behind it.
  void use(std::uint32_t missing = 0) {
    grant.drop();
    under_way_ = false;
    owed_ += missing;
    missing_ += missing;
    work();
  }
  /// For so long the engine has stood still, or is to, for what was missing of contexts.
  const std::uint64_t& missing_cycles() const { return missing_; }
  /// In each tick, before anything is asked, where cycles may be missing.
  void work() {
    if (sim::seldom(owed_ != 0)) tell();
  }

 private:
  [[gnu::noinline]] void tell() {
    if (!request.claim()) return;
    request.push({owed_, false});
    owed_ = 0;
  }
  bool under_way_ = false;
  std::uint32_t owed_ = 0;  // cycles without a grant that were not told yet
  std::uint64_t missing_ = 0;
};

}  // namespace rnic::transport
