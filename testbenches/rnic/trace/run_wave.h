// SPDX-License-Identifier: Apache-2.0
// --wave.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "testbenches/bench/wave/network_wave.h"
#include "testbenches/rnic/options.h"

namespace rnic::program {

/// nullptr: none. Throws usage_error.
std::unique_ptr<bench::network_wave> wave_of(const bench::watched_system& system, const trace_options& trace);
/// Throws usage_error for what cannot be right, before anything runs.
void check_wave(const common_options& common, const trace_options& trace);
/// Of one whose run has ended: finishes it.
nlohmann::json wave_json(const trace_options& trace, bench::network_wave& wave);
void print_wave(const nlohmann::json& wave);

}  // namespace rnic::program
