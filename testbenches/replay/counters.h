// SPDX-License-Identifier: Apache-2.0
// In what order atomics of several queue pairs were executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/wire/packet.h"

namespace rnic::replay {

/// An atomic on a word that was executed at some moment of [from, to]: between its request and its answer.
struct executed_atomic {
  std::uint64_t from = 0, to = 0;  ///< of any clock
  const wire::packet* request = nullptr;
  std::uint64_t found = 0;
  std::size_t number = 0;  ///< the caller's
};

/// One order in which atomics on one word can have been executed.
struct execution_order {
  std::vector<executed_atomic> atomics;
  std::vector<bool> jumps;  ///< it did not find what the one before it had left; of the first one: true
  std::size_t jump_count = 0;
};

/// Takes of those that were under way together the one that finds what is there, if one does; else the one that was
/// answered first.
execution_order order_of_execution(std::vector<executed_atomic> atomics);

/// What an atomic leaves of the word in which it found `found`, masks aside.
std::uint64_t after_atomic(const wire::packet& request, std::uint64_t found);

}  // namespace rnic::replay
