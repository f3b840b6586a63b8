// SPDX-License-Identifier: Apache-2.0
// Names of the driver's parameters.
#pragma once

#include "host_driver/config.h"
#include "model/sim/parameters.h"

namespace rnic::hosts {

/// `driver.*`. The driver, which is software and knows nothing of the ground floor, has plain fields.
void announce(sim::parameter_set& to, host_driver::config& c);

}  // namespace rnic::hosts
