// SPDX-License-Identifier: Apache-2.0
// Which request each answer of a capture answers.
#pragma once

#include <cstddef>
#include <vector>

#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// By frame of the capture: for an answer of the held host the index of the peer's request that it answers, otherwise
/// no_frame. Of several transmissions of a request it is the latest that is not too late for the answer: no answer
/// follows a request faster than the fastest one whose question is certain.
std::vector<std::size_t> captured_questions(const plan& p);

}  // namespace rnic::replay
