// SPDX-License-Identifier: Apache-2.0
#include "model/sim/simulation.h"

#include <algorithm>
#include <systemc>

#include "model/sim/check.h"

namespace rnic::sim {

namespace {

bool alive = false;
std::uint64_t begun = 0;

/// Something is left besides processes, which the kernel owns.
bool outlived(const sc_core::sc_simcontext& context) {
  const auto& objects = sc_core::sc_get_top_level_objects(&context);
  return std::any_of(objects.begin(), objects.end(), [](const sc_core::sc_object* o) {
    return dynamic_cast<const sc_core::sc_process_b*>(o) == nullptr;
  });
}

}  // namespace

simulation::simulation() : before_(sc_core::sc_get_curr_simcontext()) {
  if (alive) throw config_error("simulation: one is alive, the next one comes after it");
  if (sc_core::sc_is_running()) throw config_error("simulation: cannot begin within a running one");
  own_ = std::make_unique<sc_core::sc_simcontext>();
  sc_core::sc_curr_simcontext = own_.get();
  sc_core::sc_set_time_resolution(1, sc_core::SC_PS);
  alive = true;
  ++begun;
}

std::uint64_t simulation::current() { return alive ? begun : 0; }

simulation::~simulation() {
  if (outlived(*own_))
    static_cast<void>(own_.release());
  else
    own_.reset();  // while it is current: what it still owns asks for the current one
  sc_core::sc_curr_simcontext = before_;
  alive = false;
}

}  // namespace rnic::sim
