// SPDX-License-Identifier: Apache-2.0
// What an engine has done, and waited for.
#pragma once

#include <cstdint>
#include <string>

#include "model/sim/clock_domain.h"
#include "model/sim/server.h"

namespace rnic::bench {

/// "by whom cycles; ..." up to now, in the order in which they first held it up, of the engine with this name; "none"
/// when there is no such engine.
inline std::string held_up(const sim::clock_domain& clock, const std::string& engine) {
  for (const sim::server* s : clock.servers()) {
    if (s->name() != engine) continue;
    std::string text;
    for (const sim::server::hold_up& h : s->blocked_cycles()) text += h.by + (" " + std::to_string(h.cycles)) + "; ";
    return text;
  }
  return "none";
}

/// Cycles in which the engine with this name was busy.
inline std::uint64_t busy_cycles(const sim::clock_domain& clock, const std::string& engine) {
  for (const sim::server* s : clock.servers())
    if (s->name() == engine) return s->busy_cycles();
  return 0;
}

}  // namespace rnic::bench
