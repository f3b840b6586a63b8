// SPDX-License-Identifier: Apache-2.0
#include "model/transport/read_engine/read_engine.h"

namespace rnic::transport {

namespace {
constexpr const char* names[] = {"requester", "responder"};
constexpr const char* full[] = {"requester grants", "responder grants"};
}  // namespace

read_engine::read_engine(const std::string& name, sim::clock_domain& domain, sim::statistics& stats)
    : clocked_block(name, domain),
      request{sim::fifo_in<read_engine_request>(*this), sim::fifo_in<read_engine_request>(*this)},
      grant{sim::fifo_out<read_engine_grant>(*this), sim::fifo_out<read_engine_grant>(*this)},
      engine_(*this, "turns") {
  for (unsigned h = 0; h != halves; ++h) {
    stats.add(this->name() + "." + names[h] + ".grants", counts_[h].grants);
    stats.add(this->name() + "." + names[h] + ".wait_cycles", counts_[h].wait_cycles);
  }
}

void read_engine::tick() {
  std::uint64_t waiting = 0, ready = 0, stops = 0;  // masks of halves
  for (unsigned h = 0; h != halves; ++h) {
    if (!request[h].can_pop()) continue;
    if (since_[h] == sim::never) since_[h] = now();
    const std::uint64_t bit = std::uint64_t{1} << h;
    waiting |= bit;
    if (!request[h].front().wants_grant)
      stops |= bit;
    else if (grant[h].can_push())
      ready |= bit;
  }
  if (waiting == 0) return engine_.idle();
  if (!engine_.is_free()) return engine_.await();
  if ((stops | ready) == 0) return engine_.blocked(full[__builtin_ctzll(waiting)]);
  const auto h = static_cast<unsigned>(next_.pick(stops != 0 ? stops : ready));
  const read_engine_request r = request[h].pop();
  engine_.start(r.cycles);
  counts_[h].wait_cycles += now() - since_[h];
  since_[h] = sim::never;
  if (r.wants_grant) {
    grant[h].push({});
    ++counts_[h].grants;
  }
  if (waiting != std::uint64_t{1} << h) engine_.await();
}

}  // namespace rnic::transport
