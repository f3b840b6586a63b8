// SPDX-License-Identifier: Apache-2.0
// What is done and waited for in the course of one connection.
#pragma once

#include <cstdint>
#include <vector>

#include "testbenches/replay/plan.h"

namespace rnic::replay {

struct step {
  enum class kind : std::uint8_t { inject, expect, post, allow, revoke, install, succeed };
  kind what;
  std::size_t frame;     ///< of the plan
  std::uint64_t number;  ///< post: of the message; revoke: key; install: region; succeed: the next connection
};

/// Of connection `index`, in order, without what follows from its place among others of its number.
std::vector<step> steps_of(const plan& p, std::size_t index);

}  // namespace rnic::replay
