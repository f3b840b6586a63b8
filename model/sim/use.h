// SPDX-License-Identifier: Apache-2.0
// How much of each engine, memory and channel of a clock domain has been used.
#pragma once

#include <string>

#include "model/sim/channel.h"
#include "model/sim/clock_domain.h"
#include "model/sim/memory_ports.h"
#include "model/sim/server.h"

namespace rnic::sim {

/// f(name, value) for each engine (`.operations`, `.busy_cycles`, `.blocked_cycles.<by whom>`), each memory with
/// counted ports (`.accesses.<user>`; the cycles in which a user waited are a statistic) and each channel (`.pushes`,
/// `.full_cycles`), in order of construction. What has never blocked an engine is not listed.
template <class F>
void for_each_use(const clock_domain& domain, F f) {
  for (const server* s : domain.servers()) {
    f(s->name() + ".operations", s->operations());
    f(s->name() + ".busy_cycles", s->busy_cycles());
    for (const server::hold_up& h : s->blocked_cycles()) f(s->name() + ".blocked_cycles." + h.by, h.cycles);
  }
  for (const memory_ports* m : domain.memories())
    for (const memory_ports::counted& u : m->users()) f(m->name() + ".accesses." + u.name, u.accesses);
  for (const channel* c : domain.channels()) {
    f(c->name() + ".pushes", c->used().pushes);
    f(c->name() + ".full_cycles", c->used().full_cycles);
  }
}

}  // namespace rnic::sim
