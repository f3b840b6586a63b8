// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/sole_system.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <systemc>

#include "model/sim/check.h"
#include "model/sim/simulation.h"

namespace rnic::hosts {

namespace {

struct kernel_use {
  bool taken = false;
  bool has_remains = false;
};

kernel_use& use_of_kernel() {
  static std::map<std::uint64_t, kernel_use> kernels;
  return kernels[sim::simulation::current()];
}

/// Threads of modules that are gone, and of nobody. Methods are called when their events say so, which is never again.
std::size_t orphans() {
  const auto& all = sc_core::sc_get_top_level_objects();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const sc_core::sc_object* o) {
    return std::string(o->kind()) == "sc_thread_process";
  }));
}

[[noreturn]] void refuse(const std::string& why) {
  throw sim::config_error(why + "; several systems in a process need a sim::simulation each, one after the other");
}

}  // namespace

sole_system::sole_system() : orphans_(orphans()) {
  kernel_use& kernel = use_of_kernel();
  if (kernel.taken) refuse("a second system: this SystemC kernel has one already");
  if (sc_core::sc_start_of_simulation_invoked())
    refuse("a second system: this SystemC kernel has simulated one already");
  kernel.taken = true;
}

sole_system::~sole_system() {
  kernel_use& kernel = use_of_kernel();
  kernel.taken = false;
  if (orphans() > orphans_) kernel.has_remains = true;
}

void sole_system::begin_run() {
  if (has_run_) throw sim::config_error("run: a system runs once, and this one has run");
  if (use_of_kernel().has_remains) refuse("run: this SystemC kernel has processes of another system, which is gone");
  has_run_ = true;
}

}  // namespace rnic::hosts
