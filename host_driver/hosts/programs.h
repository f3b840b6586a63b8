// SPDX-License-Identifier: Apache-2.0
// Programs of several hosts, each in a process of its own, as one run.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "host_driver/hosts/node.h"
#include "model/sim/timebase.h"

namespace rnic::hosts {

/// How a run stands: programs that have not ended, and the first exception of one.
struct run_state {
  unsigned& running;
  std::exception_ptr& failure;
};

/// Spawns a process that opens the device of `n` and runs `program`. The first exception of any ends the run.
void spawn_program(node& n, const std::string& name, std::function<void()> program, run_state state);
/// Lets the kernel run until all programs have ended or one has failed. Throws nothing: the failure is in the state.
void run_programs(sim::timebase& base, run_state state);
/// Throws the failure, or std::runtime_error when the simulation came to rest before all programs had ended.
void expect_all_ended(run_state state);

}  // namespace rnic::hosts
