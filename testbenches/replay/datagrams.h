// SPDX-License-Identifier: Apache-2.0
// The datagrams of a capture: those that the held host sent, and those that reached one of its queue pairs.
#pragma once

#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Adds a connection for each queue pair of the held host that sent or got datagrams, with any peers. Those of
/// management (queue pair 1) and those to groups in which no such queue pair is are rejected.
void find_datagrams(plan& p);

}  // namespace rnic::replay
