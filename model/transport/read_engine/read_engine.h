// SPDX-License-Identifier: Apache-2.0
// The READ engine: where READs and atomics of both halves of the transport take turns.
#pragma once

#include <array>
#include <string>

#include "model/sim/arbiter.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/server.h"
#include "model/sim/statistics.h"
#include "model/transport/read_engine/read_engine_port.h"

namespace rnic::transport {

/// Data sheet. READs and atomics that the adapter asks for, as requester, and those that it is asked for, as responder,
/// take turns on one engine of the chip, and so do the responses to both; WRITEs and SENDs need none of it
/// (calibration 5: Connect-IB does 88 M/s as requester, 121 M/s as responder, 50 M/s of each at once). What the bytes
/// of a response take: read_engine_config.
///
/// Ports: four requests, one of each half for its READs, one of the requester for the packets of responses that have
/// come, one of the READ generator for those that it makes; a grant for each. An item of a request says for how many
/// cycles it takes the engine, and whether it wants a grant.
///
/// Stages: the cycle in which a request is seen and the engine is free: the engine is taken for its cycles, and the
/// grant goes on its way, which its user sees a cycle later. So a user has its grant two cycles after it has asked, and
/// one that has asked again by the time at which the engine comes free loses no cycle. One request a cycle at most, of
/// those in front of their channels: one that wants no grant before all that do, since it belongs to what has just
/// started; then a response that has come, since its READ has had its turn, and what has arrived behind it waits as
/// well; then one that is made, whose READ has had its turn too; then the halves by a round robin. Several that want no
/// grant take turns by the same round robin, over all four in the order requester, responder, responses, generator: it
/// goes on behind its last winner, which responses with grants are not. There are no more responses of either kind than
/// what READs that have had their turn asked for, so all come to theirs.
///
/// Memories: none but the arbiter's last winner, at first none (the requester is next), and when the requests in front
/// came. What was granted is a user's and not a queue pair's (read_engine_port): a request is never taken back. Reset:
/// none, turn and grants stay.
///
/// Stalls: a request waits for the engine (`turns`), or for room in its user's grants, where the others' go on; one
/// without a grant needs no room. An engine that is free and has only requests without room is blocked by "requester
/// grants", "responder grants", "response grants" or "generator grants", the first of those in this order. Counters, of
/// all four users: <user>.grants; <user>.wait_cycles, added when a request is taken, with a grant or without: from the
/// cycle in which it is first seen in front.
class read_engine : public sim::clocked_block {
 public:
  enum user : unsigned { requester, responder, responses, generator, users };

  read_engine(const std::string& name, sim::clock_domain& domain, sim::statistics& stats);

  std::array<sim::fifo_in<read_engine_request>, users> request;  ///< may stay unbound: the half has another engine
  std::array<sim::fifo_out<read_engine_grant>, users> grant;

 private:
  struct counters {
    std::uint64_t grants = 0, wait_cycles = 0;
  };
  void tick() override;
  unsigned choose(std::uint64_t stops, std::uint64_t ready);

  sim::server engine_;
  sim::round_robin next_;
  std::array<sim::cycle_t, users> since_{sim::never, sim::never, sim::never, sim::never};  // the request in front came
  std::array<counters, users> counts_;
};

}  // namespace rnic::transport
