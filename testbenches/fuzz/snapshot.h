// SPDX-License-Identifier: Apache-2.0
// Inputs for a simulation, which a process has one of: each runs in a copy of the process, so that all begin in the
// same state and what one leaves behind is no other's.
#pragma once

#include <functional>

namespace rnic::fuzz {

/// From now on the coverage of copies counts as this process's. Once, when everything that inputs have in common is
/// done.
void take_snapshot();

/// Runs `body` in a copy and ends it there. A copy that fails has kept its input and said why, so the process ends with
/// the copy's status.
void in_copy(const std::function<void()>& body);

/// Memory that the process, or the copy, has taken from the heap and not given back.
std::size_t heap_bytes();

}  // namespace rnic::fuzz
