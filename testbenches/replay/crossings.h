// SPDX-License-Identifier: Apache-2.0
// Packets that were under way in both directions at once.
#pragma once

#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// A capture taken away from the held host shows a NAK of its peer before requests that the held host had sent already:
/// new ones, although it was told to go back or to wait. Such a NAK comes behind them in the connection's order.
void let_cross(plan& p, connection& c);

}  // namespace rnic::replay
