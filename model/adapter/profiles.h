// SPDX-License-Identifier: Apache-2.0
// Profiles as data: what differs from the first one, and why.
#pragma once

#include <string>

#include "model/sim/parameters.h"

namespace rnic::adapter {

/// Gives every announced parameter the source that its value has in this profile: the profile's own, or word that the
/// profile has none and takes connectx3pro_40g's.
void name_sources(sim::parameter_set& to, const std::string& profile);

}  // namespace rnic::adapter
