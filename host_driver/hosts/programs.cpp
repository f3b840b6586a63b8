// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/programs.h"

#include <stdexcept>
#include <systemc>
#include <utility>

#include "host_driver/hosts/connection.h"
#include "model/sim/check.h"

namespace rnic::hosts {

void spawn_program(node& n, const std::string& name, std::function<void()> program, run_state state) {
  if (!program) throw sim::config_error("run: " + name + " is not given");
  ++state.running;
  sc_core::sc_spawn(
      [&n, program = std::move(program), state] {
        try {
          require(n.start(), "open device");
          program();
        } catch (...) {
          if (!state.failure) {  // the kernel warns of a second stop
            state.failure = std::current_exception();
            sc_core::sc_stop();
          }
        }
        if (--state.running == 0) sc_core::sc_pause();
      },
      name.c_str());
}

void run_programs(sim::timebase& base, run_state state) {
  base.run_ahead_until(~sim::time_ps{0});
  try {
    sc_core::sc_start();
  } catch (...) {
    if (!state.failure) state.failure = std::current_exception();
  }
}

void expect_all_ended(run_state state) {
  if (state.failure) std::rethrow_exception(state.failure);
  if (state.running != 0) throw std::runtime_error("the simulation came to rest before all programs had ended");
}

}  // namespace rnic::hosts
