// SPDX-License-Identifier: Apache-2.0
// The adapter that inputs are done to, and what must hold of it whatever is done.
#pragma once

#include <cstdint>
#include <functional>

#include "model/sim/types.h"
#include "testbenches/system/conformance/rig.h"

namespace rnic::fuzz {

/// Brings up a whole adapter with a scripted peer, and takes the snapshot of it. `narrow`: with the least of everything
/// that blocks have places for, so that they fill up and miss.
void bring_up(bool narrow = false);

/// Runs `body` as a program of the host in a copy of the process.
void in_adapter(const std::function<void(conformance::rig&)>& body);

/// Until its end everything must have happened within a time of the simulation and a number of ticks of the adapter's
/// blocks: what ticks for ever without an end is found by this, long before anybody's patience ends.
class patience {
 public:
  patience(const char* what, sim::time_ps time, std::uint64_t ticks);
  ~patience();
  patience(const patience&) = delete;
  patience& operator=(const patience&) = delete;
};

/// Ticks of the adapter's blocks since the start.
std::uint64_t ticks();

/// Lets what is still under way end; then the adapter sleeps, holds no frames and has taken no memory that grows.
void expect_rest(conformance::rig& r);
/// A queue pair of its own takes a WRITE, answers a READ and sends.
void expect_serves(conformance::rig& r);

}  // namespace rnic::fuzz
