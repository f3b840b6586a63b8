// SPDX-License-Identifier: Apache-2.0
#include "model/transport/read_engine/read_engine.h"

namespace rnic::transport {

namespace {
constexpr const char* names[] = {"requester", "responder", "responses", "generator"};
constexpr const char* full[] = {"requester grants", "responder grants", "response grants", "generator grants"};
constexpr std::uint64_t bit(unsigned user) { return std::uint64_t{1} << user; }
}  // namespace

read_engine::read_engine(const std::string& name, sim::clock_domain& domain, sim::statistics& stats)
    : clocked_block(name, domain),
      request{sim::fifo_in<read_engine_request>(*this), sim::fifo_in<read_engine_request>(*this),
              sim::fifo_in<read_engine_request>(*this), sim::fifo_in<read_engine_request>(*this)},
      grant{sim::fifo_out<read_engine_grant>(*this), sim::fifo_out<read_engine_grant>(*this),
            sim::fifo_out<read_engine_grant>(*this), sim::fifo_out<read_engine_grant>(*this)},
      engine_(*this, "turns") {
  for (unsigned u = 0; u != users; ++u) {
    stats.add(this->name() + "." + names[u] + ".grants", counts_[u].grants);
    stats.add(this->name() + "." + names[u] + ".wait_cycles", counts_[u].wait_cycles);
  }
}

void read_engine::tick() {
  std::uint64_t waiting = 0, ready = 0, stops = 0;  // masks of users
  for (unsigned u = 0; u != users; ++u) {
    if (!request[u].can_pop()) continue;
    if (since_[u] == sim::never) since_[u] = now();
    waiting |= bit(u);
    if (!request[u].front().wants_grant)
      stops |= bit(u);
    else if (grant[u].can_push())
      ready |= bit(u);
  }
  if (waiting == 0) return engine_.idle();
  if (!engine_.is_free()) return engine_.await();
  if ((stops | ready) == 0) return engine_.blocked(full[__builtin_ctzll(waiting)]);
  const unsigned u = choose(stops, ready);
  const read_engine_request r = request[u].pop();
  engine_.start(r.cycles);
  counts_[u].wait_cycles += now() - since_[u];
  since_[u] = sim::never;
  if (r.wants_grant) {
    grant[u].push({});
    ++counts_[u].grants;
  }
  if (waiting != bit(u)) engine_.await();
}

// Responses are not in the halves' turn: who comes next of them stays so.
unsigned read_engine::choose(std::uint64_t stops, std::uint64_t ready) {
  for (const unsigned of : {responses, generator})
    if (stops == 0 && (ready & bit(of)) != 0) return of;
  return static_cast<unsigned>(next_.pick(stops != 0 ? stops : ready));
}

}  // namespace rnic::transport
